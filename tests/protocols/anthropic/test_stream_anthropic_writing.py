"""Streams of the Anthropic Messages protocol, written: legal for every client, and the reply when put together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sdk.loopback import EVENT_STREAM, Loopback, serving
from sdk.made_replies import CALL, REPLIES
from support.conversations.event_grammar import check
from support.conversations.strategies import calls, json_objects, media_blocks, opaque_blocks, text_blocks, texts
from support.protocols.strategies.anthropic import anthropic_replies
from support.protocols.streams.anthropic import EVERYTHING, WHOLE, read_bytes, sse
from toolglot.conversation import (
    Block,
    Failure,
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
from toolglot.protocols.anthropic import errors, reply
from toolglot.protocols.anthropic.form import PLAIN_REPLY, UNSIGNED
from toolglot.protocols.anthropic.stream_reader import Decoder, framer
from toolglot.protocols.anthropic.stream_writer import Encoder
from toolglot.protocols.base import StreamOptions, get

Fields = dict[str, Any]


def written(*events: Event) -> list[Fields]:
    return parsed(Encoder().write(events))


def parsed(data: bytes) -> list[Fields]:
    """The data of each event; its name is its type."""
    found = []
    for frame in framer().feed(data):
        fields = json.loads(frame.data)
        assert frame.name == fields["type"]
        assert frame.raw == b"event: %b\ndata: %b\n\n" % (frame.name.encode(), frame.data)
        found.append(fields)
    return found


def legal(found: list[Fields]) -> None:
    """The order that the protocol has: a start, blocks that count up and close, an end, and nothing after it."""
    assert found[0]["type"] == "message_start"
    opened, following = None, 0
    for position, event in enumerate(found[1:], 1):
        kind = event["type"]
        if kind == "content_block_start":
            assert opened is None
            assert event["index"] == following
            opened, following = following, following + 1
        elif kind in ("content_block_delta", "content_block_stop"):
            assert event["index"] == opened
            opened = None if kind == "content_block_stop" else opened
        else:
            assert opened is None or kind == "error"  # a call that was cut stays open, so that no client runs it
            assert kind in ("message_delta", "message_stop", "error")
            assert position >= len(found) - 2
    assert [event["type"] for event in found[-2:]] == ["message_delta", "message_stop"] or found[-1]["type"] == "error"


def of_type(found: list[Fields], kind: str) -> list[Fields]:
    return [event for event in found if event["type"] == kind]


def comparable(body: Fields) -> Fields:
    """A body without what a stream writes differently: null for a stop sequence, counts that are not known."""
    usage = {"input_tokens": 0, "output_tokens": 0, **(body.get("usage") or {})}
    return {**body, "stop_sequence": body.get("stop_sequence"), "usage": usage}


def test_R_002_14_a_call_is_written_as_the_seed_has_it() -> None:
    call = ToolCall("toolu_abc", "get_weather", {"location": "SF"})
    events: list[Event] = [
        BlockStarted(replace(call, arguments=None)),
        InputDelta('{"location":'),
        InputDelta('"SF"}'),
        BlockEnded(call),
    ]
    expected = b"""event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_abc","name":"get_weather","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\\"location\\":"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\\"SF\\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

