"""Laws of every dialect, on unusual texts: malformed examples, marks in any order, and hostile sizes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import counted_work
from support.conversations.event_grammar import check
from support.dialects.vectors import streamed, vectors
from toolglot.conversation.events import Finished, Started
from toolglot.dialects import registry
from toolglot.dialects.text_stream import ParsedText, TextToolStream, parse_text, parsed_text

TOOLS = ("ls", "pwd", "cat", "bash")
MAX_CUT = 1_500
_PARTS = re.compile(r"<[^<>]{1,40}>|\[/?[A-Z_]+\]|\s+|\w+|[^\w\s]")


@cache
def examples() -> list[tuple[str, str, list[Any]]]:
    return [
        (dialect, vector["text"], vector.get("tools", shared))
        for dialect, vector, shared in vectors()
        if len(vector["text"]) <= MAX_CUT
    ]


@cache
def parts(dialect: str) -> list[str]:
    """What the examples of a dialect are made of, and its marks."""
    found = {part for name, text, _ in examples() if name == dialect for part in _PARTS.findall(text)}
    return sorted(found | {opener.strip("\n") for opener in registry.get(dialect).openers})


@st.composite
def malformed(draw: st.DrawFn) -> tuple[str, str, list[Any]]:
    """An example with pieces replaced, or nothing but pieces, and the dialect to read it in."""
    dialect, text, tools = draw(st.sampled_from(examples()))
    pieces = st.sampled_from(parts(dialect)) | st.sampled_from(
        ["", "<", ">", " ", "\n", "\\", '"', "`", "```", "{", "}"]
    )
    if draw(st.booleans()):
        text = "".join(draw(st.lists(pieces, min_size=1, max_size=25)))
    else:
        for _ in range(draw(st.integers(1, 4))):
            start = draw(st.integers(0, len(text)))
            text = text[:start] + draw(pieces) + text[start + draw(st.integers(0, 12)) :]
    return draw(st.sampled_from([dialect, dialect, "auto"])), text, tools


def same_however_cut(dialect: str, text: str, tools: list[Any], positions: list[int]) -> ParsedText:
    whole = parse_text(text, dialect=dialect, tools=tools)
    for cuts in (
        list(range(len(text))),
        list(range(0, len(text), 3)),
        [position % (len(text) + 1) for position in positions],
    ):
        events = streamed(text, cuts, dialect, tools)
        check([Started(), *events, Finished("stop")])
        assert parsed_text(events) == whole
    return whole


@pytest.mark.law
@given(malformed(), st.lists(st.integers(0, MAX_CUT), max_size=5))
def test_a_malformed_text_is_read_the_same_however_it_is_cut(example: Any, positions: list[int]) -> None:
    dialect, text, tools = example
    same_however_cut(dialect, text, tools, positions)


@pytest.mark.law
@given(st.text(max_size=80), st.sampled_from(["auto", *registry.names()]), st.lists(st.integers(0, 80), max_size=4))
def test_any_text_can_be_read(text: str, dialect: str, positions: list[int]) -> None:
    same_however_cut(dialect, text, list(TOOLS), positions)


@pytest.mark.law
@given(malformed(), st.lists(st.integers(0, MAX_CUT), max_size=5))
def test_rescued_calls_do_not_depend_on_cuts(example: Any, positions: list[int]) -> None:
    dialect, text, tools = example
    text = f"<think>{text}"
    whole = parse_text(text, dialect=dialect, tools=tools, rescue_thinking=True)
    stream = TextToolStream(dialect=dialect, tools=tools, rescue_thinking=True)
    ends = sorted(position % (len(text) + 1) for position in positions)
    events = [
        event
        for start, end in zip([0, *ends], [*ends, len(text)], strict=True)
        for event in stream.feed(text[start:end])
    ]
    assert parsed_text(events + stream.finish()) == whole


# --- nothing is lost, nothing leaks -----------------------------------------------------------------

SURELY_MARKS = re.compile(
    r"<\|[\w]+\|>|</?tool_calls?>|</?function_calls>|\[TOOL_CALLS\]|<｜[^｜]+｜>|</?(?:invoke|longcat_tool_call)\b"
)


@pytest.mark.parametrize("dialect", registry.names())
def test_no_mark_of_a_call_that_was_found_is_in_text_or_arguments(dialect: str) -> None:
    """The expected text of an example is written by hand. No mark may be left beside it, also when the dialect is
    detected. Values that mention marks keep them."""
    leaks = []
    for name, text, tools in examples():
        if name != dialect:
            continue
        whole = parse_text(text, dialect=dialect, tools=tools)
        found = parse_text(text, tools=tools or [call.name for call in whole.calls])
        if [call.arguments for call in found.calls] != [call.arguments for call in whole.calls]:
            continue  # another dialect has read it: see test_dialect_auto
        if whole.calls and set(SURELY_MARKS.findall(found.text)) - set(SURELY_MARKS.findall(whole.text)):
            leaks.append((text, found.text))
    assert leaks == []


WORDS = st.lists(
    st.sampled_from(["alpha", "beta,", "gamma.", "δ", "1 < 2", "a > b", "\n", "- x"]), min_size=1, max_size=8
)


def _plain(words: list[str]) -> str:
    return " ".join(words)


@pytest.mark.law
@given(st.integers(0, 10_000), WORDS, WORDS, st.lists(st.integers(0, MAX_CUT), max_size=5))
def test_every_word_outside_of_markup_survives(
    number: int, before: list[str], after: list[str], positions: list[int]
) -> None:
    """Whole calls, with text around them."""
    usual = [each for each in FIRST if each is not None]
    dialect, text, tools = usual[number % len(usual)]
    text = f"{_plain(before)}\n{text}\n{_plain(after)}"
    found = same_however_cut("auto", text, tools, positions)
    wanted = f"{_plain(before)} {_plain(after)}".split()
    assert len(found.calls) == 1, dialect
    assert found.text.split() == wanted


@cache
def _first(dialect: str) -> tuple[str, str, list[Any]] | None:
    """The first example of a dialect, if it ends where its call does, so that text can follow."""
    _, text, tools = next(each for each in examples() if each[0] == dialect)
    around = f"before\n{text}\nafter"
    found = parse_text(around, tools=tools)
    return (dialect, text, tools) if found.text.split() == ["before", "after"] and len(found.calls) == 1 else None


FIRST = [_first(name) for name in registry.names()]


def test_text_can_surround_the_calls_of_most_dialects() -> None:
    assert [name for name, each in zip(registry.names(), FIRST, strict=True) if each is None] == NOT_AROUND


NOT_AROUND = ["bash_tag"]
"""Its first example offers no tool that runs commands."""


# --- hostile sizes ----------------------------------------------------------------------------------

SMALL, TIMES = 500, 8
OBJECT = '{"name": "ls", "arguments": '


def read(dialect: str, text: str, size: int) -> None:
    stream = TextToolStream(dialect=dialect, tools=TOOLS)
    for at in range(0, len(text), size):
        stream.feed(text[at : at + size])
    stream.finish()


def is_linear(make: Callable[[int], str], dialect: str, size: int) -> bool:
    """Whether a text eight times as long takes far less than 64 times as much work.

    What a candidate may keep back is bounded: a short text may be one that is read once, and a long one not. So where a
    pair of lengths stands on both sides of such a bound, a longer pair decides.
    """

    def reading(length: int) -> Callable[[], None]:
        return partial(read, dialect, make(length), size)

    return any(counted_work.is_linear(reading, length, times=TIMES, slack=3) for length in (SMALL, SMALL * TIMES))


@pytest.mark.parametrize("dialect", registry.names())
def test_marks_without_end_take_work_in_proportion_to_their_length(dialect: str) -> None:
    """Openers nested in openers, an opener in front of what never ends, for the dialect and where it is found out."""
    openers = list(dict.fromkeys(registry.get(dialect).openers))[:3]
    _, example, _ = next(each for each in examples() if each[0] == dialect)
    bodies = [*openers, example[: len(example) * 2 // 3]]
    slow = []
    for name, size in ((dialect, 5), ("auto", 10**9)):
        for body in bodies:
            for tail in (body, "{"):

                def make(length: int, body: str = body, tail: str = tail) -> str:
                    return body + tail * (length // len(tail))

                if not is_linear(make, name, size):
                    slow.append((name, body, tail))
    assert slow == []


@pytest.mark.parametrize("size", [5, 10**9], ids=["in pieces", "whole"])
@pytest.mark.parametrize(
    "body", ["<", "{", "[", "`", "` ", "```\n", "\n[", "\n", OBJECT, "<tool_call>", f"<tool_call>{OBJECT}", "<think>"]
)
def test_one_mark_over_and_over_takes_time_in_proportion_to_its_length(body: str, size: int) -> None:
    assert is_linear(lambda length: body * (8 * length // len(body)), "auto", size)


def test_ten_megabytes_are_read_with_automatic_detection_and_nothing_is_lost() -> None:
    stream = TextToolStream(tools=TOOLS)
    length = 0
    for _ in range(10):
        length += sum(len(getattr(event, "text", "")) for event in stream.feed("[" * 1_000_000))
    length += sum(len(getattr(event, "text", "")) for event in stream.finish())
    assert length == 10_000_000
