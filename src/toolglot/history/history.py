"""The write boundary: the only way for turns to become part of a conversation.

    history = History(provider="openai")
    history.append(Turn("assistant", (ToolCall("call_0", "read_file", {"path": "a"}),)))
    history.append(Turn("tool", (ToolResult("call_0", "…"),)))
    history.ledger.pending                      # ()

A history assigns canonical ids, keeps the provider's ids in metadata, decides which call each result belongs
to, and gives every turn a key that never depends on its position. Its report says what it had to guess or
change.

Laws: a write happens completely or not at all. The ledger is a function of the turns. Keys and canonical ids,
once assigned, stay through replay, compression, pruning, forks, rewinds and changes of provider.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Final, NamedTuple

from msgspec.structs import replace

from toolglot.conversation import (
    Conversation,
    Interaction,
    Issuer,
    Text,
    ToolResult,
    Turn,
)
from toolglot.conversation.canonical_json import validate
from toolglot.conversation.completion import CANCELLED, status_of
from toolglot.conversation.ids import is_canonical
from toolglot.conversation.report import Entry, Report
from toolglot.errors import HistoryError, InputError, ToolglotError, UnknownNameError, quote
from toolglot.history.compression import (
    cut_out,
    interactions_of,
    replace_removed,
    safe_cut,
    shorten_interaction,
    shorten_result,
    with_removed,
    without_cancels,
    without_removed,
)
from toolglot.history.intake import Intake, is_same_call
from toolglot.history.ledger import Ledger
from toolglot.history.turn_keys import identity
from toolglot.jsontext import Change, fix_surrogates
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.profiles import MAX_NAME, Overrides, find, resolve

_INSTRUCTIONS: Final = ("system", "developer")


class _CheckedTurn(NamedTuple):
    turn: Turn
    changes: tuple[Change, ...]
    path: str


class History:
    """One conversation, written turn by turn.

    provider: who makes the turns that have no issuer. An unknown name is an `UnknownNameError`.
    overrides: the user's own profiles, whose names are known too.

    The issuers of turns are taken as they are: what was stored under a name that is no longer known still loads.

    conversation: turns to begin with.
    limits: how large and how deep a turn may be (`toolglot.Limits`).
    """

    def __init__(
        self,
        conversation: Conversation | None = None,
        *,
        provider: str | None = None,
        limits: Limits = DEFAULT_LIMITS,
        overrides: Overrides | None = None,
    ) -> None:
        self._limits = limits
        self._overrides = overrides
        self._intake = Intake([])
        self._provider = self._resolve_name(provider, "provider") if provider is not None else None
        if not isinstance(limits, Limits):
            raise InputError(f"expected Limits, got {quote(limits)}", path="limits")
        if conversation is not None and not isinstance(conversation, Conversation):
            raise InputError(f"expected a Conversation, got {type(conversation).__name__}")
        self._base = replace(conversation, turns=()) if conversation is not None else Conversation()
        self._in_flight: TurnInFlight | None = None
        self._next_provider: str | None = None
        if conversation is not None:
            self._base, changes = validate(self._base, limits=limits)
            for change in changes:
                self._intake.report("cloned", change.reason, "canonical", path=change.path)
            self.extend(conversation.turns)

    # --- reading --------------------------------------------------------------------------------

    @property
    def turns(self) -> tuple[Turn, ...]:
        return tuple(self._turns)

    @property
    def conversation(self) -> Conversation:
        """The conversation as it is now, ready to render or to `toolglot.dump`."""
        return replace(self._base, turns=self.turns)

    @property
    def ledger(self) -> Ledger:
        """The state of every tool interaction. It is read, never written to."""
        return self._intake.ledger

    @property
    def report(self) -> Report:
        """What was changed or guessed when turns were added, and which results were set aside."""
        return Report((*self._intake.entries, *self.ledger.entries))

    def add_entry(self, entry: Entry) -> None:
        """Add an entry to the report about something that happened outside the history."""
        self._intake.entries.append(entry)

    @property
    def target(self) -> str | None:
        """The provider that the turn in flight is bound to, otherwise the one that the next turn gets."""
        return self._in_flight.target if self._in_flight is not None else self._provider

    @property
    def in_flight(self) -> TurnInFlight | None:
        return self._in_flight

    def __len__(self) -> int:
        return len(self._turns)

    def __repr__(self) -> str:
        return f"<History: {len(self)} turns, {len(self.ledger)} calls, {len(self.ledger.pending)} pending>"

    def turn(self, key: str) -> Turn:
        """The turn with this key."""
        return self._turns[self._position(key)]

    @property
    def _turns(self) -> list[Turn]:
        return self._intake.turns

    def _keep_only(self, turns: Sequence[Turn]) -> None:
        self._intake = self._intake.rebuild(turns)

    def _resolve_name(self, name: str, kind: str, overrides: Overrides | None = None) -> str:
        """The target that a name means: a known one, or one that made a turn of this history."""
        stored = _stored_name(name, kind)
        try:
            return find(name, overrides=overrides or self._overrides, kind=kind)
        except UnknownNameError:
            if any(turn.issuer is not None and turn.issuer.provider == stored for turn in self._turns):
                return stored
            raise

    def _has_call(self, call_id: object) -> bool:
        return isinstance(call_id, str) and self._intake.has_call(call_id)

    def _position(self, key: str, path: str = "key") -> int:
        position = self._intake.positions.get(key) if isinstance(key, str) else None
        if position is None:
            raise InputError(f"no turn has the key {quote(key)}", path=path, hint="take it from turn.key")
        return position

    # --- writing --------------------------------------------------------------------------------

    def append(self, turn: Turn, *, provider: str | None = None, key: str | None = None) -> Turn:
        """Add a turn as a provider or client wrote it, and return it as it is kept.

        `provider` says who made it, if the turn has no issuer; `key` is the caller's turn key. A turn that is
        already here, with the same key and content, is not added twice.
        """
        return self._write([self._check(turn, provider, key, "$")])[0]

    def extend(self, turns: Iterable[Turn], *, provider: str | None = None) -> tuple[Turn, ...]:
        """Add several turns, all of them or none."""
        if isinstance(turns, Turn) or not isinstance(turns, Iterable):
            raise InputError(f"expected several turns, got {quote(turns)}", hint="append() takes one")
        return self._write([self._check(turn, provider, None, f"$[{n}]") for n, turn in enumerate(turns)])

    def record(self, *results: ToolResult) -> Turn:
        """Add results, whose calls are named by canonical ids, as one turn."""
        if not results:
            raise InputError("expected at least one result", path="results")
        for n, result in enumerate(results):
            if not isinstance(result, ToolResult) or not self._has_call(result.call_id):
                raise InputError(
                    f"no call has the canonical id {quote(getattr(result, 'call_id', result))}",
                    path=f"results[{n}].call_id",
                    hint="use append() for results with a provider's id",
                )
        turn = Turn("tool", tuple(replace(result, metadata=None) for result in results))
        return self._write([self._check(turn, None, None, "$")], exactly=True)[0]

    def cancel(self, *call_ids: str, reason: str = "Cancelled by the user.", output: str = "") -> None:
        """Cancel calls. A cancel is final: a result that comes later is set aside. A finished call stays as it is.

        `output` is the tool's output until then.
        """
        for n, call_id in enumerate(call_ids):
            if self.ledger.get(call_id) is None:
                raise InputError(
                    f"no call has the canonical id {quote(call_id)}",
                    path=f"call_ids[{n}]",
                    hint="canonical ids are those of history.ledger",
                )
        found = [self.ledger[call_id] for call_id in call_ids]
        reason = reason if reason.strip() else CANCELLED
        content = f"{reason}\n{output}" if output else reason
        cancelled = [
            ToolResult(interaction.id, content, is_error=True, name=interaction.name, status="cancelled")
            for interaction in found
            if interaction.status == "pending"
        ]
        if cancelled:
            self.record(*cancelled)
        for interaction in found:
            if interaction.status != "pending":
                reason = f"the call was {interaction.status} already when it was cancelled"
                self._intake.report("ignored", reason, "policy", call_ids=(interaction.id,))

    def _check(self, turn: Turn, provider: str | None, key: str | None, path: str) -> _CheckedTurn:
        """The turn with all its fields checked, an issuer if it needs one, and the caller's key."""
        if not isinstance(turn, Turn):
            raise InputError(f"expected a Turn, got {quote(turn)}", path=path)
        if key is not None and (not isinstance(key, str) or not key):
            raise InputError("expected a string that is not empty", path=f"{path}.key")
        turn, changes = validate(turn, limits=self._limits, path=path)
        issuer = self._issuer(turn, provider, path)
        chosen = turn.key if key is None else fix_surrogates(str.__str__(key))
        return _CheckedTurn(replace(turn, issuer=issuer, key=chosen), changes, path)

    def _issuer(self, turn: Turn, provider: str | None, path: str) -> Issuer | None:
        """Who made the turn: its issuer, the `provider` argument, the one in flight, or the history's own."""
        bound = self._in_flight.target if self._in_flight is not None else None
        issuer = turn.issuer
        if issuer is None:
            was_kept = bool(turn.key) and all(call.metadata is not None for call in turn.calls)
            is_reply = (turn.role == "assistant" or bool(turn.calls)) and not was_kept
            known = self._resolve_name(provider, "provider") if provider is not None else None
            name = known if known is not None else self.target if is_reply else None
            if name is None and turn.calls and not was_kept:
                raise InputError(
                    "a turn with tool calls needs the provider that made it",
                    path=f"{path}.issuer",
                    hint="append(turn, provider=…), or History(provider=…)",
                )
            if name is None:
                return None
            issuer = Issuer(name)
        issuer = replace(issuer, provider=_stored_name(issuer.provider, f"{path}.issuer.provider"))
        if bound is not None and turn.role == "assistant" and issuer.provider != bound:
            raise HistoryError(
                f"the turn in flight is bound to {bound}; a turn of {issuer.provider} must wait until it ends"
            )
        return issuer

    def _write(self, arrivals: list[_CheckedTurn], *, exactly: bool = False) -> tuple[Turn, ...]:
        """Add checked turns. Everything that can be refused is refused before the first write."""
        self._refuse_taken_keys(arrivals)
        self._refuse_false_interactions(arrivals)
        length, entries = len(self._turns), len(self._intake.entries)
        for arrival in arrivals:
            for change in arrival.changes:
                self._intake.report("cloned", change.reason, "canonical", path=change.path)
            if arrival.turn.key:
                self._intake.keys.take(arrival.turn.key)
        try:
            return self._intake.take_all([arrival.turn for arrival in arrivals], exactly=exactly)
        except BaseException:
            self._intake = self._intake.roll_back(length, entries)
            raise

    def _refuse_taken_keys(self, arrivals: list[_CheckedTurn]) -> None:
        arriving: dict[str, Turn] = {}
        for turn, _, path in arrivals:
            if not turn.key:
                continue
            position = self._intake.positions.get(turn.key)
            other = self._turns[position] if position is not None else arriving.setdefault(turn.key, turn)
            if other is not turn and identity(other) != identity(turn):
                raise InputError(
                    f"a different turn has the key {quote(turn.key)}",
                    path=f"{path}.key",
                    hint="turn keys are unique in a history",
                )

    def _refuse_false_interactions(self, arrivals: list[_CheckedTurn]) -> None:
        """Refuse interactions in a turn's metadata that `compress` and `prune` could not have written."""
        for turn, _, path in arrivals:
            for n, removed in enumerate(turn.metadata.removed):
                known = self.ledger.get(removed.id)
                says = status_of(removed.result) if removed.result is not None else "pending"
                if not is_canonical(removed.id) or removed.status != says:
                    problem = "expected a canonical id, and the status of the result"
                elif known is not None and not is_same_call(known.call, removed.call):
                    problem = "another call has this id"
                else:
                    continue
                raise InputError(problem, path=f"{path}.metadata.removed[{n}]", hint="only compress() writes these")

    # --- cutting and branching ------------------------------------------------------------------

    def compressible(self, *, before: str | None = None) -> tuple[Turn, ...]:
        """The turns that `compress` would remove: what a summary has to cover.

        Those before the turn `before`, or all, except system and developer turns, and except what must stay
        so that no call is separated from its result. A pending call stays until it is cancelled.
        """
        wanted = len(self._turns) if before is None else self._position(before, "before")
        cut = safe_cut(self._turns, wanted, {interaction.id for interaction in self.ledger.pending})
        return tuple(turn for turn in self._turns[:cut] if turn.role not in _INSTRUCTIONS)

    def compress(
        self, *, summary: str, before: str | None = None, max_result_characters: int | None = None
    ) -> Turn | None:
        """Replace older turns by a summary, and return its turn, which is a user turn.

        The turns are those of `compressible(before=…)`; returns None if there are none. Their interactions stay
        in the ledger, with results of at most `max_result_characters`.
        """
        self._refuse_in_flight("compress")
        if not isinstance(summary, str) or not summary.strip():
            raise InputError("expected a string that is not blank", path="summary")
        if max_result_characters is not None:
            _refuse_no_length(max_result_characters, "max_result_characters")
        removed = self.compressible(before=before)
        wanted = self._turns if before is None else self._turns[: self._position(before, "before")]
        if removed != tuple(turn for turn in wanted if turn.role not in _INSTRUCTIONS):
            self._report_held_back(len(removed), wanted)
        if not removed:
            return None
        load = interactions_of(removed, {found.id: found for found in self.ledger})
        turn, _ = validate(Turn("user", (Text(summary),)), limits=self._limits)
        turn = replace(turn, key=self._intake.keys.new(turn))
        gone = {taken.key for taken in removed}
        cut = self._position(removed[-1].key, "before") + 1
        head = [kept for kept in self._turns[:cut] if kept.key not in gone]
        tail = without_cancels(self._turns[cut:], load)
        if max_result_characters is not None:
            load = {id: shorten_interaction(found, max_result_characters) for id, found in load.items()}
        kept = without_removed([*head, turn, *tail], load)
        kept[len(head)] = with_removed(turn, load)
        self._keep_only(kept)
        reason = f"a summary replaced {len(removed)} turn{'s' if len(removed) > 1 else ''}"
        fresh = tuple(call.id for taken in removed for call in taken.calls)
        self._intake.report("compressed", reason, "policy", turn_key=turn.key, call_ids=fresh)
        return self.turn(turn.key)

    def _report_held_back(self, taken: int, wanted: Sequence[Turn]) -> None:
        """Report which calls kept turns from being compressed."""
        calls = {call.id for turn in wanted for call in turn.calls}
        held = [found.id for found in self.ledger.pending if found.id in calls]
        cause = "a call is pending" if held else "calls stay with their results"
        reason = f"only {taken} of {len(wanted)} turns could be compressed: {cause}"
        self._intake.report("moved", reason, "policy", call_ids=tuple(held))

    def shorten_results(self, *, max_characters: int, before: str | None = None) -> int:
        """Cut long texts in the results of older turns. Returns how many results became shorter.

        `before` is the key of the first turn to leave alone.
        """
        self._refuse_in_flight("shorten results")
        _refuse_no_length(max_characters, "max_characters")
        end = len(self._turns) if before is None else self._position(before, "before")
        shorter: set[str] = set()
        turns = list(self._turns)
        for number, turn in enumerate(turns[:end]):
            blocks = [
                shorten_result(block, max_characters) if isinstance(block, ToolResult) else block
                for block in turn.blocks
            ]
            turns[number] = replace(turn, blocks=tuple(blocks))
            changed = (new for new, old in zip(blocks, turn.blocks, strict=True) if new is not old)
            shorter |= {block.call_id for block in changed if isinstance(block, ToolResult)}
        if shorter:
            carried = {
                removed.id: shorten_interaction(removed, max_characters)
                for turn in turns
                for removed in turn.metadata.removed
                if removed.id in shorter
            }
            self._keep_only([replace_removed(turn, carried) for turn in turns])
            reason = f"results were cut to {max_characters} characters"
            self._intake.report("compressed", reason, "policy", call_ids=tuple(sorted(shorter)))
        return len(shorter)

    def prune(self, *keys: str) -> None:
        """Remove exactly these turns. Their interactions stay in the ledger.

        A turn with a pending call cannot be removed, and one turn must stay.
        """
        self._refuse_in_flight("prune")
        removed = {self._position(key) for key in keys}
        for number in sorted(removed):
            for call in self._turns[number].calls:
                if self.ledger[call.id].status == "pending":
                    raise HistoryError(f"call {call.id} is pending: record its result or cancel it first")
        if len(removed) == len(self._turns) and self.ledger:
            raise HistoryError("no turn would be left to carry the interactions: compress with a summary")
        known = {found.id: found for found in self.ledger}
        touched = interactions_of([self._turns[number] for number in sorted(removed)], known)
        self._intake = self._intake.rebuild(cut_out(self._turns, removed, known))
        if touched:
            reason = "turns were removed; their calls and results stay in the ledger"
            self._intake.report("compressed", reason, "policy", call_ids=tuple(touched))

    def rewind(self, to: str | None) -> None:
        """Forget everything after a turn; `None` forgets everything."""
        self._refuse_in_flight("rewind")
        self._intake = self._intake.rebuild(self._turns[: 0 if to is None else self._position(to, "to") + 1])

    def fork(self, at: str | None = None) -> History:
        """An independent history with the same turns, up to and including the turn `at`."""
        end = len(self._turns) if at is None else self._position(at, "at") + 1
        branch = History(replace(self._base, turns=()), limits=self._limits, overrides=self._overrides)
        branch._provider = self._provider
        branch._intake.entries += self._intake.entries
        branch._keep_only(self._turns[:end])
        return branch

    # --- the turn in flight ---------------------------------------------------------------------

    def begin_turn(self, target: str | None = None, *, overrides: Overrides | None = None) -> TurnInFlight:
        """Start a model's turn and bind it to a provider until it and its tools are done.

        Without a target it goes to the one last chosen. `overrides` add to the known names.
        """
        self._refuse_in_flight("begin a turn")
        chosen = self._provider if target is None else self._resolve_name(target, "target", overrides)
        if chosen is None:
            raise InputError("expected the name of a provider", path="target")
        self._provider = chosen
        self._in_flight = TurnInFlight(self, chosen)
        return self._in_flight

    def switch(self, target: str, *, overrides: Overrides | None = None) -> None:
        """Choose the provider of the next turn. A turn in flight keeps its own."""
        chosen = self._resolve_name(target, "target", overrides)
        if self._in_flight is None:
            self._provider = chosen
            return
        self._next_provider = chosen
        reason = f"the switch to {chosen} waits for the turn in flight, which is bound to {self.target}"
        self._intake.report("deferred", reason, "policy")

    def _end_turn(self) -> None:
        """End the turn in flight. A switch that was requested meanwhile takes effect."""
        self._in_flight = None
        self._provider, self._next_provider = self._next_provider or self._provider, None

    def _refuse_in_flight(self, operation: str) -> None:
        if self._in_flight is not None:
            raise HistoryError(
                f"cannot {operation} while a turn is in flight on {self.target}: finish or cancel it first"
            )


