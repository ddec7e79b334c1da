"""Token counts of a provider without those that cannot be true: negative or far too large.

The gateway and the session filter counts here before they add them up. Law: pure.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.conversation.values import Usage

MAX_TOKENS: Final = 10**12
"""More than any reply takes."""

IMPLAUSIBLE: Final = "ignored token counts of the provider that are negative or far too large"

COUNTS: Final = tuple(name for name in Usage.__struct_fields__ if name.endswith("_tokens"))
"""The names of the counts of a `Usage`."""


def plausible_usage(usage: Usage | None) -> Usage | None:
    """A usage without implausible counts; the same object if there are none."""
    if usage is None:
        return None
    wrong = [name for name in COUNTS if not _is_possible(getattr(usage, name))]
    return replace(usage, **dict.fromkeys(wrong)) if wrong else usage


def _is_possible(count: object) -> bool:
    return count is None or (type(count) is int and 0 <= count <= MAX_TOKENS)
