"""Functions that are not asynchronous, run in a thread of their own.

A thread cannot be cancelled. So the first cancellation is waited out: whoever cancelled sees that the function has
not ended, which is the truth. A second one, when a session or the event loop is closed, lets go of the thread.

Law: nothing here waits for a thread that was let go, not even the end of the program. There is no number of threads
beyond which a function waits: how many run at once is the scheduler's to say.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Any

from toolglot.runtime.scheduler.abandonable import Raised


async def in_thread(function: Callable[..., object], *args: Any) -> object:
    """What the function returns or raises. Context variables go with it."""
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
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            outcome = Raised(error)
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
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
