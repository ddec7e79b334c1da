"""Calls written with tags: a tag that names the tool, and one around each argument.

The values are text until the tool's schema says otherwise; those that can be nothing but strings are told while they
come. Missing closers are forgiven: the next tag ends what is open.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from toolglot.dialects.json_text import quoted
from toolglot.dialects.reading import Outcome, Reader
from toolglot.dialects.scanner import Marks, Steps, marks
from toolglot.dialects.schema_types import Untyped, allowed_types, is_string_only, property_schema, typed

Trim = Literal["newline", "spaces", "none"]
"""What stands around a value and does not belong to it: one line break on each side, all white space, nothing."""

_NAMED: Final = re.compile(r"""\b(?:name|tool|key)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'/>]+))""")
_ATTRIBUTE: Final = re.compile(r"""([\w:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
LONGEST_HEAD: Final = 1024
_STRING: Final = frozenset({"string"})
_JSON: Final = frozenset({"object", "array", "number", "integer", "boolean", "null"})


class TagStyle(NamedTuple):
    """The tags of a dialect."""

    call: tuple[str, ...]
    """How the tag of a call begins: `<function=`, `<invoke `. Its name follows."""
    close_call: tuple[str, ...]
    parameter: tuple[str, ...]
    close_parameter: tuple[str, ...]
    close_section: tuple[str, ...] = ()
    head_end: str = ">"
    trim: Trim = "newline"
    untyped: Untyped = "string"


def named_by(head: str) -> str:
    """The name that the head of a tag says: that of its attribute, or all of it."""
    found = _NAMED.search(head)
    if found is not None:
        return next((group for group in found.groups() if group is not None), "").strip()
    return head.strip().strip("\"'").removesuffix("/").strip()


def attributes(head: str) -> dict[str, str]:
    """The attributes of a tag."""
    return {found[1]: found[2] if found[2] is not None else found[3] for found in _ATTRIBUTE.finditer(head)}


def read_head(reader: Reader, end: Marks) -> Steps[str | None]:
    """The rest of a tag up to its end; None if there is no end, or it is too far away."""
    pieces: list[str] = []
    size = 0

    def keep(piece: str) -> None:
        nonlocal size
        size += len(piece)
        if size <= LONGEST_HEAD:
            pieces.append(piece)

    found = yield from reader.scanner.until(end, keep)
    return "".join(pieces) if found is not None and size <= LONGEST_HEAD else None


class ArgumentWriter:
    """Writes arguments, one after the other, as the JSON of an object."""

    def __init__(self, reader: Reader, tool: str, trim: Trim, untyped: Untyped) -> None:
        self._reader = reader
        self._schema = reader.schema(tool)
        self._trim = trim
        self._untyped: Untyped = untyped
        self._count = 0
        self._types: frozenset[str] = frozenset()
        self._is_live = False
        self._pieces: list[str] = []
        self._held = ""
        self._is_start = True

    def begin(self, name: str, types: frozenset[str] | None = None) -> None:
        """An argument begins. `types` are said by the text itself, where it does."""
        lead = "{" if self._count == 0 else ", "
        self._count += 1
        described = allowed_types(property_schema(self._schema, name), self._schema)
        self._types = described if types is None else types
        self._is_live = is_string_only(self._types, self._untyped) and self._trim != "spaces"
        self._is_start, self._held, self._pieces = True, "", []
        self._reader.input(f"{lead}{quoted(name)}: " + ('"' if self._is_live else ""))

    def add(self, piece: str) -> None:
        """More of its value."""
        if not self._is_live:
            self._pieces.append(piece)
            return
        if not (self._held or self._is_start) and piece[-1] != "\n":
            self._reader.input(quoted(piece)[1:-1])
            return
        piece = self._held + piece
        if self._trim == "newline":
            if self._is_start and piece:
                piece, self._is_start = piece.removeprefix("\n"), False
            self._held = "\n" if piece.endswith("\n") else ""
            piece = piece.removesuffix("\n")
        if piece:
            self._reader.input(quoted(piece)[1:-1])

    def end(self) -> None:
        """The argument is over."""
        if self._is_live:
            self._reader.input('"')
            return
        text = "".join(self._pieces)
        if self._trim == "newline":
            text = text.removeprefix("\n").removesuffix("\n")
        elif self._trim == "spaces":
            text = text.strip()
        self._reader.input(typed(text, self._types, self._untyped))

    def put(self, name: str, json: str) -> None:
        """An argument whose JSON is known."""
        self._reader.input(("{" if self._count == 0 else ", ") + f"{quoted(name)}: {json}")
        self._count += 1

    def finish(self) -> None:
        """All arguments were told."""
        self._reader.input("{}" if self._count == 0 else "}")


def tag_call(reader: Reader, style: TagStyle) -> Steps[Outcome]:
    """A call, from behind the beginning of its tag."""
    head = yield from read_head(reader, marks(style.head_end))
    if head is None:
        return "unfinished" if reader.scanner.is_over else "none"
    name = named_by(head)
    if not reader.accepts(name):
        return "none"
    reader.open(name)
    arguments = ArgumentWriter(reader, name, style.trim, style.untyped)
    if head.rstrip().endswith("/") and style.head_end == ">":
        arguments.finish()
        return reader.close()
    return (yield from _parameters(reader, style, arguments))


def _parameters(reader: Reader, style: TagStyle, arguments: ArgumentWriter) -> Steps[Outcome]:
    scanner = reader.scanner
    ends = (*style.close_call, *style.close_section)
    wanted = marks(*style.parameter, *ends)
    value_ends = marks(*style.close_parameter, *style.parameter, *ends)
    found = yield from scanner.until(wanted, _ignored)
    while found in style.parameter:
        head = yield from read_head(reader, marks(style.head_end))
        if head is None:
            return reader.close(cut=True)
        arguments.begin(named_by(head), _said_types(head))
        found = yield from scanner.until(value_ends, arguments.add)
        if found is None:
            return reader.close(cut=True)
        arguments.end()
        if found in style.close_parameter:
            found = yield from scanner.until(wanted, _ignored)
    if found is None:
        if not scanner.is_over:
            return reader.close(cut=True)
        arguments.finish()
        return reader.close(cut=True)
    arguments.finish()
    if found in style.close_section:
        scanner.at -= len(found)  # whoever reads the section reads its end
    return reader.close()


def _said_types(head: str) -> frozenset[str] | None:
    """The type that the tag of an argument says itself."""
    said = attributes(head)
    if "string" in said:
        return (
            frozenset({"string"})
            if said["string"] == "true"
            else frozenset({"object", "array", "number", "boolean", "null", "integer"})
        )
    return frozenset({said["type"]}) if "type" in said else None


def _ignored(piece: str) -> None:
    pass
