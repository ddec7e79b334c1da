"""Arguments that satisfy a schema: which are found, and that what is found agrees."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.counted_work import steps_of
from support.schema.strategies import JSON
from toolglot.arguments import validate
from toolglot.simulator.scripts.sample_arguments import sample, sample_value

FOUND: list[tuple[Any, Any]] = [
    ({"type": "string"}, "Bonn"),
    ({"type": "string", "minLength": 6}, "Bonnaa"),
    ({"type": "string", "maxLength": 2}, "Bo"),
    ({"type": "string", "format": "date"}, "2026-01-31"),
    ({"type": "string", "format": "unheard-of"}, "Bonn"),
    ({"type": "string", "pattern": "^[A-Z]{3}$"}, "AAA"),
    ({"type": "string", "pattern": "^[a-f]+$", "minLength": 4}, "aaaa"),
    ({"type": "string", "pattern": r"^\d{4}-\d{2}$"}, "2026-01"),
    ({"type": "string", "pattern": r"^user_\w+$"}, "user_a"),
    ({"type": "string", "pattern": "^(de|en)$"}, "en"),
    ({"enum": ["x", "y"]}, "x"),
    ({"enum": [None, "y"]}, "y"),
    ({"enum": [None]}, None),
    ({"const": {"a": [1]}}, {"a": [1]}),
    ({"type": "integer", "default": 4}, 4),
    ({"type": "integer", "examples": [9]}, 9),
    ({"type": "integer"}, 1),
    ({"type": "integer", "minimum": 5, "maximum": 6}, 5),
    ({"type": "integer", "exclusiveMinimum": 5}, 6),
    ({"type": "integer", "exclusiveMaximum": -5}, -6),
    ({"type": "integer", "multipleOf": 7, "minimum": 8}, 14),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
    ({"type": "number", "minimum": 0.25, "maximum": 0.5}, 0.25),
    ({"minimum": 3}, 3),
    ({"type": "boolean"}, True),
    ({"type": "null"}, None),
    ({"type": ["null", "integer"]}, 1),
    ({"type": "array", "items": {"type": "integer"}}, []),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 2, "uniqueItems": True}, [1, 2]),
    ({"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": True}, ["Bonn", "Bonn1"]),
    ({"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "minItems": 2}, [1, 2]),
    ({"items": {"type": "integer"}, "minItems": 1}, [1]),
    ({"properties": {"a": {"const": 1}}, "required": ["a"]}, {"a": 1}),
    ({"type": "object", "required": ["a"]}, {"a": "a"}),
    ({"type": "object", "required": ["a"], "additionalProperties": {"type": "integer"}}, {"a": 1}),
    ({"type": "object", "properties": {"a": {}, "b": {}}, "minProperties": 1}, {"a": "Bonn"}),
    ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1),
    ({"anyOf": [False, {"type": "integer"}]}, 1),
    ({"oneOf": [{"pattern": "(?!)", "type": "string"}, {"type": "boolean"}]}, True),
    ({"allOf": [{"type": "integer"}, {"minimum": 3}]}, 3),
    (
        {
            "allOf": [
                {"properties": {"a": {"const": 1}}, "required": ["a"]},
                {"properties": {"b": {"const": 2}}, "required": ["b"]},
            ]
        },
        {"a": 1, "b": 2},
    ),
    ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}, 1),
    (True, "a"),
    ({}, "Bonn"),
]


@pytest.mark.parametrize(("schema", "value"), FOUND)
def test_a_value_is_found_for_a_schema(schema: Any, value: Any) -> None:
    if isinstance(schema, dict):
        assert sample_value(schema) == value
    wrapped = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    if isinstance(schema, dict) and "$defs" in schema:
        wrapped["$defs"] = schema["$defs"]
    made = sample(wrapped)
    assert made == {"a": value}
    assert validate(made, wrapped) == ()


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3, "maximum": 2}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"pattern": "^(?=x)y$"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 10**9}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "array", "minItems": 10**9}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"anyOf": [False, False]}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"allOf": [7]}}, "required": ["a"]},
        {"type": "array"},
        {"type": "object", "not": {}},
        {"type": "nonsense"},
        {"type": "object", "properties": {"a": {"not": {"const": "Bonn"}, "type": "string"}}, "required": ["a"]},
    ],
)
def test_where_nothing_is_found_nothing_is_made_up(schema: Any) -> None:
    assert sample(schema) is None
    assert sample_value({"pattern": "^(?=x)y$"}) is None


def test_all_properties_are_tried_where_the_required_ones_do_not_do() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": False, "c": {"type": "array", "items": {"type": "integer"}}},
        "anyOf": [{"required": ["c"]}],
        "minProperties": 1,
    }
    assert sample({**schema, "anyOf": [{"properties": {"c": {"minItems": 1}}, "required": ["c"]}]}) is not None
    made = sample({"type": "object", "properties": {"a": {"type": "integer"}, "b": False}, "not": {"maxProperties": 0}})
    assert made == {"a": 1}


def test_a_schema_that_grows_without_end_costs_little() -> None:
    node = {"type": "object", "properties": {"l": {"$ref": "#/$defs/n"}, "r": {"$ref": "#/$defs/n"}}}
    schema = {"$defs": {"n": {**node, "required": ["l", "r"]}}, "$ref": "#/$defs/n"}
    assert sample(schema) is None
    assert steps_of(lambda: sample(schema)) < 1_000_000


@pytest.mark.law
@given(
    st.dictionaries(st.sampled_from(["type", "properties", "required", "anyOf", "items", "pattern", "minimum"]), JSON)
)
def test_law_no_schema_makes_it_raise_and_what_is_found_agrees(schema: dict[str, Any]) -> None:
    made = sample(schema)
    assert made is None or validate(made, schema) == ()


LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 2},
        {"type": "number", "maximum": -0.5},
        {"type": "boolean"},
        {"enum": ["x", 1, None]},
        {"type": "string", "format": "email"},
        {"type": ["string", "null"], "minLength": 3},
    ]
)


def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "b", "c"])
    objects = st.dictionaries(names, inner, max_size=3).map(
        lambda properties: {"type": "object", "properties": properties, "required": sorted(properties)}
    )
    arrays = st.tuples(inner, st.integers(0, 3)).map(
        lambda pair: {"type": "array", "items": pair[0], "minItems": pair[1]}
    )
    unions = st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches})
    return objects | arrays | unions


@pytest.mark.law
@given(st.recursive(LEAVES, grown, max_leaves=8))
def test_law_plain_schemas_are_always_satisfied(schema: Any) -> None:
    wrapped = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    made = sample(wrapped)
    assert made is not None
    assert validate(made, wrapped) == ()
    assert sample(wrapped) == made
