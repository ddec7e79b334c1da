"""Blocks come out one at a time, whatever order a provider says them in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from event_grammar import check
from toolglot.conversation import Failure, Media, Opaque, Text, Thinking, ToolCall, Usage
from toolglot.conversation.events import (
    Accumulator,
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    Finished,
    InputDelta,
    Started,
    Used,
)
from toolglot.errors import LimitError
from toolglot.limits import Limits
from toolglot.protocols.framing.sequence import MOST_TOLD, SAYING, THINKING, Sequence, call_of_object


def summed(sequence: Sequence) -> tuple[list[Event], Accumulator]:
    events = sequence.take()
    check(events)
    found = Accumulator()
    found.add(events)
    return events, found


def test_text_and_thinking_that_are_said_in_turns_are_blocks_of_their_own() -> None:
    sequence = Sequence()
    for key, piece in ((THINKING, "a"), (THINKING, "b"), (SAYING, "c"), (THINKING, "d"), (SAYING, "")):
        sequence.say(key, piece)
    sequence.finish("stop")
    _, found = summed(sequence)
    assert found.reply.turn.blocks == (Thinking("ab"), Text("c"), Thinking("d"))
    assert sequence.told == []


def test_H6_calls_whose_pieces_alternate_stay_apart() -> None:
    sequence = Sequence()
    sequence.open(0, ToolCall("a", "f"))
    sequence.add(0, '{"x":')
    sequence.open(1, ToolCall("b", "g"))
    for key, piece in ((1, '{"y":'), (0, "1"), (1, "2"), (0, "}"), (1, "}")):
        sequence.add(key, piece)
    sequence.finish("tool_calls")
    events, found = summed(sequence)
    assert [(call.id, call.arguments) for call in found.calls] == [("a", {"x": 1}), ("b", {"y": 2})]
    assert [event.block.name for event in events if isinstance(event, BlockStarted)] == ["f", "g"]  # type: ignore[union-attr]
    assert sequence.told


def test_a_call_that_has_all_of_its_arguments_gives_way_at_once() -> None:
    sequence = Sequence()
    sequence.open(0, ToolCall("a", "f"))
    sequence.add(0, "{}")
    sequence.open(1, ToolCall("b", "g"))
    assert [type(event) for event in sequence.take()] == [Started, BlockStarted, InputDelta, BlockEnded, BlockStarted]
    assert sequence.is_settled
    assert sequence.told == []


def test_H7_what_is_thought_between_two_pieces_of_arguments_waits_until_the_call_is_whole() -> None:
    sequence = Sequence()
    sequence.open(0, ToolCall("a", "f"))
    sequence.add(0, '{"x":')
    sequence.say(THINKING, "hm")
    assert not sequence.is_settled
    sequence.add(0, "1}")
    sequence.say(THINKING, "m")
    sequence.say(SAYING, "done")
    sequence.finish("tool_calls")
    _, found = summed(sequence)
    assert found.reply.turn.blocks == (
        ToolCall("a", "f", {"x": 1}),
        Thinking("hmm"),
        Text("done"),
    )


@pytest.mark.parametrize("said", ["length", "tool_calls", "stop", "error", None])
@pytest.mark.parametrize("written", ['{"a":', '{"a":"}', '{"a":[1,2'])
def test_F1_J4_a_call_without_its_end_was_cut_whatever_the_provider_says(said: Any, written: str) -> None:
    sequence = Sequence()
    sequence.open(0, ToolCall("a", "f"))
    sequence.add(0, written)
    sequence.finish(said)
    events, found = summed(sequence)
    assert found.calls == ()
    assert found.cut == (ToolCall("a", "f", raw_input=written),)
    assert isinstance(events[-1], Finished)
    assert events[-1].stop == ("error" if said == "error" else "length")


def test_F1_a_call_that_is_whole_stays_one_when_the_answer_was_cut_after_it() -> None:
    sequence = Sequence()
    sequence.open(0, ToolCall("a", "f"))
    sequence.add(0, "{}")
    sequence.finish("length")
    events, found = summed(sequence)
    assert [call.id for call in found.calls] == ["a"]
    assert isinstance(events[-1], Finished)
    assert events[-1].stop == "length"


def test_F1_a_call_that_was_cut_before_its_first_argument_is_not_one_without_arguments() -> None:
    sequence = Sequence()
    sequence.open(0, ToolCall("a", "f"))
    sequence.finish("length")
    _, found = summed(sequence)
    assert found.calls == ()


def test_F3_a_call_that_ends_without_arguments_has_none() -> None:
    sequence = Sequence()
    sequence.open(0, ToolCall("a", "f"))
    sequence.finish("tool_calls")
    _, found = summed(sequence)
    assert found.calls == (ToolCall("a", "f", {}, argument_fixes=("blank text stands for no arguments",)),)


def test_arguments_of_an_object_protocol_keep_no_spelling() -> None:
    sequence = Sequence(build_call=call_of_object)
    sequence.open(0, ToolCall("a", "f"))
    sequence.add(0, '{"a" : 1}')
    sequence.close(0)
    sequence.finish("stop")
    _, found = summed(sequence)
    assert found.calls == (ToolCall("a", "f", {"a": 1}),)
    assert found.reply.stop == "tool_calls"


@pytest.mark.parametrize(
    ("said", "calls", "meant"),
    [("stop", 1, "tool_calls"), ("tool_calls", 0, "stop"), ("length", 0, "length"), (None, 1, "tool_calls")],
)
def test_J1_J2_why_it_ended_is_derived_from_the_calls(said: Any, calls: int, meant: str) -> None:
    sequence = Sequence()
    sequence.say(SAYING, "hi")
    for number in range(calls):
        sequence.open(number, ToolCall(f"c{number}", "f"))
    sequence.finish(said)
    _, found = summed(sequence)
    assert found.reply.stop == meant


def test_a_failure_ends_what_is_open_as_cut_and_nothing_follows() -> None:
    sequence = Sequence()
    sequence.say(SAYING, "hal")
    sequence.fail(Failure("overloaded", "busy"))
    sequence.fail(Failure("server"))
    sequence.finish("stop")
    events, found = summed(sequence)
    assert isinstance(events[-1], Failed)
    assert found.cut == (Text("hal"),)
    assert found.failure == Failure("overloaded", "busy")


@pytest.mark.parametrize(
    ("open_block", "closes", "fails"),
    [(None, False, True), ("text", False, False), ("text", True, True), ("call", False, True), ("whole", False, False)],
)
def test_the_end_of_the_bytes_without_a_word_is_an_end_only_where_nothing_was_cut(
    open_block: str | None, closes: bool, fails: bool
) -> None:
    sequence = Sequence()
    if open_block == "text":
        sequence.open(0, Text("")) if closes else sequence.say(SAYING, "a")
    elif open_block is not None:
        sequence.open(0, ToolCall("a", "f"))
        sequence.add(0, '{"a":1' + ("}" if open_block == "whole" else ""))
    sequence.finish_unsaid(is_ended=True, closes_blocks=closes)
    events, _ = summed(sequence)
    assert isinstance(events[-1], Failed) == fails


def test_whole_blocks_media_and_usage_come_in_their_places() -> None:
    sequence = Sequence()
    sequence.start("id", "m")
    sequence.start("other")
    sequence.say(SAYING, "a")
    sequence.whole(Opaque("gemini", {"x": 1}))
    sequence.open("m", Media("image", "image/png", data=""))
    sequence.add("m", "QUJD")
    sequence.close("m")
    sequence.used(Usage(1, 2))
    sequence.update(SAYING, Text("x"))
    sequence.finish("stop")
    events, found = summed(sequence)
    assert events[0] == Started("id", "m")
    assert Used(Usage(1, 2)) in events
    assert found.reply.turn.blocks == (Text("a"), Opaque("gemini", {"x": 1}), Media("image", "image/png", data="QUJD"))


def test_what_is_known_of_a_block_can_grow_while_it_is_open() -> None:
    sequence = Sequence()
    sequence.open(0, Thinking())
    sequence.add(0, "why")
    sequence.update(0, Thinking(signature="s"))
    sequence.open(1, Text(""))
    sequence.update(1, Text("", signature="t"))
    assert (sequence.said(0), sequence.said(1), sequence.said(2)) == ("why", "", "")
    assert sequence.block(1) == Text("", signature="t")
    assert sequence.block(2) is None
    sequence.close(0)
    sequence.close(1)
    sequence.finish("stop")
    _, found = summed(sequence)
    assert found.reply.turn.blocks == (Thinking("why", signature="s"), Text("", signature="t"))


def test_an_abandoned_reply_says_what_was_whole() -> None:
    sequence = Sequence()
    sequence.open(0, ToolCall("a", "f"))
    sequence.add(0, "{}")
    sequence.open(1, ToolCall("b", "f"))
    sequence.add(1, "{")
    sequence.abandon()
    sequence.abandon()
    events = sequence.take()
    check(events, is_over=False)
    found = Accumulator()
    found.add(events)
    assert [call.id for call in found.calls] == ["a"]
    assert not found.is_over


def test_what_is_told_is_bounded_and_told_once() -> None:
    sequence = Sequence()
    for number in range(200):
        sequence.tell(f"oddity {number % 80}")
    assert len(sequence.told) == MOST_TOLD


def test_a_reply_that_never_ends_is_refused() -> None:
    sequence = Sequence(limits=Limits(max_bytes=74))
    sequence.say(SAYING, "0123456789")
    with pytest.raises(LimitError, match="max_bytes"):
        sequence.say(SAYING, "x")


steps = st.lists(
    st.tuples(
        st.sampled_from(["say", "think", "open", "add", "close", "whole", "used"]),
        st.integers(0, 3),
        st.sampled_from(["", "a", "{", "}", '"', "{}", '{"a":1}']),
    ),
    max_size=30,
)


@pytest.mark.law
@given(steps, st.sampled_from(["stop", "tool_calls", "length", "error", None, "fail", "unsaid"]))
def test_whatever_is_said_in_whatever_order_the_grammar_holds_and_no_text_is_lost(
    given_steps: list[tuple[str, int, str]], end: Any
) -> None:
    sequence = Sequence()
    said: dict[Any, list[str]] = {}
    for do, key, piece in given_steps:
        if do == "say":
            sequence.say(SAYING, piece)
            said.setdefault(SAYING, []).append(piece)
        elif do == "think":
            sequence.say(THINKING, piece)
            said.setdefault(THINKING, []).append(piece)
        elif do == "open" and not sequence.is_open(key):
            sequence.open(key, ToolCall(f"c{key}", "f"))
        elif do == "add" and sequence.is_open(key):
            sequence.add(key, piece)
            said.setdefault(key, []).append(piece)
        elif do == "close":
            sequence.close(key)
        elif do == "whole":
            sequence.whole(Opaque("x", {}))
        elif do == "used":
            sequence.used(Usage(key))
    if end == "fail":
        sequence.fail(Failure("server"))
    elif end == "unsaid":
        sequence.finish_unsaid(is_ended=True)
    else:
        sequence.finish(end)
    events = sequence.take()
    check(events)
    found = Accumulator()
    found.add(events)
    assert found.reply.turn.text == "".join(said.get(SAYING, []))
    thought = "".join(block.text for block in found.reply.turn.blocks if isinstance(block, Thinking))
    assert thought == "".join(said.get(THINKING, []))
    written = "".join(event.text for event in events if isinstance(event, InputDelta))
    assert sorted(written) == sorted("".join("".join(said.get(key, [])) for key in range(4)))


def test_F3_a_call_with_null_for_its_arguments_is_whole_and_the_next_one_is_in_its_turn() -> None:
    sequence = Sequence()
    for number in range(2):
        sequence.open(number, ToolCall(f"c{number}", "f"))
        sequence.add(number, "nu")
        sequence.add(number, "ll")
    sequence.finish("length")
    _, found = summed(sequence)
    assert [call.arguments for call in found.calls] == [{}, {}]
    assert sequence.told == []


@pytest.mark.parametrize("written", ["nonsense", "[1, 2", '{"a" 1'])
def test_arguments_that_were_never_to_be_an_object_are_no_cut(written: str) -> None:
    sequence = Sequence()
    sequence.open(0, ToolCall("a", "f"))
    sequence.add(0, written)
    sequence.finish("tool_calls")
    events, found = summed(sequence)
    is_cut = written == "[1, 2"
    assert [block.cut for block in events if isinstance(block, BlockEnded)] == [is_cut]
    assert found.reply.stop == ("length" if is_cut else "tool_calls")
