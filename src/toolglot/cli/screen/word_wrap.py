"""Wraps streamed text between words, at the width of a terminal.

Law: the only change is that spaces become line breaks. Only an incomplete word is held back.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Final

_TOKEN: Final = re.compile(r"\n| +|[^ \n]+")
_WIDE: Final = ("W", "F")
MAX_HELD: Final = 200
"""Characters of an incomplete word that are held back. Longer ones are written as they come."""


class WordWrap:
    """Wraps lines."""

    def __init__(self, width: Callable[[], int]) -> None:
        self._width = width
        self._column = 0
        self._blanks = ""
        self._word = ""

    def feed(self, text: str) -> str:
        """The output for the text so far."""
        out: list[str] = []
        for found in _TOKEN.finditer(text):
            piece = found[0]
            if piece == "\n":
                out += (self._take_word(), self._blanks, piece)
                self._column, self._blanks = 0, ""
            elif piece[0] == " ":
                out.append(self._take_word())
                self._blanks += piece
            else:
                self._word += piece
                if len(self._word) > MAX_HELD:
                    out.append(self._take_word())
        return "".join(out)

    def flush(self) -> str:
        """The rest of the output. The next text begins a line."""
        rest = self._take_word() + self._blanks
        self._column, self._blanks = 0, ""
        return rest

    def _take_word(self) -> str:
        if not self._word:
            return ""
        blanks, word = self._blanks, self._word
        self._blanks = self._word = ""
        wide = cells(word)
        if self._column and self._column + len(blanks) + wide > self._width():
            self._column = wide
            return f"\n{word}"
        self._column += len(blanks) + wide
        return blanks + word


def cells(text: str) -> int:
    """The number of columns of a text on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in _WIDE else 1
        for letter in text
    )
