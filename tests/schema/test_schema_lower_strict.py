"""Strict mode: kept where nothing is lost, and the nulls it brings taken out again."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.schema.corpus import corpus, validator
from support.schema.judges import strict_objections
from support.schema.real_schemas import CAT, DOG, NODE, STRING, ZOO, required, tool
from support.schema.strategies import tools, values
from toolglot import profiles
from toolglot.profiles import Profile
from toolglot.schema import lower, without_introduced_nulls

Schema = dict[str, Any]

OPENAI = profiles.get("openai")
RESPONSES = profiles.get("openai_responses")
ANTHROPIC = profiles.get("anthropic")
INTEGER = {"type": "integer"}


def strict(schema: Schema | None, profile: Profile = OPENAI) -> Schema | None:
    """The strict form; None: there is none."""
    lowered = lower(schema, profile, strict=True)
    if not lowered.strict:
        assert lowered == lower(schema, profile)
        return None
    return lowered.schema


def closed(**properties: Any) -> Schema:
    return {**tool(**properties), "required": list(properties), "additionalProperties": False}


def test_every_object_is_closed_and_every_property_required() -> None:
    schema = required("path", path=STRING, limit=INTEGER, options=tool(deep={"type": "boolean"}))
    options = {**closed(deep={"type": ["boolean", "null"]}), "type": ["object", "null"]}
    assert strict(schema) == closed(path=STRING, limit={"type": ["integer", "null"]}, options=options)
    assert strict(schema, RESPONSES) == strict(schema)


def test_a_strict_schema_comes_back_as_the_same_object() -> None:
    schema = closed(a=STRING, b={"type": ["integer", "null"]}, c={"anyOf": [STRING, {"type": "null"}]})
    assert strict(schema) is schema


def test_strict_is_switched_on_only_on_request_and_where_it_is_known() -> None:
    schema = closed(a=STRING)
    assert not lower(schema, OPENAI).strict
    for target in ("deepseek", "groq", "gemini", "cohere"):
        assert not lower(schema, profiles.get(target), strict=True).strict


def test_optional_properties_become_nullable() -> None:
    schema = {
        **tool(
            a={"enum": ["x", "y"]},
            b={"const": 3},
            c={"anyOf": [STRING, INTEGER]},
            d={"$ref": "#/$defs/D"},
            e={"anyOf": [STRING, {"type": "null"}], "default": None},
            f={"type": ["string", "null"], "enum": ["x", None]},
            g={"type": "array", "items": STRING},
            h={"type": "string", "default": "x"},
        ),
        "$defs": {"D": closed(x=STRING)},
    }
    found = strict(schema)
    assert found is not None
    assert found["properties"] == {
        "a": {"type": ["string", "null"], "enum": ["x", "y", None]},
        "b": {"type": ["integer", "null"], "enum": [3, None]},
        "c": {"anyOf": [STRING, INTEGER, {"type": "null"}]},
        "d": {"anyOf": [{"$ref": "#/$defs/D"}, {"type": "null"}]},
        "e": {"anyOf": [STRING, {"type": "null"}]},
        "f": {"type": ["string", "null"], "enum": ["x", None]},
        "g": {"type": ["array", "null"], "items": STRING},
        "h": {"type": ["string", "null"], "default": "x"},
    }
    assert strict_objections(found) == []


@pytest.mark.parametrize(
    "parameter",
    [
        {"type": "object"},
        {"type": "object", "properties": {}},
        {"type": "object", "additionalProperties": STRING},
        {**tool(x=STRING), "additionalProperties": True},
        {**tool(x=STRING), "required": ["y"]},
        {},
        {"description": "Any."},
        {"type": "string", "format": "uri"},
        {"type": "string", "pattern": "^(?!a)"},
        {"type": "array", "items": {}},
        {"type": "array", "items": STRING, "uniqueItems": True},
        {"type": "string", "not": {"const": "a"}},
        {"type": "string", "anyOf": [{"maxLength": 3}]},
        {"oneOf": [{"maxLength": 3}, {"minimum": 2}]},
        {"oneOf": [True, STRING]},
        {"oneOf": [tool(x=STRING), tool(y=STRING)]},
        {"oneOf": [CAT, CAT]},
        {"oneOf": [INTEGER, {"type": "number"}]},
        {"allOf": [tool(x=STRING), tool(y=STRING)]},
        {"allOf": [STRING], "type": "string"},
        {"$ref": "#/properties/z"},
        {"$ref": "#/$defs/R", "description": "Here."},
        {"$ref": "#/$defs/S", "pattern": "^b"},
    ],
)
def test_what_strict_mode_cannot_express_is_not_strict(parameter: Schema) -> None:
    schema = {
        **required("a", "z", a=parameter, z=STRING),
        "$defs": {"R": {"$ref": "#/$defs/S"}, "S": {**STRING, "pattern": "^a"}},
    }
    assert strict(schema) is None


def test_limits_of_strict_mode() -> None:
    deep: Schema = STRING
    for _ in range(9):
        deep = tool(a=deep)
    assert strict(deep) is not None
    assert strict(tool(a=deep)) is None
    assert strict(tool(**{f"p{n}": STRING for n in range(5001)})) is None
    assert strict({"anyOf": [tool(a=STRING)]}) is None
    bare = msgspec.structs.replace(OPENAI, schema=msgspec.structs.replace(OPENAI.schema, root_union=True))
    assert strict({"type": "object", "properties": {}, "anyOf": [tool(a=STRING)]}, bare) is None


def test_unions_inside_each_other_without_end_are_not_strict() -> None:
    deep: Schema = STRING
    for _ in range(90):
        deep = {"anyOf": [deep, INTEGER]}
    assert strict(tool(a=deep)) is None


def test_a_tool_without_parameters_may_be_strict() -> None:
    assert strict({"type": "object", "properties": {}}) == closed()
    assert lower(None, OPENAI, strict=True).strict


def test_unions_with_distinct_tags_are_strict() -> None:
    for pet in ({"oneOf": [CAT, DOG]}, {"oneOf": [STRING, INTEGER]}):
        found = strict(required("pet", pet=pet))
        assert found is not None
        assert "anyOf" in found["properties"]["pet"]
        assert strict_objections(found) == []
    tagged = {"oneOf": [required("k", k={"enum": ["a", "b"]}), required("k", k={"enum": ["b"]})]}
    assert strict(required("pet", pet=tagged)) is None


def test_references_are_kept_alone() -> None:
    found = strict(ZOO["pydantic_nested"])
    assert found is not None
    assert found["properties"]["node"]["description"] == "The item."
    assert strict_objections(strict(ZOO["pydantic_v1_all_of"]) or {}) == []
    twice = {**tool(a={"$ref": "#/definitions/A"}), "definitions": {"A": STRING}, "$defs": {"A": INTEGER}}
    assert strict(twice) is None
    recursive = {**required("root", root={"$ref": "#/$defs/Node"}), "$defs": {"Node": NODE}}
    assert strict_objections(strict(recursive) or {}) == []
    assert (
        strict(
            {
                **tool(a={"allOf": [{"$ref": "#/$defs/A"}]}),
                "$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}], "title": "x"}},
            }
        )
        is None
    )


def test_anthropic_closes_objects_and_leaves_optional_ones_optional() -> None:
    schema = required("a", a=STRING, b=tool(c=STRING))
    found = {**schema, "additionalProperties": False}
    found["properties"] = {"a": STRING, "b": {**tool(c=STRING), "additionalProperties": False}}
    assert strict(schema, ANTHROPIC) == found
    assert strict(tool(a={"type": "string", "minLength": 1}), ANTHROPIC) is None


@pytest.mark.law
@given(data=st.data(), schema=tools(nonsense=False, roots=False))
@corpus(300)
def test_a_strict_schema_keeps_the_rules_and_loses_no_call(data: st.DataObject, schema: Schema) -> None:
    original = validator(schema)
    lowered = lower(schema, OPENAI, strict=True)
    assert lower(schema, OPENAI, strict=True) == lowered
    if not lowered.strict or lowered.schema is None or original is None:
        return
    assert lowered.losses == ()
    assert strict_objections(lowered.schema) == []
    assert lower(lowered.schema, OPENAI, strict=True).schema is lowered.schema
    written = data.draw(values(lowered.schema))
    if jsonschema_rs.Draft202012Validator(lowered.schema, offline=True).is_valid(written):
        before = copy.deepcopy(written)
        meant = without_introduced_nulls(written, schema)
        assert written == before
        assert original.is_valid(meant), (written, meant)


@pytest.mark.law
@given(data=st.data(), schema=tools())
def test_nulls_are_taken_from_anything_without_a_fault(data: st.DataObject, schema: Schema) -> None:
    arguments = data.draw(values(schema))
    cleaned = without_introduced_nulls(arguments, schema)
    assert without_introduced_nulls(cleaned, schema) == cleaned
    if cleaned == arguments:
        assert cleaned is arguments


# --- nulls --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "arguments", "expected"),
    [
        (required("a", a=STRING, b=STRING), {"a": "x", "b": None}, {"a": "x"}),
        (required("a", a=STRING), {"a": None}, {"a": None}),
        (tool(a={"type": ["string", "null"]}), {"a": None}, {"a": None}),
        (tool(a={"type": "string", "nullable": True}), {"a": None}, {"a": None}),
        (tool(a={"anyOf": [STRING, {"type": "null"}]}), {"a": None}, {"a": None}),
        (tool(a={"anyOf": [STRING, INTEGER]}), {"a": None}, {}),
        (tool(a={"enum": ["x", None]}), {"a": None}, {"a": None}),
        (tool(a={"enum": ["x"]}), {"a": None}, {}),
        (tool(a={"const": None}), {"a": None}, {"a": None}),
        (tool(a={}), {"a": None}, {"a": None}),
        (tool(a=True), {"a": None}, {"a": None}),
        (tool(a=STRING), {"other": None}, {"other": None}),
        (tool(a=tool(b=STRING)), {"a": {"b": None}}, {"a": {}}),
        (tool(a={"type": "array", "items": tool(b=STRING)}), {"a": [{"b": None}, None]}, {"a": [{}, None]}),
        (tool(a={"prefixItems": [tool(b=STRING)]}), {"a": [{"b": None}, {"b": None}]}, {"a": [{}, {"b": None}]}),
        (tool(a={"items": [{}], "additionalItems": tool(c=STRING)}), {"a": [1, {"c": None}]}, {"a": [1, {}]}),
        ({"type": "object", "additionalProperties": STRING}, {"a": None}, {}),
        ({**tool(a={"$ref": "#/$defs/S"}), "$defs": {"S": STRING}}, {"a": None}, {}),
        ({**tool(a={"$ref": "#/$defs/S"}), "$defs": {"S": {"allOf": [STRING]}}}, {"a": None}, {}),
        ({"allOf": [tool(a=STRING), {"required": ["b"]}]}, {"a": None, "b": None}, {"b": None}),
        (tool(p={"oneOf": [CAT, DOG]}), {"p": {"kind": "cat", "lives": None}}, {"p": {"kind": "cat"}}),
        (
            {**tool(p={"anyOf": [{"$ref": "#/$defs/C"}, 3]}), "$defs": {"C": CAT}},
            {"p": {"kind": "cat", "lives": None}},
            {"p": {"kind": "cat"}},
        ),
        (tool(n={"$ref": "#"}, s=STRING), {"n": {"n": {"s": None}}}, {"n": {"n": {}}}),
    ],
)  # fmt: skip
def test_only_nulls_that_strict_mode_brought_go(schema: Schema, arguments: Schema, expected: Schema) -> None:
    before = copy.deepcopy(arguments)
    cleaned = without_introduced_nulls(arguments, schema)
    assert cleaned == expected
    assert arguments == before
    assert (cleaned is arguments) == (expected == arguments)


def test_arguments_without_a_schema_stay() -> None:
    arguments = {"a": None}
    assert without_introduced_nulls(arguments, None) is arguments


def test_nulls_under_schemas_that_branch_without_end_stay() -> None:
    levels = {f"A{n}": {"anyOf": [{"$ref": f"#/$defs/A{n + 1}"}] * 10} for n in range(30)}
    bomb = {**tool(a={"$ref": "#/$defs/A0"}), "$defs": {**levels, "A30": STRING}}
    assert without_introduced_nulls({"a": None}, bomb) == {"a": None}


def test_nulls_in_deep_arguments_and_endless_schemas() -> None:
    loop: Schema = {**tool(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert without_introduced_nulls({"a": None}, loop) == {"a": None}
    deep: Any = None
    for _ in range(300):
        deep = {"n": deep}
    assert without_introduced_nulls(deep, tool(n={"$ref": "#"})) is deep
