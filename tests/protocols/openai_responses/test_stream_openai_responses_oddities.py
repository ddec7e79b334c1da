"""Streams of the OpenAI Responses protocol that are not as they should be: what servers leave out, repeat or break."""

from __future__ import annotations

import json

import pytest

from support.protocols.streams.openai_responses import (
    CALL,
    EVERYTHING,
    MESSAGE,
    PATCH,
    REASONING,
    RESPONSE,
    SECOND,
    Fields,
    ReadEvents,
    body_of,
    item_events,
    streamed,
)
from toolglot.conversation import Opaque, Thinking
from toolglot.conversation.events import Accumulator, BlockEnded, Event, Finished, TextDelta
from toolglot.protocols.framing.event_builder import CUT_OFF, NO_LAST_ITEMS
from toolglot.protocols.framing.text_frames import Frame
from toolglot.protocols.openai_responses import reply
from toolglot.protocols.openai_responses.stream_reader import Decoder


def without(events: list[Fields], *kinds: str) -> list[Fields]:
    return [event for event in events if not event["type"].startswith(tuple(f"response.{kind}" for kind in kinds))]


# --- what servers leave out, and what they do besides -----------------------------------------------


def test_h1_items_that_all_have_index_0_are_known_by_their_ids() -> None:
    events = [{**event, "output_index": 0} for event in streamed(body_of(CALL, SECOND, {**CALL, "id": "fc_3"}))]
    assert len(ReadEvents(*events).calls) == 3


def test_h1b_items_that_all_have_index_0_and_no_id_are_distinguished_by_their_beginning() -> None:
    items = [{**item} for item in (CALL, SECOND, CALL)]
    for item in items:
        del item["id"]
    events = [{**event, "output_index": 0, "item_id": ""} for event in streamed(body_of(*items))]
    read = ReadEvents(*events)
    assert [call[2] for call in read.calls] == [{"city": "Köln"}, {"days": 9007199254740993}, {"city": "Köln"}]
    assert read.reply == reply.decode(body_of(*items))


def test_h2_events_without_index_and_without_sequence_number_are_understood() -> None:
    events = streamed(EVERYTHING)
    for event in events:
        event.pop("output_index", None)
        event.pop("sequence_number", None)
    read = ReadEvents(*events)
    assert read.problems == [
        "an item has no output_index",
    ]
    assert read.reply == reply.decode(EVERYTHING)


def test_ids_that_change_with_each_event_do_not_matter_while_the_index_is_there() -> None:
    events = streamed(body_of(MESSAGE, CALL))
    for number, event in enumerate(events):
        if "item_id" in event:
            event["item_id"] = f"changing_{number}"
    assert ReadEvents(*events).reply == reply.decode(body_of(MESSAGE, CALL))


def test_h3_arguments_in_the_item_that_begins_do_not_come_twice() -> None:
    events = streamed(body_of(CALL))
    events[2]["item"] = {**CALL, "status": "in_progress"}
    assert ReadEvents(*events).calls == [("call_A", "get_weather", {"city": "Köln"})]


@pytest.mark.parametrize("lost", ["", None, 7])
def test_h5_an_id_or_a_name_that_is_empty_in_the_end_does_not_overwrite_the_first(lost: object) -> None:
    events = streamed(body_of(CALL))
    events[-2]["item"] = {**CALL, "name": lost, "call_id": lost, "id": lost}
    read = ReadEvents(*events)
    assert [call[:2] for call in read.calls] == [("call_A", "get_weather")]
    assert read.problems


def test_h6_fragments_of_two_calls_that_alternate_are_kept_apart() -> None:
    one, other = item_events(CALL, 0, 3), item_events(SECOND, 1, 3)
    mixed = [event for pair in zip(one, other, strict=False) for event in pair]
    rest = one[len(other) :] + other[len(one) :]
    body = body_of(CALL, SECOND)
    first, second, *_, last = streamed(body)
    read = ReadEvents(first, second, *mixed, *rest, last)
    assert read.calls == [("call_A", "get_weather", {"city": "Köln"}), ("call_B", "get_weather", {"days": 2**53 + 1})]
    assert read.reply == reply.decode(body)


