"""Python literals in text that continues after them: read piece by piece, never evaluated, passed on as JSON.

Models write what no Python reads: line breaks and quotes inside strings, `null`, `07`. Such a value is read where it
can mean one thing only; if it can mean two, it is broken: there is no guessing.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, Literal

from toolglot.dialects.scanner import Scanner, Sink, Steps, marks
from toolglot.dialects.values.json_text import End, json_string

MAX_DEPTH: Final = 128
MAX_BARE: Final = 512
_AHEAD: Final = 256
"""Characters behind a quote that decide whether it ends the string."""
_PREFIX: Final = re.compile(r"([rRuUfF]{1,2})[\"']")
_BARE: Final = re.compile(r"[^\s,()\[\]{}=:;'\"<>|]+")
_INTEGER: Final = re.compile(r"[+-]?\d(?:_?\d){0,400}")
_BASED: Final = re.compile(r"[+-]?0(?:[xX][0-9a-fA-F]{1,64}|[oO][0-7]{1,64}|[bB][01]{1,64})")
_FLOAT: Final = re.compile(r"[+-]?(?:\d[\d_]{0,400}\.?\d{0,400}|\.\d{1,400})(?:[eE][+-]?\d{1,4})?")
_WORDS: Final = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_CLOSES: Final = re.compile(r"\s*+(?:[,)\]}:]|\Z)")
_NEXT_ARGUMENT: Final = re.compile(r"\s*+,\s*+(?:[^\W\d]\w*+\s*+=|\*\*)")
_CALL_OVER: Final = re.compile(r"\s*+\)\s*+(?:\]|\Z|[,;]\s*+[^\W\d][\w.\-/:]*+\s*+\()|\s*+\)[ \t]*+\n|\s*+\Z")
_OPERATED: Final = re.compile(r"\s*+[+%*]\s*+[\"'\w(]|\.\w++\(")
_GLUED: Final = re.compile(r"\s++(?=[\"'])")
_ROWS: Final = {mark: re.compile(f"{mark}+(?={mark}{mark})") for mark in ("'", '"')}
MAX_ROW: Final = 4096
_MAY_END: Final = "),.+%*"
"""What may be behind the end of a string."""
_SIMPLE: Final = {
    "n": "\\n",
    "t": "\\t",
    "r": "\\r",
    "b": "\\b",
    "f": "\\f",
    "a": "\\u0007",
    "v": "\\u000b",
    "\n": "",
    "\\": "\\\\",
    '"': '\\"',
    "'": "'",
}
"""What an escape of Python is in JSON."""
_WIDTHS: Final = {"x": 2, "u": 4, "U": 8}
_OCTAL: Final = re.compile(r"[0-7]{1,3}")

Ending = Literal["end", "inside", "unclear"]


def pass_literal(scanner: Scanner, sink: Sink, ends: tuple[str, ...] = ()) -> Steps[End]:
    """Pass on, as JSON, the literal that begins here. `ends` are marks that may follow it."""
    return (yield from _Values(scanner, ends).value(sink, 0))


def literal(text: str) -> tuple[Any] | None:
    """The value of a text that is one literal, in a tuple; None if it is not a literal."""
    scanner = Scanner()
    scanner.push(text + "\n")
    scanner.is_over = True
    pieces: list[str] = []
    steps = pass_literal(scanner, pieces.append)
    try:
        next(steps)
    except StopIteration as done:
        is_whole = done.value == "whole" and not scanner.text[scanner.at :].strip()
        return (json.loads("".join(pieces)),) if is_whole else None
    raise AssertionError("the reader waits for more of a complete text")


def number_as_json(text: str) -> str | None:
    """The JSON of a number as Python and models write it; None if JSON cannot hold it."""
    if _INTEGER.fullmatch(text):
        return str(int(text.replace("_", "")))
    if _BASED.fullmatch(text):
        return str(int(text, 0))
    if not _FLOAT.fullmatch(text):
        return None
    value = float(text.replace("_", ""))
    return repr(value) if math.isfinite(value) else None


class _Values:
    """Reads one literal. What it reads becomes JSON in the sink."""

    def __init__(self, scanner: Scanner, ends: tuple[str, ...]) -> None:
        self._scanner = scanner
        self._ends = ends
        self._firsts = tuple(end[0] for end in ends)
        self._longest = max(map(len, ends), default=0)

    def value(self, sink: Sink, depth: int) -> Steps[End]:
        mark = yield from self._scanner.skip_spaces()
        if mark == "" or depth > MAX_DEPTH:
            return "open" if mark == "" else "broken"
        if mark == "{":
            return (yield from self._table(sink, depth))
        if mark == "[":
            return (yield from self._list(sink, depth))
        if mark == "(":
            return (yield from self._parentheses(sink, depth))
        return (yield from self._scalar(sink, mark))

    def _scalar(self, sink: Sink, mark: str) -> Steps[End]:
        scanner = self._scanner
        if mark in "rRuUfF":
            yield from scanner.need(3)
        prefix = _PREFIX.match(scanner.text, scanner.at)
        if prefix is not None:
            scanner.at = prefix.end(1)
        if prefix is not None or mark in "\"'":
            return (yield from self._string(sink, raw=prefix is not None and "r" in prefix[1].lower()))
        word = yield from scanner.while_in(_BARE, MAX_BARE)
        found = _WORDS.get(word) or number_as_json(word)
        if scanner.is_over and scanner.at == len(scanner.text):
            return "open"
        if found is None:
            return "broken"
        sink(found)
        return "whole"

    # --- containers ---------------------------------------------------------------------------------

    def _list(self, sink: Sink, depth: int, lead: str = "[", closer: str = "]") -> Steps[End]:
        scanner = self._scanner
        scanner.at += 1
        mark = yield from scanner.skip_spaces()
        while mark != closer:
            sink(lead)
            end = yield from self.value(sink, depth + 1)
            if end != "whole":
                return end
            lead = ", "
            mark = yield from scanner.skip_spaces()
            if mark == ",":
                scanner.at += 1
                mark = yield from scanner.skip_spaces()
            elif mark != closer:
                return "open" if mark == "" else "broken"
            if mark == "":
                return "open"
        scanner.at += 1
        sink("[]" if lead == "[" else "]")
        return "whole"

    def _parentheses(self, sink: Sink, depth: int) -> Steps[End]:
        """A tuple, which is a list; or, without a comma, just the value in it."""
        scanner = self._scanner
        scanner.at += 1
        first: list[str] = []
        mark = yield from scanner.skip_spaces()
        if mark != ")":
            end = yield from self.value(first.append, depth + 1)
            if end != "whole":
                return end
            mark = yield from scanner.skip_spaces()
        if mark == ")":
            scanner.at += 1
            sink("".join(first) or "[]")
            return "whole"
        if mark != ",":
            return "open" if mark == "" else "broken"
        sink("[" + "".join(first))
        return (yield from self._list(sink, depth, ", ", ")"))

    def _table(self, sink: Sink, depth: int) -> Steps[End]:
        """A dictionary; or a set, which is a list."""
        scanner = self._scanner
        scanner.at += 1
        kind = ""
        mark = yield from scanner.skip_spaces()
        while mark != "}":
            if mark == "":
                return "open"
            key: list[str] = []
            end = yield from self._scalar(key.append, mark)
            mark = (yield from scanner.skip_spaces()) if end == "whole" else ""
            if end != "whole" or mark == "":
                return end if end != "whole" else "open"
            is_pair = mark == ":"
            if kind not in ("", "}" if is_pair else "]"):
                return "broken"
            sink(("{" if is_pair else "[") if not kind else ", ")
            kind = "}" if is_pair else "]"
            key_text = "".join(key)
            if is_pair:
                scanner.at += 1
                sink((key_text if key_text.startswith('"') else json_string(key_text)) + ": ")
                end = yield from self.value(sink, depth + 1)
                if end != "whole":
                    return end
                mark = yield from scanner.skip_spaces()
            else:
                sink(key_text)
            if mark == ",":
                scanner.at += 1
                mark = yield from scanner.skip_spaces()
            elif mark != "}":
                return "open" if mark == "" else "broken"
        scanner.at += 1
        sink(kind or "{}")
        return "whole"

    # --- strings ------------------------------------------------------------------------------------

    def _string(self, sink: Sink, *, raw: bool) -> Steps[End]:
        scanner = self._scanner

        def add_text(piece: str) -> None:
            sink(json_string(piece)[1:-1])

        sink('"')
        mark = yield from self._opening()
        has_inner = False
        while True:
            found = yield from scanner.until(marks(mark, "\\"), add_text)
            if found is None:
                return "open"
            if found == "\\":
                if not (yield from self._escape(sink, raw=raw)):
                    return "open"
                continue
            if has_inner and len(mark) == 1 and self._is_plainly_inside():
                add_text(mark + self._quotes_inside(mark))
                continue
            ending = yield from self._ending(mark, has_inner=has_inner)
            if ending == "unclear":
                return "broken"
            if ending == "inside":
                has_inner = True
                add_text(mark + self._quotes_inside(mark))
                continue
            glued = _GLUED.match(self._ahead())
            if glued is None or has_inner:
                sink('"')
                return "whole"
            scanner.at += glued.end()
            mark = yield from self._opening()

    def _opening(self) -> Steps[str]:
        """Read the quotes that a string begins with: one, or three."""
        scanner = self._scanner
        quote = scanner.text[scanner.at]
        yield from scanner.need(3)
        mark = quote * 3 if scanner.text.startswith(quote * 3, scanner.at) else quote
        scanner.at += len(mark)
        return mark

    def _is_plainly_inside(self) -> bool:
        """Whether nothing can end behind a quote, in a string with quotes in it: what `_ending` would say."""
        text, at, firsts = self._scanner.text, self._scanner.at, self._firsts
        if len(text) - at < _AHEAD:
            return False
        first, second = text[at], text[at + 1]
        if first.isspace() or first in _MAY_END or first in firsts:
            return False
        return not firsts or not (second.isspace() or second in firsts)

    def _quotes_inside(self, mark: str) -> str:
        """Read the quotes of a row that are inside a string with quotes in it, as the one before them is: all but the
        last two, since what is behind those decides."""
        scanner = self._scanner
        row = _ROWS[mark].match(scanner.text, scanner.at, scanner.at + MAX_ROW) if mark in _ROWS else None
        if row is None or mark in self._firsts:
            return ""
        scanner.at = row.end()
        return row[0]

    def _escape(self, sink: Sink, *, raw: bool) -> Steps[bool]:
        """What a backslash and what follows it mean; False if the text ends in between."""
        scanner = self._scanner
        letter = yield from scanner.peek()
        if letter == "":
            return False
        octal = _OCTAL.match(letter)
        if not raw and (octal or letter in _WIDTHS):
            yield from scanner.need(3 if octal else _WIDTHS[letter] + 1)
            octal = _OCTAL.match(scanner.text, scanner.at)
        scanner.at += 1
        if not raw and letter in _SIMPLE:
            sink(_SIMPLE[letter])
        elif not raw and octal:
            scanner.at = octal.end()
            sink(json_string(chr(int(octal[0], 8)))[1:-1])
        elif not raw and letter in _WIDTHS:
            sink(self._code(letter, _WIDTHS[letter]))
        else:
            sink("\\\\" + json_string(letter)[1:-1])
        return True

    def _code(self, letter: str, width: int) -> str:
        """The character of a hexadecimal number; anything else stays as it is written."""
        scanner = self._scanner
        digits = scanner.text[scanner.at : scanner.at + width]
        if not re.fullmatch(r"[0-9a-fA-F]+", digits) or len(digits) < width or int(digits, 16) > 0x10FFFF:
            return "\\\\" + letter
        scanner.at += width
        if letter == "u":
            return "\\u" + digits  # half a pair of surrogates is whole with the one behind it
        return json_string(chr(int(digits, 16)))[1:-1]

    def _ending(self, mark: str, *, has_inner: bool) -> Steps[Ending]:
        """Whether a quote is the end of its string, or one that should have been escaped."""
        if len(mark) == 3:
            return "end"
        if len(ahead := self._ahead()) < _AHEAD:
            yield from self._look(_AHEAD if has_inner else 1)
            if self._ahead().lstrip().startswith((".", "+", "%", "*")):
                yield from self._look(_AHEAD)
            if self._ends and self._ahead().lstrip().startswith(self._firsts):
                yield from self._look(self._longest)
            ahead = self._ahead()
        behind = ahead.lstrip() if ahead[:1].isspace() else ahead
        if self._ends and (behind.startswith(self._ends) or behind[1:].lstrip().startswith(self._ends)):
            return "end"
        if not has_inner and _OPERATED.match(ahead):
            return "unclear"
        if not has_inner:
            return "end" if _CLOSES.match(ahead) or _GLUED.match(ahead) else "inside"
        if _CALL_OVER.match(ahead):
            return "end"
        return "unclear" if _NEXT_ARGUMENT.match(ahead) else "inside"

    def _ahead(self) -> str:
        return self._scanner.text[self._scanner.at : self._scanner.at + _AHEAD]

    def _look(self, count: int) -> Steps[None]:
        """Wait for this many characters behind white space, within a limit."""
        scanner = self._scanner
        while len(ahead := self._ahead()) < _AHEAD:
            if len(ahead.lstrip()) >= count or scanner.is_over:
                return
            yield
