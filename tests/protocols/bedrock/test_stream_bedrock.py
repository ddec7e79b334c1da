"""Streams of the Bedrock Converse protocol: what they add up to, what providers do to them, what boto3 reads."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import EventStreamError
from hypothesis import given
from hypothesis import strategies as st

from sdk.bedrock_converse import SDK
from sdk.loopback import Loopback, serving
from sdk.made_replies import CALL, REPLIES
from support.conversations.event_grammar import check
from support.conversations.strategies import (
    calls,
    json_objects,
    json_values,
    media_blocks,
    opaque_blocks,
    text_blocks,
    texts,
)
from support.protocols.streams.reading import ReadStream, pieces_of
from toolglot.conversation import (
    Block,
    Failure,
    FailureKind,
    Media,
    Opaque,
    Reply,
    ServerTool,
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
from toolglot.conversation.reply_events import of_block, of_reply
from toolglot.errors import LimitError
from toolglot.limits import Limits
from toolglot.protocols.base import get
from toolglot.protocols.bedrock import reply
from toolglot.protocols.bedrock.form import PLAIN_REPLY
from toolglot.protocols.bedrock.stream_reader import Decoder, framer
from toolglot.protocols.bedrock.stream_writer import Encoder
from toolglot.protocols.framing.aws_frames import AwsFramer, event_message, message, text_headers
from toolglot.protocols.framing.text_frames import Frame

Fields = dict[str, Any]
Said = tuple[str, Fields]

START: Said = ("messageStart", {"role": "assistant", "p": "abcdef"})


def begin(index: int, **start: Any) -> Said:
    return "contentBlockStart", {"contentBlockIndex": index, "start": start, "p": "abc"}


def call(index: int, id: str = "tooluse_1", name: str = "f", **more: Any) -> Said:
    return begin(index, toolUse={"toolUseId": id, "name": name, **more})


def delta(index: int, **given: Any) -> Said:
    return "contentBlockDelta", {"contentBlockIndex": index, "delta": given, "p": "abcdefghijk"}


def said(index: int, text: str) -> Said:
    return delta(index, text=text)


def argued(index: int, text: Any) -> Said:
    return delta(index, toolUse={"input": text})


def thought(index: int, **given: Any) -> Said:
    return delta(index, reasoningContent=given)


def stop(index: int) -> Said:
    return "contentBlockStop", {"contentBlockIndex": index, "p": "a"}


def ended(reason: str = "end_turn") -> list[Said]:
    metadata = {
        "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7},
        "metrics": {"latencyMs": 5},
        "p": "ab",
    }
    return [("messageStop", {"stopReason": reason, "p": "a"}), ("metadata", metadata)]


CALLED = [call(0), argued(0, ""), argued(0, '{"a"'), argued(0, ":1}"), stop(0)]


def aws(*events: Said) -> bytes:
    return b"".join(event_message(name, fields) for name, fields in events)


def read_bytes(data: bytes, *, piece: int = 0, limits: Limits | None = None) -> ReadStream:
    decoder = Decoder(limits=limits) if limits else Decoder()
    return ReadStream(framer(), decoder, pieces_of(data, piece))


def read(*events: Said) -> ReadStream:
    return read_bytes(aws(*events))


CITATION = {"title": "Report", "sourceContent": [{"text": "7"}], "location": {"web": {"url": "https://example.com"}}}
SERVER_RESULT = {"toolUseId": "s", "type": "nova_grounding_result", "status": "success"}
EVERYTHING: list[Said] = [
    START,
    thought(0, text="Hm"),
    thought(0, text=", so."),
    thought(0, text="."),
    thought(0, signature="c2ln"),
    stop(0),
    thought(1, redactedContent="cmVk"),
    stop(1),
    said(2, "7 °"),
    said(2, "C 😀"),
    stop(2),
    said(3, "cited"),
    delta(3, citation=CITATION),
    delta(3, citation={**CITATION, "title": "Other"}),
    stop(3),
    call(4, "s", "nova_grounding", type="server_tool_use"),
    argued(4, '{"query": '),
    argued(4, '"Köln"}'),
    stop(4),
    begin(5, toolResult=SERVER_RESULT),
    delta(5, toolResult=[{"text": "a"}]),
    delta(5, toolResult=[{"json": {"b": 1}}]),
    stop(5),
    begin(6, image={"format": "png"}),
    delta(6, image={"source": {"bytes": "aGk="}}),
    stop(6),
    call(7),
    argued(7, '{"a": [1.0, '),
    argued(7, "12345678901234567890]}"),
    stop(7),
    call(8, "tooluse_2", "g"),
    stop(8),
    ("messageStop", {"stopReason": "tool_use", "additionalModelResponseFields": {"x": 1}}),
    (
        "metadata",
        {
            "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "cacheReadInputTokens": 2},
            "metrics": {"latencyMs": 5},
            "performanceConfig": {"latency": "standard"},
        },
    ),
]
WHOLE: Fields = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "Hm, so..", "signature": "c2ln"}}},
                {"reasoningContent": {"redactedContent": "cmVk"}},
                {"text": "7 °C 😀"},
                {
                    "citationsContent": {
                        "content": [{"text": "cited"}],
                        "citations": [CITATION, {**CITATION, "title": "Other"}],
                    }
                },
                {
                    "toolUse": {
                        "toolUseId": "s",
                        "name": "nova_grounding",
                        "type": "server_tool_use",
                        "input": {"query": "Köln"},
                    }
                },
                {"toolResult": {**SERVER_RESULT, "content": [{"text": "a"}, {"json": {"b": 1}}]}},
                {"image": {"format": "png", "source": {"bytes": "aGk="}}},
                {"toolUse": {"toolUseId": "tooluse_1", "name": "f", "input": {"a": [1.0, 12345678901234567890]}}},
                {"toolUse": {"toolUseId": "tooluse_2", "name": "g", "input": {}}},
            ],
        }
    },
    "stopReason": "tool_use",
    "additionalModelResponseFields": {"x": 1},
    "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "cacheReadInputTokens": 2},
    "metrics": {"latencyMs": 5},
    "performanceConfig": {"latency": "standard"},
}


def test_a_stream_adds_up_to_what_the_same_answer_says_when_it_comes_whole() -> None:
    found = read(*EVERYTHING)
    assert found.reply == reply.decode(WHOLE)
    assert reply.encode(found.reply) == WHOLE
    assert found.problems == []


@pytest.mark.parametrize("piece", [*range(1, 40), 100, 1000])
def test_however_the_bytes_are_cut_the_events_are_the_same(piece: int) -> None:
    data = aws(*EVERYTHING)
    assert read_bytes(data, piece=piece).events == read_bytes(data).events


def test_every_single_cut_gives_the_same_events() -> None:
    data = aws(START, *CALLED, said(1, "ä😀"), stop(1), *ended("tool_use"))
    whole = read_bytes(data)
    for at in range(len(data)):
        decoder, frames = Decoder(), framer()
        events = [event for part in (data[:at], data[at:]) for one in frames.feed(part) for event in decoder.read(one)]
        assert events + decoder.finish() == whole.events


def test_pieces_are_handed_on_as_they_come() -> None:
    found = read(START, *CALLED, said(1, "x"), stop(1), *ended("tool_use"))
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
    found = read(START, *[thought(0, redactedContent=part) for part in parts], stop(0), *ended())
    assert found.blocks[0].redacted == base64.b64encode(b"abcd").decode()
    odd = read(START, thought(0, redactedContent="a"), thought(0, redactedContent="b"), stop(0), *ended())
    assert odd.blocks[0].redacted == "ab"


def test_an_empty_text_is_a_block() -> None:
    assert read(START, said(0, ""), stop(0), stop(1), *ended()).blocks == (Text(""), Text(""))


# --- what providers do ------------------------------------------------------------------------------


def test_H7_blocks_that_overlap_come_out_one_after_the_other() -> None:
    found = read(
        *(START, said(0, "a"), call(1), argued(1, '{"a"'), said(0, "b"), thought(2, text="hm"), argued(1, ":1}")),
        *(stop(0), stop(1), stop(2), *ended("tool_use")),
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
        found = read(START, call(0), argued(0, text[:at]), *tail, *(ended(reason) if reason else []))
        assert found.accumulator.calls == ()
        assert [event.cut for event in found.events if isinstance(event, BlockEnded)] == [True]
        last = found.events[-1]
        assert isinstance(last, Failed) or (isinstance(last, Finished) and last.stop == "length")


@pytest.mark.parametrize(
    ("blocks", "reason", "stopped", "tells"),
    [
        (CALLED, "end_turn", "tool_calls", True),
        (CALLED, "tool_use", "tool_calls", False),
        (CALLED, "guardrail_intervened", "filter", False),
        (CALLED, "malformed_tool_use", "error", False),
        ([], "tool_use", "stop", True),
        ([], "max_tokens", "length", False),
        ([], "later", "stop", False),
    ],
)
def test_J1_J2_the_reason_is_derived_from_what_is_there(
    blocks: list[Said], reason: str, stopped: str, tells: bool
) -> None:
    found = read(START, *blocks, *ended(reason))
    assert found.reply.stop == stopped
    assert bool(found.problems) == tells


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
    found = read_bytes(aws(START, *CALLED, said(1, "x")) + thrown + aws(said(1, "y")))
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
    found = read(START, *CALLED, START, *CALLED, *ended("tool_use"))
    assert isinstance(found.events[-1], Failed)
    assert len(found.blocks) == 1
    again = read(START, START, *CALLED, *ended("tool_use"))
    assert again.reply.stop == "tool_calls"
    assert again.problems == ["the message began twice"]


def test_a_call_that_began_with_its_arguments_has_them() -> None:
    for given_whole in ({"a": 1}, '{"a":1}'):
        found = read(START, call(0, input=given_whole), stop(0), *ended("tool_use"))
        assert found.blocks == (ToolCall("tooluse_1", "f", {"a": 1}),)
        assert found.problems == ["a call began with its arguments"]
    server = read(START, call(0, type="server_tool_use", input={"a": 1}), stop(0), *ended())
    assert server.blocks[0].value["toolUse"]["input"] == {"a": 1}


def test_arguments_may_come_as_an_object() -> None:
    found = read(START, call(0), argued(0, {"a": 1}), stop(0), *ended("tool_use"))
    assert found.blocks == (ToolCall("tooluse_1", "f", {"a": 1}),)
    assert found.problems == ["arguments came as an object, not as text"]


def test_words_for_a_block_of_another_type_are_kept() -> None:
    found = read(START, call(0), argued(0, '{"a"'), said(0, "x"), argued(0, ":1}"), stop(0), *ended("tool_use"))
    assert found.blocks == (ToolCall("tooluse_1", "f", {"a": 1}), Text("x"))
    thinking = read(START, said(0, "a"), thought(0, text="hm"), stop(0), *ended())
    assert thinking.blocks == (Text("a"), Thinking("hm"))
    assert found.problems[0] == thinking.problems[0] == "a delta came for a block of another type"


def test_a_call_that_is_whole_takes_no_more() -> None:
    found = read(START, *CALLED[:-1], said(1, "x"), argued(0, "{}"), argued(0, "\n"), stop(1), *ended("tool_use"))
    assert found.blocks == (ToolCall("tooluse_1", "f", {"a": 1}), Text("x"))
    assert "something came for a call that was whole, and was left out" in found.problems


def test_thinking_that_is_shown_and_hidden_is_shown() -> None:
    found = read(START, thought(0, text="a", signature="s"), thought(0, redactedContent="eA=="), stop(0), *ended())
    assert (found.blocks[0].text, found.blocks[0].signature, found.blocks[0].redacted) == ("a", "s", None)
    assert found.problems


@pytest.mark.parametrize("closes", [True, False])
def test_an_index_that_comes_twice_is_another_block(closes: bool) -> None:
    first = CALLED if closes else CALLED[:-1]
    found = read(START, *first, call(0, "tooluse_2"), argued(0, '{"b":2}'), stop(0), *ended("tool_use"))
    assert found.blocks == (ToolCall("tooluse_1", "f", {"a": 1}), ToolCall("tooluse_2", "f", {"b": 2}))
    assert found.problems


def test_a_start_that_comes_twice_is_one_block() -> None:
    found = read(START, call(0), *CALLED, *ended("tool_use"))
    assert found.blocks == (ToolCall("tooluse_1", "f", {"a": 1}),)
    assert found.problems == ["a block began twice"]


def without_index(event: Said) -> Said:
    return event[0], {key: value for key, value in event[1].items() if key != "contentBlockIndex"}


def test_events_without_an_index_belong_to_the_last_block() -> None:
    found = read(START, *map(without_index, CALLED), *ended("tool_use"))
    assert found.blocks == (ToolCall("tooluse_1", "f", {"a": 1}),)
    assert found.problems == ["an event does not say to which block it belongs"]
    alone = read(START, without_index(said(0, "x")), without_index(stop(0)), without_index(stop(0)), *ended())
    assert alone.blocks == (Text("x"),)


@pytest.mark.parametrize("gone", ["messageStart", "metadata", "contentBlockStop"])
def test_events_that_are_missing(gone: str) -> None:
    found = read(*[event for event in EVERYTHING if event[0] != gone])
    assert found.reply.stop == "tool_calls"
    assert found.accumulator.calls == reply.decode(WHOLE).turn.calls
    assert bool(found.problems) == (gone != "metadata")


def test_metadata_may_come_first() -> None:
    stopped, metadata = ended()
    found = read(START, said(0, "x"), stop(0), metadata, stopped)
    assert found.reply.stop == "stop"
    assert found.reply.usage is not None
    assert found.problems == ["metadata came before the end of the message"]


def test_the_end_of_the_bytes_inside_a_block_is_a_failure() -> None:
    inside: list[list[Said]] = [
        [],
        [START],
        [START, said(0, "x")],
        [START, *CALLED[:3]],
        [START, said(0, "x"), stop(0), begin(1, image={"format": "png"})],
    ]
    for events in inside:
        assert isinstance(read(*events).events[-1], Failed)
    assert isinstance(read(START, *CALLED).events[-1], Failed), "cut between two blocks"
    unsaid = read(START, said(0, "x"), ("messageStop", {}), ("metadata", {"metrics": {"latencyMs": 1}}))
    assert unsaid.reply.stop == "stop"
    assert reply.encode(unsaid.reply)["metrics"] == {"latencyMs": 1}
    assert unsaid.problems


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
        argued(0, 5),
        argued(0, "{}"),
        delta(0, toolUse=5),
        delta(0, toolResult=[]),
        delta(0, image={}),
        thought(0, later="x"),
        ("metadata", {"usage": 5}),
    ],
)
def test_what_makes_no_sense_is_left_out_and_told(odd: Said) -> None:
    found = read(START, said(0, "a"), odd, said(0, "b"), stop(0), *ended())
    assert found.blocks == (Text("ab"),)
    assert found.problems


def test_a_corrupt_event_ends_the_stream() -> None:
    for payload in (b"{", b'{"delta":' * 2000):
        odd = message(text_headers({":event-type": "contentBlockDelta"}), payload)
        found = read_bytes(aws(START, said(0, "a")) + odd + aws(said(0, "b"), stop(0), *ended()))
        assert found.accumulator.failure is not None
        assert "corrupt" in found.accumulator.failure.message
        assert found.blocks == (Text("a"),)


def test_events_that_are_no_objects_are_left_out_and_told() -> None:
    for payload in (b"ping", b"[]", b"[" * 1000):
        odd = message(text_headers({":event-type": "contentBlockDelta"}), payload)
        found = read_bytes(aws(START, said(0, "a")) + odd + aws(said(0, "b"), stop(0), *ended()))
        assert found.blocks == (Text("ab"),)
        assert found.problems == ["an event whose data is not a JSON object was left out"]


def test_deltas_for_the_wrong_kind_of_block_are_told() -> None:
    found = read(START, call(0), delta(0, citation=CITATION), argued(0, "{}"), stop(0), *ended("tool_use"))
    assert found.blocks == (ToolCall("tooluse_1", "f", {}),)
    assert found.problems == ["a citation came for a block that is not text, and was left out"]
    empty = read(START, thought(0, later="x"), stop(0), *ended())
    assert empty.problems == ["a delta of thinking without known fields was left out"]
    unnamed = read(START, begin(0, toolUse={"toolUseId": None}), stop(0), *ended("tool_use"))
    assert unnamed.blocks[0].name == ""
    assert unnamed.problems == ["the start of a call lacks toolUseId, name"]


def test_blocks_of_an_unknown_type_are_carried() -> None:
    found = read(START, begin(0, later={"x": 1}), stop(0), begin(1, image={"format": 5}), stop(1), *ended())
    assert found.blocks == (
        Opaque("bedrock", {"later": {"x": 1}}, "later"),
        Opaque("bedrock", {"image": {"format": 5}}, "image"),
    )


def test_arguments_of_a_server_tool_that_cannot_be_read_are_left_out() -> None:
    found = read(START, call(0, type="server_tool_use"), argued(0, '{"a"'), stop(0), *ended())
    assert found.blocks[0].value["toolUse"]["input"] == {}
    assert found.problems == ["the arguments of a server tool could not be read"]


def test_nothing_follows_the_end_and_an_initial_response_says_nothing() -> None:
    found = read(("initial-response", {}), START, said(0, "x"), stop(0), *ended(), said(0, "y"), START)
    assert found.blocks == (Text("x"),)
    assert found.problems == []


def test_a_stream_is_bounded() -> None:
    limits = Limits(max_bytes=1000)
    with pytest.raises(LimitError):
        read_bytes(aws(START, *[said(0, "x" * 100)] * 20), limits=limits)
    with pytest.raises(LimitError):
        read_bytes(aws(START, *[("later", {"x": "y" * 90})] * 20), limits=limits)
    with pytest.raises(LimitError, match="open at once"):
        read(START, *[said(index, "x") for index in range(1001)])


# --- writing ----------------------------------------------------------------------------------------


def parsed(data: bytes) -> list[Said]:
    return [(frame.name, json.loads(frame.data)) for frame in AwsFramer().feed(data)]


def sent(*events: Event) -> list[Said]:
    return parsed(Encoder().write(events))


def legal(found: list[Said]) -> None:
    """The order that the protocol has: a start, blocks that count up and close, an end, and nothing after it."""
    assert found[0] == ("messageStart", {"role": "assistant"})
    following, opened = 0, False
    for name, fields in found[1:]:
        if name.startswith("contentBlock"):
            assert fields["contentBlockIndex"] == following
            assert name != "contentBlockStart" or not opened
            opened = name != "contentBlockStop"
            following += name == "contentBlockStop"
        else:
            assert not opened or name.startswith("!")
    names = [name for name, _ in found]
    assert names[-1].startswith("!") or names[-1] == "messageStop" or names[-2:] == ["messageStop", "metadata"]
    assert names.count("messageStop") + sum(name.startswith("!") for name in names) == 1


def content_of(data: bytes) -> list[Fields]:
    return list(reply.encode(read_bytes(data).reply)["output"]["message"]["content"])


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_from_elsewhere_comes_back_as_its_body(name: str) -> None:
    made = REPLIES[name]
    data = Encoder().write(of_reply(made))
    legal(parsed(data))
    found = read_bytes(data)
    assert found.problems == []
    assert reply.encode(found.reply) == reply.encode(made)


def test_a_reply_of_the_protocol_comes_back_whole() -> None:
    told = reply.decode(WHOLE)
    data = Encoder().write(of_reply(told, piece=3))
    legal(parsed(data))
    assert read_bytes(data).reply == told
    assert read_bytes(Encoder().write(read(*EVERYTHING).events)).reply == told


def test_a_stream_starts_and_ends_even_if_nothing_does() -> None:
    assert sent(Finished("stop")) == [
        ("messageStart", {"role": "assistant"}),
        ("messageStop", {"stopReason": "end_turn"}),
        (
            "metadata",
            {"usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}, "metrics": {"latencyMs": 0}},
        ),
    ]
    own = Started(form=PLAIN_REPLY)
    assert [name for name, _ in sent(own, Finished("stop"))] == ["messageStart", "messageStop"]
    assert Encoder().ping() == b""


def inputs(*events: Event) -> list[str]:
    found = sent(Started(), *events, Finished("tool_calls"))
    legal(found)
    return [fields["delta"]["toolUse"]["input"] for name, fields in found if name == "contentBlockDelta"]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (ToolCall("c", "f", {}), ["{}"]),
        (ToolCall("c", "f", None, raw_input="[1]"), ["{}"]),
        (ToolCall("c", "f", {"a": 1}, raw_input='"{\\"a\\":1}"'), ['{"a":1}']),
        (ToolCall("c", "f", {"a": 1}, raw_input=' {"a": 1}'), ['{"a": 1}']),
        (ToolCall("c", "f", type="custom", raw_input='a "b" {'), ['{"input":"a \\"b\\" {"}']),
    ],
)
def test_F3_arguments_are_an_object_on_the_wire(made: ToolCall, expected: list[str]) -> None:
    assert inputs(*of_block(made, piece=100)) == expected


def test_calls_without_an_id_are_numbered_as_in_a_whole_reply() -> None:
    blocks = (ToolCall("", "f", {}), ToolCall("x", "f", {}), ToolCall("", "g", {}))
    made = Reply(Turn("assistant", blocks), "tool_calls")
    assert content_of(Encoder().write(of_reply(made))) == reply.encode(made)["output"]["message"]["content"]


@pytest.mark.parametrize("stop_reason", ["length", "stop", "tool_calls"])
def test_F1_a_call_that_was_cut_is_not_presented_as_whole(stop_reason: StopReason) -> None:
    for held in (
        ToolCall("c", "f", None, raw_input='{"a": [1'),
        ToolCall("c", "f", type="custom", raw_input="abc"),
        ToolCall("c", "f", None, raw_input="[1"),
    ):
        found = sent(Started(), *of_block(held, cut=True), Finished(stop_reason))
        legal(found)
        assert found[-2] == ("messageStop", {"stopReason": "max_tokens"})


@pytest.mark.parametrize("raw", ["", " ", "[1", "abc", '"a'])
def test_F1_a_call_that_was_cut_before_its_first_argument_is_left_out(raw: str) -> None:
    """Its start and its end alone would read as a call without arguments."""
    cut = list(of_block(ToolCall("c", "f", None, raw_input=raw), cut=True))
    for end in (Finished("tool_calls"), Failed(Failure("server", "why"))):
        found = sent(Started(), *cut, *of_block(Text("x")), end)
        assert not any("toolUse" in json.dumps(fields) for _, fields in found)
        legal(found)


def test_F1_a_call_that_was_cut_is_closed_only_if_the_message_goes_on() -> None:
    cut = list(of_block(ToolCall("c", "f", None, raw_input='{"a": [1'), cut=True))
    failed = sent(Started(), *cut, Failed(Failure("server", "why")))
    assert "contentBlockStop" not in [name for name, _ in failed]
    finished = sent(Started(), *cut, Used(Usage(1, 1)), *of_block(Text("x")), Finished("stop"))
    legal(finished)


@pytest.mark.parametrize("text", ['{"a": 1}', ' \n{"a": 1}', "[1]", "", " "])
def test_at_home_a_call_that_our_writer_does_not_show_yet_is_held_back(text: str) -> None:
    """Otherwise, who takes over in the middle of a call would begin it a second time."""
    decoder, encoder, shown = Decoder(), Encoder(), 0
    for piece in (START, call(0), *[argued(0, letter) for letter in text], stop(0), *ended("tool_use")):
        for frame in AwsFramer().feed(aws(piece)):
            shown += len(encoder.write(decoder.read(frame)))
            if piece[0].startswith("contentBlock"):
                assert decoder.builder.is_settled == (shown > len(aws(("messageStart", {"role": "assistant"}))))


def test_what_has_no_form_in_a_stream_is_left_out() -> None:
    blocks: list[Block] = [
        Text("a"),
        Media("document", "application/pdf", "aGk=", name="n"),
        Media("image", "image/png", url="https://example.com"),
        Opaque("bedrock", {"later": {}}),
        Opaque("bedrock", []),
        Opaque("anthropic", {"type": "x"}),
        ServerTool("anthropic", "call", {"toolUse": {}}),
        Thinking(redacted="x"),
        Thinking("t", "sig"),
        Text("b"),
    ]
    found = sent(Started(), *[event for block in blocks for event in of_block(block)], Finished("stop"))
    legal(found)
    deltas = [fields["delta"] for name, fields in found if name == "contentBlockDelta"]
    assert deltas == [{"text": "a"}, {"reasoningContent": {"text": "t"}}, {"text": "b"}]


def test_own_thinking_without_words_comes_back_signed() -> None:
    own = reply.decode(
        {
            "output": {
                "message": {
                    "role": "assistant",
                    "content": [
                        {"reasoningContent": {"reasoningText": {"text": "", "signature": "s"}}},
                        {"reasoningContent": {"reasoningText": {"text": ""}}},
                        {"toolResult": {**SERVER_RESULT, "content": []}},
                    ],
                }
            },
            "stopReason": "end_turn",
        }
    )
    assert read_bytes(Encoder().write(of_reply(own))).reply == own


@pytest.mark.parametrize("opened", [Text(""), Thinking(), ToolCall("c", "f"), None])
def test_K_a_failure_ends_the_stream_and_closes_no_block_that_is_open(opened: Block | None) -> None:
    events: list[Event] = [Started()]
    if opened is not None:
        events += [BlockStarted(opened), *([ThinkingDelta("x")] if isinstance(opened, Thinking) else [])]
    encoder = Encoder()
    found = parsed(encoder.write([*events, Failed(Failure("rate_limit", "slow down"))]))
    legal(found)
    assert not any(name == "contentBlockStop" for name, _ in found)
    assert found[-1] == ("!throttlingException", {"message": "slow down"})
    assert encoder.write([TextDelta("x"), Finished("stop"), BlockStarted(Text(""))]) == b""


@pytest.mark.parametrize(
    "kind", ["rate_limit", "overloaded", "server", "context_overflow", "bad_output", "bad_request"]
)
def test_K_the_kind_of_a_failure_comes_through(kind: FailureKind) -> None:
    found = read_bytes(Encoder().write([Started(), Failed(Failure(kind, "why"))])).accumulator.failure
    assert found is not None
    assert found.kind == kind
    assert "why" in found.message


def test_half_a_surrogate_pair_does_not_stop_a_stream() -> None:
    found = sent(Started(), *of_block(Text("a\ud83db")), Finished("stop"))
    assert found[1][1]["delta"] == {"text": "a\ufffdb"}


# --- laws -------------------------------------------------------------------------------------------

thoughts = st.builds(Thinking, texts, st.none() | texts, st.none() | texts)
whole_calls = st.builds(ToolCall, texts, texts, json_objects)
free_calls = st.builds(ToolCall, texts, texts, st.none(), st.just("custom"), texts)
plain_texts = st.builds(Text, texts)
images = st.just(Media("image", "image/png", "aGk="))
replies = st.builds(
    Reply,
    st.lists(plain_texts | thoughts | whole_calls | free_calls | images, max_size=5).map(
        lambda blocks: Turn("assistant", tuple(blocks))
    ),
    st.sampled_from(["stop", "length", "filter", "pause", "error", "tool_calls"]),
    st.none() | st.builds(Usage, st.integers(0, 99), st.integers(0, 99)),
)


@pytest.mark.law
@given(replies, st.integers(1, 9))
def test_the_stream_of_a_reply_is_its_body(made: Reply, piece: int) -> None:
    data = Encoder().write(of_reply(made, piece=piece))
    legal(parsed(data))
    body, back = reply.encode(made), reply.encode(read_bytes(data).reply)
    assert back["output"] == body["output"]
    assert (back["usage"], back["metrics"]) == (body["usage"], body["metrics"])


@pytest.mark.law
@given(st.lists(st.tuples(text_blocks | thoughts | calls | media_blocks | opaque_blocks, st.booleans())), st.booleans())
def test_whatever_the_blocks_are_the_stream_is_legal(blocks: list[tuple[Block, bool]], fails: bool) -> None:
    events: list[Event] = [Started()]
    for block, cut in blocks:
        events += of_block(block, cut=cut, piece=3)
    events.append(Failed(Failure("server", "x")) if fails else Finished("stop"))
    encoder = Encoder()
    data = b"".join(encoder.write([event]) for event in events)
    legal(parsed(data))
    read_bytes(data)


names = st.sampled_from(
    [
        *("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"),
        *("!throttlingException", "!", "later", ""),
    ]
)
members = st.sampled_from(["text", "toolUse", "reasoningContent", "citation", "toolResult", "image", "later"])
inner = st.dictionaries(
    st.sampled_from(["text", "input", "signature", "redactedContent", "toolUseId", "name", "type", "source"]),
    texts | json_values,
    max_size=3,
)
unions = st.dictionaries(members, texts | inner | json_values, max_size=2) | json_values
events = st.fixed_dictionaries(
    {},
    optional={
        "contentBlockIndex": st.integers(-1, 3) | json_values,
        "start": unions,
        "delta": unions,
        "stopReason": json_values,
        "usage": json_values,
        "message": json_values,
    },
)


@pytest.mark.law
@given(st.lists(st.tuples(names, events | json_values)))
def test_whatever_comes_the_events_are_legal(found: list[tuple[str, Any]]) -> None:
    decoder, told = Decoder(), list[Event]()
    for name, event in found:
        told += decoder.read(Frame(json.dumps(event).encode(), name))
    check(told + decoder.finish())


@pytest.mark.law
@given(st.lists(st.tuples(st.binary(), names)))
def test_whatever_bytes_come_nothing_is_raised(frames: list[tuple[bytes, str]]) -> None:
    decoder, told = Decoder(), list[Event]()
    for content, name in frames:
        told += decoder.read(Frame(content, name))
    check(told + decoder.finish())


# --- the real client --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def provider() -> Iterator[Loopback]:
    with serving() as loopback:
        yield loopback


@pytest.fixture(scope="module")
def client(provider: Loopback) -> Iterator[Any]:
    with SDK.open(provider.url) as opened:
        yield opened


def understood(client: Any) -> list[Fields]:
    """What boto3 makes of the stream."""
    answer = client.converse_stream(modelId="m", messages=[{"role": "user", "content": [{"text": "hi"}]}])
    return list(answer["stream"])


@pytest.mark.parametrize("name", REPLIES)
def test_boto3_reads_every_event(provider: Loopback, client: Any, name: str) -> None:
    data = Encoder().write(of_reply(REPLIES[name]))
    provider.give(data, get("bedrock").stream_type)
    assert understood(client) == [{kind: fields} for kind, fields in parsed(data)]


def test_boto3_reads_a_stream_of_the_protocol(provider: Loopback, client: Any) -> None:
    data = Encoder().write(read(*EVERYTHING).events)
    provider.give(data, get("bedrock").stream_type)
    found = understood(client)
    assert [next(iter(event)) for event in found] == [name for name, _ in parsed(data)]
    hidden = [
        event["contentBlockDelta"]["delta"].get("reasoningContent", {})
        for event in found
        if "contentBlockDelta" in event
    ]
    assert b"red" in [part.get("redactedContent") for part in hidden]


def test_boto3_puts_a_call_together(provider: Loopback, client: Any) -> None:
    provider.give(Encoder().write(of_reply(REPLIES["text_and_call"])), get("bedrock").stream_type)
    found = understood(client)
    starts = [event["contentBlockStart"]["start"] for event in found if "contentBlockStart" in event]
    pieces = [event["contentBlockDelta"]["delta"] for event in found if "contentBlockDelta" in event]
    assert starts == [{"toolUse": {"toolUseId": CALL.id, "name": CALL.name}}]
    assert json.loads("".join(piece["toolUse"]["input"] for piece in pieces if "toolUse" in piece)) == CALL.arguments
    assert {"messageStop": {"stopReason": "tool_use"}} in found


def test_boto3_raises_the_exception_that_was_written(provider: Loopback, client: Any) -> None:
    provider.give(Encoder().write([Started(), Failed(Failure("overloaded", "too many"))]), get("bedrock").stream_type)
    with pytest.raises(EventStreamError, match=r"serviceUnavailableException.*too many"):
        understood(client)
