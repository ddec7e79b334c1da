"""The log of a session in a store: what was said, what ran, and nothing that did not happen.

    log = await SessionLog.create(store, model="openai/gpt-5")
    log = await SessionLog.open(store, id)                      # one process at a time
    await log.add_turn(Turn("user", (Text("hello"),)))               # committed when it returns
    await log.close()

Every write to the history goes through `change`: it is done, what it did is written as entries, and it is undone
where the store did not take them. Entries that come while others are being written go together with the next commit.

    open ──close()──▶ closed
         ──another process wrote──▶ lost: every write is a `SessionTakenError`

Laws: the history never runs ahead of the log for longer than a write takes, and never after one failed. The entries
have consecutive numbers, and no process writes a number that is there: of two that believe they hold a session, one
is refused. A call that was in the log as started is never run again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from decimal import Decimal
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple, TypeVar

import anyio
from msgspec.structs import replace

from toolglot.conversation import Interaction, ToolCall, ToolResult, Turn, Usage
from toolglot.conversation.report import Entry as ReportEntry
from toolglot.errors import HistoryError, InputError, LimitError, quote
from toolglot.history.attempts import Attempt
from toolglot.history.history import History
from toolglot.runtime.log.claim import LEASE, SessionClaim, taken
from toolglot.runtime.log.entries import (
    Entry,
    Opened,
    Reset,
    Run,
    RunFinished,
    RunStarted,
    SessionDamagedError,
    SessionMissingError,
    SessionTakenError,
    Switched,
    Told,
    TurnsSaid,
    damaged,
    encode,
    encode_turn,
    is_beginning,
)
from toolglot.runtime.log.info import (
    FENCED,
    SessionInfo,
    check_id,
    find_info,
    first_words,
    keep_info,
    last_mark,
    mark_of,
    mark_over,
    new_id,
    remove_info,
    title_of,
)
from toolglot.runtime.log.memory_log import end_turn
from toolglot.runtime.log.replay import DEFAULT_LOG_LIMITS, Bound, LogLimits, LogRows, Standing, put_back
from toolglot.runtime.log.writer import LogWriter
from toolglot.runtime.scheduler import outcomes
from toolglot.store import Store, StoreConflictError, StoreError

__all__ = [
    "LogLimits",
    "SessionDamagedError",
    "SessionInfo",
    "SessionLog",
    "SessionMissingError",
    "SessionTakenError",
]

T = TypeVar("T")

INFO_SECONDS: Final = 0.5
"""The row in the list of sessions is written this long after the log at the most."""

CRASHED: Final = "The process that ran this session ended before the call did."
UNTOLD: Final = (
    "The tool was never started, or it is one without side effects and was interrupted: nothing was done, and it can be"
    " called again."
)
"""The log has only tools with side effects."""
FENCES: Final = 20
"""How often an older holder may write while a session is taken from him."""


class RecoveredCall(NamedTuple):
    """A call that had no result when the process that ran it ended, and what is known of it."""

    call: ToolCall
    how: Literal["finished", "unknown", "not_run"]
    """`unknown`: a tool with side effects was started. `not_run`: it was not, or it is one without side effects."""
    result: ToolResult
    """What the model is told."""


class SessionLog:
    """The log of one session, held by this process. `create` and `open` make one."""

    def __init__(
        self, store: Store, info: SessionInfo, claim: SessionClaim, rows: LogRows, standing: Standing, **settings: Any
    ) -> None:
        self._store = store
        self._info = info
        self._claim = claim
        self._rows = rows
        self._standing = standing
        self._owner: str = settings["owner"]
        self._clock: Callable[[], float] = settings["clock"]
        self._limits: LogLimits = settings["limits"]
        self._history = standing.history()
        self._told = self._queued_told = self._count_told()
        """How many entries of the history's report the log has, and has or is about to get."""
        self._writer = LogWriter(
            rows,
            standing,
            allowed=claim.confirm,
            conflict=self._conflicted,
            written=self._committed,
            undone=self._undone,
        )
        claim.watch(self._writer.is_untouched)
        self._opened: int = settings["opened"]
        self._info_writer: asyncio.Task[None] | None = None
        self._is_behind = False
        self._lost: SessionTakenError | None = None
        self._is_closed = False
        self._has_left = False
        """Whether the row is on its way that says so: nothing is written after it."""
        self.recovered: tuple[RecoveredCall, ...] = ()
        """The calls that a process left open which ended before they did; none of them is run again by itself."""

    # --- beginning and end ----------------------------------------------------------------------

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
        start: Reset | None = None,
    ) -> SessionLog:
        """A session that was not there before.

        `like` and `start` are for one that goes on from another: what the list shows of it, and what it begins with.
        """
        now = clock()
        id = new_id(now) if id is None else check_id(id)
        claim = SessionClaim(store, id, owner=owner, holder=holder, lease=lease, clock=clock)
        await claim.take()
        rows = LogRows(store, id, owner=owner, limits=limits)
        try:
            # Behind what is left of a session that had this id and was removed: its holder may not know of that.
            number = max(await rows.end(), await last_mark(store, id, owner=owner) + 1)
            base = like or SessionInfo(id="", title=title_of(title), model=model, created=now)
            info = replace(base, id=id, updated=now, first=number, last=-1, opened=number)
            await _announce(store, info, owner)
        except BaseException:
            await _given_back(claim)
            raise
        standing = Standing(number)
        standing.model = info.model
        log = cls(store, info, claim, rows, standing, owner=owner, clock=clock, limits=limits, opened=number)
        try:
            await log._begin(start)
        except BaseException:
            await log._unmake()
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
        """A session as it stands, for this process alone.

        Calls that a crash left without a result get one: what the tool gave, if it had ended; that it may have run,
        if it had started; that it never started, otherwise. `keep_open` names tools whose calls are answered by the
        caller: those stay open. `wait` is how many seconds to wait for another process to let go.
        """
        await find_info(store, id, owner=owner)
        claim = SessionClaim(store, id, owner=owner, holder=holder, lease=lease, clock=clock)
        await claim.take(wait=wait)
        try:
            info = await find_info(store, id, owner=owner)  # as its last holder left it
            rows = LogRows(store, id, owner=owner, limits=limits)
            standing = await read_standing(rows, info)
            await _fence(rows, standing, Opened(holder=claim.holder, at=clock()))
            opened = standing.next - 1
            over = [number for number in (info.opened, *standing.openings) if max(info.opened, 0) <= number < opened]
            await mark_over(store, id, over, owner=owner, until=clock() + FENCED)
        except BaseException:
            await _given_back(claim)
            raise
        log = cls(store, info, claim, rows, standing, owner=owner, clock=clock, limits=limits, opened=opened)
        try:
            await log._settle(keep_open)
        except BaseException:
            await log.close()
            raise
        return log

    async def close(self) -> None:
        """Write what is left to write and let others have the session."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            await self._end()
        finally:
            await _given_back(self._claim)

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
        """Read it; write to it through this log only."""
        return self._history

    @property
    def model(self) -> str:
        """The model that was chosen last."""
        return self._standing.model

    @property
    def usage(self) -> Usage:
        """What all answers of this session took, also those that were compressed away or rewound."""
        return self._standing.usage

    @property
    def cost(self) -> Decimal | None:
        """What is known of the cost; None where nothing is."""
        return self._standing.cost

    @property
    def info(self) -> SessionInfo:
        """What a list shows of this session."""
        standing = self._standing
        if not self._info.title:
            self._info = replace(self._info, title=first_words(standing.turns))
        return replace(
            self._info,
            model=standing.model,
            turns=len(standing.turns),
            first=standing.first,
            last=standing.next - 1,
            opened=standing.next if self._has_left else self._opened,
            tokens=(standing.usage.input_tokens or 0) + (standing.usage.output_tokens or 0),
            cost=standing.cost,
        )

    # --- writing --------------------------------------------------------------------------------

    async def add_turn(self, turn: Turn, *, key: str | None = None) -> Turn:
        """Write what was said; the turn as it is kept."""
        return await self.change(lambda history: history.append(turn, key=key))

    async def commit(self, attempt: Attempt, *, usage: Usage | None = None, cost: Decimal | None = None) -> Turn:
        """Write a model's answer and what it took: as it says itself, where no `usage` is given."""
        said = usage if usage is not None else attempt.reply.usage
        return await self.change(lambda _: attempt.commit(), usage=said, cost=cost)

    async def publish(self, results: Sequence[ToolResult]) -> Turn | None:
        """Write results of calls as one turn, in this order; None where there are none."""
        return await self.change(lambda history: history.record(*results)) if results else None

    async def end_turn(self, reason: str = "", known: Sequence[ToolResult] = ()) -> None:
        """End the turn in flight, if there is one. Calls that have no result get what is known of them, here or in the
        log: what the tool gave, or that it was started. The others are cancelled for good."""
        given = {result.call_id for result in known}
        runs = self._ahead().runs
        found = [found for found in self._history.ledger.pending if found.id in runs and found.id not in given]
        logged = [_outcome(call, runs.get(call.id), reason or CRASHED) for call in found]
        await self.change(lambda history: end_turn(history, reason, (*known, *logged)))

    async def change(
        self, change: Callable[[History], T], *, usage: Usage | None = None, cost: Decimal | None = None
    ) -> T:
        """Do anything to the history: it is committed when this returns, and undone when this raises."""
        self._refuse_over()
        before, told, bound = self._history.turns, self._count_told(), Bound.of(self._history)
        try:
            outcome = change(self._history)
            entries = self._entries_since(before, usage, cost)
            values = self._encoded(entries)
        except BaseException:
            put_back(self._history, before, told)
            bound.put_back(self._history)
            raise
        if entries:
            self._queued_told = self._count_told()
            changed, left = self._history.turns, Bound.of(self._history)
            try:
                await self._write(entries, values)
            except BaseException:
                # Also to one who was cancelled meanwhile: whether it failed is seen by what stands now.
                if self._history.turns != changed and Bound.of(self._history) == left:
                    bound.put_back(self._history)
                raise
        return outcome

    async def record_model(self, model: str) -> None:
        """From now on this model is asked."""
        if model != self._standing.model:
            await self._note(Switched(model=model))

    async def record_start(self, call: ToolCall, arguments: dict[str, Any]) -> None:
        """A tool is about to start: it is in the log when this returns."""
        await self._note(RunStarted(call_id=call.id, arguments=None if arguments == call.arguments else arguments))

    async def record_result(self, result: ToolResult) -> None:
        """A tool ended: a crash does not lose what it gave from now on."""
        await self._note(RunFinished(result=result))

    async def rename(self, title: str) -> None:
        """Give the session another title."""
        self._refuse_over()
        self._info = replace(self._info, title=title_of(title))
        await self._write_info()
        self._refuse_over()

    # --- entries --------------------------------------------------------------------------------

    def _entries_since(self, before: tuple[Turn, ...], usage: Usage | None, cost: Decimal | None) -> tuple[Entry, ...]:
        """What has to be written so that reading gives the history as it is now."""
        now = self._history.turns
        told = self._untold()
        if now[: len(before)] != before:
            return self._reset(now, usage, cost)
        new = now[len(before) :]
        if not new and usage is None and cost is None:
            return ()
        return (TurnsSaid(turns=new, told=told, usage=usage, cost=cost),)

    def _reset(self, turns: tuple[Turn, ...], usage: Usage | None, cost: Decimal | None) -> tuple[Entry, ...]:
        """All turns anew, in several entries where they are many bytes."""
        ahead = self._ahead()
        ahead.take(TurnsSaid(turns=(), usage=usage, cost=cost))
        open_calls = {found.id for found in self._history.ledger.pending}
        runs = tuple(run for call_id, run in ahead.runs.items() if call_id in open_calls)
        parts = _parts(turns, self._limits.max_entry_bytes // 2)
        told = self._history.report.entries[: self._count_told()][-self._limits.max_told :]
        start = Reset(turns=parts[0], runs=runs, told=told, usage=ahead.usage, cost=ahead.cost)
        return (start, *(TurnsSaid(turns=part) for part in parts[1:]))

    def _ahead(self) -> Standing:
        """Runs and what was spent, with what is still on its way to the store."""
        ahead = Standing()
        ahead.runs = dict(self._standing.runs)
        ahead.usage, ahead.cost = self._standing.usage, self._standing.cost
        for entry in self._writer.under_way():
            ahead.take(entry)
        return ahead

    def _encoded(self, entries: tuple[Entry, ...]) -> tuple[bytes, ...]:
        values = tuple(encode(entry) for entry in entries)
        for value in values:
            if len(value) > self._limits.max_entry_bytes:
                limit = f"max_entry_bytes, {self._limits.max_entry_bytes}"
                raise LimitError(f"{len(value)} bytes are more than {limit}", hint="shorten the turn, or its results")
        return values

    def _count_told(self) -> int:
        return len(self._history.report) - len(self._history.ledger.entries)

    def _untold(self) -> tuple[ReportEntry, ...]:
        return self._history.report.entries[self._queued_told : self._count_told()]

    async def _note(self, entry: Entry) -> None:
        self._refuse_over()
        entries = (entry,)
        await self._write(entries, self._encoded(entries))

    # --- what became of a write -----------------------------------------------------------------

    async def _write(self, entries: tuple[Entry, ...], values: tuple[bytes, ...]) -> None:
        await self._writer.write(entries, values, self._queued_told)

    def _committed(self, told: int) -> None:
        self._told = told
        self._touch()

    def _undone(self) -> None:
        """Take the history back to what is in the log."""
        self._queued_told = self._told
        put_back(self._history, self._standing.turns, self._told)

    async def _conflicted(self) -> SessionTakenError:
        """Another process has written: this log is at its end."""
        held_by = ""
        with suppress(StoreError):
            held_by = await self._claim.held_by()
        await self._claim.stop()
        if held_by:
            self._lost = taken(self.id, held_by)
        else:
            message = f"session {quote(self.id)}: another process has written to it since: open it again"
            self._lost = SessionTakenError(message, session=self.id)
        return self._lost

    def _refuse_over(self) -> None:
        if self._lost is not None:
            raise SessionTakenError(
                str(self._lost), session=self.id, host=self._lost.host, pid=self._lost.pid
            ) from None
        if self._is_closed:
            raise HistoryError(f"the log of session {quote(self.id)} is closed: open it again")

    # --- the row in the list --------------------------------------------------------------------

    def _touch(self) -> None:
        """The row is behind: write it soon, once for whatever happens until then."""
        self._info = replace(self._info, updated=self._clock())
        self._is_behind = True
        if self._info_writer is None or self._info_writer.done():
            self._info_writer = asyncio.create_task(self._write_info_soon(), name=f"toolglot list: {self.id}")

    async def _write_info_soon(self) -> None:
        while self._is_behind:
            await asyncio.sleep(INFO_SECONDS)
            self._is_behind = False
            with suppress(StoreError):  # the next write, or the next to open it, puts it right
                await self._write_info()

    async def _write_info(self, *, last: bool = False) -> None:
        """Unless another process has the session now: then this one is told so, and the row is the other's."""
        if self._lost is not None:
            return
        try:
            if not await self._claim.confirm():
                await self._conflicted()
            elif last or not self._has_left:
                await keep_info(self._store, self.info, owner=self._owner, unless=mark_of(self.id, self._opened))
        except StoreConflictError:
            await self._conflicted()

    # --- beginning and end, inside --------------------------------------------------------------

    async def _begin(self, start: Reset | None) -> None:
        """The first entries of a new log."""
        now = self._clock()
        await self._note(Opened(holder=self._claim.holder, at=now, new=True))
        await self._rows.clear(before=self._opened, until=now + FENCED)
        if start is not None:
            await self._take_over(start)
        await self._write_info()

    async def _unmake(self) -> None:
        """Take away what was to become a session, unless it is another's by now."""
        with anyio.CancelScope(shield=True), suppress(StoreError):
            await self._stop_info_writer()
            if self._lost is None:
                await self._rows.remove(self._opened)
                await remove_info(self._store, self.id, owner=self._owner)
        await _given_back(self._claim)

    async def _take_over(self, start: Reset) -> None:
        parts = _parts(start.turns, self._limits.max_entry_bytes // 2)
        first = replace(start, turns=parts[0], told=start.told[-self._limits.max_told :])
        entries: tuple[Entry, ...] = (first, *(TurnsSaid(turns=part) for part in parts[1:]))
        await self._write(entries, self._encoded(entries))
        self._history = self._standing.history()
        self._told = self._queued_told = self._count_told()

    async def _settle(self, keep_open: Collection[str]) -> None:
        """Give every call that a crash left open what is known of it, through the same boundary."""
        runs = self._standing.runs
        self.recovered = tuple(
            [
                _recovered(found, runs.get(found.id))
                for found in self._history.ledger.pending
                if found.name not in keep_open or found.id in runs
            ]
        )
        await self.publish([found.result for found in self.recovered])
        if not self.recovered:
            self._touch()

    async def _end(self) -> None:
        if self._lost is None and (told := self._untold()):
            entries = (Told(entries=told),)
            with suppress(SessionTakenError):
                await self._write(entries, self._encoded(entries))
        await self._writer.drained()
        if await self._stop_info_writer():
            self._has_left = True
            await self._write_info(last=True)

    async def _stop_info_writer(self) -> bool:
        """Whether there was one."""
        if self._info_writer is None:
            return False
        self._info_writer.cancel()
        with suppress(asyncio.CancelledError):
            await self._info_writer
        return True


def _recovered(found: Interaction, run: Run | None) -> RecoveredCall:
    how: Literal["finished", "unknown", "not_run"] = "not_run" if run is None else "unknown"
    if isinstance(run, RunFinished):
        how = "finished"
    return RecoveredCall(found.call, how, _outcome(found, run, CRASHED))


def _outcome(found: Interaction, run: Run | None, reason: str) -> ToolResult:
    """What the log knows of a call that has no result."""
    if isinstance(run, RunFinished):
        return run.result
    if run is not None:
        unknown = outcomes.unknown_outcome(found.call, reason)
        return unknown if run.arguments is None else outcomes.with_executed_arguments(unknown, run.arguments)
    text = f"{reason} {UNTOLD}"
    return ToolResult(found.id, text, is_error=True, name=found.name, status="cancelled")


async def read_standing(rows: LogRows, info: SessionInfo) -> Standing:
    """What the log of a session tells from its last reset on; from its beginning where the row points nowhere."""
    try:
        return await _read_from(rows, info, info.first)
    except SessionDamagedError as error:
        if await rows.has(info.first):
            raise
        with suppress(SessionDamagedError):
            return await _read_from(rows, info, None)
        raise error from None


async def _read_from(rows: LogRows, info: SessionInfo, first: int | None) -> Standing:
    standing = Standing(info.first)
    standing.model = info.model
    is_begun = False
    async for number, entry in rows.read(first, last=info.last):
        is_begun = is_begun or is_beginning(entry, number)
        if not is_begun and (first is not None or not isinstance(entry, Opened)):
            raise damaged(info.id, number, "is not the reset that the list of sessions names")
        standing.next = number
        standing.take(entry)
    return standing


async def _announce(store: Store, info: SessionInfo, owner: str) -> None:
    try:
        await keep_info(store, info, owner=owner, unless=info.id)
    except StoreConflictError:
        hint = "open it, or give another id"
        raise InputError(f"there is a session {quote(info.id)} already", path="$.id", hint=hint) from None


async def _fence(rows: LogRows, standing: Standing, opened: Opened) -> None:
    """Write an entry that an older holder's next write runs into; what he still wrote is read."""
    for _ in range(FENCES):
        # Whoever made the session may have got no further than its row: then it begins here.
        opened = replace(opened, new=standing.next == standing.first)
        try:
            await rows.append(standing.next, [encode(opened)])
        except StoreConflictError:
            async for _, entry in rows.read(standing.next, last=standing.next):
                standing.take(entry)
        else:
            standing.take(opened)
            return
    raise StoreError("another process writes to the session all the time, though it does not hold it")


def _parts(turns: tuple[Turn, ...], max_bytes: int) -> list[tuple[Turn, ...]]:
    """The turns in groups of at most so many bytes, or of one turn; at least one group."""
    parts: list[list[Turn]] = [[]]
    size = 0
    for turn in turns:
        more = len(encode_turn(turn))
        if parts[-1] and size + more > max_bytes:
            parts.append([])
            size = 0
        parts[-1].append(turn)
        size += more
    return [tuple(part) for part in parts]


async def _given_back(claim: SessionClaim) -> None:
    """A claim that cannot be given back runs out by itself."""
    with anyio.CancelScope(shield=True), suppress(StoreError):
        await claim.give_back()
