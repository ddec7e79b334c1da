"""Chat streams that are broken in seventy ways and more, between two sides that speak Chat: the OpenAI SDKs read them.

`support/protocols/streams/broken_openai_chat.py` has the streams and what they mean.
The SDKs are the real ones, in Python and JavaScript, with their own accumulators. Law 13: whatever a provider sends,
the client gets a stream that is legal and means the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from support.javascript_clients import JavaScript
from support.protocols.streams import openai_chat
from support.protocols.streams.broken_openai_chat import BROKEN, Broken, begin, with_choice, without
from support.protocols.streams.openai_chat import DONE, sse
from support.protocols.streams.openai_sdk import QUESTION, client_of
from toolglot import StreamTranslator

CUTS = (1, 7, 64, 100_000)
VERCEL = {"stop": "stop", "tool_calls": "tool-calls", "length": "length"}


def translate_broken(stream: Broken, size: int = 100_000) -> tuple[bytes, StreamTranslator]:
    """What the client gets of a stream that comes in pieces of a size."""
    translator = StreamTranslator(source="openai_compatible", target="openai")
    pieces = [stream.body[start : start + size] for start in range(0, len(stream.body), size)]
    out = b"".join(map(translator.feed, pieces)) + translator.finish()
    return out, translator


def with_chunks(change: Callable[[dict[str, Any]], dict[str, Any]]) -> bytes:
    """A stream of the text Hello that ends within its last delta, with each of its chunks changed."""
    return sse([*(change(one) for one in (begin("Hel"), openai_chat.chunk({"content": "lo"}, "stop"))), DONE])


def events_of(data: bytes) -> list[str]:
    """The data of each event, read by the standard of server-sent events."""
    text = data.decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    assert text.endswith("\n\n")
    fields = [
        [line.removeprefix("data:").removeprefix(" ") for line in event.split("\n") if line.startswith("data:")]
        for event in text.split("\n\n")
    ]
    return ["\n".join(lines) for lines in fields if lines]


def check_chunks(chunks: list[dict[str, Any]], count: int) -> set[str]:
    """Fail where chunks break the protocol; the finish reasons that they give, and the number of their calls."""
    reasons: set[str] = set()
    has_role, begun = False, 0
    for chunk in chunks:
        for choice in chunk["choices"]:
            delta = choice["delta"]
            assert choice["index"] == 0
            has_role = has_role or delta.get("role") == "assistant"
            pieces = delta.get("tool_calls") or []
            text = delta.get("content") or pieces
            assert has_role or not text
            assert not reasons or not text, "nothing follows the reason"
            assert delta.get("content") is None or type(delta["content"]) is str
            for piece in pieces:
                if piece["index"] == begun:
                    assert piece["id"]
                    assert piece["type"] == "function"
                    assert piece["function"]["name"]
                    begun += 1
                else:
                    assert piece["index"] < begun
                    assert not piece["function"].get("name")
                    assert not piece.get("id")
                assert type(piece["function"].get("arguments") or "") is str
            if choice.get("finish_reason"):
                reasons.add(choice["finish_reason"])
    assert begun == count
    assert len(reasons) == 1
    return reasons


def calls_of(message: Any) -> list[tuple[str, Any]]:
    return [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]


def test_there_are_at_least_seventy_and_no_two_are_the_same() -> None:
    assert len({stream.body for stream in BROKEN.values()}) == len(BROKEN) >= 70


@pytest.mark.parametrize("name", BROKEN)
def test_the_python_sdk_reads_a_broken_stream(name: str) -> None:
    stream = BROKEN[name]
    out, _ = translate_broken(stream)
    with client_of(out) as client, client.chat.completions.stream(model="m", messages=QUESTION) as events:
        done = [event for event in events if event.type == "tool_calls.function.arguments.done"]
        final = events.get_final_completion()
    choice = final.choices[0]
    assert (choice.message.content or "") == stream.text
    assert calls_of(choice.message) == list(stream.calls)
    assert [(event.name, json.loads(event.arguments)) for event in done] == list(stream.calls)
    assert choice.finish_reason == stream.finish


@pytest.mark.parametrize("reader", ["openai/chat", "ai/openai.chat"])
@pytest.mark.parametrize("name", BROKEN)
def test_the_javascript_sdks_read_a_broken_stream(javascript: JavaScript, name: str, reader: str) -> None:
    stream = BROKEN[name]
    out, translator = translate_broken(stream)
    got = javascript.read(reader, out, translator.reply.turn.calls)
    assert got["error"] is None
    assert got["text"] == stream.text
    assert [(call["name"], call["input"]) for call in got["calls"]] == list(stream.calls)
    assert got["finish"] == (stream.finish if reader == "openai/chat" else VERCEL[stream.finish])


UNTOUCHED = with_chunks(lambda one: one)
MISREAD = {
    # The Python SDK leaves out every chunk that does not say what it is: of Copilot's streams it reads nothing, of
    # Perplexity's (`chat.completion.done`) no finish reason.
    "no object": (with_chunks(lambda one: without(one, "object")), "python"),
    "another object in the last chunk": (
        with_chunks(
            lambda one: {**one, "object": "chat.completion.done"} if one["choices"][0]["finish_reason"] else one
        ),
        "python",
    ),
    # The SDK for JavaScript takes the message for the text so far, and adds the delta to it.
    "a message beside the deltas": (
        with_chunks(lambda one: with_choice(one, message={"role": "assistant", "content": "Hello"})),
        "openai/chat",
    ),
}
"""Oddities that some client gets wrong where the bytes are forwarded as they came, and which client that is."""


def read_by(client: str, body: bytes, javascript: JavaScript) -> tuple[Any, Any]:
    """The text and the finish reason that a client reads; None where it fails."""
    if client != "python":
        got = javascript.read(client, body)
        return (got["text"], got["finish"]) if got["error"] is None else (None, None)
    try:
        with client_of(body) as sdk, sdk.chat.completions.stream(model="m", messages=QUESTION) as events:
            choice = events.until_done().get_final_completion().choices[0]
    except AssertionError:
        return None, None
    return choice.message.content, choice.finish_reason


@pytest.mark.parametrize("name", MISREAD)
def test_a_stream_is_healed_because_a_client_misreads_it(javascript: JavaScript, name: str) -> None:
    body, client = MISREAD[name]
    assert read_by(client, UNTOUCHED, javascript) == ("Hello", "stop")
    assert read_by(client, body, javascript) != ("Hello", "stop")
    out, _ = translate_broken(Broken(body))
    assert read_by(client, out, javascript) == ("Hello", "stop")


@pytest.mark.parametrize("name", BROKEN)
def test_what_the_client_gets_of_a_broken_stream_keeps_to_the_protocol(name: str) -> None:
    stream = BROKEN[name]
    out, _ = translate_broken(stream)
    *chunks, last = events_of(out)
    assert last == "[DONE]"
    assert stream.finish in check_chunks([json.loads(one) for one in chunks], len(stream.calls))


@pytest.mark.parametrize("name", BROKEN)
def test_cuts_make_no_difference_to_a_broken_stream(name: str) -> None:
    assert len({translate_broken(BROKEN[name], size)[0] for size in CUTS}) == 1


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_healed_is_reported(name: str) -> None:
    stream = BROKEN[name]
    out, translator = translate_broken(stream)
    assert translator.failure is None
    assert out == stream.body or len(translator.report)
