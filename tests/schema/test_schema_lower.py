"""Lowering, case by case: what each demand of a target does to a schema, and what is reported."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest

from support.counted_work import no_hang
from support.schema.corpus import TARGETS
from support.schema.judges import meaning, nodes, objections
from support.schema.real_schemas import STRING, ZOO, bomb, nested, required, tool
from toolglot import InputError, LimitError, profiles
from toolglot.profiles import Profile
from toolglot.schema import Lowered, lower

Schema = dict[str, Any]

GEMINI = profiles.get("gemini")
VERTEX = profiles.get("vertex")
ANTHROPIC = profiles.get("anthropic")
OPENAI = profiles.get("openai")
OLLAMA = profiles.get("ollama")
MISTRAL = profiles.get("mistral")
KIMI = profiles.get("kimi")
COHERE = profiles.get("cohere")


def rules(**changes: Any) -> Profile:
    return msgspec.structs.replace(OPENAI, schema=msgspec.structs.replace(OPENAI.schema, **changes))


def parameter(schema: Any, profile: Profile, **beside: Any) -> Any:
    """What becomes of one parameter."""
    lowered = lower({"type": "object", "properties": {"a": schema, "z": STRING}, **beside}, profile).schema
    assert lowered is not None
    return lowered["properties"]["a"]


def losses_of(lowered: Lowered) -> list[tuple[str, str, bool]]:
    return [(loss.path, loss.keyword, loss.described) for loss in lowered.losses]


# --- the zoo ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ZOO)
def test_every_schema_of_the_zoo_is_accepted_and_stays(name: str, target: str) -> None:
    schema, profile = ZOO[name], TARGETS[target]
    before = copy.deepcopy(schema)
    lowered = lower(schema, profile)
    assert repr(schema) == repr(before)
    assert objections(lowered.schema, profile) == []
    again = lower(lowered.schema, profile)
    assert again.schema is lowered.schema
    assert again.losses == ()
    assert sum(1 for _ in nodes(lowered.schema)) <= 6_000
    assert all(len(node.get("description", "")) <= 700 for node, _ in nodes(lowered.schema))


def test_the_zoo_is_large() -> None:
    assert len(ZOO) >= 40


@pytest.mark.parametrize(
    "name", ["edit", "todo_write", "bash", "fetch", "apply_patch", "browser_action", "tree", "mutual"]
)
@pytest.mark.parametrize("profile", [OPENAI, ANTHROPIC, MISTRAL], ids=lambda profile: profile.name)
def test_what_is_accepted_comes_back_as_the_same_object(name: str, profile: Profile) -> None:
    assert lower(ZOO[name], profile) == Lowered(ZOO[name])
    assert lower(ZOO[name], profile).schema is ZOO[name]


def test_parts_that_fit_are_not_rebuilt() -> None:
    schema = tool(fine=tool(x=STRING), bad={"const": 1})
    lowered = lower(schema, GEMINI).schema
    assert lowered is not None
    assert lowered["properties"]["fine"] is schema["properties"]["fine"]


# --- no schema, empty ones, roots ---------------------------------------------------------------------


def test_a_tool_without_parameters() -> None:
    empty = {"type": "object", "properties": {}}
    assert lower(None, profiles.get("minimax")).schema == empty
    assert lower(None, OPENAI).schema is None
    assert lower(None, GEMINI).schema is None
    assert lower(empty, GEMINI) == Lowered(None)
    assert lower({}, ANTHROPIC) == Lowered({"type": "object"})
    assert lower({}, GEMINI).schema is None
    assert lower({"type": "object"}, OPENAI).schema == empty


def test_a_root_union_becomes_one_object() -> None:
    lowered = lower(ZOO["root_one_of"], ANTHROPIC)
    assert lowered.schema == {
        "type": "object",
        "properties": {"a": {"anyOf": [STRING, {}]}, "b": {"anyOf": [{"type": "integer"}, {}]}},
        "description": "(needs a | b)",
    }
    assert losses_of(lowered) == [("$.oneOf", "oneOf", True)]


def test_a_closed_root_union_keeps_its_types_and_stays_closed() -> None:
    lowered = lower(ZOO["root_closed_union"], OPENAI).schema
    assert lowered == {
        "type": "object",
        "properties": {
            "kind": {"anyOf": [{"const": "cat"}, {"const": "dog"}]},
            "lives": {"type": "integer"},
            "tricks": {"type": "array", "items": STRING},
        },
        "required": ["kind"],
        "additionalProperties": False,
    }


def test_branches_that_only_add_required_names_go_into_the_description() -> None:
    lowered = lower(ZOO["update_event"], ANTHROPIC)
    expected = {key: value for key, value in ZOO["update_event"].items() if key != "anyOf"}
    assert lowered.schema == {**expected, "description": "(needs start, end | all_day)"}


def test_closedness_does_not_survive_where_a_branch_is_open() -> None:
    schema = {"anyOf": [{**tool(a=STRING), "additionalProperties": False}, tool(b=STRING)]}
    lowered = lower(schema, OPENAI).schema
    assert lowered is not None
    assert "additionalProperties" not in lowered
    mapped = {
        "anyOf": [{**tool(a=STRING), "additionalProperties": STRING}, {**tool(b=STRING), "additionalProperties": False}]
    }
    lowered = lower(mapped, OPENAI).schema
    assert lowered is not None
    assert lowered["additionalProperties"] == STRING
    assert lowered["properties"] == {"a": STRING, "b": STRING}


def test_large_root_unions_are_merged_in_bounded_time() -> None:
    branches = [required(f"p{n}", **{f"p{n}": {"const": n}, "kind": {"const": n}}) for n in range(1_500)]
    closed = [{**branch, "additionalProperties": False} for branch in branches]
    with no_hang():
        lowered = lower({"anyOf": closed}, OPENAI).schema
    assert lowered is not None
    assert lowered["additionalProperties"] is False
    assert len(lowered["properties"]["kind"]["anyOf"]) == 1_500
    assert lowered["properties"]["p7"] == {"const": 7}
    opened = lower({"anyOf": branches}, OPENAI).schema
    assert opened is not None
    assert opened["properties"]["p7"] == {"anyOf": [{"const": 7}, {}]}


def test_a_property_that_no_branch_allows() -> None:
    schema = {"anyOf": [tool(a=False, b=STRING), {**tool(a=False), "patternProperties": {"^b": STRING}}]}
    lowered = lower(schema, OPENAI).schema
    assert lowered is not None
    assert lowered["properties"] == {"b": {"anyOf": [STRING, {}]}}


def test_unions_inside_root_unions_and_branches_that_are_no_objects() -> None:
    inner = {"anyOf": [required("x", "y", x=STRING), required("x", x=STRING)]}
    schema = {
        "oneOf": [inner, {"type": "string"}, False, {"$ref": "#/$defs/T"}],
        "$defs": {"T": required("x", x=STRING)},
    }
    lowered = lower(schema, OPENAI).schema
    assert lowered is not None
    assert lowered["required"] == ["x"]
    assert lower({"anyOf": [STRING]}, OPENAI).schema == {"type": "object", "properties": {}}


def test_a_root_that_is_no_object_and_other_words_at_the_root() -> None:
    lowered = lower({"type": "string", "enum": ["a"], "not": {"const": 1}, "const": "a"}, OPENAI)
    assert lowered.schema is not None
    assert lowered.schema["type"] == "object"
    assert {loss.keyword for loss in lowered.losses} == {"type", "enum", "const", "not"}
    assert lower({"type": ["object", "null"], "properties": {}}, COHERE).schema == {"type": "object", "properties": {}}


def test_a_root_may_be_a_union_where_the_target_accepts_one() -> None:
    schema = {"type": "object", "properties": {}, "anyOf": [{"required": ["a"]}]}
    assert lower(schema, rules(root_union=True)).schema is schema


# --- references -------------------------------------------------------------------------------------


def test_references_are_written_out_and_recursion_is_cut() -> None:
    lowered = lower(ZOO["tree"], profiles.get("qwen"))
    cut = {"type": "object", "properties": {}, "description": "(recursive: Node)"}
    children = {"type": "array", "items": cut}
    assert lowered.schema == tool(root=required("name", name=STRING, children=children))
    assert losses_of(lowered) == [("$['$defs'].Node.properties.children.items['$ref']", "$ref", True)]


def test_a_reference_to_the_root_is_cut_one_level_down() -> None:
    lowered = lower(ZOO["reference_to_root"], COHERE).schema
    assert lowered is not None
    assert lowered["properties"]["sub"]["properties"]["sub"]["description"] == "(recursive: the whole)"


def test_a_root_without_a_type_that_is_referred_to_is_reported() -> None:
    lowered = lower({"properties": {"a": {"$ref": "#"}}}, OPENAI)
    assert lowered.schema == tool(a={"$ref": "#"})
    assert [loss.keyword for loss in lowered.losses] == ["type"]
    assert lower({"properties": {"a": STRING}}, OPENAI).losses == ()


def test_members_of_an_all_of_may_use_each_others_definitions() -> None:
    schema = {
        **tool(a={"allOf": [{"$ref": "#/$defs/Base"}, tool(parent={"$ref": "#/$defs/Base"})]}),
        "$defs": {"Base": tool(id=STRING)},
    }
    assert parameter_of(schema, COHERE) == tool(id=STRING, parent=tool(id=STRING))


def parameter_of(schema: Schema, profile: Profile) -> Any:
    lowered = lower(schema, profile).schema
    assert lowered is not None
    return lowered["properties"]["a"]


def test_a_dangling_reference_accepts_anything_and_is_reported() -> None:
    lowered = lower(ZOO["reference_to_nothing"], OPENAI)
    assert lowered.schema == tool(a={}, b={})
    assert [loss.reason for loss in lowered.losses] == ["it names nothing in this schema"] * 2


def test_references_by_pointer_are_inlined_where_pointers_change() -> None:
    schema = {**ZOO["zod_pointer_reference"], "anyOf": [{"required": ["a"]}]}
    assert lower(ZOO["zod_pointer_reference"], OPENAI).schema is ZOO["zod_pointer_reference"]
    lowered = lower(schema, OPENAI).schema
    assert lowered is not None
    assert lowered["properties"]["b"] == tool(x=STRING)


def test_old_drafts_ignore_keywords_beside_a_reference() -> None:
    schema = {
        **tool(a={"$ref": "#/definitions/S", "maxLength": 1, "description": "Here."}, b={"$ref": "#/definitions/S"}),
        "definitions": {"S": STRING},
        "$schema": "http://json-schema.org/draft-07/schema#",
    }
    assert parameter_of(schema, COHERE) == {"type": "string", "description": "Here."}
    assert parameter_of({**schema, "anyOf": [{}]}, OPENAI) == {"type": "string", "description": "Here."}
    del schema["$schema"]
    assert parameter_of(schema, COHERE) == {"type": "string", "maxLength": 1, "description": "Here."}


@pytest.mark.parametrize("schema", [bomb(10, 20), ZOO["all_of_bomb"], bomb(2, 40)], ids=["wide", "allOf", "deep"])
@pytest.mark.parametrize("target", ["gemini", "cohere", "qwen", "ollama"])
def test_reference_bombs_are_cut_in_bounded_time(schema: Schema, target: str) -> None:
    with no_hang():
        lowered = lower(schema, TARGETS[target])
    assert sum(1 for _ in nodes(lowered.schema)) < 20_000
    assert lowered.losses


def test_what_is_too_deep_is_cut_and_what_is_far_too_large_is_refused() -> None:
    lowered = lower(nested("items", 80, {"const": 1}), GEMINI)
    assert any("too large" in loss.reason for loss in lowered.losses)
    for schema in (nested("items", 250, {"const": 1}), tool(a={"enum": list(range(60_000)), "const": 1, "type": 3})):
        with pytest.raises(LimitError, match="the schema is too large"):
            lower(schema, GEMINI)
    limited = rules(max_depth=2)
    assert lower(tool(a=STRING), limited).losses == ()
    assert parameter(tool(b=tool(c=STRING)), limited)["properties"]["b"]["properties"]["c"]["description"]


# --- unions, types, values ----------------------------------------------------------------------------


def test_null_is_written_as_the_target_has_it() -> None:
    optional = ZOO["pydantic_optional"]["properties"]["base_branch"]
    assert parameter(optional, GEMINI) == {
        "type": "string",
        "nullable": True,
        "title": "Base Branch",
        "description": "From.",
    }
    assert parameter({"type": ["string", "null"]}, GEMINI) == {"type": "string", "nullable": True}
    assert parameter({"type": ["string", "null"]}, COHERE) == {"anyOf": [STRING, {"type": "null"}]}
    nullable = {"type": "string", "nullable": True, "enum": ["a"]}
    assert parameter(nullable, GEMINI) is nullable
    assert parameter(nullable, OPENAI) == {"type": ["string", "null"], "enum": ["a", None]}
    assert parameter({"type": "string", "nullable": True, "const": "a"}, OPENAI)["enum"] == ["a", None]
    assert parameter({"nullable": True}, OPENAI) == {}
    always = {"type": "string", "nullable": True, "description": "(always null)"}
    assert parameter({"anyOf": [{"type": "null"}, {"const": None}]}, GEMINI) == always
    assert parameter({"type": "null"}, GEMINI) == always
    assert parameter({"type": "array", "items": {"type": "null"}}, GEMINI)["items"] == always
    assert parameter({"enum": ["a", None]}, GEMINI) == {"type": "string", "enum": ["a"], "nullable": True}
    late = {"type": "null", "anyOf": [{"type": "null", "title": "x"}, {"type": ["null"]}]}
    assert parameter(late, GEMINI) == always


def test_lists_of_types_become_unions_where_they_are_refused() -> None:
    schema = {"type": ["integer", "string", "null"], "minimum": 1, "maxLength": 3, "enum": [1, "a"]}
    assert parameter({"type": ["integer", "string"], "minimum": 1, "maxLength": 3}, COHERE) == {
        "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "maxLength": 3}]
    }
    assert parameter(schema, COHERE)["anyOf"][:2] == [
        {"type": "integer", "minimum": 1, "enum": [1]},
        {"type": "string", "maxLength": 3, "enum": ["a"]},
    ]
    assert parameter({"type": ["number", "integer"]}, COHERE) == {"type": "number"}
    assert parameter({"type": ["boolean", "array"], "enum": ["x"]}, COHERE)["anyOf"][0] == {"type": "boolean"}


def test_a_type_beside_a_union_moves_into_its_branches() -> None:
    schema = {"type": "string", "anyOf": [{"maxLength": 2}, {"pattern": "^a"}, False], "description": "D."}
    moved = [{"type": "string", "maxLength": 2}, {"type": "string", "pattern": "^a"}]
    assert parameter(schema, KIMI) == {"anyOf": moved, "description": "D."}
    first = {"type": "string", "maxLength": 2, "description": "D."}
    assert parameter(schema, VERTEX) == {"anyOf": [first, moved[1]]}
    assert parameter(
        {"anyOf": [{"anyOf": [STRING, {"type": "integer"}]}, {"type": "boolean"}], "nullable": True}, VERTEX
    )


def test_one_of_becomes_any_of_where_it_is_refused_or_would_no_longer_exclude() -> None:
    pets = {"oneOf": [tool(x=STRING), tool(y=STRING)]}
    assert parameter(pets, OPENAI, enum=[{}]) == pets
    assert parameter(pets, COHERE) == {"anyOf": pets["oneOf"]}
    changed = {"oneOf": [{"type": "array", "prefixItems": [STRING]}, STRING]}
    assert "oneOf" not in parameter(changed, OPENAI)
    both = {"oneOf": [STRING, {"type": "integer"}], "anyOf": [{"maxLength": 3}, {"minimum": 2}]}
    assert len(parameter(both, COHERE)["anyOf"]) == 4
    many = {"oneOf": [{"const": n} for n in range(9)], "anyOf": [{"minimum": n} for n in range(9)]}
    assert parameter(many, COHERE)["anyOf"] == many["anyOf"]


def test_all_of_is_merged() -> None:
    schema = {
        "allOf": [
            {"type": ["integer", "string"], "minimum": 1, "maximum": 9, "multipleOf": 2, "enum": [2, 4, 6]},
            {"type": "number", "minimum": 2, "maximum": 8, "multipleOf": 3, "enum": [4.0, 6, True]},
        ]
    }
    assert parameter(schema, COHERE) == {"type": "integer", "minimum": 2, "maximum": 8, "multipleOf": 6, "enum": [4, 6]}
    objects = {
        "allOf": [
            required("x", x=STRING),
            {**required("y", y=STRING, x={"maxLength": 3}), "additionalProperties": False},
        ]
    }
    assert parameter(objects, COHERE) == {
        "type": "object",
        "properties": {"x": {"type": "string", "maxLength": 3}, "y": STRING},
        "required": ["x", "y"],
        "additionalProperties": False,
    }
    arrays = {
        "allOf": [
            {"type": "array", "items": STRING, "uniqueItems": True},
            {"items": {"maxLength": 1}, "uniqueItems": False},
        ]
    }
    assert parameter(arrays, COHERE) == {
        "type": "array",
        "items": {"type": "string", "maxLength": 1},
        "uniqueItems": True,
    }
    assert parameter({"allOf": [{"dependentRequired": {"a": ["b"]}}, {"dependentRequired": {"a": ["c"]}}]}, COHERE) == {
        "dependentRequired": {"a": ["b", "c"]}
    }


def test_what_cannot_be_merged_keeps_its_first_half_and_is_reported() -> None:
    schema = {
        "allOf": [
            {"type": "string", "pattern": "^a", "const": "ab", "multipleOf": 0.5, "contains": STRING},
            {
                "type": "integer",
                "pattern": "b$",
                "const": "ba",
                "multipleOf": 0.3,
                "contains": {},
                "unevaluatedItems": False,
            },
        ]
    }
    lowered = lower(tool(a=schema), COHERE)
    assert lowered.schema == tool(
        a={"type": "string", "pattern": "^a", "enum": ["ab"], "multipleOf": 0.5, "contains": STRING}
    )
    assert {loss.keyword for loss in lowered.losses} == {
        *("type", "pattern", "enum", "multipleOf", "contains", "unevaluatedItems")
    }


def test_listed_values_are_compared_as_json_has_them() -> None:
    schema = {"allOf": [{"enum": [[1, {"a": 1}], {"b": [True]}, 1]}, {"enum": [True, {"b": [1]}, [1.0, {"a": 1}]]}]}
    assert parameter(schema, COHERE) == {"enum": [[1, {"a": 1}]]}


def test_values_where_only_strings_can_be_listed() -> None:
    assert parameter({"enum": ["a", "b"]}, GEMINI) == {"type": "string", "enum": ["a", "b"]}
    assert parameter({"type": "integer", "enum": [0, 1]}, GEMINI) == {
        "type": "integer",
        "description": "(one of: 0, 1)",
    }
    assert parameter({"const": "on"}, GEMINI) == {"type": "string", "enum": ["on"]}
    assert parameter({"const": 2.5}, GEMINI) == {"type": "number", "description": "(one of: 2.5)"}
    mixed = parameter({"enum": ["auto", 1, None, True, [1]]}, GEMINI)
    assert [branch["type"] for branch in mixed["anyOf"]] == ["string", "integer", "boolean", "array"]
    many = parameter({"enum": list(range(3000))}, GEMINI)
    assert many["description"].endswith("… 3000 in all)")
    assert parameter({"type": "integer", "enum": ["a"]}, GEMINI) == {"type": "integer", "description": "(one of: a)"}


# --- what moves into the description ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "description"),
    [
        ({"type": "string", "format": "uri"}, "(format: uri)"),
        ({"type": "string", "format": "uri", "description": "Where."}, "Where. (format: uri)"),
        ({"type": "string", "format": "uri", "description": "Say (format: uri) it."}, "Say (format: uri) it."),
        ({"type": "number", "minimum": 1, "maximum": 10}, "(between 1 and 10)"),
        ({"type": "number", "minimum": 1}, "(at least 1)"),
        ({"type": "number", "exclusiveMinimum": 1.5, "multipleOf": 0.5}, "(greater than 1.5) (a multiple of 0.5)"),
        ({"type": "string", "minLength": 1, "maxLength": 5}, "(between 1 and 5 characters)"),
        ({"type": "string", "pattern": "^a"}, "(matches pattern ^a)"),
        ({"type": "array", "items": STRING, "uniqueItems": True, "maxItems": 3}, "(no item twice) (at most 3 items)"),
        ({"type": "string", "default": "x", "examples": ["y", "z"]}, "(default: x) (for example: y, z)"),
        ({"type": "string", "not": {"const": "root"}}, '(not: {"const":"root"})'),
        ({**tool(x=STRING), "additionalProperties": STRING}, "(other keys: string)"),
        ({**tool(x=STRING), "patternProperties": {"^y": {"$ref": "#"}}}, "(keys matching ^y: any value)"),
        ({**tool(x=STRING), "dependentRequired": {"x": ["y"]}}, "(x needs y)"),
    ],
)  # fmt: skip
def test_keywords_that_a_target_refuses_go_into_the_description(schema: Schema, description: str) -> None:
    found = parameter(schema, OLLAMA)["description"]
    assert (
        found.replace("the whole", "any value").replace("keys matching ^y: #", "keys matching ^y: any value")
        == description
    )


def test_R_002_16_an_unsupported_format_is_dropped_and_reported() -> None:
    lowered = lower(ZOO["fetch"], GEMINI)
    assert lowered.schema is not None
    assert lowered.schema["properties"]["url"] == {"type": "string", "description": "(format: uri)"}
    assert ("$.properties.url.format", "format", True) in losses_of(lowered)
    assert parameter({"type": "string", "format": "date-time"}, GEMINI)["format"] == "date-time"
    assert parameter({"type": "string", "format": "int64"}, GEMINI) == {
        "type": "string",
        "description": "(format: int64)",
    }
    assert parameter({"type": "integer", "format": "int64"}, GEMINI)["format"] == "int64"
    assert parameter({"type": "string", "format": "uri"}, ANTHROPIC)["format"] == "uri"


def test_descriptions_are_bounded() -> None:
    assert parameter({"type": "string", "default": "y" * 500, "example": "z" * 500}, OLLAMA) == STRING
    keywords = {f"x-{n}": "y" * 90 for n in range(20)}
    lowered = lower(tool(a={"type": "string", "x-long": "z" * 300, **keywords}), OLLAMA)
    assert len(parameter_of(tool(a={"type": "string", **keywords}), OLLAMA)["description"]) < 700
    assert {loss.described for loss in lowered.losses} == {True, False}


def test_exclusive_bounds() -> None:
    assert parameter({"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 8.5}, GEMINI) == {
        "type": "integer",
        "minimum": 4,
        "maximum": 8,
    }
    assert parameter({"type": "number", "exclusiveMinimum": 0, "minimum": 2}, GEMINI) == {
        "type": "number",
        "minimum": 2,
        "description": "(greater than 0)",
    }
    assert parameter(ZOO["draft_4"]["properties"]["n"], ANTHROPIC) == {
        "type": "integer",
        "exclusiveMinimum": 3,
        "maximum": 9,
    }


# --- arrays and objects -------------------------------------------------------------------------------


def test_tuples_are_written_as_the_target_has_them() -> None:
    old = {"type": "array", "items": [STRING, {"type": "number"}], "additionalItems": False}
    new = {"type": "array", "prefixItems": [STRING, {"type": "number"}], "items": {"type": "boolean"}}
    assert parameter(old, ANTHROPIC) == {"type": "array", "prefixItems": old["items"], "maxItems": 2}
    assert parameter(new, ANTHROPIC) is new
    assert parameter({**old, "additionalItems": STRING}, ANTHROPIC)["items"] == STRING
    assert parameter(new, MISTRAL) == {
        "type": "array",
        "items": new["prefixItems"],
        "additionalItems": {"type": "boolean"},
    }
    assert parameter(old, OPENAI) == {
        "type": "array",
        "items": {"anyOf": old["items"]},
        "maxItems": 2,
        "description": "(in this order: string, number)",
    }
    assert parameter({"type": "array", "prefixItems": [STRING], "items": False}, OPENAI)["items"] == STRING
    assert parameter({"type": "array", "prefixItems": [STRING]}, OPENAI)["items"] == {}
    assert parameter({"type": "array", "items": STRING, "additionalItems": False, "enum": 3}, OPENAI) == {
        "type": "array",
        "items": STRING,
    }


def test_names_that_are_not_accepted_are_dropped_and_reported_and_the_object_is_opened() -> None:
    lowered = lower(ZOO["odd_names"], ANTHROPIC)
    assert lowered.schema is not None
    assert lowered.schema["properties"] == {"ok": STRING}
    assert lowered.schema["required"] == []
    assert "additionalProperties" not in lowered.schema
    assert "(also takes $filter: string)" in lowered.schema["description"]
    assert [loss.keyword for loss in lowered.losses] == [*["properties"] * 4, "additionalProperties"]
    ordered = {**tool(**{"a-b": STRING, "c": STRING}), "propertyOrdering": ["a-b", "c"], "required": ["a-b", "x y"]}
    assert lower(ordered, GEMINI).schema == {
        **tool(c=STRING),
        "propertyOrdering": ["c"],
        "description": "(also takes a-b: string)",
    }


def test_keys_by_pattern_open_an_object_where_patterns_are_refused() -> None:
    found = parameter(ZOO["headers"]["properties"]["headers"], COHERE)
    assert found == {"type": "object", "properties": {}, "description": "(keys matching ^x-: string)"}


def test_what_must_not_be_missing_is_added() -> None:
    assert parameter({"type": "array"}, OPENAI) == {"type": "array", "items": {}}
    assert parameter({"type": "object"}, OPENAI) == {"type": "object", "properties": {}}
    assert list(parameter({"type": "object"}, GEMINI)["properties"]) == ["any_key"]
    assert parameter({"properties": {"x": STRING}}, GEMINI) == tool(x=STRING)
    assert parameter({"maxLength": 3}, GEMINI) == {"type": "string", "maxLength": 3}
    assert meaning(parameter({"description": "Any."}, GEMINI)) == {}
    assert parameter(required("y", x=STRING), GEMINI)["properties"]["y"]["anyOf"]
    no_null = rules(type_required=True)
    assert {"type": "null"} in parameter({}, no_null)["anyOf"]


def test_schemas_that_are_true_or_false() -> None:
    lowered = lower(ZOO["booleans"], OPENAI)
    assert lowered.schema == tool(a={}, c={"type": "array", "items": {}})
    assert [loss.keyword for loss in lowered.losses] == ["properties"]
    assert parameter(required("x", x=False), OPENAI)["properties"]["x"] == {"description": "(leave this out)"}
    assert parameter({"allOf": [STRING, False]}, COHERE) == {"type": "string", "description": "(leave this out)"}
    assert parameter({"contains": True, "not": True, "x": 1, "items": [STRING]}, OPENAI)["not"] == {}


def test_what_may_not_widen_stays_as_it_is_or_goes() -> None:
    fine = {"type": "string", "not": {"const": "a"}, "nullable": True}
    assert parameter(fine, OPENAI) == {"type": ["string", "null"], "not": {"const": "a"}}
    moved = {
        "not": {"type": "array", "prefixItems": [STRING]},
        "if": {"items": [STRING]},
        "then": STRING,
        "else": STRING,
    }
    assert parameter(moved, OPENAI).keys() == {"description"}
    assert "not" in parameter({"not": {"$ref": "#/$defs/S"}, "items": [{}]}, OPENAI, **{"$defs": {"S": STRING}})
    loose = {"$defs": {"S": {"type": "array"}}}
    assert "not" not in parameter({"not": {"$ref": "#/$defs/S"}}, OPENAI, **loose)
    counted = {"type": "array", "items": {}, "contains": {"type": "array"}, "maxContains": 1}
    assert "maxContains" not in parameter(counted, OPENAI)
    assert "unevaluatedProperties" not in parameter({"type": "object", "unevaluatedProperties": False}, OPENAI)
    assert "$dynamicRef" not in parameter({"$dynamicRef": "#x"}, OPENAI)


def test_old_dependencies_are_kept_where_they_are_accepted() -> None:
    schema = {"type": "object", "dependencies": {"a": ["b"], "c": {"type": "array"}, "d": 3}}
    assert parameter(schema, OPENAI)["dependencies"] == {"a": ["b"], "c": {"type": "array", "items": {}}}
    assert parameter({"type": "object", "properties": {}, "dependencies": {"a": ["b"], "c": STRING}}, OPENAI)[
        "dependencies"
    ]
    assert "dependencies" not in parameter({"type": "object", "dependencies": 3}, OPENAI)


def test_unions_where_they_are_not_understood() -> None:
    narrow = rules(keywords=("type", "properties", "items", "description"))
    assert parameter({"anyOf": [STRING, {"type": "integer"}]}, narrow) == {"description": "(one of: string | integer)"}


# --- nonsense -----------------------------------------------------------------------------------------


def test_nonsense_is_fixed_and_reported() -> None:
    lowered = lower(ZOO["nonsense"], ANTHROPIC)
    assert lowered.schema == {
        "type": "object",
        "properties": {
            "a": STRING,
            "b": {"type": "array", "minItems": 1},
            "c": {},
            "d": {},
            "e": {"type": "object", "required": ["x"]},
            "f": {"default": "[not serialisable: NaN or infinity]"},
        },
    }
    assert {"required", "minLength", "enum", "type", "description", "anyOf", "properties", "$ref", ""} == {
        loss.keyword for loss in lowered.losses
    }
    assert parameter({"type": "object", "dependentRequired": {"a": 3}, "minProperties": -1.0}, OPENAI) == {
        "type": "object",
        "properties": {},
    }
    assert parameter({"required": 3, "dependentRequired": 3, "maxItems": True}, OPENAI) == {}
    assert parameter({"type": ["STRING", "int"]}, OPENAI) == {"type": ["string", "integer"]}


def test_what_is_no_schema_at_all_is_refused() -> None:
    wrongs: list[Any] = [True, [], "object", 3]
    for wrong in wrongs:
        with pytest.raises(InputError, match="expected a JSON Schema object"):
            lower(wrong, OPENAI)
    not_a_profile: Any = "openai"
    with pytest.raises(InputError, match="expected a Profile"):
        lower({}, not_a_profile)


def test_a_schema_that_holds_itself_is_cut() -> None:
    schema = tool(a={"type": "array"})
    schema["properties"]["a"]["items"] = schema
    lowered = lower(schema, OPENAI)
    assert objections(lowered.schema, OPENAI) == []
    assert lowered.losses


def test_gemini_accepts_its_own_spelling() -> None:
    assert lower(ZOO["gemini_spelling"], GEMINI).schema is ZOO["gemini_spelling"]
    assert lower(ZOO["gemini_spelling"], OPENAI).schema == required("q", q=STRING)
