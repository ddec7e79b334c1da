"""What every dialect reads with: the text, the tools that were offered, and where to tell what was found."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, Literal, get_args
from weakref import WeakMethod

from toolglot.conversation import ToolCall
from toolglot.dialects.scanner import Scanner, Steps, marks
from toolglot.dialects.telling import EventWriter

Outcome = Literal["call", "cut", "passed", "none", "unfinished"]
"""A call was told; it was told and then cut off; there is no call, but marks that mean no text, or what they hold was
told; what stands here is no call, and nothing was told; the same, and the text ended before that could be known."""

OUTCOMES: Final = frozenset(get_args(Outcome))

Schemas = Mapping[str, dict[str, Any] | None]
"""The tools that were offered: name → schema of the arguments."""

Thinker = Callable[[tuple[str, ...]], Steps[str | None]]
"""Reads a thought up to one of some closers."""

LONGEST_NAME: Final = 256
_IS_NAME: Final = re.compile(r"(?=.*\w)\S+").fullmatch
"""Letters or digits, and no white space: three dots name no tool."""
_IS_IDENTIFIER: Final = re.compile(r"[^\W\d][\w.:/\-]*+").fullmatch
"""What names of tools look like. Where nobody knows which tools there are, `<function-name>` is a placeholder."""


class DialectReader:
    """The state of one text that is being read."""

    def __init__(self, tools: Schemas, *, only_offered: bool = False, id_stem: str = "") -> None:
        self.scanner: Scanner = Scanner()
        self.teller: EventWriter = EventWriter()
        self.tools = tools
        self.only_offered = only_offered
        """Whether what looks like a call of a tool that was not offered is text."""
        self.is_chosen = False
        """Whether the dialect was named, and not found out from the text."""
        self.is_mentioned = False
        """Whether the mark stands inside a sentence, which may be about it."""
        self.limit = 1 << 60
        """How far behind the beginning of what may be a call its name may stand."""
        self.thinker: WeakMethod[Thinker] | None = None
        """What knows more of thoughts than this does. It holds this reader, so that it is not held."""
        self._id_stem = id_stem
        self._number = 0
        self.has_open_call: bool = False

    def accepts(self, name: str | None) -> bool:
        """Whether a name can be that of a tool."""
        if not name or len(name) > LONGEST_NAME or not _IS_NAME(name):
            return False
        if self.scanner.size_since_mark() > self.limit:
            return False
        if name in self.tools:
            return True
        return not self.only_offered and (self.is_chosen or _IS_IDENTIFIER(name) is not None)

    def think_until(self, closers: tuple[str, ...]) -> Steps[str | None]:
        """Reads a thought up to one of some closers, or to a call, where there is none of them."""
        think = self.thinker() if self.thinker is not None else None
        return think(closers) if think is not None else self._think_plainly(closers)

    def _think_plainly(self, closers: tuple[str, ...]) -> Steps[str | None]:
        return (yield from self.scanner.until(marks(*closers), self.teller.think))

    def schema(self, name: str) -> dict[str, Any] | None:
        return self.tools.get(name)

    @property
    def number(self) -> int:
        """How many calls were begun so far."""
        return self._number

    def open(self, name: str, id: str = "") -> None:
        """A call begins. What was read of it will not be text again."""
        self.scanner.let_go()
        self.has_open_call = True
        made = self._next_id()
        self.teller.open_call(ToolCall(id or made, name))

    def input(self, piece: str) -> None:
        self.teller.input(piece)

    def close(self, *, cut: bool = False) -> Outcome:
        self.has_open_call = False
        self.teller.close_call(cut=cut)
        return "cut" if cut else "call"

    def _next_id(self) -> str:
        """An id by rule: the same text gives the same ids."""
        number, self._number = self._number, self._number + 1
        return f"call_{sha256(f'{self._id_stem}|{number}'.encode(errors='surrogatepass')).hexdigest()[:24]}"
