"""Faults to plant into a good body, one for each profile key: what breaks the demand, and where the demand holds.

A plant takes the rich body and the profile and returns the broken body, or None where this target does not make the
demand. `FORCED` gives values for keys whose demand no target of these two protocols makes, so that it can be made.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from support.referee.good_bodies import (
    Body,
    chat_tool,
    claude_tool,
)
from toolglot.profiles import Profile

Plant = Callable[[Body, Profile], Body | None]

FORCED = {
    "ids.style": "'fixed'",
    "ids.written": "false",
    "tools.max_count": "2",
    "tools.required_with_history": "true",
    "tools.omit_empty_parameters": "true",
    "tools.description_required": "true",
    "tools.empty_description": "false",
    "tools.protocol": "'openai_responses'",
    "request.target": "'openai_responses'",
    "calls.parallel": "false",
    "calls.with_text": "false",
    "calls.text_after": "false",
    "calls.empty_content": "'empty'",
    "calls.after": "'user_or_result'",
    "results.alone": "true",
    "results.colocated": "['text']",
    "results.call_order": "true",
    "results.name": "'required'",
    "results.user_after": "false",
    "results.body": "'text'",
    "results.error_flag": "false",
    "results.max_length": "3",
    "results.media": "[]",
    "turns.max_count": "2",
    "turns.system": "'message'",
    "turns.alternate": "true",
    "turns.prefill": "'yes'",
    "turns.media_sources": "['data']",
    "reasoning.grouped": "true\n'reasoning.may_end_turn' = true",  # which finds the same in a turn of the assistant
    "reasoning.one_setting": "true",
    "reasoning.budget_required": "true",
    "reasoning.narrows_sampling": "true",
    "reasoning.refused_sampling": "['temperature']",
    "reasoning.placeholder_on": "'calls'",
    "schema.keywords": "['type', 'properties', 'required']",
    "schema.refused": "['$ref']",
    "schema.refs": "false",
    "schema.type_lists": "false",
    "schema.union_with_type": "false",
    "schema.union_alone": "true",
    "schema.type_required": "true",
    "schema.nullable": "true",
    "schema.enum_types": "'string'",
    "schema.formats": "['date']",
    "schema.properties_non_empty": "true",
    "schema.required_defined": "true",
    "schema.property_pattern": "'[a-z]+'",
    "schema.max_depth": "2",
    "schema.strict_all_required": "true",
    "schema.strict_max_depth": "2",
    "schema.strict_max_properties": "2",
    "schema.strict_max_tools": "1",
    "schema.strict_max_optional": "2",
    "schema.strict_max_unions": "2",
    "schema.strict_schema_optional": "2",
    "schema.strict_schema_unions": "2",
    "schema.strict_recursion": "false",
    "schema.strict_booleans": "false",
    "request.max_tokens_required": "true",
    "request.min_max_tokens": "16",
    "request.temperature_max": "1.0",
    "request.temperature_min": "0.0",
    "request.refused_fields": "['logprobs']",
    "request.fields": "['model', 'messages', 'tools', 'tool_choice', 'max_tokens']",
    "request.message_fields": "['role', 'content', 'tool_calls', 'tool_call_id', 'name']",
    "request.seed_field": "'random_seed'",
    "turns.document_part": "'document_url'",
    "reasoning.signature_fields": "['extra_content']",
    "reasoning.foreign_marks": "['gAAAA']",
    "request.temperature_or_top_p": "true",
    "request.max_stop": "4",
    "request.blank_stop": "false",
    "request.user": "false",
    "request.cache_markers": "false",
    "request.hosted_version": "'vertex-2023-10-16'",
    "cache.key_length": "64",
    "cache.positions": "['system']",
    "request.foreign_models": "['gemini-*']",
    "request.output": "[]",
    "request.output_with_tools": "false",
    "request.output_closed": "'always'",
    "tools.strict": "'omit'",
    "choice.parallel_switch": "false",
    "choice.parallel_with_none": "false",
}
"""By key, as TOML."""


def where(holds: Callable[[Profile], Any], plant: Plant) -> Plant:
    """A plant for targets that make the demand."""
    return lambda body, profile: plant(body, profile) if holds(profile) else None


def edit(change: Callable[[Body], Any]) -> Plant:
    """A plant that changes a copy of the body."""

    def plant(body: Body, _: Profile) -> Body:
        broken = copy.deepcopy(body)
        change(broken)
        return broken

    return plant


AS_IT_IS: Plant = lambda body, _: body  # noqa: E731 - a plant among plants
"""The rich body itself has what is refused."""


def refuses_fields(profile: Profile) -> bool:
    return profile.request.unknown_fields == "refused"


def schema(root: Body, *, strict: bool | None = None) -> Plant:
    """The first tool with another schema, whole or with a property `x` added."""

    def change(body: Body) -> None:
        tool = body["tools"][0]
        holder, field = (tool["function"], "parameters") if "function" in tool else (tool, "input_schema")
        holder[field] = root
        if strict is not None:
            holder["strict"] = strict

    return edit(change)


def inside(prop: Body) -> Body:
    return {"type": "object", "properties": {"x": prop}}


def strict(prop: Body | bool) -> Body:
    return {"type": "object", "properties": {"x": prop}, "required": ["x"], "additionalProperties": False}


def nested(depth: int, leaf: Body) -> Body:
    return leaf if depth == 0 else strict(nested(depth - 1, leaf))


def many_properties(profile: Profile) -> Body:
    names = [f"p{n}" for n in range((profile.schema.strict_max_properties or 0) + 1)]
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": names,
        "additionalProperties": False,
    }


def several(count: int, prop: Body, *, required: bool) -> Body:
    """A strict schema of so many properties."""
    names = [f"p{n}" for n in range(count)]
    listed = {"required": names} if required else {}
    return {"type": "object", "properties": dict.fromkeys(names, prop), **listed, "additionalProperties": False}


def strict_tools(body: Body, profile: Profile) -> Body:
    count = (profile.schema.strict_max_tools or 0) + 1
    make = claude_tool if "input_schema" in body["tools"][0] else chat_tool
    field = "input_schema" if make is claude_tool else "parameters"
    tools = [make(f"tool_{n}", strict=True, **{field: strict({"type": "string"})}) for n in range(count)]
    return body | {"tools": tools}


def may_strict(profile: Profile) -> bool:
    return profile.tools.strict != "omit"


EITHER: dict[str, Plant] = {
    "tools.max_count": lambda body, profile: (
        body
        | {
            "tools": [
                {**copy.deepcopy(body["tools"][0]), **_named(body, f"tool_{n}")}
                for n in range(profile.tools.max_count + 1)
            ]
        }
        if profile.tools.max_count is not None
        else None
    ),
    "tools.allow_empty_list": edit(lambda body: body.update(tools=[])),
    "tools.required_with_history": where(lambda p: p.tools.required_with_history, edit(lambda body: body.pop("tools"))),
    "tools.protocol": where(lambda p: p.tools.protocol, AS_IT_IS),
    "request.target": where(lambda p: p.request.target, AS_IT_IS),
    "names.unique": edit(lambda body: body["tools"].append(copy.deepcopy(body["tools"][0]))),
    "tools.empty_schema": where(lambda p: not p.tools.empty_schema, schema({})),
    "tools.omit_empty_parameters": where(
        lambda p: p.tools.omit_empty_parameters, schema({"type": "object", "properties": {}})
    ),
    "schema.keywords": where(lambda p: p.schema.keywords is not None, schema(inside({"type": "string", "x-odd": 1}))),
    "schema.well_formed": where(lambda p: p.schema.well_formed, schema(inside({"type": "str"}))),
    "schema.refused": where(lambda p: "$ref" in p.schema.refused, schema(inside({"$ref": "#/$defs/a"}))),
    "schema.root_union": where(
        lambda p: not p.schema.root_union, schema({"type": "object", "properties": {}, "anyOf": [{"required": ["a"]}]})
    ),
    "schema.refs": where(lambda p: not p.schema.refs, schema(inside({"$ref": "#/$defs/a"}))),
    "schema.type_lists": where(lambda p: not p.schema.type_lists, schema(inside({"type": ["string", "null"]}))),
    "schema.union_with_type": where(
        lambda p: not p.schema.union_with_type, schema(inside({"type": "string", "anyOf": [{"minLength": 1}]}))
    ),
    "schema.union_alone": where(
        lambda p: p.schema.union_alone, schema(inside({"anyOf": [{"type": "string"}], "description": "d"}))
    ),
    "schema.type_required": where(lambda p: p.schema.type_required, schema(inside({"description": "d"}))),
    "schema.nullable": where(lambda p: p.schema.nullable, schema(inside({"type": "null"}))),
    "schema.tuple_items": where(
        lambda p: p.schema.tuple_items != "items", schema(inside({"type": "array", "items": [{"type": "string"}]}))
    ),
    "schema.enum_types": where(
        lambda p: p.schema.enum_types == "string", schema(inside({"type": "integer", "enum": [1]}))
    ),
    "schema.formats": where(
        lambda p: p.schema.formats is not None, schema(inside({"type": "string", "format": "odd"}))
    ),
    "schema.properties_required": where(lambda p: p.schema.properties_required, schema(inside({"type": "object"}))),
    "schema.properties_non_empty": where(
        lambda p: p.schema.properties_non_empty, schema(inside({"type": "object", "properties": {}}))
    ),
    "schema.items_required": where(lambda p: p.schema.items_required, schema(inside({"type": "array"}))),
    "schema.required_defined": where(
        lambda p: p.schema.required_defined, schema({"type": "object", "properties": {}, "required": ["b"]})
    ),
    "schema.property_pattern": where(
        lambda p: p.schema.property_pattern is not None,
        schema({"type": "object", "properties": {"näme of it": {"type": "string"}}}),
    ),
    "schema.max_depth": where(lambda p: p.schema.max_depth is not None, schema(nested(40, {"type": "string"}))),
    "schema.strict_formats": where(may_strict, schema(strict({"type": "string", "format": "odd"}), strict=True)),
    "schema.strict_refused": where(
        may_strict, schema(strict({"type": "array", "items": {}, "uniqueItems": True}), strict=True)
    ),
    "schema.strict_all_required": where(
        lambda p: may_strict(p) and p.schema.strict_all_required,
        schema(inside({"type": "string"}) | {"additionalProperties": False}, strict=True),
    ),
    "schema.strict_max_depth": where(
        lambda p: may_strict(p) and p.schema.strict_max_depth is not None,
        schema(nested(11, {"type": "string"}), strict=True),
    ),
    "schema.strict_max_properties": where(
        lambda p: may_strict(p) and p.schema.strict_max_properties is not None,
        lambda body, profile: schema(many_properties(profile), strict=True)(body, profile),
    ),
    "schema.strict_max_tools": where(lambda p: may_strict(p) and p.schema.strict_max_tools is not None, strict_tools),
    "schema.strict_max_optional": where(
        lambda p: may_strict(p) and p.schema.strict_max_optional is not None,
        schema(several(25, {"type": "string"}, required=False), strict=True),
    ),
    "schema.strict_schema_optional": where(
        lambda p: may_strict(p) and p.schema.strict_schema_optional is not None,
        schema(several(25, {"type": "string"}, required=False), strict=True),
    ),
    "schema.strict_max_unions": where(
        lambda p: may_strict(p) and p.schema.strict_max_unions is not None,
        schema(several(25, {"type": ["string", "null"]}, required=True), strict=True),
    ),
    "schema.strict_schema_unions": where(
        lambda p: may_strict(p) and p.schema.strict_schema_unions is not None,
        schema(several(25, {"type": ["string", "null"]}, required=True), strict=True),
    ),
    "schema.strict_recursion": where(
        lambda p: may_strict(p) and not p.schema.strict_recursion,
        schema(
            strict({"$ref": "#/$defs/a"}) | {"$defs": {"a": strict({"$ref": "#/$defs/b"}), "b": {"$ref": "#/$defs/a"}}},
            strict=True,
        ),
    ),
    "schema.strict_booleans": where(
        lambda p: may_strict(p) and not p.schema.strict_booleans,
        schema(strict(True), strict=True),
    ),
    "request.unknown_fields": where(refuses_fields, edit(lambda body: body.update(no_such_field=1))),
    "request.max_tokens_required": where(
        lambda p: p.request.max_tokens_required, edit(lambda body: body.pop("max_tokens", None))
    ),
    "turns.max_count": where(lambda p: p.turns.max_count is not None and p.turns.max_count < 10, AS_IT_IS),
}


def _named(body: Body, name: str) -> Body:
    tool = body["tools"][0]
    return {"function": {**tool["function"], "name": name}} if "function" in tool else {"name": name}
