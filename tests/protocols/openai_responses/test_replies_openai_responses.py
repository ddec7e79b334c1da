"""Replies of the OpenAI Responses protocol: decoded, and encoded without loss."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from support.protocols.body_laws import same_json
from support.protocols.items_openai_responses import call, message, output, output_text
from support.protocols.strategies.wire_objects import Fields
from toolglot import InputError, Text, Thinking, ToolCall, Turn
from toolglot.conversation import Opaque, Reply, StopReason, Usage
from toolglot.protocols.openai_chat import reply as chat_reply
from toolglot.protocols.openai_responses import reply

# --- replies ----------------------------------------------------------------------------------------

TEXT_MESSAGE = message("assistant", output_text("x"))
REFUSED = message("assistant", {"type": "refusal", "refusal": "no"})
CUT = {"reason": "max_output_tokens"}
FILTERED = {"reason": "content_filter"}


@pytest.mark.parametrize(
    ("status", "details", "item", "stop"),
    [
        ("completed", None, TEXT_MESSAGE, "stop"),
        ("completed", None, call(), "tool_calls"),
        ("completed", None, {"type": "custom_tool_call", "call_id": "c", "name": "p", "input": ""}, "tool_calls"),
        ("completed", None, {"type": "web_search_call", "id": "ws"}, "stop"),
        ("completed", None, REFUSED, "filter"),
        ("incomplete", CUT, TEXT_MESSAGE, "length"),
        ("incomplete", CUT, call(), "length"),
        ("incomplete", FILTERED, TEXT_MESSAGE, "filter"),
        ("incomplete", None, TEXT_MESSAGE, "length"),
        ("failed", None, TEXT_MESSAGE, "error"),
        ("cancelled", None, TEXT_MESSAGE, "error"),
        ("in_progress", None, TEXT_MESSAGE, "pause"),
        ("queued", None, TEXT_MESSAGE, "pause"),
        ("something_new", None, TEXT_MESSAGE, "stop"),
        (None, None, TEXT_MESSAGE, None),
    ],
)
def test_J1_J2_why_a_reply_ended_is_derived_from_what_is_in_it(
    status: str | None, details: Fields | None, item: Fields, stop: str | None
) -> None:
    body = {"id": "r", "model": "g", "status": status, "incomplete_details": details, "output": [item]}
    assert reply.decode(body).stop == stop


def test_decoding_a_reply() -> None:
    found = reply.decode(
        {
            "id": "resp_1",
            "object": "response",
            "model": "gpt",
            "status": "completed",
            "output": [{"type": "reasoning", "id": "rs_1", "summary": []}, TEXT_MESSAGE, call(id="fc_1"), output()],
            "usage": {
                "input_tokens": 10,
                "input_tokens_details": {"cached_tokens": 4},
                "output_tokens": 6,
                "output_tokens_details": {"reasoning_tokens": 2},
                "total_tokens": 16,
            },
        }
    )
    assert (found.id, found.model, found.stop, found.turn.role) == ("resp_1", "gpt", "tool_calls", "assistant")
    assert [type(block) for block in found.turn.blocks] == [Thinking, Text, ToolCall, Opaque]
    usage = found.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.reasoning_tokens) == (10, 6, 4, 2)


DEFAULTS: Fields = {
    "background": False,
    "frequency_penalty": 0.0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": None,
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
"""What a response repeats of a request that sets nothing."""


@pytest.mark.parametrize(
    ("own", "stop", "status", "details"),
    [
        ("completed", "length", "incomplete", {"reason": "max_output_tokens"}),
        ("completed", "error", "failed", None),
        ("incomplete", "tool_calls", "completed", None),
        ("completed", "tool_calls", "completed", None),
    ],
)
def test_the_status_of_a_whole_response_follows_its_stop_reason(
    own: str, stop: StopReason, status: str, details: Fields | None
) -> None:
    cut = {"reason": "max_output_tokens"} if own == "incomplete" else None
    body: Fields = {"id": "r", "model": "g", "status": own, "incomplete_details": cut, "completed_at": 5, "output": []}
    written = reply.encode(replace(reply.decode(body), stop=stop))
    assert (written["status"], written["incomplete_details"]) == (status, details)
    assert written["completed_at"] == (5 if status == "completed" else None)


def test_a_reply_made_elsewhere_is_written() -> None:
    turn = Turn("assistant", (Thinking("hm", "sig", "xx"), Thinking(redacted="y"), Text("x"), ToolCall("toolu_1", "f")))
    body = reply.encode(Reply(turn, "tool_calls", Usage(10, 5, 3, 2), "resp_1", "c"))
    assert body == {
        "id": "resp_1",
        "object": "response",
        "model": "c",
        "created_at": 0,
        "completed_at": 0,
        "error": None,
        **DEFAULTS,
        "status": "completed",
        "incomplete_details": None,
        "output": [
            {
                "type": "reasoning",
                "id": "rs_b82e2178ecf4d0c5859dc2e169d7fed8673f9f6e",
                "summary": [{"type": "summary_text", "text": "hm"}],
            },
            {
                "type": "message",
                "id": "msg_1_1",
                "status": "completed",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "x", "annotations": [], "logprobs": []}],
            },
            {
                "type": "function_call",
                "id": "fc_1_2",
                "status": "completed",
                "call_id": "toolu_1",
                "name": "f",
                "arguments": "{}",
            },
        ],
        "usage": {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 15,
        },
    }
    assert same_json(reply.encode(reply.decode(body)), body)


def test_F2_a_refusal_is_text_that_others_show() -> None:
    body = {"id": "r", "model": "g", "status": "completed", "output": [REFUSED]}
    found = reply.decode(body)
    assert found.turn.text == "no"
    assert same_json(reply.encode(found), body)
    shown = chat_reply.encode(found)["choices"][0]
    assert (shown["message"]["refusal"], shown["message"]["content"], shown["finish_reason"]) == ("no", None, "stop")
    answered = {**body, "output": [TEXT_MESSAGE, REFUSED]}
    assert reply.decode(answered).stop == "stop"


def test_U3_tokens_written_to_a_cache_are_counted() -> None:
    usage = {"input_tokens": 20, "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 10}}
    found = reply.decode({"id": "r", "model": "g", "output": [], "usage": usage}).usage
    assert found is not None
    assert (found.cache_read_tokens, found.cache_write_tokens) == (5, 10)


@pytest.mark.parametrize(
    ("stop", "status", "details"),
    [
        ("stop", "completed", None),
        ("length", "incomplete", CUT),
        ("filter", "incomplete", FILTERED),
        ("pause", "in_progress", None),
        ("error", "failed", None),
        (None, None, None),
    ],
)
def test_why_a_reply_made_elsewhere_ended_is_written(
    stop: StopReason | None, status: str | None, details: Fields | None
) -> None:
    body = reply.encode(Reply(Turn("assistant"), stop))
    assert (body.get("status"), body["incomplete_details"]) == (status, details)
    assert reply.decode(body).stop == stop


def test_items_of_this_protocol_in_a_reply_made_elsewhere_are_written_as_they_are() -> None:
    blocks = reply.decode({"id": "r", "model": "g", "output": [REFUSED, message("assistant"), output()]}).turn.blocks
    (written, empty, other) = reply.encode(Reply(Turn("assistant", blocks), "filter", id="resp_1"))["output"]
    assert written == {**REFUSED, "id": "msg_1_0", "status": "completed"}
    assert empty == {**message("assistant"), "id": "msg_1_1", "status": "completed"}
    assert other == output()
    (alone,) = reply.encode(Reply(Turn("assistant", blocks[:1]), "filter", id="resp_1"))["output"]
    assert alone["status"] == "incomplete"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"output": "x"}, r"^\$\.output: expected an array"),
        ({"output": [{"type": "function_call"}]}, r"^\$\.output\[0\]\.call_id: expected a string, but"),
        ({"status": 3}, r"^\$\.status: expected a string"),
        ({"incomplete_details": {"reason": 1}}, r"^\$\.incomplete_details\.reason: expected a string"),
        ({"usage": {"input_tokens": "3"}}, r"^\$\.usage\.input_tokens: expected a whole number, got a string"),
        (
            {"usage": {"input_tokens_details": {"cached_tokens": 1.5}}},
            r"^\$\.usage\.input_tokens_details\.cached_tokens: expected a whole number, got a number",
        ),
        ({"id": None}, r"^\$\.id: expected a string, got null"),
    ],
)
def test_a_reply_with_a_field_of_the_wrong_type_is_refused(change: Fields, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        reply.decode({"id": "r", "model": "g", "output": [], **change})
