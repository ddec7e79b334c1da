"""Texts with calls in every dialect: the vectors, and how they are read whole and in pieces."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from support.conversations.event_grammar import check
from toolglot.conversation.events import Event, Finished, Started
from toolglot.dialects.text_stream import TextToolStream, parse_text, parsed_text

FOLDER = Path(__file__).parents[2] / "dialect_vectors"


@cache
def vectors() -> list[tuple[str, dict[str, Any], list[Any]]]:
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        body = msgspec.json.decode(path.read_bytes())
        found += [(path.stem, vector, body.get("tools", [])) for vector in body["vectors"]]
    return found


def streamed(text: str, cuts: list[int], dialect: str, tools: list[Any]) -> list[Event]:
    stream = TextToolStream(dialect=dialect, tools=tools)
    events: list[Event] = []
    start = 0
    for end in (*sorted(cuts), len(text)):
        events += stream.feed(text[start:end])
        start = end
    return events + stream.finish()


def check_vector(dialect: str, vector: dict[str, Any], tools: list[Any]) -> None:
    """Check that a text is read as the vector says, whole and however it is cut."""
    text, tools = vector["text"], vector.get("tools", tools)
    whole = parse_text(text, dialect=dialect, tools=tools)
    expected = vector["expected"]
    assert (
        whole.text,
        whole.thinking,
        [(call.name, call.arguments) for call in whole.calls],
        [call.name for call in whole.cut],
    ) == (
        expected.get("text", ""),
        expected.get("thinking", ""),
        [(call["name"], call["arguments"]) for call in expected.get("calls", [])],
        [call["name"] for call in expected.get("cut", [])],
    )
    ids = [call["id"] for call in expected.get("calls", []) if "id" in call]
    if ids:
        assert [call.id for call in whole.calls] == ids
    chosen = random.Random(text)  # noqa: S311 - the same cuts each time
    cuts = [list(range(0, len(text), step)) for step in (1, 3, 7)]
    cuts += [sorted(chosen.sample(range(len(text) + 1), min(len(text), 5))) for _ in range(10)]
    for each in cuts:
        events = streamed(text, each, dialect, tools)
        check([Started(), *events, Finished("stop")])
        assert parsed_text(events) == whole, each
