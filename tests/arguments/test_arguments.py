"""Tool arguments: parsed, never guessed; unwrapped only where that is certain, and every change is noted."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations.strategies import json_objects, json_values
from support.counted_work import is_linear, no_hang
from toolglot import arguments
from toolglot.arguments import Mismatch, Note, parse, parse_xml, sanitise, validate
from toolglot.arguments.parsing import MAX_WRAPPINGS
from toolglot.arguments.validation import MAX_MISMATCHES, MISMATCH_CHARACTERS
from toolglot.errors import ArgumentsError, InputError, LimitError, TruncatedArgumentsError
from toolglot.jsontext import fix_surrogates
from toolglot.limits import Limits


def actions(found: arguments.ParsedArguments) -> list[str]:
    return [note.action for note in found.notes]


@pytest.mark.law
@given(json_objects)
def test_R_003_9_an_object_or_its_text_is_read_as_it_is(value: dict[str, Any]) -> None:
    text = json.dumps(value)
    assert parse(text) == parse(text.encode()) == arguments.ParsedArguments(value, text)
    assert parse(value).arguments is value
    assert parse(value).raw is None


def test_R_003_15_numbers_compare_as_numbers() -> None:
    assert parse('{"x":5}').arguments["x"] == parse('{"x":5.0}').arguments["x"] == 5.0


@pytest.mark.parametrize("nothing", [None, "", " \n", b"", "null", " null ", b"null"])
def test_F3_nothing_means_no_arguments(nothing: object) -> None:
    found = parse(nothing, path="$.input")
    assert found.arguments == {}
    assert found.notes == (Note("emptied", "$.input", found.notes[0].reason),)


@pytest.mark.parametrize(
    ("value", "got"),
    [
        ("[1]", "an array"),
        ([1], "an array"),
        ("5", "a number"),
        (5, "a number"),
        ("true", "a boolean"),
        (False, "a boolean"),
        *((text, "a string") for text in ('"{oops}"', '"hello"', '""', '"tr"', '"[1]"', '"null"')),
        (object(), "a object"),
        (bytearray(b"{}"), "a bytearray"),
    ],
)
def test_F3_what_is_not_an_object_is_refused_and_never_coerced(value: object, got: str) -> None:
    with pytest.raises(ArgumentsError, match=f"expected a JSON object, got {got}") as caught:
        parse(value, path="$.input")
    assert caught.value.path == "$.input"
    assert caught.value.hint
    assert type(caught.value) is ArgumentsError


@pytest.mark.parametrize("text", ["{oops}", '{"a":1}}', "{'a':1}", '{"a":1}{"a":2}', "ls -la", '{"a":1e400}'])
@pytest.mark.parametrize("xml", [False, True])
def test_R_003_9_malformed_text_is_refused_with_its_position(text: str, xml: bool) -> None:
    with pytest.raises(ArgumentsError, match="failed to parse tool arguments") as caught:
        parse(text, xml=xml)
    assert not isinstance(caught.value, TruncatedArgumentsError)
    assert "at character" in caught.value.message or caught.value.path == "$.a"


@pytest.mark.law
@given(st.text(alphabet='{}[]":,\\ud83 <a>/&;=1e.') | st.binary(max_size=9), st.booleans())
def test_any_input_is_an_object_or_an_error_of_ours(value: str | bytes, xml: bool) -> None:
    with contextlib.suppress(InputError):
        assert type(parse(value, xml=xml).arguments) is dict


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(ArgumentsError, match="byte 6 is not UTF-8"):
        parse(b'{"a":"\xff"}')


@pytest.mark.law
@given(json_objects, st.booleans(), st.integers(0, 2))
def test_F1_cut_at_every_byte_is_never_guessed(value: dict[str, Any], ascii_only: bool, wraps: int) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    for _ in range(wraps):
        text = json.dumps(text, ensure_ascii=ascii_only)
    data = text.encode()
    for end in range(1, len(data)):
        with pytest.raises(TruncatedArgumentsError) as caught:
            parse(data[:end], xml=True)
        assert caught.value.position == len(data[:end].decode(errors="ignore"))
    assert parse(data[:0]).arguments == {}


def test_F1_an_object_cut_before_it_was_wrapped_is_truncated() -> None:
    with pytest.raises(TruncatedArgumentsError) as caught:
        parse(json.dumps('{"command":["ls","pwd"'))
    assert caught.value.position == len(json.dumps('{"command":["ls","pwd"'))


@pytest.mark.law
@given(json_objects, st.integers(1, MAX_WRAPPINGS))
def test_F2_R_002_15_a_whole_value_that_is_doubly_encoded_is_unwrapped(value: dict[str, Any], wraps: int) -> None:
    text = json.dumps(value)
    for _ in range(wraps):
        text = json.dumps(text)
    found = parse(text)
    assert found.arguments == value
    assert found.raw == text
    assert actions(found) == ["unwrapped"] * wraps


def test_F2_wrapping_is_undone_only_a_few_times() -> None:
    text = "{}"
    for _ in range(MAX_WRAPPINGS + 1):
        text = json.dumps(text)
    with pytest.raises(ArgumentsError, match="got a string"):
        parse(text)


def test_R_002_15_a_parsed_object_with_circles_or_odd_values_is_made_plain() -> None:
    value: dict[str, Any] = {"n": (1,)}
    value["self"] = value
    found = parse(value)
    assert found.arguments == {"n": [1], "self": "[circular]"}
    assert [(note.action, note.path) for note in found.notes] == [("cloned", "$.n"), ("cloned", "$.self")]


@pytest.mark.parametrize("text", [r'{"a":"\ud83d"}', '{"a":"\ud83d"}', json.dumps('{"a":"\ud83d"}')])
def test_G4_half_a_surrogate_pair_is_replaced_and_noted(text: str) -> None:
    found = parse(text)
    assert found.arguments == {"a": "\ufffd"}
    assert "fixed" in actions(found)
    assert found.raw == fix_surrogates(text)


def test_limits_hold_before_anything_is_read() -> None:
    huge = " " * 100_000_000
    for value in (huge, huge.encode(), {"a": huge}):
        with pytest.raises(LimitError, match="max_bytes"):
            parse(value)
    with pytest.raises(LimitError, match="max_bytes"):
        parse_xml(huge)
    for deep in ('{"a":' * 10_000, json.dumps('{"a":' * 10_000)):
        with pytest.raises(LimitError, match="max_depth"):
            parse(deep)


TODOS = {
    "type": "object",
    "properties": {
        "todos": {"type": "array", "items": {"$ref": "#/$defs/todo"}},
        "options": {"anyOf": [{"type": "object"}, {"type": "null"}]},
        "only": {"allOf": [{"$ref": "#/$defs/todo"}], "description": "one"},
        "either": {"type": ["array", "string"]},
        "some": {"oneOf": [{"type": "array"}, {"type": "string"}]},
        "text": {"type": "string"},
        "free": {"description": "anything"},
        "outside": {"$ref": "http://example.com/schema"},
        "odd": {"$ref": 5, "type": [5, "array"], "anyOf": 7},
        "nowhere": {"$ref": "#/$defs/todo/type/x"},
    },
    "$defs": {"todo": {"type": "object", "properties": {"tags": {"type": "array"}, "~/": {"type": "array"}}}},
}


@pytest.mark.parametrize(
    ("value", "expected", "paths"),
    [
        ({"todos": "[1]"}, {"todos": [1]}, ["$.todos"]),
        ({"todos": ' [{"tags":"[2]"},{}]'}, {"todos": [{"tags": [2]}, {}]}, ["$.todos", "$.todos[0].tags"]),
        ({"todos": ['{"tags":[]}', {}]}, {"todos": [{"tags": []}, {}]}, ["$.todos[0]"]),
        ({"options": '{"a":"[1]"}'}, {"options": {"a": "[1]"}}, ["$.options"]),
        ({"only": '{"~/":"[]"}'}, {"only": {"~/": []}}, ["$.only", "$.only['~/']"]),
        ({"odd": r'["\ud83d"]'}, {"odd": ["\ufffd"]}, ["$.odd", "$.odd"]),
    ],
)
def test_F2_nested_text_is_decoded_where_only_an_array_or_object_fits(
    value: dict[str, Any], expected: dict[str, Any], paths: list[str]
) -> None:
    found = parse(value, schema=TODOS)
    assert found.arguments == expected
    assert [note.path for note in found.notes] == paths
    assert set(actions(found)) == {"unwrapped"}
    assert parse(json.dumps(value), schema=TODOS).arguments == expected


@pytest.mark.parametrize(
    "untouched",
    [
        *({"todos": text} for text in ("{}", "[oops", "[1] and more", '"[1]"', "5")),
        {"todos": "[" * 199 + "]" * 199},
        {"options": "[1]", "either": "[1]", "some": "[1]", "text": "[1]"},
        {"free": "[1]", "unknown": "[1]", "outside": "[1]", "nowhere": "[1]"},
        {"todos": [], "options": {}},
    ],
)
def test_F2_any_other_string_is_left_alone(untouched: dict[str, Any]) -> None:
    found = parse(untouched, schema=TODOS, limits=Limits(max_depth=199))
    assert found.arguments is untouched
    assert found.notes == ()


def test_F2_without_a_schema_nested_text_is_left_alone() -> None:
    assert parse({"todos": "[1]"}).arguments == {"todos": "[1]"}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#/properties/a"}]}}},
        {"properties": {"a": {"$ref": "#anchor", "properties": {"a": {}}}}, "type": "object"},
        {"properties": {"a": {"anyOf": [*({"type": "object"} for _ in range(99)), {"type": "string"}]}}},
        {"anyOf": [*({"properties": {"a": {"type": "object"}}} for _ in range(99))]},
        {"properties": {"a": True}},
        {"properties": 5},
    ],
)
def test_F2_empty_or_circular_schemas_change_nothing(schema: dict[str, Any]) -> None:
    assert parse({"a": '{"a":"[1]"}', "b": [{"a": "[]"}]}, schema=schema).notes == ()


def test_F2_recursive_schemas_are_followed_to_a_bounded_depth() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#"}}}
    value: Any = {"a": 1}
    for _ in range(100):
        value = {"a": value}
    value["a"] = json.dumps(value["a"])
    assert actions(parse(value, schema=schema)) == ["unwrapped"]
    text = "{}"
    for _ in range(10):
        text = json.dumps({"a": text})
    assert len(parse(text, schema=schema).notes) == 10


def test_F2_hostile_schemas_cost_no_more_than_their_size() -> None:
    schemas: dict[str, Any] = {"d0": {"type": "array"}}
    for level in range(1, 40):
        schemas[f"d{level}"] = {"anyOf": [{"$ref": f"#/$defs/d{level - 1}"}] * 20}
    shallow = {"$defs": schemas, "properties": {"a": {"$ref": "#/$defs/d10"}}}
    assert parse({"a": "[1]"}, schema=shallow).arguments == {"a": [1]}
    deep = {"$defs": schemas, "properties": {"a": {"$ref": "#/$defs/d39"}}}
    assert parse({"a": "[1]", "b": 1}, schema=deep).arguments == {"a": "[1]", "b": 1}
    wide: dict[str, Any] = {"properties": {"a": {"items": {"anyOf": [{"properties": {}}] * 1000}}}}
    assert parse({"a": [{}] * 10_000}, schema=wide).notes == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<location>SF</location><n>5</n>", {"location": "SF", "n": "5"}),
        ("<args>\n <location>SF</location>\n <n>5</n></args>", {"location": "SF", "n": "5"}),
        ("<p>1</p><p>2</p><p>3</p>", {"p": ["1", "2", "3"]}),
        ("<a><b><c>1</c></b></a><d/>", {"a": {"b": {"c": "1"}}, "d": ""}),
        ("<tool x = '5' y=\"a&lt;'b\" />", {"x": "5", "y": "a<'b"}),
        ('<t x="1"><x>2</x></t>', {"x": ["1", "2"]}),
        ('<t x="1">two</t><u/>', {"t": {"x": "1", "#text": "two"}, "u": ""}),
        ("<a> &lt;&gt;&amp;&quot;&apos;&#65;&#x1F600; </a >", {"a": " <>&\"'A\U0001f600 "}),
        ("<!-- c > --><a><![CDATA[<b>&amp;]]>!<!----></a> ", {"a": "<b>&amp;!"}),
        ("<ns:é.1-x>v</ns:é.1-x>", {"ns:é.1-x": "v"}),
        ("<a>\ud83d</a>", {"a": "\ufffd"}),
    ],
)
def test_R_003_9_xml_is_read_instead_of_json(text: str, expected: dict[str, Any]) -> None:
    found = parse(text, xml=True)
    assert found.arguments == parse_xml(text) == expected
    assert actions(found)[-1] == "read-as-xml"
    assert found.raw == fix_surrogates(text)
    assert ("fixed" in actions(found)) == ("\ud83d" in text)
    with pytest.raises(ArgumentsError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', 0),
        ("<?xml version='1.0'?><a/>", 0),
        *((f"<a>&{bad}</a>", 3) for bad in ("b;", "amp", " ", "#0;", "#xD800;", "#x110000;", "#9999999999;")),
        ("<a></b>", 3),
        ("</a>", 0),
        ("<a b=c></a>", 0),
        ("<a/>text", 4),
        ("<a/><![CDATA[x]]>", 4),
        ("text", 0),
        ("", 0),
    ],
)
def test_xml_with_anything_dangerous_or_malformed_is_refused_at_its_position(text: str, position: int) -> None:
    with pytest.raises(ArgumentsError, match=f"at character {position}$|at character {position} ") as caught:
        parse_xml(text, path="$.input")
    assert caught.value.path == "$.input"
    assert not isinstance(caught.value, TruncatedArgumentsError)


def test_F1_xml_inside_one_element_cut_anywhere_is_never_guessed() -> None:
    text = "<a><b x=\"1>2\" y='3'>é &lt; <![CDATA[]>]]></b><!-- > --><c/></a>"
    assert parse_xml(text) == {"b": {"x": "1>2", "y": "3", "#text": "é < ]>"}, "c": ""}
    for end in range(1, len(text)):
        with pytest.raises(TruncatedArgumentsError) as caught:
            parse(text[:end], xml=True)
        assert caught.value.position == end


def test_xml_is_bounded_in_depth_and_elements() -> None:
    with pytest.raises(LimitError, match="max_depth=200"):
        parse_xml("<a>" * 10_000)
    with pytest.raises(LimitError, match="max_nodes=5"):
        parse_xml("<a/>" * 6, limits=Limits(max_nodes=5))


@pytest.mark.parametrize("unit", ["<a/>", "&lt;", "&", "<", "<a ", '<a b="', "<!--", "<![CDATA[", "<a b='1' ", "a "])
def test_xml_work_is_linear_for_hostile_text(unit: str) -> None:
    def read(length: int) -> None:
        with pytest.raises(InputError):
            parse_xml("<x>" + unit * (length // len(unit)))

    assert is_linear(lambda length: lambda: read(length), 5_000)
    with no_hang():
        read(400_000)


def test_mismatches_name_the_path_and_the_problem() -> None:
    schema = {
        "properties": {"todos": {"items": {"properties": {"id": {"type": "string"}}}}},
        "required": ["city"],
    }
    assert validate({"todos": [], "city": ""}, schema) == ()
    where = "$.properties.todos.items.properties.id.type"
    assert set(validate({"todos": [{"id": 5}]}, schema, path="$.input")) == {
        Mismatch("$.input.todos[0].id", 'the value is not of type "string"', "type", where),
        Mismatch("$.input", '"city" is a required property', "required", "$.required"),
    }


def test_mismatches_are_few_and_short() -> None:
    schema = {"properties": {"x": {"items": {"type": "string"}}, "y": {"enum": ["z" * 1_000_000]}}}
    assert len(validate({"x": [1] * 5_000}, schema)) == MAX_MISMATCHES
    assert len(validate({"x": [1] * 500_000}, schema)) == 1
    (found,) = validate({"y": "q" * 1_000_000}, schema)
    assert len(found.message) <= MISMATCH_CHARACTERS


@pytest.mark.parametrize("scheme", ["file:///etc/passwd", "http://127.0.0.1:{port}/x", "https://127.0.0.1:{port}/x"])
@pytest.mark.parametrize("keyword", ["$ref", "$schema"])
def test_references_outside_the_schema_are_refused_and_not_fetched(scheme: str, keyword: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        address = scheme.format(port=server.getsockname()[1])
        with pytest.raises(InputError, match="the schema is invalid"):
            validate({}, {keyword: address})
        with pytest.raises(BlockingIOError):  # no client has connected
            server.accept()


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"properties": {"x": {"type": "strin"}}}, "$.properties.x.type"),
        ({"properties": {"x": {"pattern": "("}}}, "$.properties.x.pattern"),
        ({"$ref": "#/nowhere"}, "$"),
    ],
)
def test_an_invalid_schema_is_refused_where_it_is_invalid(schema: Any, path: str) -> None:
    with pytest.raises(InputError, match="the schema is invalid") as caught:
        validate({}, schema)
    assert caught.value.path == path


def test_schemas_and_arguments_that_nest_without_end_are_kept_from_the_validator() -> None:
    ring: dict[str, Any] = {}
    ring["a"] = ring
    assert validate(ring, {"properties": {"a": {"$ref": "#"}}}) == ()
    assert validate({}, {"$ref": "#"}) == ()
    deep: Any = {}
    for _ in range(5_000):
        deep = {"properties": {"a": deep}}
    for args, schema in (({}, deep), (deep, {})):
        with pytest.raises(LimitError, match="max_depth"):
            validate(args, schema, limits=Limits(max_depth=200))


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|a)*$", "(?=a)(a+)+$", "^(?!b)(a|aa)+$"])
def test_patterns_cannot_backtrack_for_long(pattern: str) -> None:
    text = {"x": "a" * 20_000 + "b"}
    with no_hang():
        assert len(validate(text, {"properties": {"x": {"pattern": pattern}}})) == 1


def test_jsonschema_is_not_imported_until_it_is_needed() -> None:
    code = "import sys, toolglot.arguments; sys.exit('jsonschema_rs' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


CONTROL = "".join(map(chr, range(32)))


def test_R_003_10_sanitise_drops_control_characters() -> None:
    assert sanitise(f"a{CONTROL}b\x7f") == "a\t\n\rb\x7f"
    assert sanitise(f"a{CONTROL}b\x7f", strict=True) == "a\t\nb\x7f"


def test_R_003_10_T6_sanitise_reaches_nested_values_and_keys_and_keeps_crlf() -> None:
    value = {"a\x00": ["x\x1b[0m\r\n", {"b": "\ud83d\x00"}], "n": 5, "t": True, "z": None}
    assert sanitise(value) == {"a": ["x[0m\r\n", {"b": "\ufffd"}], "n": 5, "t": True, "z": None}


def test_R_003_10_sanitise_keeps_keys_apart_that_become_equal() -> None:
    assert sanitise({"a": 1, "a\x00": 2}) == {"a": 1, "a#2": 2}


@pytest.mark.law
@given(json_values, st.booleans())
def test_R_003_10_sanitise_is_idempotent_and_returns_what_is_clean_itself(value: object, strict: bool) -> None:
    clean = sanitise(value, strict=strict)
    assert sanitise(clean, strict=strict) is clean


def test_R_003_10_sanitise_is_bounded() -> None:
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(LimitError):
        sanitise(deep)


BRANCHING: dict[str, Any] = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "anyOf": [
                {"properties": {"a": {"$ref": "#/$defs/node"}, "leaf": {"type": "string"}}},
                {"properties": {"a": {"$ref": "#/$defs/node"}, "leaf": {"type": "boolean"}}},
            ]
        }
    },
}


def nested_leaf(depth: int, leaf: object = 1) -> dict[str, Any]:
    value: dict[str, Any] = {"leaf": leaf}
    for _ in range(depth):
        value = {"a": value}
    return value


def named(schema: dict[str, Any], anchor: str) -> dict[str, Any]:
    """The same schema, referring to its part by an anchor."""
    text = json.dumps(schema).replace("#/$defs/node", "#node").replace('{"anyOf"', f'{{"{anchor}": "node", "anyOf"')
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.parametrize("schema", [BRANCHING, named(BRANCHING, "$anchor"), named(BRANCHING, "$dynamicAnchor")])
def test_a_schema_that_branches_again_and_again_is_refused_before_it_costs_time(
    schema: dict[str, Any],
) -> None:
    assert [found.path for found in validate(nested_leaf(3), schema)] == ["$"]
    assert validate(nested_leaf(3, "text"), schema) == ()
    for depth in (40, 150):
        with pytest.raises(LimitError, match="branches too often"):
            validate(nested_leaf(depth), schema)


def test_a_schema_that_branches_without_coming_back_to_itself_is_refused_too() -> None:
    parts: dict[str, Any] = {
        f"n{n}": {"properties": {"a": {"anyOf": [{"$ref": f"#/$defs/n{n + 1}"}] * 2}}} for n in range(30)
    }
    parts["n30"] = {"properties": {"leaf": {"type": "string"}}}
    with pytest.raises(LimitError, match="branches too often"):
        validate(nested_leaf(30), {"$ref": "#/$defs/n0", "$defs": parts})
    assert len(validate(nested_leaf(30), {"properties": {"a": {"type": "string"}}})) == 1


def test_a_schema_that_refers_to_itself_without_branching_is_checked_at_any_depth() -> None:
    schema = {"properties": {"a": {"$ref": "#"}, "leaf": {"type": "string"}}, "additionalProperties": False}
    assert validate(nested_leaf(100, "text"), schema) == ()
    (found,) = validate(nested_leaf(100), schema)
    assert found.path.endswith(".a.leaf")


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"$ref": "#"}, "properties": {"x": {"prefixItems": [{"type": "null"}]}}},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"x": {"items": [{"type": "null"}, {"$ref": "#"}]}},
        },
        {
            "patternProperties": {"x": {"$ref": "#"}},
            "dependentSchemas": {"x": {"not": {"type": "string"}}},
            "if": True,
        },
        {
            "properties": {"x": {"$ref": "#/properties/y"}, "y": {"items": {"type": "null"}}},
            "$dynamicRef": "#me",
        }
        | {"$dynamicAnchor": "me"},
    ],
)
def test_recursive_schemas_of_every_shape_are_checked(schema: dict[str, Any]) -> None:
    assert validate({"x": [None]}, schema) == ()
    assert validate({"x": None}, schema) == ()


def test_a_reference_whose_cost_is_unknown_is_refused() -> None:
    schema = {
        "$id": "http://example.invalid/tool",
        "properties": {"a": {"$ref": "http://example.invalid/tool#/$defs/n"}},
        "$defs": {"n": {"type": "object"}},
    }
    with pytest.raises(LimitError, match="branches too often"):
        validate({"a": {}}, schema)


def test_a_schema_may_be_true_or_false() -> None:
    assert validate({"a": 1}, True) == ()
    assert len(validate({"a": 1}, False)) == 1


def test_F2_a_duplicate_key_is_noted() -> None:
    found = parse('{"a": 1, "b": {"c": 1, "c": 2}, "a": "\\ud83d"}')
    assert found.arguments == {"a": "\ufffd", "b": {"c": 2}}
    assert [note.reason for note in found.notes] == [
        "escapes of half a surrogate pair became U+FFFD",
        "a key occurs twice in one object; the last one is used",
    ]


def test_a_key_that_needs_no_change_keeps_its_name() -> None:
    assert sanitise({"a\x00": 1, "a": 2}) == {"a#2": 1, "a": 2}


def test_xml_must_be_a_string() -> None:
    with pytest.raises(ArgumentsError, match="expected a string, got None"):
        parse_xml(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "schema", "message"),
    [
        (
            {"a": [{} for _ in range(4_000)]},
            {"properties": {"a": {"items": {"required": [f"x{n}" for n in range(10_000)]}}}},
            "such long lists",
        ),
        (
            {"a": [{"q": n} for n in range(4_000)]},
            {"properties": {"a": {"items": {"enum": [{"q": n} for n in range(4_000)]}}}},
            "such long lists",
        ),
        ({}, {"$defs": {f"d{n}": {"type": "string"} for n in range(30_000)}}, "more than 20000 values"),
    ],
    ids=["required", "enum", "many definitions"],
)
def test_arguments_and_schemas_that_are_slow_together_are_refused(value: Any, schema: Any, message: str) -> None:
    with pytest.raises(LimitError, match=message):
        validate(value, schema)


def test_long_lists_get_one_mismatch_only() -> None:
    schema = {"properties": {"a": {"items": {"enum": [f"x{n}" for n in range(1_000)]}}}}
    assert len(validate({"a": ["z"] * 500}, schema)) == 1
    assert len(validate({"a": ["z"] * 5}, schema)) == 5
    assert validate({"a": ["x5"] * 500}, schema) == ()


def test_a_reference_is_looked_up_once() -> None:
    name = "~1" * 20_000
    schema: dict[str, Any] = {"$defs": {"/" * 20_000: {"type": "array"}}}
    schema["properties"] = {f"p{n}": {"$ref": f"#/$defs/{name}"} for n in range(500)}
    found = parse({f"p{n}": "[1]" for n in range(500)}, schema=schema)
    assert found.arguments["p7"] == [1]


def test_a_large_schema_is_used_and_not_kept() -> None:
    schema = {"properties": {"a": {"type": "string", "description": "d" * 100_000}}}
    assert len(validate({"a": 1}, schema)) == 1


def test_a_schema_of_true_unwraps_nothing() -> None:
    assert parse('{"a": "[1]"}', schema=True).arguments == {"a": "[1]"}
