"""Every text is read in time that grows with its length, whatever it is made of.

Work is counted: a step is a line of toolglot or a call, and about forty of them take a microsecond.
"""

from __future__ import annotations

from functools import partial

import pytest

from support.counted_work import steps_of
from support.dialects.hostile_texts import hostile_units
from toolglot.dialects import registry
from toolglot.dialects.reading import MAX_CALLS
from toolglot.dialects.text_reading import ATTEMPT, MAX_SPENT
from toolglot.dialects.text_stream import ParsedText, TextToolStream, parse_text, parsed_text

A_UNIT = 120
"""Characters of each unit in a text of all of them."""
STEPS_A_CHARACTER = 20.0
STEPS_OF_THE_WORST = 40.0
LONG = 60_000


def all_units(dialect: str, size: int = A_UNIT) -> str:
    """One text of all that the hostile texts repeat."""
    return "".join(unit * (size // len(unit) + 1) for unit in hostile_units(dialect))


def read(text: str, dialect: str, piece: int) -> ParsedText:
    stream = TextToolStream(dialect=dialect, tools=["ls"])
    events = [event for at in range(0, len(text), piece) for event in stream.feed(text[at : at + piece])]
    return parsed_text(events + stream.finish())


@pytest.mark.parametrize("dialect", ["auto", *registry.names()])
def test_a_text_of_everything_that_takes_long_takes_few_steps_a_character(dialect: str) -> None:
    text = all_units(dialect)
    parse_text(text, dialect=dialect, tools=["ls"])  # patterns are compiled once
    assert steps_of(partial(parse_text, text, dialect=dialect, tools=["ls"])) <= STEPS_A_CHARACTER * len(text)


WORST = [
    "{",
    '{"name":',
    '{"id":{',
    "\n[ls(",
    "\n[ls()]",
    "<tool_call>",
    "<invoke ",
    "```{",
    '<|functi<invoke name="',
    '{"a":1}',
]


@pytest.mark.parametrize("unit", WORST)
def test_what_a_long_text_takes_does_not_depend_on_what_it_repeats(unit: str) -> None:
    text = unit * (LONG // len(unit))
    parse_text(text[:5_000], tools=["ls"])
    assert steps_of(partial(parse_text, text, tools=["ls"])) <= STEPS_OF_THE_WORST * len(text)


@pytest.mark.parametrize("piece", [7, 1000])
@pytest.mark.parametrize("unit", WORST)
def test_what_is_not_looked_at_does_not_depend_on_cuts(unit: str, piece: int) -> None:
    text = unit * (4 * MAX_SPENT // ATTEMPT) + CALL
    assert read(text, "auto", piece) == parse_text(text, tools=["ls"])


QUIET = "The settlement is rounded down here, as the ledger says.\n" * 600
CALL = '\n<tool_call>{"name": "ls", "arguments": {}}</tool_call>'


@pytest.mark.parametrize("unit", ["<tool_call>", '{"name":', "\n[ls("])
def test_a_call_behind_too_many_marks_is_found_again_after_some_text(unit: str) -> None:
    assert [each.name for each in parse_text(unit * 2_000 + QUIET + CALL, tools=["ls"]).calls] == ["ls"]


def test_marks_that_ordinary_text_has_do_not_hide_the_calls_behind_others() -> None:
    assert [each.name for each in parse_text('{"name":' * 5_000 + CALL, tools=["ls"]).calls] == ["ls"]


def test_more_calls_than_any_reply_has_are_text() -> None:
    call = '<tool_call>{"name": "ls", "arguments": {}}</tool_call>\n'
    found = parse_text(call * (MAX_CALLS + 2), dialect="hermes", tools=["ls"])
    assert len(found.calls) == MAX_CALLS
    assert found.text.strip().startswith("<tool_call>")
