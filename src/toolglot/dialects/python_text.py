"""Python literals and calls as text: `ls(p="/", n=[1, None])`. Read by hand, never evaluated."""

from __future__ import annotations

import re
from typing import Any, Final

_DEEPEST: Final = 64
_SPACE: Final = re.compile(r"\s*")
_NUMBER: Final = re.compile(r"[+-]?(?:\d[\d_]{0,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,4})?")
_WORD: Final = re.compile(r"[^\W\d][\w.\-]{0,255}")
_PREFIX: Final = re.compile(r"[rbuRBU]{0,2}(?=[\"'])")
_WORDS: Final[dict[str, Any]] = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "0": "\0", "a": "\a", "v": "\v", "\n": ""}


class NoLiteralError(Exception):
    """What stands here is no literal."""


def literal(text: str) -> tuple[Any] | None:
    """The value of a text that is one literal, in a tuple; None if it is none."""
    reading = PythonText(text)
    try:
        value = reading.value(0)
    except (NoLiteralError, RecursionError, ValueError):
        return None
    reading.space()
    return (value,) if reading.at == len(text) else None


class PythonText:
    """Reads literals from a text that is whole."""

    def __init__(self, text: str, at: int = 0) -> None:
        self.text = text
        self.at = at

    def space(self) -> str:
        """Skip white space; the next character."""
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found is not None else self.at
        return self.text[self.at : self.at + 1]

    def take(self, mark: str) -> bool:
        if self.space() == mark:
            self.at += 1
            return True
        return False

    def word(self) -> str:
        found = _WORD.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]

    def value(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise NoLiteralError
        mark = self.space()
        if mark == "{":
            return self._table(depth)
        if mark in ("[", "("):
            return self._list(depth, "]" if mark == "[" else ")")
        prefix = _PREFIX.match(self.text, self.at)
        if prefix is not None:
            self.at = prefix.end()
            return self._string(raw="r" in prefix[0].lower())
        found = _NUMBER.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
            return _number(found[0])
        word = self.word()
        if word not in _WORDS:
            raise NoLiteralError
        return _WORDS[word]

    def _table(self, depth: int) -> dict[str, Any]:
        self.at += 1
        fields: dict[str, Any] = {}
        while not self.take("}"):
            key = self.value(depth + 1)
            if not self.take(":"):
                raise NoLiteralError
            fields[key if isinstance(key, str) else str(key)] = self.value(depth + 1)
            if not self.take(",") and self.space() != "}":
                raise NoLiteralError
        return fields

    def _list(self, depth: int, end: str) -> list[Any]:
        self.at += 1
        items: list[Any] = []
        while not self.take(end):
            items.append(self.value(depth + 1))
            if not self.take(",") and self.space() != end:
                raise NoLiteralError
        return items

    def _string(self, *, raw: bool) -> str:
        quote = self.text[self.at]
        if self.text.startswith(quote * 3, self.at):
            quote *= 3
        self.at += len(quote)
        pieces: list[str] = []
        while True:
            end = self.text.find(quote, self.at)
            slash = -1 if raw else self.text.find("\\", self.at, end if end >= 0 else len(self.text))
            if slash >= 0:
                pieces.append(self.text[self.at : slash])
                self.at = slash + 1
                pieces.append(self._escape())
                continue
            if end < 0:
                raise NoLiteralError
            pieces.append(self.text[self.at : end])
            self.at = end + len(quote)
            return "".join(pieces)

    def _escape(self) -> str:
        mark = self.text[self.at : self.at + 1]
        self.at += 1
        width = {"x": 2, "u": 4, "U": 8}.get(mark)
        if width is not None:
            digits = self.text[self.at : self.at + width]
            self.at += width
            code = int(digits, 16) if re.fullmatch(r"[0-9a-fA-F]+", digits) and len(digits) == width else -1
            if not 0 <= code < 0x110000:
                raise NoLiteralError
            return chr(code)
        return _ESCAPES.get(mark, mark if mark in "\\'\"" else "\\" + mark)


def _number(text: str) -> int | float:
    text = text.replace("_", "")
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
