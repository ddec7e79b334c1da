"""A thread that owns a connection and runs the jobs of an event loop in groups, one transaction per group.

Everything that is queued when a transaction begins is part of it; each caller is notified after the commit. An error in
a group rolls the group back, and then each of its jobs runs alone, so that the failure of one does not affect another.

    queued ── BEGIN ──▶ running ── COMMIT ──▶ notified
                          │ error: ROLLBACK
                          └──▶ each alone ── COMMIT or ROLLBACK ──▶ notified

SQLite keeps using a file that was removed or replaced, and no other process would ever see what it writes there. So
before each group the thread checks which file has the name: a missing file is an error until it is back, and a new file
is opened.

Law: a queued job runs even if its caller no longer waits for it, and its caller is notified exactly once.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from toolglot.errors import InputError
from toolglot.store.interface import StoreError
from toolglot.store.jobs import GROUP_BYTES, JobGate, StoreJob, job_for, notify
from toolglot.store.sqlite_opening import identity_of, retry_while_busy, store_error

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], Any]


class Worker:
    """Runs jobs in a thread of its own, from any number of event loops, until it is closed."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        begin: str,
        *,
        file: str,
        seconds: float,
        max_waiting: int,
        reopen: Callable[[], sqlite3.Connection] | None = None,
    ) -> None:
        """reopen: a connection to the file that has the name now; None: it is in memory."""
        self.groups: int = 0
        """How many transactions were committed."""
        self._connection = connection
        self._begin_statement = begin
        self._file = file
        self._reopen = reopen
        self._identity = identity_of(file) if reopen is not None else None
        self._seconds = seconds
        self._queue: SimpleQueue[StoreJob[Work] | None] = SimpleQueue()
        self._gate = JobGate(file, max_waiting)
        self._thread = threading.Thread(target=self._serve, name=f"toolglot store: {begin}", daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[sqlite3.Connection], T], size: int = 0) -> T:
        """The result of `work`, once its transaction is committed."""
        job: StoreJob[Work] = job_for(work, size)
        self._gate.enter(job, self._queue.put)
        result: T = await job.future
        return result

    def end(self) -> None:
        """Refuse jobs from now on; earlier ones are done."""
        self._gate.close(lambda: self._queue.put(None))

    async def wait_for_end(self) -> None:
        """Return when the last job is done and the connection closed."""
        await asyncio.to_thread(self._thread.join)

    def _serve(self) -> None:
        is_open = True
        while is_open and (job := self._queue.get()) is not None:
            group = [job]
            error = self._begin()
            # Gathered only now: more jobs may have come while another process had the lock.
            is_open = self._gather(group)
            if error is None:
                self._carry_out(group)
            else:
                self._refuse(group, error)
            self._gate.leave(group)
            notify(group)
        self._connection.close()

    def _gather(self, group: list[StoreJob[Work]]) -> bool:
        """Add the queued jobs to a group; False: the queue has ended."""
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
            self._follow_file()
            retry_while_busy(lambda: self._connection.execute(self._begin_statement), self._seconds)
        except (sqlite3.Error, OSError, StoreError) as error:
            return error
        except InputError as error:  # the file was replaced by one that is not a store
            return StoreError(str(error))
        return None

    def _follow_file(self) -> None:
        """Reopen the connection if another file has the name."""
        if self._reopen is None:
            return
        identity = identity_of(self._file)
        if identity == self._identity:
            return
        if identity is None:
            raise StoreError(f"{self._file}: the store's file was removed; restore it, or restart toolglot")
        connection = self._reopen()
        self._connection.close()  # SQLite does not touch the journals of the new file
        self._connection, self._identity = connection, identity

    def _carry_out(self, group: list[StoreJob[Work]]) -> None:
        """Run a group inside a transaction, and end it."""
        try:
            for job in group:
                job.result = job.work(self._connection)
            self._connection.execute("COMMIT")
            self.groups += 1
        except Exception as error:  # noqa: BLE001 — the thread continues after any error, and the callers get it
            self._roll_back()
            if len(group) == 1:
                self._refuse(group, error)
            else:
                self._one_by_one(group)

    def _one_by_one(self, group: list[StoreJob[Work]]) -> None:
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

    def _refuse(self, group: Iterable[StoreJob[Work]], error: Exception) -> None:
        for job in group:
            job.error = store_error(error, self._file)
