"""The grammar of JSON Schema as tables: which keywords hold schemas, which only annotate, what each may be.

Law: these tables say what a well-formed schema is, in any draft that tools are written in. The profile says
what a target accepts of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

Schema = dict[str, Any]

TYPES: Final = ("string", "number", "integer", "boolean", "array", "object", "null")
SPELLINGS: Final = {name.upper(): name for name in TYPES} | {
    "int": "integer",
    "str": "string",
    "bool": "boolean",
    "float": "number",
    "dict": "object",
    "list": "array",
}
"""What is written for a type by mistake, or by Gemini."""

NUMBERED: Final = ("", "string", "number", "integer", "boolean", "array", "object", "null")
"""The types by their numbers in Google's protocol buffers, which its older SDKs write."""


def numbered_type(value: Any) -> str:
    """The type that a number means; empty if it means none."""
    return NUMBERED[value] if type(value) is int and 0 < value < len(NUMBERED) else ""


SINGLES: Final = (
    *("items", "additionalProperties", "additionalItems", "contains", "not", "if", "then", "else"),
    *("propertyNames", "unevaluatedItems", "unevaluatedProperties"),
)
LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
MAPS: Final = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
DEFINITIONS: Final = ("$defs", "definitions")
OPEN_ENDED: Final = ("additionalProperties", "additionalItems", "unevaluatedItems", "unevaluatedProperties")
"""Where a plain true or false is the usual way to write it."""
RIGID: Final = ("not", "if", "contains")
"""What may not be widened: a wider schema here forbids more, or other, values."""

ANNOTATIONS: Final = frozenset(
    (
        *("title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly"),
        *("$comment", "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "propertyOrdering", "discriminator"),
        *("$defs", "definitions", "contentEncoding", "contentMediaType", "contentSchema", "nullable"),
    )
)
SILENT: Final = frozenset(
    {"title", "$comment", "$schema", "$id", "id", "$anchor", "$dynamicAnchor", "propertyOrdering"}
)
"""Keywords that are of no use to a model in a description."""

GROUPS: Final = (
    ("if", "then", "else"),
    ("contains", "minContains", "maxContains"),
    ("items", "prefixItems", "additionalItems"),
)
"""Keywords that mean something only together."""

OF_TYPE: Final[dict[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType", "contentSchema"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"),
    "array": (
        *("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "unevaluatedItems"),
        *("contains", "minContains", "maxContains"),
    ),
    "object": (
        *("properties", "patternProperties", "additionalProperties", "required", "minProperties", "maxProperties"),
        *("propertyNames", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"),
        *("propertyOrdering",),
    ),
}
TYPED: Final[set[str]] = {keyword for keywords in OF_TYPE.values() for keyword in keywords}


def of_type(keyword: str, type: str) -> bool:
    """Whether a keyword constrains values of a type."""
    return keyword not in TYPED or keyword in OF_TYPE.get("number" if type == "integer" else type, ())


def types_of(schema: Schema) -> tuple[str, ...]:
    """The types that a well-formed schema names; none: any."""
    types = schema.get("type")
    if isinstance(types, list):
        return tuple(types)
    name = types if isinstance(types, str) else numbered_type(types)
    return (name,) if name else ()


def type_of(value: Any) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def key_of(value: Any) -> Any:
    """What is equal for values that JSON Schema calls equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return ("object", tuple(sorted((name, key_of(held)) for name, held in value.items())))
    if isinstance(value, list):
        return ("array", tuple(key_of(held) for held in value))
    return ("boolean" if isinstance(value, bool) else "", value)


# --- the shape of each keyword's value ----------------------------------------------------------------


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_flag(value: Any) -> bool:
    return type(value) is bool


def is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _is_positive(value: Any) -> bool:
    return is_number(value) and value > 0


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def is_names(value: Any) -> bool:
    return type(value) is list and all(type(name) is str for name in value) and len(set(value)) == len(value)


def is_types(value: Any) -> bool:
    return value in TYPES if type(value) is str else bool(value) and is_names(value) and all(t in TYPES for t in value)


def _is_filled(value: Any) -> bool:
    return type(value) is list and bool(value)


def _is_list(value: Any) -> bool:
    return type(value) is list


def _is_table(value: Any) -> bool:
    return type(value) is dict


def is_schema(value: Any) -> bool:
    return type(value) in (dict, bool)


def _is_items(value: Any) -> bool:
    return is_schema(value) or _is_filled(value)


def _is_name_table(value: Any) -> bool:
    return _is_table(value) and all(is_names(names) for names in value.values())


def _is_dependencies(value: Any) -> bool:
    return _is_table(value) and all(is_schema(held) or is_names(held) for held in value.values())


def _table(*rows: tuple[Callable[[Any], bool], str]) -> dict[str, Callable[[Any], bool]]:
    return {keyword: check for check, keywords in rows for keyword in keywords.split()}


SHAPES: Final = _table(
    (_is_text, "title description format pattern $schema $id $anchor $dynamicAnchor $comment $ref"),
    (_is_text, "$dynamicRef $recursiveRef contentEncoding contentMediaType"),
    (_is_flag, "uniqueItems nullable deprecated readOnly writeOnly"),
    (is_number, "minimum maximum exclusiveMinimum exclusiveMaximum"),
    (_is_positive, "multipleOf"),
    (_is_count, "minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains"),
    (is_names, "required propertyOrdering"),
    (_is_list, "examples"),
    (_is_filled, "enum anyOf oneOf allOf prefixItems"),
    (_is_table, "properties patternProperties dependentSchemas $defs definitions"),
    (_is_items, "items"),
    (is_schema, "additionalProperties additionalItems contains not if then else propertyNames contentSchema"),
    (is_schema, "unevaluatedItems unevaluatedProperties"),
    (_is_name_table, "dependentRequired"),
    (_is_dependencies, "dependencies"),
    (is_types, "type"),
)
"""Whether the value of a keyword is of the right kind. A keyword that is not here may hold anything."""
