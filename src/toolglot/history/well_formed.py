"""Turns that need no matching: every call has an id of its own, and every result answers a call of the turn before.

Nearly every transcript is like that, and then nothing has to be matched or hashed to pair calls and results. A call may
lack its result if the client was stopped: nothing else could be mistaken for it. The native ids are used unchanged;
canonical ids and turn keys are made on demand, and equal those that a history would assign.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Issuer, Text, ToolCall, ToolMetadata, ToolResult, Turn, ids
from toolglot.history.turn_keys import TurnKeys

_LABEL = "#"
"""Marks the key of a turn that is known by its position only."""

GLANCE: Final = 64
"""How many characters of a string are compared first."""

FEW: Final = 8
"""For this many keys all turns are searched; after that, an index of similar turns is built."""


class WellFormedTurns:
    """Turns under their native ids, with the keys and ids that a history would assign."""

    def __init__(self, turns: Sequence[Turn], issuer: Issuer, named: Sequence[Turn] = ()) -> None:
        self._originals = turns
        self._issuer = issuer
        self.turns: tuple[Turn, ...] = tuple(named)
        """The turns with a name and an issuer, for passes that report what they change."""
        self._keys = _Keys(turns)
        self._canonical: dict[str, str] = {}
        self._with_ids: set[int] = set()
        """The turns whose calls have canonical ids by now."""

    def key(self, label: str) -> str:
        """The key of a turn, by the label that it has here (and with the suffix that a render appended)."""
        number, plus, suffix = label.removeprefix(_LABEL).partition("+")
        if not label.startswith(_LABEL) or not number.isdecimal():
            return label
        self._name_calls(int(number))  # an entry about a turn is about its calls too
        return self._keys[int(number)] + plus + suffix

    def number(self, label: str) -> int | None:
        """The number of a turn, by the label that it has here."""
        number = label.removeprefix(_LABEL)
        return int(number) if label.startswith(_LABEL) and number.isdecimal() else None

    def canonical_id(self, call_id: str) -> str:
        """The canonical id of a call, by its native one; any other id as it is."""
        if call_id not in self._canonical and call_id in self._numbers:
            self._name_calls(self._numbers[call_id])
        return self._canonical.get(call_id, call_id)

    def _name_calls(self, number: int) -> None:
        """Give the calls of a turn their canonical ids, all at once: if one is needed, so are the others."""
        if number in self._with_ids:
            return
        self._with_ids.add(number)
        turn, key = self._originals[number], self._keys[number]
        provider = (turn.issuer or self._issuer).provider
        for index, call in enumerate(turn.calls):
            self._canonical[call.id] = ids.canonical(provider, call.id, call.name, key, index)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The turn of each call."""
        return {
            block.id: number
            for number, turn in enumerate(self._originals)
            for block in turn.blocks
            if type(block) is ToolCall
        }


class _Keys:
    """The keys that a history would give to turns, by their numbers.

    A key depends on the content of its turn and on the number of equal turns before it: so it is made together with the
    keys of similar turns, and no other turns have to be read for it.
    """

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = turns
        self._made: dict[int, str] = {}
        self._asked = 0

    def __getitem__(self, number: int) -> str:
        if number not in self._made:
            self._make(self._similar_turns(number))
        return self._made[number]

    def _make(self, numbers: Sequence[int]) -> None:
        keys = TurnKeys()
        for number in numbers:
            turn = self._turns[number]
            key = turn.key or keys.new(turn)
            keys.take(key)
            self._made[number] = key

    def _similar_turns(self, number: int) -> list[int]:
        """The turns that look like this one, in their order."""
        self._asked += 1
        if self._asked <= FEW and not self._has_keys:
            turn = self._turns[number]
            role, size, look = turn.role, len(turn.blocks), self._look(turn)
            same = [
                position for position, one in enumerate(self._turns) if one.role == role and len(one.blocks) == size
            ]
            return [position for position in same if self._look(self._turns[position]) == look]
        last, before = self._chains
        found = [last[self._look(self._turns[number])]]
        while before[found[-1]] >= 0:
            found.append(before[found[-1]])
        return found[::-1]

    @cached_property
    def _chains(self) -> tuple[dict[object, int], list[int]]:
        """The last turn of each look, and for each turn the one before it that looks like it; -1 if there is none."""
        last: dict[object, int] = {}
        before: list[int] = []
        for number, turn in enumerate(self._turns):
            look = self._look(turn)
            before.append(last.get(look, -1))
            last[look] = number
        return last, before

    def _look(self, turn: Turn) -> object:
        """What can be seen of a turn at a glance. If turns bring keys, any key may conflict with any other."""
        return _look(turn.blocks[0]) if turn.blocks and not self._has_keys else None

    @cached_property
    def _has_keys(self) -> bool:
        return any(turn.key for turn in self._turns)


def _look(block: Block) -> object:
    """Something that equal blocks have in common, and other blocks rarely."""
    if isinstance(block, ToolCall):
        return block.id
    if isinstance(block, ToolResult):
        return block.call_id
    return block.text[:GLANCE] if isinstance(block, Text) else None


def well_formed_turns(
    turns: Sequence[Turn], issuer: Issuer, look: Callable[[Turn], object] = lambda _: None
) -> WellFormedTurns | None:
    """The turns as they are, if nothing in them needs pairing; None if something does.

    `look` is called with each turn as long as all are well-formed. A long conversation does not fit into the caches of
    the processor, so everything that reads all of it should do so in one go.
    """
    check, named = _WellFormedCheck(), []
    for number, turn in enumerate(turns):
        if not check.takes(turn):
            return None
        look(turn)
        own, key = turn.issuer, f"{_LABEL}{number}"
        blocks = turn.blocks if own is None else _issued_blocks(turn, own)
        named.append(replace(turn, key=key, issuer=own or issuer, blocks=blocks))
    return WellFormedTurns(turns, issuer, named)


class _WellFormedCheck:
    """Which calls there were, and which of the last ones wait for a result."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._waiting: set[str] = set()

    def takes(self, turn: Turn) -> bool:
        """Whether the next turn is well-formed too."""
        seen, waiting, is_models = self._seen, self._waiting, turn.role == "assistant"
        if turn.metadata.removed:
            return False
        if is_models:
            waiting.clear()  # a result that comes after this is late and has to be matched
        for block in turn.blocks:
            if type(block) is ToolCall:
                if not is_models or block.id in seen or not _is_plain(block.id) or block.metadata is not None:
                    return False
                seen.add(block.id)
                waiting.add(block.id)
            elif type(block) is ToolResult:
                if is_models or block.call_id not in waiting or not _is_answer(block):
                    return False
                waiting.discard(block.call_id)
        return True


def _is_plain(id: str) -> bool:
    return bool(id) and not id.isspace() and ids.SMUGGLED_MARK not in id and not ids.is_canonical(id)


def _is_answer(result: ToolResult) -> bool:
    return result.is_complete is True and result.metadata is None and result.synthetic is None and result.status is None


def _issued_blocks(turn: Turn, issuer: Issuer) -> tuple[Block, ...]:
    if turn.role != "assistant" or not any(isinstance(block, ToolCall) for block in turn.blocks):
        return turn.blocks
    return tuple(
        replace(block, metadata=ToolMetadata(block.id, issuer)) if isinstance(block, ToolCall) else block
        for block in turn.blocks
    )
