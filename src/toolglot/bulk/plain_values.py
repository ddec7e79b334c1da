"""Values of tables and of other engines as JSON: times, decimals, bytes, and numbers that JSON does not have.

Law: pure. What is JSON already is returned as the same object; what loses something says so.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

MAX_LEVEL: Final = 250
"""Deeper than a row may nest: it is refused behind this."""
_JSON: Final = frozenset({str, int, bool, type(None)})
_IMAGES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
)


def plain_value(value: Any, lost: Callable[[str], object], level: int = 0) -> Any:
    """A value without types that JSON does not have.

    lost: called with what could not be kept.
    """
    kind = type(value)
    if kind in _JSON or level > MAX_LEVEL:
        return value
    if kind is dict:
        made = {key: plain_value(held, lost, level + 1) for key, held in value.items()}
        return value if all(made[key] is held for key, held in value.items()) else made
    if kind is list or kind is tuple:
        items = [plain_value(held, lost, level + 1) for held in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    if kind is float:
        if math.isfinite(value):
            return value
        lost("a number that is not finite became null")
        return None
    if kind.__module__ == "numpy":  # what Ray hands over without `batch_format`
        return plain_value(value.tolist(), lost, level + 1)
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal | UUID):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _text(bytes(value))
    return value


def _text(data: bytes) -> str:
    """Bytes as text, and what is none as a data URL."""
    media = next((media for mark, media in _IMAGES if data.startswith(mark)), "")
    if not media:
        try:
            return data.decode()
        except UnicodeDecodeError:
            media = "application/octet-stream"
    return f"data:{media};base64,{b64encode(data).decode()}"
