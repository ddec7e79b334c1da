"""How long to wait before a retry, wherever a provider says so.

Law: no clock. A date is not read, since it means nothing without one; a number is read only where it is
certain to be a duration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

MAX_SECONDS: Final = 31 * 86_400.0
"""A larger number is not a duration."""

_NUMBER: Final = r"[0-9]{1,12}(?:\.[0-9]{1,12})?"
_PLAIN: Final = re.compile(_NUMBER)
_UNITS: Final = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_STEP: Final = re.compile(rf"({_NUMBER})(ms|d|h|m|s)")
_DURATION: Final = re.compile(rf"(?:{_NUMBER}(?:ms|d|h|m|s)){{1,5}}")

_IN_TEXT: Final = re.compile(
    rf"(?:try again|retry|retry your request|wait)[ ](?:in|after|for)[ ](?:about[ ])?"
    rf"(?:(?P<words>{_NUMBER})[ ](?P<unit>millisecond|second|minute|hour)"
    rf"|(?P<duration>(?:{_NUMBER}(?:ms|d|h|m|s)){{1,5}})(?![a-z0-9]))"
)
_WORDS: Final = {"millisecond": 0.001, "second": 1.0, "minute": 60.0, "hour": 3_600.0}

_FIELDS: Final = ("retry_after", "retry_after_seconds", "retryAfter", "retryDelay", "retry_delay")


def from_headers(headers: Mapping[str, str]) -> float | None:
    """The wait of the headers, whose names are lowercase."""
    exact = _number(headers.get("retry-after-ms"))
    if exact is not None:
        return _checked(exact / 1000)
    whole = _number(headers.get("retry-after"))
    return None if whole is None else _checked(whole)


def from_limits(headers: Mapping[str, str]) -> float | None:
    """The longest of the times until a limit is lifted; limits that are not used up do not count."""
    waits = []
    for what in ("requests", "tokens"):
        wait = duration(headers.get(f"x-ratelimit-reset-{what}"))
        if wait is not None and headers.get(f"x-ratelimit-remaining-{what}", "0") == "0":
            waits.append(wait)
    return max(waits, default=None)


def from_fields(fields: Mapping[str, Any]) -> float | None:
    """The wait in an object of the body: seconds as a number, or a duration in Google's form."""
    for key in _FIELDS:
        value: Any = fields.get(key)
        found = _checked(value) if type(value) in (int, float) else duration(value)
        if found is not None:
            return found
    return None


def from_text(text: str) -> float | None:
    """The wait in a message: `Please try again in 1m2s`, `retry after 20 seconds`."""
    found = _IN_TEXT.search(text.lower())
    if found is None:
        return None
    if found["unit"]:
        return _checked(float(found["words"]) * _WORDS[found["unit"]])
    return duration(found["duration"])


def duration(value: object) -> float | None:
    """The seconds of `17s`, `1m2.5s` or `120ms`."""
    if type(value) is not str or len(value) > 80 or not _DURATION.fullmatch(value):
        return None
    return _checked(sum(float(number) * _UNITS[unit] for number, unit in _STEP.findall(value)))


def _number(value: str | None) -> float | None:
    return float(value) if value is not None and _PLAIN.fullmatch(value.strip()) else None


def _checked(seconds: float) -> float | None:
    """Rounded to the millisecond, as headers have it; None if it is too long."""
    return round(float(seconds), 3) if 0 <= seconds <= MAX_SECONDS else None
