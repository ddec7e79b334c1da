"""Calls that an answer was cut in: a whole answer and the stream of the same one tell the client the same.

Law 8 and law 11: however a call was cut, neither hands it on as one that can be run, and both give the same reason.
What is shown of it differs where the stream has shown pieces before the cut could be known.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from toolglot import ConvertedRequest, StreamReader, StreamTranslator, convert, convert_reply
from toolglot.conversation import Reply

CLIENTS: Final = ("openai", "anthropic", "openai_responses", "gemini", "bedrock", "cohere", "ollama")
CITY: Final = {"city": {"type": "string"}}
SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "a parameter that is required": {"type": "object", "properties": CITY, "required": ["city"]},
    "a parameter": {"type": "object", "properties": CITY},
    "no parameter": {"type": "object", "properties": {}},
}
HEAD: Final = {"id": "chatcmpl-1", "created": 7, "model": "m"}
COST: Final = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
TEXT: Final = "I look."
CALL: Final = b'event: content_block_start\ndata: {"type": "content_block_start", "index": 1'


def chat(written: str, finish: str) -> tuple[dict[str, Any], bytes]:
    """An answer of Chat Completions with text and a call, whole and as a stream."""
    call = {"id": "call_a", "type": "function", "function": {"name": "look", "arguments": written}}
    message = {"role": "assistant", "content": TEXT, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    whole = {**HEAD, "object": "chat.completion", "choices": [choice], "usage": COST}
    first = {**call, "index": 0, "function": {"name": "look", "arguments": ""}}
    deltas = [
        {"role": "assistant", "content": TEXT},
        {"tool_calls": [first]},
        *({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in written),
    ]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    chunks = [
        {**HEAD, "object": "chat.completion.chunk", "choices": [one]}
        for one in [*choices, {"index": 0, "delta": {}, "finish_reason": finish}]
    ]
    chunks.append({**HEAD, "object": "chat.completion.chunk", "choices": [], "usage": COST})
    lines = [*(json.dumps(chunk) for chunk in chunks), "[DONE]"]
    return whole, "".join(f"data: {line}\n\n" for line in lines).encode()


def anthropic(stop: str) -> tuple[dict[str, Any], bytes]:
    """An answer of Anthropic with text and a call without arguments, whole and as a stream."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "c", "stop_sequence": None}
    usage = {"input_tokens": 1, "output_tokens": 2}
    whole = {**start, "content": [{"type": "text", "text": TEXT}, call], "stop_reason": stop, "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**start, "content": [], "stop_reason": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TEXT}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": call},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]
    return whole, "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def request_of(client: str, provider: str, tool: str) -> ConvertedRequest | None:
    """The request of a client that declared a tool with such parameters; None: it is not known."""
    if not tool:
        return None
    function = {"name": "look", "parameters": SCHEMAS[tool]}
    request = {
        "model": "gpt-4o",
        "messages": [{"role": "user", "content": "go"}],
        "tools": [{"type": "function", "function": function}],
    }
    body = request if client == "openai" else convert(request, source="openai", target=client).body
    return convert(body, source=client, target=provider, model="claude-sonnet-4-5" if provider == "anthropic" else "m")


