"""The end of a JSON value in text that comes in pieces."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot.protocols.framing.json_end import ObjectEnd

values = st.recursive(
    st.none() | st.booleans() | st.integers(-10, 10) | st.text('"\\{}[]aé\n'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('"\\{}[]b'), inner),
    max_leaves=12,
)


@pytest.mark.law
@given(st.dictionaries(st.text('"\\{}[]c'), values), st.text(' {}[]"x'), st.data())
def test_the_end_is_found_where_it_is_however_the_text_is_cut(
    value: dict[str, Any], after: str, data: st.DataObject
) -> None:
    written = msgspec.json.encode(value).decode()
    text = " " + written + after
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    end = ObjectEnd()
    for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True):
        end.look(text[start:stop])
    assert end.end == 1 + len(written)


@pytest.mark.parametrize("text", ["", "  ", "{", '{"a": "}', '{"a":"\\"}', "[{}", "12", "null"])
def test_what_is_open_or_has_no_end_of_its_own_has_none(text: str) -> None:
    assert ObjectEnd().look(text) is None


def test_a_string_ends_at_its_quote() -> None:
    assert ObjectEnd().look('"a\\"b"c') == 6
