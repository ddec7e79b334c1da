"""What every dialect reads with: the text, the offered tools, and the writer of events."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, Literal, get_args
from weakref import WeakMethod

from toolglot.conversation import ToolCall
from toolglot.dialects.event_writer import EventWriter
from toolglot.dialects.scanner import Scanner, Steps, marks

Outcome = Literal["call", "cut", "passed", "none", "unfinished"]
"""How a `read` ended:

call, cut: there were calls, and the last one was whole, or was cut off;
passed: no call, but marks that are not text, or whose text was written already;
none: not a call, and nothing was written; what was read becomes text;
unfinished: the same, but the text ended before that could be known.
"""

OUTCOMES: Final = frozenset(get_args(Outcome))

Schemas = Mapping[str, dict[str, Any] | None]
"""The offered tools: name → schema of the arguments."""

Thinker = Callable[[tuple[str, ...]], Steps[str | None]]
"""Reads thinking up to one of some closers."""

MAX_NAME: Final = 256
MAX_CALLS: Final = 1_024
"""Calls of one text. More are text."""
_IS_NAME: Final = re.compile(r"(?=.*\w)\S+").fullmatch
"""Letters or digits, and no white space: three dots are not a name."""
_IS_IDENTIFIER: Final = re.compile(r"[^\W\d][\w.:/\-]*+").fullmatch
"""What names of tools look like. If the tools are unknown, `<function-name>` is a placeholder."""


class DialectReader:
    """The state of one text that is being read."""

    def __init__(self, tools: Schemas, *, only_offered: bool = False, id_stem: str = "") -> None:
        self.scanner: Scanner = Scanner()
        self.output: EventWriter = EventWriter()
        self.tools = tools
        self.only_offered = only_offered
        """Whether a call of a tool that was not offered is text."""
        self.is_chosen = False
        """Whether the user named the dialect; otherwise it was detected."""
        self.is_mentioned = False
        """Whether the mark is inside a sentence, which may be about it."""
        self.limit = 1 << 60
        """Within how many characters of its start a possible call must have its name."""
        self.thinker: WeakMethod[Thinker] | None = None
        """Reads thinking instead of this class. A weak reference, since it refers to this reader."""
        self._id_stem = id_stem
        self._number = 0
        self.has_open_call: bool = False

    def accepts(self, name: str | None) -> bool:
        """Whether a name can be that of a tool."""
        if not name or len(name) > MAX_NAME or not _IS_NAME(name):
            return False
        if self.scanner.size_since_mark() > self.limit or self._number >= MAX_CALLS:
            return False
        if name in self.tools:
            return True
        return not self.only_offered and (self.is_chosen or _IS_IDENTIFIER(name) is not None)

    def think_until(self, closers: tuple[str, ...]) -> Steps[str | None]:
        """Read thinking up to one of some closers, or up to a call if there is none of them."""
        add_thinking = self.thinker() if self.thinker is not None else None
        return add_thinking(closers) if add_thinking is not None else self._think_plainly(closers)

    def _think_plainly(self, closers: tuple[str, ...]) -> Steps[str | None]:
        return (yield from self.scanner.until(marks(*closers), self.output.add_thinking))

    def schema(self, name: str) -> dict[str, Any] | None:
        return self.tools.get(name)

    @property
    def number(self) -> int:
        """The number of calls so far."""
        return self._number

    def open(self, name: str, id: str = "") -> None:
        """Begin a call. What was read of it can no longer become text."""
        self.scanner.unmark()
        self.has_open_call = True
        made = self._next_id()
        self.output.open_call(ToolCall(id or made, name))

    def input(self, piece: str) -> None:
        self.output.input(piece)

    def close(self, *, cut: bool = False) -> Outcome:
        self.has_open_call = False
        self.output.close_call(cut=cut)
        return "cut" if cut else "call"

    def _next_id(self) -> str:
        """An id by rule: the same text gives the same ids."""
        number, self._number = self._number, self._number + 1
        return f"call_{sha256(f'{self._id_stem}|{number}'.encode(errors='surrogatepass')).hexdigest()[:24]}"
