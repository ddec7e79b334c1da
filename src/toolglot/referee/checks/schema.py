"""Schemas of tool parameters: the keywords, and how they may be combined.

A demand is a function of one schema (`referee/schema_nodes.py` finds them all) that yields what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from toolglot.errors import quote
from toolglot.profiles.rules import SchemaRules
from toolglot.referee.checks.ids import compile_pattern
from toolglot.referee.finding import Checks, Findings, RequestCase, RuleBreach, short, step
from toolglot.referee.schema_nodes import SchemaNode, nodes_in, schema_nodes
from toolglot.referee.view import ToolView

_UNIONS: Final = ("anyOf", "oneOf", "allOf")
_MAP: Final = ("additionalProperties", "patternProperties", "propertyNames")
"""What an object with arbitrary names has instead of properties, except at the root."""


def _judged_tools(case: RequestCase) -> Iterator[tuple[ToolView, tuple[SchemaNode, ...]]]:
    """Tools whose schema is in the field that the rules are about, and the schemas in it."""
    rules = case.profile.schema
    for tool, nodes in zip(case.view.tools or (), case.schemas, strict=True):
        is_free = bool(tool.schema_field) and tool.schema_field == rules.free_field != rules.field
        if tool.kind == "function" and not is_free:
            yield tool, nodes


def _strict(case: RequestCase) -> Iterator[tuple[ToolView, tuple[SchemaNode, ...]]]:
    if case.profile.takes_any_strict:
        return iter(())
    return ((tool, nodes) for tool, nodes in _judged_tools(case) if tool.strict)


Demand = Callable[[SchemaNode, SchemaRules], Iterator[tuple[str, str]]]
"""What is wrong with one schema: the message, and the value for a gap."""


def _types(schema: dict[str, Any]) -> tuple[Any, ...]:
    kind = schema.get("type")
    return tuple(kind) if isinstance(kind, list) else (kind,)


def _is_object(schema: dict[str, Any]) -> bool:
    return any(kind in ("object", "OBJECT") for kind in _types(schema))


def _is_array(schema: dict[str, Any]) -> bool:
    return any(kind in ("array", "ARRAY") for kind in _types(schema))


def _not_among(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    for keyword in node.schema if rules.keywords is not None else ():
        if rules.keywords is not None and keyword not in rules.keywords:
            yield f"unknown keyword {quote(keyword)}", str(keyword)[:80]


def _refused(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    yield from (
        (f"the keyword {quote(keyword)} is not accepted", keyword)
        for keyword in rules.refused
        if keyword in node.schema
    )


def _root_union(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    if node.depth == 0 and not rules.root_union:
        yield from ((f"{word} is not accepted at the root", word) for word in _UNIONS if word in node.schema)


def _references(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    if not rules.refs and "$ref" in node.schema:
        yield "references are not supported", short(node.schema["$ref"])


def _type_list(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    if not rules.type_lists and isinstance(node.schema.get("type"), list):
        yield "a list of types is not accepted", "type"


def _union_with_type(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    if not rules.union_with_type and "anyOf" in node.schema and "type" in node.schema:
        yield "type is not accepted next to anyOf", "type"


def _union_alone(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    if rules.union_alone and "anyOf" in node.schema and len(node.schema) > 1:
        yield "nothing is accepted next to anyOf", "anyOf"


def _typeless(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    is_typed = any(word in node.schema for word in ("type", "$ref", *_UNIONS))
    if rules.type_required and not is_typed:
        yield "the type is missing", "type"


def _null_type(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    if rules.nullable and "null" in _types(node.schema):
        yield 'null must be allowed by "nullable": true, not by a type', "null"


def _tuple_form(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    """With `items`, a draft without prefixItems ignores it."""
    if rules.tuple_items != "items" and isinstance(node.schema.get("items"), list):
        yield "a list of items is not accepted", "items"
    if rules.tuple_items == "no" and "prefixItems" in node.schema:
        yield "prefixItems is not accepted", "prefixItems"


def _enum_values(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    values = node.schema.get("enum")
    if (
        rules.enum_types == "string"
        and isinstance(values, list)
        and any(not isinstance(value, str) for value in values)
    ):
        yield "an enum may hold only strings", "enum"


def _format(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    value = node.schema.get("format")
    if rules.formats is not None and isinstance(value, str) and value not in rules.formats:
        yield f"the format {quote(value)} is not accepted", value[:80]


def _no_properties(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    if not rules.properties_required or not _is_object(node.schema):
        return
    is_map = node.depth > 0 and any(keyword in node.schema for keyword in _MAP)
    if not isinstance(node.schema.get("properties"), dict) and not is_map:
        yield "an object must list its properties", "properties"


def _empty_properties(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    if rules.properties_non_empty and _is_object(node.schema) and not node.schema.get("properties"):
        yield "an object must have properties", "properties"


def _no_items(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    has_items = "items" in node.schema or "prefixItems" in node.schema
    if rules.items_required and _is_array(node.schema) and not has_items:
        yield "an array must describe its items", "items"


def _undefined_required(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    names, properties = node.schema.get("required"), node.schema.get("properties")
    if not rules.required_defined or not isinstance(names, list):
        return
    known = properties if isinstance(properties, dict) else {}
    for name in names:
        if isinstance(name, str) and name not in known:
            yield f"{quote(name)} is required, but is not one of the properties", name[:80]


def _property_name(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    properties = node.schema.get("properties")
    if rules.property_pattern is None or not isinstance(properties, dict):
        return
    legal = compile_pattern(rules.property_pattern)
    for name in properties:
        if not legal.fullmatch(str(name)[:1000]):
            yield f"the property name {quote(name)} does not match {rules.property_pattern}", str(name)[:80]


def _strict_refused(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    for keyword in rules.strict_refused:
        if keyword in node.schema:
            yield f"the keyword {quote(keyword)} is not accepted in strict mode", keyword


def _strict_format(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    value = node.schema.get("format")
    if isinstance(value, str) and value not in rules.strict_formats:
        yield f"the format {quote(value)} is not accepted in strict mode", value[:80]


def _strict_required(node: SchemaNode, rules: SchemaRules) -> Iterator[tuple[str, str]]:
    properties, names = node.schema.get("properties"), node.schema.get("required")
    if not rules.strict_all_required or not isinstance(properties, dict):
        return
    required = {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
    for name in properties:
        if name not in required:
            yield f"in strict mode {quote(name)} must be required", str(name)[:80]


def open_strict_objects(case: RequestCase) -> Findings:
    """By a fact of the profile: in strict mode every object is closed."""
    for tool, nodes in _strict(case):
        for node in nodes:
            if _is_object(node.schema) and node.schema.get("additionalProperties") is not False:
                message = "in strict mode an object must have additionalProperties false"
                yield RuleBreach(node.path, message, 'add "additionalProperties": false', tool.name or "")


def output_closed(case: RequestCase) -> Findings:
    """An enforced output schema is closed and, if strict tools must be, complete."""
    output, rule = case.view.output_schema, case.profile.request.output_closed
    if output is None or rule == "no" or (rule == "strict" and not output.strict):
        return
    for node in schema_nodes(output):
        if _is_object(node.schema) and node.schema.get("additionalProperties") is not False:
            message = "an object of the output must have additionalProperties false"
            yield RuleBreach(node.path, message, 'add "additionalProperties": false', output.name or "")
        for message, _ in _strict_required(node, case.profile.schema):
            yield RuleBreach(node.path, message, "require it and allow null, or leave strict out", is_aside=True)


def _each(demand: Demand, case: RequestCase, *, hint: str, only_strict: bool = False) -> Findings:
    for _, nodes in _strict(case) if only_strict else _judged_tools(case):
        for node in nodes:
            for message, shown in demand(node, case.profile.schema):
                yield RuleBreach(node.path, message, hint, shown)


def max_depth(case: RequestCase) -> Findings:
    limit = case.profile.schema.max_depth
    for tool, nodes in _judged_tools(case) if limit is not None else ():
        yield from _deeper(tool, nodes, limit)


def strict_max_depth(case: RequestCase) -> Findings:
    limit = case.profile.schema.strict_max_depth
    for tool, nodes in _strict(case) if limit is not None else ():
        yield from _deeper(tool, nodes, limit)


def _deeper(tool: ToolView, nodes: tuple[SchemaNode, ...], limit: int | None) -> Findings:
    depth = max((node.depth for node in nodes), default=0)
    if limit is not None and depth > limit:
        path = tool.schema_path or tool.path
        yield RuleBreach(
            path, f"the schema nests {depth} deep, at most {limit} is accepted", "make it flatter", str(depth)
        )


def strict_max_properties(case: RequestCase) -> Findings:
    limit = case.profile.schema.strict_max_properties
    for tool, nodes in _strict(case) if limit is not None else ():
        lists = (node.schema.get("properties") for node in nodes)
        count = sum(len(properties) for properties in lists if isinstance(properties, dict))
        if limit is not None and count > limit:
            path = tool.schema_path or tool.path
            yield RuleBreach(
                path, f"{count} properties, at most {limit} are accepted", "send a smaller schema", str(count)
            )


def strict_max_tools(case: RequestCase) -> Findings:
    tools, limit = list(_strict(case)), case.profile.schema.strict_max_tools
    if limit is not None and len(tools) > limit:
        message = f"{len(tools)} strict tools, at most {limit} are accepted"
        yield RuleBreach(case.view.tools_path, message, "leave strict out of some", str(len(tools)))


def _optional(nodes: tuple[SchemaNode, ...]) -> int:
    """The number of optional properties of a schema."""
    count = 0
    for node in nodes:
        properties, names = node.schema.get("properties"), node.schema.get("required")
        if isinstance(properties, dict):
            required = {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
            count += sum(name not in required for name in properties)
    return count


def _unions(nodes: tuple[SchemaNode, ...]) -> int:
    """The number of properties of a schema that have several types."""
    count = 0
    for node in nodes:
        properties = node.schema.get("properties")
        for held in properties.values() if isinstance(properties, dict) else ():
            if isinstance(held, dict):
                count += "anyOf" in held or isinstance(held.get("type"), list)
    return count


Count = Callable[[tuple[SchemaNode, ...]], int]


def _enforced_output(case: RequestCase) -> tuple[SchemaNode, ...]:
    """The schema of the output, if it is enforced as that of a strict tool."""
    output, rule = case.view.output_schema, case.profile.request.output_closed
    is_held = output is not None and (rule == "always" or (rule == "strict" and output.strict is True))
    return tuple(schema_nodes(output)) if output is not None and is_held else ()


def _in_all(count: Count, what: str, limit_of: Callable[[SchemaRules], int | None], case: RequestCase) -> Findings:
    limit = limit_of(case.profile.schema)
    total = sum(count(nodes) for _, nodes in _strict(case)) + count(_enforced_output(case)) if limit is not None else 0
    if limit is not None and total > limit:
        message = f"{total} {what} in strict schemas, at most {limit} are accepted"
        yield RuleBreach(case.view.tools_path, message, "leave strict out of some", str(total))


def _in_one(count: Count, what: str, limit_of: Callable[[SchemaRules], int | None], case: RequestCase) -> Findings:
    limit = limit_of(case.profile.schema)
    for tool, nodes in _strict(case) if limit is not None else ():
        total = count(nodes)
        if limit is not None and total > limit:
            message = f"{total} {what} in one strict schema, at most {limit} are accepted"
            yield RuleBreach(tool.schema_path or tool.path, message, "leave strict out", str(total))


def strict_recursion(case: RequestCase) -> Findings:
    for tool, nodes in _strict(case) if not case.profile.schema.strict_recursion else ():
        circle = _circle(tool.schema, nodes) if nodes else ()
        if circle:
            message = f"the schema refers to itself: {' -> '.join(circle)}"
            yield RuleBreach(tool.schema_path or tool.path, message, "leave strict out", circle[0][:80])


def _circle(schema: Any, nodes: tuple[SchemaNode, ...]) -> tuple[str, ...]:
    """Definitions that refer back to themselves; empty if there are none."""
    if any(node.schema.get("$ref") == "#" for node in nodes):
        return ("#", "#")
    tables = (schema.get(word) for word in ("$defs", "definitions"))
    held = {name: value for table in tables if isinstance(table, dict) for name, value in table.items()}
    leads = {name: list(_named_definitions(value)) for name, value in held.items()}
    done: set[str] = set()
    for start, led_to in leads.items():
        path, stack = dict.fromkeys((start,)), [iter(led_to)] if start not in done else []
        while stack:
            name = next(stack[-1], None)
            if name is None:
                stack.pop()
                done.add(path.popitem()[0])
            elif name in path:
                return (*list(path)[list(path).index(name) :], name)
            elif name in leads and name not in done:
                path[name] = None
                stack.append(iter(leads[name]))
    return ()


def _named_definitions(schema: Any) -> Iterator[str]:
    """The definitions that a schema refers to."""
    for node in nodes_in(schema, ""):
        reference = node.schema.get("$ref")
        if isinstance(reference, str) and reference.startswith(("#/$defs/", "#/definitions/")):
            yield reference.split("/", 2)[2]


def strict_booleans(case: RequestCase) -> Findings:
    for _, nodes in _strict(case) if not case.profile.schema.strict_booleans else ():
        for node in nodes:
            properties = node.schema.get("properties")
            for name, held in properties.items() if isinstance(properties, dict) else ():
                if isinstance(held, bool):
                    message = f"the property {quote(name)} is {str(held).lower()} instead of a schema"
                    yield RuleBreach(step(step(node.path, "properties"), str(name)), message, "write a schema")


_TYPE_NAMES: Final = ("string", "number", "integer", "boolean", "object", "array", "null")


def _is_type(kind: Any) -> bool:
    names = kind if isinstance(kind, list) else [kind]
    return bool(names) and all(isinstance(name, str) and name in _TYPE_NAMES for name in names)


def _is_proto_type(kind: Any) -> bool:
    """Gemini's own schemas write STRING, or its number, where JSON Schema has string."""
    if type(kind) is int:
        return 0 < kind <= len(_TYPE_NAMES)
    return _is_type(kind.lower() if isinstance(kind, str) else kind)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