def test_h6_arguments_before_the_name_wait_for_it() -> None:
    events = streamed(body_of(CALL))
    events[2]["item"] = {"type": "function_call", "id": "fc_1", "arguments": ""}
    decoder = ReadEvents(*events[:5], ends=False).decoder
    assert not decoder.builder.is_settled
    read = ReadEvents(*events)
    assert read.calls == [("call_A", "get_weather", {"city": "Köln"})]
    assert read.decoder.builder.is_settled


def test_h6_arguments_of_a_call_that_did_not_begin_wait_for_its_end() -> None:
    events = [event for event in streamed(body_of(CALL)) if event["type"] != "response.output_item.added"]
    read = ReadEvents(*events)
    assert read.calls == [("call_A", "get_weather", {"city": "Köln"})]
    assert "something came of an item that had not begun" in read.problems


def test_h6_a_call_that_never_has_a_name_makes_the_reply_one_that_was_cut() -> None:
    nameless = {
        "type": "response.output_item.added",
        "output_index": 2,
        "item": {"type": "function_call", "id": "fc_9"},
    }
    first, *rest, last = streamed(body_of(MESSAGE, CALL))
    read = ReadEvents(first, *rest, nameless, last)
    assert read.finished.stop == "length"
    assert read.problems
    assert ReadEvents(first, *rest, nameless).failure.failure.message == "the stream ended inside a call"


def test_a_call_that_begins_not_well_formed_waits_for_its_end() -> None:
    events = streamed(body_of(CALL))
    events[2]["item"] = {**CALL, "namespace": 7}
    read = ReadEvents(*events)
    assert read.calls == [("call_A", "get_weather", {"city": "Köln"})]
    assert any("namespace" in reason for reason in read.problems)


def test_two_calls_that_end_with_the_same_id_are_two() -> None:
    first, *_, last = streamed(body_of(CALL, SECOND))
    ended = [{"type": "response.output_item.done", "item": {**item, "id": "fc_1"}} for item in (CALL, SECOND)]
    assert [call[0] for call in ReadEvents(first, *ended, last).calls] == ["call_A", "call_B"]


def test_a_message_with_a_malformed_end_is_what_was_streamed() -> None:
    for content in (7, [3], [{"type": "output_text", "text": None}]):
        events = streamed(body_of(MESSAGE))
        events[-2]["item"] = {**MESSAGE, "content": content}
        read = ReadEvents(*events)
        assert read.reply.turn.text == reply.decode(body_of(MESSAGE)).turn.text
        assert any("not well-formed" in reason for reason in read.problems)


def test_j1_a_response_that_is_complete_and_holds_calls_ended_for_them() -> None:
    assert ReadEvents(*streamed(body_of(CALL))).finished.stop == "tool_calls"


def test_j2_a_response_without_calls_and_with_a_refusal_alone_was_filtered() -> None:
    refusal = {**MESSAGE, "content": [{"type": "refusal", "refusal": "I cannot."}]}
    read = ReadEvents(*streamed(body_of(refusal)))
    assert read.finished.stop == "filter"
    assert read.reply == reply.decode(body_of(refusal))
    assert ReadEvents(*streamed(body_of(refusal, CALL))).finished.stop == "tool_calls"


@pytest.mark.parametrize("end", ["response.incomplete", "response.completed"])
def test_f1_j4_a_call_that_was_cut_is_not_one_to_run(end: str) -> None:
    cut = {**CALL, "status": "incomplete", "arguments": '{"city": "K'}
    status = end.removeprefix("response.")
    body = body_of(cut, status=status, incomplete_details={"reason": "max_output_tokens"})
    read = ReadEvents(*streamed(body))
    assert read.calls == []
    assert read.finished.stop == "length"
    assert bool(read.problems) is (status == "completed")


def test_f1_a_call_without_an_end_in_a_response_that_is_complete_was_cut() -> None:
    events = without(streamed(body_of(CALL)), "output_item.done", "function_call_arguments.done")
    del events[-2]
    events[-1]["response"] = {**events[-1]["response"], "output": []}
    read = ReadEvents(*events)
    assert read.calls == []
    assert read.finished.stop == "length"


def test_f1_a_free_text_call_is_whole_only_after_its_end() -> None:
    first, second, *item, last = streamed(body_of(PATCH, status="incomplete"))
    empty = {**last, "response": {**last["response"], "output": []}}
    assert ReadEvents(first, second, *item[:-2], empty).calls == []
    assert len(ReadEvents(first, second, *item, empty).calls) == 1


