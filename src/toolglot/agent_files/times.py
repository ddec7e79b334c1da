"""Times as agents write them."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp_of(seconds: float) -> str:
    """`2026-11-15T10:00:00.000Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_of(text: object) -> float:
    """The seconds since 1970 of such a text, or of a number of milliseconds; 0 for anything else."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        return float(text) / 1000 if abs(text) < 10**15 else 0.0
    if not isinstance(text, str):
        return 0.0
    try:
        found = datetime.fromisoformat(text[:40])
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return 0.0
