"""The log of a session in a store.

    log = await SessionLog.create(store, model="openai/gpt-5")
    log = await SessionLog.open(store, id)                      # one process at a time
    await log.add_turn(Turn("user", (Text("hello"),)))          # committed when it returns
    await log.close()

Every write goes through `change`: it changes the history, writes the difference as entries, and undoes the change if
the store refuses them. Entries that arrive during a commit go into the next one.

    open ──close()──▶ closed
         ──another process wrote──▶ lost: every write raises `SessionTakenError`

Laws: the history is ahead of the log only while a write is under way, and never after one failed. Entries have
consecutive numbers, and no process writes a number that exists: if two processes assume that they hold a session,
one of them is refused. A call that was recorded as started never runs again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from decimal import Decimal
from types import TracebackType
from typing import Any, Final, TypeVar

import anyio
from msgspec.structs import replace

from toolglot.conversation import ToolCall, ToolResult, Turn, Usage
from toolglot.conversation.report import Entry as ReportEntry
from toolglot.errors import HistoryError, InputError, LimitError, quote
from toolglot.history.attempts import Attempt
from toolglot.history.history import History
from toolglot.runtime.log.claim import LEASE, SessionClaim, taken_error
from toolglot.runtime.log.entries import (
    LogEntry,
    LogOpened,
    LogReset,
    ModelChosen,
    ReportAdded,
    SessionDamagedError,
    SessionMissingError,
    SessionTakenError,
    ToolFinished,
    ToolStarted,
    TurnsAdded,
    encode,
    split_turns,
)
from toolglot.runtime.log.info import (
    FENCE_SECONDS,
    SessionInfo,
    check_id,
    find_info,
    last_marked_entry,
    lost_mark,
    mark_lost,
    new_session_id,
    remove_info,
    title_from_turns,
    title_of,
    write_info,
)
from toolglot.runtime.log.memory_log import end_turn
from toolglot.runtime.log.recovery import CRASHED, RecoveredCall, logged_result, recover_call
from toolglot.runtime.log.replay import SessionState, TurnBinding, read_state, restore_turns
from toolglot.runtime.log.rows import DEFAULT_LOG_LIMITS, LogLimits, LogRows
from toolglot.runtime.log.writer import LogWriter
from toolglot.store import Store, StoreConflictError, StoreError

__all__ = [
    "LogLimits",
    "RecoveredCall",
    "SessionDamagedError",
    "SessionInfo",
    "SessionLog",
    "SessionMissingError",
    "SessionTakenError",
]

T = TypeVar("T")

INFO_SECONDS: Final = 0.5
"""The row in the list of sessions is written at most this long after the log."""

FENCES: Final = 20
"""How often an earlier holder may still write while this process opens the session."""


class SessionLog:
    """The log of one session, held by this process. `create` and `open` make one."""

    def __init__(
        self, store: Store, info: SessionInfo, claim: SessionClaim, rows: LogRows, state: SessionState, **settings: Any
    ) -> None:
        self._store = store
        self._info = info
        self._claim = claim
        self._rows = rows
        self._state = state
        self._owner: str = settings["owner"]
        self._clock: Callable[[], float] = settings["clock"]
        self._limits: LogLimits = settings["limits"]
        self._history = state.history()
        self._report_count = self._queued_report_count = self._count_report()
        """How many entries of the history's report are committed, and how many are committed or queued."""
        self._writer = LogWriter(
            rows,
            state,
            is_allowed=claim.confirm,
            conflict_error=self._on_conflict,
            on_commit=self._on_commit,
            on_failure=self._on_failure,
        )
        claim.watch(self._writer.is_unchanged)
        self._opened: int = settings["opened"]
        self._info_writer: asyncio.Task[None] | None = None
        self._info_is_stale = False
        self._lost: SessionTakenError | None = None
        self._is_closed = False
        self._is_leaving = False
        """Whether the last row, which says that the log is closed, is being written. None follows it."""
        self.recovered: tuple[RecoveredCall, ...] = ()
        """The calls that an earlier process left open. None of them runs again by itself."""

    # --- opening and closing --------------------------------------------------------------------

    @classmethod
    async def create(
        cls,
        store: Store,
        *,
        id: str | None = None,
        model: str = "",
        title: str = "",
        owner: str = "",
        holder: str | None = None,
        lease: float = LEASE,
        limits: LogLimits = DEFAULT_LOG_LIMITS,
        clock: Callable[[], float] = time.time,
        like: SessionInfo | None = None,
        start: LogReset | None = None,
    ) -> SessionLog:
        """Create a session.

        `like` and `start` are for a session that continues another: its row in the list, and its first state.
        """
        now = clock()
        id = new_session_id(now) if id is None else check_id(id)
        claim = SessionClaim(store, id, owner=owner, holder=holder, lease=lease, clock=clock)
        await claim.take()
        rows = LogRows(store, id, owner=owner, limits=limits)
        try:
            # After what is left of a removed session with this id: its holder may not know about the removal.
            number = max(await rows.end(), await last_marked_entry(store, id, owner=owner) + 1)
            base = like or SessionInfo(id="", title=title_of(title), model=model, created=now)
            info = replace(base, id=id, updated=now, first=number, last=-1, opened=number)
            await _announce(store, info, owner)
        except BaseException:
            await _release(claim)
            raise
        state = SessionState(number)
        state.model = info.model
        log = cls(store, info, claim, rows, state, owner=owner, clock=clock, limits=limits, opened=number)
        try:
            await log._write_first(start)
        except BaseException:
            await log._discard()
            raise
        return log

    @classmethod
    async def open(
        cls,
        store: Store,
        id: str,
        *,
        owner: str = "",
        holder: str | None = None,
        wait: float = 0.0,
        keep_open: Collection[str] = (),
        lease: float = LEASE,
        limits: LogLimits = DEFAULT_LOG_LIMITS,
        clock: Callable[[], float] = time.time,
    ) -> SessionLog:
        """Open a session for this process alone.

        Calls that a crash left without a result get one: the tool's own, if it had ended; that it may have run, if it
        had started; otherwise that it never started. Calls of the tools in `keep_open` stay open: the caller supplies
        their results. `wait`: how many seconds to wait for another process to release the session.
        """
        await find_info(store, id, owner=owner)
        claim = SessionClaim(store, id, owner=owner, holder=holder, lease=lease, clock=clock)
        await claim.take(wait=wait)
        try:
            info = await find_info(store, id, owner=owner)  # as its last holder left it
            rows = LogRows(store, id, owner=owner, limits=limits)
            state = await read_state(rows, info)
            await _fence(rows, state, LogOpened(holder=claim.holder, at=clock()))
            opened = state.next - 1
            over = [number for number in (info.opened, *state.openings) if max(info.opened, 0) <= number < opened]
            await mark_lost(store, id, over, owner=owner, until=clock() + FENCE_SECONDS)
        except BaseException:
            await _release(claim)
            raise
        log = cls(store, info, claim, rows, state, owner=owner, clock=clock, limits=limits, opened=opened)
        try:
            await log._recover_open_calls(keep_open)
        except BaseException:
            await log.close()
            raise
        return log

    async def close(self) -> None:
        """Write what is left to write, and release the session."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await self._finish()
        finally:
            await _release(self._claim)

    async def __aenter__(self) -> SessionLog:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- reading --------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self._info.id

    @property
    def history(self) -> History:
        """The history. Write to it only through this log."""
        return self._history

    @property
    def model(self) -> str:
        """The model that was chosen last."""
        return self._state.model

    @property
    def usage(self) -> Usage:
        """The tokens of all replies of this session, also of turns that were compressed or rewound."""
        return self._state.usage

    @property
    def cost(self) -> Decimal | None:
        """The known part of the cost in US dollars; None if nothing is known."""
        return self._state.cost

    @property
    def info(self) -> SessionInfo:
        """The session's row in the list."""
        state = self._state
        if not self._info.title:
            self._info = replace(self._info, title=title_from_turns(state.turns))
        return replace(
            self._info,
            model=state.model,
            turns=len(state.turns),
            first=state.first,
            last=state.next - 1,
            opened=state.next if self._is_leaving else self._opened,
            tokens=(state.usage.input_tokens or 0) + (state.usage.output_tokens or 0),
            cost=state.cost,
        )

    # --- writing --------------------------------------------------------------------------------

    async def add_turn(self, turn: Turn, *, key: str | None = None) -> Turn:
        """Write a message; the turn as it is kept."""
        return await self.change(lambda history: history.append(turn, key=key))

    async def commit(self, attempt: Attempt, *, usage: Usage | None = None, cost: Decimal | None = None) -> Turn:
        """Write the reply of a model and what it cost. Without `usage` the reply's own counts."""
        spent = usage if usage is not None else attempt.reply.usage
        return await self.change(lambda _: attempt.commit(), usage=spent, cost=cost)

    async def publish(self, results: Sequence[ToolResult]) -> Turn | None:
        """Write results of calls as one turn, in this order; None without results."""
        return await self.change(lambda history: history.record(*results)) if results else None

    async def end_turn(self, reason: str = "", known: Sequence[ToolResult] = ()) -> None:
        """End the open turn, if there is one. Calls without a result get the one that `known` or the log has: the
        tool's own, or that it was started. The others are cancelled."""
        supplied = {result.call_id for result in known}
        runs = self._pending_state().runs
        found = [found for found in self._history.ledger.pending if found.id in runs and found.id not in supplied]
        logged = [logged_result(call, runs.get(call.id), reason or CRASHED) for call in found]
        await self.change(lambda history: end_turn(history, reason, (*known, *logged)))

    async def change(
        self, change: Callable[[History], T], *, usage: Usage | None = None, cost: Decimal | None = None
    ) -> T:
        """Change the history. The change is committed when this returns, and undone if it raises."""
        self._refuse_closed()
        before, report_count, binding = self._history.turns, self._count_report(), TurnBinding.of(self._history)
        try:
            outcome = change(self._history)
            entries = self._entries_since(before, usage, cost)
            values = self._encode(entries)
        except BaseException:
            restore_turns(self._history, before, report_count)
            binding.restore(self._history)
            raise
        if entries:
            self._queued_report_count = self._count_report()
            changed, left = self._history.turns, TurnBinding.of(self._history)
            try:
                await self._write(entries, values)
            except BaseException:
                # A cancelled caller gets here too. The turns show whether the write itself failed.
                if self._history.turns != changed and TurnBinding.of(self._history) == left:
                    binding.restore(self._history)
                raise
        return outcome

    async def record_model(self, model: str) -> None:
        """Record that this model is called from now on."""
        if model != self._state.model:
            await self._record(ModelChosen(model=model))

    async def record_start(self, call: ToolCall, arguments: dict[str, Any]) -> None:
        """Record that a tool is about to start."""
        await self._record(ToolStarted(call_id=call.id, arguments=None if arguments == call.arguments else arguments))

    async def record_result(self, result: ToolResult) -> None:
        """Record the result of a tool, so that a crash does not lose it."""
        await self._record(ToolFinished(result=result))

    async def rename(self, title: str) -> None:
        """Change the title of the session."""
        self._refuse_closed()
        self._info = replace(self._info, title=title_of(title))
        await self._write_info()
        self._refuse_closed()

    # --- entries --------------------------------------------------------------------------------

    def _entries_since(
        self, before: tuple[Turn, ...], usage: Usage | None, cost: Decimal | None
    ) -> tuple[LogEntry, ...]:
        """The entries that turn the written state into the current one."""
        now = self._history.turns
        report = self._new_report_entries()
        if now[: len(before)] != before:
            return self._reset(now, usage, cost)
        new = now[len(before) :]
        if not new and usage is None and cost is None:
            return ()
        return (TurnsAdded(turns=new, report=report, usage=usage, cost=cost),)

    def _reset(self, turns: tuple[Turn, ...], usage: Usage | None, cost: Decimal | None) -> tuple[LogEntry, ...]:
        """A reset with all turns, in several entries if they are large."""
        ahead = self._pending_state()
        ahead.apply(TurnsAdded(turns=(), usage=usage, cost=cost))
        open_calls = {found.id for found in self._history.ledger.pending}
        runs = tuple(run for call_id, run in ahead.runs.items() if call_id in open_calls)
        parts = split_turns(turns, self._limits.max_entry_bytes // 2)
        report = self._history.report.entries[: self._count_report()][-self._limits.max_report_entries :]
        start = LogReset(turns=parts[0], runs=runs, report=report, usage=ahead.usage, cost=ahead.cost)
        return (start, *(TurnsAdded(turns=part) for part in parts[1:]))

    def _pending_state(self) -> SessionState:
        """The runs and the spending, including uncommitted entries."""
        ahead = SessionState()
        ahead.runs = dict(self._state.runs)
        ahead.usage, ahead.cost = self._state.usage, self._state.cost
        for entry in self._writer.uncommitted_entries():
            ahead.apply(entry)
        return ahead

    def _encode(self, entries: tuple[LogEntry, ...]) -> tuple[bytes, ...]:
        values = tuple(encode(entry) for entry in entries)
        for value in values:
            if len(value) > self._limits.max_entry_bytes:
                limit = f"max_entry_bytes, {self._limits.max_entry_bytes}"
                raise LimitError(f"{len(value)} bytes are more than {limit}", hint="shorten the turn, or its results")
        return values

    def _count_report(self) -> int:
        return len(self._history.report) - len(self._history.ledger.entries)

    def _new_report_entries(self) -> tuple[ReportEntry, ...]:
        return self._history.report.entries[self._queued_report_count : self._count_report()]

    async def _record(self, entry: LogEntry) -> None:
        self._refuse_closed()
        entries = (entry,)
        await self._write(entries, self._encode(entries))

    # --- after a write --------------------------------------------------------------------------

    async def _write(self, entries: tuple[LogEntry, ...], values: tuple[bytes, ...]) -> None:
        await self._writer.write(entries, values, self._queued_report_count)

    def _on_commit(self, report_count: int) -> None:
        self._report_count = report_count
        self._schedule_info()

    def _on_failure(self) -> None:
        """Reset the history to what is in the log."""
        self._queued_report_count = self._report_count
        restore_turns(self._history, self._state.turns, self._report_count)

    async def _on_conflict(self) -> SessionTakenError:
        """Another process has written: this log cannot write any more."""
        held_by = ""
        with suppress(StoreError):
            held_by = await self._claim.current_holder()
        await self._claim.stop()
        if held_by:
            self._lost = taken_error(self.id, held_by)
        else:
            message = f"session {quote(self.id)}: another process has written to it since: open it again"
            self._lost = SessionTakenError(message, session=self.id)
        return self._lost

    def _refuse_closed(self) -> None:
        if self._lost is not None:
            raise SessionTakenError(
                str(self._lost), session=self.id, host=self._lost.host, pid=self._lost.pid
            ) from None
        if self._is_closed:
            raise HistoryError(f"the log of session {quote(self.id)} is closed: open it again")

    # --- the row in the list --------------------------------------------------------------------

    def _schedule_info(self) -> None:
        """Write the row soon, once for everything that happens until then."""
        self._info = replace(self._info, updated=self._clock())
        self._info_is_stale = True
        if self._info_writer is None or self._info_writer.done():
            self._info_writer = asyncio.create_task(self._write_info_soon(), name=f"toolglot list: {self.id}")

    async def _write_info_soon(self) -> None:
        while self._info_is_stale:
            await asyncio.sleep(INFO_SECONDS)
            self._info_is_stale = False
            with suppress(StoreError):  # the next write, or the next process that opens the session, corrects it
                await self._write_info()

    async def _write_info(self, *, last: bool = False) -> None:
        """Write the row, unless another process has the session now."""
        if self._lost is not None:
            return
        try:
            if not await self._claim.confirm():
                await self._on_conflict()
            elif last or not self._is_leaving:
                await write_info(self._store, self.info, owner=self._owner, unless=lost_mark(self.id, self._opened))
        except StoreConflictError:
            await self._on_conflict()

    # --- opening and closing, inside ------------------------------------------------------------

    async def _write_first(self, start: LogReset | None) -> None:
        """The first entries of a new log."""
        now = self._clock()
        await self._record(LogOpened(holder=self._claim.holder, at=now, new=True))
        await self._rows.clear(before=self._opened, until=now + FENCE_SECONDS)
        if start is not None:
            await self._write_start(start)
        await self._write_info()

    async def _discard(self) -> None:
        """Remove a session that could not be created, unless another process has it by now."""
        with anyio.CancelScope(shield=True), suppress(StoreError):
            await self._stop_info_writer()
            if self._lost is None:
                await self._rows.remove(self._opened)
                await remove_info(self._store, self.id, owner=self._owner)
        await _release(self._claim)

    async def _write_start(self, start: LogReset) -> None:
        parts = split_turns(start.turns, self._limits.max_entry_bytes // 2)
        first = replace(start, turns=parts[0], report=start.report[-self._limits.max_report_entries :])
        entries: tuple[LogEntry, ...] = (first, *(TurnsAdded(turns=part) for part in parts[1:]))
        await self._write(entries, self._encode(entries))
        self._history = self._state.history()
        self._report_count = self._queued_report_count = self._count_report()

    async def _recover_open_calls(self, keep_open: Collection[str]) -> None:
        """Give every call that a crash left open the result that the log has for it."""
        runs = self._state.runs
        self.recovered = tuple(
            [
                recover_call(found, runs.get(found.id))
                for found in self._history.ledger.pending
                if found.name not in keep_open or found.id in runs
            ]
        )
        await self.publish([found.result for found in self.recovered])
        if not self.recovered:
            self._schedule_info()

    async def _finish(self) -> None:
        if self._lost is None and (report := self._new_report_entries()):
            entries = (ReportAdded(entries=report),)
            with suppress(SessionTakenError):
                await self._write(entries, self._encode(entries))
        await self._writer.wait_until_idle()
        if await self._stop_info_writer():
            self._is_leaving = True
            await self._write_info(last=True)

    async def _stop_info_writer(self) -> bool:
        """Stop the task that writes the row; whether there was one."""
        if self._info_writer is None:
            return False
        self._info_writer.cancel()
        with suppress(asyncio.CancelledError):
            await self._info_writer
        return True


async def _announce(store: Store, info: SessionInfo, owner: str) -> None:
    try:
        await write_info(store, info, owner=owner, unless=info.id)
    except StoreConflictError:
        hint = "open it, or choose another id"
        raise InputError(f"there is a session {quote(info.id)} already", path="$.id", hint=hint) from None


async def _fence(rows: LogRows, state: SessionState, opened: LogOpened) -> None:
    """Write the entry that an earlier holder's next write conflicts with, after what it has still written."""
    for _ in range(FENCES):
        # The process that created the session may have written only its row: then it begins here.
        opened = replace(opened, new=state.next == state.first)
        try:
            await rows.append(state.next, [encode(opened)])
        except StoreConflictError:
            async for _, entry in rows.read(state.next, last=state.next):
                state.apply(entry)
        else:
            state.apply(opened)
            return
    raise StoreError("another process keeps writing to the session although it does not hold it")


async def _release(claim: SessionClaim) -> None:
    """Release a claim. One that cannot be released expires by itself."""
    with anyio.CancelScope(shield=True), suppress(StoreError):
        await claim.release()
