"""Chat streams whose deltas each hold all of the text so far: recognised, and reported."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolglot import StreamTranslator
from toolglot.conversation.events import TextDelta
from toolglot.protocols.openai_chat.streaming.snapshots import Snapshots
from toolglot.translate.stream_reader import StreamReader

HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
TEXT = "Hello, world: this is the whole answer."
NOTE = "the deltas of the text hold all of it so far"


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    body = {**HEAD, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def stream(*texts: str, last: str | None = None, more: bytes = b"") -> bytes:
    end = {"content": last} if last is not None else {}
    deltas = b"".join(chunk({"content": text}) for text in texts)
    return chunk({"role": "assistant", "content": ""}) + deltas + more + chunk(end, "stop") + b"data: [DONE]\n\n"


def read(raw: bytes, target: str = "anthropic") -> tuple[str, list[str], bytes]:
    translator = StreamTranslator(source="openai_compatible", target=target)
    output = translator.feed(raw) + translator.finish()
    return translator.reply.turn.text, [entry.reason for entry in translator.report.entries], output


def growing(step: int, text: str = TEXT) -> list[str]:
    return [text[:end] for end in range(step, len(text) + step, step)]


@pytest.mark.parametrize("target", ["anthropic", "openai", "openai_responses", "gemini"])
@pytest.mark.parametrize("step", [1, 3, 7, 20])
def test_each_word_of_snapshots_comes_once(step: int, target: str) -> None:
    text, reasons, _ = read(stream(*growing(step)), target)
    assert (text, NOTE in reasons) == (TEXT, True)


def test_the_last_snapshot_may_come_with_the_finish_reason_again() -> None:
    text, reasons, _ = read(stream(*growing(9), TEXT, last=TEXT))
    assert (text, NOTE in reasons) == (TEXT, True)


def test_a_chat_client_gets_deltas_of_them() -> None:
    *_, output = read(stream(*growing(5)), "openai")
    bodies = [json.loads(line[6:]) for line in output.decode().split("\n\n") if line.startswith("data: {")]
    assert "".join(body["choices"][0]["delta"].get("content") or "" for body in bodies) == TEXT


def test_a_call_behind_snapshots_ends_their_text() -> None:
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    raw = stream("Hello", "Hello, w", "Hello, world", more=chunk({"tool_calls": [call]}))
    translator = StreamTranslator(source="openai_compatible", target="anthropic")
    translator.feed(raw)
    translator.finish()
    assert translator.reply.turn.text == "Hello, world"
    assert [call.name for call in translator.calls] == ["look"]


@pytest.mark.parametrize(
    "texts",
    [
        ("-", "--", "---", "----", "-" * 40, "-" * 41),
        ("ha", "haha", "hahahaha"),
        ("1", "12", " apples"),
        ("\n", "\n\n", "Well"),
        ("Hello", "Hello there", " you"),
        ("Hello", "Hello there"),
        ("no", "no", "no"),
        (TEXT, TEXT),
        ("a",),
    ],
)
def test_deltas_that_only_look_alike_lose_nothing(texts: tuple[str, ...]) -> None:
    text, reasons, _ = read(stream(*texts))
    assert (text, NOTE in reasons) == ("".join(texts), False)
    *_, output = read(stream(*texts), "openai")
    assert output == stream(*texts), "and go home as they came"


def test_nothing_waits_once_it_is_known() -> None:
    reader = StreamReader(source="openai_compatible")
    reader.feed(stream()[:0] + chunk({"role": "assistant", "content": "One"}))
    reader.feed(chunk({"content": " two"}))
    (event,) = reader.feed(chunk({"content": " two two"}))
    assert isinstance(event, TextDelta)


def test_what_waits_is_bounded() -> None:
    watch = Snapshots()
    taken = [watch.take("=" * length)[0] for length in range(1, 80)]
    assert any(taken[1:]), "a text that is never sure does not wait for its end"
