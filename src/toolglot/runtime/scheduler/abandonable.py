"""Work that runs in its own task and can be abandoned.

Cancelled work may ignore its cancellation: a coroutine that swallows the exception, a thread that never returns. The
caller then continues after a grace period, and the task is left alone.

Law: a wait ends no later than one grace period after the reason to stop. Exceptions, `SystemExit` included, are
values here and never end the event loop; only a real cancellation is raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, NamedTuple

WaitOutcome = Literal["ended", "stopped", "timed_out"]
"""Why a wait is over: the work ended by itself, it is to stop, or it took too long."""

AsyncWork = Callable[..., Awaitable[object]]


class Raised(NamedTuple):
    """What the work raised. Test for it with `type(…) is Raised`: a tool's own object may do anything in a check."""

    error: BaseException


Task = asyncio.Task[object]

CANCELLED_ITSELF: Final = "It was cancelled, and not by its caller."


def start(work: AsyncWork, *args: Any) -> Task:
    """Start work in its own task."""
    return asyncio.get_running_loop().create_task(_catch(work, *args))


async def wait(task: Task, stop: asyncio.Future[str], *, timeout: float | None = None) -> WaitOutcome:
    """Wait until the work ends, is to stop, or takes too long. Never touches the task."""
    await asyncio.wait((task, stop), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        return "ended"
    return "stopped" if stop.done() else "timed_out"


async def cancel(task: Task, grace: float, skip_grace: asyncio.Future[None] | None = None) -> bool:
    """Cancel work and wait until it ends, for `grace` seconds or until `skip_grace` is done; whether it ended."""
    task.cancel()
    awaited = (task,) if skip_grace is None else (task, skip_grace)
    await asyncio.wait(awaited, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
    return task.done()


def outcome(task: Task) -> object:
    """The value of a finished task, `Raised`, or None if it was cancelled."""
    if task.cancelled():
        return None
    error = task.exception()
    return task.result() if error is None else Raised(error)


async def _catch(work: AsyncWork, *args: Any) -> object:
    try:
        return await work(*args)
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a tool may raise anything, and must not end the loop
        return Raised(error)