_WELL_FORMED: Final[dict[str, Callable[[Any], bool]]] = {
    "type": _is_type,
    "properties": lambda value: isinstance(value, dict),
    "required": _is_names,
    "enum": lambda value: isinstance(value, list),
    "items": lambda value: isinstance(value, dict | list | bool),
    "description": lambda value: isinstance(value, str),
    **dict.fromkeys(_UNIONS, lambda value: isinstance(value, list) and bool(value)),
}


def malformed(case: RequestCase) -> Findings:
    """A schema must itself be one."""
    rules = case.profile.schema
    forms = _WELL_FORMED | {"type": _is_proto_type} if rules.nullable else _WELL_FORMED
    for _, nodes in _judged_tools(case) if rules.well_formed else ():
        for node in nodes:
            for keyword, is_good in forms.items():
                if keyword in node.schema and not is_good(node.schema[keyword]):
                    message = f"{quote(node.schema[keyword])} is not a valid {keyword}"
                    yield RuleBreach(step(node.path, keyword), message, "see JSON Schema", keyword)


FACTS: Checks = {"strict-objects": open_strict_objects}
"""By the end of a fact's id; checked if the profile has such a fact."""

CHECKS: Checks = {
    "schema.keywords": partial(_each, _not_among, hint="leave it out, or describe it in words"),
    "schema.refused": partial(_each, _refused, hint="leave it out, or describe it in words"),
    "schema.well_formed": malformed,
    "schema.root_union": partial(_each, _root_union, hint="merge the branches into one object"),
    "schema.refs": partial(_each, _references, hint="replace it with the definition"),
    "schema.type_lists": partial(_each, _type_list, hint="write a union with anyOf"),
    "schema.union_with_type": partial(_each, _union_with_type, hint="move the type into the branches"),
    "schema.union_alone": partial(_each, _union_alone, hint="move everything else into the branches"),
    "schema.type_required": partial(_each, _typeless, hint="write the type"),
    "schema.nullable": partial(_each, _null_type, hint='write "nullable": true'),
    "schema.tuple_items": partial(_each, _tuple_form, hint="write one schema for all items"),
    "schema.enum_types": partial(_each, _enum_values, hint="list the values in the description"),
    "schema.formats": partial(_each, _format, hint="describe it in words"),
    "schema.properties_required": partial(_each, _no_properties, hint='add "properties": {}'),
    "schema.properties_non_empty": partial(_each, _empty_properties, hint="leave the schema out"),
    "schema.items_required": partial(_each, _no_items, hint='add "items": {}'),
    "schema.required_defined": partial(_each, _undefined_required, hint="remove it from required"),
    "schema.property_pattern": partial(_each, _property_name, hint="rename the property"),
    "schema.max_depth": max_depth,
    "schema.strict_formats": partial(_each, _strict_format, hint="describe it in words", only_strict=True),
    "schema.strict_refused": partial(
        _each, _strict_refused, hint="leave it out, or send strict false", only_strict=True
    ),
    "schema.strict_all_required": partial(
        _each, _strict_required, hint="require it and allow null, or send strict false", only_strict=True
    ),
    "schema.strict_max_depth": strict_max_depth,
    "schema.strict_max_properties": strict_max_properties,
    "schema.strict_max_tools": strict_max_tools,
    "schema.strict_max_optional": partial(
        _in_all, _optional, "optional properties", lambda rules: rules.strict_max_optional
    ),
    "schema.strict_max_unions": partial(
        _in_all, _unions, "properties with a union", lambda rules: rules.strict_max_unions
    ),
    "schema.strict_schema_optional": partial(
        _in_one, _optional, "optional properties", lambda rules: rules.strict_schema_optional
    ),
    "schema.strict_schema_unions": partial(
        _in_one, _unions, "properties with a union", lambda rules: rules.strict_schema_unions
    ),
    "schema.strict_recursion": strict_recursion,
    "schema.strict_booleans": strict_booleans,
    "request.output_closed": output_closed,
}
