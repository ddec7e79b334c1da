"""Bedrock Converse streams, read: what they add up to, and what providers do beside the protocol."""

from __future__ import annotations

import base64

import pytest

from support.protocols.streams.bedrock import (
    CALL_EVENTS,
    CITATION,
    EVERYTHING,
    START,
    WHOLE,
    NamedEvent,
    aws,
    begin,
    call,
    delta,
    end_events,
    input_delta,
    read,
    read_bytes,
    reasoning_delta,
    stop,
    text_delta,
)
from toolglot.conversation import FailureKind, Opaque, Text, Thinking, ToolCall
from toolglot.conversation.events import BlockEnded, Failed, Finished, InputDelta, TextDelta
from toolglot.errors import LimitError
from toolglot.limits import Limits
from toolglot.protocols.bedrock import reply
from toolglot.protocols.bedrock.stream_reader import Decoder, framer
from toolglot.protocols.bedrock.stream_writer import Encoder
from toolglot.protocols.framing.aws_frames import event_message, message, text_headers


def test_a_stream_adds_up_to_the_same_reply_as_the_whole_body() -> None:
    found = read(*EVERYTHING)
    assert found.reply == reply.decode(WHOLE)
    assert reply.encode(found.reply) == WHOLE
    assert found.problems == []


@pytest.mark.parametrize("piece", [*range(1, 40), 100, 1000])
def test_however_the_bytes_are_cut_the_events_are_the_same(piece: int) -> None:
    data = aws(*EVERYTHING)
    assert read_bytes(data, piece=piece).events == read_bytes(data).events


def test_every_single_cut_gives_the_same_events() -> None:
    data = aws(START, *CALL_EVENTS, text_delta(1, "ä😀"), stop(1), *end_events("tool_use"))
    whole = read_bytes(data)
    for at in range(len(data)):
        decoder, frames = Decoder(), framer()
        events = [event for part in (data[:at], data[at:]) for one in frames.feed(part) for event in decoder.read(one)]
        assert events + decoder.finish() == whole.events


def test_pieces_are_handed_on_as_they_come() -> None:
    found = read(START, *CALL_EVENTS, text_delta(1, "x"), stop(1), *end_events("tool_use"))
    assert [event.text for event in found.events if isinstance(event, InputDelta | TextDelta)] == ['{"a"', ":1}", "x"]
    assert found.problems == []
    assert found.blocks == (ToolCall("tooluse_1", "f", {"a": 1}), Text("x"))


def test_what_our_own_writer_shows_later_is_held_back() -> None:
    decoder, held = Decoder(), []
    for position, frame in enumerate(framer().feed(aws(*EVERYTHING))):
        decoder.read(frame)
        if not decoder.builder.is_settled:
            held.append(position)
    assert held == [6, 12, 13, 15, 16, 17, 19, 20, 21, 23, 24, 26, 30, len(EVERYTHING) - 2]


def test_hidden_thinking_that_came_in_pieces_is_joined_as_bytes() -> None:
    parts = [base64.b64encode(part).decode() for part in (b"a", b"bcd")]
    found = read(START, *[reasoning_delta(0, redactedContent=part) for part in parts], stop(0), *end_events())
    assert found.blocks[0].redacted == base64.b64encode(b"abcd").decode()
    odd = read(
        START, reasoning_delta(0, redactedContent="a"), reasoning_delta(0, redactedContent="b"), stop(0), *end_events()
    )
    assert odd.blocks[0].redacted == "ab"


def test_an_empty_text_is_a_block() -> None:
    assert read(START, text_delta(0, ""), stop(0), stop(1), *end_events()).blocks == (Text(""), Text(""))


# --- what providers do ------------------------------------------------------------------------------


def test_H7_blocks_that_overlap_come_out_one_after_the_other() -> None:
    found = read(
        *(
            START,
            text_delta(0, "a"),
            call(1),
            input_delta(1, '{"a"'),
            text_delta(0, "b"),
            reasoning_delta(2, text="hm"),
            input_delta(1, ":1}"),
        ),
        *(stop(0), stop(1), stop(2), *end_events("tool_use")),
    )
    assert [type(block) for block in found.blocks] == [Text, ToolCall, Thinking]
    assert found.blocks[:2] == (Text("ab"), ToolCall("tooluse_1", "f", {"a": 1}))
    assert found.problems


