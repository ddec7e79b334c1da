"""A dict as Python prints it, in text that continues after it: `{'name': 'ls', 'arguments': {'p': None}}`."""

from __future__ import annotations

import re
from typing import Any, Final

from toolglot.dialects.scanner import Scanner, Steps
from toolglot.dialects.values.python_text import literal

_OUTSIDE: Final = re.compile(r"""["'{}\[\]]""")
_INSIDE: Final = {"'": re.compile(r"['\\]"), '"': re.compile(r'["\\]')}


def pass_dict(scanner: Scanner) -> Steps[dict[str, Any] | None]:
    """The dict whose brace was read; None if it has no end or is not a dict."""
    pieces = ["{"]
    ends = _Ends()
    while True:
        start = scanner.at
        scanner.at = ends.follow(scanner.text, start)
        pieces.append(scanner.text[start : scanner.at])
        if ends.depth == 0:
            break
        if not (yield from scanner.more()):
            return None
    found = literal("".join(pieces))
    return found[0] if found is not None and isinstance(found[0], dict) else None


class _Ends:
    """How deep a text is in brackets, and in which string."""

    __slots__ = ("_escaped", "_quote", "depth")

    def __init__(self) -> None:
        self.depth = 1
        self._quote = ""
        self._escaped = False

    def follow(self, text: str, position: int) -> int:
        """Where the dict ends in this text, or the text does."""
        while self.depth and position < len(text):
            if self._escaped:
                self._escaped = False
                position += 1
                continue
            found = (_INSIDE[self._quote] if self._quote else _OUTSIDE).search(text, position)
            if found is None:
                return len(text)
            position = found.end()
            self._step(found[0])
        return position

    def _step(self, mark: str) -> None:
        if mark == "\\":
            self._escaped = True
        elif mark in "\"'":
            self._quote = "" if self._quote else mark
        else:
            self.depth += 1 if mark in "{[" else -1
