"""Calls whose arguments are trees of tags, each tag behind a prefix that no value has: a tag's name is the field's.

    ]<]minimax[>[<invoke name="ls">]<]minimax[>[<p>/]<]minimax[>[</p>]<]minimax[>[</invoke>

A tag with tags in it is an object, or a list where the schema says so; tags of one name are a list. Only what has no
tags in it is text, which the schema gives its type.
"""

from __future__ import annotations

from typing import Any, Final

from toolglot.dialects.families.tag_calls import read_head, tag_name
from toolglot.dialects.lookahead import ahead, cut_off, give_back, next_of
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps, marks
from toolglot.dialects.values.argument_writer import ArgumentWriter
from toolglot.dialects.values.json_text import json_string
from toolglot.dialects.values.schema_types import allowed_types, items_schema, property_schema, typed_json

_MAX_DEPTH: Final = 64
_ITEM: Final = "item"
_HEAD_END: Final = marks(">")


class _Node:
    """A tag that is open."""

    def __init__(self, name: str, schema: Any, root: dict[str, Any] | None) -> None:
        self.name = name
        self._schema, self._root = schema, root
        self._types = allowed_types(schema, root)
        self.text: list[str] = []
        self._fields: dict[str, list[str]] = {}
        self._items: list[str] = []

    def child(self, name: str) -> _Node:
        if self._is_list or (name == _ITEM and "array" in self._types):
            return _Node(name, items_schema(self._schema, self._root), self._root)
        return _Node(name, property_schema(self._schema, name, self._root), self._root)

    def add(self, child: _Node) -> None:
        json = child.json()
        self._items.append(json)
        self._fields.setdefault(child.name, []).append(json)

    @property
    def _is_list(self) -> bool:
        return "array" in self._types and "object" not in self._types

    def json(self) -> str:
        """What the tag means."""
        if not self._items:
            return typed_json("".join(self.text), self._types, "string")
        may_be_list = not self._types or "array" in self._types
        if self._is_list or (may_be_list and list(self._fields) == [_ITEM]):
            return f"[{', '.join(self._items)}]"
        fields = (f"{json_string(name)}: {_one_or_list(values)}" for name, values in self._fields.items())
        return f"{{{', '.join(fields)}}}"


def _one_or_list(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"[{', '.join(values)}]"


def nested_call(reader: DialectReader, prefix: str) -> Steps[Outcome]:
    """A call, from behind the beginning of its tag."""
    read = yield from read_head(reader, _HEAD_END)
    name = tag_name(read[0]) if read is not None else ""
    if read is None or not reader.accepts(name):
        return "unfinished" if read is None and reader.scanner.is_over else "none"
    found, _ = yield from ahead(reader.scanner, (prefix,))
    if found is None:
        return "none"
    reader.open(name)
    arguments = ArgumentWriter(reader, name)
    tag = yield from _next_tag(reader, prefix)
    while tag and not tag.startswith("/"):
        tag = yield from _argument(reader, prefix, arguments, tag, reader.schema(name))
    if tag is None:
        return cut_off(reader)
    arguments.finish()
    if tag not in ("", "/invoke"):
        give_back(reader.scanner, f"{prefix}<{tag}>")  # the reader of the section reads its end
    return reader.close()


def _next_tag(reader: DialectReader, prefix: str) -> Steps[str | None]:
    """The tag that begins here; empty if there is none, None if the text ends before the tag is complete."""
    found = yield from next_of(reader.scanner, (f"{prefix}<",))
    if not found:
        return None if found == "" else ""
    read = yield from read_head(reader, _HEAD_END)
    return read[0] if read is not None else None


def _argument(
    reader: DialectReader, prefix: str, arguments: ArgumentWriter, name: str, schema: dict[str, Any] | None
) -> Steps[str | None]:
    """Read one argument. Returns the tag behind it, like `_next_tag`. Only what begins with a tag is a tree."""
    if (yield from _begins_with_tag(reader, prefix)):
        tree = _Node(name, property_schema(schema, name), schema)
        tag = yield from _tree(reader, prefix, tree)
        if tag is None:
            return None
        arguments.put(name, tree.json())
    else:
        arguments.begin(name)
        found = yield from reader.scanner.until(marks(f"{prefix}<"), arguments.add)
        read = (yield from read_head(reader, _HEAD_END)) if found is not None else None
        if read is None:
            return None
        arguments.end()
        tag = read[0]
    if tag != f"/{name}":
        return tag
    return (yield from _next_tag(reader, prefix))


def _begins_with_tag(reader: DialectReader, prefix: str) -> Steps[bool]:
    found, reach = yield from ahead(reader.scanner, (f"{prefix}<",))
    if not found:
        return False
    yield from reader.scanner.need(reach + 1)
    return not reader.scanner.text.startswith("/", reader.scanner.at + reach)


def _tree(reader: DialectReader, prefix: str, top: _Node) -> Steps[str | None]:
    """Read the content of a tag up to its closing tag, or that of the call if it has none. Returns which it was."""
    open_nodes = [top]
    while True:
        found = yield from reader.scanner.until(marks(f"{prefix}<"), open_nodes[-1].text.append)
        read = (yield from read_head(reader, _HEAD_END)) if found is not None else None
        if read is None or len(open_nodes) > _MAX_DEPTH:
            return None
        tag = read[0]
        if not tag.startswith("/"):
            open_nodes.append(open_nodes[-1].child(tag))
            continue
        is_open = any(node.name == tag[1:] for node in open_nodes)
        while len(open_nodes) > 1 and not (is_open and open_nodes[-1].name == tag[1:]):
            closed = open_nodes.pop()
            open_nodes[-1].add(closed)
        if len(open_nodes) == 1:
            return tag
        closed = open_nodes.pop()
        open_nodes[-1].add(closed)
