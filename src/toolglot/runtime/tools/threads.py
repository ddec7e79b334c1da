"""Runs synchronous functions, each in its own thread.

A thread cannot be cancelled. So the first cancellation keeps waiting: the caller sees that the function has not ended,
which is true. A second cancellation, when a session or the event loop is closed, abandons the thread.

Law: nothing waits for an abandoned thread, not even the end of the program. The number of threads is not limited here:
the scheduler decides how many tools run at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Any

from toolglot.runtime.scheduler.abandonable import Raised


async def run_in_thread(function: Callable[..., object], *args: Any) -> object:
    """Run a function in a thread, with the current context variables, and return or raise what it does."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[object] = loop.create_future()
    context = contextvars.copy_context()

    def settle(outcome: object) -> None:
        if not done.done():
            done.set_result(outcome)

    def work() -> None:
        outcome: object
        try:
            outcome = context.run(function, *args)
        except BaseException as error:  # noqa: BLE001 - raised again in the awaiting task
            outcome = Raised(error)
        with contextlib.suppress(RuntimeError):  # the loop was closed: nothing waits
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=work, name="toolglot tool", daemon=True).start()
    try:
        await asyncio.wait((done,))
    except asyncio.CancelledError:
        await asyncio.wait((done,))
    outcome = done.result()
    if type(outcome) is Raised:
        raise outcome.error
    return outcome
