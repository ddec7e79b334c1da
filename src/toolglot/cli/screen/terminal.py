"""Output for people: colours, errors, tables, a progress bar.

Laws: no colours in a pipe, or with NO_COLOR or TERM=dumb, unless requested. Untrusted text never reaches a terminal
with control characters, or with anything that looks like a key. `rich` is optional: it only draws a better progress
bar.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import msgspec

from toolglot.errors import InputError
from toolglot.masking import mask

COLOR_CHOICES: Final = ("auto", "always", "never")

_CODES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
_LARGE: Final = 8 * 1024 * 1024
"""Input of this size or more gets a progress bar."""
_BAR: Final = 30
_MAX_WIDTH: Final = 120


def clean(text: str) -> str:
    """Text that is safe on a terminal: one line, no control characters, no secrets."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), mask(text))


def clean_lines(text: str) -> str:
    """Text of several lines that is safe on a terminal."""
    lines = text.replace("\r", "").replace("\t", "    ").split("\n")
    return "\n".join(clean(line) if line else line for line in lines)


def local_time(seconds: float) -> str:
    """A time, as lists show it."""
    return f"{datetime.fromtimestamp(seconds, UTC).astimezone():%Y-%m-%d %H:%M}"


def plural(count: int, noun: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


class TerminalPage:
    """A text stream for people."""

    def __init__(self, stream: TextIO, color: str) -> None:
        self.stream = stream
        self.is_terminal: bool = stream.isatty()
        self.has_color: bool = color == "always" or (color == "auto" and self.is_terminal and _wants_color())

    def can_write(self, text: str) -> bool:
        """Whether the encoding of the stream has all characters."""
        try:
            text.encode(getattr(self.stream, "encoding", None) or "utf-8")
        except (UnicodeEncodeError, LookupError):
            return False
        return True

    @property
    def is_live(self) -> bool:
        """Whether a line can be drawn and erased."""
        return self.is_terminal and os.environ.get("TERM") != "dumb"

    @property
    def width(self) -> int:
        return min(shutil.get_terminal_size((_MAX_WIDTH, 24)).columns, _MAX_WIDTH) if self.is_terminal else _MAX_WIDTH

    def paint(self, text: str, *styles: str) -> str:
        if not self.has_color or not text:
            return text
        return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m"

    def line(self, text: str = "") -> None:
        self.stream.write(f"{text}\n")

    def paragraph(self, text: str, *, indent: str = "", first: str | None = None) -> None:
        """Write a paragraph, wrapped at the width of the page."""
        start = indent if first is None else first
        for line in textwrap.wrap(
            text,
            max(self.width, 40),
            initial_indent=start,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ):
            self.line(line)

    def hint(self, text: str, *, indent: str = "        ", first: str = "  hint: ") -> None:
        """Write a hint. Its first line is wrapped; the others are written unchanged."""
        head, *rest = text.split("\n")
        self.paragraph(clean(head), indent=indent, first=first)
        for line in rest:
            self.line(f"{indent}{clean(line)}".rstrip())

    def table(self, rows: Sequence[Sequence[str]], *, heading: Sequence[str]) -> None:
        """Write a table. The last column is wrapped."""
        widths = [max(len(row[column]) for row in (*rows, heading)) for column in range(len(heading) - 1)]
        gap = "  "
        indent = " " * (sum(widths) + len(gap) * len(widths))
        self.line(
            self.paint(gap.join([*(word.ljust(wide) for word, wide in zip(heading, widths, strict=False))]), "bold")
            + self.paint(gap + heading[-1], "bold")
        )
        for row in rows:
            cells = gap.join(cell.ljust(wide) for cell, wide in zip(row, widths, strict=False))
            room = max(self.width - len(indent), 24)
            last = textwrap.wrap(row[-1], room, break_on_hyphens=False) or [""]
            self.line((cells + gap + last[0]).rstrip())
            for more in last[1:]:
                self.line(indent + more)


class Terminal:
    """Where a command writes: results to `out`, everything else to `err`."""

    def __init__(self, out: TextIO, err: TextIO, *, color: str = "auto") -> None:
        self.out: TerminalPage = TerminalPage(out, color)
        self.err: TerminalPage = TerminalPage(err, color)

    def write_data(self, data: bytes) -> None:
        """Write bytes to stdout, whatever its encoding."""
        self.out.stream.flush()
        self.out.stream.buffer.write(data)
        self.out.stream.buffer.flush()

    def write_json(self, value: Any) -> None:
        """Indented JSON."""
        self.out.line(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())

    def error(self, error: InputError, *, where: str = "") -> None:
        """Print an error: where, what was wrong, and a hint."""
        location = where or (error.path if error.path != "$" else "")
        inner = f" at {error.path}" if where and error.path not in ("", "$", where) else ""
        self.err.line(
            self.err.paint("error: ", "bold", "red")
            + (self.err.paint(f"{clean(location)}: ", "bold") if location else "")
            + clean(error.message)
            + clean(inner)
        )
        if error.hint:
            self.err.hint(error.hint)

    def note(self, text: str) -> None:
        self.err.paragraph(clean(text), indent="      ", first="note: ")

    @contextlib.contextmanager
    def progress(self, total: int, label: str, *, quiet: bool) -> Iterator[Callable[[int], None]]:
        """Yield a function to call with the number of bytes done. Shown only on a terminal, for large input."""
        if quiet or not self.err.is_terminal or total < _LARGE:
            yield lambda _done: None
            return
        try:
            rich: Any = importlib.import_module("rich.progress")
        except ImportError:
            yield from self._plain_progress(total, label)
            return
        console = importlib.import_module("rich.console").Console(stderr=True)
        with rich.Progress(console=console, transient=True) as bar:
            task = bar.add_task(clean(label), total=total)
            yield lambda done: bar.advance(task, done)

    def _plain_progress(self, total: int, label: str) -> Iterator[Callable[[int], None]]:
        done, shown = 0, -1

        def advance(size: int) -> None:
            nonlocal done, shown
            done += size
            percent = min(100 * done // total, 100)
            if percent != shown:
                shown = percent
                bar = ("#" * (_BAR * percent // 100)).ljust(_BAR, "-")
                self.err.stream.write(f"\r{clean(label)} [{bar}] {percent:3d} %")
                self.err.stream.flush()

        try:
            yield advance
        finally:
            self.err.stream.write("\r\x1b[K")


def _wants_color() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
