"""Repairs a schema node that is not well-formed: wrong spellings are understood, nonsense is left out and reported.

Law: the repaired node accepts whatever the original accepts, as far as that has a meaning. One level at a time: the
schemas inside are repaired when they are visited.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from toolglot.errors import quote
from toolglot.schema.keywords import SHAPES, SPELLINGS, TYPES, Schema, is_names, is_number, numbered_type, types_of

ReportLoss = Callable[[str, str], None]
"""(keyword, reason): reports what was lost."""

_NOTHING: Final = object()


def repair_node(schema: Any, report: ReportLoss) -> Schema:
    """A well-formed copy, in which null is a type and bounds are numbers."""
    if not isinstance(schema, dict):
        report("", f"expected a schema, got {quote(schema)}")
        return {}
    out: Schema = {}
    for keyword, value in _with_old_bounds(schema).items():
        shape = SHAPES.get(keyword)
        if shape is None or shape(value):
            out[keyword] = value
            continue
        repaired = _REPAIRS.get(keyword, _unrepaired)(value)
        if repaired is not _NOTHING:
            out[keyword] = repaired
        if value is not None and value is not False and not _is_same_meaning(keyword, value, repaired):
            report(keyword, f"not well-formed: {quote(value)}")
    return _with_null_as_a_type(out)


def _with_old_bounds(schema: Schema) -> Schema:
    """Draft 4 has `exclusiveMinimum: true` beside `minimum`."""
    out = schema
    for exclusive, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if type(schema.get(exclusive)) is bool:
            out = dict(out)
            if out.pop(exclusive) and is_number(out.get(plain)):
                out[exclusive] = out.pop(plain)
    return out


def _with_null_as_a_type(out: Schema) -> Schema:
    """OpenAPI has `nullable: true` beside `type`."""
    if out.pop("nullable", None) is not True:
        return out
    types = types_of(out)
    if types and "null" not in types:
        out["type"] = [*types, "null"]
        if "enum" in out and None not in out["enum"]:
            out["enum"] = [*out["enum"], None]
        if "const" in out and out["const"] is not None:
            out["enum"] = [out.pop("const"), None]
    return out


def _unrepaired(_: Any) -> Any:
    return _NOTHING


def _types(value: Any) -> Any:
    names = value if type(value) is list else [numbered_type(value) or value]
    read = [SPELLINGS.get(name, name) for name in names if type(name) is str]
    known = list(dict.fromkeys(name for name in read if name in TYPES))
    # An unknown type could be anything: having no type is wider than naming only the others of the list.
    if not known or len(read) != len(names) or any(name not in TYPES for name in read):
        return _NOTHING
    return known if type(value) is list else known[0]


def _count(value: Any) -> Any:
    return int(value) if type(value) is float and value >= 0 and value.is_integer() else _NOTHING


def _names(value: Any) -> Any:
    if type(value) is not list:
        return _NOTHING
    return list(dict.fromkeys(name for name in value if type(name) is str))


def _name_tables(value: Any) -> Any:
    if type(value) is not dict:
        return _NOTHING
    return {name: names for name, names in value.items() if is_names(names)} or _NOTHING


def _dependencies(value: Any) -> Any:
    if type(value) is not dict:
        return _NOTHING
    kept = {name: held for name, held in value.items() if type(held) in (dict, bool) or is_names(held)}
    return kept or _NOTHING


_REPAIRS: Final[dict[str, Callable[[Any], Any]]] = {
    "type": _types,
    "required": _names,
    "dependentRequired": _name_tables,
    "dependencies": _dependencies,
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _count),
    **dict.fromkeys(("minContains", "maxContains"), _count),
}


def _is_same_meaning(keyword: str, value: Any, repaired: Any) -> bool:
    """Whether only the spelling was repaired."""
    if repaired is _NOTHING:
        return False
    if keyword == "required":
        return all(type(name) is str for name in value)
    return keyword == "type" or type(repaired) is int
