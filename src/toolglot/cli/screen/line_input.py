"""Lines from a person at a terminal, or from a pipe.

At a terminal the `readline` of Python edits lines, completes words, takes pasted text with several lines as one, and
remembers what was typed: in a file of the user's own, where there is one.

Law: answers to questions are not remembered, only what was said. A line is bounded.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TextIO

from toolglot.cli.screen.terminal import clean
from toolglot.errors import LimitError

MOST_LINE: Final = 4 * 1024 * 1024
"""Characters of one line."""
REMEMBERED: Final = 1000
_PAINT: Final = re.compile("\x1b\\[[0-9;]*m")
_HIDDEN: Final = re.compile("[\x01\x02]")
"""How readline is told that characters take no room."""

Complete = Callable[[str], Sequence[str]]
"""The words that may stand in the place of the last one of a line."""


class PipedLines:
    """Lines of a stream."""

    is_person = False

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def read(self, prompt: str, prefill: str = "") -> str:  # noqa: ARG002 - nobody would see them
        line = self._stream.readline(MOST_LINE + 1) if self._stream is not None else ""
        if not line:
            raise EOFError
        return _bounded(line.removesuffix("\n").removesuffix("\r"))


class AnsweredLines:
    """Answers to questions on stderr, where stdout is for the next program."""

    def __init__(self, stream: TextIO | None, page: TextIO) -> None:
        self._stream = stream
        self._page = page

    @property
    def is_person(self) -> bool:
        return self._stream is not None and self._stream.isatty() and self._page.isatty()

    def read(self, prompt: str, prefill: str = "") -> str:
        self._page.write(f"  now: {clean(prefill)}\n" if prefill else "")
        self._page.write(_HIDDEN.sub("", prompt))
        self._page.flush()
        line = self._stream.readline(MOST_LINE + 1) if self._stream is not None else ""
        if not line:
            raise EOFError
        return _bounded(line.removesuffix("\n"))


class TypedLines:
    """Lines that a person types."""

    is_person = True

    def __init__(self, *, memory: Path | None = None, complete: Complete | None = None) -> None:
        self._memory = memory
        self._readline = _readline()
        self._complete = complete
        if self._readline is not None:
            self._set_up(self._readline)

    def read(self, prompt: str, prefill: str = "") -> str:
        readline = self._readline
        if readline is not None and prefill:
            readline.set_startup_hook(lambda: readline.insert_text(prefill))
        try:
            return _bounded(input(prompt))
        finally:
            if readline is not None:
                readline.set_startup_hook(None)

    def remember(self, said: str) -> None:
        """Have it at hand with the arrow keys, now and the next time."""
        if self._readline is None or not said.strip():
            return
        self._readline.add_history(said)
        if self._memory is not None:
            with contextlib.suppress(OSError):
                self._memory.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                handle = os.open(self._memory, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(json.dumps(said) + "\n")

    # --- readline -----------------------------------------------------------------------------------

    def _set_up(self, readline: Any) -> None:
        readline.set_auto_history(False)
        readline.clear_history()
        for said in remembered(self._memory):
            readline.add_history(said)
        readline.set_completer_delims(" ")
        readline.set_completer(self._completion)
        # A paste of several lines is one message, not several.
        for setting in ("tab: complete", "set enable-bracketed-paste on", "set show-all-if-ambiguous on"):
            with contextlib.suppress(Exception):
                readline.parse_and_bind(setting)

    def _completion(self, word: str, state: int) -> str | None:
        if self._complete is None or self._readline is None:
            return None
        line = self._readline.get_line_buffer()[: self._readline.get_endidx()]
        fitting = [found for found in self._complete(line) if found.startswith(word)]
        return fitting[state] if state < len(fitting) else None


def remembered(memory: Path | None) -> list[str]:
    """What was typed before, the oldest first; what cannot be read is left out."""
    if memory is None:
        return []
    try:
        lines = memory.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found: list[str] = []
    for line in lines[-REMEMBERED:]:
        with contextlib.suppress(ValueError):
            said = json.loads(line)
            if isinstance(said, str):
                found.append(said)
    if len(lines) > 2 * REMEMBERED:
        with contextlib.suppress(OSError):
            memory.write_text("".join(f"{json.dumps(said)}\n" for said in found), "utf-8")
    return found


def reader_of(*, memory: Path | None = None, complete: Complete | None = None) -> PipedLines | TypedLines:
    """The reader for how this process was started."""
    if sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty():
        return TypedLines(memory=memory, complete=complete)
    return PipedLines(sys.stdin)


@contextlib.contextmanager
def quiet_controls() -> Iterator[None]:
    """As long as it lasts, the terminal does not write `^C` into what is shown."""
    try:
        import termios  # noqa: PLC0415 - not on every system
    except ImportError:
        yield
        return
    try:
        handle = sys.stdin.fileno()
        before = termios.tcgetattr(handle)
    except (OSError, ValueError, AttributeError, termios.error):  # no terminal
        yield
        return
    changed = [*before]
    changed[3] &= ~termios.ECHOCTL
    termios.tcsetattr(handle, termios.TCSANOW, changed)
    try:
        yield
    finally:
        termios.tcsetattr(handle, termios.TCSANOW, before)


def visible(prompt: str) -> str:
    """A prompt whose colours readline does not count as characters."""
    return _PAINT.sub("\x01\\g<0>\x02", prompt)


def _bounded(line: str) -> str:
    if len(line) > MOST_LINE:
        raise LimitError(f"a line has more than {MOST_LINE} characters", path="stdin", hint="say it in parts")
    return line


def _readline() -> Any:
    try:
        import readline  # noqa: PLC0415 - not on every system
    except ImportError:
        return None
    return readline
