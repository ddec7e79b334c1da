"""The lifecycle of every tool interaction, rebuilt from turns.

    pending ──▶ complete | error | cancelled

A ledger is a pure function of its turns: `Ledger.of(turns)` and a ledger to which the same turns were added
one by one are equal. It never looks at a raw id; `History` has already matched results with calls.

Laws: a terminal state stays, with four exceptions: a real result replaces a synthetic one, a complete one a
partial one, one that was matched by id a guessed one, and one after its call one before it. An explicit cancel
always stays. The same completion twice changes nothing. A result that is not used is set aside with the reason,
never dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from toolglot.conversation import (
    Interaction,
    SetAside,
    SetAsideReason,
    ToolCall,
    ToolResult,
    Turn,
)
from toolglot.conversation.completion import completion_key, is_explicit_cancel, is_guess, status_of
from toolglot.conversation.report import Action, Entry
from toolglot.errors import quote


def _rank(result: ToolResult, *, early: bool) -> tuple[bool, ...]:
    """Real over synthetic, complete over partial, certain over guessed, after its call over before it."""
    return (result.synthetic is None, result.is_complete is not False, not is_guess(result), not early)


class _Record:
    """One interaction while results still come in."""

    __slots__ = (
        "aside",
        "call",
        "early",
        "frozen",
        "index",
        "is_carried",
        "result",
        "seen",
        "status",
        "turn_key",
    )

    def __init__(self, interaction: Interaction, *, is_carried: bool = False) -> None:
        self.call = interaction.call
        self.turn_key = interaction.turn_key
        self.index = interaction.index
        self.status = interaction.status
        self.result = interaction.result
        self.early = interaction.early
        self.aside = list(interaction.set_aside)
        self.seen: set[str] | None = None
        self.frozen: Interaction | None = interaction
        self.is_carried = is_carried
        """Whether it is known only from the metadata of a turn; its own turn was removed, or is still to come."""

    def interaction(self) -> Interaction:
        if self.frozen is None:
            self.frozen = Interaction(
                call=self.call,
                turn_key=self.turn_key,
                index=self.index,
                status=self.status,
                result=self.result,
                early=self.early,
                set_aside=tuple(self.aside),
            )
        return self.frozen

    def complete(self, result: ToolResult, *, early: bool) -> SetAsideReason | None:
        """Add a result. Returns the reason if it, or the one that it replaces, was set aside."""
        says = status_of(result)
        if self.result is None or (self.status == "pending" and says != "pending"):
            self._win(result, early=early)
            return None
        if says == "pending" or self._was_seen(result):
            return None
        if is_explicit_cancel(self.result):
            return self._lose(result, "late")
        if _rank(result, early=early) > _rank(self.result, early=self.early):
            replaced = self.result
            self._win(result, early=early)
            return self._lose(replaced, "superseded")
        return self._lose(result, "conflict")

    def _win(self, result: ToolResult, *, early: bool) -> None:
        self.result, self.status, self.early, self.frozen = result, status_of(result), early, None

    def _lose(self, result: ToolResult, reason: SetAsideReason) -> SetAsideReason:
        self.aside.append(SetAside(result, reason))
        self.frozen = None
        return reason

    def _was_seen(self, result: ToolResult) -> bool:
        """Whether the same completion came before. Keys are only computed once a second result comes."""
        if self.seen is None:
            kept = [aside.result for aside in self.aside]
            self.seen = {completion_key(known) for known in (self.result, *kept) if known is not None}
        key = completion_key(result)
        if key in self.seen:
            return True
        self.seen.add(key)
        return False


_SET_ASIDE_REASONS: Final[dict[SetAsideReason, str]] = {
    "late": "a result arrived after its call was cancelled; the cancel stays",
    "superseded": "a result was replaced by one that is real, complete, or matched with more certainty",
    "conflict": "a second, different result arrived for the same call; the first stays",
}


class Ledger:
    """Every tool interaction of a conversation, by canonical call id."""

    __slots__ = ("_entries", "_records", "_waiting")

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}
        self._waiting: dict[str, list[ToolResult]] = {}
        self._entries: list[Entry] = []

    @classmethod
    def of(cls, turns: Sequence[Turn]) -> Ledger:
        """The ledger of these turns.

        Interactions in the metadata of turns were written when everything about them was known. They are added
        first, so that what the turns still hold of them adds nothing new.
        """
        ledger = cls()
        for turn in turns:
            for removed in turn.metadata.removed:
                ledger._carry(removed)
        for turn in turns:
            ledger.apply(turn)
        return ledger

    # --- reading --------------------------------------------------------------------------------

    def __getitem__(self, call_id: str) -> Interaction:
        found = self.get(call_id)
        if found is None:
            raise KeyError(f"no call has the canonical id {quote(call_id)}")
        return found

    def get(self, call_id: str) -> Interaction | None:
        record = self._records.get(call_id) if isinstance(call_id, str) else None
        return record.interaction() if record is not None else None

    def __contains__(self, call_id: object) -> bool:
        return call_id in self._records

    def __iter__(self) -> Iterator[Interaction]:
        return (record.interaction() for record in self._records.values())

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return f"<Ledger: {len(self)} calls, {len(self.pending)} pending, {len(self.orphans)} orphans>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ledger):
            return NotImplemented
        return list(self) == list(other) and self._waiting == other._waiting

    __hash__: ClassVar[None]  # type: ignore[assignment]

    @property
    def pending(self) -> tuple[Interaction, ...]:
        return tuple(found for found in self if found.status == "pending")

    @property
    def orphans(self) -> tuple[ToolResult, ...]:
        """Results that have no call."""
        return tuple(result for results in self._waiting.values() for result in results)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was set aside or ignored, in the order of the turns."""
        return tuple(self._entries)

    # --- writing --------------------------------------------------------------------------------

    def apply(self, turn: Turn) -> None:
        """Add the blocks of the next turn."""
        index = 0
        for block in turn.blocks:
            if isinstance(block, ToolCall):
                self._call(block, turn.key, index)
                index += 1
            elif isinstance(block, ToolResult):
                self._answer(block, early=False)

    def _carry(self, removed: Interaction) -> None:
        if removed.id not in self._records:
            self._records[removed.id] = _Record(removed, is_carried=True)

    def _call(self, call: ToolCall, turn_key: str, index: int) -> None:
        known = self._records.get(call.id)
        if known is None:
            self._records[call.id] = _Record(Interaction(call, turn_key, index))
            for result in self._waiting.pop(call.id, ()):
                self._answer(result, early=True)
        elif known.is_carried:
            known.is_carried = False
            self._records[call.id] = self._records.pop(call.id)  # at its position among the calls
        else:
            self._report("ignored", "a second call with the same id", known)

    def _answer(self, result: ToolResult, *, early: bool) -> None:
        record = self._records.get(result.call_id)
        if record is None:
            self._waiting.setdefault(result.call_id, []).append(result)
            return
        reason = record.complete(result, early=early)
        if reason is not None:
            self._report("set-aside", _SET_ASIDE_REASONS[reason], record)

    def _report(self, action: Action, reason: str, about: _Record) -> None:
        self._entries.append(
            Entry(
                action=action,
                reason=reason,
                fault="canonical",
                turn_key=about.turn_key,
                call_ids=(about.call.id,),
            )
        )
