"""Definitions written out where they are used: what is left of `$defs` is only what contains itself.

Most targets know no references, and every lowering of one is a guess less when there is none. Law: the schema means
the same; what would become too large when written out stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

Schema = dict[str, Any]

PREFIX: Final = "#/$defs/"
MOST_VALUES: Final = 20_000
"""Values in a schema whose definitions were written out."""


def inlined(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """A schema without references to definitions that do not contain themselves."""
    recursive = _recursive(definitions)
    try:
        writer = _Writer(definitions, recursive)
        written = writer.write(schema)
        kept = {name: writer.write(definitions[name]) for name in _used(written, definitions, recursive)}
    except OverflowError:
        return {**schema, "$defs": definitions}
    return {**written, "$defs": kept} if kept else written


def named_in(schema: Any) -> Iterator[str]:
    """The definitions that a schema refers to, as often as it does."""
    stack = [schema]
    while stack:
        part = stack.pop()
        if type(part) is dict:
            reference = part.get("$ref")
            if isinstance(reference, str) and reference.startswith(PREFIX):
                yield reference.removeprefix(PREFIX)
            stack += part.values()
        elif type(part) is list:
            stack += part


def renamed(schema: Any, names: dict[str, str]) -> Any:
    """The same with other names for its definitions."""
    if type(schema) is list:
        return [renamed(part, names) for part in schema]
    if type(schema) is not dict:
        return schema
    written = {key: renamed(part, names) for key, part in schema.items()}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(PREFIX):
        written["$ref"] = PREFIX + names.get(reference.removeprefix(PREFIX), reference.removeprefix(PREFIX))
    return written


class _Writer:
    def __init__(self, definitions: dict[str, Schema], recursive: frozenset[str]) -> None:
        self._definitions = definitions
        self._recursive = recursive
        self._left = MOST_VALUES

    def write(self, part: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise OverflowError
        if type(part) is list:
            return [self.write(inner) for inner in part]
        if type(part) is not dict:
            return part
        name = str(part.get("$ref", "")).removeprefix(PREFIX)
        if name not in self._definitions or name in self._recursive:
            return {key: self.write(inner) for key, inner in part.items()}
        # What stands beside a reference is said of this place, so it goes before what the definition says.
        beside = {key: self.write(inner) for key, inner in part.items() if key != "$ref"}
        return {**self.write(self._definitions[name]), **beside}


def _used(written: Schema, definitions: dict[str, Schema], recursive: frozenset[str]) -> list[str]:
    """The recursive definitions that are still needed, in the order of the definitions."""
    needed, stack = set[str](), [*named_in(written)]
    while stack:
        name = stack.pop()
        if name in definitions and name not in needed:
            needed.add(name)
            stack += named_in(definitions[name])
    return [name for name in definitions if name in needed and name in recursive]


def _recursive(definitions: dict[str, Schema]) -> frozenset[str]:
    """The definitions that contain themselves."""
    refers = {name: {other for other in named_in(held) if other in definitions} for name, held in definitions.items()}
    return frozenset(name for name in definitions if name in _reached(name, refers))


def _reached(start: str, refers: dict[str, set[str]]) -> set[str]:
    found, stack = set[str](), [*refers[start]]
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack += refers[name]
    return found
