"""What became of the turns of one session: an agent sends them with every request, and the same turn becomes the same.

    memo = TurnMemo()
    swapped = memo.each(("ids", "call_"), turns, swap)     # `swap` is called for the turns that are new

Turns are recognised as objects: those of a history that was remembered are the same ones in the next request.
Laws: what is made of a turn follows from the turn and the key alone, so that it makes no difference whether it was
made before (law 15). The memo is bounded by the turns of the session.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, TypeVar

from toolglot.conversation.values import Turn

T = TypeVar("T")

_SPARE: Final = 2
"""How many times the turns of a request may be remembered for one key: those of branches are among them."""
_MAX_KEYS: Final = 8


class TurnMemo:
    """What was made of the turns of a session."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[Hashable, dict[int, tuple[Turn, Any]]] = {}
        """What was made, by key and by the address of a turn: with the turn, so that the address stays its own."""

    def each(self, key: Hashable, turns: Sequence[Turn], make: Callable[[Turn], T]) -> list[T]:
        """What `make` makes of each turn. The same key must always mean the same `make`."""
        known = self._made.get(key)
        if known is None or len(known) > _SPARE * len(turns) + 64:
            if known is None and len(self._made) >= _MAX_KEYS:
                self._made.clear()
            known = self._made[key] = {}
        found: list[T] = []
        for turn in turns:
            made = known.get(id(turn))
            if made is None:
                made = known[id(turn)] = (turn, make(turn))
            found.append(made[1])
        return found


def each_turn(memo: TurnMemo | None, key: Hashable, turns: Iterable[Turn], make: Callable[[Turn], T]) -> list[T]:
    """The same with or without a memo."""
    return [make(turn) for turn in turns] if memo is None else memo.each(key, tuple(turns), make)