@pytest.mark.parametrize("reason", ["tool_use", "max_tokens", "end_turn", None])
@pytest.mark.parametrize("closes", [True, False])
def test_F1_J4_a_call_that_was_cut_is_never_whole(reason: str | None, closes: bool) -> None:
    text = '{"command": ["ls", {"a": "}"}], "b": "\\""}'
    for at in range(1, len(text)):
        tail = [stop(0)] if closes else []
        found = read(START, call(0), input_delta(0, text[:at]), *tail, *(end_events(reason) if reason else []))
        assert found.accumulator.calls == ()
        assert [event.cut for event in found.events if isinstance(event, BlockEnded)] == [True]
        last = found.events[-1]
        assert isinstance(last, Failed) or (isinstance(last, Finished) and last.stop == "length")


@pytest.mark.parametrize(
    ("blocks", "reason", "stopped", "is_reported"),
    [
        (CALL_EVENTS, "end_turn", "tool_calls", True),
        (CALL_EVENTS, "tool_use", "tool_calls", False),
        (CALL_EVENTS, "guardrail_intervened", "filter", False),
        (CALL_EVENTS, "malformed_tool_use", "error", False),
        ([], "tool_use", "stop", True),
        ([], "max_tokens", "length", False),
        ([], "later", "stop", False),
    ],
)
def test_J1_J2_the_reason_is_derived_from_what_is_there(
    blocks: list[NamedEvent], reason: str, stopped: str, is_reported: bool
) -> None:
    found = read(START, *blocks, *end_events(reason))
    assert found.reply.stop == stopped
    assert bool(found.problems) == is_reported


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("throttlingException", "rate_limit"),
        ("serviceUnavailableException", "overloaded"),
        ("internalServerException", "server"),
        ("validationException", "bad_request"),
        ("modelStreamErrorException", "bad_output"),
    ],
)
def test_K_an_exception_in_the_middle_is_the_end(name: str, kind: FailureKind) -> None:
    thrown = event_message(name, {"message": "why"}, is_exception=True)
    found = read_bytes(aws(START, *CALL_EVENTS, text_delta(1, "x")) + thrown + aws(text_delta(1, "y")))
    failure = found.accumulator.failure
    assert failure is not None
    assert (failure.kind, failure.message, failure.in_band) == (kind, "why", True)
    assert found.accumulator.cut == (Text("x"),)
    assert found.problems == []
    assert Encoder().write(found.events).endswith(thrown)


def test_K_errors_without_a_payload_or_without_json_are_errors() -> None:
    headers = {":message-type": "error", ":error-code": "InternalError", ":error-message": "broke"}
    bare = read_bytes(aws(START) + message(text_headers(headers), b"")).accumulator.failure
    assert bare is not None
    assert "broke" in bare.message
    page = read_bytes(
        aws(START) + message(text_headers({**headers, ":message-type": "exception"}), b"<p>")
    ).accumulator.failure
    assert page is not None


def test_K1_a_second_message_is_not_added_to_the_first() -> None:
    found = read(START, *CALL_EVENTS, START, *CALL_EVENTS, *end_events("tool_use"))
    assert isinstance(found.events[-1], Failed)
    assert len(found.blocks) == 1
    again = read(START, START, *CALL_EVENTS, *end_events("tool_use"))
    assert again.reply.stop == "tool_calls"
    assert again.problems == ["the message began twice"]


def test_a_call_that_began_with_its_arguments_has_them() -> None:
    for arguments in ({"a": 1}, '{"a":1}'):
        found = read(START, call(0, input=arguments), stop(0), *end_events("tool_use"))
        assert found.blocks == (ToolCall("tooluse_1", "f", {"a": 1}),)
        assert found.problems == ["a call began with its arguments"]
    server = read(START, call(0, type="server_tool_use", input={"a": 1}), stop(0), *end_events())
    assert server.blocks[0].value["toolUse"]["input"] == {"a": 1}


def test_arguments_may_come_as_an_object() -> None:
    found = read(START, call(0), input_delta(0, {"a": 1}), stop(0), *end_events("tool_use"))
    assert found.blocks == (ToolCall("tooluse_1", "f", {"a": 1}),)
    assert found.problems == ["arguments came as an object, not as text"]


