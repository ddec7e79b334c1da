"""Generated JSON objects with unknown fields and nulls: what the strategies of every protocol are built from."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from support.conversations.strategies import json_values

Fields = dict[str, Any]

unknown_fields = st.dictionaries(st.sampled_from(["x_new", "~odd", "~content", "beta"]), json_values, max_size=2)


@st.composite
def wire_object(
    draw: st.DrawFn, always: dict[str, st.SearchStrategy[Any]], sometimes: dict[str, st.SearchStrategy[Any]]
) -> Fields:
    """An object with all of some fields, some of others, some of those null, and some unknown ones."""
    fields = {key: draw(values) for key, values in always.items()}
    for key, values in sometimes.items():
        choice = draw(st.integers(0, 5))
        if choice < 2:
            fields[key] = draw(values)
        elif choice == 2:
            fields[key] = None
    if draw(st.integers(0, 3)) == 0:
        for key, value in draw(unknown_fields).items():
            fields.setdefault(key, value)
    return fields


cache_marks = st.just({"type": "ephemeral"})
numbers = st.integers(0, 9) | st.floats(0, 1)
counts = st.integers(0, 10_000)
