"""Strings without characters that no tool should get."""

from __future__ import annotations

import functools
import re
from typing import TypeVar, cast

from toolglot import jsontext
from toolglot.jsontext import fix_surrogates
from toolglot.limits import DEFAULT_LIMITS, Limits

T = TypeVar("T")

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]+")
_CONTROL_OR_RETURN = re.compile(r"[\x00-\x08\x0b-\x1f]+")


def sanitise(value: T, *, strict: bool = False, limits: Limits = DEFAULT_LIMITS) -> T:
    r"""The value without control characters in its strings and keys; itself if it has none.

    `\n`, `\t` and, unless `strict`, `\r` stay. Other JSON values are untouched; see `jsontext.clone` for
    what is not JSON.
    """
    clean = functools.partial(_clean, _CONTROL_OR_RETURN if strict else _CONTROL)
    return cast("T", jsontext.clone(value, limits=limits, text=clean).value)


def _clean(pattern: re.Pattern[str], text: str) -> str:
    return fix_surrogates(pattern.sub("", text) if pattern.search(text) else text)
