"""Arguments that a protocol carries as text: the object that they are, and the text of an object.

Law: what was read is written as it came. Where the object, written again, is not the text to the byte, the
text is kept beside it.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Final

import jiter

from toolglot import arguments, jsontext
from toolglot.conversation import FREE_TEXT, ToolCall
from toolglot.conversation.canonical_json import ENVELOPE_DEPTH
from toolglot.errors import InputError, TruncatedArgumentsError
from toolglot.jsontext import compact
from toolglot.limits import MAX_DEPTH, Limits

SHORT: Final = 2_000
MOST_NESTED: Final = 32
_LARGE: Final = re.compile(r"[0-9](?:[0-9]{19}|[.0-9]{0,19}[eE])")
"""A number that may be too large; with what all alternatives begin with before them, it is searched for quickly."""
_read: Final = functools.partial(jiter.from_json, allow_inf_nan=False, cache_mode="keys", catch_duplicate_keys=True)
"""As `jsontext` reads. What it does not take, that reads, or says why not."""

LIMITS: Final = Limits(max_depth=MAX_DEPTH - ENVELOPE_DEPTH)
"""What is deeper could not be stored as an object; it stays text."""


def object_of(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call for a protocol that has no free text: there they are one argument that holds it."""
    if call.type == "custom" and call.arguments is None:
        return {FREE_TEXT: call.raw_input or ""}
    return call.arguments or {}


Read = tuple[dict[str, Any] | None, str | None, tuple[str, ...]]
"""The object that a text is, if it is one; the text, where the object does not say it all; what was done to read it."""


def read_object(text: str) -> tuple[dict[str, Any] | None, str | None]:
    """The object that a text is, if it is one; and the text where the object does not say it all."""
    value, raw, _ = _read_object(text)
    return value, raw


def _read_object(text: str) -> Read:
    if (
        len(text) <= SHORT
        and text.isascii()
        and text.count("{") + text.count("[") <= MOST_NESTED
        and _LARGE.search(text) is None
    ):  # as nearly all are: short, not deep, without numbers that may be too large
        try:
            value = _read(text.encode())
        except ValueError:
            value = None
        if type(value) is dict:
            return value, None if compact(value) == text else text, ()
    try:
        parsed = jsontext.parse(text, limits=LIMITS)
    except InputError:
        return None, text, ()
    value = parsed.value
    if type(value) is not dict:
        return None, text, ()
    return value, None if compact(value) == text else text, parsed.repairs


def read_arguments(text: str) -> Read:
    """The same for a text that may be blank, or JSON in a string, as some hosts of models write arguments."""
    read = _read_object(text)
    if read[0] is not None:
        return read
    try:
        parsed = arguments.parse(text, limits=LIMITS)
    except InputError:
        return None, text, ()
    return parsed.arguments, text, tuple(note.reason for note in parsed.notes)


def ends_early(text: str) -> bool:
    """Whether arguments end before they are complete, so that they were cut; other text was never to be an object."""
    try:
        arguments.parse(text, limits=LIMITS)
    except TruncatedArgumentsError:
        return True
    except InputError:
        return False
    return False
