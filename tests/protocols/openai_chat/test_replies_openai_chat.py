"""Replies of the Chat Completions protocol: decoded, and encoded without loss."""

from __future__ import annotations

from typing import Any

import pytest

from support.protocols.body_laws import same_json
from support.protocols.messages_openai_chat import blocks_of, call, messages_of
from support.protocols.strategies.wire_objects import Fields
from toolglot import InputError, Media, Text, Thinking, ToolCall, Turn
from toolglot.conversation import Reply, StopReason, Usage
from toolglot.protocols.anthropic import reply as anthropic_reply
from toolglot.protocols.openai_chat import reply

# --- replies ----------------------------------------------------------------------------------------


def reply_body(message: Fields, **choice: Any) -> Fields:
    return {"id": "r", "model": "m", "choices": [{"message": {"role": "assistant", **message}, **choice}]}


CALL_MESSAGE: Fields = {"content": None, "tool_calls": [call("{}")]}
TEXT_MESSAGE: Fields = {"content": "x"}


@pytest.mark.parametrize(
    ("reason", "message", "stop"),
    [
        ("stop", TEXT_MESSAGE, "stop"),
        ("stop", CALL_MESSAGE, "tool_calls"),
        ("tool_calls", CALL_MESSAGE, "tool_calls"),
        ("tool_calls", TEXT_MESSAGE, "stop"),
        ("function_call", TEXT_MESSAGE, "stop"),
        ("length", CALL_MESSAGE, "length"),
        ("model_length", TEXT_MESSAGE, "length"),
        ("content_filter", TEXT_MESSAGE, "filter"),
        ("content_filter", CALL_MESSAGE, "filter"),
        ("sensitive", TEXT_MESSAGE, "filter"),
        ("network_error", TEXT_MESSAGE, "error"),
        ("something_new", TEXT_MESSAGE, "stop"),
        ("something_new", CALL_MESSAGE, "tool_calls"),
        (None, CALL_MESSAGE, None),
    ],
)
def test_J1_J2_why_a_reply_ended_is_derived_from_its_calls(reason: str | None, message: Fields, stop: str) -> None:
    body = reply_body(message, finish_reason=reason)
    found = reply.decode(body)
    assert found.stop == stop
    assert same_json(reply.encode(found), body)


@pytest.mark.parametrize(
    ("stop", "written"), [("length", "length"), ("filter", "content_filter"), ("pause", "stop"), (None, None)]
)
def test_a_reason_that_changed_is_written_as_it_is_now(stop: StopReason | None, written: str | None) -> None:
    found = reply.decode(reply_body(TEXT_MESSAGE, finish_reason="later"))
    body = reply.encode(Reply(found.turn, stop, extra=found.extra))
    assert body["choices"][0].get("finish_reason") == written


def test_decoding_a_reply() -> None:
    body = {
        "id": "r1",
        "object": "chat.completion",
        "created": 17,
        "model": "gpt",
        "choices": [
            {"index": 0, "message": {"role": "assistant", **TEXT_MESSAGE}, "finish_reason": "stop", "logprobs": None},
            {"index": 1, "message": {"role": "assistant", "content": "y"}, "finish_reason": "length"},
        ],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 2},
        },
    }
    found = reply.decode(body)
    assert (found.id, found.model, found.turn.text, found.stop) == ("r1", "gpt", "x", "stop")
    usage = found.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, usage.reasoning_tokens) == (10, 5, 3, 2)
    assert same_json(reply.encode(found), body)


def test_a_reply_made_elsewhere_is_written() -> None:
    made = Reply(Turn("assistant", (Text("x"), ToolCall("c1", "f"))), "tool_calls", Usage(10, 5, 3, 2, 1), "r1", "m")
    assert reply.encode(made) == {
        "id": "r1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "x", "tool_calls": [call("{}")]},
                "logprobs": None,
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 1},
        },
    }
    bare = reply.encode(Reply(Turn("assistant"), usage=Usage(output_tokens=5)))
    assert bare["choices"][0]["finish_reason"] is None


