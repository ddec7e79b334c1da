"""Work that is waited for, but not for ever: it runs in a task of its own, and can be left.

Something that was cancelled may ignore it: a coroutine that swallows the cancellation, a thread that never returns.
Whoever waits goes on after a while, and the task is left to itself.

Law: waiting ends, at the latest, a grace after the reason to stop. What was raised, be it `SystemExit`, is a value
here and never ends the event loop; only a real cancellation stays one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, NamedTuple

Why = Literal["ended", "stopped", "timed_out"]
"""Why the waiting is over: it ended by itself, somebody stopped it, or it took too long."""

Work = Callable[..., Awaitable[object]]


class Raised(NamedTuple):
    """What the work raised. Asked for by `type(…) is Raised`: the object of a tool may do anything when it is asked."""

    error: BaseException


Task = asyncio.Task[object]

CANCELLED_ITSELF: Final = "It was cancelled, and not by whoever waited for it."


def begin(work: Work, *args: Any) -> Task:
    """Start work in a task of its own."""
    return asyncio.get_running_loop().create_task(_caught(work, *args))


async def wait_for(task: Task, stop: asyncio.Future[str], *, timeout: float | None = None) -> Why:
    """Wait until work ends, is to stop, or takes too long. It is not touched."""
    await asyncio.wait((task, stop), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        return "ended"
    return "stopped" if stop.done() else "timed_out"


async def end(task: Task, grace: float, hurry: asyncio.Future[None] | None = None) -> bool:
    """Cancel work and give it a while to end, or until `hurry` is done; whether it did."""
    task.cancel()
    awaited = (task,) if hurry is None else (task, hurry)
    await asyncio.wait(awaited, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
    return task.done()


def outcome(task: Task) -> object:
    """What came of work that is over: its value, `Raised`, or None if it was cancelled."""
    if task.cancelled():
        return None
    error = task.exception()
    return task.result() if error is None else Raised(error)


async def _caught(work: Work, *args: Any) -> object:
    try:
        return await work(*args)
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a tool may raise anything, and must not end the loop
        return Raised(error)
