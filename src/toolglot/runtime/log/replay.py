"""From the entries of a log to what stands: turns, runs without a result, the report, what was spent.

Law: reading takes the entries one after another, once, and skips none. Numbers have no gap.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct

from toolglot.conversation import Turn, Usage
from toolglot.conversation.report import Entry as ReportEntry
from toolglot.errors import InputError, LimitError, quote
from toolglot.history.history import History, TurnInFlight
from toolglot.runtime.log.entries import (
    LAST_NUMBER,
    Entry,
    Opened,
    Reset,
    Run,
    RunFinished,
    RunStarted,
    Switched,
    Told,
    TurnsSaid,
    damaged,
    decode,
    key_of,
    opening,
)
from toolglot.store import Row, Store, StoreConflictError

T = TypeVar("T")

KIND: Final = "turns"
PAGE_ROWS: Final = 256
FOR_EVER: Final = math.inf


class LogLimits(Struct, frozen=True, kw_only=True):
    """How large the log of a session may be; each refusal names its limit."""

    max_entry_bytes: int = 32 * 1024**2
    """Of one entry. What a compression leaves is written in several, where it is more."""
    max_session_bytes: int = 1024**3
    """Of all entries from the last reset on."""
    max_told: int = 2000
    """Entries of the report that a reset takes along, the newest."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            limit = getattr(self, name)
            if type(limit) is not int or limit < 1:
                raise InputError("expected a whole number from 1", path=name)


DEFAULT_LOG_LIMITS: Final = LogLimits()


class Standing:
    """What the entries read so far tell."""

    def __init__(self, number: int = 0) -> None:
        self.next: int = number
        """The number of the entry that comes."""
        self.first: int = number
        """The number of the last reset, or of the entry with which the session began."""
        self.openings: list[int] = []
        """The numbers of the entries with which processes took the session."""
        self.turns: list[Turn] = []
        self.runs: dict[str, Run] = {}
        self.told: list[ReportEntry] = []
        self.usage: Usage = Usage()
        self.cost: Decimal | None = None
        self.model: str = ""

    def take(self, entry: Entry) -> None:
        """Take in the next entry."""
        number = self.next
        self.next += 1
        match entry:
            case Reset():
                self.first = number
                self.turns, self.told = list(entry.turns), list(entry.told)
                self.runs = {}
                self.runs_of(entry.runs)
                self.usage, self.cost = entry.usage or Usage(), entry.cost
            case TurnsSaid():
                self.turns += entry.turns
                self.told += entry.told
                self.answered(entry.turns)
                self.usage, self.cost = added(self.usage, entry.usage), summed(self.cost, entry.cost)
            case RunStarted() | RunFinished():
                self.runs_of((entry,))
            case Switched():
                self.model = entry.model
            case Told():
                self.told += entry.entries
            case Opened():
                self.openings.append(number)
                if entry.new:
                    self.first = number

    def runs_of(self, runs: Iterable[Run]) -> None:
        for run in runs:
            call_id = run.call_id if isinstance(run, RunStarted) else run.result.call_id
            if isinstance(run, RunFinished) or call_id not in self.runs:
                self.runs[call_id] = run

    def answered(self, turns: Iterable[Turn]) -> None:
        """Runs whose results are in a turn are of no further interest."""
        for turn in turns:
            for result in turn.results:
                self.runs.pop(result.call_id, None)

    def history(self) -> History:
        """The history of these turns, and its report."""
        history = History()
        put_back(history, self.turns, 0)
        for entry in self.told:
            history.tell(entry)
        return history


def put_back(history: History, turns: Sequence[Turn], told: int) -> None:
    """Make a history that of exactly these turns, which one has kept before, and cut its report to so many entries."""
    # As the history itself goes back to where it was before a write that failed; they were checked when they came.
    if history.turns != tuple(turns):
        history._intake = history._intake.replaced(turns)  # noqa: SLF001
    del history._intake.entries[told:]  # noqa: SLF001


class Bound(NamedTuple):
    """Which turn of a history is in flight, and whom that and the next one go to."""

    in_flight: TurnInFlight | None
    provider: str | None
    next_provider: str | None

    @classmethod
    def of(cls, history: History) -> Bound:
        return cls(history._in_flight, history._provider, history._next_provider)  # noqa: SLF001

    def put_back(self, history: History) -> None:
        """A turn that was ended by a write which failed is in flight again."""
        history._in_flight, history._provider, history._next_provider = self  # noqa: SLF001