def test_words_for_a_block_of_another_type_are_kept() -> None:
    found = read(
        START,
        call(0),
        input_delta(0, '{"a"'),
        text_delta(0, "x"),
        input_delta(0, ":1}"),
        stop(0),
        *end_events("tool_use"),
    )
    assert found.blocks == (ToolCall("tooluse_1", "f", {"a": 1}), Text("x"))
    thinking = read(START, text_delta(0, "a"), reasoning_delta(0, text="hm"), stop(0), *end_events())
    assert thinking.blocks == (Text("a"), Thinking("hm"))
    assert found.problems[0] == thinking.problems[0] == "a delta came for a block of another type"


def test_a_call_that_is_whole_takes_no_more() -> None:
    found = read(
        START,
        *CALL_EVENTS[:-1],
        text_delta(1, "x"),
        input_delta(0, "{}"),
        input_delta(0, "\n"),
        stop(1),
        *end_events("tool_use"),
    )
    assert found.blocks == (ToolCall("tooluse_1", "f", {"a": 1}), Text("x"))
    assert "something came for a call that was whole, and was left out" in found.problems


def test_thinking_that_is_shown_and_hidden_is_shown() -> None:
    found = read(
        START,
        reasoning_delta(0, text="a", signature="s"),
        reasoning_delta(0, redactedContent="eA=="),
        stop(0),
        *end_events(),
    )
    assert (found.blocks[0].text, found.blocks[0].signature, found.blocks[0].redacted) == ("a", "s", None)
    assert found.problems


@pytest.mark.parametrize("closes", [True, False])
def test_an_index_that_comes_twice_is_another_block(closes: bool) -> None:
    first = CALL_EVENTS if closes else CALL_EVENTS[:-1]
    found = read(START, *first, call(0, "tooluse_2"), input_delta(0, '{"b":2}'), stop(0), *end_events("tool_use"))
    assert found.blocks == (ToolCall("tooluse_1", "f", {"a": 1}), ToolCall("tooluse_2", "f", {"b": 2}))
    assert found.problems


def test_a_start_that_comes_twice_is_one_block() -> None:
    found = read(START, call(0), *CALL_EVENTS, *end_events("tool_use"))
    assert found.blocks == (ToolCall("tooluse_1", "f", {"a": 1}),)
    assert found.problems == ["a block began twice"]


def without_index(event: NamedEvent) -> NamedEvent:
    return event[0], {key: value for key, value in event[1].items() if key != "contentBlockIndex"}


def test_events_without_an_index_belong_to_the_last_block() -> None:
    found = read(START, *map(without_index, CALL_EVENTS), *end_events("tool_use"))
    assert found.blocks == (ToolCall("tooluse_1", "f", {"a": 1}),)
    assert found.problems == ["an event does not say to which block it belongs"]
    alone = read(
        START, without_index(text_delta(0, "x")), without_index(stop(0)), without_index(stop(0)), *end_events()
    )
    assert alone.blocks == (Text("x"),)


@pytest.mark.parametrize("gone", ["messageStart", "metadata", "contentBlockStop"])
def test_events_that_are_missing(gone: str) -> None:
    found = read(*[event for event in EVERYTHING if event[0] != gone])
    assert found.reply.stop == "tool_calls"
    assert found.accumulator.calls == reply.decode(WHOLE).turn.calls
    assert bool(found.problems) == (gone != "metadata")


def test_metadata_may_come_first() -> None:
    stopped, metadata = end_events()
    found = read(START, text_delta(0, "x"), stop(0), metadata, stopped)
    assert found.reply.stop == "stop"
    assert found.reply.usage is not None
    assert found.problems == ["metadata came before the end of the message"]


def test_the_end_of_the_bytes_inside_a_block_is_a_failure() -> None:
    inside: list[list[NamedEvent]] = [
        [],
        [START],
        [START, text_delta(0, "x")],
        [START, *CALL_EVENTS[:3]],
        [START, text_delta(0, "x"), stop(0), begin(1, image={"format": "png"})],
    ]
    for events in inside:
        assert isinstance(read(*events).events[-1], Failed)
    assert isinstance(read(START, *CALL_EVENTS).events[-1], Failed), "cut between two blocks"
    without_reason = read(START, text_delta(0, "x"), ("messageStop", {}), ("metadata", {"metrics": {"latencyMs": 1}}))
    assert without_reason.reply.stop == "stop"
    assert reply.encode(without_reason.reply)["metrics"] == {"latencyMs": 1}
    assert without_reason.problems


