"""Replies with calls in their text, read whole and streamed."""

from __future__ import annotations

from typing import Any

from support.dialects.written_calls import TOOLS
from toolglot.dialects.text_stream import ParsedText, TextToolStream, parse_text, parsed_text


def read(text: str, dialect: str = "auto", **options: Any) -> ParsedText:
    """What a text says, which is the same however it is cut."""
    found = parse_text(text, dialect=dialect, tools=TOOLS, **options)
    for size in (1, 7):
        stream = TextToolStream(dialect=dialect, tools=TOOLS, **options)
        events = [event for at in range(0, len(text), size) for event in stream.feed(text[at : at + size])]
        assert parsed_text(events + stream.finish()) == found
    return found
