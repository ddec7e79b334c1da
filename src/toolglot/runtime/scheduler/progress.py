"""Progress messages of a running tool, limited in rate.

A short burst is passed on as it comes. After that only the latest message is passed on, a few times a second.

Law: however many messages a tool reports, from whichever thread, the queue and the rate are bounded. The last message
before the tool ends is always passed on, and none after it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Final

from toolglot.jsontext import fix_surrogates

MAX_CHARACTERS: Final = 2_000
"""The length of one message."""
BURST: Final = 20
PER_SECOND: Final = 5.0


class ProgressThrottle:
    """The progress of one attempt. `notify` is called in the thread of the event loop."""

    __slots__ = ("_allowance", "_is_due", "_is_ended", "_loop", "_notify", "_queue", "_since", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, notify: Callable[[str], None]) -> None:
        self._loop = loop
        self._notify = notify
        self._queue: deque[str] = deque(maxlen=BURST)
        self._allowance = float(BURST)
        self._since = loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._is_due = False
        """The event loop will flush the queue by itself."""
        self._is_ended = False

    def report(self, text: object) -> None:
        """Pass a message on, now or soon. Any thread may call it."""
        if self._is_ended:
            return
        self._queue.append(fix_surrogates(str.__str__(text if isinstance(text, str) else str(text))[:MAX_CHARACTERS]))
        if self._is_due:
            return
        if asyncio._get_running_loop() is self._loop:  # noqa: SLF001 - the one that does not raise where there is none
            self._flush()
            return
        self._is_due = True
        with contextlib.suppress(RuntimeError):  # the loop was closed: nothing listens
            self._loop.call_soon_threadsafe(self._flush)

    def end(self) -> None:
        """Send the last message: the tool has ended, or was abandoned."""
        self._is_ended = True
        if self._timer is not None:
            self._timer.cancel()
        self._send_allowed()
        if self._queue:
            self._notify(self._queue[-1])
            self._queue.clear()

    def _flush(self) -> None:
        self._is_due = False
        self._send_allowed()
        if self._queue and not self._is_ended:
            self._is_due = True
            self._timer = self._loop.call_later((1 - self._allowance) / PER_SECOND, self._flush)

    def _send_allowed(self) -> None:
        now = self._loop.time()
        self._allowance = min(self._allowance + (now - self._since) * PER_SECOND, float(BURST))
        self._since = now
        if self._timer is not None:  # over the rate: only the latest message counts
            self._timer = None
            while len(self._queue) > 1:
                self._queue.popleft()
        while self._queue and self._allowance >= 1:
            self._allowance -= 1
            self._notify(self._queue.popleft())