def test_f1_a_call_item_with_status_incomplete_is_never_run_though_its_arguments_look_whole() -> None:
    body = body_of({**CALL, "status": "incomplete"}, status="incomplete")
    read = ReadEvents(*streamed(body))
    assert read.calls == []
    assert read.reply == reply.decode(body)


@pytest.mark.parametrize("missing", [1, 2])
def test_a_stream_that_ends_without_an_end_was_cut_even_if_its_items_are_whole(missing: int) -> None:
    for body in (EVERYTHING, body_of(MESSAGE), body_of(PATCH)):
        assert ReadEvents(*streamed(body)[:-missing]).failure.failure == CUT_OFF


def test_a_stream_that_ends_inside_a_text_failed() -> None:
    read = ReadEvents(*streamed(body_of(MESSAGE))[:6])
    assert read.failure.failure.kind == "server"
    assert read.failure.failure.in_band
    assert ReadEvents().failure.failure.message == "the stream ended before any content"


def test_done_ends_a_stream_and_adds_nothing_after_its_end() -> None:
    decoder = Decoder()
    for event in streamed(EVERYTHING):
        decoder.read(Frame(json.dumps(event).encode()))
    assert decoder.read(Frame(b"[DONE]")) == []
    assert decoder.builder.problems == []
    early = Decoder()
    for event in streamed(EVERYTHING)[:-1]:
        early.read(Frame(json.dumps(event).encode()))
    assert isinstance(early.read(Frame(b"[DONE]"))[-1], Finished)


def test_a_keep_alive_adds_nothing() -> None:
    assert Decoder().read(Frame(b"")) == []
    assert ReadEvents(*streamed(EVERYTHING), {"type": "keepalive"}).problems == []
    assert ReadEvents({"type": "keepalive", "sequence_number": 3}, *streamed(EVERYTHING)).problems == []


def test_the_last_response_may_be_empty() -> None:
    events = streamed(EVERYTHING)
    events[-1] = {**events[-1], "response": {**EVERYTHING, "output": []}}
    read = ReadEvents(*events)
    assert read.reply == reply.decode(EVERYTHING)
    assert read.problems == [NO_LAST_ITEMS]
    del events[-1]["response"]
    assert ReadEvents(*events).reply.turn == reply.decode(EVERYTHING).turn


def test_annotations_may_come_under_their_old_name() -> None:
    events = streamed(EVERYTHING)
    old = [{**event, "type": event["type"].replace("text.annotation", "text_annotation")} for event in events]
    assert old != events
    assert ReadEvents(*old).problems == []
    assert ReadEvents(*old).reply == ReadEvents(*events).reply


def test_items_that_did_not_end_are_ended_by_the_last_response() -> None:
    events = [event for event in streamed(EVERYTHING) if event["type"] != "response.output_item.done"]
    read = ReadEvents(*events)
    assert read.calls == ReadEvents(*streamed(EVERYTHING)).calls
    assert read.reply.turn.text == reply.decode(EVERYTHING).turn.text
    assert "an item did not end before the response did" in read.problems


def test_a_stream_without_a_beginning_has_its_id_from_the_end() -> None:
    read = ReadEvents(*streamed(EVERYTHING)[-1:])
    assert read.reply == reply.decode(EVERYTHING)
    assert "the stream did not begin with response.created" in read.problems


@pytest.mark.parametrize("kind", ["arguments", "input"])
def test_an_end_that_differs_from_its_pieces_is_reported_and_the_pieces_count(kind: str) -> None:
    item, changed = (CALL, '{"city":"Bonn"}') if kind == "arguments" else (PATCH, "other")
    events = streamed(body_of(item))
    at = next(index for index, event in enumerate(events) if event["type"].endswith(f"{kind}.done"))
    events[at] = {**events[at], kind: changed}
    read = ReadEvents(*events)
    assert "an item ended with another text than its deltas; the deltas count" in read.problems
    assert read.reply.turn == reply.decode(body_of(item)).turn


