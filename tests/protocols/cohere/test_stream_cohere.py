"""Streams of Cohere's chat protocol: what is read, what is written, and that Cohere's SDK reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdk.loopback import EVENT_STREAM, serving
from sdk.made_replies import REPLIES
from sdk.recording import load
from support.conversations import event_grammar
from support.conversations.strategies import json_objects, json_values, texts
from support.protocols.strategies.cohere import cohere_replies, part, text_parts
from support.protocols.strategies.wire_objects import wire_object
from support.protocols.streams.reading import accumulate, read_pieces
from toolglot.conversation import (
    Block,
    Failure,
    Media,
    Opaque,
    Reply,
    StopReason,
    Text,
    Thinking,
    ToolCall,
    Turn,
    Usage,
)
from toolglot.conversation.events import (
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
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
from toolglot.protocols.cohere.form import PLAN, STREAMED, THINKING, CohereReply
from toolglot.protocols.cohere.stream_reader import Decoder, framer
from toolglot.protocols.cohere.stream_writer import Encoder
from toolglot.protocols.framing.event_builder import CUT_OFF
from toolglot.protocols.framing.text_frames import Frame

Fields = dict[str, Any]


def event(kind: str, message: Any = None, **fields: Any) -> Fields:
    delta = {} if message is None else {"delta": {"message": message}}
    return {"type": kind, **fields, **delta}


def content(kind: str, text: str, index: int = 0) -> list[Fields]:
    """All events of one content, in two pieces."""
    pieces = (text[:2], text[2:])
    return [
        event("content-start", {"content": {"type": kind, kind: ""}}, index=index),
        *(event("content-delta", {"content": {kind: piece}}, index=index) for piece in pieces),
        event("content-end", index=index),
    ]


def started(name: str = "f", index: int = 0, id: Any = "c1", arguments: Any = "") -> Fields:
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return event("tool-call-start", {"tool_calls": call}, index=index)


def more(piece: Any, index: int = 0) -> Fields:
    return event("tool-call-delta", {"tool_calls": {"function": {"arguments": piece}}}, index=index)


def plan(text: Any) -> Fields:
    return event("tool-plan-delta", {"tool_plan": text})


def end(reason: str = "COMPLETE", **delta: Any) -> Fields:
    return {"type": "message-end", "delta": {"finish_reason": reason, **delta}}


BEGIN = {
    "id": "r1",
    "type": "message-start",
    "delta": {"message": {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}},
}
CALL_END = event("tool-call-end", index=0)
USAGE = {"billed_units": {"input_tokens": 3}, "tokens": {"input_tokens": 7, "output_tokens": 5}, "cached_tokens": 2}


def sse(*events: Any) -> bytes:
    return b"".join(
        b"event: " + str(value["type"]).encode() + b"\ndata: " + json.dumps(value).encode() + b"\n\n"
        if type(value) is dict and type(value.get("type")) is str
        else b"data: " + json.dumps(value).encode() + b"\n\n"
        for value in events
    )


def read(*pieces: bytes) -> tuple[list[Event], Decoder]:
    decoder = Decoder()
    return read_pieces(framer(), decoder, pieces), decoder


def reply_of(*events: Any) -> Reply:
    found, decoder = read(sse(*events))
    assert decoder.builder.problems == []
    return accumulate(found).reply


def odd_reply_of(*events: Any) -> Reply:
    found, decoder = read(sse(*events))
    assert decoder.builder.problems != []
    return accumulate(found).reply


TALK = (
    BEGIN,
    *content("thinking", "Hmm."),
    plan("I "),
    plan("look."),
    started(),
    more('{"a":'),
    more("1}"),
    CALL_END,
    started("g", 1, "c2"),
    more("{}", 1),
    event("tool-call-end", index=1),
    end("TOOL_CALL", usage=USAGE),
)
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
    said = [
        step
        for index, found in enumerate((image, later))
        for step in (event("content-start", {"content": found}, index=index), event("content-end", index=index))
    ]
    assert reply_of(BEGIN, *said, end()).turn.blocks == (
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


def test_the_type_of_an_event_may_stand_beside_it_and_done_says_nothing() -> None:
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
    said = [started(), more("{}"), CALL_END] if call else content("text", "a")
    assert reply_of(BEGIN, *said, end(reason)).stop == stop


def test_an_error_at_the_end_is_a_failure() -> None:
    said = content("text", "abc")[:2]
    total = accumulate(read(sse(BEGIN, *said, end("ERROR", error="internal error")))[0])
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
        said = [BEGIN, started(), more(whole[:position]), *([CALL_END, end(reason)] if reason else [])]
        total = accumulate(read(sse(*said))[0])
        assert total.calls == ()
        assert (total.failure is not None) if reason is None else total.reply.stop == "length"


def test_h6_pieces_of_two_calls_may_come_in_turns() -> None:
    found = odd_reply_of(
        BEGIN,
        started(),
        started("g", 1, "c2"),
        more('{"a":'),
        more('{"b":', 1),
        more("1}"),
        more("2}", 1),
        CALL_END,
        event("tool-call-end", index=1),
        end(),
    )
    assert [(call.name, call.arguments) for call in found.turn.calls] == [("f", {"a": 1}), ("g", {"b": 2})]


def test_h1_calls_with_one_index_are_calls_of_their_own() -> None:
    found = odd_reply_of(
        BEGIN,
        *(step for id in "abc" for step in (started(id=id), more('{"a":1}'))),
        CALL_END,
        end(),
    )
    assert [call.id for call in found.turn.calls] == ["a", "b", "c"]


def test_h2_events_without_an_index_are_of_the_last_block() -> None:
    def bare(value: Fields) -> Fields:
        return {key: field for key, field in value.items() if key != "index"}

    said = (started(), more('{"a":1}'), CALL_END, started(id="c2"), more("{}"), CALL_END, *content("text", "abc"))
    found = odd_reply_of(BEGIN, *map(bare, said), end())
    assert [(call.id, call.arguments) for call in found.turn.calls] == [("c1", {"a": 1}), ("c2", {})]
    assert found.turn.text == "abc"


def test_h7_a_plan_inside_of_a_call_waits_for_its_end() -> None:
    found = odd_reply_of(BEGIN, started(), more('{"a":'), plan("x"), more("1}"), CALL_END, end())
    assert found.turn.blocks[1] == Text("x", form=PLAN)
    assert found.turn.calls[0].arguments == {"a": 1}


def test_words_after_the_end_of_a_whole_call_are_left_out() -> None:
    found = odd_reply_of(
        BEGIN, started(), more('{"a":1}'), started("g", 1, "c2"), more("\n"), more("{}", 1), more("x"), end()
    )
    assert [(call.name, call.arguments) for call in found.turn.calls] == [("f", {"a": 1}), ("g", {})]


def test_calls_in_lists_and_with_arguments_at_once_are_read() -> None:
    listed = started(arguments='{"a":')
    listed["delta"]["message"]["tool_calls"] = [listed["delta"]["message"]["tool_calls"]]
    rest = more("1}")
    rest["delta"]["message"]["tool_calls"] = [rest["delta"]["message"]["tool_calls"]]
    none = more(None)
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
        plan(7),
        more({}),
        more("x", 7),
        {"type": 7},
    ],
)
def test_what_the_protocol_does_not_allow_is_told_and_left_out(odd: Any) -> None:
    events, decoder = read(sse(BEGIN, *content("text", "abc")[:2], odd, *content("text", "abc")[2:], end("ERROR")))
    found = accumulate(events).reply
    assert (found.turn.text, found.stop) == ("abc", "error")
    assert len(decoder.builder.problems) == 1


def test_what_is_not_said_is_inferred_and_told() -> None:
    found = odd_reply_of(
        event("content-delta", {"content": {"text": "a"}}, index=0),
        event("content-delta", {"content": {"thinking": "b"}}, index=0),
        event("content-start", {"content": {"thinking": "c"}}, index=1),
        plan(""),
        started(id=None),
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


def test_a_second_beginning_says_nothing() -> None:
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
        events.append(plan(message["tool_plan"]))
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = {**call["function"], "arguments": ""}
        events.append(event("tool-call-start", {"tool_calls": {**call, "function": function}}, index=index))
        events.append(more(call["function"]["arguments"], index))
        events.append(event("tool-call-end", index=index))
    rest = {key: value for key, value in body.items() if key not in ("id", "message")}
    return [*events, {"type": "message-end", "delta": rest}]


whole_calls = wire_object(
    {"id": texts, "function": wire_object({"name": texts, "arguments": json_objects.map(json.dumps)}, {})},
    {"type": st.sampled_from(["function", "later", ""])},
)


def bodies(**planned: Any) -> st.SearchStrategy[Fields]:
    """Replies of which a stream says all."""
    thoughts = part("thinking", {"thinking": texts})
    said = {
        "content": st.lists(text_parts | thoughts, max_size=3),
        "tool_calls": st.lists(whole_calls, max_size=2),
        **planned,
    }
    return wire_object(
        {
            "id": texts,
            "message": wire_object({"role": st.just("assistant")}, said),
            "finish_reason": st.sampled_from(
                ["COMPLETE", "STOP_SEQUENCE", "MAX_TOKENS", "TOOL_CALL", "ERROR", "LATER"]
            ),
        },
        {"usage": cohere_replies.map(lambda body: body.get("usage"))},
    )


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
    st.builds(more, json_values, st.integers(0, 2)),
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


# --- writing ----------------------------------------------------------------------------------------


def written(reply: Reply) -> bytes:
    return Encoder().write(of_reply(reply))


def unplanned(blocks: Iterable[Block]) -> list[Block]:
    """Blocks as a stream has them: it does not know that words will be a plan."""
    return [Text(block.text) if isinstance(block, Text) else block for block in blocks]


@pytest.mark.parametrize("name", REPLIES)
def test_what_is_written_is_read_as_what_the_one_shot_form_is(name: str) -> None:
    events, decoder = read(written(REPLIES[name]))
    found = accumulate(events).reply
    expected = one_shot.decode(one_shot.encode(REPLIES[name]))
    assert unplanned(found.turn.blocks) == unplanned(expected.turn.blocks)
    assert (found.id, found.stop, found.usage) == (expected.id, expected.stop, expected.usage)
    assert decoder.builder.problems == []


blocks = st.one_of(
    st.builds(lambda text: Thinking(text, form=THINKING), texts),
    st.builds(Text, texts),
    st.builds(ToolCall, texts.filter(bool), texts, st.dictionaries(texts, json_values, max_size=3)),
)


@pytest.mark.law
@given(
    st.lists(blocks, max_size=5),
    st.sampled_from(["stop", "length", "error"]),
    st.none() | st.builds(Usage, st.integers(0), st.integers(0)),
)
def test_a_reply_comes_back_from_its_stream(said: list[Block], stop: Any, usage: Usage | None) -> None:
    has_calls = any(isinstance(block, ToolCall) for block in said)
    reply = Reply(Turn("assistant", tuple(said)), "tool_calls" if has_calls and stop == "stop" else stop, usage, "r")
    found = accumulate(read(written(reply))[0]).reply
    assert found.turn == reply.turn
    assert (found.stop, found.id) == (reply.stop, "r")
    assert (found.usage is None) == (usage is None)


@pytest.mark.law
@given(bodies())
def test_what_is_coheres_own_comes_back(body: Fields) -> None:
    reply = one_shot.decode(body)
    found = accumulate(read(written(reply))[0]).reply
    assert (found.stop, found.usage, found.id, found.extra) == (reply.stop, reply.usage, reply.id, reply.extra)
    assert found.turn.calls == reply.turn.calls
    assert unplanned(found.turn.blocks) == unplanned(
        Thinking(block.text, form=THINKING) if isinstance(block, Thinking) else block for block in reply.turn.blocks
    )


def test_a_plan_is_written_as_one() -> None:
    found = accumulate(read(Encoder().write(read(sse(*TALK))[0]))[0]).reply
    assert found == reply_of(*TALK)


def test_events_are_as_cohere_writes_them() -> None:
    call = ToolCall("c1", "f", {"a": 1})
    events: list[Event] = [
        Started("r1"),
        *(BlockStarted(Text("")), TextDelta("ä"), BlockEnded(Text("ä"))),
        *(BlockStarted(ToolCall("c1", "f")), InputDelta('{"a":1}'), BlockEnded(call)),
        Used(Usage(1, 2)),
        Finished("tool_calls"),
    ]
    data = [json.loads(part.split(b"\ndata: ")[1]) for part in Encoder().write(events).split(b"\n\n") if part]
    assert data == [
        BEGIN,
        event("content-start", {"content": {"type": "text", "text": ""}}, index=0),
        event("content-delta", {"content": {"text": "ä"}}, index=0),
        event("content-end", index=0),
        started(),
        more('{"a":1}'),
        CALL_END,
        end("TOOL_CALL", usage={"tokens": {"input_tokens": 1, "output_tokens": 2}}),
    ]


def test_a_call_that_was_cut_does_not_end() -> None:
    cut, whole = ToolCall("c1", "f", {"a": 1}), ToolCall("c2", "g", {})
    out = Encoder().write(
        [
            Started(),
            *(BlockStarted(ToolCall("c1", "f")), InputDelta("{"), BlockEnded(cut, cut=True)),
            *(BlockStarted(ToolCall("c2", "g")), BlockEnded(whole)),
            *(BlockStarted(ToolCall("c3", "p", type="custom")), InputDelta("x"), BlockEnded(whole, cut=True)),
            Finished("length"),
        ]
    )
    assert out.count(b"event: tool-call-start") == 2
    assert out.count(b"event: tool-call-end") == 1
    assert b'"type":"tool-call-end","index":1' in out
    assert b'"arguments":"{}"' in out
    assert b"MAX_TOKENS" in out


def test_what_has_no_place_is_left_out() -> None:
    image = Media("image", "image/png", data="aGk=")
    blocks = (image, Opaque("anthropic", {"a": 1}), Opaque("cohere", {"type": "later"}), Thinking())
    foreign = written(Reply(Turn("assistant", blocks), "stop"))
    assert foreign.count(b"event: content-start") == 1
    assert written(Reply(Turn("assistant", blocks), "stop", form=STREAMED)).count(b"event: content-start") == 2


def test_a_beginning_is_written_even_if_none_came() -> None:
    assert Encoder().write([Finished("stop")]).startswith(b"event: message-start\n")


def test_a_failure_ends_the_message() -> None:
    out = Encoder().write([Started(), Failed(Failure("overloaded", "full"))])
    (data,) = (json.loads(block.split(b"\ndata: ")[1]) for block in out.split(b"\n\n")[1:] if block)
    assert data["type"] == "message-end"
    assert data["delta"]["finish_reason"] == "ERROR"
    assert data["delta"]["error"].endswith("full")


def test_a_failure_of_coheres_own_is_written_as_it_came() -> None:
    events, _ = read(sse(BEGIN, end("ERROR", error="internal error", usage=USAGE)))
    assert json.dumps(end("ERROR", error="internal error", usage=USAGE), separators=(",", ":")).encode() in (
        Encoder().write(events)
    )


# --- Cohere's SDK -----------------------------------------------------------------------------------


def asked(out: bytes) -> list[Any]:
    sdk = load("cohere")
    with serving() as provider, sdk.open(provider.url) as client:
        provider.give(out, EVENT_STREAM)
        return list(client.chat_stream(model="m", messages=[{"role": "user", "content": "hi"}]))


@pytest.mark.parametrize("name", REPLIES)
def test_cohere_reads_what_is_written(name: str) -> None:
    reply, encoder = REPLIES[name], Encoder()
    events = list(of_reply(reply))
    found = asked(encoder.write(events[:2]) + encoder.ping() + encoder.write(events[2:]))
    assert [found[0].type, found[-1].type] == ["message-start", "message-end"]
    words = [value.delta.message.content for value in found if value.type == "content-delta"]
    assert "".join(word.text or "" for word in words) == reply.turn.text
    thought = "".join(block.text for block in reply.turn.blocks if isinstance(block, Thinking))
    assert "".join(word.thinking or "" for word in words) == thought
    starts = [value for value in found if value.type == "tool-call-start"]
    calls = [value.delta.message.tool_calls for value in starts]
    assert [(call.id, call.function.name) for call in calls] == [(call.id, call.name) for call in reply.turn.calls]
    expected = one_shot.decode(one_shot.encode(reply)).turn.calls
    for index, call in enumerate(expected):
        pieces = [
            value.delta.message.tool_calls.function.arguments
            for value in found
            if value.type == "tool-call-delta" and value.index == index
        ]
        assert json.loads("".join(pieces)) == call.arguments
    assert (found[-1].delta.usage is not None) == (reply.usage is not None)
    assert found[-1].delta.finish_reason == one_shot.encode(reply)["finish_reason"]


def test_cohere_reads_a_failure() -> None:
    found = asked(Encoder().write([Started(), Failed(Failure("server", "out of memory"))]))
    assert found[-1].delta.error == "out of memory"


def test_at_home_a_thought_that_breaks_off_before_its_first_word_begins_once() -> None:
    decoder, encoder, out = Decoder(), Encoder(), b""
    for frame in framer().feed(sse(BEGIN, *content("thinking", "Hmm.")[:1])):
        out += encoder.write(decoder.read(frame))
        assert decoder.builder.is_settled
    decoder.builder.fail(Failure("server", "lost"))
    assert out.count(b"event: content-start") == 1
    assert encoder.write(decoder.builder.take()).count(b"event: content-start") == 0
