"""Arguments that come as text, one after the other, written as the JSON of an object.

The tool's schema says what a value is. A value that can only be a string is written as it arrives, any other when it is
complete; the result is the same. If a call has only one argument, called `arguments`, and the tool has none of that
name, it holds the arguments.
"""

from __future__ import annotations

from typing import Final, Literal

from toolglot import jsontext
from toolglot.dialects.reading import DialectReader
from toolglot.dialects.values.json_text import json_string
from toolglot.dialects.values.schema_types import (
    Untyped,
    allowed_types,
    allowed_words,
    is_string_only,
    property_schema,
    typed_json,
)
from toolglot.errors import InputError

Trim = Literal["newline", "lines", "none"]
"""What surrounds a value without belonging to it: one line break on each side; the same, if the first line break shows
that the value is on lines of its own; or nothing."""
_WRAPPERS: Final = frozenset({"arguments", "parameters", "input", "args", "params", "properties"})

_OBJECT: Final = frozenset({"object"})
_NULL: Final = frozenset({"null"})


def _value_types(declared: frozenset[str], described: frozenset[str]) -> frozenset[str]:
    """The types that a value may have if the text declares these."""
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
        """The name of the first argument, as long as it may hold all arguments."""
        self._wrapped = ""
        self._types: frozenset[str] = frozenset()
        self._words: frozenset[str] = frozenset()
        self._is_live = False
        self._pieces: list[str] = []
        self._held = ""
        self._is_start = True
        self._trims_end = False

    def begin(self, name: str, types: frozenset[str] | None = None) -> None:
        """Begin an argument. `types` are those that the text declares. They count as far as the schema allows them;
        null always counts, since a model does not write it by mistake."""
        self._unwrap()
        schema = property_schema(self._schema, name)
        described = allowed_types(schema, self._schema)
        self._words = allowed_words(schema, self._schema)
        self._types = described if types is None else _value_types(types, described)
        self._is_start, self._held, self._pieces = self._trim != "none", "", []
        self._trims_end = self._trim == "newline"
        self._wrapper = name if self._count == 0 and name in _WRAPPERS and not self._knows(name) else ""
        self._is_live = not self._wrapper and is_string_only(self._types, self._untyped)
        if not self._wrapper:
            self._reader.input(f"{self._lead()}{json_string(name)}: " + ('"' if self._is_live else ""))

    def add(self, piece: str) -> None:
        """Add to its value."""
        if not self._is_live:
            self._pieces.append(piece)
        elif not (self._held or self._is_start or (self._trims_end and piece[-1] == "\n")):
            self._reader.input(json_string(piece)[1:-1])
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
            self._reader.input(json_string(piece)[1:-1])

    def end(self) -> None:
        """End the argument."""
        if self._is_live:
            self._reader.input('"')
            return
        text = "".join(self._pieces)
        if self._trim == "newline" or (self._trim == "lines" and text.startswith("\n")):
            text = text.removeprefix("\n").removesuffix("\n")
        if self._wrapper:
            self._wrapped = text
        else:
            self._reader.input(
                json_string(text) if text in self._words else typed_json(text, self._types, self._untyped)
            )

    def put(self, name: str, json: str) -> None:
        """Write an argument whose JSON is known."""
        self._unwrap()
        self._reader.input(f"{self._lead()}{json_string(name)}: {json}")

    def finish(self) -> None:
        """End the arguments."""
        if self._wrapper and self._holds_all():
            self._reader.input(typed_json(self._wrapped, _OBJECT, self._untyped))
            return
        self._unwrap()
        self._reader.input("{}" if self._count == 0 else "}")

    def _knows(self, name: str) -> bool:
        """Whether the tool has an argument of this name; without a schema, it has any."""
        return self._schema is None or property_schema(self._schema, name) is not None

    def _holds_all(self) -> bool:
        """Whether the only argument is an object whose fields are the tool's arguments."""
        try:
            value = jsontext.parse(typed_json(self._wrapped, _OBJECT, self._untyped)).value
        except InputError:  # deeper, or larger, than anything that is read
            return False
        return isinstance(value, dict) and any(self._knows(name) for name in value)

    def _unwrap(self) -> None:
        """Write the argument that might have held all others as an ordinary one."""
        if self._wrapper:
            name, self._wrapper = self._wrapper, ""
            self.put(name, typed_json(self._wrapped, self._types, self._untyped))

    def _lead(self) -> str:
        self._count += 1
        return "{" if self._count == 1 else ", "