@pytest.mark.parametrize(
    "odd",
    [
        ("later", {}),
        ("contentBlockDelta", {"contentBlockIndex": 0}),
        ("contentBlockStart", {"contentBlockIndex": 1}),
        begin(1, toolUse=5),
        begin(1, toolUse={}, image={}),
        delta(0, later={}),
        delta(0, text=5),
        input_delta(0, 5),
        input_delta(0, "{}"),
        delta(0, toolUse=5),
        delta(0, toolResult=[]),
        delta(0, image={}),
        reasoning_delta(0, later="x"),
        ("metadata", {"usage": 5}),
    ],
)
def test_what_makes_no_sense_is_left_out_and_reported(odd: NamedEvent) -> None:
    found = read(START, text_delta(0, "a"), odd, text_delta(0, "b"), stop(0), *end_events())
    assert found.blocks == (Text("ab"),)
    assert found.problems


def test_a_corrupt_event_ends_the_stream() -> None:
    for payload in (b"{", b'{"delta":' * 2000):
        odd = message(text_headers({":event-type": "contentBlockDelta"}), payload)
        found = read_bytes(aws(START, text_delta(0, "a")) + odd + aws(text_delta(0, "b"), stop(0), *end_events()))
        assert found.accumulator.failure is not None
        assert "corrupt" in found.accumulator.failure.message
        assert found.blocks == (Text("a"),)


def test_events_that_are_no_objects_are_left_out_and_reported() -> None:
    for payload in (b"ping", b"[]", b"[" * 1000):
        odd = message(text_headers({":event-type": "contentBlockDelta"}), payload)
        found = read_bytes(aws(START, text_delta(0, "a")) + odd + aws(text_delta(0, "b"), stop(0), *end_events()))
        assert found.blocks == (Text("ab"),)
        assert found.problems == ["an event whose data is not a JSON object was left out"]


def test_deltas_for_the_wrong_kind_of_block_are_reported() -> None:
    found = read(START, call(0), delta(0, citation=CITATION), input_delta(0, "{}"), stop(0), *end_events("tool_use"))
    assert found.blocks == (ToolCall("tooluse_1", "f", {}),)
    assert found.problems == ["a citation came for a block that is not text, and was left out"]
    empty = read(START, reasoning_delta(0, later="x"), stop(0), *end_events())
    assert empty.problems == ["a delta of thinking without known fields was left out"]
    unnamed = read(START, begin(0, toolUse={"toolUseId": None}), stop(0), *end_events("tool_use"))
    assert unnamed.blocks[0].name == ""
    assert unnamed.problems == ["the start of a call lacks toolUseId, name"]


def test_blocks_of_an_unknown_type_are_carried() -> None:
    found = read(START, begin(0, later={"x": 1}), stop(0), begin(1, image={"format": 5}), stop(1), *end_events())
    assert found.blocks == (
        Opaque("bedrock", {"later": {"x": 1}}, "later"),
        Opaque("bedrock", {"image": {"format": 5}}, "image"),
    )


def test_arguments_of_a_server_tool_that_cannot_be_read_are_left_out() -> None:
    found = read(START, call(0, type="server_tool_use"), input_delta(0, '{"a"'), stop(0), *end_events())
    assert found.blocks[0].value["toolUse"]["input"] == {}
    assert found.problems == ["the arguments of a server tool could not be read"]


def test_nothing_follows_the_end_and_an_initial_response_adds_nothing() -> None:
    found = read(("initial-response", {}), START, text_delta(0, "x"), stop(0), *end_events(), text_delta(0, "y"), START)
    assert found.blocks == (Text("x"),)
    assert found.problems == []


def test_a_stream_is_bounded() -> None:
    limits = Limits(max_bytes=1000)
    with pytest.raises(LimitError):
        read_bytes(aws(START, *[text_delta(0, "x" * 100)] * 20), limits=limits)
    with pytest.raises(LimitError):
        read_bytes(aws(START, *[("later", {"x": "y" * 90})] * 20), limits=limits)
    with pytest.raises(LimitError, match="open at once"):
        read(START, *[text_delta(index, "x") for index in range(1001)])
