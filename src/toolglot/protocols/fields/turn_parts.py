"""Where the list of a request's turns can be split, so that a known beginning need not be read again.

Law: reading the parts one by one gives the turns that reading all of them gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolglot.conversation import Turn

TurnParts = Callable[[Sequence[dict[str, Any]], Sequence[Turn]], list[tuple[int, int]] | None]
"""From items and their turns, the parts: how many items and how many turns each has. None: they cannot be split."""


def one_by_one(items: Sequence[dict[str, Any]], turns: Sequence[Turn]) -> list[tuple[int, int]] | None:
    """The parts where each item is a turn, whatever is before and behind it."""
    return [(1, 1)] * len(items) if len(items) == len(turns) else None
