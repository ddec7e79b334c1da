"""Where a path stands in a JSON text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.counted_work import is_linear, no_hang
from toolglot.cli.files.locations import LineIndex, TextSpan, locate
from toolglot.referee.paths import step

KEYS = st.sampled_from(["messages", "odd key", "it's", "both '\"", "a.b", "[0]", "ö", "", "\n", "x" * 100])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=15,
)


def paths(value: Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, step(path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths(inner, f"{path}[{index}]")


@pytest.mark.law
@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_law_the_text_at_the_position_of_a_path_is_its_value(value: Any, indent: int | None, only_ascii: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=only_ascii)
    wanted = dict(paths(value))
    for path, (start, end) in locate(text, wanted).items():
        assert json.loads(text[start:end]) == wanted[path]


@pytest.mark.law
@given(st.text(alphabet='{}[]",:a1\\ \n', max_size=40))
def test_law_text_that_is_not_json_has_some_position(text: str) -> None:
    for start, end in locate(text, ["$", "$.a", "$[1].a"]).values():
        assert 0 <= start <= end <= len(text)


def test_a_missing_value_is_at_its_nearest_ancestor() -> None:
    text = '{"a": {"b": 1}}'
    assert locate(text, ["$.a.missing.too"])["$.a.missing.too"] == (6, 14)
    assert locate(text, ["$.none"])["$.none"] == (0, 15)
    assert locate(text, ["body"])["body"] == (0, 15)


def test_of_equal_keys_the_last_counts() -> None:
    text = '{"a": 1, "a": 2}'
    start, end = locate(text, ["$.a"])["$.a"]
    assert text[start:end] == "2"


def test_lines_and_columns_count_characters_from_one() -> None:
    lines = LineIndex("{\r\n ö: 1\r\n}")
    assert lines.span(4, 5) == TextSpan(2, 2, 2, 3)
    assert lines.span(0, 11) == TextSpan(1, 1, 3, 2)
    assert lines.line(2) == " ö: 1"
    assert lines.line(3) == "}"


def test_work_is_linear_in_text_and_paths() -> None:
    def locating(count: int) -> Callable[[], object]:
        text = json.dumps({"messages": [{"content": "x" * 20}] * count})
        wanted = [f"$.messages[{index}].content" for index in range(count)]
        return lambda: locate(text, wanted)

    assert is_linear(locating, 500)
    with no_hang():
        assert isinstance(found := locating(50_000)(), dict)
    assert len(found) == 50_000
