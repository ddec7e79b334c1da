"""Text that comes in pieces, broken between words at the width of a terminal.

Law: nothing is lost or added but line breaks in the place of blanks. Only the word that is not over yet is held back.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Final

_TOKEN: Final = re.compile(r"\n| +|[^ \n]+")
_WIDE: Final = ("W", "F")
LONGEST_HELD: Final = 200
"""Characters of a word that is held back until it is over; a longer one is no word."""


class WordWrap:
    """Breaks lines."""

    def __init__(self, width: Callable[[], int]) -> None:
        self._width = width
        self._column = 0
        self._blanks = ""
        self._word = ""

    def feed(self, text: str) -> str:
        """What can be written now."""
        out: list[str] = []
        for found in _TOKEN.finditer(text):
            piece = found[0]
            if piece == "\n":
                out += (self._word_out(), self._blanks, piece)
                self._column, self._blanks = 0, ""
            elif piece[0] == " ":
                out.append(self._word_out())
                self._blanks += piece
            else:
                self._word += piece
                if len(self._word) > LONGEST_HELD:
                    out.append(self._word_out())
        return "".join(out)

    def flush(self) -> str:
        """The rest; the next text begins a line."""
        rest = self._word_out() + self._blanks
        self._column, self._blanks = 0, ""
        return rest

    def _word_out(self) -> str:
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
    """How many columns a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in _WIDE else 1
        for letter in text
    )
