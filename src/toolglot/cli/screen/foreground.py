"""The main thread of a chat: it reads lines and handles signals, while the session runs in an event loop.

    foreground = Foreground(reader)
    code = foreground.run(lambda: talk(foreground))      # the loop runs in a thread of its own
    line = await foreground.line("> ")                   # … and requests lines from there

Waiting for input never blocks the loop: MCP servers get replies, claims are renewed.

    waiting for the loop ──line()──▶ reading ──Enter, Ctrl-D, Ctrl-C──▶ waiting for the loop

Law: Ctrl-C while a line is read ends that line only. At any other time it calls `interrupted`. After SIGTERM, no more
lines are read.
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
WAKE_SECONDS: Final = 0.25
"""How often a wait for a line, or for the loop, is interrupted, to handle a signal that came just before the wait
began. Python itself would handle it only at the next key."""


class InterruptedReadingError(Exception):
    """Ctrl-C came instead of a line."""


class LineReader(Protocol):
    """Reads lines of input."""

    @property
    def is_interactive(self) -> bool:
        """Whether a user is there to answer questions."""
        ...

    def read(self, prompt: str, prefill: str = "") -> str:
        """A line; `EOFError` when there are no more."""
        ...


class _LineRequest(NamedTuple):
    prompt: str
    prefill: str
    loop: asyncio.AbstractEventLoop
    line: asyncio.Future[str]


class Foreground:
    """The main thread, for code in the event loop."""

    def __init__(self, reader: LineReader) -> None:
        self.reader = reader
        self.interrupted: Callable[[int], None] | None = None
        """Called in the loop with the number of a signal. None: the work is cancelled."""
        self.signal: int = 0
        """The last signal; 0: none."""
        self._requests: queue.SimpleQueue[_LineRequest | None] = queue.SimpleQueue()
        self._outcome: Future[int] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[int] | None = None
        self._is_reading = False
        self._can_wake = False

    @property
    def is_ending(self) -> bool:
        """Whether SIGTERM was received."""
        return self.signal == signal.SIGTERM

    # --- in the main thread -------------------------------------------------------------------------

    def run(self, work: Callable[[], Awaitable[int]]) -> int:
        """Run the work in an event loop of its own, read lines for it until it ends, and return its exit code."""
        with self._handling_signals():
            thread = threading.Thread(target=self._work, args=(work,), name="toolglot session", daemon=True)
            thread.start()
            while (request := self._next_request()) is not None:
                self._serve(request)
            thread.join()
        return self._outcome.result()

    def _next_request(self) -> _LineRequest | None:
        """The next request of the loop. A signal that is delivered to another thread does not wake this one, and only
        this one can handle it, so the wait has a timeout."""
        while True:
            with suppress(queue.Empty):
                return self._requests.get(timeout=WAKE_SECONDS)

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
            self._requests.put(None)

    def _serve(self, request: _LineRequest) -> None:
        """Read a line for the loop."""
        line: str | BaseException
        try:
            self._is_reading = not self.is_ending
            with self._waking():
                line = self.reader.read(request.prompt, request.prefill) if self._is_reading else EOFError()
            self._is_reading = False
        except KeyboardInterrupt:
            line = EOFError() if self.is_ending else InterruptedReadingError()
        except Exception as error:  # noqa: BLE001 - the caller of `line` gets it
            line = error
        self._is_reading = False
        with suppress(RuntimeError):  # the loop was closed in the meantime
            request.loop.call_soon_threadsafe(_set_line, request.line, line)

    @contextmanager
    def _handling_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield  # signals are handled elsewhere
            return
        before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        if hasattr(signal, "setitimer"):  # not on Windows
            before[signal.SIGALRM] = signal.signal(signal.SIGALRM, _wake)
            self._can_wake = True
        try:
            yield
        finally:
            self._can_wake = False
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def _waking(self) -> Iterator[None]:
        if not self._can_wake:
            yield
            return
        signal.setitimer(signal.ITIMER_REAL, WAKE_SECONDS, WAKE_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if not self.is_ending:
            self.signal = number
        was_reading, self._is_reading = self._is_reading, False
        loop = self._loop
        if loop is not None and not (was_reading and number == signal.SIGINT):
            with suppress(RuntimeError):  # it was closed just now
                loop.call_soon_threadsafe(self._interrupt_work, number)
        if was_reading:
            raise KeyboardInterrupt

    # --- in the loop --------------------------------------------------------------------------------

    async def line(self, prompt: str, prefill: str = "") -> str:
        """The next line of input. Ctrl-C raises `InterruptedReadingError`, the end of input `EOFError`."""
        loop = asyncio.get_running_loop()
        line: asyncio.Future[str] = loop.create_future()
        self._requests.put(_LineRequest(prompt, prefill, loop, line))
        return await line

    def interrupt(self) -> None:
        """Act as on a Ctrl-C while no line is read."""
        self._interrupt_work(signal.SIGINT)

    def _interrupt_work(self, number: int) -> None:
        if self.interrupted is not None:
            self.interrupted(number)
        elif self._task is not None:
            self._task.cancel()


def _set_line(line: asyncio.Future[str], read: str | BaseException) -> None:
    if line.done():
        return
    if isinstance(read, BaseException):
        line.set_exception(read)
    else:
        line.set_result(read)


def _wake(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the signal makes Python check for others."""
