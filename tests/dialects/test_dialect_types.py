"""Values without a type in the text: the tool's schema decides, the same whole and streamed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot.conversation.events import InputDelta
from toolglot.dialects.reading import DialectReader
from toolglot.dialects.text_stream import TextToolStream, parse_text, parsed_text
from toolglot.dialects.values.argument_writer import ArgumentWriter, Trim
from toolglot.dialects.values.schema_types import (
    Untyped,
    allowed_types,
    items_schema,
    named_types,
    property_schema,
    typed_json,
)

NODE = {"type": "object", "properties": {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/Node"}}}
ROOT = {"$defs": {"Node": NODE, "Name": {"type": "string"}, "Self": {"$ref": "#/$defs/Self"}}}


def meant(text: str, schema: Any, untyped: Untyped = "string") -> Any:
    return msgspec.json.decode(typed_json(text, allowed_types(schema, ROOT), untyped))


TYPED: list[tuple[str, Any, str, Any]] = [
    ("an integer", {"type": "integer"}, "3", 3),
    ("a negative integer", {"type": "integer"}, "-3", -3),
    ("an integer with white space", {"type": "integer"}, " 3\n", 3),
    ("an integer with leading zeros", {"type": "integer"}, "018956", 18956),
    ("an integer with a plus", {"type": "integer"}, "+5", 5),
    ("zero", {"type": "integer"}, "0", 0),
    ("a big integer", {"type": "integer"}, "123456789012345678901234567890", 123456789012345678901234567890),
    ("an integer written as a decimal", {"type": "integer"}, "3.0", 3),
    ("an integer with a power", {"type": "integer"}, "1e3", 1000),
    ("no integer but a decimal", {"type": "integer"}, "3.5", 3.5),
    ("no integer but a word", {"type": "integer"}, "three", "three"),
    ("no integer but truth", {"type": "integer"}, "true", "true"),
    ("no integer but nothing", {"type": "integer"}, "", ""),
    ("a decimal that is too large to be one", {"type": "integer"}, "1e300", 1e300),
    ("a number", {"type": "number"}, "3.50", 3.5),
    ("a number that is an integer", {"type": "number"}, "3", 3),
    ("a number with no digit before the point", {"type": "number"}, ".5", 0.5),
    ("a number with no digit behind the point", {"type": "number"}, "-5.", -5.0),
    ("a number with a power", {"type": "number"}, "1.5E-3", 0.0015),
    ("a number that is infinite", {"type": "number"}, "1e999", "1e999"),
    ("not a number", {"type": "number"}, "NaN", "NaN"),
    ("a point alone", {"type": "number"}, ".", "."),
    ("truth", {"type": "boolean"}, "true", True),
    ("truth in Python", {"type": "boolean"}, "False", False),
    ("truth in capitals", {"type": "boolean"}, "TRUE", True),
    ("no truth but a number", {"type": "boolean"}, "1", "1"),
    ("nothing", {"type": "null"}, "null", None),
    ("nothing in Python", {"type": "null"}, "None", None),
    ("a string that looks like a number", {"type": "string"}, "3", "3"),
    ("a string that looks like truth", {"type": "string"}, "true", "true"),
    ("a string that looks like nothing", {"type": "string"}, "null", "null"),
    ("a string that looks like an object", {"type": "string"}, '{"a": 1}', '{"a": 1}'),
    ("a string in quotes", {"type": "string"}, '"a"', '"a"'),
    ("a string with white space", {"type": "string"}, "  a\n", "  a\n"),
    ("an object", {"type": "object"}, '{"a": [1, null]}', {"a": [1, None]}),
    ("an object in Python", {"type": "object"}, "{'a': True, 'b': None}", {"a": True, "b": None}),
    ("no object but a list", {"type": "object"}, "[1]", "[1]"),
    ("a broken object", {"type": "object"}, '{"a": ', '{"a": '),
    ("an object that is empty text", {"type": "object"}, "", {}),
    ("a list", {"type": "array"}, '["a", 1]', ["a", 1]),
    ("a list in Python", {"type": "array"}, "['a', \"b\"]", ["a", "b"]),
    ("a tuple", {"type": "array"}, "(1, 2)", [1, 2]),
    ("a list with an infinite number", {"type": "array"}, "[1e999, 'x']", "[1e999, 'x']"),
    ("a list with half a surrogate pair", {"type": "array"}, "['\\ud800']", "['\\ud800']"),
    ("a list that is empty text", {"type": "array"}, " ", []),
    ("big integers in an object", {"type": "object"}, '{"a": 123456789012345678901}', {"a": 123456789012345678901}),
    ("anyOf, the number", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "5", 5),
    ("anyOf, nothing", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "null", None),
    ("anyOf with a string, a number", {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "5", 5),
    ("anyOf with a string, a word", {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "five", "five"),
    ("anyOf with a string, no JSON number", {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "007", "007"),
    ("anyOf with a string, quotes stay", {"anyOf": [{"type": "string"}, {"type": "array"}]}, '"a"', '"a"'),
    ("oneOf", {"oneOf": [{"type": "boolean"}, {"type": "array"}]}, "[true]", [True]),
    ("allOf", {"allOf": [{"description": "x"}, {"type": "integer"}]}, "5", 5),
    ("a list of types, the string", {"type": ["string", "null"]}, "5", "5"),
    ("a list of types, nothing", {"type": ["string", "null"]}, "null", None),
    ("a list of types, the number", {"type": ["integer", "boolean"]}, "1", 1),
    ("nullable", {"type": "integer", "nullable": True}, "null", None),
    ("nullable, a value", {"type": "integer", "nullable": True}, "7", 7),
    ("a nullable string", {"type": "string", "nullable": True}, "null", None),
    ("a nullable string, a word of Python", {"type": "string", "nullable": True}, "None", "None"),
    ("a nullable string, a word in capitals", {"type": ["string", "null"]}, "NULL", "NULL"),
    ("a nullable string, a word", {"type": ["string", "null"]}, "none", "none"),
    ("a nullable number, a word of Python", {"type": ["integer", "null"]}, "None", None),
    ("a nullable number, another word", {"type": ["integer", "null"]}, "nil", "nil"),
    ("an object that was escaped", {"type": "object"}, r"{\"a\": \"b\"}", {"a": "b"}),
    ("an object that was escaped with its lines", {"type": "object"}, r"{\n  \"a\": 1\n}", {"a": 1}),
    ("an object in a string", {"type": "object"}, r'"{\"a\": [1]}"', {"a": [1]}),
    ("a list that was escaped", {"type": "array"}, r"[\"a\", \"b\"]", ["a", "b"]),
    ("a list in a string", {"type": "array"}, '"[1, 2]"', [1, 2]),
    ("a list of escaped texts", {"type": "array"}, r'["a\"b"]', ['a"b']),
    ("a list that was escaped twice", {"type": "array"}, r"[\\\"a\\\"]", r"[\\\"a\\\"]"),
    ("an escaped list where a string may stand", {"type": ["array", "string"]}, r"[\"a\"]", r"[\"a\"]"),
    ("list or object, the list", {"type": ["array", "object"]}, "[1]", [1]),
    ("list or object, the object", {"anyOf": [{"type": "array"}, {"type": "object"}]}, "{'a': 1}", {"a": 1}),
    ("list or object, a brace list", {"type": ["array", "object"]}, "{'a', 'b'}", ["a", "b"]),
    ("list or object, an escaped object", {"type": ["array", "object"]}, r"{\"a\": 1}", {"a": 1}),
    ("a brace list is no list for an object", {"type": "object"}, '{"a", "b"}', '{"a", "b"}'),
    ("a brace list for a list", {"type": "array"}, '{"a", "b"}', ["a", "b"]),
    ("an object for a list", {"type": "array"}, '{"a": 1}', '{"a": 1}'),
    ("not nullable", {"type": "string", "nullable": False}, "null", "null"),
    ("an enum of numbers", {"enum": [1, 2]}, "2", 2),
    ("an enum of strings", {"enum": ["1", "2"]}, "2", "2"),
    ("an enum with nothing", {"enum": ["a", None]}, "null", None),
    ("an enum of all kinds", {"enum": [1.5, True, {}, []]}, "true", True),
    ("an enum that lists it as a number", {"enum": ["7", 8]}, "8", 8),
    ("a number in quotes", {"type": "number"}, '"1.5"', 1.5),
    ("an integer in escaped quotes", {"type": "integer"}, r"\"12\"", 12),
    ("a constant", {"const": 5}, "5", 5),
    ("a constant string", {"const": "5"}, "5", "5"),
    ("an enum with a type", {"type": "string", "enum": ["1", "2"]}, "1", "1"),
    ("a reference", {"$ref": "#/$defs/Node"}, '{"value": 1}', {"value": 1}),
    ("a reference to a string", {"$ref": "#/$defs/Name"}, "5", "5"),
    ("a reference in anyOf", {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}, "null", None),
    ("a reference to itself", {"$ref": "#/$defs/Self"}, "5", "5"),
    ("a reference to nowhere", {"$ref": "#/$defs/Nowhere"}, "5", "5"),
    ("properties without a type", {"properties": {"a": {}}}, '{"a": 1}', {"a": 1}),
    ("items without a type", {"items": {"type": "string"}}, '["a"]', ["a"]),
    ("other names for types", {"type": "int"}, "5", 5),
    ("types in capitals", {"type": "BOOLEAN"}, "true", True),
    ("a type that is none", {"type": "any"}, "5", "5"),
    ("no schema", None, "5", "5"),
    ("a schema that is no object", True, "5", "5"),
    ("an empty schema", {}, '{"a": 1}', '{"a": 1}'),
]


@pytest.mark.parametrize(("schema", "text", "value"), [pytest.param(*rest, id=name) for name, *rest in TYPED])
def test_a_schema_decides_what_a_text_means(schema: Any, text: str, value: object) -> None:
    found = meant(text, schema)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-0.5", -0.5),
        ("1e2", 100.0),
        ("007", "007"),
        ("+5", "+5"),
        ("5.", "5."),
        ("true", True),
        ("True", "True"),
        ("null", None),
        ("None", "None"),
        ('{"a": [1]}', {"a": [1]}),
        ("{'a': 1}", "{'a': 1}"),
        ("(1, 2)", "(1, 2)"),
        ('"a"', "a"),
        ("a b", "a b"),
        ("", ""),
    ],
)
def test_without_a_schema_a_dialect_may_read_JSON(text: str, value: object) -> None:
    assert meant(text, None, "json") == value


def test_a_field_is_found_through_everything_a_schema_is_put_together_of() -> None:
    root: dict[str, Any] = {
        "allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"b": {"type": "integer"}}}],
        "anyOf": [{"properties": {"c": {"type": "boolean"}}}],
        "additionalProperties": {"type": "null"},
        "$defs": {"Base": {"properties": {"a": {"type": "string"}}}},
    }
    assert property_schema(root, "a") == {"type": "string"}
    assert property_schema(root, "b") == {"type": "integer"}
    assert property_schema(root, "c") == {"type": "boolean"}
    assert property_schema(root, "d") == {"type": "null"}
    assert property_schema(None, "a") is None
    assert property_schema({"properties": []}, "a") is None


def test_a_field_of_several_branches_may_have_the_type_of_each() -> None:
    branches = [{"properties": {"v": {"type": "string"}}}, {"properties": {"v": {"type": "integer"}}}]
    for schema in ({"anyOf": branches}, {"oneOf": branches[::-1]}):
        assert allowed_types(property_schema(schema, "v"), schema) == {"string", "integer"}
    assert typed_json('"null"', frozenset({"string", "null"}), "json") == '"null"'


def test_nested_schemas_are_found_from_the_root() -> None:
    root = {"properties": {"tree": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": NODE, "List": {"items": NODE}}}
    tree = property_schema(root, "tree")
    deeper = property_schema(tree, "next", root)
    assert property_schema(deeper, "value", root) == {"type": "integer"}
    assert items_schema({"$ref": "#/$defs/List"}, root) is NODE
    assert items_schema({"type": "array"}, root) is None


def test_unknown_names_of_types_are_left_out() -> None:
    assert named_types(["string", "any", 5, None]) == {"string"}
    assert named_types(None) == frozenset()


def test_a_schema_of_schemas_without_end_is_read_in_bounded_time() -> None:
    wide: dict[str, Any] = {"anyOf": [{"anyOf": [{"$ref": "#/x"}] * 50} for _ in range(50)], "x": {}}
    wide["x"] = {"oneOf": [wide] * 1000}
    assert allowed_types(wide, wide) == frozenset()
    deep: dict[str, Any] = {"type": "integer"}
    for _ in range(100_000):
        deep = {"allOf": [deep]}
    assert allowed_types(deep, deep) == frozenset()


# --- the streamed path ------------------------------------------------------------------------------


def streamed(pieces: list[str], schema: Any, trim: Trim, untyped: Untyped) -> str:
    """The JSON of an object with one field, written piece by piece."""
    reader = DialectReader({"f": {"type": "object", "properties": {} if schema is None else {"a": schema}}})
    reader.open("f")
    writer = ArgumentWriter(reader, "f", trim, untyped)
    writer.begin("a")
    for piece in pieces:
        writer.add(piece)
    writer.end()
    writer.finish()
    events = reader.output.take()
    return "".join(event.text for event in events if isinstance(event, InputDelta))


SCHEMAS = st.sampled_from([schema for _, schema, _, _ in TYPED if isinstance(schema, dict | None)])
VALUES = st.one_of(
    st.sampled_from([text for _, _, text, _ in TYPED]), st.text(alphabet='a1\n "\\{}[]<é\U0001f600\u0301', max_size=20)
)


@pytest.mark.law
@given(st.lists(VALUES.filter(bool), max_size=6), SCHEMAS, st.sampled_from(["none", "newline"]), st.data())
def test_a_streamed_value_is_what_the_whole_one_is(
    pieces: list[str], schema: Any, trim: Trim, data: st.DataObject
) -> None:
    untyped: Untyped = data.draw(st.sampled_from(["string", "json"]))
    text = "".join(pieces)
    if trim == "newline":
        text = text.removeprefix("\n").removesuffix("\n")
    root = {"type": "object", "properties": {"a": schema}}
    wanted = msgspec.json.decode(typed_json(text, allowed_types(schema, root), untyped))
    written = streamed(pieces, schema, trim, untyped)
    assert msgspec.json.decode(written) == {"a": wanted}


@pytest.mark.law
@given(st.text(alphabet='a1\n "\\<>/é\U0001f600', max_size=40), st.integers(1, 9))
def test_strings_are_kept_to_the_last_character(value: str, step: int) -> None:
    tools = [{"name": "f", "parameters": {"properties": {"a": {"type": "string"}}}}]
    text = f'<minimax:tool_call><invoke name="f"><parameter name="a">{value}</parameter></invoke></minimax:tool_call>'
    stream = TextToolStream(dialect="minimax_m2", tools=tools)
    events = [event for start in range(0, len(text), step) for event in stream.feed(text[start : start + step])]
    found = parsed_text(events + stream.finish())
    assert found == parse_text(text, dialect="minimax_m2", tools=tools)
    assert [call.arguments for call in found.calls] == [{"a": value}]


def test_a_string_is_passed_on_while_it_comes_and_other_values_when_they_are_whole() -> None:
    tools = [{"name": "f", "parameters": {"properties": {"a": {"type": "string"}, "n": {"type": "integer"}}}}]
    stream = TextToolStream(dialect="glm45", tools=tools)
    stream.feed("<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>" + "zero " * 20)
    assert [event.text for event in stream.feed("one ") if isinstance(event, InputDelta)] == ["one "]
    stream.feed("two</arg_value>\n<arg_key>n</arg_key>\n<arg_value>")
    assert stream.feed("12") == []
    events = stream.feed("3</arg_value>\n</tool_call>")
    assert "".join(event.text for event in events if isinstance(event, InputDelta)) == "123}"


def test_nested_tags_are_a_list_or_an_object_by_schema_and_by_name() -> None:
    """`item` is what a list calls what it holds."""
    mark = "]<]minimax[>["
    either = {"type": ["array", "object"], "items": {"type": "integer"}, "properties": {"a": {"type": "integer"}}}
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"x": either}}}
    for inner, value in (("<item>1|</item>|<item>2|</item>", [1, 2]), ("<a>1|</a>", {"a": 1})):
        text = f'|<tool_call>|<invoke name="f">|<x>|{inner}|</x>|</invoke>|</tool_call>'.replace("|", mark)
        assert parse_text(text, dialect="minimax_m3", tools=[tool]).calls[0].arguments == {"x": value}
