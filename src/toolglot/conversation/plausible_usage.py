"""Token counts of a provider without those that cannot be true: negative or far too large.

The gateway and the session filter counts here before they add them up. Law: pure.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.conversation.values import Usage

MAX_TOKENS: Final = 10**12
"""More than any reply takes."""

CACHED_BESIDE: Final = "the provider counted cached tokens beside the input; they are part of it"
IMPLAUSIBLE: Final = "ignored token counts of the provider that are negative or far too large"

COUNTS: Final = tuple(name for name in Usage.__struct_fields__ if name.endswith("_tokens"))
"""The names of the counts of a `Usage`."""


def plausible_usage(usage: Usage | None) -> Usage | None:
    """A usage without implausible counts; the same object if there are none."""
    if usage is None:
        return None
    wrong = [name for name in COUNTS if not _is_possible(getattr(usage, name))]
    return replace(usage, **dict.fromkeys(wrong)) if wrong else usage


def with_cached_input(usage: Usage) -> Usage:
    """A usage whose input has everything that was cached; the same object if it had.

    Some hosts count it beside the input although their protocol counts it inside: Grok on Azure was recorded so. That
    can be seen only where it is more than the input.
    """
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    if usage.input_tokens is None or cached <= usage.input_tokens:
        return usage
    return replace(usage, input_tokens=usage.input_tokens + cached)


def _is_possible(count: object) -> bool:
    return count is None or (type(count) is int and 0 <= count <= MAX_TOKENS)
