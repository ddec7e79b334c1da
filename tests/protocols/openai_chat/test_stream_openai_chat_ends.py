"""How Chat Completions streams end: with a reason, with another than there is, with none, with an error (J, K)."""

from __future__ import annotations

from typing import Any

import pytest

from support.protocols.streams.openai_chat import DONE, Fields, ReadChunks, call, calls, chunk, frames, sse
from toolglot.conversation.events import Failed
from toolglot.errors import LimitError
from toolglot.limits import Limits
from toolglot.protocols.framing.event_builder import NO_LAST_EVENT
from toolglot.protocols.openai_chat import stream_reader

STOP = (chunk({}, "stop"), DONE)


def read_to_stop(*chunks: Any) -> ReadChunks:
    return ReadChunks([*chunks, *STOP])


# --- the end ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "with_calls", "stop"),
    [
        ("stop", False, "stop"),
        ("stop", True, "tool_calls"),
        ("tool_calls", False, "stop"),
        ("tool_calls", True, "tool_calls"),
        ("function_call", True, "tool_calls"),
        ("length", True, "length"),
        ("model_length", False, "length"),
        ("content_filter", False, "filter"),
        ("error", False, "error"),
        ("unheard of", True, "tool_calls"),
    ],
)
def test_J1_J2_the_reason_is_derived(reason: str, with_calls: bool, stop: str) -> None:
    first = calls(call(0, "a", "f", "{}")) if with_calls else chunk({"content": "a"})
    stream = ReadChunks([first, chunk({}, reason), DONE])
    assert stream.reply.stop == stop
    assert stream.reply.form is not None
    assert stream.reply.form.stop_text == reason


def test_J_an_end_without_a_reason_is_derived_and_reported() -> None:
    text = ReadChunks([chunk({"content": "a"}), DONE])
    assert text.reply.stop == "stop"
    assert text.problems == ["the stream ended without a stop reason"]
    assert ReadChunks([calls(call(0, "a", "f", "{}")), DONE]).reply.stop == "tool_calls"


def test_a_stream_with_neither_a_reason_nor_done_was_cut() -> None:
    for cut in (chunk({"content": "a"}), calls(call(0, "a", "f", "{}"))):
        stream = ReadChunks([cut])
        assert stream.accumulator.failure is not None
        assert "cut off" in stream.accumulator.failure.message
        assert stream.reply.stop is None
    assert ReadChunks([chunk({"content": "a"})]).texts == ["a"]
    assert ReadChunks([calls(call(0, "a", "f", "{}"))]).calls == [("f", {})]


@pytest.mark.parametrize("chunks", [[], [DONE], [chunk({"role": "assistant"})], [": comment"]])
def test_J_nothing_at_all_is_a_failure(chunks: list[Any]) -> None:
    stream = ReadChunks(chunks)
    assert stream.accumulator.failure is not None
    assert stream.accumulator.failure.retryable


def test_an_empty_reply_with_a_stop_reason_is_a_reply() -> None:
    assert read_to_stop(chunk({"role": "assistant"})).reply.stop == "stop"


def test_done_may_be_missing_and_what_follows_it_does_not_count() -> None:
    unended = ReadChunks([chunk({"content": "a"}), chunk({}, "stop")])
    assert unended.reply.stop == "stop"
    assert unended.problems == [NO_LAST_EVENT]
    stream = read_to_stop(chunk({"content": "a"}))
    assert ReadChunks([chunk({"content": "a"}), *STOP, chunk({"content": "b"}), DONE]).events == stream.events


def test_calls_after_the_reason_count() -> None:
    stream = ReadChunks([chunk({"content": "a"}, "stop"), calls(call(0, "a", "f", "{}")), DONE])
    assert stream.calls == [("f", {})]
    assert stream.reply.stop == "tool_calls"


def test_a_stream_that_ends_inside_an_event_broke_off() -> None:
    stream = ReadChunks(sse([chunk({"content": "a"})]) + b'data: {"choices":[{"del')
    assert stream.accumulator.failure is not None
    assert stream.texts == ["a"]


def test_comments_and_empty_events_add_nothing() -> None:
    data = b": OPENROUTER PROCESSING\n\n" + sse([chunk({"content": "a"})]) + b": x\n\ndata:\n\n" + sse(STOP)
    stream = ReadChunks(data)
    assert stream.texts == ["a"]
    assert stream.problems == []


# --- errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "slow down", "type": "rate_limit_error", "code": "rate_limit_exceeded"}},
        {
            "id": "x",
            "choices": [{"delta": {"content": ""}, "finish_reason": "error"}],
            "error": {"code": 429, "message": "slow down"},
        },
        {"choices": [{"delta": {}, "finish_reason": "error", "error": {"code": 429, "message": "slow down"}}]},
        {"object": "error", "message": "slow down", "type": "rate_limit", "code": "429"},
        {"base_resp": {"status_code": 1002, "status_msg": "slow down"}, "choices": None},
        {"success": False, "code": 429, "msg": "slow down"},
        {"error": "slow down: rate limit"},
    ],
)
def test_K_an_error_in_the_middle(body: Fields) -> None:
    stream = ReadChunks([chunk({"content": "a"}), calls(call(0, "a", "f", '{"x')), body, *STOP])
    failure = stream.accumulator.failure
    assert failure is not None
    assert failure.kind == "rate_limit"
    assert failure.in_band
    assert "slow down" in failure.message
    assert stream.texts == ["a"]
    assert stream.calls == []
    assert isinstance(stream.events[-1], Failed)


def test_K_an_event_that_is_called_an_error() -> None:
    stream = ReadChunks(sse([chunk({"content": "a"})]) + b'event: error\ndata: {"message":"overloaded"}\n\n')
    assert stream.accumulator.failure is not None
    assert stream.accumulator.failure.in_band


def test_an_event_with_another_name_is_a_chunk() -> None:
    data = b"".join(
        b"event: message\n" + sse([one]) for one in (chunk({"content": "a"}), chunk({"content": "b"}), *STOP)
    )
    assert ReadChunks(data).texts == ["ab"]


def test_half_a_character_and_deep_json_do_no_harm() -> None:
    stream = read_to_stop(chunk({"content": "a"}), '{"choices":[{"index":0,"delta":{"content":"\\ud83d"}}]}')
    assert stream.texts == ["a\ufffd"]
    with pytest.raises(LimitError):
        read_to_stop(chunk({"content": "a"}), '{"choices":' + "[" * 100_000)


def test_a_reply_longer_than_the_limit_is_refused() -> None:
    waiting = calls({"index": 0, "function": {"arguments": "x" * 50}})
    for one in (chunk({"content": "x" * 50}), chunk({"annotations": ["x" * 50]}), waiting):
        decoder = stream_reader.Decoder(limits=Limits(max_bytes=2000))
        with pytest.raises(LimitError):
            list(map(decoder.read, frames(sse([one] * 100))))


def test_the_ids_and_names_of_calls_count_too() -> None:
    decoder = stream_reader.Decoder(limits=Limits(max_bytes=20_000))
    made = [calls(call(number, f"{number}" + "x" * 500, "f", "{}")) for number in range(60)]
    with pytest.raises(LimitError):
        list(map(decoder.read, frames(sse([chunk({"content": "a"}), *made]))))
