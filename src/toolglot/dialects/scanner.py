"""Text that comes in pieces, read by a generator that waits where it needs more.

    def greeting(scanner: Scanner) -> Steps[str | None]:
        return (yield from scanner.until(Marks("</hello>"), pieces.append))

A reader is a generator: it reads with the methods below, each of which is one too, and is resumed with every piece. So
a dialect is written as if all of its text were there.

Laws: what is read depends on the text and never on where it was cut. No character is looked at more than a bounded
number of times. Only text from `mark` on is kept, and what may be the beginning of a mark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from functools import lru_cache
from typing import Final, TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]
Sink = Callable[[str], object]

_SPACES: Final = re.compile(r"\s*")


def discard(piece: str) -> None:
    """A sink for text that means nothing."""


class Marks:
    """Strings to look for. None of them is the beginning of another, so that the first one found is the one meant."""

    __slots__ = ("_firsts", "_found", "_held", "max_length", "passes")

    def __init__(self, *marks: str) -> None:
        listed = sorted(set(marks), key=len, reverse=True)
        for mark in listed:
            longer = next((other for other in listed if other != mark and other.startswith(mark)), None)
            if not mark or longer is not None:
                raise ValueError(f"the mark {mark!r} is the beginning of {longer!r}")
        self.max_length: int = len(listed[0]) if listed else 0
        self._found = re.compile("|".join(map(re.escape, listed)) or r"(?!)")
        firsts = "".join(re.escape(first) for first in sorted({mark[0] for mark in listed}))
        self._firsts = re.compile(f"[{firsts}]" if listed else r"(?!)")
        unmarked = re.compile(f"[^{firsts}]+" if listed else r"(?s:.+)")
        self.passes: Callable[[str], re.Match[str] | None] = unmarked.fullmatch
        """Matches a non-empty text in which no mark can begin."""
        self._held = re.compile("(?:" + "|".join(map(_beginning, listed)) + r")\Z" if listed else r"(?!)")

    def find(self, text: str, start: int) -> re.Match[str] | None:
        """The first mark from there on."""
        return self._found.search(text, start)

    def may_begin(self, text: str, start: int) -> int | None:
        """Where the first character is that a mark could begin with; None if there is none."""
        found = self._firsts.search(text, start)
        return found.start() if found is not None else None

    def held_from(self, text: str, start: int) -> int:
        """Where an incomplete mark may begin at the end of the text; the length of the text if none does."""
        found = self._held.search(text, max(start, len(text) - self.max_length + 1))
        return found.start() if found is not None else len(text)


def _beginning(mark: str) -> str:
    """A pattern for every proper beginning of a mark."""
    pattern = ""
    for character in reversed(mark[1:-1]):
        pattern = f"(?:{re.escape(character)}{pattern})?"
    return re.escape(mark[0]) + pattern if len(mark) > 1 else r"(?!)"


@lru_cache(maxsize=1024)
def marks(*written: str) -> Marks:
    """The marks, made once."""
    return Marks(*written)


class Scanner:
    """The text so far, and how far it was read."""

    __slots__ = ("_kept", "_kept_size", "_mark", "at", "fed", "is_over", "passes", "sink", "text")

    def __init__(self) -> None:
        self.text: str = ""
        self.at: int = 0
        self.fed: int = 0
        """Characters that came so far."""
        self.is_over: bool = False
        """Whether the text is complete."""
        self._mark: int | None = None
        """Where the mark is in the text; what was read after it and is no longer in the text is in `_kept`."""
        self._kept: list[str] = []
        self._kept_size = 0
        self.passes: Callable[[str], object] | None = None
        """While a reader waits: matches a piece that need not be searched. Such a piece goes straight to the sink."""
        self.sink: Sink = discard

    def wait_for(self, passes: Callable[[str], object] | None, sink: Sink) -> None:
        """Set which next piece goes straight to the sink, if all text was read and none of it is kept."""
        if self.at == len(self.text) and self._mark is None:
            self.passes, self.sink = passes, sink

    def push(self, piece: str) -> None:
        """More text. What was read and is not marked is forgotten."""
        self.passes = None
        self.fed += len(piece)
        at = self.at
        if self._mark is not None:
            self._kept.append(self.text[self._mark : at])
            self._kept_size += at - self._mark
            self._mark = 0
        self.text = self.text[at:] + piece if at < len(self.text) else piece
        self.at = 0

    @property
    def position(self) -> int:
        """Characters of the text that were read."""
        return self.fed - len(self.text) + self.at

    # --- marking ------------------------------------------------------------------------------------

    def mark(self) -> None:
        """Keep the text from here on, until `unmark` or `go_back`."""
        self._mark, self._kept, self._kept_size = self.at, [], 0

    @property
    def is_marked(self) -> bool:
        return self._mark is not None

    def since_mark(self) -> str:
        """What was read since the mark."""
        start = self._mark if self._mark is not None else self.at
        return "".join((*self._kept, self.text[start : self.at]))

    def size_since_mark(self) -> int:
        """How many characters were read since the mark."""
        start = self._mark if self._mark is not None else self.at
        return self._kept_size + self.at - start

    def unmark(self) -> None:
        """Forget the mark; what was read stays read."""
        self._mark, self._kept, self._kept_size = None, [], 0

    def go_back(self) -> None:
        """Read again from the mark on."""
        if self._mark is None:
            return
        if self._kept:
            self.text = self.since_mark() + self.text[self.at :]
            self.at = 0
        else:
            self.at = self._mark
        self.unmark()

    def put_back(self, text: str) -> None:
        """Read this text next, and what was next after it."""
        if text:
            self.text = text + self.text[self.at :]
            self.at = 0

    # --- reading ------------------------------------------------------------------------------------

    def more(self) -> Steps[bool]:
        """Wait for more text; False if none comes."""
        if self.is_over:
            return False
        yield
        return not self.is_over

    def need(self, count: int) -> Steps[bool]:
        """Wait until this many characters are there; False if the text ends before."""
        while len(self.text) - self.at < count:
            if not (yield from self.more()):
                return len(self.text) - self.at >= count
        return True

    def peek(self) -> Steps[str]:
        """The next character, which stays unread; empty at the end."""
        if self.at == len(self.text) and not (yield from self.need(1)):
            return ""
        return self.text[self.at]

    def skip_spaces(self) -> Steps[str]:
        """Read white space; the next character after it, which stays unread."""
        while True:
            found = _SPACES.match(self.text, self.at)
            self.at = found.end() if found is not None else self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if not (yield from self.more()):
                return ""

    def until(self, wanted: Marks, sink: Sink) -> Steps[str | None]:
        """Pass text on until one of the marks, which is read too; None if the text ends without one."""
        while True:
            text = self.text
            first = wanted.may_begin(text, self.at)
            if first is None:
                end = len(text)
            else:
                found = wanted.find(text, first)
                if found is not None:
                    if found.start() > self.at:
                        sink(text[self.at : found.start()])
                    self.at = found.end()
                    return found[0]
                end = len(text) if self.is_over else wanted.held_from(text, first)
            if end > self.at:
                sink(text[self.at : end])
                self.at = end
            if self.is_over:
                return None
            self.wait_for(wanted.passes, sink)
            yield

    def one_of(self, options: Iterable[str]) -> Steps[str | None]:
        """Read the longest of the options that comes here; None if none does."""
        listed = sorted(options, key=len, reverse=True)
        for option in listed:
            start = self.at
            while not self.is_over and len(self.text) - start < len(option):
                if not option.startswith(self.text[start:]):
                    break
                yield
                start = self.at
            if self.text.startswith(option, self.at):
                self.at += len(option)
                return option
        return None

    def while_in(self, pattern: re.Pattern[str], max_length: int) -> Steps[str]:
        """Read characters as long as they match the pattern, which matches one or more, up to `max_length`."""
        read: list[str] = []
        left = max_length
        while left > 0:
            found = pattern.match(self.text, self.at, min(len(self.text), self.at + left))
            if found is not None:
                read.append(found[0])
                left -= len(found[0])
                self.at = found.end()
            if self.at < len(self.text) or not (yield from self.more()):
                break
        return "".join(read)
