"""Entries on their way into a log: in order, in groups, each writer told when his are committed.

Whatever waits when a commit begins goes with it. A task of its own writes, so that nobody's cancellation stops a
commit half way.

    waiting ──▶ being written ──▶ committed: the writer hears of it
                     │ refused: he and everybody behind him hear why, and nothing of theirs is in the log
                     └──▶ undone

Law: what is behind a write that failed fails too: it may rest on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import anyio

from toolglot.runtime.log.entries import Entry
from toolglot.runtime.log.replay import LogRows, Standing
from toolglot.store import StoreConflictError, StoreError

GROUP_ENTRIES: Final = 1000
GROUP_BYTES: Final = 64 * 1024**2
"""What one commit takes; more waits for the next."""


class _Write(NamedTuple):
    entries: tuple[Entry, ...]
    values: tuple[bytes, ...]
    mark: int
    done: asyncio.Future[None]


class LogWriter:
    """Writes entries behind those that stand."""

    def __init__(
        self,
        rows: LogRows,
        standing: Standing,
        *,
        allowed: Callable[[], Awaitable[bool]],
        conflict: Callable[[], Awaitable[Exception]],
        written: Callable[[int], None],
        undone: Callable[[], None],
    ) -> None:
        """`allowed` is asked before each commit, and `conflict` says why it is not, or why a number is taken; `written`
        gets the mark of each write that is committed; `undone` is called when writes failed, before those who wait are
        told."""
        self._rows = rows
        self._standing = standing
        self._allowed = allowed
        self._conflict = conflict
        self._written = written
        self._undone = undone
        self._waiting: list[_Write] = []
        self._writing: list[_Write] = []
        self._task: asyncio.Task[None] | None = None
        self._at_the_store = asyncio.Lock()

    async def write(self, entries: tuple[Entry, ...], values: tuple[bytes, ...], mark: int) -> None:
        """Returns when the entries are committed, also to one who is cancelled meanwhile."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Write(entries, values, mark, done))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain(), name="toolglot log")
        await until_done(done)

    def under_way(self) -> Iterator[Entry]:
        """The entries that are not committed yet."""
        for write in (*self._writing, *self._waiting):
            yield from write.entries

    async def is_untouched(self) -> bool:
        """Whether nobody else has written behind what stands."""
        async with self._at_the_store:  # what is on its way there would be taken for another's
            return await self._rows.end_at(self._standing.next, new=not self._standing.openings)

    async def drained(self) -> None:
        """Returns when nothing is under way."""
        if self._task is not None:
            await until_done(self._task)

    async def _drain(self) -> None:
        try:
            while self._waiting:
                self._writing = self._next_group()
                error = await self._commit([value for write in self._writing for value in write.values])
                if error is None:
                    self._succeed()
                else:
                    self._fail(error)
        except BaseException:
            # The loop ends, and with it everybody who waits.
            for write in (*self._writing, *self._waiting):
                write.done.cancel()
            raise

    def _next_group(self) -> list[_Write]:
        """The writes that wait, as many as one commit takes; at least one."""
        entries = size = count = 0
        for write in self._waiting:
            entries += len(write.values)
            size += sum(map(len, write.values))
            if count and (entries > GROUP_ENTRIES or size > GROUP_BYTES):
                break
            count += 1
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group

    async def _commit(self, values: Sequence[bytes]) -> Exception | None:
        """Write entries; what went wrong, if they are not there now."""
        try:
            if not await self._allowed():
                return await self._conflict()
            async with self._at_the_store:
                return await self._append(values)
        except Exception as error:  # noqa: BLE001 - whoever waits hears of it
            return error

    async def _append(self, values: Sequence[bytes]) -> Exception | None:
        number = self._standing.next
        try:
            await self._rows.append(number, values)
        except StoreConflictError:
            return await self._conflict()
        except StoreError as error:
            # It may have been written all the same: a connection can break after the commit.
            with suppress(StoreError):
                if await self._rows.are_there(number, values):
                    return None
            return error
        return None

    def _succeed(self) -> None:
        group, self._writing = self._writing, []
        for write in group:
            for entry in write.entries:
                self._standing.take(entry)
            self._written(write.mark)
            write.done.set_result(None)

    def _fail(self, error: Exception) -> None:
        failed = (*self._writing, *self._waiting)
        self._writing, self._waiting = [], []
        self._undone()
        for write in failed:
            write.done.set_exception(error)


async def until_done(future: asyncio.Future[None]) -> None:
    """Wait for a write to end, also when the waiting task is cancelled: what is under way cannot be taken back."""
    cancelled: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled is not None:
        if not future.cancelled():
            future.exception()
        raise cancelled
    future.result()
