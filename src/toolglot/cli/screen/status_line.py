"""The line that says what is waited for and how long it takes already, while nothing else is written.

    ⠹ anthropic/claude-opus-5 · 3 s
    ⠹ fetch: page 2 of 9 · 12 s

It stands where the next line begins and is erased before anything else is written, so nothing of it stays.

Laws: it is drawn only where it can be erased again (a terminal that is not dumb), and never while somebody is asked
something. What other threads print, such as a tool, does not mix with it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO

from toolglot.cli.screen.terminal import TerminalPage
from toolglot.cli.screen.word_wrap import cells

TICK_SECONDS: Final = 0.1
MIN_DETAIL: Final = 8
"""Columns below which a detail says nothing."""
_FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN_FRAMES: Final = "|/-\\"
"""For terminals whose encoding lacks the others."""
_ERASE: Final = "\r\x1b[K"


class Status:
    """What is waited for."""

    __slots__ = ("began", "detail", "label")

    def __init__(self, label: str, began: float, detail: str = "") -> None:
        self.label = label
        self.began = began
        self.detail = detail
        """What gives way where there is too little room."""


class StatusLine:
    """Draws the line on a page and erases it.

    `status` says what is waited for, whenever the line is drawn; None: nothing is.
    """

    def __init__(
        self,
        page: TerminalPage,
        status: Callable[[], Status | None],
        clock: Callable[[], float] = time.monotonic,
        *,
        is_on: bool = True,
    ) -> None:
        self._page = page
        self._is_on = is_on and page.is_live
        self._status = status
        self._clock = clock
        is_rich = page.can_write(f"{_FRAMES}·…")
        self._frames = _FRAMES if is_rich else _PLAIN_FRAMES
        self._dot, self._cut = (" · ", "…") if is_rich else (", ", "")
        self._frame = 0
        self._is_drawn = False
        self._is_at_start = True
        """Whether the last that was printed by others ended its line."""
        self._is_held = False
        self._timer: asyncio.TimerHandle | None = None
        self.lock = threading.RLock()

    def draw(self) -> None:
        """Show what is waited for now, and go on showing it."""
        if not self._is_on or self._is_held:
            return
        status = self._status()
        with self.lock:
            if status is None:
                self._erase()
                return
            if self._is_at_start:
                self._page.stream.write(f"{_ERASE}{self._page.paint(self._text(status), 'dim')}")
                self._page.stream.flush()
                self._is_drawn = True
        self._start()

    def refresh(self) -> None:
        """The same, no more often than the line is drawn by itself."""
        if not self._is_drawn or self._timer is None:
            self.draw()

    def erase(self) -> None:
        """Make room for something that is written by whoever calls."""
        with self.lock:
            self._erase()
            if not self._is_at_start:
                self._page.stream.write("\n")
                self._is_at_start = True

    def _erase(self) -> None:
        if self._is_drawn:
            self._page.stream.write(_ERASE)
            self._is_drawn = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """As long as it lasts, nothing is drawn."""
        self.erase()
        before, self._is_held = self._is_held, True
        try:
            yield
        finally:
            self._is_held = before

    def printed(self, stream: TextIO, text: str) -> None:
        """Write what somebody else prints, from any thread."""
        with self.lock:
            self._erase()
            self._page.stream.flush()
            stream.write(text)
            stream.flush()
            if text:
                self._is_at_start = text.endswith("\n") or self._is_held

    # --- the line -----------------------------------------------------------------------------------

    def _text(self, status: Status) -> str:
        width = max(self._page.width - 1, 10)
        frame = self._frames[self._frame % len(self._frames)]
        took = self._clock() - status.began
        ending = f"{self._dot}{elapsed(took)}" if took >= 1 else ""
        label = fitted(status.label, width - 2 - cells(ending), self._cut)
        room = width - 4 - cells(label) - cells(ending)
        detail = f": {fitted(status.detail, room, self._cut)}" if status.detail and room >= MIN_DETAIL else ""
        line = f"{frame} {label}{detail}{ending}"
        if self._page.can_write(line):
            return line
        return line.replace("…", self._cut).encode("ascii", "replace").decode()

    def _start(self) -> None:
        if self._timer is not None:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._timer = loop.call_later(TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._frame += 1
        if self._is_held:
            self._start()
        else:
            self.draw()


class SharedStream:
    """A stream of this process, for whoever prints while the line is shown: tools, libraries."""

    def __init__(self, stream: TextIO, line: StatusLine) -> None:
        self._stream = stream
        self._line = line

    def write(self, text: str) -> int:
        self._line.printed(self._stream, text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def fitted(text: str, width: int, cut: str = "…") -> str:
    """Text in so many columns; of one that is longer, the beginning."""
    if cells(text) <= width:
        return text
    text = text[: max(width, 0)]
    while text and cells(text) > width - len(cut):
        text = text[:-1]
    return f"{text.rstrip()}{cut}"


def fitted_end(text: str, width: int) -> str:
    """The end of a text, in so many columns."""
    text = text[-max(width, 1) :]
    while text and cells(text) > width:
        text = text[1:]
    return text


def elapsed(took: float) -> str:
    """Whole seconds."""
    return f"{int(took) // 60} min {int(took) % 60} s" if took >= 60 else f"{int(took)} s"