"""  # noqa: E501
    encoder = Encoder()
    encoder.write([Started("msg_1", "m")])
    assert b"".join(encoder.write([event]) for event in events) == expected


def test_pieces_of_a_call_from_elsewhere_add_up_to_one_block() -> None:
    call = ToolCall("call_abc", "get_weather", {"location": "SF"})
    pieces = ['{"loc', 'ation":', '"SF"}']
    deltas: list[Event] = [InputDelta(piece) for piece in pieces]
    events = [BlockStarted(replace(call, arguments=None)), *deltas, BlockEnded(call)]
    found = written(Started(), *events, Finished("tool_calls"))
    legal(found)
    assert [event["delta"]["partial_json"] for event in of_type(found, "content_block_delta")] == pieces
    assert of_type(found, "message_delta")[0]["delta"]["stop_reason"] == "tool_use"


def test_the_start_has_what_is_known_and_the_end_has_the_rest() -> None:
    found = written(Started("msg_1", "m"), Used(Usage(7, 0)), Used(Usage(7, 3, 2)), Finished("stop"))
    message: Fields = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }
    assert found == [
        {"type": "message_start", "message": message},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"input_tokens": 5, "output_tokens": 3, "cache_read_input_tokens": 2},
        },
        {"type": "message_stop"},
    ]


def test_the_start_does_not_wait_for_what_it_costs() -> None:
    encoder = Encoder(StreamOptions(model="requested"))
    (started,) = parsed(encoder.write([Started()]))
    assert started["message"]["usage"] == {"input_tokens": 0, "output_tokens": 0}
    assert started["message"]["model"] == "requested"
    assert encoder.write([]) == b""
    assert encoder.write([Used(Usage(1, 2))]) == b""
    assert parsed(encoder.write([Finished("stop")]))[0]["usage"] == {"input_tokens": 1, "output_tokens": 2}


def test_a_ping_is_the_protocols_own() -> None:
    assert Encoder().ping() == b'event: ping\ndata: {"type": "ping"}\n\n'
    assert get("anthropic").stream_type == EVENT_STREAM


def test_a_start_that_never_came_is_written_all_the_same() -> None:
    found = written(BlockStarted(Text("")), TextDelta("x"), BlockEnded(Text("x")), Finished("stop"))
    legal(found)
    assert found[0]["message"]["id"] == ""
    call = written(BlockStarted(ToolCall("", "f")), BlockEnded(ToolCall("", "f", {})), Finished("tool_calls"))
    assert of_type(call, "content_block_start")[0]["content_block"]["id"] == "toolu__0"


def test_nothing_is_written_after_the_end() -> None:
    encoder = Encoder()
    encoder.write([Started(), BlockStarted(Text("")), Finished("stop")])
    assert encoder.write([TextDelta("x"), BlockEnded(Text("x")), Finished("stop"), Started()]) == b""


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_from_elsewhere_comes_back_as_its_body(name: str) -> None:
    made = REPLIES[name]
    data = Encoder().write(of_reply(made))
    legal(parsed(data))
    found = read_bytes(data)
    assert found.problems == []
    body = reply.encode(made)
    if made.stop is None:
        body["stop_reason"] = "tool_use" if made.turn.calls else "end_turn"
    assert comparable(reply.encode(found.reply)) == comparable(body)


def test_a_reply_of_the_protocol_comes_back_whole() -> None:
    original = reply.decode(WHOLE)
    data = Encoder().write(of_reply(original, piece=3))
    legal(parsed(data))
    found = read_bytes(data)
    assert found.problems == []
    assert found.reply == original


def test_a_stream_of_the_protocol_comes_back_as_it_was() -> None:
    first = read_bytes(sse(*EVERYTHING))
    data = Encoder().write(first.events)
    legal(parsed(data))
    assert read_bytes(data).reply == first.reply
    last = of_type(parsed(data), "message_delta")[0]
    assert last["context_management"] == {"applied_edits": []}
    assert last["delta"]["container"] == {"id": "c"}


def test_fields_with_a_tilde_come_back() -> None:
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}, "~odd": 1, "new": 2}
    first = read_bytes(sse(EVERYTHING[0], end, {"type": "message_stop"}))
    last = of_type(parsed(Encoder().write(first.events)), "message_delta")[0]
    assert (last["~odd"], last["new"]) == (1, 2)


# --- calls ------------------------------------------------------------------------------------------


def inputs(*events: Event) -> list[str]:
    found = written(Started("m"), *events, Finished("tool_calls"))
    legal(found)
    return [event["delta"]["partial_json"] for event in of_type(found, "content_block_delta")]


def test_free_text_becomes_one_argument_when_it_is_whole() -> None:
    call = ToolCall("c", "patch", type="custom", raw_input='a "b" {')
    assert inputs(*of_block(call, piece=2)) == ['{"input":"a \\"b\\" {"}']


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (ToolCall("c", "f", {}), ["{}"]),
        (ToolCall("c", "f", None, raw_input=""), ["{}"]),
        (ToolCall("c", "f", None, raw_input="[1]"), ["{}"]),
        (ToolCall("c", "f", {"a": 1}, raw_input='"{\\"a\\":1}"'), ['{"a":1}']),
        (ToolCall("c", "f", {"a": 1}, raw_input=' {"a": 1}'), ['{"a": 1}']),
    ],
)
def test_F3_arguments_are_an_object_on_the_wire(call: ToolCall, expected: list[str]) -> None:
    assert inputs(*of_block(call, piece=100)) == expected


def test_arguments_without_a_delta_are_written_at_the_end() -> None:
    assert inputs(BlockStarted(ToolCall("c", "f")), BlockEnded(ToolCall("c", "f", {"a": 1}))) == ['{"a":1}']


def test_a_call_without_an_id_gets_one_from_its_reply() -> None:
    blocks = [ToolCall("", "f", {}), ToolCall("x", "f", {}), ToolCall("", "g", {})]
    made = Reply(Turn("assistant", tuple(blocks)), "tool_calls", id="chatcmpl:1")
    starts = of_type(parsed(Encoder().write(of_reply(made))), "content_block_start")
    assert [start["content_block"]["id"] for start in starts] == ["toolu_chatcmpl_1_0", "x", "toolu_chatcmpl_1_2"]


@pytest.mark.parametrize(
    ("stop", "word"),
    [("length", "max_tokens"), ("stop", "max_tokens"), ("tool_calls", "max_tokens"), ("filter", "refusal")],
)
def test_F1_a_call_that_was_cut_is_not_presented_as_whole(stop: StopReason, word: str) -> None:
    call = ToolCall("c", "f", None, raw_input='{"a": [1')
    found = written(Started("m"), *of_block(call, cut=True), Finished(stop))
    legal(found)
    assert of_type(found, "message_delta")[0]["delta"]["stop_reason"] == word
    for held in (ToolCall("c", "f", type="custom", raw_input="abc"), ToolCall("c", "f", None, raw_input="[1")):
        found = written(Started("m"), *of_block(held, cut=True), Finished(stop))
        legal(found)
        assert of_type(found, "content_block_delta") == []


def test_H7_events_of_the_sequence_come_as_blocks_one_after_the_other() -> None:
    overlapping = read_bytes(
        sse(
            EVERYTHING[0],
            {"type": "content_block_start", "index": 0, "content_block": {**WHOLE["content"][-1], "input": {}}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "thinking", "thinking": ""}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "thinking_delta", "thinking": "hm"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ":1}"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_stop", "index": 1},
            *EVERYTHING[-2:],
        )
    )
    found = parsed(Encoder().write(overlapping.events))
    legal(found)
    assert [start["content_block"]["type"] for start in of_type(found, "content_block_start")] == [
        "tool_use",
        "thinking",
    ]


# --- thinking, media, what is another protocol's own ------------------------------------------------


def contents(*blocks: Block, is_native: bool = False) -> list[Fields]:
    made = Reply(Turn("assistant", blocks), "stop", form=PLAIN_REPLY if is_native else None)
    data = Encoder().write(of_reply(made))
    legal(parsed(data))
    return list(reply.encode(read_bytes(data).reply)["content"])


def test_what_another_issuer_signed_is_not_shown_as_signed() -> None:
    thought = {"type": "thinking", "thinking": "t", "signature": UNSIGNED}
    assert contents(Thinking("t", "sig"), Thinking("", "sig"), Thinking(redacted="x")) == [thought]


def test_thinking_of_the_protocol_comes_back_with_what_only_it_can_read() -> None:
    assert contents(
        Thinking("t", "sig"), Thinking("", "sig"), Thinking(redacted="x"), Thinking("t"), is_native=True
    ) == [
        {"type": "thinking", "thinking": "t", "signature": "sig"},
        {"type": "thinking", "thinking": "", "signature": "sig"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "thinking", "thinking": "t", "signature": ""},
    ]


def test_media_is_written_only_to_its_own_protocol() -> None:
    image = Media("image", "image/png", "aGk=")
    assert contents(Text("a"), image, Text("b")) == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert [block["type"] for block in contents(Text("a"), image, is_native=True)] == ["text", "image"]


def test_what_is_another_protocols_own_is_left_out() -> None:
    assert contents(Opaque("gemini", {"x": 1}), ServerTool("openai_responses", "call", {"input": {}}), Text("a")) == [
        {"type": "text", "text": "a"}
    ]


def test_a_server_tool_is_written_as_its_provider_does() -> None:
    call = ServerTool(
        "anthropic", "call", {"type": "server_tool_use", "id": "s", "name": "n", "input": {"q": 1}}, "n", "s"
    )
    found = written(Started(), *of_block(call), Finished("stop"))
    assert [event.get("delta", event.get("content_block")) for event in found[1:3]] == [
        {"type": "server_tool_use", "id": "s", "name": "n", "input": {}},
        {"type": "input_json_delta", "partial_json": '{"q":1}'},
    ]
    bare = replace(call, value={"type": "server_tool_use"})
    late = written(Started(), BlockStarted(bare), BlockEnded(call), Finished("stop"))
    assert late == found
    legal(written(Started(), BlockStarted(call), BlockEnded(bare), Finished("stop")))


def test_half_a_surrogate_pair_does_not_stop_a_stream() -> None:
    found = written(Started(), *of_block(Text("a\ud83db")), Finished("stop"))
    assert of_type(found, "content_block_delta")[0]["delta"]["text"] == "a\ufffdb"


# --- failures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("opened", [Text(""), Thinking(), ToolCall("c", "f"), None])
def test_K_a_failure_closes_the_block_and_ends_the_stream(opened: Block | None) -> None:
    failure = Failure("overloaded", "too many")
    events: list[Event] = [Started("m")]
    if opened is not None:
        events += [BlockStarted(opened), *([ThinkingDelta("x")] if isinstance(opened, Thinking) else [])]
    encoder = Encoder()
    found = parsed(encoder.write([*events, Failed(failure)]))
    legal(found)
    assert found[-1] == errors.encode(failure)[1]
    assert found[-1]["error"]["type"] == "overloaded_error"
    assert encoder.write([TextDelta("x"), Finished("stop")]) == b""


def test_F1_a_call_that_was_cut_by_a_failure_is_never_closed() -> None:
    cut = ToolCall("c", "f", raw_input='{"a')
    begun: list[Event] = [Started("m"), BlockStarted(ToolCall("c", "f")), InputDelta('{"a'), BlockEnded(cut, cut=True)]
    failed = written(*begun, Failed(Failure("server", "lost")))
    assert [event["type"] for event in failed[-2:]] == ["content_block_delta", "error"]
    finished = written(*begun, Finished("length"))
    assert [event["type"] for event in finished[-3:]] == ["content_block_stop", "message_delta", "message_stop"]


def test_K_an_error_of_the_protocol_comes_back_as_it_was() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "r"}
    assert parsed(Encoder().write(read_bytes(sse(EVERYTHING[0], error)).events))[-1] == error


# --- laws -------------------------------------------------------------------------------------------

thoughts = st.builds(Thinking, texts, st.none() | texts, st.none() | texts)
whole_calls = st.builds(ToolCall, texts.filter(bool), texts, json_objects)
free_calls = st.builds(ToolCall, texts.filter(bool), texts, st.none(), st.just("custom"), texts)
replies = st.builds(
    Reply,
    st.lists(text_blocks | thoughts | whole_calls | free_calls | media_blocks | opaque_blocks, max_size=5).map(
        lambda blocks: Turn("assistant", tuple(blocks))
    ),
    st.sampled_from(["stop", "length", "filter", "pause", "error", "tool_calls"]),
    st.none() | st.builds(Usage, st.integers(0, 99), st.integers(0, 99)),
    texts,
    texts,
)


def plain(block: Block) -> Block:
    """A block of generated replies with what a stream can carry."""
    return replace(block, extra=None) if isinstance(block, Text) else block


@pytest.mark.law
@given(replies, st.integers(1, 9))
def test_the_stream_of_a_reply_is_its_body(made: Reply, piece: int) -> None:
    blocks = [
        plain(block) for block in made.turn.blocks if not isinstance(block, Opaque) or isinstance(block.value, dict)
    ]
    blocks = [replace(block, value={"type": "later"}) if isinstance(block, Opaque) else block for block in blocks]
    made = replace(made, turn=Turn("assistant", tuple(blocks)))
    data = Encoder().write(of_reply(made, piece=piece))
    legal(parsed(data))
    found = read_bytes(data)
    body, back = reply.encode(made), reply.encode(found.reply)
    assert back["content"] == body["content"]
    assert comparable(back)["usage"] == comparable(body)["usage"]
    assert (back["id"], back["model"]) == (body["id"], body["model"])


STREAMED = (
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "server_tool_use",
    "web_search_tool_result",
    "compaction",
)


@pytest.mark.law
@given(anthropic_replies)
def test_a_body_of_the_protocol_comes_back_from_its_stream(body: Fields) -> None:
    """But for what only a whole text or a thought has beside it: deltas do not carry that."""
    kept = {"text": {"text"}, "thinking": {"thinking", "signature"}, "redacted_thinking": {"data"}}
    content = [
        {key: block[key] for key in block if key == "type" or key in kept.get(block["type"], block)}
        for block in body["content"]
        if block["type"] in STREAMED
    ]
    content = [
        {**block, "signature": block.get("signature") or ""} if "thinking" in block else block for block in content
    ]
    body = {**body, "content": content, "stop_reason": body.get("stop_reason") or "end_turn", "stop_details": None}
    if body.get("stop_reason") == "tool_use" and not any(block["type"] == "tool_use" for block in content):
        body["stop_reason"] = "end_turn"
    data = Encoder().write(of_reply(reply.decode(body)))
    legal(parsed(data))
    back = reply.encode(read_bytes(data).reply)
    usage = comparable(body)["usage"]
    assert comparable(back) == {**comparable(body), "usage": usage}


@pytest.mark.law
@given(st.lists(st.tuples(text_blocks | thoughts | calls | media_blocks | opaque_blocks, st.booleans())), st.booleans())
def test_whatever_the_blocks_are_the_stream_is_legal(blocks: list[tuple[Block, bool]], fails: bool) -> None:
    events: list[Event] = [Started("m")]
    for block, cut in blocks:
        events += of_block(block, cut=cut, piece=3)
    events.append(Failed(Failure("server", "x")) if fails else Finished("stop"))
    legal(written(*events))
    encoder = Encoder()
    decoder, read_events = Decoder(), list[Event]()
    for frame in framer().feed(b"".join(encoder.write([event]) for event in events)):
        read_events += decoder.read(frame)
    check(read_events + decoder.finish())


# --- the real client --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def provider() -> Iterator[Loopback]:
    with serving() as loopback:
        yield loopback


@pytest.fixture(scope="module")
def client(provider: Loopback) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key="key", base_url=provider.url, max_retries=0) as opened:
        yield opened


REQUEST: Fields = {"model": "claude", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]}


def understood(client: anthropic.Anthropic) -> Fields:
    """What the SDK makes of the stream."""
    with client.messages.stream(**REQUEST) as stream:
        message = stream.get_final_message()
    found: Fields = json.loads(json.dumps(message.to_dict(mode="json")))
    return found


def shown(body: Fields) -> Fields:
    """What an SDK's message has of a body."""
    usage = {key: value for key, value in (body.get("usage") or {}).items() if value is not None}
    return {
        **{key: body[key] for key in ("id", "model", "role", "type", "content", "stop_reason")},
        "usage": {"input_tokens": 0, "output_tokens": 0, **usage},
    }


