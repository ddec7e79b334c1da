"""Turns that need no pairing: every call has an id of its own, and the results that follow it answer it.

Nearly every transcript is so, and then nothing has to be matched, hashed or repaired to know what belongs to what. The
native ids serve as they are; canonical ids and turn keys are made when somebody asks for them, and are those that a
history would have given.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from msgspec.structs import replace

from toolglot import ids
from toolglot.conversation import Block, Issuer, ToolCall, ToolMetadata, ToolResult, Turn
from toolglot.turn_keys import TurnKeys

_PLACE = "#"
"""Marks the key of a turn that is known by its place only."""


class SoundTurns:
    """Turns under their native ids, with what a history would call them."""

    def __init__(self, turns: Sequence[Turn], issuer: Issuer) -> None:
        self._given = turns
        self._issuer = issuer
        self._keys: list[str] | None = None
        self._canonical: dict[str, str] | None = None

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """The turns with a name and an issuer, for passes that tell what they change."""
        return tuple(
            replace(
                turn,
                key=f"{_PLACE}{number}",
                issuer=turn.issuer or self._issuer,
                blocks=_issued(turn, turn.issuer or self._issuer),
            )
            for number, turn in enumerate(self._given)
        )

    def key(self, place: str) -> str:
        """The key of a turn, by the name it has here (and with what a render appended to it)."""
        number, plus, suffix = place.removeprefix(_PLACE).partition("+")
        if not place.startswith(_PLACE) or not number.isdecimal():
            return place
        if self._keys is None:
            self._keys = _keys(self._given)
        return self._keys[int(number)] + plus + suffix

    def number(self, place: str) -> int | None:
        """The number of a turn, by the name it has here."""
        number = place.removeprefix(_PLACE)
        return int(number) if place.startswith(_PLACE) and number.isdecimal() else None

    def canonical_id(self, call_id: str) -> str:
        """The canonical id of a call, by its native one; any other id as it is."""
        if self._canonical is None:
            self._canonical = self._canonical_ids()
        return self._canonical.get(call_id, call_id)

    def _canonical_ids(self) -> dict[str, str]:
        found = {}
        for number, turn in enumerate(self._given):
            for index, call in enumerate(turn.calls):
                key = self.key(f"{_PLACE}{number}")
                provider = (turn.issuer or self._issuer).provider
                found[call.id] = ids.canonical(provider, call.id, call.name, key, index)
        return found


def sound_turns(turns: Sequence[Turn], issuer: Issuer) -> SoundTurns | None:
    """The turns as they are, if nothing in them needs pairing; None if something does."""
    return SoundTurns(turns, issuer) if _are_sound(turns) else None


def _are_sound(turns: Sequence[Turn]) -> bool:
    seen: set[str] = set()
    waiting: set[str] = set()
    for turn in turns:
        is_models = turn.role == "assistant"
        if turn.metadata.removed or (is_models and waiting):
            return False
        for block in turn.blocks:
            if isinstance(block, ToolCall):
                if not is_models or block.id in seen or not _is_plain(block.id) or block.metadata is not None:
                    return False
                seen.add(block.id)
                waiting.add(block.id)
            elif isinstance(block, ToolResult):
                if is_models or block.call_id not in waiting or not _is_answer(block):
                    return False
                waiting.discard(block.call_id)
    return not waiting


def _is_plain(id: str) -> bool:
    return bool(id) and not id.isspace() and ids.SMUGGLED_MARK not in id and not ids.is_canonical(id)


def _is_answer(result: ToolResult) -> bool:
    return result.is_complete is True and result.metadata is None and result.synthetic is None and result.status is None


def _issued(turn: Turn, issuer: Issuer) -> tuple[Block, ...]:
    if turn.role != "assistant" or not any(isinstance(block, ToolCall) for block in turn.blocks):
        return turn.blocks
    return tuple(
        replace(block, metadata=ToolMetadata(block.id, issuer)) if isinstance(block, ToolCall) else block
        for block in turn.blocks
    )


def _keys(turns: Sequence[Turn]) -> list[str]:
    made = TurnKeys()
    keys = []
    for turn in turns:
        key = turn.key or made.new(turn)
        made.take(key)
        keys.append(key)
    return keys
