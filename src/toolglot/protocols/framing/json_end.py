"""Where a JSON object ends in text that comes in pieces.

Law: no character is read twice, however the text is cut, and only on demand: a stream of arguments costs nothing here
unless something depends on where they end.
"""

from __future__ import annotations

import re
from typing import Final

_OUTSIDE: Final = re.compile(r'["{}\[\]]')
_INSIDE: Final = re.compile(r'["\\]')


class ObjectEnd:
    """Finds the end of the first value, if it is an object, an array or a string."""

    __slots__ = ("_depth", "_escaped", "_in_string", "_looked_at", "end")

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._looked_at = 0
        self.end: int | None = None
        """The index after the value, from the first character; None while it is open."""

    def look(self, text: str) -> int | None:
        """Scan more of the text. Returns where the value ended, if it has."""
        position, length = 0, len(text)
        while self.end is None and position < length:
            if self._escaped:
                self._escaped = False
                position += 1
                continue
            found = (_INSIDE if self._in_string else _OUTSIDE).search(text, position)
            if found is None:
                break
            position = found.end()
            self._step(found[0], position)
        self._looked_at += length
        return self.end

    def _step(self, mark: str, position: int) -> None:
        if mark == "\\":
            self._escaped = True
        elif mark == '"':
            self._in_string = not self._in_string
            if not self._in_string and self._depth == 0:
                self.end = self._looked_at + position
        elif mark in "{[":
            self._depth += 1
        else:
            self._depth -= 1
            if self._depth <= 0:
                self.end = self._looked_at + position
