"""Texts with calls in every dialect: the vectors, and how they are read whole and in pieces."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from toolglot.conversation.events import Event
from toolglot.dialects.text_stream import TextToolStream

FOLDER = Path(__file__).parents[1] / "dialect_vectors"


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
