"""A thread that owns a connection: what an event loop asks of it is done in groups, one transaction a group.

Whatever is queued when a transaction begins is part of it; each asker hears when it is committed. An error in a group
undoes the group, and then each of its jobs is tried alone, so that one asker's failure is not another's.

    queued ── BEGIN ──▶ running ── COMMIT ──▶ told
                          │ error: ROLLBACK
                          └──▶ each alone ── COMMIT or ROLLBACK ──▶ told

Law: a job that was queued is run whether or not somebody still waits for it, and its asker is told exactly once.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from toolglot.store.interface import StoreError
from toolglot.store.opening import patiently, told

T = TypeVar("T")

GROUP_BYTES: Final = 16 * 1024**2
"""A group takes no further job when it has this much."""

JOB_BYTES: Final = 1024
"""What every job counts, beside the bytes that it carries."""


@dataclass(slots=True, eq=False)
class Job:
    """Something to do inside a transaction, and who waits for it."""

    work: Callable[[sqlite3.Connection], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    size: int
    result: Any = None
    error: Exception | None = None

    def tell(self) -> None:
        """In the asker's loop: he may have gone."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Worker:
    """Runs jobs in a thread of its own, from any number of event loops, until it is closed."""

    def __init__(
        self, connection: sqlite3.Connection, begin: str, *, file: str, seconds: float, max_waiting: int
    ) -> None:
        self.groups = 0
        """How many transactions were committed."""
        self._connection = connection
        self._begin_statement = begin
        self._file = file
        self._seconds = seconds
        self._max_waiting = max_waiting
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._door = threading.Lock()
        self._waiting = 0
        self._is_closed = False
        self._thread = threading.Thread(target=self._serve, name=f"toolglot store: {begin}", daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[sqlite3.Connection], T], size: int = 0) -> T:
        """What `work` gives, once its transaction is committed."""
        loop = asyncio.get_running_loop()
        job = Job(work, loop, loop.create_future(), size + JOB_BYTES)
        with self._door:
            if self._is_closed:
                raise StoreError(f"{self._file}: the store is closed")
            if self._waiting and self._waiting + job.size > self._max_waiting:
                raise StoreError(f"{self._file}: too much waits for the disk already")
            self._waiting += job.size
            self._queue.put(job)
        result: T = await job.future
        return result

    def end(self) -> None:
        """Refuses what comes from now on; what came before is done."""
        with self._door:
            if not self._is_closed:
                self._is_closed = True
                self._queue.put(None)

    async def ended(self) -> None:
        """Returns when the last job is done and the connection closed."""
        await asyncio.to_thread(self._thread.join)

    def _serve(self) -> None:
        is_open = True
        while is_open and (job := self._queue.get()) is not None:
            group = [job]
            error = self._begin()
            # Gathered only now: while another process held the file, more has come.
            is_open = self._gather(group)
            if error is None:
                self._carry_out(group)
            else:
                self._refuse(group, error)
            self._tell(group)
        self._connection.close()

    def _gather(self, group: list[Job]) -> bool:
        """Adds what is queued; False when the end of the queue is."""
        size = group[0].size
        with suppress(Empty):
            while size < GROUP_BYTES:
                job = self._queue.get_nowait()
                if job is None:
                    return False
                group.append(job)
                size += job.size
        return True

    def _begin(self) -> Exception | None:
        try:
            patiently(lambda: self._connection.execute(self._begin_statement), self._seconds)
        except sqlite3.Error as error:
            return error
        return None

    def _carry_out(self, group: list[Job]) -> None:
        """Inside a transaction; ends it."""
        try:
            for job in group:
                job.result = job.work(self._connection)
            self._connection.execute("COMMIT")
            self.groups += 1
        except Exception as error:  # noqa: BLE001 — whatever it was, the thread goes on and the askers hear of it
            self._roll_back()
            if len(group) == 1:
                self._refuse(group, error)
            else:
                self._one_by_one(group)

    def _one_by_one(self, group: list[Job]) -> None:
        for job in group:
            error = self._begin()
            if error is None:
                self._carry_out([job])
            else:
                self._refuse([job], error)

    def _roll_back(self) -> None:
        # Some errors have ended the transaction already.
        with suppress(sqlite3.Error):
            self._connection.execute("ROLLBACK")

    def _refuse(self, group: Iterable[Job], error: Exception) -> None:
        for job in group:
            job.error = told(error, self._file)

    def _tell(self, group: list[Job]) -> None:
        """Wakes every loop once, however many of its jobs are done."""
        with self._door:
            self._waiting -= sum(job.size for job in group)
        loops: dict[asyncio.AbstractEventLoop, list[Job]] = {}
        for job in group:
            loops.setdefault(job.loop, []).append(job)
        for loop, jobs in loops.items():
            # A loop that was closed has nobody left who waits.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_tell_all, jobs)


def _tell_all(jobs: list[Job]) -> None:
    for job in jobs:
        job.tell()
