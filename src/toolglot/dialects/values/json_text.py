"""JSON in text that continues after it: read piece by piece, and passed on as it is written.

A value ends where its brackets do. Outside of strings, a character that no JSON has ends it too: that is how the marks
of a dialect are found behind a value that lacks its last bracket. A line break inside a string, which JSON forbids and
models write, is passed on as its escape.
"""

from __future__ import annotations

import json.encoder
import re
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from toolglot.dialects.scanner import Scanner, Sink, Steps

End = Literal["whole", "broken", "open"]
"""A value is whole, holds something that is not JSON, or the text ended inside it."""

_OUTSIDE: Final = re.compile(r"""["{}\[\]]|[^\s\w,:.+\-"{}\[\]]""")
_INSIDE: Final = re.compile(r'["\\]|[\x00-\x1f]+')
_NO_CONTROL: Final = re.compile(r"[^\x00-\x1f]")
_ESCAPES: Final = {code: f"\\u{code:04x}" for code in range(0x20)}
_PASSES_OUTSIDE: Final = re.compile(r"[\s\w,:.+\-]*").fullmatch
_PASSES_INSIDE: Final = re.compile(r'(?:[^"\\\x00-\x1f]++|\\.)*+', re.DOTALL).fullmatch
_SCALAR: Final = re.compile(r"[^\s,}\]<>|{\[\"]+")
MAX_WORD: Final = 512
"""The maximal length of a key, a name or an id."""
MAX_SCALAR: Final = 4096


def pass_value(scanner: Scanner, sink: Sink) -> Steps[End]:
    """Pass on the text of the value that begins here, as it is."""
    first = yield from scanner.peek()
    if first == "":
        return "open"
    if first not in '{["':
        word = yield from scanner.while_in(_SCALAR, MAX_SCALAR)
        sink(word)
        return "whole" if word else "broken"
    run = _Run()
    while True:
        start = scanner.at
        scanner.at, end = run.follow(scanner.text, start)
        if scanner.at > start:
            sink(scanner.text[start : scanner.at])
        if end == "control":
            start, scanner.at = scanner.at, _end_of_controls(scanner.text, scanner.at)
            sink(scanner.text[start : scanner.at].translate(_ESCAPES))
            continue
        if end != "open" or scanner.is_over:
            return end
        scanner.wait_for(run.passes, sink)
        yield


def pass_object(scanner: Scanner, sink: Sink) -> Steps[End]:
    """Pass on the text of the object whose brace was read, to the last character as it is."""
    run = _Run(depth=1)
    while True:
        start = scanner.at
        scanner.at, end = run.follow(scanner.text, start)
        if end == "control":
            scanner.at += 1
        if scanner.at > start:
            sink(scanner.text[start : scanner.at])
        if end in ("whole", "broken") or (end == "open" and scanner.is_over):
            return "whole" if end == "whole" else "broken" if end == "broken" else "open"
        if end == "open":
            scanner.wait_for(run.passes, sink)
            yield


def repair_json(written: str) -> str:
    """The text of a value that is whole, with the line breaks inside its strings as escapes."""
    run, pieces, start = _Run(), [], 0
    while True:
        end_at, end = run.follow(written, start)
        pieces.append(written[start:end_at])
        if end != "control":
            return "".join((*pieces, written[end_at:]))
        pieces.append(written[end_at].translate(_ESCAPES))
        start = end_at + 1


class _Run:
    """How far a value has come: how deep it is, and whether inside a string."""

    __slots__ = ("_depth", "_escaped", "_in_string")

    def __init__(self, depth: int = 0) -> None:
        self._depth = depth
        self._in_string = False
        self._escaped = False

    def follow(self, text: str, position: int) -> tuple[int, End | Literal["control"]]:
        """Where the value, or the text, ends, or a control character comes, and which of these."""
        while position < len(text):
            if self._escaped:
                self._escaped = False
                position += 1
                continue
            found = (_INSIDE if self._in_string else _OUTSIDE).search(text, position)
            if found is None:
                break
            if found[0] < " ":
                return found.start(), "control"
            position = found.end()
            end = self._step(found[0])
            if end != "open":
                return position - (end == "broken"), end
        return len(text), "open"

    @property
    def passes(self) -> Callable[[str], object] | None:
        """Matches a piece that changes nothing; None if the first character of the next one is escaped."""
        if self._escaped:
            return None
        return _PASSES_INSIDE if self._in_string else _PASSES_OUTSIDE

    def _step(self, mark: str) -> End:
        if mark == '"':
            self._in_string = not self._in_string
            return "whole" if self._depth == 0 and not self._in_string else "open"
        if mark in "{[":
            self._depth += 1
            return "open"
        if mark in "}]":
            self._depth -= 1
            return "whole" if self._depth <= 0 else "open"
        self._escaped = self._in_string
        return "open" if self._in_string else "broken"


def _end_of_controls(text: str, start: int) -> int:
    found = _NO_CONTROL.search(text, start)
    return found.start() if found is not None else len(text)


def read_string(scanner: Scanner, max_length: int = MAX_WORD) -> Steps[str | None]:
    """The string that begins here; None if there is none, it is too long or has no end."""
    pieces: list[str] = []
    size = 0

    def keep(piece: str) -> None:
        nonlocal size
        size += len(piece)
        if size <= max_length + 2:
            pieces.append(piece)

    if (yield from scanner.peek()) != '"':
        return None
    if (yield from pass_value(scanner, keep)) != "whole" or size > max_length + 2:
        return None
    return unescape("".join(pieces))


def unescape(written: str) -> str | None:
    """The string that a JSON string means."""
    try:
        return msgspec.json.decode(written, type=str)
    except ValueError:
        return None


json_string: Final = json.encoder.encode_basestring
"""A text as a JSON string."""
