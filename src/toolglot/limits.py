"""Limits on the size of an input.

Law: nothing that toolglot reads is unbounded. Limits are checked before work is done in proportion to
the input, and each refusal is a `LimitError` that names the limit.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from toolglot.errors import InputError

MAX_NUMERIC_ID: Final = 10**1000
"""The largest id that is a number: Python refuses to write numbers of more than a few thousand digits."""
MAX_DEPTH: Final = 200
"""The nesting depth that the parser supports."""


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds for one document: a wire body, a serialised conversation, a turn, a tool's arguments."""

    max_bytes: int = 64 * 1024 * 1024
    """Bytes of a document, or characters of all strings of a turn."""

    max_depth: int = 200
    """The nesting depth of objects and arrays, at most 200."""

    max_nodes: int = 2_000_000
    """Values in a document, counted as they would be written out."""

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_depth", "max_nodes"):
            limit = getattr(self, name)
            if type(limit) is not int or limit < 1:
                raise InputError("expected a whole number from 1", path=name)
        if self.max_depth > MAX_DEPTH:
            raise InputError(f"expected a depth from 1 to {MAX_DEPTH}", path="max_depth")


DEFAULT_LIMITS = Limits()
