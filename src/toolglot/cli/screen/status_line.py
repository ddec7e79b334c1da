"""The status line: what the program is waiting for, and for how long.

    ⠹ anthropic/claude-opus-5 · 3 s
    ⠹ fetch: page 2 of 9 · 12 s

It is drawn where the next line begins, and erased before anything else is written.

Laws: it is drawn only where it can be erased (a terminal that is not dumb), and never while a question is open. Output
of other threads, such as tools, does not mix with it.
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
"""The minimum width of a detail."""
_FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN_FRAMES: Final = "|/-\\"
"""For terminals whose encoding lacks the others."""
_ERASE: Final = "\r\x1b[K"


class Status:
    """What the program is waiting for."""

    __slots__ = ("began", "detail", "label")

    def __init__(self, label: str, began: float, detail: str = "") -> None:
        self.label = label
        self.began = began
        self.detail = detail
        """Truncated first if there is too little room."""


class StatusLine:
    """Draws the line on a page and erases it.

    `status` is called whenever the line is drawn; None: the program is not waiting.
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
        """Whether the last output of others ended its line."""
        self._is_held = False
        self._timer: asyncio.TimerHandle | None = None
        self.lock = threading.RLock()

    def draw(self) -> None:
        """Draw the line, and keep it up to date."""
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
        """Draw the line, unless a timer redraws it anyway."""
        if not self._is_drawn or self._timer is None:
            self.draw()

    def erase(self) -> None:
        """Erase the line before the caller writes something."""
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
    def hold(self) -> Iterator[None]:
        """Draw nothing while the block runs."""
        self.erase()
        before, self._is_held = self._is_held, True
        try:
            yield
        finally:
            self._is_held = before

    def print_from(self, stream: TextIO, text: str) -> None:
        """Write the output of others, from any thread."""
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
        ending = f"{self._dot}{elapsed_text(took)}" if took >= 1 else ""
        label = fit_start(status.label, width - 2 - cells(ending), self._cut)
        room = width - 4 - cells(label) - cells(ending)
        detail = f": {fit_start(status.detail, room, self._cut)}" if status.detail and room >= MIN_DETAIL else ""
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
    """Wraps stdout or stderr, so that tools and libraries can print while the line is shown."""

    def __init__(self, stream: TextIO, line: StatusLine) -> None:
        self._stream = stream
        self._line = line

    def write(self, text: str) -> int:
        self._line.print_from(self._stream, text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def fit_start(text: str, width: int, cut: str = "…") -> str:
    """The start of a text, in at most `width` columns."""
    if cells(text) <= width:
        return text
    text = text[: max(width, 0)]
    while text and cells(text) > width - len(cut):
        text = text[:-1]
    return f"{text.rstrip()}{cut}"


def fit_end(text: str, width: int) -> str:
    """The end of a text, in at most `width` columns."""
    text = text[-max(width, 1) :]
    while text and cells(text) > width:
        text = text[1:]
    return text


def elapsed_text(took: float) -> str:
    """Whole seconds."""
    return f"{int(took) // 60} min {int(took) % 60} s" if took >= 60 else f"{int(took)} s"
