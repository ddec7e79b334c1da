"""JSON text and plain values: bounded, positioned, fixed on request, linear in time."""

from __future__ import annotations

import collections
import enum
import json
import math
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations.strategies import json_objects, json_values
from support.counted_work import is_linear, methods_called_on, no_hang
from toolglot import jsontext
from toolglot.errors import InputError, JSONError, LimitError, TruncatedJSONError
from toolglot.jsontext import (
    CIRCULAR,
    PARSER_DEPTH,
    REPORTED_CHANGES,
    Change,
    clone,
    fix_surrogates,
    has_duplicate_keys,
    json_path,
    parse,
)
from toolglot.limits import Limits


def refused(data: bytes | str, limits: Limits | None = None) -> InputError:
    with pytest.raises(InputError) as caught:
        parse(data, limits=limits or Limits(), path="$.body")
    assert caught.value.path.startswith("$.body")
    return caught.value


@pytest.mark.law
@given(json_values, st.booleans())
def test_whatever_json_writes_is_read_back_equal_and_unmended(value: object, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert parse(text) == parse(text.encode()) == jsontext.Parsed(value)


def test_a_byte_order_mark_is_tolerated() -> None:
    assert parse(b"\xef\xbb\xbf{}").value == parse("\ufeff{}").value == {}


def test_of_equal_keys_the_last_wins() -> None:
    assert parse('{"a":1,"a":2}').value == {"a": 2}


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ('{"é":x}', 5),
        ('{\n "é":1,\n "b":x}', 15),
        ("[1,]", 3),
        ("{}x", 2),
        ("NaN", 0),
        ("[Infinity]", 1),
        ('"\x01"', 1),
        ('"\\UD83D"', 2),
        ('"é\\x"', 3),
    ],
)
def test_malformed_text_is_refused_at_its_character(text: str, position: int) -> None:
    error = refused(text)
    assert isinstance(error, JSONError)
    assert not isinstance(error, TruncatedJSONError)
    assert error.position == position
    assert f"at character {position}" in str(error)
    assert vars(pickle.loads(pickle.dumps(error))) == vars(error)  # noqa: S301


@pytest.mark.law
@given(json_objects, st.booleans())
def test_F1_a_cut_is_distinguished_from_a_mistake_at_every_byte(value: dict[str, object], ascii_only: bool) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only).encode()
    for end in range(len(data)):
        error = refused(data[:end])
        assert isinstance(error, TruncatedJSONError)
        assert error.position == len(data[:end].decode(errors="ignore"))


@pytest.mark.parametrize("data", [b'{"a":"\xff"}', b'{"\xff":1}', b'["\xed\xa0\x80"]', b"\xff", b'["\xc0\x80"]'])
def test_bytes_that_are_not_utf8_are_refused_at_their_byte(data: bytes) -> None:
    error = refused(data)
    assert isinstance(error, JSONError)
    assert not isinstance(error, TruncatedJSONError)
    assert f"byte {error.position} is not UTF-8" in error.message


def test_something_that_is_not_text_is_refused() -> None:
    assert "expected JSON text, got 5" in str(refused(5))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "number",
    [
        "1e400",
        "-1E+400",
        "10e308",
        "1e0309",
        "9" * 309 + ".0",
        "1" * 220 + "e99",
        "0.1e400",
        "1" * 302 + "e9",
    ],
)
def test_a_number_that_overflows_is_refused_at_its_path(number: str) -> None:
    error = refused(f'{{"a":[0,{number}]}}')
    assert error.path == "$.body.a[1]"
    assert "too large" in error.message


def test_a_number_that_only_looks_as_if_it_overflows_is_read() -> None:
    assert parse('[1e308, "2e999", 1e-400, ' + "1" * 300 + "]").value[:3] == [1e308, "2e999", 0.0]


