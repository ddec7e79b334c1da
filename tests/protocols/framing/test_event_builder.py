"""Blocks come out one at a time, in whatever order a provider sends them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations.event_grammar import check
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
from toolglot.protocols.framing.event_builder import (
    MAX_PROBLEMS,
    TEXT_KEY,
    THINKING_KEY,
    EventBuilder,
    call_from_object,
)


def take_and_accumulate(builder: EventBuilder) -> tuple[list[Event], Accumulator]:
    events = builder.take()
    check(events)
    found = Accumulator()
    found.add(events)
    return events, found


def test_text_and_thinking_in_turns_are_separate_blocks() -> None:
    builder = EventBuilder()
    for key, piece in ((THINKING_KEY, "a"), (THINKING_KEY, "b"), (TEXT_KEY, "c"), (THINKING_KEY, "d"), (TEXT_KEY, "")):
        builder.add_implicit(key, piece)
    builder.finish("stop")
    _, found = take_and_accumulate(builder)
    assert found.reply.turn.blocks == (Thinking("ab"), Text("c"), Thinking("d"))
    assert builder.problems == []


def test_H6_calls_whose_pieces_alternate_stay_apart() -> None:
    builder = EventBuilder()
    builder.open(0, ToolCall("a", "f"))
    builder.add(0, '{"x":')
    builder.open(1, ToolCall("b", "g"))
    for key, piece in ((1, '{"y":'), (0, "1"), (1, "2"), (0, "}"), (1, "}")):
        builder.add(key, piece)
    builder.finish("tool_calls")
    events, found = take_and_accumulate(builder)
    assert [(call.id, call.arguments) for call in found.calls] == [("a", {"x": 1}), ("b", {"y": 2})]
    assert [event.block.name for event in events if isinstance(event, BlockStarted)] == ["f", "g"]  # type: ignore[union-attr]
    assert builder.problems


def test_a_call_that_has_all_of_its_arguments_gives_way_at_once() -> None:
    builder = EventBuilder()
    builder.open(0, ToolCall("a", "f"))
    builder.add(0, "{}")
    builder.open(1, ToolCall("b", "g"))
    assert [type(event) for event in builder.take()] == [Started, BlockStarted, InputDelta, BlockEnded, BlockStarted]
    assert builder.is_settled
    assert builder.problems == []


def test_H7_what_is_thought_between_two_pieces_of_arguments_waits_until_the_call_is_whole() -> None:
    builder = EventBuilder()
    builder.open(0, ToolCall("a", "f"))
    builder.add(0, '{"x":')
    builder.add_implicit(THINKING_KEY, "hm")
    assert not builder.is_settled
    builder.add(0, "1}")
    builder.add_implicit(THINKING_KEY, "m")
    builder.add_implicit(TEXT_KEY, "done")
    builder.finish("tool_calls")
    _, found = take_and_accumulate(builder)
    assert found.reply.turn.blocks == (
        ToolCall("a", "f", {"x": 1}),
        Thinking("hmm"),
        Text("done"),
    )


@pytest.mark.parametrize("reason", ["length", "tool_calls", "stop", "error", None])
@pytest.mark.parametrize("written", ['{"a":', '{"a":"}', '{"a":[1,2'])
def test_F1_J4_a_call_without_its_end_was_cut_whatever_the_stop_reason(reason: Any, written: str) -> None:
    builder = EventBuilder()
    builder.open(0, ToolCall("a", "f"))
    builder.add(0, written)
    builder.finish(reason)
    events, found = take_and_accumulate(builder)
    assert found.calls == ()
    assert found.cut == (ToolCall("a", "f", raw_input=written),)
    assert isinstance(events[-1], Finished)
    assert events[-1].stop == ("error" if reason == "error" else "length")


def test_F1_a_call_that_is_whole_stays_one_when_the_answer_was_cut_after_it() -> None:
    builder = EventBuilder()
    builder.open(0, ToolCall("a", "f"))
    builder.add(0, "{}")
    builder.finish("length")
    events, found = take_and_accumulate(builder)
    assert [call.id for call in found.calls] == ["a"]
    assert isinstance(events[-1], Finished)
    assert events[-1].stop == "length"


def test_F1_a_call_that_was_cut_before_its_first_argument_is_not_one_without_arguments() -> None:
    builder = EventBuilder()
    builder.open(0, ToolCall("a", "f"))
    builder.finish("length")
    _, found = take_and_accumulate(builder)
    assert found.calls == ()


def test_F3_a_call_that_ends_without_arguments_has_none() -> None:
    builder = EventBuilder()
    builder.open(0, ToolCall("a", "f"))
    builder.finish("tool_calls")
    _, found = take_and_accumulate(builder)
    assert found.calls == (ToolCall("a", "f", {}, argument_fixes=("a blank string means no arguments",)),)


def test_arguments_of_an_object_protocol_keep_no_spelling() -> None:
    builder = EventBuilder(build_call=call_from_object)
    builder.open(0, ToolCall("a", "f"))
    builder.add(0, '{"a" : 1}')
    builder.close(0)
    builder.finish("stop")
    _, found = take_and_accumulate(builder)
    assert found.calls == (ToolCall("a", "f", {"a": 1}),)
    assert found.reply.stop == "tool_calls"


@pytest.mark.parametrize(
    ("reason", "calls", "meant"),
    [("stop", 1, "tool_calls"), ("tool_calls", 0, "stop"), ("length", 0, "length"), (None, 1, "tool_calls")],
)
def test_J1_J2_why_it_ended_is_derived_from_the_calls(reason: Any, calls: int, meant: str) -> None:
    builder = EventBuilder()
    builder.add_implicit(TEXT_KEY, "hi")
    for number in range(calls):
        builder.open(number, ToolCall(f"c{number}", "f"))
    builder.finish(reason)
    _, found = take_and_accumulate(builder)
    assert found.reply.stop == meant


def test_a_failure_ends_what_is_open_as_cut_and_nothing_follows() -> None:
    builder = EventBuilder()
    builder.add_implicit(TEXT_KEY, "hal")
    builder.fail(Failure("overloaded", "busy"))
    builder.fail(Failure("server"))
    builder.finish("stop")
    events, found = take_and_accumulate(builder)
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
    builder = EventBuilder()
    if open_block == "text":
        builder.open(0, Text("")) if closes else builder.add_implicit(TEXT_KEY, "a")
    elif open_block is not None:
        builder.open(0, ToolCall("a", "f"))
        builder.add(0, '{"a":1' + ("}" if open_block == "whole" else ""))
    builder.finish_without_reason(is_ended=True, closes_blocks=closes)
    events, _ = take_and_accumulate(builder)
    assert isinstance(events[-1], Failed) == fails


def test_whole_blocks_media_and_usage_come_in_order() -> None:
    builder = EventBuilder()
    builder.start("id", "m")
    builder.start("other")
    builder.add_implicit(TEXT_KEY, "a")
    builder.add_block(Opaque("gemini", {"x": 1}))
    builder.open("m", Media("image", "image/png", data=""))
    builder.add("m", "QUJD")
    builder.close("m")
    builder.add_usage(Usage(1, 2))
    builder.update(TEXT_KEY, Text("x"))
    builder.finish("stop")
    events, found = take_and_accumulate(builder)
    assert events[0] == Started("id", "m")
    assert Used(Usage(1, 2)) in events
    assert found.reply.turn.blocks == (Text("a"), Opaque("gemini", {"x": 1}), Media("image", "image/png", data="QUJD"))


def test_what_is_known_of_a_block_can_grow_while_it_is_open() -> None:
    builder = EventBuilder()
    builder.open(0, Thinking())
    builder.add(0, "why")
    builder.update(0, Thinking(signature="s"))
    builder.open(1, Text(""))
    builder.update(1, Text("", signature="t"))
    assert (builder.text_of(0), builder.text_of(1), builder.text_of(2)) == ("why", "", "")
    assert builder.block(1) == Text("", signature="t")
    assert builder.block(2) is None
    builder.close(0)
    builder.close(1)
    builder.finish("stop")
    _, found = take_and_accumulate(builder)
    assert found.reply.turn.blocks == (Thinking("why", signature="s"), Text("", signature="t"))


def test_an_abandoned_reply_keeps_what_was_whole() -> None:
    builder = EventBuilder()
    builder.open(0, ToolCall("a", "f"))
    builder.add(0, "{}")
    builder.open(1, ToolCall("b", "f"))
    builder.add(1, "{")
    builder.abandon()
    builder.abandon()
    events = builder.take()
    check(events, is_over=False)
    found = Accumulator()
    found.add(events)
    assert [call.id for call in found.calls] == ["a"]
    assert not found.is_over


def test_problems_are_bounded_and_reported_once() -> None:
    builder = EventBuilder()
    for number in range(200):
        builder.report(f"oddity {number % 80}")
    assert len(builder.problems) == MAX_PROBLEMS


def test_a_reply_that_never_ends_is_refused() -> None:
    builder = EventBuilder(limits=Limits(max_bytes=74))
    builder.add_implicit(TEXT_KEY, "0123456789")
    with pytest.raises(LimitError, match="max_bytes"):
        builder.add_implicit(TEXT_KEY, "x")


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
def test_in_whatever_order_pieces_come_the_grammar_holds_and_no_text_is_lost(
    operations: list[tuple[str, int, str]], end: Any
) -> None:
    builder = EventBuilder()
    reason: dict[Any, list[str]] = {}
    for do, key, piece in operations:
        if do == "say":
            builder.add_implicit(TEXT_KEY, piece)
            reason.setdefault(TEXT_KEY, []).append(piece)
        elif do == "think":
            builder.add_implicit(THINKING_KEY, piece)
            reason.setdefault(THINKING_KEY, []).append(piece)
        elif do == "open" and not builder.is_open(key):
            builder.open(key, ToolCall(f"c{key}", "f"))
        elif do == "add" and builder.is_open(key):
            builder.add(key, piece)
            reason.setdefault(key, []).append(piece)
        elif do == "close":
            builder.close(key)
        elif do == "whole":
            builder.add_block(Opaque("x", {}))
        elif do == "used":
            builder.add_usage(Usage(key))
    if end == "fail":
        builder.fail(Failure("server"))
    elif end == "unsaid":
        builder.finish_without_reason(is_ended=True)
    else:
        builder.finish(end)
    events = builder.take()
    check(events)
    found = Accumulator()
    found.add(events)
    assert found.reply.turn.text == "".join(reason.get(TEXT_KEY, []))
    thought = "".join(block.text for block in found.reply.turn.blocks if isinstance(block, Thinking))
    assert thought == "".join(reason.get(THINKING_KEY, []))
    written = "".join(event.text for event in events if isinstance(event, InputDelta))
    assert sorted(written) == sorted("".join("".join(reason.get(key, [])) for key in range(4)))


def test_F3_a_call_with_null_for_its_arguments_is_whole_and_the_next_one_is_in_its_turn() -> None:
    builder = EventBuilder()
    for number in range(2):
        builder.open(number, ToolCall(f"c{number}", "f"))
        builder.add(number, "nu")
        builder.add(number, "ll")
    builder.finish("length")
    _, found = take_and_accumulate(builder)
    assert [call.arguments for call in found.calls] == [{}, {}]
    assert builder.problems == []


@pytest.mark.parametrize("written", ["nonsense", "[1, 2", '{"a" 1'])
def test_arguments_that_were_never_to_be_an_object_are_no_cut(written: str) -> None:
    builder = EventBuilder()
    builder.open(0, ToolCall("a", "f"))
    builder.add(0, written)
    builder.finish("tool_calls")
    events, found = take_and_accumulate(builder)
    is_cut = written == "[1, 2"
    assert [block.cut for block in events if isinstance(block, BlockEnded)] == [is_cut]
    assert found.reply.stop == ("length" if is_cut else "tool_calls")
