"""A person in front of code that runs in an event loop: the main thread reads lines and hears signals.

    foreground = Foreground(reader)
    code = foreground.run(lambda: talk(foreground))      # the loop runs in a thread of its own
    line = await foreground.line("> ")                   # … and asks for lines from there

So nothing that waits for a person keeps the loop from its work: MCP servers are answered, claims are renewed.

    waiting for the loop ──line()──▶ reading ──Enter, Ctrl-D, Ctrl-C──▶ waiting for the loop

Law: Ctrl-C while a line is read ends that line only; at any other time it is told to whoever set `interrupted`. What
is told to stop by SIGTERM reads no more lines.
"""

from __future__ import annotations

import asyncio
import queue
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final, NamedTuple, Protocol

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
NUDGE_SECONDS: Final = 0.25
"""How often a wait for a line, or for the loop, is interrupted. A signal that comes just before the wait begins is
heard then: Python's own wait for a line would hear it with the next key."""


class InterruptedReadingError(Exception):
    """Ctrl-C came instead of a line."""


class LineReader(Protocol):
    """Reads lines from a person, or from whatever stands in for one."""

    @property
    def is_person(self) -> bool:
        """Whether somebody is there who can be asked."""
        ...

    def read(self, prompt: str, prefill: str = "") -> str:
        """A line; `EOFError` when there are no more."""
        ...


class _Asked(NamedTuple):
    prompt: str
    prefill: str
    loop: asyncio.AbstractEventLoop
    line: asyncio.Future[str]


class Foreground:
    """The main thread, as the loop sees it."""

    def __init__(self, reader: LineReader) -> None:
        self.reader = reader
        self.interrupted: Callable[[int], None] | None = None
        """Called in the loop with the number of a signal; None: the work is cancelled."""
        self.signal: int = 0
        """The last signal that came; 0: none."""
        self._asked: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
        self._outcome: Future[int] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[int] | None = None
        self._is_reading = False
        self._is_nudged = False

    @property
    def is_ending(self) -> bool:
        """Whether the process was told to end."""
        return self.signal == signal.SIGTERM

    # --- in the main thread -------------------------------------------------------------------------

    def run(self, work: Callable[[], Awaitable[int]]) -> int:
        """Run the work in a loop of its own, and serve it until it is done; its exit code."""
        with self._hearing():
            thread = threading.Thread(target=self._work, args=(work,), name="toolglot session", daemon=True)
            thread.start()
            while (asked := self._next_asked()) is not None:
                self._serve(asked)
            thread.join()
        return self._outcome.result()

    def _next_asked(self) -> _Asked | None:
        """What the loop asks for next. A signal that the system hands to another thread does not wake this one, which
        alone can hear it: so it looks up now and then."""
        while True:
            with suppress(queue.Empty):
                return self._asked.get(timeout=NUDGE_SECONDS)

    def _work(self, work: Callable[[], Awaitable[int]]) -> None:
        async def main() -> int:
            self._loop = asyncio.get_running_loop()
            self._task = asyncio.current_task()
            return await work()

        try:
            self._outcome.set_result(asyncio.run(main()))
        except asyncio.CancelledError:
            self._outcome.set_result(128 + (self.signal or signal.SIGINT))
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            self._outcome.set_exception(error)
        finally:
            self._loop = None
            self._asked.put(None)

    def _serve(self, asked: _Asked) -> None:
        """Read a line for the loop."""
        line: str | BaseException
        try:
            self._is_reading = not self.is_ending
            with self._nudged():
                line = self.reader.read(asked.prompt, asked.prefill) if self._is_reading else EOFError()
            self._is_reading = False
        except KeyboardInterrupt:
            line = EOFError() if self.is_ending else InterruptedReadingError()
        except Exception as error:  # noqa: BLE001 - whoever asked hears of it
            line = error
        self._is_reading = False
        with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits for the line
            asked.loop.call_soon_threadsafe(_settle, asked.line, line)

    @contextmanager
    def _hearing(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield  # somebody else hears signals
            return
        before = {number: signal.signal(number, self._hear) for number in SIGNALS}
        if hasattr(signal, "setitimer"):  # which Windows lacks
            before[signal.SIGALRM] = signal.signal(signal.SIGALRM, _wake)
            self._is_nudged = True
        try:
            yield
        finally:
            self._is_nudged = False
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def _nudged(self) -> Iterator[None]:
        if not self._is_nudged:
            yield
            return
        signal.setitimer(signal.ITIMER_REAL, NUDGE_SECONDS, NUDGE_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _hear(self, number: int, _: FrameType | None) -> None:
        if not self.is_ending:
            self.signal = number
        was_reading, self._is_reading = self._is_reading, False
        loop = self._loop
        if loop is not None and not (was_reading and number == signal.SIGINT):
            with suppress(RuntimeError):  # it was closed just now
                loop.call_soon_threadsafe(self._tell, number)
        if was_reading:
            raise KeyboardInterrupt

    # --- in the loop --------------------------------------------------------------------------------

    async def line(self, prompt: str, prefill: str = "") -> str:
        """The next line that the person writes. Ctrl-C is an `InterruptedReadingError`, the end an `EOFError`."""
        loop = asyncio.get_running_loop()
        line: asyncio.Future[str] = loop.create_future()
        self._asked.put(_Asked(prompt, prefill, loop, line))
        return await line

    def interrupt(self) -> None:
        """Do as if Ctrl-C had come while no line was read."""
        self._tell(signal.SIGINT)

    def _tell(self, number: int) -> None:
        if self.interrupted is not None:
            self.interrupted(number)
        elif self._task is not None:
            self._task.cancel()


def _settle(line: asyncio.Future[str], read: str | BaseException) -> None:
    if line.done():
        return
    if isinstance(read, BaseException):
        line.set_exception(read)
    else:
        line.set_result(read)


def _wake(_number: int, _frame: FrameType | None) -> None:
    """Nothing but that Python looks whether there are signals."""
