"""Judges of lowered schemas that share no code with the lowering: SDKs, meta-schemas, and published rules.

`objections` says what a target has against a schema; `meaning` is the JSON Schema that a lowered one stands
for; `strict_objections` are the published rules of OpenAI's strict mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
from google.genai import types as google
from mistral_common.protocol.instruct.tool_calls import Function, Tool

from toolglot.profiles import Profile

Schema = dict[str, Any]

SINGLE = ("items", "additionalProperties", "additionalItems", "contains", "not", "if", "then", "else", "propertyNames")
MANY = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
NAMED = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")


def nodes(schema: Any, depth: int = 1) -> Iterator[tuple[Schema, int]]:
    """Every schema inside a schema, with its depth."""
    if not isinstance(schema, dict):
        return
    yield schema, depth
    for keyword in SINGLE:
        yield from nodes(schema.get(keyword), depth + 1)
    for keyword in MANY:
        if isinstance(schema.get(keyword), list):
            for part in schema[keyword]:
                yield from nodes(part, depth if keyword in ("anyOf", "oneOf", "allOf") else depth + 1)
    for keyword in NAMED:
        if isinstance(schema.get(keyword), dict):
            for part in schema[keyword].values():
                yield from nodes(part, depth + 1)


def objections(schema: Schema | None, profile: Profile) -> list[str]:
    """What a target has against a schema."""
    if schema is None:
        return ["missing"] if profile.tools.parameters_required else []
    found = [] if schema.get("type") in ("object", "OBJECT") else ["the root is no object"]
    if not profile.schema.root_union:
        found += [f"{word} at the root" for word in ("anyOf", "oneOf", "allOf", "not", "enum") if word in schema]
    for node, _ in nodes(schema):
        found += _node_objections(node, profile)
    return found + _outside_objections(schema, profile)


def _node_objections(node: Schema, profile: Profile) -> list[str]:
    rules, found = profile.schema, []
    allowed = set(node) if rules.keywords is None else set(rules.keywords)
    found += [f"keyword {keyword}" for keyword in node if keyword in rules.refused or keyword not in allowed]
    types = node.get("type")
    if isinstance(types, list) and not rules.type_lists:
        found.append("type list")
    names = [types] if isinstance(types, str) else types or []
    properties = node.get("properties", {})
    checks = {
        "reference": "$ref" in node and not rules.refs,
        "properties missing": "object" in names and rules.properties_required and "properties" not in node,
        "properties empty": "object" in names and rules.properties_non_empty and not properties,
        "items missing": "array" in names and rules.items_required and not {"items", "prefixItems"} & set(node),
        "type beside anyOf": "anyOf" in node and not rules.union_with_type and "type" in node,
        "anyOf not alone": "anyOf" in node and rules.union_alone and len(node) > 1,
        "no type": rules.type_required and not {"type", "anyOf"} & set(node),
        "prefixItems": "prefixItems" in node and rules.tuple_items != "prefixItems",
        "list of items": isinstance(node.get("items"), list) and rules.tuple_items != "items",
        "format": rules.formats is not None and "format" in node and node["format"] not in rules.formats,
        "enum": rules.enum_types == "string"
        and "enum" in node
        and (types != "string" or not all(isinstance(value, str) for value in node["enum"])),
        "name": rules.property_pattern is not None
        and not all(re.fullmatch(rules.property_pattern, name) for name in properties),
        "required": rules.required_defined and not set(node.get("required", ())) <= set(properties),
    }
    return found + [name for name, is_wrong in checks.items() if is_wrong]


def _outside_objections(schema: Schema, profile: Profile) -> list[str]:
    """What the provider's own code, or the meta-schema of its draft, says."""
    try:
        if profile.protocol == "gemini" and profile.schema.field == "parameters":
            google.Schema.model_validate(schema)
            declaration = google.FunctionDeclaration.model_validate({"name": "f", "parameters": schema})
            google.Tool(function_declarations=[declaration])
            return []
        if profile.protocol == "gemini":
            google.FunctionDeclaration(name="f", parameters_json_schema=schema)
            google.JSONSchema.model_validate(schema)
        if profile.schema.tuple_items == "items":
            Tool(function=Function(name="f", parameters=schema))
            jsonschema_rs.meta.validate({**schema, "$schema": "http://json-schema.org/draft-07/schema#"})
            return []
        jsonschema_rs.meta.validate({**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"})
    except ValueError as error:
        return [str(error)]
    return []


# --- what it means ------------------------------------------------------------------------------------

WIDEST = {"string", "number", "boolean", "array", "object"}


def meaning(schema: Any) -> Any:
    """A lowered schema as plain JSON Schema: `nullable` understood, and the widest union read as any value."""
    if not isinstance(schema, dict):
        return schema
    out = {keyword: _meaning_of(keyword, value) for keyword, value in schema.items() if keyword != "nullable"}
    branches = [branch for branch in schema.get("anyOf", ()) if isinstance(branch, dict)]
    is_widest = any(set(branch.get("properties", ())) == {"any_key"} for branch in branches)
    if is_widest and {branch.get("type") for branch in branches} >= WIDEST:
        return {}
    if schema.get("nullable"):
        return {"anyOf": [out, {"type": "null"}]}
    return out


def _meaning_of(keyword: str, value: Any) -> Any:
    if keyword in NAMED:
        return {name: meaning(part) for name, part in value.items()}
    if keyword in MANY and isinstance(value, list):
        return [meaning(part) for part in value]
    return meaning(value) if keyword in SINGLE else value


# --- strict mode --------------------------------------------------------------------------------------

STRICT_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
STRICT_REFUSED = {
    *("oneOf", "allOf", "not", "if", "then", "else", "patternProperties", "propertyNames", "contains"),
    *("uniqueItems", "minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "prefixItems"),
}


def strict_objections(schema: Schema) -> list[str]:
    """The rules of strict mode as OpenAI publishes them."""
    found = ["root"] if schema.get("type") != "object" or "anyOf" in schema else []
    total = 0
    for node, depth in nodes(schema):
        total += len(node.get("properties", ()))
        types = node.get("type", [])
        names = [types] if isinstance(types, str) else types
        closed = node.get("additionalProperties") is False and sorted(node.get("properties", {"": 0})) == sorted(
            node.get("required", ())
        )
        checks = {
            "refused": STRICT_REFUSED & set(node),
            "open": "object" in names and not closed,
            "untyped": not names and not {"anyOf", "$ref"} & set(node),
            "reference": "$ref" in node and (len(node) > 1 or not re.fullmatch(r"#|#/\$defs/[^/]+", node["$ref"])),
            "format": "format" in node and node["format"] not in STRICT_FORMATS,
            "items": "array" in names and not isinstance(node.get("items"), dict),
            "deep": depth > 10,
            "look-around": re.search(r"\(\?<?[=!]", node.get("pattern", "")),
        }
        found += [name for name, is_wrong in checks.items() if is_wrong]
    return [*found, "too many properties"] if total > 5000 else found