@pytest.mark.parametrize("data", ["1" * 5000, b"9" * 4301])
def test_an_integer_too_long_for_python_is_refused(data: bytes | str) -> None:
    assert "number out of range" in refused(data).message


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("depth", [1, 7, PARSER_DEPTH])
def test_our_depth_limit_is_the_one_enforced(opening: str, depth: int) -> None:
    closing = "]" if opening == "[" else "}"
    limits = Limits(max_depth=depth)
    for core in ("1", "[]", '"[[[["'):
        deepest = depth - (core == "[]")
        if deepest >= 0:
            parse(opening * deepest + core + closing * deepest, limits=limits)
        error = refused(opening * (deepest + 1) + core + closing * (deepest + 1), limits)
        assert isinstance(error, LimitError)
        offset = (depth + (core != "[]") - 1) * len(opening) if core != "[]" else (deepest + 1) * len(opening)
        assert f"max_depth={depth} at character {offset}" in error.message


def test_wide_documents_are_not_deep() -> None:
    assert parse("[" + "[]," * 500 + "{}]").value[-1] == {}


@pytest.mark.parametrize("data", ["[" * 10_000, "[" * 10_000 + "]" * 10_000, '{"a":' * 10_000])
def test_depth_10000_is_a_limit_error_whatever_the_limit(data: str) -> None:
    for limits in (Limits(), Limits(max_depth=200)):
        error = refused(data, limits)
        assert isinstance(error, LimitError)
        assert f"max_depth={PARSER_DEPTH}" in error.message


def test_100_megabytes_are_refused_before_anything_is_done() -> None:
    text = "[" * 100_000_000
    for data in (text, text.encode()):
        assert methods_called_on(data, partial(refused, data)) == []
        assert "max_bytes" in refused(data).message


def test_characters_are_measured_in_bytes() -> None:
    assert isinstance(refused('"éééé"', Limits(max_bytes=8)), LimitError)
    assert parse('"éééé"', limits=Limits(max_bytes=10)).value == "éééé"


@pytest.mark.parametrize(
    ("text", "nodes"),
    [("[1,2,3]", 4), ('{"a":",,,,[[[[{{{{","b":[ ]}', 3), ('["\\",,,,",{}, [\n],[1]]', 6), ('["a"]', 2)],
)
def test_values_are_counted_before_they_are_built(text: str, nodes: int) -> None:
    assert clone(parse(text, limits=Limits(max_nodes=nodes)).value).nodes == nodes
    assert "max_nodes" in refused(text, Limits(max_nodes=nodes - 1)).message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud83d"', "\ufffd"),
        (r'"\uDE00x"', "\ufffdx"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd\U0001f600"),
        (r'"\ud83dA\uD83D\uDE00"', "\ufffdA\U0001f600"),
        (r'"\\\ud83d\\ud83d"', "\\\ufffd\\ud83d"),
        (r'"\ud83d\n"', "\ufffd\n"),
        (r'{"\udfff":1}', {"\ufffd": 1}),
        ('"\ud83d"', "\ufffd"),
        ('"a\ude00\ud83d"', "a\ufffd\ufffd"),
    ],
)
def test_G4_half_a_surrogate_pair_becomes_the_replacement_character(text: str, value: object) -> None:
    parsed = parse(text)
    assert parsed.value == value
    assert len(parsed.repairs) == 1
    assert "U+FFFD" in parsed.repairs[0]


@pytest.mark.parametrize("text", [r'"\\ud83d"', r'"\ud83d\ude00"', '"\U0001f600"', r'"\\\\ud83d"'])
def test_G4_what_is_whole_is_not_fixed(text: str) -> None:
    assert parse(text) == jsontext.Parsed(json.loads(text))


@pytest.mark.law
@given(st.text(st.characters(categories=["Cs", "Ll"])))
def test_G4_escaped_text_of_any_code_units_is_read(text: str) -> None:
    parsed = parse(json.dumps([text]))
    assert parsed.value == [fix_surrogates(text)]
    parsed.value[0].encode()
    assert bool(parsed.repairs) == (fix_surrogates(text) != json.loads(json.dumps(text)))


