"""Laws of bulk conversion: what does not come back the same is in the report, and every row is counted once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.bulk.samples import SAMPLES
from support.bulk.strategies import conversations, json_values
from support.conversations.strategies import conversations as broken_conversations
from toolglot import bulk
from toolglot.bulk.formats import get, readers
from toolglot.bulk.meaning import meaning
from toolglot.bulk.report import FATES
from toolglot.conversation import Conversation, canonical_json

BOTH_WAYS = [
    name for name, found in bulk.known_formats().items() if found.write and found.read and not found.takes_preferences
]
READABLE = [found.name for found in readers()]
MUTED: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.5,
        "",
        "x",
        "[",
        "{}",
        '{"name": 1}',
        [],
        {},
        [[]],
        [None],
        [1],
        {"a": None},
        "<tools>",
        "[f(",
    ]
)


@pytest.mark.law
@pytest.mark.parametrize("name", BOTH_WAYS)
@settings(max_examples=25)
@given(conversation=conversations())
def test_what_does_not_come_back_the_same_is_in_the_report(name: str, conversation: Conversation) -> None:
    row = msgspec.json.decode(canonical_json.dump(conversation))
    batch = bulk.convert_batch([row], source="conversation", target=name)
    (report,) = batch.reports
    if report.fate == "set_aside":
        assert report.reason
        return
    again, _ = bulk.read_example(batch.rows[0], name)
    was = meaning(bulk.Example(conversation=conversation))
    assert meaning(again) == was or report.is_changed, report


@pytest.mark.law
@pytest.mark.parametrize("name", [*BOTH_WAYS, "text:hermes"])
@settings(max_examples=25)
@given(conversation=broken_conversations)
def test_any_conversation_is_converted_or_set_aside_with_a_reason(name: str, conversation: Conversation) -> None:
    try:
        row = msgspec.json.decode(canonical_json.dump(conversation))
    except ValueError:
        return
    (report,) = bulk.convert_batch([row], source="conversation", target=name).reports
    assert report.fate == "converted" or report.reason


@pytest.mark.law
@pytest.mark.parametrize("name", READABLE)
@settings(max_examples=25)
@given(rows=st.lists(json_values, max_size=4))
def test_any_json_is_counted_once(name: str, rows: list[Any]) -> None:
    batch = bulk.convert_batch([msgspec.json.encode(row) for row in rows], source=name, target="messages")
    assert sum(batch.counts[fate] for fate in FATES) == len(rows)


@pytest.mark.law
@pytest.mark.parametrize("name", SAMPLES)
@settings(max_examples=25)
@given(data=st.data())
def test_a_row_with_a_changed_field_is_counted_once(name: str, data: st.DataObject) -> None:
    """Each field of a true row is replaced by a value of another type."""
    row = msgspec.json.decode(msgspec.json.encode(SAMPLES[name]))
    places = list(_places(row))
    holder, key = data.draw(st.sampled_from(places))
    holder[key] = data.draw(MUTED)
    target = "messages-preference" if "preference" in name else "openai"
    batch = bulk.convert_batch([row], source=name, target=target)
    assert batch.counts["rows"] == 1


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in items:
        yield value, key
        yield from _places(held)


@pytest.mark.law
@settings(max_examples=25)
@given(data=st.binary(max_size=60))
def test_any_bytes_are_a_row_that_is_set_aside_or_read(data: bytes) -> None:
    batch = bulk.convert_batch([data], source="messages", target="openai")
    assert batch.counts["rows"] == 1


@pytest.mark.law
@pytest.mark.parametrize("name", BOTH_WAYS)
@settings(max_examples=25)
@given(conversation=conversations())
def test_the_same_rows_give_the_same_bytes_and_a_second_time_changes_nothing(
    name: str, conversation: Conversation
) -> None:
    row = msgspec.json.decode(canonical_json.dump(conversation))
    one, other = (bulk.convert_batch([row], source="conversation", target=name) for _ in range(2))
    assert [output.as_line() for output in one.outputs] == [output.as_line() for output in other.outputs]
    for output in one.outputs:
        again = bulk.convert_batch([output.as_line()], source=name, target=name)
        assert again.reports[0].fate == "converted"
        first, _ = bulk.read_example(output.as_row(), name)
        second, _ = bulk.read_example(again.rows[0], name)
        assert meaning(second) == meaning(first) or again.reports[0].is_changed
    assert get(name).name == name