def test_an_end_that_holds_more_than_its_pieces_gives_the_rest() -> None:
    for item in (MESSAGE, CALL, PATCH, {**REASONING, "summary": REASONING["summary"][:1]}):
        events = streamed(body_of(item))
        last = max(index for index, event in enumerate(events) if event["type"].endswith(".delta"))
        read = ReadEvents(*events[:last], *events[last + 1 :])
        assert read.reply == reply.decode(body_of(item)), item["type"]
        assert read.problems, item["type"]


def test_texts_that_come_only_when_they_end_are_read_from_there() -> None:
    events = [event for event in streamed(EVERYTHING) if not event["type"].endswith((".delta", "part.added"))]
    read = ReadEvents(*events)
    assert read.reply == reply.decode(EVERYTHING)
    assert "an item ended with more text than its deltas" in read.problems


def test_a_refusal_that_comes_only_when_it_ends_is_one() -> None:
    refusal = {**MESSAGE, "content": [{"type": "refusal", "refusal": "I cannot."}]}
    for left in (".delta", ("part.added", "part.done"), (".delta", "part.added")):
        events = [event for event in streamed(body_of(refusal)) if not event["type"].endswith(left)]
        read = ReadEvents(*events)
        assert read.finished.stop == "filter"
        assert read.reply == reply.decode(body_of(refusal))


def test_annotations_that_the_message_lost_are_kept() -> None:
    events = streamed(body_of(MESSAGE))
    bare = {**MESSAGE, "content": [{**part, "annotations": []} for part in MESSAGE["content"]]}
    events[-2]["item"] = bare
    single = {**MESSAGE, "content": MESSAGE["content"][:1]}
    events = streamed(body_of(single))
    events[-2]["item"] = {**single, "content": bare["content"][:1]}
    read = ReadEvents(*events)
    assert read.reply == reply.decode(body_of(single))
    assert "a text ended without the annotations that were streamed" in read.problems


@pytest.mark.parametrize("text", ["hi", ""])
def test_a_part_that_ends_as_something_else_than_it_began_as_keeps_the_grammar(text: str) -> None:
    part = {"type": "weird", "text": "hi"}
    message = {"type": "message", "id": "m1", "role": "assistant", "content": []}
    read = ReadEvents(
        streamed(body_of())[0],
        {"type": "response.output_item.added", "output_index": 0, "item": message},
        {"type": "response.output_text.delta", "item_id": "m1", "output_index": 0, "content_index": 0, "delta": text},
        {"type": "response.output_item.done", "output_index": 0, "item": {**message, "content": [part]}},
    )
    kept = [block for block in read.reply.turn.blocks if isinstance(block, Opaque)]
    assert read.reply.turn.text == text
    assert [block.value for block in kept] == ([] if text else [part])
    assert "an item ended with another type than its deltas; the deltas count" in read.problems


def test_what_an_item_ends_without_is_taken_from_its_pieces() -> None:
    thought = {**REASONING, "summary": REASONING["summary"][:1]}
    for item, lost in ((MESSAGE, {"content": []}), (thought, {"summary": []}), (CALL, {"arguments": None})):
        events = streamed(body_of(item))
        events[-2]["item"] = {**item, **lost}
        read = ReadEvents(*events)
        assert read.problems
        assert next(iter(reply.encode(read.reply)["output"]))["type"] == item["type"]
        assert read.reply.turn.text == reply.decode(body_of(item)).turn.text
        assert read.calls == [(call.id, call.name, call.arguments) for call in reply.decode(body_of(item)).turn.calls]
    events = streamed(body_of(thought))
    events[-2]["item"] = {**thought, "summary": []}
    assert ReadEvents(*events).reply == reply.decode(body_of(thought))


def test_a_message_without_content_is_carried_as_it_came() -> None:
    body = body_of({**MESSAGE, "content": []})
    read = ReadEvents(*streamed(body))
    assert read.problems == []
    assert isinstance(read.reply.turn.blocks[0], Opaque)
    assert read.reply == reply.decode(body)


def test_a_message_without_a_role_is_the_models() -> None:
    events = streamed(body_of(MESSAGE))
    del events[2]["item"]["role"]
    events[-2]["item"] = {key: value for key, value in MESSAGE.items() if key != "role"}
    assert ReadEvents(*events).reply.turn.text == reply.decode(body_of(MESSAGE)).turn.text


