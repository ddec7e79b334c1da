"""A thread with an event loop of its own, where a store that speaks to a server does its work.

A driver's connection belongs to one event loop; a store serves any number of them, one after the other or at once. So
the connections live here, and what the askers' loops want goes through lanes: whatever is queued when a group begins is
part of it, and a lane carries out so many groups at once as it is wide.

    asker's loop: queued ──▶ home's loop: a group is carried out ──▶ asker's loop: told

Law: a job that was queued is carried out whether or not somebody still waits for it; but a lane that only reads
(`skips_forsaken`) leaves out what nobody waits for any more.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar

from toolglot.store.interface import StoreError
from toolglot.store.jobs import JobGate, StoreJob, job_for, tell

W = TypeVar("W")
CarryOut = Callable[[list[StoreJob[W]]], Awaitable[None]]
"""Gives each job of a group its result or its error."""
CLOSE_SECONDS: Final = 10.0
"""How long a store that is closed waits for its server, from one answer to the next."""


class Home:
    """The thread and its loop; ends when all that its lanes have taken is done."""

    def __init__(self, name: str, shut: Callable[[], Awaitable[None]]) -> None:
        self._shut = shut
        self._lanes: list[Lane[Any]] = []
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name=name, daemon=True)
        self._thread.start()
        self._is_ready.wait()

    def call(self, act: Callable[[], None]) -> None:
        """From any thread: done in the home's loop."""
        self._loop.call_soon_threadsafe(act)

    def adopt(self, lane: Lane[Any]) -> None:
        self._lanes.append(lane)

    async def close(self) -> None:
        """Returns when the last job is done and the connections are closed; raises when the server says nothing for
        `CLOSE_SECONDS`: then what waits is lost."""
        for lane in self._lanes:
            lane.end()
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        done = -1
        while done != (done := sum(lane.groups for lane in self._lanes)):
            self._thread.join(CLOSE_SECONDS)
            if not self._thread.is_alive():
                return
        place = self._lanes[0].place
        raise StoreError(f"{place}: closed without an answer of the server: what was to be written may be lost")

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._is_ready.set()
        await self._stopping.wait()
        for lane in self._lanes:
            await lane.ended()
        await self._shut()

    def stop(self) -> None:
        """In the home's loop: a lane has taken its last job. The others are about to."""
        self._stopping.set()


class Lane(Generic[W]):
    """A queue of jobs for one kind of work."""

    def __init__(
        self,
        home: Home,
        carry_out: CarryOut[W],
        *,
        place: str,
        max_waiting: int,
        width: int,
        group_bytes: int,
        skips_forsaken: bool = False,
    ) -> None:
        self.groups: int = 0
        """How many have been carried out."""
        self.place = place
        self._skips_forsaken = skips_forsaken
        self._home = home
        self._carry_out = carry_out
        self._door = JobGate(place, max_waiting)
        self._width = width
        self._group_bytes = group_bytes
        self._queue: deque[StoreJob[W]] = deque()
        self._is_over = asyncio.Event()
        self._has_last = False
        self._running: set[asyncio.Task[None]] = set()
        home.adopt(self)

    async def run(self, work: W, size: int = 0) -> Any:
        """What the work gives, once it is carried out."""
        job = job_for(work, size)
        self._door.enter(job, self._put)
        return await job.future

    def end(self) -> None:
        """Refuses what comes from now on; what came before is done."""
        self._door.close(lambda: self._home.call(self._last))

    async def ended(self) -> None:
        """In the home's loop: returns when the last job is done."""
        await self._is_over.wait()

    def _put(self, job: StoreJob[W]) -> None:
        # One call for all that is queued before the home's loop comes to it.
        self._queue.append(job)
        if len(self._queue) == 1:
            self._home.call(self._begin)

    def _last(self) -> None:
        self._has_last = True
        self._home.stop()
        self._begin()

    def _begin(self) -> None:
        if self._skips_forsaken and len(self._running) < self._width:
            self._skip()
        if self._queue and len(self._running) < self._width:
            task = asyncio.get_running_loop().create_task(self._serve(self._gather()))
            self._running.add(task)
            task.add_done_callback(self._done)
            self._begin()  # a wide lane has room for what is left
        elif self._has_last and not self._running:
            self._is_over.set()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._begin()

    async def _serve(self, group: list[StoreJob[W]]) -> None:
        try:
            await self._carry_out(group)
            self.groups += 1
        except Exception as error:  # noqa: BLE001 — whatever it was, the lane goes on and the askers hear of it
            for job in group:
                job.error = error
        self._door.leave(group)
        tell(group)

    def _skip(self) -> None:
        """Leaves out the first jobs as far as nobody waits for them."""
        while self._queue and self._queue[0].future.cancelled():
            self._door.leave([self._queue.popleft()])

    def _gather(self) -> list[StoreJob[W]]:
        group = [self._queue.popleft()]
        size = group[0].size
        while self._queue and size < self._group_bytes:
            group.append(self._queue.popleft())
            size += group[-1].size
        return group
