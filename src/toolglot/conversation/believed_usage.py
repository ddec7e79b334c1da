"""Token counts of a provider, as far as they can be true: what is negative or far too large is not counted.

Whoever counts what was used, a gateway or a session, asks here first. Law: pure.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.conversation.values import Usage

MAX_TOKENS: Final = 10**12
"""More than any answer takes."""

NOT_BELIEVED: Final = "token counts of the provider were not believed: they are negative, or far too large"

COUNTS: Final = tuple(name for name in Usage.__struct_fields__ if name.endswith("_tokens"))
"""The names of the counts of a `Usage`."""


def believed(usage: Usage | None) -> Usage | None:
    """The counts that can be true; the very same usage where all of them can."""
    if usage is None:
        return None
    wrong = [name for name in COUNTS if not _is_possible(getattr(usage, name))]
    return replace(usage, **dict.fromkeys(wrong)) if wrong else usage


def _is_possible(count: object) -> bool:
    return count is None or (type(count) is int and 0 <= count <= MAX_TOKENS)