def test_reasoning_that_is_shown_in_full_is_thinking() -> None:
    shown = {"id": "rs_1", "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hmm."}]}
    part = {"type": "response.content_part.added", "item_id": "rs_1", "output_index": 0, "content_index": 0}
    first, second, added, *rest = streamed(body_of(shown))
    announced = [first, second, added, {**part, "part": {"type": "reasoning_text", "text": ""}}, *rest]
    for events in (streamed(body_of(shown)), announced):
        read = ReadEvents(*events)
        assert read.problems == []
        assert read.reply == reply.decode(body_of(shown))


def test_of_reasoning_and_its_summary_the_one_that_came_first_counts() -> None:
    shown = {**REASONING, "content": [{"type": "reasoning_text", "text": "Hmm."}]}
    read = ReadEvents(*streamed(body_of(shown)))
    assert read.reply == reply.decode(body_of(shown))
    first, second, added, *inner, ended, last = streamed(body_of(shown))
    turned = [event for event in inner if "summary" not in event["type"]]
    turned += [event for event in inner if "summary" in event["type"]]
    other = ReadEvents(first, second, added, *turned, ended, last)
    block = other.reply.turn.blocks[0]
    assert isinstance(block, Thinking)
    assert block.text == "Hmm."
    assert reply.encode(other.reply) == body_of(shown)
    assert other.problems == ["reasoning has a summary beside its text; the text counts, since it came first"]


def test_a_thought_that_ends_otherwise_than_its_pieces_is_reported() -> None:
    events = streamed(body_of(REASONING))
    other = {**REASONING, "summary": [{"type": "summary_text", "text": "Another."}]}
    events[-2] = {**events[-2], "item": other}
    read = ReadEvents(*events)
    block = read.reply.turn.blocks[0]
    assert isinstance(block, Thinking)
    assert block.text == "**Two** cities.\n\nLook."
    assert read.problems == ["an item ended with another text than its deltas; the deltas count"]


def test_what_comes_after_its_end_is_left_out_and_reported() -> None:
    delta = {"delta": "more", "content_index": 0, "output_index": 0}
    for item, kind in (
        (MESSAGE, "output_text.delta"),
        (CALL, "function_call_arguments.delta"),
        (REASONING, "reasoning_summary_text.delta"),
    ):
        first, second, *inner, last = streamed(body_of(item))
        late = {"type": f"response.{kind}", "item_id": item["id"], **delta}
        for extra in (late, {**late, "type": late["type"].replace("delta", "done"), "text": "x", "arguments": "x"}):
            read = ReadEvents(first, second, *inner, extra, last)
            assert read.problems
            assert read.reply == reply.decode(body_of(item))


def test_a_piece_of_an_earlier_part_of_a_message_is_left_out_and_reported() -> None:
    events = streamed(body_of(MESSAGE))
    late = next(event for event in events if event["type"].endswith(".delta"))
    at = next(index for index, event in enumerate(events) if event.get("content_index") == 1)
    read = ReadEvents(*events[: at + 1], late, *events[at + 1 :])
    assert read.problems == ["a piece came after the end of its block; it is left out"]
    assert read.reply == reply.decode(body_of(MESSAGE))


def test_an_item_that_begins_or_ends_twice_is_one() -> None:
    events = streamed(EVERYTHING)
    for name, reason in (("added", "an item began twice"), ("done", "an item ended twice")):
        twice = [one for event in events for one in [event] * (1 + event["type"].endswith(f"item.{name}"))]
        read = ReadEvents(*twice)
        assert read.problems == [reason]
        assert read.reply == reply.decode(EVERYTHING)


def test_a_name_that_changes_does_not() -> None:
    events = streamed(body_of(CALL))
    events[-2]["item"] = {**CALL, "name": "rm"}
    read = ReadEvents(*events)
    assert read.calls == [("call_A", "get_weather", {"city": "Köln"})]
    assert "the name of a call changed on the way; the first counts" in read.problems


def test_events_without_a_type_have_the_name_of_their_frame() -> None:
    decoder = Decoder()
    events: list[Event] = []
    for event in streamed(EVERYTHING):
        kind = event.pop("type")
        events += decoder.read(Frame(json.dumps(event).encode(), kind))
    added = Accumulator()
    added.add(events)
    assert added.reply == reply.decode(EVERYTHING)
    assert decoder.builder.problems


