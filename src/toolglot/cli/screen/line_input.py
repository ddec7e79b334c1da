"""Lines of input, from a terminal or a pipe.

On a terminal, Python's `readline` edits lines, completes words, takes pasted lines as one message, and keeps a history,
in a file if there is one.

Law: the history has messages only, not answers to questions. The length of a line is limited.
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

MAX_LINE: Final = 4 * 1024 * 1024
"""Characters of a line."""
MAX_REMEMBERED: Final = 1000
_PAINT: Final = re.compile("\x1b\\[[0-9;]*m")
_HIDDEN: Final = re.compile("[\x01\x02]")
"""Marks for readline: the characters between them have no width."""

Complete = Callable[[str], Sequence[str]]
"""Completions for the last word of a line."""


class PipedLines:
    """Lines of a stream."""

    is_interactive = False

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def read(self, prompt: str, prefill: str = "") -> str:  # noqa: ARG002 - there is no one to show them to
        line = self._stream.readline(MAX_LINE + 1) if self._stream is not None else ""
        if not line:
            raise EOFError
        return _check_length(line.removesuffix("\n").removesuffix("\r"))


class StderrLines:
    """Prompts on stderr, because stdout has the result."""

    def __init__(self, stream: TextIO | None, page: TextIO) -> None:
        self._stream = stream
        self._page = page

    @property
    def is_interactive(self) -> bool:
        return self._stream is not None and self._stream.isatty() and self._page.isatty()

    def read(self, prompt: str, prefill: str = "") -> str:
        self._page.write(f"  now: {clean(prefill)}\n" if prefill else "")
        self._page.write(_HIDDEN.sub("", prompt))
        self._page.flush()
        line = self._stream.readline(MAX_LINE + 1) if self._stream is not None else ""
        if not line:
            raise EOFError
        return _check_length(line.removesuffix("\n"))


class TypedLines:
    """Lines that are typed at a terminal."""

    is_interactive = True

    def __init__(self, *, history_file: Path | None = None, complete: Complete | None = None) -> None:
        self._history_file = history_file
        self._readline = _readline()
        self._complete = complete
        if self._readline is not None:
            self._set_up(self._readline)

    def read(self, prompt: str, prefill: str = "") -> str:
        readline = self._readline
        if readline is not None and prefill:
            readline.set_startup_hook(lambda: readline.insert_text(prefill))
        try:
            return _check_length(input(prompt))
        finally:
            if readline is not None:
                readline.set_startup_hook(None)

    def remember(self, text: str) -> None:
        """Add a message to the history, for the arrow keys."""
        if self._readline is None or not text.strip():
            return
        self._readline.add_history(text)
        if self._history_file is not None:
            with contextlib.suppress(OSError):
                self._history_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                handle = os.open(self._history_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
                with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(json.dumps(text) + "\n")

    # --- readline -----------------------------------------------------------------------------------

    def _set_up(self, readline: Any) -> None:
        readline.set_auto_history(False)
        readline.clear_history()
        for text in read_input_history(self._history_file):
            readline.add_history(text)
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


def read_input_history(history_file: Path | None) -> list[str]:
    """The history of typed messages, the oldest first. Unreadable lines are skipped."""
    if history_file is None:
        return []
    try:
        lines = history_file.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found: list[str] = []
    for line in lines[-MAX_REMEMBERED:]:
        with contextlib.suppress(ValueError):
            text = json.loads(line)
            if isinstance(text, str):
                found.append(text)
    if len(lines) > 2 * MAX_REMEMBERED:
        with contextlib.suppress(OSError):
            history_file.write_text("".join(f"{json.dumps(text)}\n" for text in found), "utf-8")
    return found


def line_reader(*, history_file: Path | None = None, complete: Complete | None = None) -> PipedLines | TypedLines:
    """The reader for stdin: typed lines on a terminal, else piped ones."""
    if sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty():
        return TypedLines(history_file=history_file, complete=complete)
    return PipedLines(sys.stdin)


@contextlib.contextmanager
def hide_control_echo() -> Iterator[None]:
    """Keep the terminal from echoing `^C` while the block runs."""
    try:
        import termios  # noqa: PLC0415 - not on every system
    except ImportError:
        yield
        return
    try:
        handle = sys.stdin.fileno()
        before = termios.tcgetattr(handle)
    except (OSError, ValueError, AttributeError, termios.error):  # not a terminal
        yield
        return
    changed = [*before]
    changed[3] &= ~termios.ECHOCTL
    termios.tcsetattr(handle, termios.TCSANOW, changed)
    try:
        yield
    finally:
        termios.tcsetattr(handle, termios.TCSANOW, before)


def readline_prompt(prompt: str) -> str:
    """The prompt, with colours marked so that readline does not count them as characters."""
    return _PAINT.sub("\x01\\g<0>\x02", prompt)


def _check_length(line: str) -> str:
    if len(line) > MAX_LINE:
        raise LimitError(f"line longer than {MAX_LINE} characters", path="stdin", hint="split the message")
    return line


def _readline() -> Any:
    try:
        import readline  # noqa: PLC0415 - not on every system
    except ImportError:
        return None
    return readline
