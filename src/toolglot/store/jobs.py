"""The jobs of a store: its pending work, the callers that wait for it, and a limit on how much is pending.

A job is made in the caller's event loop and done elsewhere; its future is resolved in the caller's loop.

Law: each caller gets its result exactly once, and a caller that is gone does not keep the others from theirs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from toolglot.store.interface import StoreError

W = TypeVar("W")

GROUP_BYTES: Final = 16 * 1024**2
"""The size from which a group takes no more jobs."""

JOB_BYTES: Final = 1024
"""What every job counts, besides its own bytes."""


@dataclass(slots=True, eq=False)
class StoreJob(Generic[W]):
    """Work for a transaction, and the future of its caller."""

    work: W
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    size: int
    result: Any = None
    error: Exception | None = None

    def notify(self) -> None:
        """In the caller's loop: resolve the future, unless the caller is gone."""
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


def job_for(work: W, size: int) -> StoreJob[W]:
    """A job of the running loop."""
    loop = asyncio.get_running_loop()
    return StoreJob(work, loop, loop.create_future(), size + JOB_BYTES)


class JobGate:
    """Counts pending jobs, and refuses more than the limit, or all once it is closed."""

    def __init__(self, location: str, max_waiting: int) -> None:
        self._location = location
        self._max_waiting = max_waiting
        self._lock = threading.Lock()
        self._waiting = 0
        self._is_closed = False

    def enter(self, job: StoreJob[W], put: Callable[[StoreJob[W]], None]) -> None:
        """Queue a job with `put`, unless the gate is closed or the limit is reached."""
        with self._lock:
            if self._is_closed:
                raise StoreError(f"{self._location}: the store is closed")
            if self._waiting and self._waiting + job.size > self._max_waiting:
                raise StoreError(f"{self._location}: too many writes are pending; try again")
            self._waiting += job.size
            put(job)

    def leave(self, group: Iterable[StoreJob[W]]) -> None:
        with self._lock:
            self._waiting -= sum(job.size for job in group)

    def close(self, last: Callable[[], None]) -> None:
        """Refuse jobs from now on; `last` is called once, after all earlier ones."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                last()


def notify(group: Iterable[StoreJob[W]]) -> None:
    """Resolve the futures of these jobs, waking every loop once."""
    loops: dict[asyncio.AbstractEventLoop, list[StoreJob[W]]] = {}
    for job in group:
        loops.setdefault(job.loop, []).append(job)
    for loop, jobs in loops.items():
        # A closed loop has no callers.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_notify_all, jobs)


def _notify_all(jobs: list[StoreJob[Any]]) -> None:
    for job in jobs:
        job.notify()
