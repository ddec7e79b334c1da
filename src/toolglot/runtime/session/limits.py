"""How far a session may go: turns, tokens, money, tries, and when its history is compressed."""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from toolglot.errors import InputError, quote


class SessionLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds of a session and of each of its runs."""

    max_turns: int = 50
    """Model turns of one run: a model that calls tools for ever is stopped."""
    max_cost: Decimal | None = None
    """US dollars of the whole session, its subagents included."""
    max_tokens: int | None = None
    """Tokens of the whole session, read and written, its subagents included."""
    compress_at: float = 0.8
    """The part of the model's context window from which on older turns are summarised; 0: never by itself."""
    keep_turns: int = 6
    """The last turns that a compression leaves as they are."""
    max_result_characters: int = 2_000
    """What a compression keeps of each result of the turns that it takes out."""
    retries: int = 2
    """How often a provider that is busy, down or silent is asked again."""
    retry_seconds: float = 30.0
    """The longest wait before that; a provider that wants a longer one has failed."""
    max_depth: int = 8
    """How deep subagents may spawn others."""

    def __post_init__(self) -> None:
        for name in ("max_turns", "keep_turns", "max_depth"):
            _refuse_below(getattr(self, name), 1, name)
        for name in ("retries", "retry_seconds", "compress_at", "max_result_characters"):
            _refuse_below(getattr(self, name), 0, name)
        for name in ("max_cost", "max_tokens"):
            if getattr(self, name) is not None:
                _refuse_below(getattr(self, name), 0, name)
        if self.compress_at > 1:
            raise InputError("expected a part of the context window, at most 1", path="limits.compress_at")


def _refuse_below(value: object, least: int, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not value >= least:
        raise InputError(f"expected a number from {least}, got {quote(value)}", path=f"limits.{name}")


DEFAULT_SESSION_LIMITS = SessionLimits()