def both_ways(
    answer: tuple[dict[str, Any], bytes], provider: str, client: str, request: ConvertedRequest | None
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """What a client reads in the whole answer and in the stream."""
    whole, stream = answer
    out = convert_reply(whole, source=provider, target=client, request=request)
    read = convert_reply(out.body, source=client, target=client).reply
    translator = StreamTranslator(source=provider, target=client, request=request)
    reader = StreamReader(source=client)
    reader.feed(translator.feed(stream) + translator.finish())
    reader.finish()
    assert reader.failure is None
    from_whole = _calls_and_stop(read, tuple(call.arguments for call in read.turn.calls if call.arguments is not None))
    streamed = _calls_and_stop(reader.reply, tuple(call.arguments for call in reader.calls))
    reports = [
        {entry.reason for entry in report if "cannot be run" in entry.reason or "does not say" in entry.reason}
        for report in (out.report, translator.report)
    ]
    assert bool(reports[0]) == bool(reports[1])
    return from_whole, streamed


def _calls_and_stop(reply: Reply, runnable: tuple[Any, ...]) -> tuple[Any, ...]:
    return runnable, reply.stop


@pytest.mark.parametrize("tool", SCHEMAS)
@pytest.mark.parametrize("client", CLIENTS[1:])
@pytest.mark.parametrize("written", ["", " \n"])
def test_law_8_a_call_cut_before_its_arguments_is_reported_alike_and_never_run(
    client: str, tool: str, written: str
) -> None:
    answer, request = chat(written, "length"), request_of(client, "openai", tool)
    whole, streamed = both_ways(answer, "openai", client, request)
    # A tool that has no parameters was called with all that it takes.
    assert whole == streamed == (({},) if tool == "no parameter" else (), "length")
    out = convert_reply(answer[0], source="openai", target=client, request=request)
    translator = StreamTranslator(source="openai", target=client, request=request)
    translator.feed(answer[1])
    translator.finish()
    assert out.reply.turn.text == translator.reply.turn.text == TEXT, "no word that the model did not say"
    assert [type(block) for block in out.reply.turn.blocks] == [type(block) for block in translator.reply.turn.blocks]


@pytest.mark.parametrize("client", CLIENTS[1:])
def test_law_11_without_the_request_a_stream_shows_nothing_of_a_call_cut_before_its_arguments(client: str) -> None:
    _, stream = chat("", "length")
    translator = StreamTranslator(source="openai", target=client)
    reader = StreamReader(source=client)
    reader.feed(translator.feed(stream) + translator.finish())
    reader.finish()
    assert (reader.reply.turn.calls, reader.reply.turn.text, reader.reply.stop) == ((), TEXT, "length")
    assert any("cannot be run" in entry.reason for entry in translator.report)


@pytest.mark.parametrize("tool", ["", *SCHEMAS])
@pytest.mark.parametrize("finish", ["tool_calls", "stop", "length"])
@pytest.mark.parametrize("client", CLIENTS[1:])
def test_law_8_a_call_cut_inside_its_arguments_is_reported_alike_whatever_the_stop_reason(
    client: str, finish: str, tool: str
) -> None:
    answer = chat('{"city": "Os', finish)
    whole, streamed = both_ways(answer, "openai", client, request_of(client, "openai", tool))
    assert whole == streamed == ((), "length")


@pytest.mark.parametrize("tool", ["", *SCHEMAS])
@pytest.mark.parametrize("finish", ["tool_calls", "stop", "length"])
@pytest.mark.parametrize("client", CLIENTS[1:])
def test_law_8_an_empty_object_that_was_written_out_is_what_the_model_meant(
    client: str, finish: str, tool: str
) -> None:
    whole, streamed = both_ways(chat("{}", finish), "openai", client, request_of(client, "openai", tool))
    assert whole == streamed == (({},), "length" if finish == "length" else "tool_calls")


@pytest.mark.parametrize("tool", ["", *SCHEMAS])
@pytest.mark.parametrize("stop", ["max_tokens", "tool_use"])
@pytest.mark.parametrize("client", [client for client in CLIENTS if client != "anthropic"])
def test_law_8_F1_a_call_that_anthropic_cut_before_its_arguments_is_reported_alike(
    client: str, stop: str, tool: str
) -> None:
    whole, streamed = both_ways(anthropic(stop), "anthropic", client, request_of(client, "anthropic", tool))
    is_cut = stop == "max_tokens" and tool == "a parameter that is required"
    assert whole == streamed == (() if is_cut else ({},), "length" if stop == "max_tokens" else "tool_calls")


def test_a_call_without_the_arguments_that_its_tool_wants_waits_for_what_follows_and_is_shown() -> None:
    """Only the last call of an answer that was cut may have been cut."""
    _, stream = anthropic("max_tokens")
    first, end = stream.index(CALL), stream.index(b"event: message_delta")
    again = stream[first:end].replace(b'"index": 1', b'"index": 2').replace(b"toolu_1", b"toolu_2")
    request = request_of("openai", "anthropic", "a parameter that is required")
    translator = StreamTranslator(source="anthropic", target="openai", request=request)
    translator.feed(stream[:end] + again + stream[end:])
    translator.finish()
    assert [call.arguments for call in translator.calls] == [{}]
    assert translator.reply.stop == "length"
