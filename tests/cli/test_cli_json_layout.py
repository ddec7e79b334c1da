"""Changed JSON keeps the layout of what did not change."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot.cli.files.json_layout import rewrite

scalars = (
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=5)
)
layouts = st.sampled_from(
    [
        {},
        {"indent": 2},
        {"indent": 4, "ensure_ascii": False},
        {"indent": "\t"},
        {"separators": (",", ":")},
        {"separators": (" ,", " : "), "ensure_ascii": False},
    ]
)


@given(values, values, layouts)
def test_the_answer_reads_as_the_new_value(before: Any, after: Any, layout: dict[str, Any]) -> None:
    text = json.dumps(before, **layout)
    written = rewrite(text, before, after)
    assert written is not None
    assert json.dumps(json.loads(written), sort_keys=True) == json.dumps(after, sort_keys=True)


@given(values, layouts)
def test_what_did_not_change_is_the_same_text(value: Any, layout: dict[str, Any]) -> None:
    text = f" \n{json.dumps(value, **layout)}\t\n"
    assert rewrite(text, value, json.loads(json.dumps(value))) == text


@given(st.lists(values, min_size=1, max_size=6), st.data())
def test_one_item_changes_and_the_others_keep_their_text(items: list[Any], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(items) - 1))
    texts = [json.dumps(item, indent=data.draw(st.sampled_from([None, 1, 3]))) for item in items]
    changed = [*items[:index], {"new": ["value"]}, *items[index + 1 :]]
    written = rewrite("[" + " ,\n ".join(texts) + "]", items, changed)
    assert written is not None
    rest = written
    for position, text in enumerate(texts):
        if position != index:
            assert text in rest
            rest = rest[rest.index(text) + len(text) :]


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ('{"a": 1, "b": 2}', {"a": 1, "b": 3}, '{"a": 1, "b": 3}'),
        ('{"a":1,"b":2}', {"a": 1}, '{"a":1}'),
        ('{"a":1}', {"a": 1, "c": [1, 2]}, '{"a":1,"c":[1,2]}'),
        ('{"a": 1.50,\n  "b": 2}', {"a": 1.5, "b": 3, "c": 4}, '{"a": 1.50,\n  "b": 3,\n  "c": 4}'),
        ('{\n    "a": [1, 2, 3]\n}', {"a": [1, 3]}, '{\n    "a": [1, 3]\n}'),
        ('{\n    "a": []\n}', {"a": [1]}, '{\n    "a": [\n        1\n    ]\n}'),
        ('{\n  "a": {}\n}', {"a": {}, "b": {"c": 1}}, '{\n  "a": {},\n  "b": {\n    "c": 1\n  }\n}'),
        ('["\\u00e4", 1]', ["ä", "ö"], '["\\u00e4", "\\u00f6"]'),
        ('["ä", 1]', ["ä", "ö"], '["ä", "ö"]'),
        ('{"a": 1, "a": 2, "b": 3}', {"a": 2, "b": 4}, '{"a": 2, "b": 4}'),
        ('[{"id": 1}, {"id": 2}]', [{"id": 0}, {"id": 1}, {"id": 2}], '[{"id": 0}, {"id": 1}, {"id": 2}]'),
        ("[true, 1, 1.0]", [1, 1, 1.0], "[1, 1, 1.0]"),
    ],
)
def test_changes_are_written_in_the_manner_of_the_text(text: str, after: Any, expected: str) -> None:
    assert rewrite(text, json.loads(text), after) == expected


@pytest.mark.parametrize(
    "text", ["", "{", '{"a": 1', '{"a": 1,}', "[1 2]", "[1, 2", "{} {}", "[nan]", "]", '{"a": 01}']
)
def test_text_that_is_not_json_has_no_layout(text: str) -> None:
    assert rewrite(text, {"a": 1}, {"a": 2}) is None


def test_a_text_of_another_value_has_no_layout() -> None:
    assert rewrite('{"a": 1}', {"a": 2}, {"a": 3}) is None


def test_what_nests_too_deeply_has_no_layout() -> None:
    assert rewrite("[" * 100_000 + "]" * 100_000, [], [1]) is None
