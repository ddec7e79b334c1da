"""The limits of a session: turns, tokens, money, retries, and when its history is compressed."""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from toolglot.errors import InputError, quote


class SessionLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a session and of each of its runs."""

    max_turns: int = 50
    """Model turns of one run: a model that never stops calling tools is stopped."""
    max_cost: Decimal | None = None
    """US dollars of the whole session, including its subagents."""
    max_tokens: int | None = None
    """Input and output tokens of the whole session, including its subagents."""
    compress_at: float = 0.8
    """Summarise older turns when the conversation reaches this part of the context window; 0: never automatically."""
    keep_turns: int = 6
    """The last turns, which a compression keeps unchanged."""
    max_result_characters: int = 2_000
    """How much a compression keeps of each removed result."""
    retries: int = 2
    """How often to retry a provider that is busy, down or silent."""
    retry_seconds: float = 30.0
    """The maximum wait before a retry. A provider that asks for more has failed."""
    max_depth: int = 8
    """How deeply subagents can be nested."""

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


def _refuse_below(value: object, minimum: int, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or not value >= minimum:
        raise InputError(f"expected a number from {minimum}, got {quote(value)}", path=f"limits.{name}")


DEFAULT_SESSION_LIMITS = SessionLimits()
