"""Values of formats that carry no types: the tool's schema says what a text means.

One rule for all dialects, whole or streamed. Where a schema allows nothing but a string, the text is one. Otherwise the
text is read as JSON, or as Python where that fails, and counts if the schema allows what it is. What fits nothing is a
string. Without a schema the dialect's own default applies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

from toolglot.dialects.json_text import quoted
from toolglot.dialects.python_text import literal
from toolglot.jsontext import compact, local_reference

Untyped = Literal["string", "json"]
"""What a value is that no schema describes: a string, or whatever it can be read as."""

_DEEPEST: Final = 16
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d{0,30})(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?")
_NOTHING: Final = object()


def property_schema(schema: dict[str, Any] | None, name: str) -> Any:
    """What a tool's schema says of one argument; None if it says nothing."""
    for part in _parts(schema, schema, 0):
        properties = part.get("properties")
        if isinstance(properties, dict) and name in properties:
            return properties[name]
    return None


def allowed_types(schema: Any, root: dict[str, Any] | None) -> frozenset[str]:
    """The types that a schema allows; none where it does not say."""
    found: set[str] = set()
    for part in _parts(schema, root, 0):
        named = part.get("type")
        found.update(_kinds(named))
        if part.get("nullable") is True:
            found.add("null")
        if not named:
            values = (
                part.get("enum") if isinstance(part.get("enum"), list) else [part["const"]] if "const" in part else []
            )
            found.update(_type_of(value) for value in values or ())
    return frozenset(found)


def _kinds(named: object) -> Iterator[str]:
    if isinstance(named, str):
        yield named.lower()
    elif isinstance(named, list):
        yield from (kind.lower() for kind in named if isinstance(kind, str))


def _parts(schema: Any, root: dict[str, Any] | None, depth: int) -> Iterator[dict[str, Any]]:
    """A schema and everything that it is put together of."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return
    yield schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and root is not None:
        yield from _parts(local_reference(root, reference), root, depth + 1)
    for keyword in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(keyword)
        for branch in branches if isinstance(branches, list) else ():
            yield from _parts(branch, root, depth + 1)


def is_string_only(types: frozenset[str], untyped: Untyped) -> bool:
    """Whether a value can be told while it comes, since it is text whatever it says."""
    return types == {"string"} or (not types and untyped == "string")


def typed(text: str, types: frozenset[str], untyped: Untyped) -> str:
    """The JSON of what a text means."""
    if is_string_only(types, untyped):
        return quoted(text)
    stripped = text.strip()
    value = _read(stripped)
    if value is not _NOTHING:
        kind = _type_of(value)
        if not types or kind in types or (kind == "integer" and "number" in types):
            return stripped if _NUMBER.fullmatch(stripped) else compact(value)
        if kind == "number" and "integer" in types and float(value).is_integer():
            return str(int(value))
    return quoted(text)


def _read(text: str) -> Any:
    if text.lower() in ("null", "none"):
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        found = literal(text) if text[:1] in "[{(" else None
        return found[0] if found is not None else _NOTHING


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list | tuple) else "object"
