"""The required filter of seed 002: R-002-3, -4, -5, T1, T2."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.translate import weather_requests
from toolglot import arguments
from toolglot.schema import Filtered, Removed, filter_required

Schema = dict[str, Any]


def tool(description: str = "", **keywords: Any) -> Schema:
    """A tool with one required parameter."""
    parameter = {"description": description, **keywords} if description else keywords
    return {"type": "object", "properties": {"a": parameter}, "required": ["a"]}


def required(parameter_schema: Schema, *, aggressive: bool = False) -> bool:
    return "required" in filter_required(parameter_schema, aggressive=aggressive).schema


WEATHER: Schema = weather_requests.WEATHER["input_schema"]
READ: Schema = {
    "properties": {
        "file_path": {"type": "string", "description": "The file to read"},
        "offset": {"type": "number", "description": "Line offset. Only provide if file is too large."},
        "limit": {"type": "number", "description": "Number of lines. Defaults to 100."},
    },
    "required": ["file_path", "offset", "limit"],
}


# --- the seed ---------------------------------------------------------------------------------------


def test_R_002_4_the_weather_example() -> None:
    filtered = filter_required(WEATHER)
    assert filtered.schema == {**WEATHER, "required": ["location"]}
    assert filtered.removed == (Removed("$", "units", 'its description says "optional"'),)


@pytest.mark.parametrize("aggressive", [False, True])
def test_R_002_5_R_002_T1_file_path_offset_limit(aggressive: bool) -> None:
    filtered = filter_required(READ, aggressive=aggressive)
    assert filtered.schema == {**READ, "required": ["file_path"]}
    assert [(each.name, each.reason) for each in filtered.removed] == [
        ("offset", 'its description says "only provide if"'),
        ("limit", 'its description says "defaults to"'),
    ]


@pytest.mark.parametrize(
    "description",
    [
        *(
            "optional",
            "An OPTIONAL name",
            "The name (optional)",
            "Optionally, a name",
            "Defaults to 100",
            "defaults\n to x",
        ),
        *("The root is used if not specified.", "IF NOT SPECIFIED: all", "Only provide if the file is large"),
        *("Whether to wait or not (optional)", "Not empty. Optional.", "Say why not - optional", "cannot (optional)"),
        *("Not optional for admins, optional for all others", "A cannon optional"),
    ],
)
def test_R_002_3_a_description_that_says_optional_makes_a_parameter_optional(description: str) -> None:
    assert not required(tool(description, type="string"))


@pytest.mark.parametrize("description", ["The file to read", "", "An option", "No default", "Default: 3", "specified"])
def test_R_002_3_other_descriptions_do_not(description: str) -> None:
    assert required(tool(description, type="string"))


@pytest.mark.parametrize(
    ("keywords", "reason"),
    [
        ({"default": 1}, "has a default"),
        ({"default": None}, "has a default"),
        ({"default": False, "description": "not optional"}, "has a default"),
        ({"type": "string", "nullable": True}, "may be null"),
    ],
)
def test_R_002_3_a_default_or_nullable_makes_it_optional(keywords: Schema, reason: str) -> None:
    assert filter_required(tool(**keywords)).removed == (Removed("$", "a", reason),)


@pytest.mark.parametrize(
    "keywords",
    [
        {"enum": ["a", None]},
        {"type": ["string", "null"], "enum": ["a", None]},
        {"$ref": "#/$defs/maybe"},
        {"$ref": "#/$defs/chain"},
        {"$ref": "#/$defs/listed"},
        {"$ref": "#/$defs/union"},
        {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/maybe"}]},
        {"allOf": [{"$ref": "#/$defs/maybe"}]},
        {"$ref": "#/properties/b"},
    ],
)
def test_R_002_3_a_parameter_that_may_be_null_by_reference_or_enum_is_optional(keywords: Schema) -> None:
    schema = {
        "properties": {"a": keywords, "b": {"type": "null"}},
        "required": ["a"],
        "$defs": {
            "maybe": {"type": ["string", "null"]},
            "chain": {"$ref": "#/$defs/maybe"},
            "listed": {"enum": [1, None]},
            "union": {"oneOf": [{"type": "string"}, {"$ref": "#/$defs/listed"}]},
        },
    }
    assert filter_required(schema).removed == (Removed("$", "a", "may be null"),)


@pytest.mark.parametrize(
    "reference",
    ["#/$defs/text", "#/$defs/round", "#/$defs/none", "#/$defs/both", "https://example.org/null", 5, "#/a/~9"],
)
def test_R_002_3_a_reference_to_what_is_not_null_keeps_a_parameter_required(reference: Any) -> None:
    definitions = {
        "text": {"type": "string", "enum": ["null"]},
        "round": {"anyOf": [{"$ref": "#/$defs/round"}, {"type": "string"}]},
        "both": {"allOf": [{"type": ["string", "null"]}, {"type": "string"}]},
    }
    schema = {"properties": {"a": {"$ref": reference}}, "required": ["a"], "$defs": definitions}
    assert filter_required(schema).schema is schema


def test_R_002_3_references_are_followed_a_bounded_way() -> None:
    chain: Schema = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(2_000)} | {"d2000": {"type": "null"}}
    parameters = {f"p{n}": {"$ref": f"#/$defs/d{n}"} for n in range(2_001)}
    schema = {"properties": parameters, "required": list(parameters), "$defs": chain}
    removed = {found.name for found in filter_required(schema).removed}
    assert {"p1990", "p2000"} <= removed
    assert "p0" not in removed


@pytest.mark.parametrize("keywords", [{"nullable": False}, {"nullable": "true"}, {"type": ["string", "integer"]}])
def test_R_002_3_what_is_not_nullable_stays(keywords: Schema) -> None:
    assert required(tool(**keywords))


def test_R_002_3_what_was_not_required_does_not_become_so() -> None:
    schema = {"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["b"]}
    assert filter_required(schema).schema is schema


# --- the traps --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keywords",
    [
        {"type": ["string", "null"]},
        {"type": "null"},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"oneOf": [{"type": "string"}, {"type": ["integer", "null"]}]},
        {"anyOf": ["junk", {"const": None}]},
    ],
)
def test_R_002_T2_every_way_to_allow_null_counts(keywords: Schema) -> None:
    assert not required(tool(**keywords))


@pytest.mark.parametrize(
    "description",
    [
        *(
            "This is not optional.",
            "NOT OPTIONAL",
            "A non-optional name",
            "nonoptional",
            "non optional",
            "isn't optional",
        ),
        *("It isn’t optional", "never optional", "no longer optional", "It cannot be optional", "is **not** optional"),
        *("not an optional name", "This is not at all optional", "is not considered optional", "not-optional"),
        *("It never defaults to anything", "not\n optional"),
    ],
)
def test_R_002_T2_a_negated_optional_stays_required(description: str) -> None:
    assert required(tool(description, type="string"))


@pytest.mark.parametrize(
    "description",
    [
        *("Used if provided", "Checked when provided", "Can be omitted", "This is not required", "Set to true to wait"),
        "Set to FALSE to go on",
    ],
)
def test_R_002_T1_more_phrases_only_when_aggressive(description: str) -> None:
    assert required(tool(description, type="string"))
    assert not required(tool(description, type="string"), aggressive=True)


def test_R_002_T1_booleans_go_only_when_aggressive() -> None:
    assert required(tool("Wait", type="boolean"))
    assert filter_required(tool("Wait", type="boolean"), aggressive=True).removed[0].reason == "is a boolean"
    assert required(tool("Must not be set to true", type="string"), aggressive=True)


def test_R_002_T2_order_is_kept() -> None:
    names = ["z", "m", "a", "q", "b"]
    schema = {"properties": {name: {"default": 0} if name == "a" else {} for name in sorted(names)}, "required": names}
    assert filter_required(schema).schema["required"] == ["z", "m", "q", "b"]


def test_R_002_T2_an_empty_result_omits_the_key() -> None:
    assert "required" not in filter_required(tool(default=1)).schema
    empty: Schema = {"properties": {}, "required": []}
    assert filter_required(empty).schema is empty


def test_R_002_T2_a_name_that_is_listed_twice_is_removed_once() -> None:
    schema = {"properties": {"a": {"default": 1}, "b": {}}, "required": ["a", "b", "a"]}
    filtered = filter_required(schema)
    assert filtered.schema["required"] == ["b"]
    assert len(filtered.removed) == 1


# --- nested schemas ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outer", "path"),
    [
        (lambda inner: {"properties": {"x": inner}}, "$.properties.x"),
        (lambda inner: {"patternProperties": {"^x": inner}}, "$.patternProperties['^x']"),
        (lambda inner: {"additionalProperties": inner}, "$.additionalProperties"),
        (lambda inner: {"items": inner}, "$.items"),
        (lambda inner: {"items": [{}, inner]}, "$.items[1]"),
        (lambda inner: {"prefixItems": [inner]}, "$.prefixItems[0]"),
        (lambda inner: {"anyOf": [inner, {"type": "string"}]}, "$.anyOf[0]"),
        (lambda inner: {"oneOf": [{"type": "string"}, inner]}, "$.oneOf[1]"),
        (lambda inner: {"allOf": [inner]}, "$.allOf[0]"),
        (lambda inner: {"$defs": {"X": inner}}, "$['$defs'].X"),
        (lambda inner: {"definitions": {"X": inner}}, "$.definitions.X"),
    ],
)
def test_R_002_T2_nested_schemas_are_filtered(outer: Any, path: str) -> None:
    inner = {"type": "object", "properties": {"a": {"default": 1}, "b": {}}, "required": ["a", "b"]}
    filtered = filter_required(outer(inner))
    assert filtered.schema == outer({**inner, "required": ["b"]})
    assert filtered.removed == (Removed(path, "a", "has a default"),)
    assert inner["required"] == ["a", "b"]


def test_R_002_T2_what_is_not_on_the_way_is_shared_and_order_is_that_of_the_document() -> None:
    other = {"type": "object", "properties": {"z": {"type": "string"}}, "required": ["z"]}
    schema = {
        **tool(default=1),
        "properties": {"a": {"default": 1}, "other": other, "one": tool(default=1), "two": tool(default=2)},
    }
    filtered = filter_required(schema)
    assert filtered.schema["properties"]["other"] is other
    assert [each.path for each in filtered.removed] == ["$", "$.properties.one", "$.properties.two"]


def test_R_002_T2_a_part_that_is_used_twice_is_filtered_in_both_uses() -> None:
    part = tool(default=1)
    filtered = filter_required({"properties": {"x": part, "y": part}})
    assert len(filtered.removed) == 2
    expected = {"type": "object", "properties": part["properties"]}
    assert filtered.schema == {"properties": {"x": expected, "y": expected}}
    assert part == tool(default=1)


@pytest.mark.parametrize("keyword", ["enum", "const", "default", "examples", "x-anything"])
def test_R_002_T2_data_that_looks_like_a_schema_is_left_alone(keyword: str) -> None:
    schema: Schema = {keyword: tool(default=1)}
    assert filter_required(schema).schema is schema


def test_R_002_T2_a_property_may_be_called_required_or_properties() -> None:
    schema = {
        "properties": {"required": {"default": 1}, "properties": {"type": "object"}},
        "required": ["properties", "required"],
    }
    assert filter_required(schema).schema == {**schema, "required": ["properties"]}


# --- never stricter ---------------------------------------------------------------------------------


def branch(name: str, *, tag: str | None = None, **keywords: Any) -> Schema:
    """An object with an optional-looking required name, distinguished by a tag or by nothing else."""
    properties: Schema = {name: {"type": "string", "description": "optional"}}
    needed = [name]
    if tag is not None:
        properties["kind"] = {"const": tag}
        needed.append("kind")
    return {"type": "object", "properties": properties, "required": needed, **keywords}


@pytest.mark.parametrize("keyword", ["not", "if", "contains"])
def test_law_where_less_required_is_stricter_it_stays(keyword: str) -> None:
    schema: Schema = {keyword: tool(default=1)}
    assert filter_required(schema).schema is schema


@pytest.mark.parametrize(
    "branches",
    [
        [branch("a"), branch("b")],
        [branch("a", tag="x"), branch("b", tag="x")],
        [branch("a", tag="x"), branch("b")],
        [branch("a", tag="x"), {}],
        [branch("a", tag="x"), True],
        [branch("a", tag="x"), {"type": "object", "properties": {"kind": True}, "required": ["kind"]}],
        [branch("a", tag="x"), {"type": "object", "properties": {"kind": {"enum": [1]}}, "required": ["kind"]}],
        [branch("a", tag="x"), {"type": ["object", "null"]}],
        [{"type": "array", "items": branch("a")}, {"type": "array", "items": branch("b")}],
    ],
)
def test_law_a_one_of_that_only_required_distinguishes_is_left_alone(branches: list[Any]) -> None:
    schema: Schema = {"oneOf": branches}
    assert filter_required(schema).schema is schema


@pytest.mark.parametrize(
    "branches",
    [
        [branch("a"), {"type": "string"}, {"type": ["null", "integer"]}],
        [branch("a"), {"type": "array"}],
        [branch("a", tag="x"), branch("b", tag="y")],
        [branch("a", tag="x"), {"properties": {"kind": {"enum": ["y", "z"]}}, "required": ["kind"]}],
    ],
)
def test_law_a_one_of_with_other_differences_is_filtered(branches: list[Any]) -> None:
    removed = filter_required({"oneOf": branches}).removed
    assert removed[0] == Removed("$.oneOf[0]", "a", 'its description says "optional"')


A_OR_B = [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]


def test_law_references_of_a_one_of_are_followed() -> None:
    tagged = {"oneOf": A_OR_B, "$defs": {"A": branch("a", tag="x"), "B": branch("b", tag="y")}}
    assert [each.path for each in filter_required(tagged).removed] == ["$['$defs'].A", "$['$defs'].B"]
    alike = {
        "properties": {"p": {"oneOf": A_OR_B}, "q": tool(default=1)},
        "$defs": {"A": branch("a"), "B": branch("b")},
    }
    assert [each.path for each in filter_required(alike).removed] == ["$.properties.q"]
    nowhere = {"properties": {"p": {"oneOf": A_OR_B}, "q": tool(default=1)}, "$defs": {"A": branch("a")}}
    assert [each.path for each in filter_required(nowhere).removed] == ["$.properties.q"]
    junk = {"properties": {"p": {"oneOf": A_OR_B}, "q": tool(default=1)}, "$defs": []}
    assert [each.path for each in filter_required(junk).removed] == ["$.properties.q"]


def test_law_a_reference_to_the_whole_from_what_may_not_be_loosened_stops_the_filter() -> None:
    schema = {**tool(default=1), "not": {"properties": {"x": {"$ref": "#"}}, "required": ["x"]}}
    assert filter_required(schema).schema is schema


# --- hostile input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"default": 1}}, "required": "a"},
        {"properties": {"a": {"default": 1}}, "required": ["a", 7]},
        {"properties": {"a": {"default": 1}}, "required": True},
        {"properties": [], "required": ["a"]},
        {"properties": {"a": True}, "required": ["a"]},
        {"properties": {"a": {"description": ["optional"]}}, "required": ["a"]},
        {"properties": {"a": {"type": {"null": 1}, "anyOf": {}, "oneOf": 3}}, "required": ["a", "missing"]},
        {"properties": None, "items": "x", "anyOf": {"a": 1}, "oneOf": [1, None], "$defs": 4, "required": None},
        {"oneOf": [{"$ref": 5}, {"$ref": "#/$defs/a"}], "not": {"$ref": []}, "allOf": [[], "x"]},
        {"oneOf": [{"type": "object", "properties": 1, "required": 2}, {"type": "object"}]},
        {},
    ],
)
def test_junk_is_carried_untouched(schema: Schema) -> None:
    before = copy.deepcopy(schema)
    assert filter_required(schema) == Filtered(schema)
    assert filter_required(schema).schema is schema
    assert schema == before


@pytest.mark.parametrize("junk", [True, None, [], "schema"])
def test_a_schema_that_is_no_object_comes_back(junk: Any) -> None:
    assert filter_required(junk) == Filtered(junk)


def nested(depth: int) -> Schema:
    schema = tool(default=1)
    for _ in range(depth):
        schema = {"additionalProperties": schema}
    return schema


def test_schemas_as_deep_as_a_parser_goes_are_filtered_and_deeper_ones_carried() -> None:
    assert len(filter_required(nested(200)).removed) == 1
    deep = nested(50_000)
    assert filter_required(deep).schema is deep


def test_a_wide_schema_takes_linear_time() -> None:
    properties = {f"p{n}": tool("(optional) " + "not " * 50, type="string") for n in range(20_000)}
    assert len(filter_required({"properties": properties}).removed) == 20_000
    branches = [branch(f"p{n}", tag=str(n)) for n in range(20_000)]
    assert len(filter_required({"oneOf": branches}).removed) == 20_000


def test_a_description_of_a_hundred_thousand_words_takes_no_time() -> None:
    for text in ("not" + " " * 200_000, "not a " * 50_000, "defaults " * 50_000, "n't" * 100_000, "non-" * 100_000):
        assert required(tool(text, type="string"))


# --- laws -------------------------------------------------------------------------------------------

descriptions = st.sampled_from(["", "Optional.", "Not optional", "Defaults to 3", "Set to true to wait", "A name"])
leaves = st.builds(
    lambda keywords, description: {**keywords, "description": description},
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "boolean"},
            {"type": ["string", "null"]},
            {"type": "string", "default": "x"},
            {"const": "x"},
            {"const": "y"},
        ]
    ),
    descriptions,
)
NAMES = ("a", "b", "c")


def objects(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return st.builds(
        lambda properties, needed, typed: {
            **({"type": "object"} if typed else {}),
            "properties": properties,
            "required": needed,
        },
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
        st.lists(st.sampled_from(NAMES), max_size=3, unique=True),
        st.booleans(),
    )


def compounds(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    references = st.just({"$ref": "#/$defs/D"})
    return st.one_of(
        objects(inner),
        st.builds(
            lambda keyword, branches: {keyword: branches},
            st.sampled_from(["anyOf", "allOf"]),
            st.lists(inner, min_size=1, max_size=2),
        ),
        st.builds(lambda branches: {"oneOf": branches}, st.lists(inner | references, min_size=1, max_size=3)),
        st.builds(
            lambda keyword, one: {keyword: one},
            st.sampled_from(["not", "items", "additionalProperties"]),
            inner | references,
        ),
    )


schemas = st.builds(
    lambda root, definition: {**root, "$defs": {"D": definition}},
    objects(st.recursive(leaves, compounds, max_leaves=8)) | compounds(objects(leaves)),
    objects(leaves),
)
values = st.recursive(
    st.sampled_from(["x", "y", None, True]),
    lambda inner: st.dictionaries(st.sampled_from(NAMES), inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=6,
)
instances = st.dictionaries(st.sampled_from(NAMES), values, max_size=3)


@pytest.mark.law
@given(schemas, st.booleans())
def test_R_002_3_filtering_is_idempotent_pure_and_removes_required_names_only(schema: Schema, aggressive: bool) -> None:
    before = copy.deepcopy(schema)
    filtered = filter_required(schema, aggressive=aggressive)
    assert schema == before
    assert (filtered.schema is schema) == (filtered.removed == ())
    again = filter_required(filtered.schema, aggressive=aggressive)
    assert again.removed == ()
    assert again.schema is filtered.schema
    assert without_required(filtered.schema) == without_required(schema)


def without_required(node: Any) -> Any:
    if isinstance(node, list):
        return [without_required(each) for each in node]
    if isinstance(node, dict):
        return {key: without_required(each) for key, each in node.items() if key != "required"}
    return node


@pytest.mark.law
@given(schemas, instances, st.booleans())
def test_R_002_3_what_the_original_accepts_the_filtered_schema_accepts(
    schema: Schema, instance: Schema, aggressive: bool
) -> None:
    if not arguments.validate(instance, schema):
        assert not arguments.validate(instance, filter_required(schema, aggressive=aggressive).schema)
