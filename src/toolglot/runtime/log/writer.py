"""Writes entries to a log: in order, in groups. A write returns when it is committed.

Each commit takes all entries that are waiting. The writer has its own task, so that a cancelled caller does not
interrupt a commit.

    waiting ──▶ being written ──▶ committed: the write returns
                     └──▶ failed: this write and all later ones raise, and none of them is in the log

Law: all writes that wait behind a failed one fail too: they may depend on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import anyio

from toolglot.runtime.log.entries import LogEntry
from toolglot.runtime.log.replay import SessionState
from toolglot.runtime.log.rows import LogRows
from toolglot.store import StoreConflictError, StoreError

GROUP_ENTRIES: Final = 1000
GROUP_BYTES: Final = 64 * 1024**2
"""The size of one commit; more waits for the next."""


class PendingWrite(NamedTuple):
    entries: tuple[LogEntry, ...]
    values: tuple[bytes, ...]
    mark: int
    done: asyncio.Future[None]


class LogWriter:
    """Appends entries to a log."""

    def __init__(
        self,
        rows: LogRows,
        state: SessionState,
        *,
        is_allowed: Callable[[], Awaitable[bool]],
        conflict_error: Callable[[], Awaitable[Exception]],
        on_commit: Callable[[int], None],
        on_failure: Callable[[], None],
    ) -> None:
        """`is_allowed` is called before each commit. `conflict_error` returns the error if it is not allowed, or if an
        entry's number is taken. `on_commit` gets the mark of each committed write. `on_failure` is called when writes
        failed, before they raise."""
        self._rows = rows
        self._state = state
        self._is_allowed = is_allowed
        self._conflict_error = conflict_error
        self._on_commit = on_commit
        self._on_failure = on_failure
        self._waiting: list[PendingWrite] = []
        self._current_group: list[PendingWrite] = []
        self._task: asyncio.Task[None] | None = None
        self._store_lock = asyncio.Lock()

    async def write(self, entries: tuple[LogEntry, ...], values: tuple[bytes, ...], mark: int) -> None:
        """Write entries; returns when they are committed, even if the caller is cancelled meanwhile."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(PendingWrite(entries, values, mark, done))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_all(), name="toolglot log")
        await wait_uninterrupted(done)

    def uncommitted_entries(self) -> Iterator[LogEntry]:
        """The entries that are not committed yet."""
        for write in (*self._current_group, *self._waiting):
            yield from write.entries

    async def is_unchanged(self) -> bool:
        """Whether no other process has appended entries."""
        async with self._store_lock:  # a commit under way would look like another's
            return await self._rows.ends_at(self._state.next, new=not self._state.openings)

    async def wait_until_idle(self) -> None:
        """Wait until nothing is being written."""
        if self._task is not None:
            await wait_uninterrupted(self._task)

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                self._current_group = self._next_group()
                error = await self._commit([value for write in self._current_group for value in write.values])
                if error is None:
                    self._succeed()
                else:
                    self._fail(error)
        except BaseException:
            # The event loop is closing: end all writes that wait.
            for write in (*self._current_group, *self._waiting):
                write.done.cancel()
            raise

    def _next_group(self) -> list[PendingWrite]:
        """The waiting writes that fit into one commit; at least one."""
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
        """Write entries; the error if they were not written."""
        try:
            if not await self._is_allowed():
                return await self._conflict_error()
            async with self._store_lock:
                return await self._append(values)
        except Exception as error:  # noqa: BLE001 - raised by the writes that wait
            return error

    async def _append(self, values: Sequence[bytes]) -> Exception | None:
        number = self._state.next
        try:
            await self._rows.append(number, values)
        except StoreConflictError:
            return await self._conflict_error()
        except StoreError as error:
            # They may have been written anyway: a connection can break after the commit.
            with suppress(StoreError):
                if await self._rows.contains(number, values):
                    return None
            return error
        return None

    def _succeed(self) -> None:
        group, self._current_group = self._current_group, []
        for write in group:
            for entry in write.entries:
                self._state.apply(entry)
            self._on_commit(write.mark)
            write.done.set_result(None)

    def _fail(self, error: Exception) -> None:
        failed = (*self._current_group, *self._waiting)
        self._current_group, self._waiting = [], []
        self._on_failure()
        for write in failed:
            write.done.set_exception(error)


async def wait_uninterrupted(future: asyncio.Future[None]) -> None:
    """Wait for a future even if the waiting task is cancelled: a write that has begun cannot be undone."""
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
