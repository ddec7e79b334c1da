"""Streams, any to any: split-proof, equal to the whole answer, with one legal end whatever the provider does."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import toolglot
from support.conversations.event_grammar import check
from support.translate.translated_streams import (
    ANSWER,
    CUT,
    PROTOCOLS,
    events_of,
    feed_through,
    plain,
    read_reply,
    stream_bytes,
    translate,
)
from toolglot import (
    Block,
    Failure,
    InputError,
    Policy,
    Reply,
    StreamReader,
    StreamTranslator,
    Text,
    Thinking,
    ToolCall,
    Turn,
    Usage,
    convert_reply,
)
from toolglot.conversation import StopReason
from toolglot.conversation.events import Failed, Finished
from toolglot.limits import Limits
from toolglot.protocols.base import codec

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
    """Replies as models give them: thinking, text, calls."""
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


# --- law 8 ------------------------------------------------------------------------------------------


@pytest.mark.law
@settings(suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("source", PROTOCOLS)
@given(replies(), st.sampled_from(PROTOCOLS), st.integers(1, 12))
def test_law_8_a_stream_adds_up_to_the_whole_reply(source: str, reply: Reply, target: str, piece: int) -> None:
    whole = convert_reply(codec(source).reply.encode(reply), source=source, target=target)
    translator = StreamTranslator(source=source, target=target)
    data = feed_through(translator, stream_bytes(reply, source, piece))
    assert plain(translator.reply) == plain(whole.reply)
    assert plain(read_reply(data, target)) == plain(codec(target).reply.decode(whole.body))


@pytest.mark.law
@settings(suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("source", PROTOCOLS)
@given(replies(), st.sampled_from(PROTOCOLS), st.data())
def test_law_8_however_the_bytes_are_cut_the_client_gets_the_same(
    source: str, reply: Reply, target: str, data: st.DataObject
) -> None:
    stream = stream_bytes(reply, source)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=20))
    assert translate(stream, source, target, cuts) == translate(stream, source, target)
    assert events_of(stream, source, cuts) == events_of(stream, source)


@pytest.mark.parametrize("source", PROTOCOLS)
def test_law_8_every_single_cut_gives_the_same_bytes(source: str) -> None:
    stream = stream_bytes(ANSWER, source, 4)
    target = "openai_responses" if source == "anthropic" else "anthropic"
    whole = translate(stream, source, target)
    for position in range(len(stream) + 1):
        assert translate(stream, source, target, [position]) == whole
    assert translate(stream, source, target, list(range(len(stream)))) == whole


# --- what was recorded ------------------------------------------------------------------------------


def recordings() -> list[tuple[str, str]]:
    protocols = {"chat": "openai_chat", "responses": "openai_responses", "messages": "anthropic"}
    return [(protocols[path.stem.partition("_")[0]], path.name) for path in sorted(RECORDED.glob("*.sse"))]


@pytest.mark.parametrize(("source", "name"), recordings())
def test_law_8_what_a_real_server_streams_reaches_every_client_and_is_split_proof(source: str, name: str) -> None:
    stream = (RECORDED / name).read_bytes()
    events = events_of(stream, source)
    check(events)
    rng = random.Random(name)  # noqa: S311 - the same cuts each time
    for target in PROTOCOLS:
        whole = StreamTranslator(source=source, target=target)
        data = feed_through(whole, stream)
        cuts = [rng.randrange(len(stream)) for _ in range(25)]
        assert translate(stream, source, target, cuts) == data
        if target in ("anthropic", "openai_chat"):
            assert translate(stream, source, target, list(range(len(stream)))) == data
        got = read_reply(data, target)
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
def test_a_malformed_stream_still_has_one_legal_end(
    source: str, reply: Reply, target: str, data: st.DataObject
) -> None:
    stream = stream_bytes(reply, source)
    start = data.draw(st.integers(0, len(stream)))
    end = data.draw(st.integers(start, len(stream)))
    malformed = stream[:start] + data.draw(st.binary(max_size=4)) + stream[end:]
    translator = StreamTranslator(source=source, target=target)
    output = feed_through(translator, malformed)
    assert translator.is_over
    check(events_of(output, target))


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_lost_connection_is_an_error_in_the_clients_protocol(source: str, target: str) -> None:
    stream = stream_bytes(ANSWER, source)
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
    stream = stream_bytes(ANSWER, "openai_chat")
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


# --- the same protocol on both sides ----------------------------------------------------------------


@pytest.mark.law
@settings(suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(replies(), st.data())
def test_law_3_a_stream_in_order_is_forwarded_byte_for_byte(protocol: str, reply: Reply, data: st.DataObject) -> None:
    known = reply.usage or Usage()
    counted = msgspec.structs.replace(
        known, input_tokens=known.input_tokens or 0, output_tokens=known.output_tokens or 0
    )
    # Without counts, a stream is not in order everywhere.
    stream = stream_bytes(msgspec.structs.replace(reply, usage=counted), protocol)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=10))
    assert translate(stream, protocol, protocol, cuts) == stream


def test_law_3_unknown_fields_comments_and_events_reach_the_client() -> None:
    stream = (
        b": OPENROUTER PROCESSING\n\n"
        b'data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,'
        b'"delta":{"role":"assistant","content":"a"},"logprobs":{"content":[1]},"new":1}],"provider":"P"}\n\n'
        b'data: {"id":"x","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},'
        b'"finish_reason":"stop"}]}\n\n'
        b"data: [DONE]\n\n"
    )
    assert translate(stream, "openai_chat", "openai_chat") == stream


def test_H1_a_stream_that_breaks_its_protocol_is_written_anew_from_there_on() -> None:
    def piece(id: str, text: str) -> bytes:
        call = {"index": 0, "id": id, "type": "function", "function": {"name": "run", "arguments": text}}
        return b"data: " + msgspec.json.encode(
            {"id": "x", "model": "m", "choices": [{"delta": {"tool_calls": [call]}}]}
        )

    stream = b"\n\n".join([piece("a", '{"n":1}'), piece("b", '{"n":2}'), piece("c", '{"n":3}'), b"data: [DONE]", b""])
    translator = StreamTranslator(source="openai_chat", target="openai_chat")
    output = feed_through(translator, stream)
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
    stream = stream_bytes(ANSWER, "openai_chat")
    quiet = StreamTranslator(source="openai_chat", target=target)
    pinged = StreamTranslator(source="openai_chat", target=target)
    output, pings = b"", 0
    for frame in stream.split(b"\n\n")[:-1]:
        output += pinged.feed(frame + b"\n\n")
        pings += bool(pinged.ping())
        output += pinged.ping()
    output += pinged.finish()
    assert plain(read_reply(output, target)) == plain(read_reply(feed_through(quiet, stream), target))


def test_close_returns_what_was_whole() -> None:
    calls = (ToolCall("call_1", "run", {"a": 1}), ToolCall("call_2", "run", {"b": 2}))
    stream = stream_bytes(Reply(Turn("assistant", calls), "tool_calls", None, "i", "m"), "openai_chat", 3)
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
    stream = stream_bytes(
        Reply(Turn("assistant", (Text("one two three four"),)), "stop", None, "i", "m"), "openai_chat", 4
    )
    translator = StreamTranslator(source="openai_chat", target="anthropic")
    received = ""
    for frame in stream.split(b"\n\n")[:-1]:
        output = translator.feed(frame + b"\n\n")
        choices = msgspec.json.decode(frame[6:])["choices"] if frame[6:7] == b"{" else []
        content = choices[0]["delta"].get("content") if choices else ""
        received += content or ""
        if content:
            assert msgspec.json.encode(content) in output
    assert received == "one two three four"


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
    output_of_fail = again.fail(toolglot.ProviderError(Failure("rate_limit", "slow down")))
    assert b"rate_limit_error" in output_of_fail
    assert b"slow down" in output_of_fail


# --- what is no stream ------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 7, 10_000])
@pytest.mark.parametrize("target", PROTOCOLS)
@pytest.mark.parametrize("source", ["anthropic", "openai_chat", "openai_responses", "gemini", "cohere"])
def test_a_whole_reply_instead_of_a_stream_is_streamed(source: str, target: str, step: int) -> None:
    body = b" " + msgspec.json.encode(codec(source).reply.encode(ANSWER))
    translator = StreamTranslator(source=source, target=target)
    output = feed_through(translator, body, list(range(0, len(body), step)))
    assert [call.arguments for call in read_reply(output, target).turn.calls] == [{"a": "ü"}, {}]
    assert any("a whole reply although a stream" in entry.reason for entry in translator.report)


@pytest.mark.parametrize("target", PROTOCOLS)
def test_an_error_body_instead_of_a_stream_keeps_its_message(target: str) -> None:
    translator = StreamTranslator(source="openai_chat", target=target)
    feed_through(
        translator, b'{"error":{"message":"quota exceeded","type":"insufficient_quota","code":"insufficient_quota"}}'
    )
    assert translator.failure is not None
    assert (translator.failure.kind, translator.failure.message) == ("billing", "quota exceeded")


def test_a_reply_that_is_neither_is_an_unreadable_response() -> None:
    translator = StreamTranslator(source="openai_chat", target="anthropic", limits=Limits(max_bytes=100))
    assert b"event: error" in feed_through(translator, b'{"choices": [')
    long = StreamTranslator(source="openai_chat", target="anthropic", limits=Limits(max_bytes=100))
    assert b"event: error" in feed_through(long, b"{" + b" " * 200)


# --- within one protocol, whatever happens ----------------------------------------------------------


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "bedrock"])  # whose frames have a length
def test_a_last_event_without_its_end_reaches_a_client_of_the_same_protocol(protocol: str) -> None:
    stream = stream_bytes(ANSWER, protocol)
    output = translate(stream.rstrip(b"\n"), protocol, protocol)
    assert plain(read_reply(output, protocol)) == plain(read_reply(stream, protocol))


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "gemini"])  # whose end is that of the bytes
def test_nothing_follows_the_end_within_one_protocol(protocol: str) -> None:
    first = Reply(Turn("assistant", (Text("one"),)), "stop", Usage(1, 2), "id_1", "m")
    output = translate(stream_bytes(first, protocol) + stream_bytes(ANSWER, protocol), protocol, protocol)
    assert output == stream_bytes(first, protocol)


def test_a_secret_in_an_error_is_masked_within_one_protocol_too() -> None:
    key = "sk-proj-ABCDEFGH1234567890"
    error = {"error": {"message": f"Incorrect API key provided: {key}", "code": "invalid_api_key"}}
    stream = stream_bytes(CUT, "openai_chat").split(b"\n\n")[0] + b"\n\ndata: " + msgspec.json.encode(error) + b"\n\n"
    output = translate(stream, "openai_chat", "openai_chat")
    assert key.encode() not in output
    assert b"Incorrect API key" in output


def test_what_is_left_out_is_not_forwarded_either() -> None:
    frames = stream_bytes(ANSWER, "anthropic").split(b"\n\n")[:-1]
    odd = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":9,"delta":{"type":"odd"}}'
    output = translate(b"\n\n".join([*frames[:4], odd, *frames[4:], b""]), "anthropic", "anthropic")
    assert b'"odd"' not in output
    assert plain(read_reply(output, "anthropic")) == plain(read_reply(stream_bytes(ANSWER, "anthropic"), "anthropic"))


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
    assert feed_through(translator, stream) == stream
    assert any("several choices" in entry.reason for entry in translator.report)


def test_a_keep_alive_is_not_kept_while_a_call_waits() -> None:
    translator = StreamTranslator(source="openai_chat", target="openai_chat", policy=Policy(stream_calls="whole"))
    frames = [frame + b"\n\n" for frame in stream_bytes(ANSWER, "openai_chat", 2).split(b"\n\n")[:-1]]
    index = next(number for number, frame in enumerate(frames) if b"call_1" in frame)
    for frame in frames[: index + 2]:
        translator.feed(frame)
    assert translator.feed(b": ping\n\n") == b": ping\n\n"


# --- errors in the middle ---------------------------------------------------------------------------


@pytest.mark.parametrize("target", PROTOCOLS)
def test_K4_groqs_error_for_an_unreadable_call_is_a_failure_that_may_be_retried(target: str) -> None:
    error = {
        "message": "Failed to call a function. Please adjust your prompt.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": '<function=ls>{"p": "/',
    }
    stream = stream_bytes(CUT, "openai_chat").split(b"\n\n")[0] + b"\n\n"
    translator = StreamTranslator(source="groq", target=target)
    output = feed_through(translator, stream + b"data: " + msgspec.json.encode({"error": error}) + b"\n\n")
    assert translator.failure is not None
    assert (translator.failure.kind, translator.failure.retryable) == ("bad_output", True)
    assert isinstance(events_of(output, target)[-1], Failed)


def test_K5_a_request_that_was_wrong_is_not_one_to_be_retried() -> None:
    translator = StreamTranslator(source="openai_chat", target="anthropic")
    error = {"message": "messages.1: bad", "type": "invalid_request_error", "code": None}
    feed_through(translator, b"data: " + msgspec.json.encode({"error": error}) + b"\n\n")
    assert translator.failure is not None
    assert (translator.failure.kind, translator.failure.retryable) == ("bad_request", False)
