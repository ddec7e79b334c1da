"""Something is said to a session, from a command: told live, stopped in order by signals and by the clock.

Both commands that run sessions do it here, and only here: through `Session.stream`, with no loop and no writes of
their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any, Final, NamedTuple, TypeVar, cast

from toolglot.cli.screen.foreground import Foreground
from toolglot.runtime.session.events import Answer, Ended, Event
from toolglot.runtime.session.session import CANCELLED, Session

T = TypeVar("T")
LATE: Final = "Cancelled: the time that was given is over."


class TurnResult(NamedTuple):
    """What came of it."""

    answer: Answer
    is_late: bool = False
    """Whether it was stopped because its time was over."""


class Stopper:
    """Stops what runs in a session, from anywhere in its loop."""

    def __init__(self, session: Session, stopped: Callable[[], None] | None = None) -> None:
        self._session = session
        self._stopped = stopped
        self._tasks: set[asyncio.Task[None]] = set()
        self.count: int = 0
        """How often it was told to."""
        self.is_late: bool = False

    def stop(self, reason: str = CANCELLED) -> None:
        self.count += 1
        if self.count == 1 and self._stopped is not None:
            self._stopped()
        task = asyncio.ensure_future(self._session.cancel(reason))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def late(self) -> None:
        self.is_late = True
        self.stop(LATE)

    async def settled(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks)


@contextmanager
def stopping(
    session: Session,
    foreground: Foreground | None,
    timeout: float | None = None,
    again: Callable[[int], None] | None = None,
    stopped: Callable[[], None] | None = None,
) -> Iterator[Stopper]:
    """As long as it lasts, a signal, or the end of the time, cancels what runs in the session. `stopped` is called when
    that begins, `again` with the number of a signal that is not the first."""
    stopper = Stopper(session, stopped)

    def interrupted(number: int) -> None:
        if stopper.count and again is not None:
            again(number)
        stopper.stop()

    before = foreground.interrupted if foreground is not None else None
    timer = asyncio.get_running_loop().call_later(timeout, stopper.late) if timeout is not None else None
    if foreground is not None:
        foreground.interrupted = interrupted
    try:
        yield stopper
    finally:
        if timer is not None:
            timer.cancel()
        if foreground is not None:
            foreground.interrupted = before


async def say(
    session: Session,
    said: str | None,
    show: Callable[[Event], None],
    *,
    foreground: Foreground | None = None,
    timeout: float | None = None,
    again: Callable[[int], None] | None = None,
    stopped: Callable[[], None] | None = None,
) -> TurnResult:
    """Say something, show what happens, and wait for the answer. Nothing said: it goes on."""
    with stopping(session, foreground, timeout, again, stopped) as stopper:
        answer = Answer(stop="cancelled")
        events = cast("AsyncGenerator[Event, Any]", session.stream(said))
        async with aclosing(events):
            async for event in events:
                show(event)
                if isinstance(event, Ended):
                    answer = event.answer
        await stopper.settled()
        return TurnResult(answer, stopper.is_late)


async def stoppable(session: Session, foreground: Foreground, work: Awaitable[T]) -> T:
    """Anything else that a session does and that can be cancelled."""
    with stopping(session, foreground) as stopper:
        done = await work
        await stopper.settled()
        return done
