"""Arguments that come as text, one after the other, written as the JSON of an object.

The tool's schema says what a value is. One that can be nothing but a string is written while it comes, any other when
it is whole; both give the same. Where a tool has no argument called `arguments`, and a call no other, it holds them.
"""

from __future__ import annotations

from typing import Final, Literal

from toolglot import jsontext
from toolglot.dialects.reading import DialectReader
from toolglot.dialects.values.json_text import quoted
from toolglot.dialects.values.schema_types import (
    Untyped,
    allowed_types,
    allowed_words,
    is_string_only,
    property_schema,
    typed,
)
from toolglot.errors import InputError

Trim = Literal["newline", "lines", "none"]
"""What stands around a value and does not belong to it: one line break on each side; the same where the value stands on
lines of its own, which the first one says; or nothing."""
_WRAPPERS: Final = frozenset({"arguments", "parameters", "input", "args", "params", "properties"})

_OBJECT: Final = frozenset({"object"})
_NULL: Final = frozenset({"null"})


def _meant(declared: frozenset[str], described: frozenset[str]) -> frozenset[str]:
    """The types that a value may have of which the text says these."""
    return ((declared & described) or described or declared) | (
        declared & _NULL if "string" not in declared else frozenset()
    )


class ArgumentWriter:
    """Writes arguments, one after the other, as the JSON of an object."""

    def __init__(self, reader: DialectReader, tool: str, trim: Trim = "none", untyped: Untyped = "string") -> None:
        self._reader = reader
        self._schema = reader.schema(tool)
        self._trim = trim
        self._untyped: Untyped = untyped
        self._count = 0
        self._wrapper = ""
        """The first argument's name, as long as it may hold all of them."""
        self._wrapped = ""
        self._types: frozenset[str] = frozenset()
        self._words: frozenset[str] = frozenset()
        self._is_live = False
        self._pieces: list[str] = []
        self._held = ""
        self._is_start = True
        self._trims_end = False

    def begin(self, name: str, types: frozenset[str] | None = None) -> None:
        """An argument begins. `types` are those that the text declares. They count as far as the schema allows
        them; a null counts always, since a model does not write one by mistake."""
        self._unwrap()
        schema = property_schema(self._schema, name)
        described = allowed_types(schema, self._schema)
        self._words = allowed_words(schema, self._schema)
        self._types = described if types is None else _meant(types, described)
        self._is_start, self._held, self._pieces = self._trim != "none", "", []
        self._trims_end = self._trim == "newline"
        self._wrapper = name if self._count == 0 and name in _WRAPPERS and not self._knows(name) else ""
        self._is_live = not self._wrapper and is_string_only(self._types, self._untyped)
        if not self._wrapper:
            self._reader.input(f"{self._lead()}{quoted(name)}: " + ('"' if self._is_live else ""))

    def add(self, piece: str) -> None:
        """More of its value."""
        if not self._is_live:
            self._pieces.append(piece)
        elif not (self._held or self._is_start or (self._trims_end and piece[-1] == "\n")):
            self._reader.input(quoted(piece)[1:-1])
        else:
            self._add_trimmed(self._held + piece)

    def _add_trimmed(self, piece: str) -> None:
        """A line break at the end is held until it is known whether the value ends there."""
        if self._is_start:
            self._trims_end = self._trims_end or (self._trim == "lines" and piece[0] == "\n")
            piece, self._is_start = piece.removeprefix("\n"), False
        self._held = "\n" if self._trims_end and piece.endswith("\n") else ""
        piece = piece.removesuffix(self._held)
        if piece:
            self._reader.input(quoted(piece)[1:-1])

    def end(self) -> None:
        """The argument is over."""
        if self._is_live:
            self._reader.input('"')
            return
        text = "".join(self._pieces)
        if self._trim == "newline" or (self._trim == "lines" and text.startswith("\n")):
            text = text.removeprefix("\n").removesuffix("\n")
        if self._wrapper:
            self._wrapped = text
        else:
            self._reader.input(quoted(text) if text in self._words else typed(text, self._types, self._untyped))

    def put(self, name: str, json: str) -> None:
        """An argument whose JSON is known."""
        self._unwrap()
        self._reader.input(f"{self._lead()}{quoted(name)}: {json}")

    def finish(self) -> None:
        """End the arguments."""
        if self._wrapper and self._holds_all():
            self._reader.input(typed(self._wrapped, _OBJECT, self._untyped))
            return
        self._unwrap()
        self._reader.input("{}" if self._count == 0 else "}")

    def _knows(self, name: str) -> bool:
        """Whether an argument may be called so; without a schema every name will do."""
        return self._schema is None or property_schema(self._schema, name) is not None

    def _holds_all(self) -> bool:
        """Whether the only argument is an object whose fields are the tool's arguments."""
        try:
            value = jsontext.parse(typed(self._wrapped, _OBJECT, self._untyped)).value
        except InputError:  # deeper, or larger, than anything that is read
            return False
        return isinstance(value, dict) and any(self._knows(name) for name in value)

    def _unwrap(self) -> None:
        """The argument that might have held all of them is one like the others."""
        if self._wrapper:
            name, self._wrapper = self._wrapper, ""
            self.put(name, typed(self._wrapped, self._types, self._untyped))

    def _lead(self) -> str:
        self._count += 1
        return "{" if self._count == 1 else ", "
