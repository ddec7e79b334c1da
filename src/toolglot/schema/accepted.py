"""Whether a schema that was written for a target breaks any known rule of the target.

`fitness.py` checks whether a schema is as toolglot would write it, which is more than a target demands, because schemas
may come from anywhere. A schema of the target's own client only has to break no rule. Law: what is accepted here is
sent unchanged, so every rule of the profile has to be checked here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from toolglot.profiles import Profile
from toolglot.profiles.rules import SchemaRules
from toolglot.schema.fitness import NOT_AT_ROOT, Fitness, is_null
from toolglot.schema.keywords import LISTS, MAPS, OPEN_ENDED, SHAPES, SINGLES, Schema, types_of
from toolglot.schema.strict import refers_to_itself, strict_cost

_MAX_DEPTH: Final = 100
_MAP: Final = ("additionalProperties", "patternProperties", "propertyNames")
"""What an object with arbitrary names has instead of properties."""


def is_accepted(schema: Schema, profile: Profile, *, strict: bool = False) -> bool:
    """Whether the target accepts the schema of a tool unchanged, in strict mode if `strict`."""
    rules = profile.schema
    fitness = Fitness(rules, schema)
    if strict and profile.tools.strict in ("omit", "only_false"):
        return False
    if profile.tools.omit_empty_parameters and not schema.get("properties"):
        return False
    if schema.get("type") not in ("object", "OBJECT") or "$ref" in schema:
        return False
    if not rules.root_union and any(keyword in schema for keyword in NOT_AT_ROOT):
        return False
    properties = 0
    for node, depth in _nodes(schema):
        if node is None or depth > _MAX_DEPTH or not _keeps_rules(node, depth, fitness):
            return False
        if strict:
            properties += len(node.get("properties", ()))
            if not _keeps_strict_rules(node, depth, rules):
                return False
    return not strict or (_is_within(properties, rules.strict_max_properties) and _keeps_strict_limits(schema, rules))


def _is_within(count: int, limit: int | None) -> bool:
    return limit is None or count <= limit


def _keeps_strict_limits(schema: Schema, rules: SchemaRules) -> bool:
    """The limits of one schema. Those of a request are checked where all its tools are known."""
    if not rules.strict_recursion and refers_to_itself(schema):
        return False
    optional, unions = strict_cost(schema)
    return _is_within(optional, rules.strict_schema_optional) and _is_within(unions, rules.strict_schema_unions)


def _nodes(schema: Schema) -> Iterator[tuple[Schema | None, int]]:
    """A schema and all schemas in it, with their depth; None for what is not a schema. No reference is followed."""
    stack: list[tuple[Any, int]] = [(schema, 0)]
    while stack:
        node, depth = stack.pop()
        if type(node) is not dict:
            yield None, depth
            continue
        yield node, depth
        for keyword, value in node.items():
            below: list[Any] = []
            if keyword in OPEN_ENDED and type(value) is bool:
                continue
            if keyword == "items" and type(value) is list:
                below = value
            elif keyword in SINGLES:
                below = [value]
            elif keyword in LISTS and type(value) is list:
                below = value
            elif keyword in MAPS and type(value) is dict:
                below = list(value.values())
            if depth < _MAX_DEPTH + 1:
                stack += [(held, depth + 1) for held in below]


def _keeps_rules(node: Schema, depth: int, fitness: Fitness) -> bool:
    rules = fitness.rules
    for keyword, value in node.items():
        shape = SHAPES.get(keyword)
        if not fitness.accepts(keyword):
            return False
        if shape is not None and not shape(value) and not _is_spelled(keyword, value, rules):
            return False
    types = tuple(map(str.lower, types_of(node)))
    if (rules.max_depth is not None and depth > rules.max_depth) or not _keeps_union_rules(node, types, rules):
        return False
    if "$ref" in node and not fitness.refs:
        return False
    if type(node.get("type")) is list and not rules.type_lists:
        return False
    if "format" in node and rules.formats is not None and node["format"] not in rules.formats:
        return False
    if "enum" in node and rules.enum_types == "string" and not all(type(value) is str for value in node["enum"]):
        return False
    return _keeps_object_rules(node, types, depth, fitness) and _keeps_array_rules(node, types, rules)


def _is_spelled(keyword: str, value: Any, rules: SchemaRules) -> bool:
    """Gemini's own schemas write STRING where JSON Schema has string."""
    return rules.nullable and keyword == "type" and type(value) is str and value.isupper()


def _keeps_union_rules(node: Schema, types: tuple[str, ...], rules: SchemaRules) -> bool:
    if rules.type_required and not any(keyword in node for keyword in ("type", "$ref", "anyOf", "oneOf", "allOf")):
        return False
    if rules.nullable and "null" in types:
        return False
    if "anyOf" not in node:
        return True
    if rules.union_alone and len(node) > 1:
        return False
    if rules.nullable and any(map(is_null, node["anyOf"])):
        return False
    return rules.union_with_type or "type" not in node


def _keeps_object_rules(node: Schema, types: tuple[str, ...], depth: int, fitness: Fitness) -> bool:
    rules, properties = fitness.rules, node.get("properties")
    if "object" in types:
        is_map = depth > 0 and any(keyword in node for keyword in _MAP)
        if rules.properties_required and properties is None and not is_map:
            return False
        if rules.properties_non_empty and not properties:
            return False
    if not all(map(fitness.is_legal, properties or ())):
        return False
    return not rules.required_defined or all(name in (properties or ()) for name in node.get("required", ()))


def _keeps_array_rules(node: Schema, types: tuple[str, ...], rules: SchemaRules) -> bool:
    if rules.items_required and "array" in types and "items" not in node and "prefixItems" not in node:
        return False
    if type(node.get("items")) is list and rules.tuple_items != "items":
        return False
    return "prefixItems" not in node or rules.tuple_items != "no"


def _keeps_strict_rules(node: Schema, depth: int, rules: SchemaRules) -> bool:
    if rules.strict_max_depth is not None and depth > rules.strict_max_depth:
        return False
    if any(keyword in node for keyword in rules.strict_refused):
        return False
    if "format" in node and node["format"] not in rules.strict_formats:
        return False
    if "object" in types_of(node) and node.get("additionalProperties") is not False:
        return False
    properties, required = node.get("properties", {}), node.get("required", [])
    return not rules.strict_all_required or all(name in required for name in properties)
