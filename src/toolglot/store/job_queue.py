"""A thread with an event loop of its own, where a store on a server does its work, and the queues of its jobs.

A driver's connection belongs to one event loop; a store serves callers in any number of them. So the connections are in
this thread, and jobs of the callers' loops go through queues: a group has all jobs that are queued when it starts, and
a queue runs as many groups at once as it is wide.

    caller's loop: queued ──▶ the thread's loop: a group is run ──▶ caller's loop: its future is resolved

Law: a queued job is run whether or not its caller still waits; but a queue that only reads (`skips_cancelled`) leaves
out cancelled jobs.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar

from toolglot.store.interface import StoreError
from toolglot.store.jobs import JobGate, StoreJob, job_for, notify

W = TypeVar("W")
CarryOut = Callable[[list[StoreJob[W]]], Awaitable[None]]
"""Sets the result or the error of each job of a group."""
CLOSE_SECONDS: Final = 10.0
"""Seconds that a store waits for its server when it is closed, from one response to the next."""


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed, as for the gateway: a round trip costs a third less."""
    try:
        factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    except ImportError:
        return None
    return factory


class LoopThread:
    """The thread and its loop; it ends when all jobs of its queues are done."""

    def __init__(self, name: str, shut: Callable[[], Awaitable[None]]) -> None:
        self._shut = shut
        self._queues: list[JobQueue[Any]] = []
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()
        self._is_ready.wait()

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._run())

    def call(self, act: Callable[[], None]) -> None:
        """From any thread: call a function in this loop."""
        self._loop.call_soon_threadsafe(act)

    def adopt(self, queue: JobQueue[Any]) -> None:
        self._queues.append(queue)

    async def close(self) -> None:
        """Return when the last job is done and the connections are closed; raises if the server is silent for
        `CLOSE_SECONDS`: then pending jobs are lost."""
        for queue in self._queues:
            queue.end()
        await asyncio.to_thread(self._join)

    def _join(self) -> None:
        done = -1
        while done != (done := sum(queue.groups for queue in self._queues)):
            self._thread.join(CLOSE_SECONDS)
            if not self._thread.is_alive():
                return
        location = self._queues[0].location
        raise StoreError(f"{location}: closed without a response of the server; pending writes may be lost")

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._is_ready.set()
        await self._stopping.wait()
        for queue in self._queues:
            await queue.wait_for_end()
        await self._shut()

    def stop(self) -> None:
        """In this loop: a queue has its last job. The others are about to."""
        self._stopping.set()


class JobQueue(Generic[W]):
    """A queue of jobs for one kind of work."""

    def __init__(
        self,
        thread: LoopThread,
        carry_out: CarryOut[W],
        *,
        location: str,
        max_waiting: int,
        width: int,
        group_bytes: int,
        skips_cancelled: bool = False,
    ) -> None:
        self.groups: int = 0
        """The number of groups that were run."""
        self.location = location
        self._skips_cancelled = skips_cancelled
        self._loop_thread = thread
        self._carry_out = carry_out
        self._gate = JobGate(location, max_waiting)
        self._width = width
        self._group_bytes = group_bytes
        self._queue: deque[StoreJob[W]] = deque()
        self._is_over = asyncio.Event()
        self._has_last = False
        self._running: set[asyncio.Task[None]] = set()
        thread.adopt(self)

    async def run(self, work: W, size: int = 0) -> Any:
        """The result of the work, once it is done."""
        job = job_for(work, size)
        self._gate.enter(job, self._put)
        return await job.future

    def end(self) -> None:
        """Refuse jobs from now on; earlier ones are done."""
        self._gate.close(lambda: self._loop_thread.call(self._last))

    async def wait_for_end(self) -> None:
        """In the thread's loop: return when the last job is done."""
        await self._is_over.wait()

    def _put(self, job: StoreJob[W]) -> None:
        # One call for all jobs that are queued before the thread's loop gets to it.
        self._queue.append(job)
        if len(self._queue) == 1:
            self._loop_thread.call(self._begin)

    def _last(self) -> None:
        self._has_last = True
        self._loop_thread.stop()
        self._begin()

    def _begin(self) -> None:
        if self._skips_cancelled and len(self._running) < self._width:
            self._skip()
        if self._queue and len(self._running) < self._width:
            task = asyncio.get_running_loop().create_task(self._serve(self._gather()))
            self._running.add(task)
            task.add_done_callback(self._done)
            self._begin()  # a wide queue can run more
        elif self._has_last and not self._running:
            self._is_over.set()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._begin()

    async def _serve(self, group: list[StoreJob[W]]) -> None:
        try:
            await self._carry_out(group)
            self.groups += 1
        except Exception as error:  # noqa: BLE001 — whatever it was, the queue goes on and the callers get the error
            for job in group:
                job.error = error
        self._gate.leave(group)
        notify(group)

    def _skip(self) -> None:
        """Leave out cancelled jobs at the head of the queue."""
        while self._queue and self._queue[0].future.cancelled():
            self._gate.leave([self._queue.popleft()])

    def _gather(self) -> list[StoreJob[W]]:
        group = [self._queue.popleft()]
        size = group[0].size
        while self._queue and size < self._group_bytes:
            group.append(self._queue.popleft())
            size += group[-1].size
        return group
