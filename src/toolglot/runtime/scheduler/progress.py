"""What a running tool says of how far it is, on its way to whoever watches.

A few texts in a row are passed on as they come; a tool that goes on talking is heard some times a second, and only the
last of what it said meanwhile is passed on.

Law: however much a tool says, from whichever thread, what waits is bounded, and so is what is passed on in a second.
The last text before the tool ends is always passed on, and nothing after it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Final

from toolglot.jsontext import mend_text

CHARACTERS: Final = 2_000
"""Of one text."""
IN_A_ROW: Final = 20
A_SECOND: Final = 5.0


class Progress:
    """The words of one attempt. `tell` hears them, in the thread of the event loop."""

    __slots__ = ("_credit", "_is_due", "_is_over", "_loop", "_since", "_tell", "_timer", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop, tell: Callable[[str], None]) -> None:
        self._loop = loop
        self._tell = tell
        self._waiting: deque[str] = deque(maxlen=IN_A_ROW)
        self._credit = float(IN_A_ROW)
        self._since = loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._is_due = False
        """The event loop will look at what waits by itself."""
        self._is_over = False

    def say(self, text: object) -> None:
        """Pass a text on, now or soon. Any thread may call it."""
        if self._is_over:
            return
        self._waiting.append(mend_text(str.__str__(text if isinstance(text, str) else str(text))[:CHARACTERS]))
        if self._is_due:
            return
        if asyncio._get_running_loop() is self._loop:  # noqa: SLF001 - the one that does not raise where there is none
            self._pass_on()
            return
        self._is_due = True
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody hears it
            self._loop.call_soon_threadsafe(self._pass_on)

    def end(self) -> None:
        """The tool is over, or nobody waits for it any more."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        self._spend()
        if self._waiting:
            self._tell(self._waiting[-1])
            self._waiting.clear()

    def _pass_on(self) -> None:
        self._is_due = False
        self._spend()
        if self._waiting and not self._is_over:
            self._is_due = True
            self._timer = self._loop.call_later((1 - self._credit) / A_SECOND, self._pass_on)

    def _spend(self) -> None:
        now = self._loop.time()
        self._credit = min(self._credit + (now - self._since) * A_SECOND, float(IN_A_ROW))
        self._since = now
        if self._timer is not None:  # it had too much to say: what it said last is the news
            self._timer = None
            while len(self._waiting) > 1:
                self._waiting.popleft()
        while self._waiting and self._credit >= 1:
            self._credit -= 1
            self._tell(self._waiting.popleft())
