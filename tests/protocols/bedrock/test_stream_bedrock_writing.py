"""Bedrock streams, written: legal for clients, read back as they were, and read by botocore."""

from __future__ import annotations

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
from support.protocols.streams.bedrock import (
    EVERYTHING,
    SERVER_RESULT,
    START,
    WHOLE,
    Fields,
    NamedEvent,
    aws,
    call,
    end_events,
    input_delta,
    read,
    read_bytes,
    stop,
)
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
from toolglot.conversation.events import BlockStarted, Event, Failed, Finished, Started, TextDelta, ThinkingDelta, Used
from toolglot.conversation.reply_events import of_block, of_reply
from toolglot.protocols.base import get
from toolglot.protocols.bedrock import reply
from toolglot.protocols.bedrock.form import PLAIN_REPLY
from toolglot.protocols.bedrock.stream_reader import Decoder
from toolglot.protocols.bedrock.stream_writer import Encoder
from toolglot.protocols.framing.aws_frames import AwsFramer
from toolglot.protocols.framing.text_frames import Frame

# --- writing ----------------------------------------------------------------------------------------


def parsed(data: bytes) -> list[NamedEvent]:
    return [(frame.name, json.loads(frame.data)) for frame in AwsFramer().feed(data)]


def sent(*events: Event) -> list[NamedEvent]:
    return parsed(Encoder().write(events))


def legal(found: list[NamedEvent]) -> None:
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
    read_events = reply.decode(WHOLE)
    data = Encoder().write(of_reply(read_events, piece=3))
    legal(parsed(data))
    assert read_bytes(data).reply == read_events
    assert read_bytes(Encoder().write(read(*EVERYTHING).events)).reply == read_events


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
def test_a_call_that_our_writer_does_not_show_yet_is_held_back(text: str) -> None:
    """Otherwise, a writer that takes over in the middle of a call would begin it a second time."""
    decoder, encoder, shown = Decoder(), Encoder(), 0
    for piece in (START, call(0), *[input_delta(0, letter) for letter in text], stop(0), *end_events("tool_use")):
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
    decoder, read_events = Decoder(), list[Event]()
    for name, event in found:
        read_events += decoder.read(Frame(json.dumps(event).encode(), name))
    check(read_events + decoder.finish())


@pytest.mark.law
@given(st.lists(st.tuples(st.binary(), names)))
def test_whatever_bytes_come_nothing_is_raised(frames: list[tuple[bytes, str]]) -> None:
    decoder, read_events = Decoder(), list[Event]()
    for content, name in frames:
        read_events += decoder.read(Frame(content, name))
    check(read_events + decoder.finish())


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