class LogRows:
    """The rows of one session's log in a store."""

    def __init__(self, store: Store, session: str, *, owner: str = "", limits: LogLimits = DEFAULT_LOG_LIMITS) -> None:
        self._store = store
        self._session = session
        self._limits = limits
        self._client = f"{owner}/{session}" if owner else session

    async def append(self, number: int, values: Sequence[bytes]) -> None:
        """Write entries from this number on, all or none; a `StoreConflictError` if one of them is there."""
        if number + len(values) > LAST_NUMBER:
            raise LimitError(f"session {quote(self._session)} has too many entries", hint="fork it")
        rows = {key_of(number + offset): value for offset, value in enumerate(values)}
        await self._store.keep(KIND, self._client, rows, until=FOR_EVER, unless=tuple(rows))

    async def are_there(self, number: int, values: Sequence[bytes]) -> bool:
        """Whether exactly these entries are there."""
        rows = {key_of(number + offset): value for offset, value in enumerate(values)}
        return await self._store.find(KIND, self._client, list(rows)) == rows

    async def read(self, first: int | None, *, last: int = -1) -> AsyncIterator[tuple[int, Entry]]:
        """The entries from this number on, or from the first that there is, with their numbers. There must be those up
        to `last`. Before the first there may be fences, with gaps: what was between them has been taken away."""
        size = 0
        number = first or 0
        is_begun = first is not None
        async for key, value in self._from(number):
            if not is_begun:
                number = number_of(key)
                is_begun = opening(value) is None
            if key != key_of(number):
                raise damaged(self._session, number, "is missing")
            size += len(value)
            if size > self._limits.max_session_bytes:
                limit = f"max_session_bytes, {self._limits.max_session_bytes}"
                raise LimitError(f"session {quote(self._session)} is larger than {limit}", hint="give larger LogLimits")
            yield number, decode(value, session=self._session, number=number)
            number += 1
        if number <= last:
            raise damaged(self._session, number, f"is missing, and all up to {last}")

    async def has(self, number: int) -> bool:
        """Whether there is an entry with this number."""
        return bool(await self._store.find(KIND, self._client, [key_of(number)]))

    async def end_at(self, number: int, *, new: bool) -> bool:
        """Whether there is no entry from this number on, and, unless the session is new, one right before it."""
        first = number if new else number - 1
        return [key async for key, _ in self._from(first)] == [key_of(n) for n in range(first, number)]

    async def end(self) -> int:
        """The number behind all that is there."""
        number = 0
        async for key, _ in self._from(0):
            number = max(number, number_of(key) + 1)
        return number

    async def remove(self, number: int) -> None:
        """Take away the entries from this number on."""
        await self._remove([key async for key, _ in self._from(number)])

    async def clear(self, *, before: int, until: float) -> int:
        """Take away the entries before a number; how many. Those with which a process took the session over stay until
        then: whoever held it before, and still believes so, would write there."""
        keys: list[str] = []
        fences: dict[str, bytes] = {}
        async for key, value in self._from(0):
            if key >= key_of(before):
                break
            opened = opening(value)
            if opened is None or opened.new:
                keys.append(key)
            else:
                fences[key] = value
        for part in batched(list(fences.items()), PAGE_ROWS):
            await self._store.keep(KIND, self._client, dict(part), until=until)
        return await self._remove(keys)

    async def bury(self, fence: bytes, *, until: float) -> list[int]:
        """Take all entries away, but let one stand behind them for a time: a process that still believes to hold the
        session runs into it. Returns the numbers with which processes have taken the session."""
        openings: list[int] = []
        number = 0
        while True:
            async for key, value in self._from(number):
                number = max(number, number_of(key) + 1)
                if opening(value) is not None:
                    openings.append(number_of(key))
            key = key_of(number)
            with suppress(StoreConflictError):
                await self._store.keep(KIND, self._client, {key: fence}, until=until, unless=(key,))
                break
        await self.clear(before=number, until=until)
        return openings

    async def _from(self, number: int) -> AsyncIterator[tuple[str, bytes]]:
        async for row in rows_of(self._store, KIND, self._client, after=key_of(number - 1) if number else ""):
            if row.value is not None:
                yield row.key, row.value

    async def _remove(self, keys: list[str]) -> int:
        gone = 0
        for part in batched(keys, PAGE_ROWS):
            gone += await self._store.remove(KIND, self._client, part)
        return gone


def batched(items: list[T], size: int) -> Iterator[list[T]]:
    """The items, so many at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))


def number_of(key: str) -> int:
    return int(key) if key.isascii() and key.isdigit() else 0


async def rows_of(store: Store, kind: str, client: str, *, after: str = "") -> AsyncIterator[Row]:
    """All rows of a client from a key on, a page at a time; a page holds fewer where rows are large."""
    place = f"{client}\0{after}" if after else ""
    limit = PAGE_ROWS
    while True:
        try:
            page = await store.scan(kind, client=client, after=place, limit=limit)
        except LimitError:
            if limit == 1:
                raise
            limit //= 4
            continue
        for row in page:
            yield row
        if len(page) < limit:
            return
        place = page[-1].place


def added(one: Usage, other: Usage | None) -> Usage:
    """Both together; what neither says stays unsaid."""
    if other is None:
        return one
    return Usage(
        input_tokens=_sum(one.input_tokens, other.input_tokens),
        output_tokens=_sum(one.output_tokens, other.output_tokens),
        cache_read_tokens=_sum(one.cache_read_tokens, other.cache_read_tokens),
        cache_write_tokens=_sum(one.cache_write_tokens, other.cache_write_tokens),
        reasoning_tokens=_sum(one.reasoning_tokens, other.reasoning_tokens),
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


def summed(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return other if one is None else one if other is None else one + other
