"""Streams, any to any: split-proof, equal to the whole answer, with one legal end whatever the provider does."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import toolglot
from support.conversations.event_grammar import check
from toolglot import (
    Block,
    Failure,
    InputError,
    Media,
    Policy,
    Reply,
    StreamReader,
    StreamTranslator,
    Text,
    Thinking,
    ToolCall,
    ToolCallAccumulator,
    Turn,
    Usage,
    convert,
    convert_reply,
)
from toolglot.conversation import StopReason
from toolglot.conversation.events import BlockEnded, Event, Failed, Finished, InputDelta, TextDelta
from toolglot.conversation.reply_events import of_block, of_reply
from toolglot.limits import Limits
from toolglot.protocols.base import codec

PROTOCOLS = ("anthropic", "openai_chat", "openai_responses", "gemini", "ollama", "bedrock", "cohere")
PAIRS = [(source, target) for source in PROTOCOLS for target in PROTOCOLS]
RECORDED = Path(__file__).parents[1] / "recordings" / "streams" / "llama_cpp"

words = st.text("ab é\n\"\\{}<>'\u2028😀", min_size=1, max_size=30)
arguments = st.dictionaries(
    st.text("abc", min_size=1, max_size=3),
    st.recursive(st.integers(-5, 5) | words | st.booleans(), lambda inner: st.lists(inner, max_size=3), max_leaves=5),
    max_size=3,
)


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    """Answers as models give them: they think, they say something, they call."""
    blocks: list[Block] = []
    if draw(st.booleans()):
        blocks.append(Thinking(draw(words)))
    if draw(st.booleans()):
        blocks.append(Text(draw(words)))
    blocks += [
        ToolCall(f"call_{number}abc", draw(st.sampled_from(["run", "read_file"])), draw(arguments))
        for number in range(draw(st.integers(0, 3)))
    ]
    if not blocks or isinstance(blocks[-1], Thinking):
        blocks.append(Text(draw(words)))
    turn = Turn("assistant", tuple(blocks))
    usage = draw(st.none() | st.builds(Usage, st.integers(1, 99), st.integers(1, 99)))
    stop: StopReason = draw(st.sampled_from(["length", "stop", "stop"]))
    if stop == "stop" and turn.calls:
        stop = "tool_calls"
    return Reply(turn, stop, usage, "id_1", "model-1")


def written(reply: Reply, protocol: str, piece: int = 7) -> bytes:
    """A reply as the stream of a provider of this protocol."""
    return codec(protocol).stream.Encoder().write(list(of_reply(reply, piece=piece)))


def translated(data: bytes, source: str, target: str, cuts: list[int] | None = None, **given: Any) -> bytes:
    return through(StreamTranslator(source=source, target=target, **given), data, cuts)


def through(translator: StreamTranslator, data: bytes, cuts: list[int] | None = None) -> bytes:
    output, start = [], 0
    for end in (*sorted(cuts or []), len(data)):
        output.append(translator.feed(data[start:end]))
        start = end
    return b"".join(output) + translator.finish()


def events_of(data: bytes, source: str, cuts: list[int] | None = None) -> list[Event]:
    reader = StreamReader(source=source)
    events: list[Event] = []
    start = 0
    for end in (*sorted(cuts or []), len(data)):
        events += reader.feed(data[start:end])
        start = end
    return events + reader.finish()


def plain(reply: Reply) -> tuple[Any, ...]:
    """What a reply says, without how one protocol spells it."""
    blocks: list[tuple[Any, ...]] = []
    for block in reply.turn.blocks:
        if isinstance(block, ToolCall):
            blocks.append((block.id, block.name, block.arguments, block.type))
        elif isinstance(block, Text | Thinking):
            blocks.append((type(block).__name__, block.text))
        else:
            blocks.append((type(block).__name__,))
    counts = None if reply.usage is None else (reply.usage.input_tokens or 0, reply.usage.output_tokens or 0)
    return tuple(blocks), reply.stop, counts if counts != (0, 0) else None


def assembled(data: bytes, protocol: str) -> Reply:
    """What a client makes of a stream."""
    reader = StreamReader(source=protocol)
    check([*reader.feed(data), *reader.finish()])
    assert reader.failure is None
    return reader.reply


# --- law 8 ------------------------------------------------------------------------------------------


@pytest.mark.law
@settings(suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("source", PROTOCOLS)
@given(replies(), st.sampled_from(PROTOCOLS), st.integers(1, 12))
def test_law_8_a_stream_adds_up_to_the_answer_given_whole(source: str, reply: Reply, target: str, piece: int) -> None:
    whole = convert_reply(codec(source).reply.encode(reply), source=source, target=target)
    translator = StreamTranslator(source=source, target=target)
    data = through(translator, written(reply, source, piece))
    assert plain(translator.reply) == plain(whole.reply)
    assert plain(assembled(data, target)) == plain(codec(target).reply.decode(whole.body))


@pytest.mark.law
@settings(suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("source", PROTOCOLS)
@given(replies(), st.sampled_from(PROTOCOLS), st.data())
def test_law_8_however_the_bytes_are_cut_the_client_gets_the_same(
    source: str, reply: Reply, target: str, data: st.DataObject
) -> None:
    stream = written(reply, source)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=20))
    assert translated(stream, source, target, cuts) == translated(stream, source, target)
    assert events_of(stream, source, cuts) == events_of(stream, source)


ANSWER = Reply(
    Turn(
        "assistant",
        (Thinking("hm 😀"), Text("é "), ToolCall("call_1", "run", {"a": "ü"}), ToolCall("call_2", "run", {})),
    ),
    "tool_calls",
    Usage(3, 4),
    "id_1",
    "model-1",
)


@pytest.mark.parametrize("source", PROTOCOLS)
def test_law_8_every_single_cut_gives_the_same_bytes(source: str) -> None:
    stream = written(ANSWER, source, 4)
    target = "openai_responses" if source == "anthropic" else "anthropic"
    whole = translated(stream, source, target)
    for position in range(len(stream) + 1):
        assert translated(stream, source, target, [position]) == whole
    assert translated(stream, source, target, list(range(len(stream)))) == whole


# --- what was recorded ------------------------------------------------------------------------------


def recordings() -> list[tuple[str, str]]:
    protocols = {"chat": "openai_chat", "responses": "openai_responses", "messages": "anthropic"}
    return [(protocols[path.stem.partition("_")[0]], path.name) for path in sorted(RECORDED.glob("*.sse"))]


@pytest.mark.parametrize(("source", "name"), recordings())
def test_law_8_what_a_real_server_streams_reaches_every_client_and_is_split_proof(source: str, name: str) -> None:
    stream = (RECORDED / name).read_bytes()
    events = events_of(stream, source)
    check(events)
    chance = random.Random(name)  # noqa: S311 - the same cuts each time
    for target in PROTOCOLS:
        whole = StreamTranslator(source=source, target=target)
        data = through(whole, stream)
        cuts = [chance.randrange(len(stream)) for _ in range(25)]
        assert translated(stream, source, target, cuts) == data
        if target in ("anthropic", "openai_chat"):
            assert translated(stream, source, target, list(range(len(stream)))) == data
        got = assembled(data, target)
        assert [call.arguments for call in got.turn.calls if call.arguments is not None] == [
            call.arguments for call in whole.calls
        ]
        assert got.turn.text.startswith(whole.reply.turn.text[:20])


@pytest.mark.parametrize(("source", "name"), [pair for pair in recordings() if "length" not in pair[1]])
def test_law_8_what_a_real_server_streams_is_what_it_answers_whole(source: str, name: str) -> None:
    body = msgspec.json.decode((RECORDED / name).with_suffix(".json").read_bytes())
    reader = StreamReader(source=source)
    reader.feed((RECORDED / name).read_bytes())
    reader.finish()
    whole = convert_reply(body, source=source, target=source).reply
    streamed = [(call.name, call.arguments) for call in reader.calls]
    assert streamed == [(call.name, call.arguments) for call in whole.turn.calls]
    assert reader.reply.turn.text == whole.turn.text
    assert reader.reply.stop == whole.stop


# --- whatever comes ---------------------------------------------------------------------------------


def ends(data: bytes, protocol: str) -> int:
    """How many ends a client sees."""
    events = events_of(data, protocol)
    return sum(isinstance(event, Finished | Failed) for event in events)


noise = st.one_of(
    st.binary(max_size=60),
    st.lists(
        st.sampled_from(
            [
                b"data: ",
                b"event: error\n",
                b"\n\n",
                b"{}",
                b'{"choices":[{"delta":{',
                b'{"type":"',
                b"null",
                b"[",
                b"]}",
            ]
        ),
        max_size=12,
    ).map(b"".join),
)


@pytest.mark.law
@settings(suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("source", PROTOCOLS)
@given(noise, st.sampled_from(PROTOCOLS))
def test_arbitrary_bytes_raise_nothing_and_the_client_gets_one_end(source: str, data: bytes, target: str) -> None:
    translator = StreamTranslator(source=source, target=target)
    output = translator.feed(data) + translator.finish()
    assert translator.is_over
    if source != target:
        assert ends(output, target) == 1


@pytest.mark.law
@settings(suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("source", PROTOCOLS)
@given(replies(), st.sampled_from(PROTOCOLS), st.data())
def test_a_damaged_stream_still_has_one_legal_end(source: str, reply: Reply, target: str, data: st.DataObject) -> None:
    stream = written(reply, source)
    start = data.draw(st.integers(0, len(stream)))
    end = data.draw(st.integers(start, len(stream)))
    damaged = stream[:start] + data.draw(st.binary(max_size=4)) + stream[end:]
    translator = StreamTranslator(source=source, target=target)
    output = through(translator, damaged)
    assert translator.is_over
    check(events_of(output, target))


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_connection_that_is_lost_anywhere_is_told_in_the_clients_own_way(source: str, target: str) -> None:
    stream = written(ANSWER, source)
    for position in range(0, len(stream), 37):
        translator = StreamTranslator(source=source, target=target)
        output = translator.feed(stream[:position])
        if translator.is_over:
            break
        output += translator.fail()
        assert translator.failure is not None
        events = events_of(output, target)
        check(events)
        assert isinstance(events[-1], Failed), (position, events[-1])
        whole = [call.arguments for call in translator.calls]
        assert whole == [call.arguments for call in ANSWER.turn.calls][: len(whole)]


def test_what_comes_after_the_end_is_ignored() -> None:
    translator = StreamTranslator(source="openai_chat", target="anthropic")
    stream = written(ANSWER, "openai_chat")
    first = translator.feed(stream)
    assert translator.feed(stream) == b""
    assert translator.finish() == b""
    assert translator.fail() == b""
    assert translator.ping() == b""
    assert first.count(b"message_stop") == 2


def test_a_reply_that_never_ends_is_cut_off_with_an_error() -> None:
    translator = StreamTranslator(source="openai_chat", target="anthropic", limits=Limits(max_bytes=1000))
    piece = b'data: {"choices":[{"delta":{"content":"' + b"x" * 100 + b'"}}]}\n\n'
    output = b"".join(translator.feed(piece) for _ in range(20))
    assert output.endswith(b"\n\n")
    assert b"event: error" in output
    assert translator.failure is not None
    assert "max_bytes" in translator.failure.message


# --- F1: calls that were cut ------------------------------------------------------------------------

CUT = Reply(Turn("assistant", (Text("ok"),)), "length", None, "id_1", "model-1")


def cut_stream(source: str, arguments_text: str, stop: str) -> bytes:
    """A stream that ends inside the arguments of a call, whatever it says about that."""
    if source == "openai_chat":
        lines: list[Any] = [
            {"delta": {"role": "assistant", "content": "ok"}},
            {"delta": {"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "run", "arguments": ""}}]}},
            *[{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}} for piece in arguments_text],
        ]
        if stop:
            lines.append({"delta": {}, "finish_reason": stop})
        chunks = [{"id": "x", "model": "m", "choices": [{"index": 0, **line}]} for line in lines]
        end = b"data: [DONE]\n\n" if stop else b""
        return b"".join(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks) + end
    raise NotImplementedError(source)


@pytest.mark.parametrize("policy", [Policy(), Policy(stream_calls="whole")], ids=["live", "whole"])
@pytest.mark.parametrize("target", PROTOCOLS)
@pytest.mark.parametrize("stop", ["length", "tool_calls", "stop", ""])
def test_F1_J4_a_call_that_was_cut_is_never_one_that_can_be_run(target: str, stop: str, policy: Policy) -> None:
    text = '{"command":["ls","rm -rf /tmp/x"]}'
    for position in range(len(text)):
        translator = StreamTranslator(source="openai_chat", target=target, policy=policy)
        output = through(translator, cut_stream("openai_chat", text[:position], stop))
        if position == 0 and stop in ("tool_calls", "stop"):
            continue  # a call without arguments
        assert translator.calls == ()
        events = events_of(output, target)
        check(events)
        shown = [event for event in events if isinstance(event, BlockEnded) and isinstance(event.block, ToolCall)]
        if policy.stream_calls == "whole":
            assert shown == []
        assert all(event.cut for event in shown)
        if stop:
            assert isinstance(events[-1], Finished)
            assert events[-1].stop == "length" if shown else events[-1].stop != "tool_calls"
        else:
            assert isinstance(events[-1], Failed)
        is_said = (target, stop, policy.stream_calls) == (
            "openai_chat",
            "length",
            "live",
        )  # the provider says it itself
        if position and not is_said:
            assert any(text[:position] in entry.reason for entry in translator.report)


@pytest.mark.parametrize("target", PROTOCOLS)
def test_arguments_that_cannot_be_read_are_not_run_where_the_client_wants_an_object(target: str) -> None:
    translator = StreamTranslator(source="openai_chat", target=target)
    output = through(translator, cut_stream("openai_chat", '{"a": nonsense}', "tool_calls"))
    assert any("cannot be run" in entry.reason for entry in translator.report)
    got = events_of(output, target)
    calls = [event.block for event in got if isinstance(event, BlockEnded) and isinstance(event.block, ToolCall)]
    assert all(call.arguments is None for call in calls)


# --- names, ids and free text -----------------------------------------------------------------------


def asked(**tool: Any) -> toolglot.ConvertedRequest:
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"name": "a" * 80, "input_schema": {"type": "object", "properties": {}}, **tool}],
    }
    return convert(body, source="anthropic", target="openai", model="gpt-4.1")


def test_E4_a_renamed_tool_comes_back_under_its_own_name() -> None:
    request = asked()
    sent = request.body["tools"][0]["function"]["name"]
    reply = Reply(Turn("assistant", (ToolCall("call_1", sent, {}),)), "tool_calls", None, "id", "m")
    translator = StreamTranslator(source="openai", target="anthropic", request=request)
    output = through(translator, written(reply, "openai_chat"))
    assert [call.name for call in assembled(output, "anthropic").turn.calls] == ["a" * 80]


def test_a_tool_that_nobody_offered_is_told() -> None:
    reply = Reply(Turn("assistant", (ToolCall("call_1", "other", {}),)), "tool_calls", None, "id", "m")
    translator = StreamTranslator(source="openai", target="anthropic", request=asked())
    through(translator, written(reply, "openai_chat"))
    assert "which is not a tool of the request" in str(translator.report)


def test_B1_calls_without_ids_get_ids_of_their_own_that_are_those_of_the_whole_answer() -> None:
    calls = (ToolCall("", "run", {"a": 1}), ToolCall("", "run", {"a": 2}), ToolCall("", "run", {"a": 1}))
    reply = Reply(Turn("assistant", calls), "tool_calls", None, "", "m")
    translator = StreamTranslator(source="ollama", target="anthropic")
    output = through(translator, written(reply, "ollama"))
    whole = convert_reply(codec("ollama").reply.encode(reply), source="ollama", target="anthropic")
    got = [call.id for call in assembled(output, "anthropic").turn.calls]
    assert len(set(got)) == 3
    assert got == [call.id for call in whole.reply.turn.calls]


def test_E8_free_text_that_went_out_wrapped_comes_back_as_free_text() -> None:
    body = {
        "model": "gpt-5.1",
        "input": "hi",
        "tools": [{"type": "custom", "name": "apply_patch", "description": "Patches."}],
    }
    request = convert(body, source="openai_responses", target="anthropic", model="claude-sonnet-4-5")
    call = ToolCall("toolu_1", "apply_patch", {"input": "*** Begin\n+é"})
    reply = Reply(Turn("assistant", (call,)), "tool_calls", None, "id", "m")
    translator = StreamTranslator(source="anthropic", target="openai_responses", request=request)
    output = through(translator, written(reply, "anthropic", 3))
    (got,) = assembled(output, "openai_responses").turn.calls
    assert (got.type, got.raw_input) == ("custom", "*** Begin\n+é")


# --- the same protocol on both sides ----------------------------------------------------------------


@pytest.mark.law
@settings(suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(replies(), st.data())
def test_law_3_a_stream_in_order_is_forwarded_byte_for_byte(protocol: str, reply: Reply, data: st.DataObject) -> None:
    stream = written(reply, protocol)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=10))
    assert translated(stream, protocol, protocol, cuts) == stream


def test_law_3_unknown_fields_comments_and_events_reach_the_client() -> None:
    stream = (
        b": OPENROUTER PROCESSING\n\n"
        b'data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,'
        b'"delta":{"role":"assistant","content":"a"},"logprobs":{"content":[1]},"new":1}],"provider":"P"}\n\n'
        b'data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},'
        b'"finish_reason":"stop"}]}\n\n'
        b"data: [DONE]\n\n"
    )
    assert translated(stream, "openai_chat", "openai_chat") == stream


def test_H1_a_stream_that_breaks_its_protocol_is_written_anew_from_there_on() -> None:
    def piece(id: str, text: str) -> bytes:
        call = {"index": 0, "id": id, "type": "function", "function": {"name": "run", "arguments": text}}
        return b"data: " + msgspec.json.encode(
            {"id": "x", "model": "m", "choices": [{"delta": {"tool_calls": [call]}}]}
        )

    stream = b"\n\n".join([piece("a", '{"n":1}'), piece("b", '{"n":2}'), piece("c", '{"n":3}'), b"data: [DONE]", b""])
    translator = StreamTranslator(source="openai_chat", target="openai_chat")
    output = through(translator, stream)
    indexes = [
        chunk["choices"][0]["delta"]["tool_calls"][0]["index"]
        for line in output.split(b"\n\n")
        if line.startswith(b"data: {")
        and (chunk := msgspec.json.decode(line[6:]))["choices"][0]["delta"].get("tool_calls")
    ]
    assert sorted(set(indexes)) == [0, 1, 2]
    assert [call.arguments for call in translator.calls] == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert translator.report.entries


# --- the caller's side ------------------------------------------------------------------------------


@pytest.mark.parametrize("target", PROTOCOLS)
def test_pings_go_between_events_and_no_client_sees_them(target: str) -> None:
    stream = written(ANSWER, "openai_chat")
    quiet = StreamTranslator(source="openai_chat", target=target)
    pinged = StreamTranslator(source="openai_chat", target=target)
    output, pings = b"", 0
    for frame in stream.split(b"\n\n")[:-1]:
        output += pinged.feed(frame + b"\n\n")
        pings += bool(pinged.ping())
        output += pinged.ping()
    output += pinged.finish()
    assert plain(assembled(output, target)) == plain(assembled(through(quiet, stream), target))


def test_close_says_what_was_whole() -> None:
    calls = (ToolCall("call_1", "run", {"a": 1}), ToolCall("call_2", "run", {"b": 2}))
    stream = written(Reply(Turn("assistant", calls), "tool_calls", None, "i", "m"), "openai_chat", 3)
    translator = StreamTranslator(source="openai_chat", target="anthropic")
    translator.feed(stream[: stream.index(b"\n\n", stream.index(b'{\\"b')) + 2])
    translator.close()
    translator.close()
    assert [call.id for call in translator.calls] == ["toolu_1"]
    assert [block.id for block in translator.cut if isinstance(block, ToolCall)] == ["toolu_2"]
    assert translator.reply.stop is None
    assert translator.is_over
    assert translator.feed(stream) == b""


def test_a_translator_holds_no_event_back_longer_than_it_must() -> None:
    """Every delta of text is with the client as soon as its frame is whole."""
    stream = written(Reply(Turn("assistant", (Text("one two three four"),)), "stop", None, "i", "m"), "openai_chat", 4)
    translator = StreamTranslator(source="openai_chat", target="anthropic")
    said = ""
    for frame in stream.split(b"\n\n")[:-1]:
        output = translator.feed(frame + b"\n\n")
        choices = msgspec.json.decode(frame[6:])["choices"] if frame[6:7] == b"{" else []
        given_piece = choices[0]["delta"].get("content") if choices else ""
        said += given_piece or ""
        if given_piece:
            assert msgspec.json.encode(given_piece) in output
    assert said == "one two three four"


def test_mistakes_of_the_caller_are_named() -> None:
    with pytest.raises(InputError, match="what convert returned"):
        StreamTranslator(source="openai_chat", target="anthropic", request=b"{}")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a Policy"):
        StreamReader(source="openai_chat", policy="live")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="stream_calls"):
        Policy(stream_calls="maybe")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="a Failure"):
        StreamReader(source="openai_chat").fail("lost")  # type: ignore[arg-type]


def test_a_providers_error_ends_the_stream_in_the_clients_shape() -> None:
    translator = StreamTranslator(source="openai_chat", target="anthropic")
    output = translator.feed(b'data: {"error":{"message":"busy","type":"server_error","code":"overloaded"}}\n\n')
    assert b"event: error" in output
    assert translator.failure is not None
    again = StreamTranslator(source="openai_chat", target="anthropic")
    told = again.fail(toolglot.ProviderError(Failure("rate_limit", "slow down")))
    assert b"rate_limit_error" in told
    assert b"slow down" in told


# --- R-003-8: the accumulator of seed 003 -----------------------------------------------------------


def test_R_003_8_chunks_add_up_to_calls_and_none_is_given_twice() -> None:
    stream = written(ANSWER, "openai_chat", 3)
    calls = ToolCallAccumulator("openai_chat")
    drained: list[ToolCall] = []
    for position in range(0, len(stream), 5):
        calls.add_chunk(stream[position : position + 5])
        drained += calls.drain()
    calls.finish()
    drained += calls.drain()
    assert [call.id for call in drained] == ["call_1", "call_2"]
    assert calls.get_completed() == tuple(drained)
    assert calls.drain() == ()
    assert calls.text == "é "
    assert calls.failure is None


SEED_CHUNKS = [
    {"index": 0, "id": "call_abc", "function": {"name": "get_weather", "arguments": ""}},
    {"index": 0, "function": {"arguments": '{"loc'}},
    {"index": 0, "function": {"arguments": 'ation":'}},
    {"index": 0, "function": {"arguments": '"SF"}'}},
]
SEED_JSON = [json.dumps({"choices": [{"delta": {"tool_calls": [call]}}]}) for call in SEED_CHUNKS]


def collected(source: str, written: str, size: int) -> ToolCallAccumulator:
    calls = ToolCallAccumulator(source)
    for position in range(0, len(written), size):
        calls.add_chunk(written[position : position + size])
    return calls


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("source", ["", "openai", "deepseek", "anthropic"])
def test_R_003_8_the_seeds_json_chunks_add_up_to_a_call_before_the_stream_ends(source: str, size: int) -> None:
    (call,) = collected(source, "\n".join(SEED_JSON), size).get_completed()
    assert (call.id, call.name, call.arguments) == ("call_abc", "get_weather", {"location": "SF"})


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("source", ["", "openai"])
def test_R_002_13_the_seeds_lines_without_empty_lines_between_them_are_a_stream(source: str, size: int) -> None:
    calls = collected(source, "".join(f"data: {line}\n" for line in SEED_JSON), size)
    calls.finish()
    assert [(call.name, call.arguments) for call in calls.get_completed()] == [("get_weather", {"location": "SF"})]


def test_R_002_13_R_002_14_the_seeds_lines_become_the_seeds_events() -> None:
    translator = StreamTranslator(source="openai", target="anthropic")
    finish = json.dumps({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})
    lines = [*SEED_JSON, finish, "[DONE]"]
    output = translator.feed("".join(f"data: {line}\n" for line in lines).encode()) + translator.finish()
    events = [json.loads(line[6:]) for line in output.decode().splitlines() if line.startswith("data: ")]
    start, *deltas, stop = [event for event in events if event["type"].startswith("content_block")]
    assert start["content_block"] == {"type": "tool_use", "id": "toolu_abc", "name": "get_weather", "input": {}}
    assert "".join(event["delta"]["partial_json"] for event in deltas) == '{"location":"SF"}'
    assert (start["index"], stop["type"]) == (0, "content_block_stop")


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("source", ["", "openai", "xai", "deepseek"])
@pytest.mark.parametrize(
    ("written", "found", "text"),
    [
        (
            'Hi <tool name="get"><x>1</x></tool> or <x.ai:tool_call>{"name": "q", "arguments": {}}</x.ai:tool_call>',
            [("get", {"x": "1"}), ("q", {})],
            "Hi  or ",
        ),
        (
            '{"content": [{"type": "text", "text": "hm"}, {"type": "tool_use", "id": "1", "name": "f", "input": {}}]}',
            [("f", {})],
            "",
        ),
        ('{"tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}', [("f", {})], ""),
        ('{"name": "f", "parameters": {"a": "}"}}', [], '{"name": "f", "parameters": {"a": "}"}}'),
        ("data, and nothing else", [], "data, and nothing else"),
        ('{"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "argum', [], None),
        ("", [], ""),
    ],
)
def test_R_003_8_text_formats_and_whole_replies_are_told_apart(
    written: str, found: list[Any], text: str | None, source: str, size: int
) -> None:
    calls = collected(source, written, size)
    calls.finish()
    assert [(call.name, call.arguments) for call in calls.get_completed()] == found
    assert len({call.id for call in calls.drain()}) == len(found)
    assert calls.failure is None
    if text is not None:
        assert calls.text.replace("hm", "") == text


def test_R_003_8_R_003_18_a_bare_command_is_a_call_where_nobody_says_who_answers() -> None:
    for source, count in (("", 1), ("deepseek", 1), ("openai", 0)):
        calls = collected(source, "<tool>ls -la</tool>", 3)
        calls.finish()
        found = [(call.name, call.arguments) for call in calls.get_completed()]
        assert found == [("bash", {"command": "ls -la"})] * count


def test_R_003_T1_an_empty_object_is_no_whole_call_before_the_stream_says_so() -> None:
    calls = ToolCallAccumulator("openai")
    for arguments in ("{}", ""):
        call = {"index": 0, "id": "c", "function": {"name": "now", "arguments": arguments}}
        calls.add_chunk(json.dumps({"choices": [{"delta": {"tool_calls": [call]}}]}))
        assert calls.drain() == ()
    calls.add_chunk(json.dumps({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}))
    calls.finish()
    assert [call.arguments for call in calls.drain()] == [{}]


def test_R_003_8_a_chunk_that_completes_no_call_loses_no_text() -> None:
    calls = ToolCallAccumulator("anthropic")
    for piece in ("Hel", "lo"):
        event = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
        start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        if piece == "Hel":
            calls.add_chunk(f"data: {msgspec.json.encode(start).decode()}\n\n")
        calls.add_chunk(f"data: {msgspec.json.encode(event).decode()}\n\n")
        assert calls.get_completed() == ()
    assert calls.text == "Hello"


# --- the seam for calls written as text -------------------------------------------------------------


class Shouting:
    """A reader that changes text; real ones find calls in it."""

    is_settled = True

    def feed(self, events: list[Event]) -> list[Event]:
        return [
            TextDelta(event.text.upper())
            if isinstance(event, TextDelta)
            else BlockEnded(replace(event.block, text=event.block.text.upper()))
            if isinstance(event, BlockEnded) and isinstance(event.block, Text)
            else event
            for event in events
        ]


def test_what_reads_calls_in_text_stands_between_the_provider_and_the_client() -> None:
    translator = StreamTranslator(source="openai_chat", target="openai_chat", reader=Shouting())
    output = through(translator, written(ANSWER, "openai_chat"))
    assert assembled(output, "openai_chat").turn.text == "É "


def test_media_in_an_answer_is_left_out_where_the_client_has_no_place_for_it() -> None:
    reply = Reply(Turn("assistant", (Text("a"), Media("image", "image/png", data="QUJD"))), "stop", None, "i", "m")
    for target in PROTOCOLS:
        output = translated(written(reply, "gemini"), "gemini", target)
        check(events_of(output, target))
        assert assembled(output, target).turn.text == "a"


def test_of_block_tells_a_cut_block() -> None:
    events = list(of_block(ToolCall("a", "f", raw_input='{"x'), cut=True, piece=2))
    assert [event.text for event in events if isinstance(event, InputDelta)] == ['{"', "x"]
    assert isinstance(events[-1], BlockEnded)
    assert events[-1].cut


# --- what is no stream ------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 7, 10_000])
@pytest.mark.parametrize("target", PROTOCOLS)
@pytest.mark.parametrize("source", ["anthropic", "openai_chat", "openai_responses", "gemini", "cohere"])
def test_a_whole_answer_where_a_stream_was_asked_for_is_told_as_one(source: str, target: str, step: int) -> None:
    body = b" " + msgspec.json.encode(codec(source).reply.encode(ANSWER))
    translator = StreamTranslator(source=source, target=target)
    output = through(translator, body, list(range(0, len(body), step)))
    assert [call.arguments for call in assembled(output, target).turn.calls] == [{"a": "ü"}, {}]
    assert any("a whole reply although a stream" in entry.reason for entry in translator.report)


@pytest.mark.parametrize("target", PROTOCOLS)
def test_an_error_body_where_a_stream_was_asked_for_keeps_its_words(target: str) -> None:
    translator = StreamTranslator(source="openai_chat", target=target)
    through(
        translator, b'{"error":{"message":"quota exceeded","type":"insufficient_quota","code":"insufficient_quota"}}'
    )
    assert translator.failure is not None
    assert (translator.failure.kind, translator.failure.message) == ("billing", "quota exceeded")


def test_an_answer_that_is_neither_is_told_as_unreadable() -> None:
    translator = StreamTranslator(source="openai_chat", target="anthropic", limits=Limits(max_bytes=100))
    assert b"event: error" in through(translator, b'{"choices": [')
    long = StreamTranslator(source="openai_chat", target="anthropic", limits=Limits(max_bytes=100))
    assert b"event: error" in through(long, b"{" + b" " * 200)


# --- at home, whatever happens ----------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "bedrock"])  # whose frames say their length
def test_a_last_event_that_lacks_its_end_reaches_the_client_at_home(protocol: str) -> None:
    stream = written(ANSWER, protocol)
    output = translated(stream.rstrip(b"\n"), protocol, protocol)
    assert plain(assembled(output, protocol)) == plain(assembled(stream, protocol))


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "gemini"])  # whose end is that of the bytes
def test_nothing_follows_the_end_at_home(protocol: str) -> None:
    first = Reply(Turn("assistant", (Text("one"),)), "stop", None, "id_1", "m")
    output = translated(written(first, protocol) + written(ANSWER, protocol), protocol, protocol)
    assert output == written(first, protocol)


def test_a_secret_in_an_error_is_masked_at_home_too() -> None:
    key = "sk-proj-ABCDEFGH1234567890"
    error = {"error": {"message": f"Incorrect API key provided: {key}", "code": "invalid_api_key"}}
    stream = written(CUT, "openai_chat").split(b"\n\n")[0] + b"\n\ndata: " + msgspec.json.encode(error) + b"\n\n"
    output = translated(stream, "openai_chat", "openai_chat")
    assert key.encode() not in output
    assert b"Incorrect API key" in output


def test_what_is_left_out_is_not_forwarded_either() -> None:
    frames = written(ANSWER, "anthropic").split(b"\n\n")[:-1]
    odd = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":9,"delta":{"type":"odd"}}'
    output = translated(b"\n\n".join([*frames[:4], odd, *frames[4:], b""]), "anthropic", "anthropic")
    assert b'"odd"' not in output
    assert plain(assembled(output, "anthropic")) == plain(assembled(written(ANSWER, "anthropic"), "anthropic"))


def test_several_choices_are_forwarded_as_they_are() -> None:
    def chunk(*choices: dict[str, Any]) -> bytes:
        head = {"id": "x", "object": "chat.completion.chunk", "model": "m"}
        return b"data: " + msgspec.json.encode({**head, "choices": choices}) + b"\n\n"

    stream = b"".join(
        [
            chunk({"index": 0, "delta": {"role": "assistant", "content": "a"}}),
            chunk({"index": 1, "delta": {"role": "assistant", "content": "b"}}),
            chunk({"index": 0, "delta": {}, "finish_reason": "stop"}),
            chunk({"index": 1, "delta": {}, "finish_reason": "stop"}),
            b"data: [DONE]\n\n",
        ]
    )
    translator = StreamTranslator(source="openai_chat", target="openai_chat")
    assert through(translator, stream) == stream
    assert any("several choices" in entry.reason for entry in translator.report)


def test_a_keep_alive_is_not_kept_while_a_call_waits() -> None:
    translator = StreamTranslator(source="openai_chat", target="openai_chat", policy=Policy(stream_calls="whole"))
    frames = [frame + b"\n\n" for frame in written(ANSWER, "openai_chat", 2).split(b"\n\n")[:-1]]
    place = next(number for number, frame in enumerate(frames) if b"call_1" in frame)
    for frame in frames[: place + 2]:
        translator.feed(frame)
    assert translator.feed(b": ping\n\n") == b": ping\n\n"


# --- F1: free text that was cut ---------------------------------------------------------------------


@pytest.mark.parametrize("policy", [Policy(), Policy(stream_calls="whole")], ids=["live", "whole"])
@pytest.mark.parametrize("target", PROTOCOLS)
@pytest.mark.parametrize("source", ["openai_chat", "openai_responses"])
def test_F1_free_text_that_was_cut_is_never_a_call_that_can_be_run(source: str, target: str, policy: Policy) -> None:
    call = ToolCall("call_1", "apply_patch", type="custom", raw_input="*** Begin Patch\n*** Delete File: a")
    stream = written(Reply(Turn("assistant", (call,)), "tool_calls", None, "i", "m"), source, 3)
    end = stream.index(b"\n\n", stream.index(b"gin")) + 2
    translator = StreamTranslator(source=source, target=target, policy=policy)
    output = translator.feed(stream[:end]) + translator.fail()
    assert translator.calls == ()
    events = events_of(output, target)
    check(events)
    assert not [
        event
        for event in events
        if isinstance(event, BlockEnded) and isinstance(event.block, ToolCall) and not event.cut
    ]


def test_F1_free_text_that_went_out_wrapped_and_was_cut_is_no_call() -> None:
    body = {
        "model": "gpt-5.1",
        "input": "hi",
        "tools": [{"type": "custom", "name": "apply_patch", "description": "P."}],
    }
    request = convert(body, source="openai_responses", target="anthropic", model="claude-sonnet-4-5")
    call = ToolCall("toolu_1", "apply_patch", {"input": "*** Begin\n*** Delete File: a"})
    stream = written(Reply(Turn("assistant", (call,)), "tool_calls", None, "id", "m"), "anthropic", 20)
    translator = StreamTranslator(source="anthropic", target="openai_responses", request=request)
    output = translator.feed(stream[: stream.index(b"\n\n", stream.index(b"*** B")) + 2]) + translator.fail()
    assert translator.calls == ()
    assert b"output_item.done" not in output or b"custom_tool_call" not in output


def test_a_damaged_event_ends_the_stream_since_what_it_said_is_lost() -> None:
    def piece(text: str) -> bytes:
        call = {"index": 0, "function": {"arguments": text}}
        return b"data: " + msgspec.json.encode({"choices": [{"delta": {"tool_calls": [call]}}]}) + b"\n\n"

    start = {"index": 0, "id": "c", "type": "function", "function": {"name": "rm", "arguments": ""}}
    begun = b"data: " + msgspec.json.encode({"id": "x", "choices": [{"delta": {"tool_calls": [start]}}]}) + b"\n\n"
    stream = begun + piece('{"path":"/tmp/x"') + b'data: {"choices":[{"delta"\n\n' + piece("}") + b"data: [DONE]\n\n"
    translator = StreamTranslator(source="openai_chat", target="anthropic")
    assert b"event: error" in through(translator, stream)
    assert translator.calls == ()


def test_bytes_of_any_kind_are_taken_and_anything_else_is_named() -> None:
    reader = StreamReader(source="openai_chat")
    reader.feed(bytearray(b": hi\n\n"))  # type: ignore[arg-type]
    reader.feed(memoryview(b": hi\n\n"))  # type: ignore[arg-type]
    for wrong in ("text", None, 7):
        with pytest.raises(InputError, match="expected bytes"):
            reader.feed(wrong)  # type: ignore[arg-type]


# --- errors in the middle ---------------------------------------------------------------------------


@pytest.mark.parametrize("target", PROTOCOLS)
def test_K4_what_groq_says_of_a_call_that_it_could_not_read_is_a_failure_that_may_be_retried(target: str) -> None:
    error = {
        "message": "Failed to call a function. Please adjust your prompt.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": '<function=ls>{"p": "/',
    }
    stream = written(CUT, "openai_chat").split(b"\n\n")[0] + b"\n\n"
    translator = StreamTranslator(source="groq", target=target)
    output = through(translator, stream + b"data: " + msgspec.json.encode({"error": error}) + b"\n\n")
    assert translator.failure is not None
    assert (translator.failure.kind, translator.failure.retryable) == ("bad_output", True)
    assert isinstance(events_of(output, target)[-1], Failed)


def test_K5_a_request_that_was_wrong_is_not_one_to_be_retried() -> None:
    translator = StreamTranslator(source="openai_chat", target="anthropic")
    error = {"message": "messages.1: bad", "type": "invalid_request_error", "code": None}
    through(translator, b"data: " + msgspec.json.encode({"error": error}) + b"\n\n")
    assert translator.failure is not None
    assert (translator.failure.kind, translator.failure.retryable) == ("bad_request", False)


# --- seed 002 ---------------------------------------------------------------------------------------


def test_R_002_13_the_chunks_of_the_seed_are_one_call_in_the_events_of_the_seed() -> None:
    def chunk(function: dict[str, str], **first: str) -> bytes:
        call = {"index": 0, **first, "function": function}
        return b"data: " + msgspec.json.encode({"choices": [{"delta": {"tool_calls": [call]}}]}) + b"\n\n"

    pieces = [
        chunk({"name": "get_weather", "arguments": ""}, id="call_abc"),
        chunk({"arguments": '{"loc'}),
        chunk({"arguments": 'ation":'}),
        chunk({"arguments": '"SF"}'}),
        b"data: [DONE]\n\n",
    ]
    translator = StreamTranslator(source="openai_chat", target="anthropic")
    output = b"".join(translator.feed(piece) for piece in pieces) + translator.finish()
    lines = [msgspec.json.decode(line[6:]) for line in output.split(b"\n") if line.startswith(b"data: ")]
    kinds = [line["type"] for line in lines]
    assert kinds[1:-2] == ["content_block_start", *["content_block_delta"] * 3, "content_block_stop"]
    assert lines[1]["content_block"] == {"type": "tool_use", "id": "toolu_abc", "name": "get_weather", "input": {}}
    assert "".join(line["delta"]["partial_json"] for line in lines[2:5]) == '{"location":"SF"}'
    assert lines[-2]["delta"]["stop_reason"] == "tool_use"


@pytest.mark.parametrize("wrap", [lambda delta: delta, lambda delta: {"delta": delta}], ids=["delta", "choice"])
def test_bare_deltas_of_a_chat_stream_are_one_call_and_never_a_call_without_its_arguments(wrap: Any) -> None:
    begun = {"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "bash", "arguments": ""}}]}
    more = [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in ('{"command"', ':"ls"}')]
    calls = ToolCallAccumulator()
    for delta in (begun, *more):
        assert calls.drain() == ()
        calls.add_chunk(json.dumps(wrap(delta)))
    (call,) = calls.drain()
    assert (call.id, call.name, call.arguments) == ("call_1", "bash", {"command": "ls"})
