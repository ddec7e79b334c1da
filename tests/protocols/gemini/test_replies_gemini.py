"""Replies of the Gemini protocol: decoded, and encoded without loss."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from support.protocols.body_laws import same_json, without_form
from support.protocols.strategies.wire_objects import Fields
from toolglot import InputError, Text, Thinking, ToolCall, Turn
from toolglot.conversation import Opaque, Reply, Usage
from toolglot.protocols.gemini import reply

# --- replies ----------------------------------------------------------------------------------------

CALL_CONTENT: Fields = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
TEXT_CONTENT: Fields = {"role": "model", "parts": [{"text": "x"}]}


@pytest.mark.parametrize(
    ("reason", "content", "stop"),
    [
        ("STOP", TEXT_CONTENT, "stop"),
        ("STOP", CALL_CONTENT, "tool_calls"),
        ("STOP", {}, "stop"),
        ("MAX_TOKENS", TEXT_CONTENT, "length"),
        ("MAX_TOKENS", CALL_CONTENT, "length"),
        ("MAX_TOKENS", None, "length"),
        ("SAFETY", {}, "filter"),
        ("RECITATION", {}, "filter"),
        ("LANGUAGE", {}, "filter"),
        ("BLOCKLIST", {}, "filter"),
        ("PROHIBITED_CONTENT", {}, "filter"),
        ("SPII", {}, "filter"),
        ("IMAGE_SAFETY", {}, "filter"),
        ("IMAGE_LATER", {}, "filter"),
        ("CONTINUATION", TEXT_CONTENT, "pause"),
        ("MALFORMED_FUNCTION_CALL", {}, "error"),
        ("MALFORMED_FUNCTION_CALL", CALL_CONTENT, "error"),
        ("MALFORMED_RESPONSE", None, "error"),
        ("UNEXPECTED_TOOL_CALL", {}, "error"),
        ("UNEXPECTED_TOOL_CALL", CALL_CONTENT, "error"),
        ("TOO_MANY_TOOL_CALLS", CALL_CONTENT, "error"),
        ("NO_IMAGE", {}, "error"),
        ("OTHER", {}, "error"),
        ("SOMETHING_NEW", TEXT_CONTENT, "stop"),
        (None, CALL_CONTENT, None),
    ],
)
def test_J1_J2_J3_why_a_reply_ended_is_derived_from_its_calls(
    reason: str | None, content: Fields | None, stop: str | None
) -> None:
    body = {"candidates": [{"content": content, "finishReason": reason}]}
    found = reply.decode(body)
    assert found.stop == stop
    assert len(found.turn.calls) == (content is CALL_CONTENT)
    assert same_json(reply.encode(found), body)


@pytest.mark.parametrize(
    ("body", "stop"),
    [
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "filter"),
        ({"candidates": [], "prompt_feedback": {"block_reason": "OTHER"}}, "filter"),
        ({"promptFeedback": {}}, None),
        ({"usageMetadata": {"promptTokenCount": 3}}, None),
    ],
)
def test_a_blocked_prompt_is_an_empty_reply_with_a_stop_reason(body: Fields, stop: str | None) -> None:
    found = reply.decode(body)
    assert (found.turn, found.stop) == (Turn("assistant"), stop)
    assert same_json(reply.encode(found), body)


def test_decoding_a_reply() -> None:
    body: Fields = {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "x"}]}, "index": 0},
            {"content": {"role": "model", "parts": [{"text": "other"}]}, "index": 1},
        ],
        "usageMetadata": {
            "promptTokenCount": 10,
            "candidatesTokenCount": 5,
            "thoughtsTokenCount": 3,
            "cachedContentTokenCount": 2,
            "totalTokenCount": 18,
        },
        "modelVersion": "gemini-3-pro",
        "responseId": "r1",
    }
    found = reply.decode(body)
    assert [without_form(block) for block in found.turn.blocks] == [Thinking("hm"), Text("x")]
    assert (found.id, found.model) == ("r1", "gemini-3-pro")
    assert without_form(found.usage) == Usage(10, 8, 2, reasoning_tokens=3)
    assert same_json(reply.encode(found), body)


def test_a_reply_made_elsewhere_is_written() -> None:
    blocks = (Thinking("hm", "sig"), Thinking(redacted="xx"), Opaque("anthropic", {}), Text("x"), ToolCall("c1", "f"))
    made = Reply(Turn("assistant", blocks), "tool_calls", Usage(10, 8, 3, 2, 6), "m1", "claude")
    assert reply.encode(made) == {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "hm", "thought": True},
                        {"text": "x"},
                        {"functionCall": {"id": "c1", "name": "f", "args": {}}},
                    ],
                },
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 10,
            "candidatesTokenCount": 2,
            "thoughtsTokenCount": 6,
            "cachedContentTokenCount": 3,
            "totalTokenCount": 18,
        },
        "modelVersion": "claude",
        "responseId": "m1",
    }
    assert reply.encode(Reply(Turn("assistant"))) == {"candidates": [{"content": {"role": "model", "parts": []}}]}
    assert reply.encode(Reply(Turn("assistant"), usage=Usage(output_tokens=1)))["usageMetadata"] == {
        "candidatesTokenCount": 1
    }


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("stop", "STOP"),
        ("tool_calls", "STOP"),
        ("length", "MAX_TOKENS"),
        ("filter", "SAFETY"),
        ("pause", "CONTINUATION"),
        ("error", "OTHER"),
    ],
)
def test_foreign_stop_reasons_are_written(stop: Any, reason: str) -> None:
    assert reply.encode(Reply(Turn("assistant"), stop))["candidates"][0]["finishReason"] == reason


def test_a_changed_stop_reason_is_written() -> None:
    found = reply.decode({"candidates": [{"content": TEXT_CONTENT, "finishReason": "RECITATION"}]})
    assert reply.encode(replace(found, stop="length"))["candidates"][0]["finishReason"] == "MAX_TOKENS"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"candidates": {}}, r"^\$\.candidates: expected an array, got an object"),
        ({"candidates": [1]}, r"^\$\.candidates\[0\]: expected an object"),
        ({"candidates": [{"content": "x"}]}, r"^\$\.candidates\[0\]\.content: expected an object"),
        ({"candidates": [{"content": {"parts": [{"text": 1}]}}]}, r"^\$\.candidates\[0\]\.content\.parts\[0\]\.text: "),
        ({"candidates": [{"finishReason": [1]}]}, r"^\$\.candidates\[0\]\.finishReason: expected a string"),
        ({"promptFeedback": 1}, r"^\$\.promptFeedback: expected an object"),
        ({"usageMetadata": {"promptTokenCount": "3"}}, r"^\$\.usageMetadata\.promptTokenCount: expected a whole"),
        ({"responseId": 1}, r"^\$\.responseId: expected a string"),
    ],
)
def test_a_reply_with_a_field_of_the_wrong_type_is_refused(body: Fields, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reply.decode(body)
