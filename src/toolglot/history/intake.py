"""Turns on their way into a history: canonical ids, turn keys, and the call of each result.

An `Intake` holds the turns of one history as they are kept, with the indexes that make adding the next turn
cheap. It checks nothing and refuses nothing: `History` has done that.

Laws: work is proportional to the turn, not to the history. Adding the kept turns again, as `rebuild` does after
every cut, gives the same turns and the same state.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

import msgspec
from msgspec.structs import replace

from toolglot.conversation import (
    Block,
    Interaction,
    Issuer,
    Media,
    Text,
    ToolCall,
    ToolMetadata,
    ToolResult,
    Turn,
    ids,
)
from toolglot.conversation.completion import completion_key, is_guess, status_of
from toolglot.conversation.report import Action, Entry, Fault
from toolglot.errors import quote
from toolglot.history.ledger import Ledger
from toolglot.history.matching import BlockPosition, Match, Matcher
from toolglot.history.turn_keys import TurnKeys, raw_id_of

_UNKNOWN: Final = "unknown"
"""The provider in the id of a result that has no call and no provider."""


class Intake:
    """The kept turns of a history, and what is needed to add more."""

    def __init__(self, entries: list[Entry]) -> None:
        self.turns: list[Turn] = []
        self.positions: dict[str, int] = {}
        self.keys: TurnKeys = TurnKeys()
        self.entries = entries
        self._changed: dict[int, list[Block]] = {}
        self._matcher = Matcher()
        self._carriers: dict[str, int] = {}
        """Calls whose interaction a turn carries in metadata, and which turn that is."""
        self._unseen: dict[str, ToolCall] = {}
        """Of these, the calls whose own turns were removed, or are still to come."""
        self._before: dict[int, Turn] = {}
        """Turns as they were before the last `take_all`, where it changed them."""
        self._next_ordinal = 0
        self._ledger: Ledger | None = None

    @property
    def ledger(self) -> Ledger:
        if self._ledger is None:
            self._ledger = Ledger.of(self.turns)
        return self._ledger

    def has_call(self, call_id: str) -> bool:
        return call_id in self._matcher

    def rebuild(self, turns: Sequence[Turn]) -> Intake:
        """An intake of exactly these turns, which were taken in before."""
        other = Intake(self.entries)
        other.take_all(turns)
        return other

    def roll_back(self, length: int, entries: int) -> Intake:
        """The intake as it was before the last `take_all`, when it had this many turns and entries."""
        turns = [self._before.get(number, turn) for number, turn in enumerate(self.turns[:length])]
        del self.entries[entries:]
        return self.rebuild(turns)

    def take_all(self, turns: Sequence[Turn], *, exactly: bool = False) -> tuple[Turn, ...]:
        """Add turns, and return them as they are kept. `exactly`: results name canonical ids."""
        self._before.clear()
        positions = [self._take(turn, exactly=exactly) for turn in self._without_lost_matches(turns)]
        self._settle()
        return tuple(self.turns[position] for position in positions)

    def _take(self, turn: Turn, *, exactly: bool = False) -> int:
        """Add a turn and return its position. A turn that is already here stays where it is."""
        if turn.key in self.positions:
            self.report("ignored", "the turn is already in the history", "policy", turn_key=turn.key)
            return self.positions[turn.key]
        if not turn.key:
            turn = replace(turn, key=self.keys.new(turn))
        number = len(self.turns)
        self.turns.append(turn)
        self.positions[turn.key] = number
        self.keys.take(turn.key)
        kinds = {type(block) for block in turn.blocks}
        if turn.role == "user" and (Text in kinds or Media in kinds):
            self._matcher.note_user_turn(number)
        has_tools = ToolCall in kinds or ToolResult in kinds
        earlier_changed = has_tools and self._take_blocks(number, exactly=exactly)
        for removed in turn.metadata.removed:
            self._take_removed(removed, number)
        if earlier_changed or turn.metadata.removed:
            self._ledger = None
        elif self._ledger is not None:
            self._settle()
            self._ledger.apply(self.turns[number])
        return number

    # --- blocks ---------------------------------------------------------------------------------

    def _take_blocks(self, number: int, *, exactly: bool) -> bool:
        """Assign ids to calls and calls to results. Returns whether an earlier turn had to change."""
        turn = self.turns[number]
        matches: list[Match] = []
        undecided: list[tuple[ToolResult, BlockPosition]] = []
        call_index = 0
        for index, block in enumerate(turn.blocks):
            position = BlockPosition(number, index)
            if isinstance(block, ToolCall):
                call = self._name_call(block, turn, call_index)
                self._blocks(number)[index] = call
                matches += self._open_call(call, number, call_index)
                call_index += 1
            elif isinstance(block, ToolResult):
                found = [] if _is_matched(block) else self._match(block, position, exactly=exactly)
                matches += found
                if not found:
                    undecided.append((block, position))
        for result, position in undecided:  # now that all calls of the turn are known
            matches += self._match_late(result, position)
        for match in matches:
            self._bind(match)
        return any(match.position.turn != number for match in matches)

    def _match(self, result: ToolResult, position: BlockPosition, *, exactly: bool) -> list[Match]:
        answers = status_of(result) != "pending"
        if exactly:
            return self._matcher.match_exactly(result.call_id, position, answers=answers)
        return self._matcher.match_by_id(
            raw_id_of(result.call_id, result.metadata),
            position,
            answers=answers,
            repeats=lambda other: self._says_the_same(result, other),
        )

    def _says_the_same(self, result: ToolResult, position: BlockPosition) -> bool:
        other = self._blocks(position.turn)[position.block]
        return isinstance(other, ToolResult) and completion_key(other) == completion_key(result)

    def _match_late(self, result: ToolResult, position: BlockPosition) -> list[Match]:
        """Restore a match that was made before; otherwise match by id, or guess if no id decides."""
        origin = result.metadata
        answers = status_of(result) != "pending"
        if origin is not None and origin.matched_by is not None:
            return self._matcher.restore_result(
                result.call_id, origin.raw_id, result.name, origin.matched_by, position, answers=answers
            )
        raw_id = raw_id_of(result.call_id, origin)
        found = self._matcher.match_by_id(raw_id, position, answers=answers)
        return found or [self._matcher.guess(raw_id, result.name, position, answers=answers)]

    def _open_call(self, call: ToolCall, number: int, index: int) -> list[Match]:
        """Make the call available to results, unless an earlier turn carries its interaction."""
        if self._unseen.pop(call.id, None) is not None:
            return []
        return self._matcher.add_call(call.id, raw_id_of(call.id, call.metadata), call.name, number, index)

    def _name_call(self, call: ToolCall, turn: Turn, index: int) -> ToolCall:
        """The call under its canonical id, with its origin in metadata."""
        origin = call.metadata or ToolMetadata()
        if call.metadata is not None and ids.is_canonical(call.id) and self._is_free(call):
            return replace(call, metadata=replace(origin, ordinal=self._ordinal(origin.ordinal)))
        issuer = origin.issuer or turn.issuer or Issuer(_UNKNOWN)
        raw_id = raw_id_of(call.id, call.metadata)
        call_id = self._new_id(call, raw_id, issuer, turn.key, index)
        signature = origin.thought_signature
        smuggled = raw_id.partition(ids.SMUGGLED_MARK)[2] if raw_id is not None else ""
        if smuggled and signature is None:
            signature = smuggled
            reason = "a signature was hidden in the id; it is stored separately"
            self.report("canonicalised", reason, "canonical", turn_key=turn.key, call_ids=(call_id,))
        metadata = ToolMetadata(raw_id, issuer, self._ordinal(None), thought_signature=signature)
        return replace(call, id=call_id, metadata=metadata)

    def _is_free(self, call: ToolCall) -> bool:
        """Whether this call can have its canonical id: no other call has it, or a turn carries this very call."""
        carried = self._unseen.get(call.id)
        return call.id not in self._matcher if carried is None else is_same_call(call, carried)

    def _new_id(self, call: ToolCall, raw_id: str | None, issuer: Issuer, turn_key: str, index: int) -> str:
        call_id = ids.canonical(issuer.provider, raw_id, call.name, turn_key, index)
        salt = ""
        while call_id in self._matcher:
            call_id = ids.mint(issuer.provider, raw_id, call.name, turn_key + salt, index)
            salt += "#"
        if salt:
            reason = f"another call already has the id {quote(raw_id)}; this call got a new one"
            self.report("canonicalised", reason, "canonical", turn_key=turn_key, call_ids=(call_id,))
        return call_id

    def _ordinal(self, recorded: int | None) -> int:
        """A call's number among all calls: the recorded one, or the next."""
        ordinal = self._next_ordinal if recorded is None else recorded
        self._next_ordinal = max(self._next_ordinal, ordinal + 1)
        return ordinal

    def _bind(self, match: Match) -> None:
        """Write a match into the turn that holds the result."""
        turn, blocks = self.turns[match.position.turn], self._blocks(match.position.turn)
        result = blocks[match.position.block]
        assert isinstance(result, ToolResult)  # noqa: S101 - the matcher only has positions of results
        raw_id = raw_id_of(result.call_id, result.metadata)
        call_id = match.call_id or _orphan_id(raw_id, result.name, turn, match.position.block)
        metadata = ToolMetadata(raw_id=raw_id, issuer=turn.issuer, matched_by=match.matched_by)
        blocks[match.position.block] = replace(result, call_id=call_id, metadata=metadata)
        if call_id != result.call_id and result.call_id in self._carriers:
            self._take_from_carried(result)
        self._report_match(match, turn.key, call_id, was_matched=_is_matched(result))

    def _take_from_carried(self, result: ToolResult) -> None:
        """Remove a guessed result from a carried interaction: it turned out to belong to another call."""
        number = self._carriers[result.call_id]
        turn = self.turns[number]
        removed = tuple(
            replace(found, result=None, status="pending", early=False)
            if found.id == result.call_id
            and found.result is not None
            and found.result.metadata == result.metadata
            and completion_key(found.result) == completion_key(result)
            else found
            for found in turn.metadata.removed
        )
        self._keep_before(number)
        self.turns[number] = replace(turn, metadata=replace(turn.metadata, removed=removed))
        self._ledger = None

    def _report_match(self, match: Match, turn_key: str, call_id: str, *, was_matched: bool) -> None:
        path = f"$.turns[{match.position.turn}].blocks[{match.position.block}]"
        action: Action = "rematched" if was_matched else "matched"
        if match.matched_by == "orphan":
            action, reason = "orphaned", "no call fits this result"
        elif match.matched_by != "id":
            reason = f"no id says which call the result answers; it was matched by {match.matched_by}"
        elif match.duplicate:
            reason = "a duplicate: the call already has a result"
        elif was_matched:
            reason = "the call with the result's id appeared"
        else:
            return
        self.report(action, reason, "canonical", path=path, turn_key=turn_key, call_ids=(call_id,))

    def _blocks(self, number: int) -> list[Block]:
        """The blocks of a turn, to be written to; `_settle` makes a turn of them again."""
        blocks = self._changed.get(number)
        if blocks is None:
            blocks = self._changed[number] = list(self.turns[number].blocks)
        return blocks

    def _settle(self) -> None:
        for number, blocks in self._changed.items():
            self._keep_before(number)
            self.turns[number] = replace(self.turns[number], blocks=tuple(blocks))
        self._changed.clear()

    def _keep_before(self, number: int) -> None:
        self._before.setdefault(number, self.turns[number])

    # --- adding turns that were added before ----------------------------------------------------

    def _without_lost_matches(self, turns: Sequence[Turn]) -> Sequence[Turn]:
        """The turns, with matches removed whose call no longer exists: these results are matched again."""
        matched = [n for n, turn in enumerate(turns) if any(map(_is_matched, turn.results))]
        if not matched:
            return turns
        known = {call.id for turn in turns for call in turn.calls if call.metadata is not None}
        known |= {removed.id for turn in turns for removed in turn.metadata.removed}
        freed = list(turns)
        for n in matched:
            turn = turns[n]
            blocks = tuple(self._release(block, turn, at, known) for at, block in enumerate(turn.blocks))
            freed[n] = replace(turn, blocks=blocks)
        return freed

    def _release(self, block: Block, turn: Turn, position: int, known: set[str]) -> Block:
        """The block; a result loses its match if its call does not exist, or its id is not an orphan's."""
        if not isinstance(block, ToolResult) or block.metadata is None or block.metadata.matched_by is None:
            return block
        raw_id = block.metadata.raw_id
        if block.metadata.matched_by == "orphan":
            stays = block.call_id == _orphan_id(raw_id, block.name, turn, position)
        else:
            stays = ids.is_canonical(block.call_id) and (block.call_id in known or block.call_id in self._matcher)
        return block if stays else replace(block, call_id=raw_id or "", metadata=None)

    def _take_removed(self, removed: Interaction, number: int) -> None:
        """An interaction that a turn carries in metadata keeps its id, key and ordinal reserved."""
        origin = removed.call.metadata or ToolMetadata()
        self.keys.take(removed.turn_key)
        if origin.ordinal is not None:
            self._ordinal(origin.ordinal)
        self._carriers[removed.id] = number
        if removed.id not in self._matcher:
            self._unseen[removed.id] = removed.call
            for match in self._matcher.add_call(removed.id, origin.raw_id, removed.name, number, removed.index):
                self._bind(match)
        if removed.result is not None and removed.status != "pending":
            self._matcher.restore_answered(removed.id, is_guess=is_guess(removed.result))

    def report(
        self,
        action: Action,
        reason: str,
        fault: Fault,
        *,
        path: str = "",
        turn_key: str = "",
        call_ids: tuple[str, ...] = (),
    ) -> None:
        self.entries.append(
            Entry(action=action, reason=reason, fault=fault, path=path, turn_key=turn_key, call_ids=call_ids)
        )


def _is_matched(result: ToolResult) -> bool:
    return result.metadata is not None and result.metadata.matched_by is not None


def _orphan_id(raw_id: str | None, name: str, turn: Turn, position: int) -> str:
    """An id for a result that has no call. It is hashed differently from the ids of calls."""
    provider = turn.issuer.provider if turn.issuer is not None else _UNKNOWN
    written = msgspec.json.encode(("orphan", provider, raw_id, name, turn.key, position))
    return ids.mint(_UNKNOWN, sha256(written).hexdigest(), None, "orphan", 0)


def is_same_call(one: ToolCall, other: ToolCall) -> bool:
    """Whether two calls with one id are the same call and not two."""
    raw_ids = {raw_id_of(call.id, call.metadata) for call in (one, other)}
    names = {(call.namespace, call.name) for call in (one, other)}
    return len(names) == len(raw_ids) == 1 and one.arguments == other.arguments
