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
from toolglot.canonical_json import ENVELOPE_DEPTH
from toolglot.conversation import FREE_TEXT, ToolCall
from toolglot.errors import InputError
from toolglot.jsontext import compact
from toolglot.limits import DEEPEST, Limits

SHORT: Final = 2_000
MOST_NESTED: Final = 32
_LARGE: Final = re.compile(r"[0-9](?:[0-9]{19}|[.0-9]{0,19}[eE])")
"""A number that may be too large; with what all alternatives begin with before them, it is searched for quickly."""
_read: Final = functools.partial(jiter.from_json, allow_inf_nan=False, cache_mode="keys", catch_duplicate_keys=True)
"""As `jsontext` reads. What it does not take, that reads, or says why not."""

LIMITS: Final = Limits(max_depth=DEEPEST - ENVELOPE_DEPTH)
"""What is deeper could not be stored as an object; it stays text."""


def object_of(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call for a protocol that has no free text: there they are one argument that holds it."""
    if call.type == "custom" and call.arguments is None:
        return {FREE_TEXT: call.raw_input or ""}
    return call.arguments or {}


def read_object(text: str) -> tuple[dict[str, Any] | None, str | None]:
    """The object that a text is, if it is one; and the text where the object does not say it all."""
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
            return value, None if compact(value) == text else text
    try:
        value = jsontext.parse(text, limits=LIMITS).value
    except InputError:
        return None, text
    if type(value) is not dict:
        return None, text
    return value, None if compact(value) == text else text


def read_arguments(text: str) -> tuple[dict[str, Any] | None, str | None]:
    """The same for a text that may be blank, or JSON in a string, as some hosts of models write arguments."""
    value, raw = read_object(text)
    if value is not None:
        return value, raw
    try:
        return arguments.parse(text, limits=LIMITS).arguments, text
    except InputError:
        return None, text