class TurnInFlight:
    """A model's turn and the tools that it called, bound to one provider until `finish` or `cancel`.

    in flight ──finish()──▶ over      every call has its result
              ──cancel()──▶ over      every call still pending is cancelled

    history: the history that the turn is part of.
    target: the provider that it is bound to.
    """

    def __init__(self, history: History, target: str) -> None:
        self._history = history
        self._start = len(history)
        self.target = target

    @property
    def is_over(self) -> bool:
        return self._history.in_flight is not self

    @property
    def pending(self) -> tuple[Interaction, ...]:
        """The calls of this turn that have no result yet."""
        made = {call.id for turn in self._history.turns[self._start :] for call in turn.calls}
        return tuple(found for found in self._history.ledger.pending if found.id in made)

    def append(self, turn: Turn, *, key: str | None = None) -> Turn:
        """Add a turn to the history as part of this one."""
        self._refuse_over()
        return self._history.append(turn, key=key)

    def finish(self) -> None:
        """End the turn. Each of its calls must have a result."""
        self._refuse_over()
        if self.pending:
            waiting = ", ".join(interaction.id for interaction in self.pending)
            raise HistoryError(f"calls without a result: {waiting}; record results, or cancel the turn")
        self._history._end_turn()  # noqa: SLF001 - the other half of begin_turn

    def cancel(self, reason: str = "Cancelled by the user.") -> None:
        """End the turn now; calls that have no result are cancelled."""
        self._refuse_over()
        self._history.cancel(*(interaction.id for interaction in self.pending), reason=reason)
        self._history._end_turn()  # noqa: SLF001 - the other half of begin_turn

    def _refuse_over(self) -> None:
        if self.is_over:
            raise HistoryError("this turn is already over: begin another one")

    def __enter__(self) -> TurnInFlight:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel what an exception left open; otherwise finish."""
        if self.is_over:
            return
        if kind is None:
            self.finish()
            return
        try:
            self.cancel(f"Interrupted by {kind.__name__}.")
        except ToolglotError:  # the exception that is being raised says more
            self._history._end_turn()  # noqa: SLF001 - the other half of begin_turn


def _refuse_no_length(value: object, path: str) -> None:
    if type(value) is not int or value < 0:
        raise InputError(f"expected a whole number from 0, got {quote(value)}", path=path)


def _stored_name(name: str, path: str) -> str:
    """The name that turns are stored under, known or not."""
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME or fix_surrogates(name) is not name:
        raise InputError(f"expected the name of a provider, got {quote(name)}", path=path)
    return resolve(name)