@pytest.mark.parametrize(
    "unit", ['"', "\\", '\\"', "\\ud83d", "[", "{", "1", "1e999", '"\\', ",", " ", "\n", "[[],", "\udc00"]
)
@pytest.mark.parametrize("start", ["", '"', "["])
def test_work_is_linear_for_hostile_text(unit: str, start: str) -> None:
    def read(length: int) -> None:
        with pytest.raises(InputError):
            parse(start + unit * (length // len(unit)), limits=Limits(max_nodes=10))

    assert is_linear(lambda length: lambda: read(length), 5_000)
    with no_hang():
        read(1_000_000)


def test_a_path_quotes_odd_names_and_is_bounded() -> None:
    assert json_path("$", ["a", 0, "b c", "\ud800"]) == "$.a[0]['b c']['\\ud800']"
    assert len(json_path("$", ["x" * 500] * 500)) == jsontext.PATH_CHARACTERS


class Loud(dict[str, object]):
    def items(self) -> Any:
        raise AssertionError("called")

    __iter__ = __len__ = keys = values = items


class Endless:
    def __iter__(self) -> Any:
        raise AssertionError("called")

    __repr__ = __str__ = __len__ = __hash__ = __iter__


class LyingType(type):
    def __getattribute__(cls, name: str) -> Any:
        raise AssertionError("called")


class Colour(enum.Enum):
    RED = 1


class Name(str):
    __slots__ = ()


class Ratio(float):
    pass


class Level(enum.IntEnum):
    LOW = 3


def changed(value: object) -> tuple[object, str]:
    cloned = clone([value])
    (change,) = cloned.changes
    assert change.path == "$[0]"
    return cloned.value[0], change.reason


@pytest.mark.law
@given(json_values)
def test_a_plain_value_is_its_own_clone(value: object) -> None:
    cloned = clone(value)
    assert cloned.value is value
    assert cloned.changes == ()


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ((1, [2]), [1, [2]]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({(1,)}, "[not serialisable: set]"),
        (Loud(a=1), {"a": 1}),
        (collections.OrderedDict(a=1), {"a": 1}),
        (collections.UserDict(a=1), "[not serialisable: UserDict]"),
        (Name("x"), "x"),
        (Ratio(1.5), 1.5),
        (Level.LOW, 3),
        (Colour.RED, "[not serialisable: Colour]"),
        (b"x", "[not serialisable: bytes]"),
        (len, "[not serialisable: builtin_function_or_method]"),
        (Change("$", ""), "[not serialisable: Change]"),
        (Endless(), "[not serialisable: Endless]"),
        (math.nan, "[not serialisable: NaN or infinity]"),
        (-math.inf, "[not serialisable: NaN or infinity]"),
        pytest.param(10**5000, "[not serialisable: an integer of more than 4300 digits]", id="huge"),
        ("a\ud83d", "a\ufffd"),
    ],
)
def test_what_is_not_plain_json_becomes_so_and_is_reported(value: object, plain: object) -> None:
    found, reason = changed(value)
    assert found == plain
    assert type(found) is type(plain)
    assert reason
    json.dumps(found, allow_nan=False).encode()


def test_objects_that_lie_about_their_class_are_not_trusted() -> None:
    def lie(_: object) -> Any:
        raise AssertionError("called")

    deceiver: Any = LyingType("Deceiver", (), {})
    liar = type("Liar", (), {"__class__": property(lie)})()
    assert clone(liar).value == "[not serialisable: Liar]"
    assert clone(LyingType("Liar", (), {})).value == "[not serialisable: LyingType]"
    assert clone(object.__new__(deceiver)).value == "[not serialisable: Deceiver]"


def test_keys_become_text_and_stay_apart() -> None:
    value = {1: "a", "1": "b", 1.5: "c", None: "d", False: "e", (1,): "f", (2,): "g", "\ud800": "h", "z": "i"}
    cloned = clone(value)
    assert cloned.value == {
        "1#2": "a",
        "1": "b",
        "1.5": "c",
        "null": "d",
        "false": "e",
        "[not serialisable: tuple]": "f",
        "[not serialisable: tuple]#2": "g",
        "\ufffd": "h",
        "z": "i",
    }
    assert [change.path for change in cloned.changes][:2] == ["$['1#2']", "$['1.5']"]
    assert len(cloned.changes) == 7


def test_R_004_20_circles_are_cut_and_never_shared() -> None:
    ring: dict[str, Any] = {"calm": {"x": [1]}}
    ring["self"] = [ring]
    cloned = clone({"ring": ring})
    assert cloned.value == {"ring": {"calm": {"x": [1]}, "self": [CIRCULAR]}}
    assert cloned.value["ring"] is not ring
    assert cloned.value["ring"]["calm"] is ring["calm"]
    assert cloned.changes == (Change("$.ring.self[0]", "a circular reference was cut"),)


@pytest.mark.law
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=15))
def test_R_004_20_any_graph_of_containers_becomes_a_finite_tree(edges: list[tuple[int, int]]) -> None:
    nodes: list[list[Any]] = [[number] for number in range(6)]
    for start, end in edges:
        nodes[start].append(nodes[end])
    cloned = clone(nodes)
    json.dumps(cloned.value)
    assert (cloned.value is nodes) == (not cloned.changes)


