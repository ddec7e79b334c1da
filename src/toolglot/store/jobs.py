"""What waits to be done by a store, who waits for it, and how much may wait.

A job is made in the asker's event loop, done elsewhere, and its asker told in his own loop.

Law: an asker is told exactly once, and nobody's going away keeps the others from being told.
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
"""A group takes no further job when it has this much."""

JOB_BYTES: Final = 1024
"""What every job counts, beside the bytes that it carries."""


@dataclass(slots=True, eq=False)
class StoreJob(Generic[W]):
    """Something to do inside a transaction, and who waits for it."""

    work: W
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


def job_for(work: W, size: int) -> StoreJob[W]:
    """A job of the loop that runs now."""
    loop = asyncio.get_running_loop()
    return StoreJob(work, loop, loop.create_future(), size + JOB_BYTES)


class JobGate:
    """Counts what waits, refuses what is too much, and everything once it is closed."""

    def __init__(self, place: str, max_waiting: int) -> None:
        self._place = place
        self._max_waiting = max_waiting
        self._lock = threading.Lock()
        self._waiting = 0
        self._is_closed = False

    def enter(self, job: StoreJob[W], put: Callable[[StoreJob[W]], None]) -> None:
        """Queues it with `put`: before the end of the queue, or not at all."""
        with self._lock:
            if self._is_closed:
                raise StoreError(f"{self._place}: the store is closed")
            if self._waiting and self._waiting + job.size > self._max_waiting:
                raise StoreError(f"{self._place}: too much waits to be written already")
            self._waiting += job.size
            put(job)

    def leave(self, group: Iterable[StoreJob[W]]) -> None:
        with self._lock:
            self._waiting -= sum(job.size for job in group)

    def close(self, last: Callable[[], None]) -> None:
        """Refuses what comes from now on; `last` is called once, after all that came before."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                last()


def tell(group: Iterable[StoreJob[W]]) -> None:
    """Wakes every loop once, however many of its jobs are done."""
    loops: dict[asyncio.AbstractEventLoop, list[StoreJob[W]]] = {}
    for job in group:
        loops.setdefault(job.loop, []).append(job)
    for loop, jobs in loops.items():
        # A loop that was closed has nobody left who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_tell_all, jobs)


def _tell_all(jobs: list[StoreJob[Any]]) -> None:
    for job in jobs:
        job.tell()
