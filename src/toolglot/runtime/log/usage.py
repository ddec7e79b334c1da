"""Sums of tokens and money."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from toolglot.conversation import Usage

_COUNTS: Final = tuple(name for name in Usage.__struct_fields__ if name.endswith("_tokens"))


def add_usage(first: Usage, second: Usage | None) -> Usage:
    """The sum of two counts. A count that neither has stays unknown."""
    if second is None:
        return first
    counts: dict[str, Any] = {name: _add(getattr(first, name), getattr(second, name)) for name in _COUNTS}
    return Usage(**counts)


def add_cost(first: Decimal | None, second: Decimal | None) -> Decimal | None:
    """The sum of two costs; None if neither is known."""
    return second if first is None else first if second is None else first + second


def _add(first: int | None, second: int | None) -> int | None:
    return second if first is None else first if second is None else first + second
