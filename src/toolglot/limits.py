"""How large an input may be before it is refused.

Law: nothing that toolglot reads is unbounded. Limits are checked before work is done in proportion to
the input, and each refusal is a `LimitError` that names the limit.
"""

from __future__ import annotations

from msgspec import Struct


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds for one document: a wire body, a serialised conversation, a turn, a tool's arguments."""

    max_bytes: int = 64 * 1024 * 1024
    """Bytes of a document, or characters of all strings of a turn."""

    max_depth: int = 200
    """Objects and arrays inside each other."""

    max_nodes: int = 2_000_000
    """Values in a document, counted as they would be written out."""


DEFAULT_LIMITS = Limits()
