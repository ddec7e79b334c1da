"""The schemas inside a schema, with their paths.

Law: each is visited once, without recursion. References are not followed, nothing below `MAX_DEPTH` is visited, and an
object that occurs several times, even inside itself, is visited at its first position.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from toolglot.limits import MAX_DEPTH
from toolglot.referee.paths import step
from toolglot.referee.view import ToolView

_ONE: Final = (
    "items",
    "additionalItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
)
_LIST: Final = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_MAP: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


class SchemaNode(Struct, frozen=True):
    """A schema inside a schema."""

    path: str
    schema: dict[str, Any]
    depth: int


def schema_nodes(tool: ToolView) -> Iterator[SchemaNode]:
    """A tool's schema and all schemas inside it, in the order of the body."""
    yield from nodes_in(tool.schema, tool.schema_path or tool.path)


def nodes_in(schema: Any, path: str) -> Iterator[SchemaNode]:
    """A schema and all schemas inside it."""
    stack = [SchemaNode(path, schema, 0)] if isinstance(schema, dict) else []
    met: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node.schema) in met:
            continue
        met.add(id(node.schema))
        yield node
        if node.depth < MAX_DEPTH:
            stack.extend(reversed(list(_children(node))))


def _children(node: SchemaNode) -> Iterator[SchemaNode]:
    for keyword, value in node.schema.items():
        path, depth = step(node.path, keyword), node.depth + 1
        if isinstance(value, dict) and keyword in _ONE:
            yield SchemaNode(path, value, depth)
        elif isinstance(value, list) and keyword in _LIST:
            yield from (
                SchemaNode(f"{path}[{n}]", child, depth) for n, child in enumerate(value) if isinstance(child, dict)
            )
        elif isinstance(value, dict) and keyword in _MAP:
            yield from (
                SchemaNode(step(path, name), child, depth) for name, child in value.items() if isinstance(child, dict)
            )