def test_shared_values_are_counted_as_written_out_and_visited_once() -> None:
    value: list[Any] = [1]
    for _ in range(15):
        value = [value, value]
    cloned = clone(value)
    assert cloned.value is value
    assert cloned.nodes == 3 * 2**15 - 1
    for _ in range(85):
        value = [value, value]
    with pytest.raises(LimitError, match="max_nodes"):
        clone(value)


def test_shared_strings_and_depths_are_counted_as_written_out() -> None:
    held = ["x" * 10]
    clone([held] * 10, limits=Limits(max_bytes=100))
    with pytest.raises(LimitError, match=r"^\$\[10\]: exceeds max_bytes=100"):
        clone([held] * 11, limits=Limits(max_bytes=100))
    deep = [[[0]]]
    clone([deep, [deep]], limits=Limits(max_depth=5))
    with pytest.raises(LimitError, match=r"^\$\[1\]\[0\]: exceeds max_depth=4"):
        clone([deep, [deep]], limits=Limits(max_depth=4))


def test_keys_count_towards_the_characters() -> None:
    with pytest.raises(LimitError, match="max_bytes"):
        clone({"x" * 50: 1}, limits=Limits(max_bytes=49))


def nested(depth: int) -> Any:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_depth_is_bounded_and_needs_no_recursion() -> None:
    with pytest.raises(LimitError, match="max_depth=200") as caught:
        clone(nested(10_000))
    assert len(caught.value.path) <= jsontext.PATH_CHARACTERS
    deep = nested(200)
    assert clone(deep, limits=Limits(max_depth=200)).value is deep
    with pytest.raises(LimitError):
        clone(deep, limits=Limits(max_depth=199))


def test_many_changes_are_counted_beyond_a_few() -> None:
    cloned = clone([b""] * 1000)
    assert len(cloned.changes) == REPORTED_CHANGES + 1
    assert cloned.changes[-1] == Change("$", f"{1000 - REPORTED_CHANGES} more changes like these")


def test_100_megabytes_in_a_string_are_refused_quickly() -> None:
    text = "\ud800" * 100_000_000
    with pytest.raises(LimitError, match="max_bytes"):
        clone({"a": text})


def test_work_is_linear_for_keys_that_become_equal() -> None:
    def hostile(count: int) -> dict[Any, int]:
        return {f"[not serialisable: tuple]#{n}": n for n in range(count)} | {(n,): n for n in range(count)}

    def cloned(count: int) -> Callable[[], object]:
        value = hostile(count)
        return lambda: clone(value)

    assert len(clone(hostile(4_000)).value) == 8_000
    assert is_linear(cloned, 500)


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#", {"a": [1, {"b/c": 2}], "~": 3}),
        ("#/a", [1, {"b/c": 2}]),
        ("#/a/1/b~1c", 2),
        ("#/~0", 3),
        ("#/a/9", None),
        ("#/a/x", None),
        ("#/a/0/z", None),
        ("#name", None),
        ("other#/a", None),
        (7, None),
    ],
)
def test_a_local_reference_is_followed_and_no_other(reference: object, found: object) -> None:
    assert jsontext.local_reference({"a": [1, {"b/c": 2}], "~": 3}, reference) == found


@pytest.mark.parametrize("quotes", range(5))
def test_a_key_that_comes_twice_is_found_however_quotes_are_written(quotes: int) -> None:
    body = b'{"a":1,"a":2,"b":"%b"}' % (rb"\u0022" * quotes)
    assert has_duplicate_keys(body, json.loads(body))
    assert has_duplicate_keys(body.decode(), json.loads(body))
    once = body.replace(b'"a":1,', b"")
    assert not has_duplicate_keys(once, json.loads(once))
