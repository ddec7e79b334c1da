"""What became of the turns of one session: an agent sends them with every request, and the same turn becomes the same.

    memo = TurnMemo()
    swapped = memo.each(("ids", "call_"), turns, swap)     # `swap` is called for the turns that are new

Turns are recognised as objects: those of a history that was remembered are the same ones in the next request.
Laws: what is made of a turn follows from the turn and the key alone, so that it makes no difference whether it was
made before (law 15). The memo holds nothing but the turns of the last request for each of a few keys.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, TypeVar

from toolglot.conversation.values import Turn

T = TypeVar("T")

MAX_KEYS: Final = 4
"""A target has two: its ids, and its JSON."""


class TurnMemo:
    """What was made of the turns of a session."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[Hashable, tuple[object, dict[int, tuple[Turn, Any]]]] = {}
        """What was made, by key, and by the address of a turn: with the turn, so that the address stays its own. The
        inner mappings never change: other threads may read them."""

    def each(self, key: Hashable, turns: Sequence[Turn], make: Callable[[Turn], T], owner: object = None) -> list[T]:
        """What `make` makes of each turn. The same key must always mean the same `make`.

        owner: what the result depends on too: another one, even an equal one, has nothing in common with it.
        """
        before = self._made.pop(key, None)
        known = before[1] if before is not None and before[0] is owner else {}
        made: dict[int, tuple[Turn, Any]] = {}
        for turn in turns:
            address = id(turn)
            if address not in made:
                made[address] = known.get(address) or (turn, make(turn))
        self._made[key] = (owner, made)
        while len(self._made) > MAX_KEYS:
            self._made.pop(next(iter([*self._made]), None), None)
        return [made[id(turn)][1] for turn in turns]

    def only(self, turns: Iterable[Turn]) -> TurnMemo:
        """A memo of these turns, for a session that has no others in common with this one."""
        held = {id(turn) for turn in turns}
        memo = TurnMemo()
        for key, (owner, known) in [*self._made.items()]:
            kept = {address: made for address, made in known.items() if address in held}
            held.update([id(made) for _, made in kept.values()])  # of which something was made in turn
            memo._made[key] = (owner, kept)
        return memo


def each_turn(memo: TurnMemo | None, key: Hashable, turns: Iterable[Turn], make: Callable[[Turn], T]) -> list[T]:
    """The same with or without a memo."""
    return [make(turn) for turn in turns] if memo is None else memo.each(key, tuple(turns), make)
