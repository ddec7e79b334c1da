"""A client that relies on token counts always gets some: the provider's, or an estimate that the report marks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.law_examples import MANY
from toolglot import StreamTranslator, convert, convert_reply

Fields = dict[str, Any]
CLIENTS = ["openai_responses", "anthropic", "gemini", "openai"]
ESTIMATED = "they are estimated"
COUNTS = {
    "openai_responses": ("usage", "input_tokens", "output_tokens"),
    "anthropic": ("usage", "input_tokens", "output_tokens"),
    "gemini": ("usageMetadata", "promptTokenCount", "candidatesTokenCount"),
    "openai": ("usage", "prompt_tokens", "completion_tokens"),
}
REQUESTS: dict[str, Fields] = {
    "openai_responses": {"model": "m", "input": "Say hello to everybody, please.", "stream": True},
    "anthropic": {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "Say hello to everybody, please."}],
        "stream": True,
    },
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "Say hello to everybody, please."}]}]},
    "openai": {
        "model": "m",
        "messages": [{"role": "user", "content": "Say hello to everybody, please."}],
        "stream": True,
        "stream_options": {"include_usage": True},
    },
}


def whole(text: str = "Hello, all.", usage: Fields | None = None) -> Fields:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return body if usage is None else {**body, "usage": usage}


def streamed(*texts: str, usage: Fields | None = None) -> bytes:
    def chunk(choices: list[Fields], **more: Any) -> bytes:
        body = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}
        return b"data: " + json.dumps(body).encode() + b"\n\n"

    deltas = [{"role": "assistant", "content": ""}, *({"content": text} for text in texts)]
    chunks = [chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    chunks.append(chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}]))
    chunks += [chunk([], usage=usage)] if usage is not None else []
    return b"".join(chunks) + b"data: [DONE]\n\n"


def events(stream: bytes) -> list[Fields]:
    lines = [line for line in stream.split(b"\n") if line.startswith(b"data: ") and line != b"data: [DONE]"]
    return [json.loads(line.removeprefix(b"data: ")) for line in lines]


def counts(client: str, held: Fields) -> tuple[Any, Any]:
    field, read, written = COUNTS[client]
    usage = held.get(field) or {}
    return usage.get(read), usage.get(written)


@pytest.mark.parametrize("client", ["openai_responses", "anthropic", "gemini"])
def test_a_whole_reply_without_usage_gets_an_estimate(client: str) -> None:
    request = convert(REQUESTS[client], source=client, target="openai_compatible", model="m")
    out = convert_reply(whole(), source="openai_compatible", target=client, request=request)
    read, written = counts(client, out.body)
    assert read > 0
    assert written > 0
    assert ESTIMATED in str(out.report)


def test_a_stream_without_usage_ends_with_an_estimate_for_a_client_of_responses() -> None:
    request = convert(REQUESTS["openai_responses"], source="openai_responses", target="openai_compatible", model="m")
    translator = StreamTranslator(source="openai_compatible", target="openai_responses", request=request)
    out = translator.feed(streamed("Hello, ", "all.")) + translator.finish()
    last = events(out)[-1]
    assert last["type"] == "response.completed"
    read, written = counts("openai_responses", last["response"])
    assert read > 0
    assert written > 0
    assert last["response"]["usage"]["total_tokens"] == read + written
    assert str(translator.report).count(ESTIMATED) == 1
    assert translator.reply.usage is not None


def test_a_client_of_chat_that_requests_usage_gets_it_from_a_host_that_sends_none() -> None:
    request = convert(REQUESTS["openai"], source="openai", target="openai_compatible", model="m")
    translator = StreamTranslator(source="openai_compatible", target="openai", request=request)
    out = translator.feed(streamed("Hello, ", "all.")) + translator.finish()
    assert out.endswith(b"data: [DONE]\n\n")
    read, written = counts("openai", events(out)[-1])
    assert read > 0
    assert written > 0
    assert ESTIMATED in str(translator.report)


def test_a_client_of_chat_that_requests_none_gets_the_bytes_of_the_host() -> None:
    plain = {name: value for name, value in REQUESTS["openai"].items() if name != "stream_options"}
    request = convert(plain, source="openai", target="openai_compatible", model="m")
    translator = StreamTranslator(source="openai_compatible", target="openai", request=request)
    stream = streamed("Hello, ", "all.")
    assert translator.feed(stream) + translator.finish() == stream


def response(**more: Any) -> Fields:
    item = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Hello, all.", "annotations": []}],
    }
    body = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    return {**body, "output": [item], "parallel_tool_calls": True, "tools": [], **more}


def test_a_response_of_its_own_protocol_without_usage_gets_an_estimate() -> None:
    request = convert(REQUESTS["openai_responses"], source="openai_responses", target="openai_responses")
    out = convert_reply(response(), source="openai_responses", target="openai_responses", request=request)
    assert counts("openai_responses", out.body) > (0, 0)
    assert ESTIMATED in str(out.report)


@pytest.mark.parametrize("status", ["in_progress", "queued"])
def test_a_response_that_is_not_over_has_no_usage_yet(status: str) -> None:
    raw = json.dumps(response(status=status, output=[], usage=None)).encode()
    assert convert_reply(raw, source="openai_responses", target="openai_responses").data == raw


def test_a_stream_of_its_own_protocol_without_usage_ends_with_an_estimate() -> None:
    item = response()["output"][0]
    part = item["content"][0]
    position = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    listed: list[Fields] = [
        {"type": "response.created", "response": response(status="in_progress", output=[])},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.content_part.added", **position, "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", **position, "delta": "Hello, all."},
        {"type": "response.output_text.done", **position, "text": "Hello, all."},
        {"type": "response.content_part.done", **position, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response()},
    ]
    stream = b"".join(
        b"event: %b\ndata: %b\n\n" % (event["type"].encode(), json.dumps({**event, "sequence_number": number}).encode())
        for number, event in enumerate(listed)
    )
    request = convert(REQUESTS["openai_responses"], source="openai_responses", target="openai_responses")
    translator = StreamTranslator(source="openai_responses", target="openai_responses", request=request)
    out = translator.feed(stream) + translator.finish()
    assert out.startswith(stream[: stream.index(b"event: response.output_text.done")])
    last = events(out)[-1]
    assert last["type"] == "response.completed"
    assert last["response"]["output"] == response()["output"]
    assert counts("openai_responses", last["response"]) > (0, 0)
    assert ESTIMATED in str(translator.report)


@pytest.mark.parametrize("client", CLIENTS)
def test_what_the_provider_reports_is_never_replaced(client: str) -> None:
    usage = {"prompt_tokens": 0, "completion_tokens": 7, "total_tokens": 7}
    out = convert_reply(whole(usage=usage), source="openai_compatible", target=client)
    assert counts(client, out.body) == (0, 7)
    assert ESTIMATED not in str(out.report)


@pytest.mark.law
@MANY
@given(st.lists(st.text(min_size=1, max_size=9), max_size=5), st.sampled_from(["openai_responses", "anthropic"]))
def test_law_8_an_estimate_is_the_same_streamed_and_whole(texts: list[str], client: str) -> None:
    request = convert(REQUESTS[client], source=client, target="openai_compatible", model="m")
    translator = StreamTranslator(source="openai_compatible", target=client, request=request)
    translator.feed(streamed(*texts))
    translator.finish()
    out = convert_reply(whole("".join(texts)), source="openai_compatible", target=client, request=request)
    assert translator.reply.usage == out.reply.usage
    assert out.reply.usage is not None
