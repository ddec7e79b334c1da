"""Sends a message to a session, shows its events, and stops it on signals and timeouts.

`chat` and `run` both do this here, through `Session.stream`, without a loop or writes of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, Final, NamedTuple, TypeVar, cast

from toolglot.cli.screen.foreground import Foreground
from toolglot.runtime.scheduler.outcomes import CANCELLED
from toolglot.runtime.session.events import RunFinished, RunResult, SessionEvent
from toolglot.runtime.session.session import Session

T = TypeVar("T")
TIMED_OUT: Final = "Cancelled: timeout."


class TurnResult(NamedTuple):
    """The reply, and how it ended."""

    answer: RunResult
    timed_out: bool = False
    """Whether it was stopped by the timeout."""


class Stopper:
    """Stops what runs in a session, from anywhere in its event loop."""

    def __init__(self, session: Session, on_stop: Callable[[], None] | None = None) -> None:
        self._session = session
        self._on_stop = on_stop
        self._tasks: set[asyncio.Task[None]] = set()
        self.count: int = 0
        """The number of calls of `stop`."""
        self.timed_out: bool = False

    def stop(self, reason: str = CANCELLED) -> None:
        self.count += 1
        if self.count == 1 and self._on_stop is not None:
            self._on_stop()
        task = asyncio.ensure_future(self._session.cancel(reason))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def time_out(self) -> None:
        self.timed_out = True
        self.stop(TIMED_OUT)

    async def wait_until_cancelled(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks)


@contextmanager
def stopping(
    session: Session,
    foreground: Foreground | None,
    timeout: float | None = None,
    on_second_signal: Callable[[int], None] | None = None,
    on_stop: Callable[[], None] | None = None,
) -> Iterator[Stopper]:
    """Cancel what runs in the session on a signal or timeout, while the block runs. `on_stop` is called when that
    begins, `on_second_signal` with the number of each further signal."""
    stopper = Stopper(session, on_stop)

    def on_signal(number: int) -> None:
        if stopper.count and on_second_signal is not None:
            on_second_signal(number)
        stopper.stop()

    before = foreground.interrupted if foreground is not None else None
    timer = asyncio.get_running_loop().call_later(timeout, stopper.time_out) if timeout is not None else None
    if foreground is not None:
        foreground.interrupted = on_signal
    try:
        yield stopper
    finally:
        if timer is not None:
            timer.cancel()
        if foreground is not None:
            foreground.interrupted = before


async def send_message(
    session: Session,
    message: str | None,
    show: Callable[[SessionEvent], None],
    *,
    foreground: Foreground | None = None,
    timeout: float | None = None,
    on_second_signal: Callable[[int], None] | None = None,
    on_stop: Callable[[], None] | None = None,
) -> TurnResult:
    """Send a message, show the events, and wait for the reply. None: continue without a message."""
    with stopping(session, foreground, timeout, on_second_signal, on_stop) as stopper:
        answer = RunResult(stop="cancelled")
        events = cast("AsyncGenerator[SessionEvent, Any]", session.stream(message))
        async with aclosing(events):
            async for event in events:
                show(event)
                if isinstance(event, RunFinished):
                    answer = event.result
        await stopper.wait_until_cancelled()
        return TurnResult(answer, stopper.timed_out)


async def run_stoppable(session: Session, foreground: Foreground, work: Awaitable[T]) -> T:
    """Run another operation of a session, which signals can cancel."""
    with stopping(session, foreground) as stopper:
        done = await work
        await stopper.wait_until_cancelled()
        return done
