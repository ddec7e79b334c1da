"""Where the work on a body is done: on the event loop if there is little of it, and in a thread if others would wait.

    received = await run(count_marks(body), len(body), lambda: read(body))

What there is to do grows with the values of a body (turns, blocks, calls, entries of reports), not with its bytes:
80 kB of calls without results take longer than a picture of 5 MB. `ON_LOOP` values of the most expensive kind take
about 20 ms.

Laws: between two steps of the event loop no more is done than for `ON_LOOP` values, but for what has to be one step of
the parser or of the encoder (some milliseconds for each megabyte). Who is cancelled goes on when its thread has ended:
two threads never work on the same thing.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

from toolglot.jsontext import count_marks, levels

ON_LOOP: Final = 1_500
"""Values, as `jsontext.count_marks` counts them, of work that is done on the event loop."""
LARGE: Final = 256 * 1024
"""Bytes from which on a body is worked on in a thread, whatever it holds."""
HUGE: Final = 100_000
"""Values of bodies that have threads of their own, so that the others need not wait for them."""
VALUES_A_BLOCK: Final = 3
"""About how many values a block of a reply is written with."""

T = TypeVar("T")

_threads: Final = ThreadPoolExecutor(4, thread_name_prefix="bodies")
_huge_threads: Final = ThreadPoolExecutor(2, thread_name_prefix="huge-bodies")


def is_much(values: int, size: int) -> bool:
    """Whether a body of so many values and bytes is worked on in a thread."""
    return values > ON_LOOP or size > LARGE


def count_values_of(value: object, enough: int = ON_LOOP) -> int:
    """The JSON values that a value is made of, with no more work than enough of them take; then it is one more."""
    count = 0
    for level in levels(value):
        count += len(level)
        inner = sum([len(held) for held in level if type(held) is dict or type(held) is list])
        if count + inner > enough:
            return enough + 1
    return count


async def count_values(data: bytes) -> int:
    """How many JSON values a body has at most."""
    return count_marks(data) if len(data) <= LARGE else await in_thread(lambda: count_marks(data))


async def run(values: int, size: int, work: Callable[[], T]) -> T:
    """What the work on a body of so many values and bytes gives."""
    if not is_much(values, size):
        return work()
    return await in_thread(work, _huge_threads if values > HUGE else _threads)


class WorkOffloader(Protocol):
    """Does work where it belongs, for who does not know how much there is to do."""

    async def __call__(self, work: Callable[[], T]) -> T: ...


async def at_once(work: Callable[[], T]) -> T:
    """Work that is little, whatever it is."""
    return work()


async def in_thread(work: Callable[[], T], threads: ThreadPoolExecutor = _threads) -> T:
    """What work gives that is done in a thread."""
    context = contextvars.copy_context()
    done = asyncio.get_running_loop().run_in_executor(threads, lambda: context.run(work))
    try:
        return await asyncio.shield(done)
    finally:
        while not done.done():  # cancelled
            try:
                await asyncio.wait([done])
            except asyncio.CancelledError:
                _uncancel()
        if not done.cancelled():
            done.exception()  # it was seen


def _uncancel() -> None:
    """What cancels again is heard once."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
