"""Cohere streams, read: events of the protocol, what providers do beside it, and laws."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations import event_grammar
from support.conversations.strategies import json_values, texts
from support.protocols.strategies.cohere import cohere_replies
from support.protocols.streams.cohere import (
    BEGIN,
    CALL_END,
    TALK,
    USAGE,
    Fields,
    bodies,
    call_delta,
    call_start,
    content,
    end,
    event,
    plan_delta,
    read,
    reply_of,
    sse,
)
from support.protocols.streams.reading import accumulate
from toolglot.conversation import Media, Opaque, Reply, StopReason, Text, Thinking, ToolCall
from toolglot.conversation.events import (
    BlockEnded,
    BlockStarted,
    Finished,
    InputDelta,
    Started,
    TextDelta,
    ThinkingDelta,
    Used,
)
from toolglot.conversation.reply_events import of_reply
from toolglot.errors import LimitError
from toolglot.limits import Limits
from toolglot.protocols.cohere import reply as one_shot
from toolglot.protocols.cohere.form import PLAN, THINKING, CohereReply
from toolglot.protocols.cohere.stream_reader import Decoder
from toolglot.protocols.cohere.stream_writer import Encoder
from toolglot.protocols.framing.event_builder import CUT_OFF
from toolglot.protocols.framing.text_frames import Frame


def odd_reply_of(*events: Any) -> Reply:
    found, decoder = read(sse(*events))
    assert decoder.builder.problems != []
    return accumulate(found).reply


WHOLE = {
    "id": "r1",
    "message": {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "Hmm."}],
        "tool_plan": "I look.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
            {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    },
    "finish_reason": "TOOL_CALL",
    "usage": USAGE,
}


# --- reading ----------------------------------------------------------------------------------------


def test_a_stream_adds_up_to_the_one_shot_reply() -> None:
    found, expected = reply_of(*TALK), one_shot.decode(WHOLE)
    assert found.turn.blocks == expected.turn.blocks
    assert (found.id, found.stop, found.usage, found.extra) == (
        expected.id,
        expected.stop,
        expected.usage,
        expected.extra,
    )
    assert one_shot.encode(found) == WHOLE


def test_events_come_as_they_are_sent() -> None:
    decoder = Decoder()
    seen = [decoder.read(Frame(json.dumps(value).encode())) for value in TALK]
    kinds = [[type(event) for event in events] for events in seen]
    assert kinds[:5] == [[Started], [BlockStarted], [ThinkingDelta], [ThinkingDelta], [BlockEnded]]
    assert kinds[5:9] == [[BlockStarted, TextDelta], [TextDelta], [BlockEnded, BlockStarted], [InputDelta]]
    assert kinds[-1] == [Used, Finished]
    assert decoder.finish() == []


def test_every_cut_of_the_bytes_gives_the_same_events() -> None:
    data = sse(*TALK)
    whole, _ = read(data)
    for position in range(len(data)):
        assert read(data[:position], data[position:])[0] == whole
    assert read(*(data[position : position + 1] for position in range(len(data))))[0] == whole


def test_text_is_read() -> None:
    found = reply_of(BEGIN, *content("text", "Köln"), *content("text", "Bonn", 1), end("MAX_TOKENS"))
    assert found.turn.blocks == (Text("Köln"), Text("Bonn"))
    assert found.stop == "length"


def test_a_content_of_another_kind_is_kept_as_it_came() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    later = {"type": "later", "x": 1}
    stream_events = [
        step
        for index, found in enumerate((image, later))
        for step in (event("content-start", {"content": found}, index=index), event("content-end", index=index))
    ]
    assert reply_of(BEGIN, *stream_events, end()).turn.blocks == (
        Media("image", "image/png", data="aGk="),
        Opaque("cohere", later, "later"),
    )


def test_the_words_of_a_content_may_come_with_its_beginning_or_be_absent() -> None:
    found = reply_of(
        BEGIN,
        event("content-start", {"content": {"type": "text", "text": "ab"}}, index=0),
        event("content-delta", {"content": {"text": "c"}}, index=0),
        event("content-end", index=0),
        event("content-start", {"content": {"type": "thinking"}}, index=1),
        event("content-delta", {"content": {"thinking": "d"}}, index=1),
        event("content-end", index=1),
        end(),
    )
    assert found.turn.blocks == (Text("abc"), Thinking("d", form=THINKING))


def test_the_type_of_an_event_may_be_its_name_and_done_adds_nothing() -> None:
    bare = [{key: value for key, value in event.items() if key != "type"} for event in TALK]
    data = b"".join(
        b"event: %s\ndata: %s\n\n" % (event["type"].encode(), json.dumps(value).encode())
        for event, value in zip(TALK, bare, strict=True)
    )
    assert accumulate(read(b": hi\n\n" + data + b"data: [DONE]\n\n")[0]).reply == reply_of(*TALK)


def test_citations_and_log_probabilities_are_kept() -> None:
    cite = {"start": 0, "end": 2, "text": "Kö", "sources": []}
    found = reply_of(
        BEGIN,
        content("text", "Köln")[0],
        event("content-delta", {"content": {"text": "Köln"}}, index=0, logprobs={"token_ids": [1]}),
        event("citation-start", {"citations": cite}, index=0),
        event("citation-end", index=0),
        event("citation-start", {"citations": [cite]}, index=1),
        event("citation-start", {}, index=2),
        event("debug", prompt="x"),
        event("content-end", index=0),
        end(),
    )
    assert found.turn.blocks == (Text("Köln"),)
    assert isinstance(found.form, CohereReply)
    assert found.form.citations == [cite, cite]
    assert one_shot.encode(found)["logprobs"] == [{"token_ids": [1]}]
    assert Encoder().write(of_reply(found)).count(b"event: citation-start") == 2


@pytest.mark.parametrize(
    ("reason", "call", "stop"),
    [
        ("COMPLETE", True, "tool_calls"),
        ("TOOL_CALL", False, "stop"),
        ("MAX_TOKENS", True, "length"),
        ("ERROR", False, "error"),
        ("LATER", False, "stop"),
    ],
)
def test_j1_j2_the_reason_is_derived(reason: str, call: bool, stop: StopReason) -> None:
    stream_events = [call_start(), call_delta("{}"), CALL_END] if call else content("text", "a")
    assert reply_of(BEGIN, *stream_events, end(reason)).stop == stop


def test_an_error_at_the_end_is_a_failure() -> None:
    stream_events = content("text", "abc")[:2]
    total = accumulate(read(sse(BEGIN, *stream_events, end("ERROR", error="internal error")))[0])
    assert total.failure is not None
    assert (total.failure.message, total.failure.in_band) == ("internal error", True)
    assert total.reply.turn.text == "ab"
    assert total.cut == (Text("ab"),)


def test_an_error_without_a_type_is_a_failure() -> None:
    failure = accumulate(read(sse(BEGIN, {"message": "too many tokens: size limit exceeded", "id": "x"}))[0]).failure
    assert failure is not None
    assert failure.request_id == "x"


@pytest.mark.parametrize("reason", ["TOOL_CALL", "MAX_TOKENS", None])
def test_f1_j4_a_cut_call_is_never_whole(reason: str | None) -> None:
    whole = '{"city":"K","list":["a","b"]}'
    for position in range(1, len(whole)):
        stream_events = [
            BEGIN,
            call_start(),
            call_delta(whole[:position]),
            *([CALL_END, end(reason)] if reason else []),
        ]
        total = accumulate(read(sse(*stream_events))[0])
        assert total.calls == ()
        assert (total.failure is not None) if reason is None else total.reply.stop == "length"


def test_h6_pieces_of_two_calls_may_come_in_turns() -> None:
    found = odd_reply_of(
        BEGIN,
        call_start(),
        call_start("g", 1, "c2"),
        call_delta('{"a":'),
        call_delta('{"b":', 1),
        call_delta("1}"),
        call_delta("2}", 1),
        CALL_END,
        event("tool-call-end", index=1),
        end(),
    )
    assert [(call.name, call.arguments) for call in found.turn.calls] == [("f", {"a": 1}), ("g", {"b": 2})]


def test_h1_calls_with_one_index_are_calls_of_their_own() -> None:
    found = odd_reply_of(
        BEGIN,
        *(step for id in "abc" for step in (call_start(id=id), call_delta('{"a":1}'))),
        CALL_END,
        end(),
    )
    assert [call.id for call in found.turn.calls] == ["a", "b", "c"]


def test_h2_events_without_an_index_are_of_the_last_block() -> None:
    def bare(value: Fields) -> Fields:
        return {key: field for key, field in value.items() if key != "index"}

    stream_events = (
        call_start(),
        call_delta('{"a":1}'),
        CALL_END,
        call_start(id="c2"),
        call_delta("{}"),
        CALL_END,
        *content("text", "abc"),
    )
    found = odd_reply_of(BEGIN, *map(bare, stream_events), end())
    assert [(call.id, call.arguments) for call in found.turn.calls] == [("c1", {"a": 1}), ("c2", {})]
    assert found.turn.text == "abc"


def test_h7_a_plan_inside_of_a_call_waits_for_its_end() -> None:
    found = odd_reply_of(BEGIN, call_start(), call_delta('{"a":'), plan_delta("x"), call_delta("1}"), CALL_END, end())
    assert found.turn.blocks[1] == Text("x", form=PLAN)
    assert found.turn.calls[0].arguments == {"a": 1}


def test_words_after_the_end_of_a_whole_call_are_left_out() -> None:
    found = odd_reply_of(
        BEGIN,
        call_start(),
        call_delta('{"a":1}'),
        call_start("g", 1, "c2"),
        call_delta("\n"),
        call_delta("{}", 1),
        call_delta("x"),
        end(),
    )
    assert [(call.name, call.arguments) for call in found.turn.calls] == [("f", {"a": 1}), ("g", {})]


def test_calls_in_lists_and_with_arguments_at_once_are_read() -> None:
    listed = call_start(arguments='{"a":')
    listed["delta"]["message"]["tool_calls"] = [listed["delta"]["message"]["tool_calls"]]
    rest = call_delta("1}")
    rest["delta"]["message"]["tool_calls"] = [rest["delta"]["message"]["tool_calls"]]
    none = call_delta(None)
    assert reply_of(BEGIN, listed, rest, none, CALL_END, end()).turn.calls[0].arguments == {"a": 1}


@pytest.mark.parametrize("call", [7, {}, {"id": "a", "function": {"name": 7}}, {"function": {"arguments": {}}}])
def test_a_call_that_cannot_be_read_is_a_failure_and_not_an_empty_success(call: Any) -> None:
    data = sse(BEGIN, event("tool-call-start", {"tool_calls": call}, index=0), CALL_END, end("TOOL_CALL"))
    total = accumulate(read(data)[0])
    assert total.failure is not None
    assert total.failure.kind == "bad_output"
    assert total.calls == ()


@pytest.mark.parametrize(
    "odd",
    [
        "nonsense",
        event("later"),
        event("content-start", {"content": 7}, index=5),
        event("content-start", {"content": {"type": "text", "text": 7}}, index=5),
        event("content-delta", {"content": {"text": 7}}, index=0),
        event("content-delta", {"content": 7}, index=0),
        event("content-end", index=7),
        plan_delta(7),
        call_delta({}),
        call_delta("x", 7),
        {"type": 7},
    ],
)
def test_what_the_protocol_does_not_allow_is_reported_and_left_out(odd: Any) -> None:
    events, decoder = read(sse(BEGIN, *content("text", "abc")[:2], odd, *content("text", "abc")[2:], end("ERROR")))
    found = accumulate(events).reply
    assert (found.turn.text, found.stop) == ("abc", "error")
    assert len(decoder.builder.problems) == 1


def test_what_is_missing_is_inferred_and_reported() -> None:
    found = odd_reply_of(
        event("content-delta", {"content": {"text": "a"}}, index=0),
        event("content-delta", {"content": {"thinking": "b"}}, index=0),
        event("content-start", {"content": {"thinking": "c"}}, index=1),
        plan_delta(""),
        call_start(id=None),
        {"type": "message-end"},
    )
    assert found.turn.blocks == (
        Text("a"),
        Thinking("b", form=THINKING),
        Thinking("c", form=THINKING),
        ToolCall("", "f", {}, argument_fixes=("a blank string means no arguments",)),
    )
    assert found.stop == "tool_calls"


def test_an_end_that_cannot_be_read_in_full_is_an_end() -> None:
    assert odd_reply_of(BEGIN, *content("text", "abc"), end("MAX_TOKENS", usage=7)).stop == "length"
    assert odd_reply_of(BEGIN, *content("text", "abc"), end(7)).stop == "stop"  # type: ignore[arg-type]


def test_the_end_of_the_bytes_without_an_end() -> None:
    assert accumulate(read(sse(BEGIN, *content("text", "abc")))[0]).failure == CUT_OFF
    assert accumulate(read(sse(BEGIN, *content("text", "abc")[:2]))[0]).failure is not None
    done, decoder = read(sse(BEGIN, *content("text", "abc")), b"data: [DONE]\n\n")
    assert accumulate(done).reply.stop == "stop"
    assert decoder.builder.problems
    assert accumulate(read(b"")[0]).failure is not None


def test_nothing_follows_the_end() -> None:
    assert reply_of(*TALK, *content("text", "abc"), BEGIN) == reply_of(*TALK)


def test_a_second_message_start_adds_nothing() -> None:
    assert reply_of(BEGIN, {**BEGIN, "id": "r2"}, *TALK[1:]) == reply_of(*TALK)


def test_the_length_of_a_reply_is_bounded() -> None:
    decoder = Decoder(limits=Limits(max_bytes=500))
    for value in (BEGIN, content("text", "")[0]):
        decoder.read(Frame(json.dumps(value).encode()))
    piece = Frame(json.dumps(event("content-delta", {"content": {"text": "a" * 300}}, index=0)).encode())
    decoder.read(piece)
    with pytest.raises(LimitError):
        decoder.read(piece)


# --- laws -------------------------------------------------------------------------------------------


def streamed(body: Fields) -> list[Fields]:
    """A whole body as events."""
    message, events = body["message"], [{**BEGIN, "id": body["id"]}]
    for index, found in enumerate(message.get("content") or ()):
        kind = found["type"]
        events.append(event("content-start", {"content": {**found, kind: ""} if kind in found else found}, index=index))
        if kind in found:
            events.append(event("content-delta", {"content": {kind: found[kind]}}, index=index))
        events.append(event("content-end", index=index))
    if message.get("tool_plan"):
        events.append(plan_delta(message["tool_plan"]))
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = {**call["function"], "arguments": ""}
        events.append(event("tool-call-start", {"tool_calls": {**call, "function": function}}, index=index))
        events.append(call_delta(call["function"]["arguments"], index))
        events.append(event("tool-call-end", index=index))
    rest = {key: value for key, value in body.items() if key not in ("id", "message")}
    return [*events, {"type": "message-end", "delta": rest}]


@pytest.mark.law
@given(bodies(tool_plan=texts.filter(bool)))
def test_a_streamed_body_adds_up_to_what_the_whole_one_is(body: Fields) -> None:
    expected = one_shot.decode(body)
    found = accumulate(read(sse(*streamed(body)))[0]).reply
    assert found.turn.blocks == expected.turn.blocks
    assert (found.stop, found.usage, found.id, found.extra) == (
        expected.stop,
        expected.usage,
        expected.id,
        expected.extra,
    )


kinds = st.sampled_from([value["type"] for value in (*TALK, event("citation-start"))])
odd_events = st.one_of(
    json_values,
    st.sampled_from([*TALK, *content("text", "abc")]),
    st.builds(lambda kind, message, index: event(kind, message, index=index), kinds, json_values, json_values),
    st.builds(call_delta, json_values, st.integers(0, 2)),
    st.builds(lambda value: event("content-delta", {"content": value}, index=0), json_values),
    st.builds(lambda value: {"type": "message-end", "delta": value}, json_values | cohere_replies),
)


@pytest.mark.law
@given(st.lists(odd_events, max_size=6))
def test_nothing_that_is_json_breaks_the_reader(values: list[Any]) -> None:
    event_grammar.check(read(sse(*values))[0])


@pytest.mark.law
@given(st.binary(max_size=80) | texts.map(lambda text: b"data: " + text.encode()))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    event_grammar.check(read(sse(BEGIN, *content("text", "abc")[:2]) + data)[0])
