"""Faults to plant into a good body, one for each profile key: what breaks the demand, and where the demand holds.

A plant takes the rich body and the profile and returns the broken body, or None where this target does not make the
demand. `FORCED` gives values for keys whose demand no target of these two protocols makes, so that it can be made.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from support.referee.good_bodies import (
    ONE,
    PIXEL,
    THREE,
    Body,
    chat_call,
    chat_result,
    chat_saying,
    chat_tool,
    claude_call,
    claude_result,
    claude_text,
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


# --- Chat -------------------------------------------------------------------------------------------

IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}


def chat(change: Callable[[list[Body]], Any]) -> Plant:
    return edit(lambda body: change(body["messages"]))


def both_ids(make: Callable[[str], str]) -> Plant:
    """Another id on the first call and its result."""

    def change(messages: list[Body]) -> None:
        messages[2]["tool_calls"][0]["id"] = messages[3]["tool_call_id"] = make(ONE)

    return chat(change)


def with_results(body: Body, profile: Profile, *more: Body) -> Body:
    return body | {"messages": [*body["messages"], *more]}


def named_choice(mode: str) -> Any:
    name = {"name": "get_weather"}
    allowed = {"mode": "auto", "tools": [{"type": "function", "function": name}]}
    special = {
        "named": {"type": "function", "function": name},
        "allowed": {"type": "allowed_tools", "allowed_tools": allowed},
    }
    return special.get(mode, mode)


def refused_choice(profile: Profile) -> str | None:
    return next((mode for mode in ("named", "allowed", "required", "none") if mode not in profile.choice.modes), None)


def refused_while_thinking(profile: Profile) -> str | None:
    if profile.reasoning.default != "on":
        return None
    return next((mode for mode in profile.choice.modes if mode not in profile.choice.while_thinking), None)


MORE_MEDIA = {
    "image": IMAGE,
    "audio": {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
    "video": {"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}},
}


def refused_medium(profile: Profile) -> Body | None:
    return next((part for kind, part in MORE_MEDIA.items() if kind not in profile.turns.media), None)


CHAT_PLANTS: dict[str, Plant] = {
    **EITHER,
    "ids.pattern": both_ids(lambda _: "a b c def"),
    "ids.max_length": where(
        lambda p: p.ids.style != "fixed",  # where the exact length is demanded too
        lambda body, profile: both_ids(lambda _: "a" * (profile.ids.max_length + 1))(body, profile),
    ),
    "ids.fixed_length": where(lambda p: p.ids.style == "fixed", both_ids(lambda _: "abc")),
    "ids.required": chat(lambda m: m[2]["tool_calls"][0].pop("id")),
    "ids.written": where(lambda p: not p.ids.written, edit(lambda _: None)),
    "ids.unique_in": chat(lambda m: m[2]["tool_calls"].append(chat_call(ONE))),
    "names.pattern": edit(lambda body: body["tools"][0]["function"].update(name="get weather")),
    "names.max_length": chat(lambda m: m[2]["tool_calls"][0]["function"].update(name="a" * 65)),
    "tools.parameters_required": where(
        lambda p: p.tools.parameters_required, edit(lambda body: body["tools"][0]["function"].pop("parameters"))
    ),
    "tools.description_required": where(
        lambda p: p.tools.description_required, edit(lambda body: body["tools"][0]["function"].pop("description"))
    ),
    "tools.empty_description": where(
        lambda p: not p.tools.empty_description, edit(lambda body: body["tools"][0]["function"].update(description=""))
    ),
    "tools.strict": where(
        lambda p: p.tools.strict == "omit" and refuses_fields(p),
        edit(lambda body: body["tools"][0]["function"].update(strict=False)),
    ),
    "tools.custom": where(
        lambda p: not p.tools.custom,
        edit(lambda body: body["tools"].append({"type": "custom", "custom": {"name": "free"}})),
    ),
    "tools.namespaces": edit(lambda body: body["tools"].append({"type": "namespace", "name": "crm", "tools": []})),
    "tools.server": edit(lambda body: body["tools"].append({"type": "no_such_tool"})),
    "choice.modes": lambda body, profile: (
        body | {"tool_choice": named_choice(mode)}
        if (mode := refused_choice(profile))
        else body | {"tool_choice": "odd"}
    ),
    "choice.while_thinking": lambda body, profile: (
        body | {"tool_choice": named_choice(mode)} if (mode := refused_while_thinking(profile)) else None
    ),
    "choice.needs_tools": edit(lambda body: (body.pop("tools"), body.update(tool_choice="auto"))),
    "choice.parallel_switch": where(
        lambda p: not p.choice.parallel_switch and refuses_fields(p),
        edit(lambda body: body.update(parallel_tool_calls=False)),
    ),
    "choice.parallel_with_none": where(
        lambda p: not p.choice.parallel_with_none,
        edit(lambda body: body.update(tool_choice="none", parallel_tool_calls=False)),
    ),
    "calls.arguments": chat(lambda m: m[2]["tool_calls"][0]["function"].update(arguments={"city": "Bonn"})),
    "calls.arguments_object_only": chat(lambda m: m[2]["tool_calls"][0]["function"].update(arguments="[1")),
    "calls.parallel": where(lambda p: not p.calls.parallel, AS_IT_IS),
    "calls.with_text": where(lambda p: not p.calls.with_text, AS_IT_IS),
    "calls.empty_content": where(lambda p: p.calls.empty_content == "empty", chat(lambda m: m[2].update(content=None))),
    "calls.after": where(lambda p: p.calls.after != "any", chat(lambda m: m.pop(1))),
    "results.complete": chat(lambda m: m.pop()),
    "results.paired": lambda body, profile: with_results(body, profile, chat_result(profile, THREE)),
    "results.single": lambda body, profile: with_results(body, profile, chat_result(profile, ONE)),
    "results.adjacent": chat(lambda m: m.insert(4, {"role": "user", "content": "Well?"})),
    "results.call_order": chat(lambda m: m.append(m.pop(3))),
    "results.name": lambda body, profile: (
        None
        if profile.results.name in ("optional", "wanted")
        else chat(
            (lambda m: m[3].update(name="get_weather"))
            if profile.results.name == "refused"
            else (lambda m: m[3].pop("name", None))
        )(body, profile)
    ),
    "results.body": chat(lambda m: m[3].update(content=[{"type": "refusal", "refusal": "No."}])),
    "results.media": chat(lambda m: m[3].update(content=[IMAGE])),
    "results.empty": where(lambda p: not p.results.empty, chat(lambda m: m[3].update(content=""))),
    "results.user_after": where(
        lambda p: not p.results.user_after, chat(lambda m: m.append({"role": "user", "content": "Well?"}))
    ),
    "results.max_length": where(lambda p: p.results.max_length is not None, AS_IT_IS),
    "turns.first": where(lambda p: p.turns.first == "user", chat(lambda m: m.pop(1))),
    "turns.last": where(
        lambda p: p.turns.last != "any",
        chat(lambda m: (m.pop(), m.pop())),
    ),
    "turns.prefill": where(
        lambda p: p.turns.last != "any" and p.turns.prefill != "yes",
        lambda body, profile: with_results(body, profile, chat_saying(profile, "It is")),
    ),
    "turns.alternate": where(
        lambda p: p.turns.alternate, chat(lambda m: m.insert(1, {"role": "user", "content": "Hi"}))
    ),
    "turns.min_user": where(lambda p: p.turns.min_user > 0, chat(lambda m: m.pop(1))),
    "turns.system_inside": where(
        lambda p: p.turns.system_inside != "anywhere", chat(lambda m: m.insert(2, {"role": "system", "content": "Hm."}))
    ),
    "turns.system_many": where(
        lambda p: not p.turns.system_many, chat(lambda m: m.insert(1, {"role": "system", "content": "Hm."}))
    ),
    "turns.developer_role": where(lambda p: not p.turns.developer_role, chat(lambda m: m[0].update(role="developer"))),
    "turns.function_role": where(
        lambda p: not p.turns.function_role,
        chat(lambda m: m.insert(2, {"role": "function", "name": "read", "content": "printed"})),
    ),
    "turns.name_field": where(
        lambda p: not p.turns.name_field and refuses_fields(p), chat(lambda m: m[1].update(name="ana"))
    ),
    "turns.empty_text": chat(lambda m: m[1].update(content=[{"type": "text", "text": ""}])),
    "turns.blank_text": chat(lambda m: m[1].update(content=" \n")),
    "turns.empty_turn": chat(lambda m: m[1].update(content="")),
    "turns.empty_prefill": where(
        lambda p: not p.turns.empty_prefill, chat(lambda m: m.append({"role": "assistant", "content": ""}))
    ),
    "turns.required": chat(lambda m: m.clear()),
    "turns.trailing_space": where(
        lambda p: p.turns.prefill != "no",
        lambda body, profile: with_results(body, profile, chat_saying(profile, "It is ") | {"prefix": True}),
    ),
    "turns.media": lambda body, profile: where(
        lambda p: refused_medium(p) is not None, chat(lambda m: m[1].update(content=[refused_medium(profile)]))
    )(body, profile),
    "turns.media_sources": where(
        lambda p: "url" not in p.turns.media_sources,
        chat(lambda m: m[1].update(content=[{"type": "image_url", "image_url": "https://example.com/a.png"}])),
    ),
    "turns.assistant_media": chat(lambda m: m[2].update(content=[IMAGE])),
    "reasoning.carrier": lambda body, profile: chat(
        lambda m: m[2].update(
            content=[{"type": "thinking", "thinking": "Hm."}]
            if profile.reasoning.carrier != "thinking_chunks"
            else "a",
            **({} if profile.reasoning.carrier != "thinking_chunks" else {"reasoning_content": "Hm."}),
        )
    )(body, profile),
    "reasoning.modes": where(
        lambda p: p.reasoning.modes or refuses_fields(p), edit(lambda body: body.update(thinking={"type": "adaptive"}))
    ),
    "reasoning.placeholder_on": where(
        lambda p: p.reasoning.placeholder_on != "none" and p.reasoning.default != "off",
        chat(lambda m: m[2].pop("reasoning_content", None)),
    ),
    "reasoning.may_end_turn": chat(
        lambda m: m.insert(2, {"role": "assistant", "content": "", "reasoning_content": "Hm."})
    ),
    "reasoning.efforts": where(
        lambda p: p.reasoning.efforts or refuses_fields(p), edit(lambda body: body.update(reasoning_effort="odd"))
    ),
    "reasoning.budget": where(
        lambda p: not p.reasoning.budget and refuses_fields(p), edit(lambda body: body.update(thinking_budget=100))
    ),
    "reasoning.switch": where(
        refuses_fields,
        lambda body, profile: (
            body
            | (
                {"thinking": {"type": "enabled"}}
                if profile.reasoning.switch == "enable_thinking"
                else {"enable_thinking": True}
            )
        ),
    ),
    "reasoning.budget_required": where(
        lambda p: p.reasoning.budget_required, edit(lambda body: body.update(thinking={"type": "enabled"}))
    ),
    "reasoning.min_budget": where(lambda p: p.reasoning.budget, edit(lambda body: body.update(thinking_budget=0))),
    "reasoning.budget_below_limit": where(
        lambda p: p.reasoning.budget, edit(lambda body: body.update(thinking_budget=5000, max_tokens=2000))
    ),
    "reasoning.narrows_sampling": where(
        lambda p: p.reasoning.narrows_sampling and "on" in p.reasoning.modes and "temperature" in p.request.sampling,
        edit(lambda body: body.update(thinking={"type": "enabled"}, temperature=0.5)),
    ),
    "reasoning.refused_sampling": where(
        lambda p: p.reasoning.refused_sampling and p.reasoning.efforts and "temperature" in p.request.sampling,
        lambda body, profile: (
            copy.deepcopy(body) | {"reasoning_effort": profile.reasoning.efforts[-1], "temperature": 0.5}
        ),
    ),
    "reasoning.one_setting": where(
        lambda p: p.reasoning.one_setting,
        edit(lambda body: body.update(thinking={"type": "enabled"}, reasoning_effort="low")),
    ),
    "reasoning.grouped": where(
        lambda p: p.reasoning.grouped,
        chat(
            lambda m: m.__setitem__(
                slice(2, 2), [{"role": "assistant", "content": "", "reasoning_content": "Hm."}, copy.deepcopy(m[1])]
            )
        ),
    ),
    "request.max_tokens_field": where(
        lambda p: p.request.max_tokens_field == "max_tokens" and refuses_fields(p),
        edit(lambda body: body.update(max_completion_tokens=100)),
    ),
    "request.min_max_tokens": edit(lambda body: body.update(max_tokens=0)),
    "request.sampling": where(refuses_fields, edit(lambda body: body.update(top_k=5))),
    "request.fields": where(
        lambda p: p.request.fields is not None and "store" not in p.request.fields and refuses_fields(p),
        edit(lambda body: body.update(store=False)),
    ),
    "request.message_fields": where(
        lambda p: p.request.message_fields is not None and refuses_fields(p),
        chat(lambda m: m[2].update(annotations=[])),
    ),
    "request.seed_field": where(
        lambda p: p.request.seed_field == "random_seed" and refuses_fields(p), edit(lambda body: body.update(seed=1))
    ),
    "turns.document_part": where(
        lambda p: p.turns.document_part == "document_url" and "document" in p.turns.media,
        chat(
            lambda m: m[1].update(
                content=[{"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0xLjQK"}}]
            )
        ),
    ),
    "request.refused_fields": where(
        lambda p: "logprobs" in p.request.refused_fields, edit(lambda body: body.update(logprobs=True))
    ),
    "reasoning.signature_fields": where(
        lambda p: p.reasoning.signature_fields,
        chat(lambda m: m[2]["tool_calls"][0].update(extra_content={"google": {"thought_signature": "s"}})),
    ),
    "request.temperature_min": where(
        lambda p: p.request.temperature_min is not None and "temperature" in p.request.sampling,
        edit(lambda body: body.update(temperature=-0.5)),
    ),
    "request.temperature_max": where(
        lambda p: p.request.temperature_max is not None and "temperature" in p.request.sampling,
        edit(lambda body: body.update(temperature=2.5)),
    ),
    "request.temperature_or_top_p": where(
        lambda p: p.request.temperature_or_top_p and "temperature" in p.request.sampling,
        edit(lambda body: body.update(temperature=0.5, top_p=0.9)),
    ),
    "request.max_stop": where(
        lambda p: p.request.max_stop is not None and "stop" in p.request.sampling,
        edit(lambda body: body.update(stop=[f"END {n}" for n in range(17)])),
    ),
    "request.blank_stop": where(
        lambda p: not p.request.blank_stop and "stop" in p.request.sampling, edit(lambda body: body.update(stop="\n"))
    ),
    "request.output": lambda body, profile: (
        body | {"response_format": {"type": "grammar", "grammar": "a"}}
        if profile.request.output or refuses_fields(profile)
        else None
    ),
    "request.output_closed": where(
        lambda p: p.request.output_closed != "no",
        edit(
            lambda body: body.update(
                response_format={
                    "type": "json_schema",
                    "json_schema": {"name": "n", "strict": True, "schema": inside({"type": "string"})},
                }
            )
        ),
    ),
    "request.output_with_tools": where(
        lambda p: not p.request.output_with_tools,
        edit(lambda body: body.update(response_format={"type": "json_object"})),
    ),
    "request.user": where(lambda p: not p.request.user and refuses_fields(p), edit(lambda body: body.update(user="u"))),
    "request.cache_markers": where(
        lambda p: not p.request.cache_markers and refuses_fields(p),
        edit(lambda body: body["tools"][0].update(cache_control={"type": "ephemeral"})),
    ),
    "request.foreign_models": where(
        lambda p: p.request.foreign_models, edit(lambda body: body.update(model="gemini-3-pro"))
    ),
}

CHAT_UNSEEN = {
    "tools.deferred": "there is no field for it",
    "reasoning.foreign_marks": "thinking stands in plain fields",
    "calls.text_after": "calls have a field of their own, which has no position",
    "ids.item_id_prefix": "a call has one id",
    "turns.document_name": "names of documents are free here",
    "results.together": "a message holds one result",
    "results.first": "a message holds one result; what stands before it breaks adjacency",
    "results.alone": "a message holds one result",
    "results.colocated": "a message holds one result",
    "results.error_flag": "there is no such field",
    "results.error_media": "there is no error mark",
    "results.empty_error": "there is no error mark",
    "turns.system": "there is no such field: `system` is an unknown one",
    "reasoning.signed": "thinking stands in plain fields",
    "reasoning.leading": "thinking has a field of its own, which has no position",
    "reasoning.before_calls": "thinking has a field of its own, which has no position",
}
"""Keys whose demand cannot be broken in this protocol."""

# --- Anthropic --------------------------------------------------------------------------------------

CLAUDE_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}


def blocks(turn: int, change: Callable[[list[Body]], Any]) -> Plant:
    return edit(lambda body: change(body["messages"][turn]["content"]))


def claude_ids(id_: str) -> Plant:
    return edit(
        lambda body: (
            body["messages"][1]["content"][1].update(id=id_),
            body["messages"][2]["content"][0].update(tool_use_id=id_),
        )
    )


CLAUDE_PLANTS: dict[str, Plant] = {
    **EITHER,
    "ids.pattern": claude_ids("functions.x:0"),
    "ids.max_length": claude_ids("a" * 65),
    "ids.fixed_length": where(lambda p: p.ids.style == "fixed", claude_ids("abc")),
    "ids.required": blocks(1, lambda b: b[1].pop("id")),
    "ids.written": where(lambda p: not p.ids.written, edit(lambda _: None)),
    "ids.unique_in": blocks(1, lambda b: b.append(claude_call(ONE))),
    "names.pattern": edit(lambda body: body["tools"][0].update(name="get weather")),
    "names.max_length": blocks(1, lambda b: b[1].update(name="a" * 129)),
    "tools.parameters_required": edit(lambda body: body["tools"][0].pop("input_schema")),
    "tools.description_required": where(
        lambda p: p.tools.description_required, edit(lambda body: body["tools"][0].pop("description"))
    ),
    "tools.empty_description": where(
        lambda p: not p.tools.empty_description, edit(lambda body: body["tools"][0].update(description=""))
    ),
    "tools.strict": where(lambda p: p.tools.strict == "omit", edit(lambda body: body["tools"][0].update(strict=False))),
    "tools.server": edit(lambda body: body["tools"].append({"type": "no_such_tool_20260101", "name": "x"})),
    "tools.deferred": edit(lambda body: [tool.update(defer_loading=True) for tool in body["tools"]]),
    "choice.modes": edit(lambda body: body.update(tool_choice={"type": "odd"})),
    "choice.while_thinking": edit(
        lambda body: body.update(
            model="claude-sonnet-4-5",
            tool_choice={"type": "any"},
            thinking={"type": "enabled", "budget_tokens": 2000},
        )
    ),
    "choice.needs_tools": edit(lambda body: (body.pop("tools"), body.update(tool_choice={"type": "auto"}))),
    "choice.parallel_switch": where(
        lambda p: not p.choice.parallel_switch,
        edit(lambda body: body.update(tool_choice={"type": "auto", "disable_parallel_tool_use": True})),
    ),
    "choice.parallel_with_none": edit(
        lambda body: body.update(tool_choice={"type": "none", "disable_parallel_tool_use": True})
    ),
    "calls.text_after": blocks(1, lambda b: b.append(claude_text("There."))),
    "calls.arguments": blocks(1, lambda b: b[1].update(input='{"city": "Bonn"}')),
    "calls.arguments_object_only": blocks(1, lambda b: b[1].update(input=[1])),
    "calls.parallel": where(lambda p: not p.calls.parallel, AS_IT_IS),
    "calls.with_text": where(lambda p: not p.calls.with_text, AS_IT_IS),
    "calls.after": where(lambda p: p.calls.after != "any", edit(lambda body: body["messages"].pop(0))),
    "results.complete": blocks(2, lambda b: b.pop()),
    "results.paired": blocks(2, lambda b: b.append(claude_result(THREE))),
    "results.single": blocks(2, lambda b: b.append(claude_result(ONE))),
    "results.adjacent": edit(
        lambda body: (
            body["messages"].insert(2, {"role": "user", "content": "Wait"})
            or body["messages"].insert(3, {"role": "assistant", "content": "I do"})
        )
    ),
    "results.together": edit(
        lambda body: body["messages"].append({"role": "user", "content": [body["messages"][2]["content"].pop()]})
    ),
    "results.first": blocks(2, lambda b: b.insert(1, claude_text("Look"))),
    "results.alone": where(lambda p: p.results.alone, blocks(2, lambda b: b.append(claude_text("Look")))),
    "results.colocated": where(
        lambda p: "image" not in p.results.colocated, blocks(2, lambda b: b.append(CLAUDE_IMAGE))
    ),
    "results.call_order": where(lambda p: p.results.call_order, blocks(2, lambda b: b.append(b.pop(0)))),
    "results.name": blocks(2, lambda b: b[0].update(name="get_weather")),
    "results.body": where(
        lambda p: p.results.body == "text",
        blocks(2, lambda b: b[0].update(content=[{"type": "tool_reference", "tool_name": "x"}])),
    ),
    "results.media": where(
        lambda p: "image" not in p.results.media,
        blocks(2, lambda b: b[0].update(content=[CLAUDE_IMAGE])),
    ),
    "results.error_flag": where(lambda p: not p.results.error_flag, blocks(2, lambda b: b[0].update(is_error=True))),
    "results.error_media": blocks(2, lambda b: b[0].update(is_error=True, content=[CLAUDE_IMAGE])),
    "results.empty": where(lambda p: not p.results.empty, blocks(2, lambda b: b[0].update(content=""))),
    "results.empty_error": blocks(2, lambda b: b[0].update(is_error=True, content="")),
    "results.max_length": where(lambda p: p.results.max_length is not None, AS_IT_IS),
    "turns.first": edit(lambda body: body["messages"].pop(0)),
    "turns.last": edit(lambda body: body["messages"].pop()),
    "turns.prefill": where(
        lambda p: p.turns.prefill != "yes",
        edit(lambda body: body["messages"].append({"role": "assistant", "content": "It is"})),
    ),
    "turns.alternate": where(
        lambda p: p.turns.alternate, edit(lambda body: body["messages"].insert(0, {"role": "user", "content": "Hi"}))
    ),
    "turns.min_user": edit(lambda body: body.update(messages=[{"role": "assistant", "content": "Hi"}])),
    "turns.system": where(lambda p: p.turns.system == "message", AS_IT_IS),
    "turns.system_inside": edit(
        lambda body: (
            body["messages"].insert(1, {"role": "system", "content": "Hm."}) or body.update(model="claude-sonnet-4-5")
        )
    ),
    "turns.empty_text": blocks(1, lambda b: b[0].update(text="")),
    "turns.blank_text": blocks(1, lambda b: b[0].update(text=" \n")),
    "turns.empty_turn": edit(lambda body: body["messages"][0].update(content=[])),
    "turns.empty_prefill": where(
        lambda p: not p.turns.empty_prefill,
        edit(lambda body: body["messages"].append({"role": "assistant", "content": []})),
    ),
    "turns.required": edit(lambda body: body["messages"].clear()),
    "turns.trailing_space": where(
        lambda p: p.turns.prefill != "no",
        edit(lambda body: body["messages"].append({"role": "assistant", "content": "It is "})),
    ),
    "turns.assistant_media": blocks(1, lambda b: b.insert(0, CLAUDE_IMAGE)),
    "turns.media_sources": where(
        lambda p: "url" not in p.turns.media_sources,
        edit(
            lambda body: body["messages"][0].update(
                content=[{"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}]
            )
        ),
    ),
    "reasoning.modes": edit(lambda body: body.update(thinking={"type": "between_tools"})),
    "reasoning.signed": blocks(1, lambda b: b.insert(0, THOUGHT | {"signature": ""})),
    "reasoning.leading": edit(lambda body: body.update(thinking={"type": "enabled", "budget_tokens": 2000})),
    "reasoning.before_calls": blocks(1, lambda b: b.append(THOUGHT)),
    "reasoning.may_end_turn": blocks(1, lambda b: b.append(THOUGHT)),
    "reasoning.efforts": edit(lambda body: body.update(output_config={"effort": "odd"})),
    "reasoning.budget": edit(lambda body: body.update(thinking={"type": "enabled", "budget_tokens": 2000})),
    "reasoning.budget_required": where(
        lambda p: p.reasoning.budget_required, edit(lambda body: body.update(thinking={"type": "enabled"}))
    ),
    "reasoning.min_budget": edit(
        lambda body: body.update(model="claude-sonnet-4-5", thinking={"type": "enabled", "budget_tokens": 10})
    ),
    "reasoning.budget_below_limit": edit(
        lambda body: body.update(
            model="claude-sonnet-4-5", max_tokens=1500, thinking={"type": "enabled", "budget_tokens": 2000}
        )
    ),
    "reasoning.narrows_sampling": edit(
        lambda body: body.update(
            model="claude-sonnet-4-5", thinking={"type": "enabled", "budget_tokens": 2000}, temperature=0.5
        )
    ),
    "reasoning.refused_sampling": where(
        lambda p: p.reasoning.refused_sampling,
        edit(
            lambda body: body.update(
                model="claude-sonnet-4-5", thinking={"type": "enabled", "budget_tokens": 2000}, temperature=0.5
            )
        ),
    ),
    "reasoning.one_setting": where(
        lambda p: p.reasoning.one_setting,
        edit(lambda body: body.update(thinking={"type": "adaptive"}, output_config={"effort": "low"})),
    ),
    "reasoning.grouped": where(lambda p: p.reasoning.grouped, blocks(1, lambda b: b.append(THOUGHT))),
    "request.min_max_tokens": edit(lambda body: body.update(max_tokens=0)),
    "request.sampling": edit(lambda body: body.update(temperature=1)),
    "reasoning.foreign_marks": blocks(1, lambda b: b.insert(0, THOUGHT | {"signature": "gAAAAABo"})),
    "reasoning.signature_fields": blocks(
        1, lambda b: b[1].update(extra_content={"google": {"thought_signature": "s"}})
    ),
    "request.temperature_min": edit(lambda body: body.update(model="claude-sonnet-4-5", temperature=-0.5)),
    "request.temperature_max": edit(lambda body: body.update(model="claude-sonnet-4-5", temperature=1.5)),
    "request.temperature_or_top_p": edit(
        lambda body: body.update(model="claude-sonnet-4-5", temperature=0.5, top_p=0.9)
    ),
    "request.max_stop": where(
        lambda p: p.request.max_stop is not None, edit(lambda body: body.update(stop_sequences=list("abcde")))
    ),
    "request.blank_stop": edit(lambda body: body.update(stop_sequences=["END", "\n"])),
    "request.output": edit(lambda body: body.update(output_config={"format": {"type": "odd"}})),
    "request.output_closed": edit(
        lambda body: body.update(
            output_config={"format": {"type": "json_schema", "schema": inside({"type": "string"})}}
        )
    ),
    "request.output_with_tools": where(
        lambda p: not p.request.output_with_tools,
        edit(lambda body: body.update(output_config={"format": {"type": "json_schema", "schema": {}}})),
    ),
    "request.user": where(lambda p: not p.request.user, edit(lambda body: body.update(metadata={"user_id": "u"}))),
    "request.cache_markers": where(
        lambda p: not p.request.cache_markers,
        edit(lambda body: body["tools"][0].update(cache_control={"type": "ephemeral"})),
    ),
    "request.foreign_models": where(
        lambda p: p.request.foreign_models, edit(lambda body: body.update(model="gemini-3-pro"))
    ),
}

CLAUDE_UNSEEN = {
    "request.refused_fields": "all fields that there are are accepted",
    "request.fields": "all hosts have the same fields",
    "request.message_fields": "all hosts have the same fields",
    "request.seed_field": "there is no seed",
    "turns.document_part": "a document has one form",
    "ids.item_id_prefix": "a call has one id",
    "turns.document_name": "names of documents are free here",
    "tools.custom": "`type: custom` is an ordinary tool here",
    "tools.namespaces": "there is no such tool",
    "calls.empty_content": "a turn that only calls has no text block",
    "results.user_after": "results stand in the user's turn",
    "turns.system_many": "the field holds one prompt",
    "turns.developer_role": "there is no such role",
    "turns.function_role": "there are no such messages",
    "turns.name_field": "there is no such field",
    "turns.media": "there are blocks for images and documents only",
    "reasoning.carrier": "there is one form of thinking",
    "reasoning.switch": "there is one switch",
    "reasoning.placeholder_on": "nothing stands for lost thinking here",
    "request.max_tokens_field": "there is one such field",
}