def test_pieces_with_odd_fields_are_read_with_care() -> None:
    events = streamed(body_of(MESSAGE))
    for event in events:
        if event["type"].endswith(".delta"):
            event["output_index"] = "0"
    read = ReadEvents(*events)
    assert read.reply == reply.decode(body_of(MESSAGE))
    assert read.problems == ["a piece of text is not well-formed"]
    assert (
        "a piece has no text; it is left out" in ReadEvents({"type": "response.output_text.delta", "delta": 7}).problems
    )


def test_half_a_surrogate_pair_in_a_piece_is_replaced() -> None:
    first, second, added, part, *_ = streamed(body_of(MESSAGE))
    decoder = ReadEvents(first, second, added, part, ends=False).decoder
    event = {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0}
    half = json.dumps({**event, "delta": "X"}).replace("X", "\\ud83d")
    assert decoder.read(Frame(half.encode())) == [TextDelta("\ufffd")]


def test_what_is_no_event_is_left_out_and_reported() -> None:
    decoder = Decoder()
    for data in (b"<html>", b"[1]", b'{"type":"response.later"}', b'{"type":"response.output_item.added","item":3}'):
        assert decoder.read(Frame(data)) == []
    assert decoder.read(Frame(b'{"type":"response.output_item.done","item":[]}')) == []
    assert len(decoder.builder.problems) == 5


def test_an_envelope_that_is_not_well_formed_is_read_as_far_as_it_is() -> None:
    events = streamed(EVERYTHING)
    events[-1] = {**events[-1], "response": {**EVERYTHING, "usage": {"input_tokens": "many"}, "id": 7}}
    events[-1]["response"]["output"] = [*EVERYTHING["output"][:-1], 3]
    read = ReadEvents(*events)
    assert read.reply.turn == reply.decode(EVERYTHING).turn
    assert len(read.problems) == 4


def test_the_id_of_a_response_does_not_change() -> None:
    events = streamed(EVERYTHING)
    events[-1] = {**events[-1], "response": {**EVERYTHING, "id": "resp_2"}}
    read = ReadEvents(*events)
    assert read.reply.id == "resp_1"
    assert read.problems == ["the id of the response changed on the way; the first counts"]


@pytest.mark.parametrize(("kind", "stop"), [("incomplete", "length"), ("cancelled", "error"), ("done", "tool_calls")])
def test_an_end_without_a_status_is_understood_by_its_type(kind: str, stop: str) -> None:
    events = streamed(EVERYTHING)
    events[-1] = {"type": f"response.{kind}", "response": {**EVERYTHING, "status": None}}
    assert ReadEvents(*events).finished.stop == stop


# --- failures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": "Slow down.", "param": None},
        {"type": "error", "error": {"code": "rate_limit_exceeded", "message": "Slow down."}},
        {"error": {"code": "rate_limit_exceeded", "message": "Slow down."}},
        {
            "type": "response.failed",
            "response": {
                **RESPONSE,
                "status": "failed",
                "error": {"code": "rate_limit_exceeded", "message": "Slow down."},
            },
        },
        {
            "type": "response.completed",
            "response": {
                **RESPONSE,
                "status": "failed",
                "error": {"code": "rate_limit_exceeded", "message": "Slow down."},
            },
        },
    ],
)
def test_k1_an_error_in_the_middle_ends_the_stream_and_cuts_the_call(event: Fields) -> None:
    read = ReadEvents(*streamed(body_of(CALL))[:5], event, *streamed(body_of(CALL))[5:])
    assert read.failure.failure.kind == "rate_limit"
    assert read.failure.failure.message == "Slow down."
    assert read.calls == []
    assert [event.cut for event in read.events if isinstance(event, BlockEnded)] == [True]


def test_a_failure_at_once_has_the_id_of_its_response_and_what_it_cost() -> None:
    read = ReadEvents({"type": "response.failed", "response": {**RESPONSE, "status": "failed"}})
    assert (read.reply.id, read.reply.model) == ("resp_1", "gpt-5.5")
    assert read.reply.usage is not None
    assert read.failure.failure.kind == "server"


def test_nothing_follows_the_end() -> None:
    events = streamed(EVERYTHING)
    assert ReadEvents(*events, *events).events == ReadEvents(*events).events
