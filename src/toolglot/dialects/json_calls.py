"""Calls written as JSON: an object with a name and arguments, a list of such, or arguments behind a name.

The name is told as soon as it is known, and the arguments while they come. Where the arguments come first, they wait.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from toolglot.dialects.json_text import End, pass_value, read_string, unescaped
from toolglot.dialects.reading import Outcome, Reader
from toolglot.dialects.scanner import Steps


class CallKeys(NamedTuple):
    """What the fields of a call are called."""

    name: tuple[str, ...] = ("name", "tool_name", "function_name", "tool")
    arguments: tuple[str, ...] = ("arguments", "parameters", "args", "input")
    id: tuple[str, ...] = ()
    """Where ids are written, a call is told only when all of it was read."""
    inside: tuple[str, ...] = ("function",)
    """Objects that hold the fields above."""


KEYS: Final = CallKeys()


class _Parts:
    """What was read of one call."""

    def __init__(self, reader: Reader, *, waits: bool) -> None:
        self._reader = reader
        self._waits = waits
        self.name: str | None = None
        self.id = ""
        self._early: list[str] = []
        self.is_open = False
        self.has_input = False

    def input(self, piece: str) -> None:
        if self.is_open:
            self._reader.input(piece)
        else:
            self._early.append(piece)

    def begin(self) -> bool:
        """Tell the call if that can be done by now; False if its name is none."""
        if self.is_open or self.name is None:
            return True
        if not self._reader.accepts(self.name):
            return False
        if not self._waits:
            self.open()
        return True

    def open(self) -> None:
        self._reader.open(self.name or "", self.id)
        self.is_open = True
        self._reader.input("".join(self._early))
        self._early.clear()


def call_object(reader: Reader, keys: CallKeys = KEYS) -> Steps[Outcome]:
    """The call that the object here is."""
    scanner = reader.scanner
    parts = _Parts(reader, waits=bool(keys.id))
    scanner.at += 1  # the brace
    depth = 1
    while depth:
        mark = yield from scanner.skip_spaces()
        if mark == "":
            return _broken(reader, parts, "unfinished")
        if mark in "},":
            scanner.at += 1
            depth -= mark == "}"
            continue
        key = yield from read_string(scanner)
        mark = (yield from scanner.skip_spaces()) if key is not None else ""
        if key is None or mark != ":":
            return _broken(reader, parts, "unfinished" if scanner.is_over else "none")
        scanner.at += 1
        mark = yield from scanner.skip_spaces()
        if key in keys.inside and mark == "{":
            scanner.at += 1
            depth += 1
            continue
        end = yield from _field(reader, parts, key, mark, keys)
        if end != "whole":
            return _broken(reader, parts, "unfinished" if end == "open" else "none")
        if not parts.begin():
            return "none"
    if parts.name is None:
        return "none"
    if not parts.is_open:
        parts.open()
    return reader.close()


def _field(reader: Reader, parts: _Parts, key: str, mark: str, keys: CallKeys) -> Steps[End]:
    scanner = reader.scanner
    if mark == '"' and key in (*keys.name, *keys.id) and not (key in keys.name and parts.name is not None):
        word = yield from read_string(scanner)
        if word is None:
            return "open" if scanner.is_over else "broken"
        if key in keys.id:
            parts.id = word
        else:
            parts.name = word
        return "whole"
    if key in keys.arguments and not parts.has_input:
        parts.has_input = mark in '{["' and mark != ""
        if mark == '"':
            return (yield from _quoted_arguments(reader, parts))
        if mark in "{[":
            return (yield from pass_value(scanner, parts.input))
    return (yield from pass_value(scanner, _ignored))


def _quoted_arguments(reader: Reader, parts: _Parts) -> Steps[End]:
    """Arguments that are JSON inside a string."""
    pieces: list[str] = []
    end = yield from pass_value(reader.scanner, pieces.append)
    if end == "whole":
        parts.input(unescaped("".join(pieces)) or "")
    return end


def _ignored(piece: str) -> None:
    pass


def _broken(reader: Reader, parts: _Parts, otherwise: Outcome) -> Outcome:
    """An object that lacks its end. A call that has all of its arguments lacks nothing; one that has not was cut."""
    if parts.is_open:
        return reader.close(cut=True)
    if parts.name is not None and reader.accepts(parts.name) and parts.has_input:
        parts.open()
        return reader.close(cut=True)
    return otherwise


def call_list(reader: Reader, keys: CallKeys = KEYS) -> Steps[Outcome]:
    """The calls of the list here; one object alone counts as a list of one."""
    scanner = reader.scanner
    outcome: Outcome = "none"
    mark = yield from scanner.skip_spaces()
    if mark == "{":
        return (yield from call_object(reader, keys))
    if mark != "[":
        return "unfinished" if mark == "" else "none"
    scanner.at += 1
    while True:
        mark = yield from scanner.skip_spaces()
        if mark == "{":
            found = yield from call_object(reader, keys)
            if found in ("none", "unfinished"):
                return found if outcome == "none" else outcome
            outcome = found
            if found == "cut":
                return outcome
        elif mark == ",":
            scanner.at += 1
        else:
            if mark == "]":
                scanner.at += 1
            return "unfinished" if mark == "" and outcome == "none" else outcome


def arguments_of(reader: Reader, name: str, id: str = "") -> Steps[Outcome]:
    """A call whose name was read already, and whose arguments stand here as JSON."""
    scanner = reader.scanner
    mark = yield from scanner.skip_spaces()
    if mark == '"':
        pieces: list[str] = []
        end = yield from pass_value(scanner, pieces.append)
        reader.open(name, id)
        reader.input(unescaped("".join(pieces)) or "")
        return reader.close(cut=end != "whole")
    reader.open(name, id)
    if mark not in ("{", "["):
        return reader.close(cut=mark == "")
    end = yield from pass_value(scanner, reader.input)
    return reader.close(cut=end != "whole")