@pytest.mark.parametrize("name", REPLIES)
def test_the_SDK_puts_the_stream_together(provider: Loopback, client: anthropic.Anthropic, name: str) -> None:
    provider.give(Encoder().write(of_reply(REPLIES[name])), EVENT_STREAM)
    assert shown(understood(client)) == shown(reply.encode(REPLIES[name]))


def test_the_SDK_puts_a_stream_of_the_protocol_together(provider: Loopback, client: anthropic.Anthropic) -> None:
    original = read_bytes(sse(*[event for event in EVERYTHING if event.get("index") != 5]))
    assert original.problems == ["the indexes of blocks do not count up from 0"]
    provider.give(Encoder().write(original.events), EVENT_STREAM)
    expected = {**WHOLE, "content": [block for block in WHOLE["content"] if block["type"] != "compaction"]}
    assert shown(understood(client)) == shown(expected)


def test_the_SDK_reads_the_raw_events(provider: Loopback, client: anthropic.Anthropic) -> None:
    encoder = Encoder()
    provider.give(encoder.ping() + encoder.write(of_reply(REPLIES["thinking_and_calls"])), EVENT_STREAM)
    kinds, arguments = [], ""
    for event in client.messages.create(**REQUEST, stream=True):
        kinds.append(event.type)
        if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            arguments += event.delta.partial_json
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert json.loads(arguments) == CALL.arguments


@pytest.mark.parametrize("kind", ["overloaded", "rate_limit", "server", "context_overflow"])
def test_the_SDK_raises_the_error_that_was_written(provider: Loopback, client: anthropic.Anthropic, kind: Any) -> None:
    events: list[Event] = [Started("m"), BlockStarted(Text("")), TextDelta("x"), Failed(Failure(kind, "why it broke"))]
    provider.give(Encoder().write(events), EVENT_STREAM)
    with pytest.raises(anthropic.APIStatusError, match="why it broke"):
        understood(client)
