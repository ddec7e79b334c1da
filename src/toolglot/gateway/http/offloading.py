"""Work on a body: on the event loop if there is little of it, in a thread if other requests would have to wait.

    received = await run(count_marks(body), len(body), lambda: read(body))

The work grows with the number of values in a body (turns, blocks, calls, entries of reports), not with its bytes: 80 kB
of calls without results take longer than an image of 5 MB. `ON_LOOP` values of the most expensive kind take
about 20 ms.

Laws: one step of the event loop works on at most `ON_LOOP` values, except for single steps of the parser or the encoder
(some milliseconds per megabyte). A task that is cancelled continues when its thread has ended: two threads never work
on the same value.
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
"""Bytes from which on a body is worked on in a thread, whatever it contains."""
HUGE: Final = 100_000
"""Values from which on a body has its own threads, so that others do not wait for it."""
VALUES_A_BLOCK: Final = 3
"""About how many JSON values a block of a reply has."""

T = TypeVar("T")

_threads: Final = ThreadPoolExecutor(4, thread_name_prefix="bodies")
_huge_threads: Final = ThreadPoolExecutor(2, thread_name_prefix="huge-bodies")


def is_much(values: int, size: int) -> bool:
    """Whether a body of so many values and bytes is worked on in a thread."""
    return values > ON_LOOP or size > LARGE


def count_values_of(value: object, enough: int = ON_LOOP) -> int:
    """The number of JSON values in a value, counted up to `enough`; then `enough + 1`."""
    count = 0
    for level in levels(value):
        count += len(level)
        inner = sum([len(held) for held in level if type(held) is dict or type(held) is list])
        if count + inner > enough:
            return enough + 1
    return count


async def count_values(data: bytes) -> int:
    """An upper bound for the number of JSON values in a body."""
    return count_marks(data) if len(data) <= LARGE else await in_thread(lambda: count_marks(data))


async def run(values: int, size: int, work: Callable[[], T]) -> T:
    """The result of work on a body of so many values and bytes."""
    if not is_much(values, size):
        return work()
    return await in_thread(work, _huge_threads if values > HUGE else _threads)


class WorkOffloader(Protocol):
    """Runs work on the event loop or in a thread, for code that does not know how much there is."""

    async def __call__(self, work: Callable[[], T]) -> T: ...


async def at_once(work: Callable[[], T]) -> T:
    """Run work at once, on the event loop."""
    return work()


async def in_thread(work: Callable[[], T], threads: ThreadPoolExecutor = _threads) -> T:
    """The result of work that runs in a thread."""
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
            done.exception()  # so that asyncio does not report it


def _uncancel() -> None:
    """Clear another cancellation: the first one is raised."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
