"""Where the messages of a body stand in its text.

    spans = spans_of(text, "messages")
    spans.fields["system"], spans.items[3]                   # (start, end), in characters
    spans.values[3]                                          # the message itself

Law: linear; the scanner of the standard library reads each value once. Text that is not a JSON object has no spans.
"""

from __future__ import annotations

import contextlib
import json
import re
from json.decoder import JSONDecoder
from typing import Any, Final

from msgspec import Struct

Span = tuple[int, int]

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_decoder: Final = JSONDecoder(strict=False)


class JsonSpans(Struct):
    """The places of the fields of an object, and of the items of one of them."""

    fields: dict[str, Span]
    items: list[Span]
    """Those of the list; empty: it is not a list."""
    values: list[Any]
    """The items themselves."""
    others: dict[str, Any]
    """The values of the other fields."""


def spans_of(text: str, list_field: str) -> JsonSpans:
    """The fields of an object, and the items of one of its lists."""
    found = JsonSpans({}, [], [], {})
    # What was found before a mistake is right.
    with contextlib.suppress(ValueError, IndexError, StopIteration, RecursionError):
        _read_object(text, list_field, found)
    return found


def _read_object(text: str, list_field: str, found: JsonSpans) -> None:
    position = _skip(text, 1 if text.startswith("\ufeff") else 0)
    if text[position] != "{":
        return
    position = _skip(text, position + 1)
    while text[position] == '"':
        name, position = _decoder.raw_decode(text, position)
        position = _skip(text, position)
        if text[position] != ":":
            return
        start = _skip(text, position + 1)
        if name == list_field and text[start] == "[":
            found.items.clear()  # the last field of a name counts
            found.values.clear()
            position = _read_list(text, start, found)
        else:
            value, position = _decoder.raw_decode(text, start)
            found.others[name] = value
        found.fields[name] = (start, position)
        position = _skip(text, position)
        if text[position] != ",":
            return
        position = _skip(text, position + 1)


def _read_list(text: str, start: int, found: JsonSpans) -> int:
    """Read the items of a list. Returns where it ends."""
    position = _skip(text, start + 1)
    while text[position] != "]":
        value, end = _decoder.raw_decode(text, position)
        found.items.append((position, end))
        found.values.append(value)
        position = _skip(text, end)
        if text[position] == ",":
            position = _skip(text, position + 1)
        elif text[position] != "]":
            raise json.JSONDecodeError("expected , or ]", text[position : position + 20], 0)
    return position + 1


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found is not None else position
