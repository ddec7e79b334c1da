"""Inlines definitions where they are used; `$defs` keeps only the recursive ones.

Many targets do not support references. Law: the schema keeps its meaning; one that would become too large stays as it
is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

Schema = dict[str, Any]

PREFIX: Final = "#/$defs/"
MAX_VALUES: Final = 20_000
"""Values in a schema with its definitions inlined."""


def inline_definitions(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """Replace all references to definitions that are not recursive."""
    recursive = _recursive_names(definitions)
    try:
        writer = _Writer(definitions, recursive)
        written = writer.write(schema)
        kept = {name: writer.write(definitions[name]) for name in _used_names(written, definitions, recursive)}
    except OverflowError:
        return {**schema, "$defs": definitions}
    return {**written, "$defs": kept} if kept else written


def references_in(schema: Any) -> Iterator[str]:
    """The definitions that a schema refers to, once per reference."""
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


def rename_definitions(schema: Any, names: dict[str, str]) -> Any:
    """The schema with other names for its definitions."""
    if type(schema) is list:
        return [rename_definitions(part, names) for part in schema]
    if type(schema) is not dict:
        return schema
    written = {key: rename_definitions(part, names) for key, part in schema.items()}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith(PREFIX):
        written["$ref"] = PREFIX + names.get(reference.removeprefix(PREFIX), reference.removeprefix(PREFIX))
    return written


class _Writer:
    def __init__(self, definitions: dict[str, Schema], recursive: frozenset[str]) -> None:
        self._definitions = definitions
        self._recursive_names = recursive
        self._left = MAX_VALUES

    def write(self, part: Any) -> Any:
        self._left -= 1
        if self._left < 0:
            raise OverflowError
        if type(part) is list:
            return [self.write(inner) for inner in part]
        if type(part) is not dict:
            return part
        name = str(part.get("$ref", "")).removeprefix(PREFIX)
        if name not in self._definitions or name in self._recursive_names:
            return {key: self.write(inner) for key, inner in part.items()}
        # Keys next to a reference belong to this use, so they override those of the definition.
        siblings = {key: self.write(inner) for key, inner in part.items() if key != "$ref"}
        return {**self.write(self._definitions[name]), **siblings}


def _used_names(written: Schema, definitions: dict[str, Schema], recursive: frozenset[str]) -> list[str]:
    """The recursive definitions that are still needed, in the order of the definitions."""
    needed, stack = set[str](), [*references_in(written)]
    while stack:
        name = stack.pop()
        if name in definitions and name not in needed:
            needed.add(name)
            stack += references_in(definitions[name])
    return [name for name in definitions if name in needed and name in recursive]


def _recursive_names(definitions: dict[str, Schema]) -> frozenset[str]:
    """The definitions that refer to themselves, directly or not."""
    refers = {
        name: {other for other in references_in(held) if other in definitions} for name, held in definitions.items()
    }
    return frozenset(name for name in definitions if name in _reachable(name, refers))


def _reachable(start: str, refers: dict[str, set[str]]) -> set[str]:
    found, stack = set[str](), [*refers[start]]
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack += refers[name]
    return found