@pytest.mark.parametrize(
    ("usage", "written"),
    [
        (None, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
        (Usage(21), {"prompt_tokens": 21, "completion_tokens": 0, "total_tokens": 21}),
    ],
)
def test_U5_U6_a_reply_made_elsewhere_has_all_counts_that_clients_demand(usage: Usage | None, written: Fields) -> None:
    assert reply.encode(Reply(Turn("assistant"), "stop", usage))["usage"] == written


def test_U2_tokens_written_to_a_cache_are_counted() -> None:
    details = {"cached_tokens": 5, "cache_write_tokens": 10}
    usage = {"prompt_tokens": 20, "completion_tokens": 1, "total_tokens": 21, "prompt_tokens_details": details}
    found = reply.decode({**reply_body(TEXT_MESSAGE), "usage": usage})
    assert found.usage is not None
    assert (found.usage.cache_read_tokens, found.usage.cache_write_tokens) == (5, 10)


REFUSED: Fields = {"content": None, "refusal": "I cannot."}


@pytest.mark.parametrize(
    ("message", "stop"),
    [
        (REFUSED, "filter"),
        ({"content": [{"type": "refusal", "refusal": "I cannot."}]}, "filter"),
        ({"content": "x", "refusal": "I cannot."}, "stop"),
        ({"content": "x", "refusal": ""}, "stop"),
        ({**CALL_MESSAGE, "refusal": "I cannot."}, "tool_calls"),
    ],
)
def test_F1_a_refusal_is_text_that_others_show_and_a_reply_that_only_refuses_was_filtered(
    message: Fields, stop: str
) -> None:
    body = reply_body(message, finish_reason="stop")
    found = reply.decode(body)
    assert found.stop == stop
    assert same_json(reply.encode(found), body)
    shown = anthropic_reply.encode(found)
    assert "".join(block.get("text", "") for block in shown["content"]) == found.turn.text


def test_refusals_of_merged_messages_are_one_text() -> None:
    (refusal,) = blocks_of({"role": "assistant", "refusal": "no"})
    assert messages_of(Turn("assistant", (refusal, refusal))) == [
        {"role": "assistant", "refusal": "nono", "content": ""}
    ]


def test_T3_thinking_of_another_model_is_shown_and_its_media_left_out() -> None:
    turn = Turn("assistant", (Thinking("hm", "sig", "xx"), Media("image", url="u"), Text("x")))
    (choice,) = reply.encode(Reply(turn, "stop"))["choices"]
    assert choice["message"] == {"role": "assistant", "reasoning_content": "hm", "content": "x"}


def test_law_9_many_thoughts_are_joined_in_linear_time() -> None:
    turn = Turn("assistant", (Thinking("hm" * 50),) * 100_000)
    assert len(messages_of(turn)[0]["reasoning_content"]) == 10_000_000


def test_native_media_in_a_reply_stays() -> None:
    body = reply_body({"content": [{"type": "image_url", "image_url": {"url": "u"}}]})
    assert same_json(reply.encode(reply.decode(body)), body)


def test_E1_a_failed_reply_does_not_look_finished() -> None:
    (choice,) = reply.encode(Reply(Turn("assistant"), "error"))["choices"]
    assert choice["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"choices": []}, r"^\$\.choices: expected at least one choice, got an empty array"),
        ({"choices": None}, r"^\$\.choices: expected an array, got null"),
        ({"choices": [3]}, r"^\$\.choices\[0\]: expected an object"),
        ({"choices": [{}]}, r"^\$\.choices\[0\]\.message: expected an object, but the field is missing"),
        ({"choices": [{"message": {"role": "user"}}]}, r"^\$\.choices\[0\]\.message\.role: expected one of assistant"),
        (reply_body({"content": 3}), r"^\$\.choices\[0\]\.message\.content: expected a string or an array of parts"),
        (reply_body(TEXT_MESSAGE, finish_reason=3), r"^\$\.choices\[0\]\.finish_reason: expected a string"),
        ({"usage": 3}, r"^\$\.usage: expected an object"),
        ({"usage": {"prompt_tokens": "3"}}, r"^\$\.usage\.prompt_tokens: expected a whole number, got a string"),
        (
            {"usage": {"prompt_tokens_details": {"cached_tokens": "3"}}},
            r"^\$\.usage\.prompt_tokens_details\.cached_tokens: expected a whole number",
        ),
        ({"id": 3}, r"^\$\.id: expected a string"),
    ],
)
def test_a_reply_with_a_field_of_the_wrong_type_is_refused(change: Fields, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reply.decode({**reply_body(TEXT_MESSAGE), **change})
