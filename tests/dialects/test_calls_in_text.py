"""Calls that a model wrote as text reach the client as tool calls, live. Other text is left alone."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.dialects.text_replies import (
    ALWAYS,
    CALL,
    CLIENTS,
    NEVER,
    protocol_of,
    read_stream,
    reply,
    reply_body,
    stream_bytes,
    summary,
)
from support.simulator.asgi_client import ask
from support.simulator.good_requests import BODIES, FUNCTION
from toolglot import (
    ConvertedRequest,
    Policy,
    Reply,
    StreamReader,
    StreamTranslator,
    Thinking,
    ToolCall,
    ToolCallAccumulator,
    convert,
    convert_reply,
    dialects,
    profiles,
    repair,
    write_calls,
)
from toolglot.conversation import StopReason
from toolglot.conversation.events import BlockEnded, Failed, Finished, InputDelta, TextDelta
from toolglot.conversation.reply_events import of_reply
from toolglot.protocols.base import codec
from toolglot.simulator import Simulator
from toolglot.simulator.scripts.text_calls import DIALECTS

SERVERS = ("vllm", "llamacpp", "ollama", "openrouter", "openai_compatible")
FIRST_PARTY = ("openai", "openai_responses", "anthropic", "gemini", "mistral", "bedrock", "cohere", "xai", "deepseek")
OTHER = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Köln </tool_call> \\"x\\""}}\n</tool_call>'
MARKUP = ("<tool_call", "</tool_call")


def convert_for(client: str, server: str, **changed: Any) -> ConvertedRequest:
    """A client's request, converted for a server: it offers one tool, `get_weather`."""
    return convert({**BODIES[client], **changed}, source=client, target=server, model="some-model")


def without_ids(answer: Reply) -> list[tuple[Any, ...]]:
    return [each if each[0] != "call" else each[:1] + each[2:] for each in summary(answer)]


# --- whole and streamed -----------------------------------------------------------------------------


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("server", SERVERS)
def test_calls_in_text_are_real_calls_for_every_client_whole_and_streamed(server: str, client: str) -> None:
    request = convert_for(client, server)
    answer = reply(f"I look.\n{CALL}\n{OTHER}")
    back = convert_reply(reply_body(answer, server), source=server, target=client, request=request)
    assert without_ids(back.reply) == [
        ("Text", "I look.\n"),
        ("call", "get_weather", {"city": "Bonn"}, "function"),
        ("call", "get_weather", {"city": 'Köln </tool_call> "x"'}, "function"),
        ("stop", "tool_calls"),
    ]
    ids = [call.id for call in back.reply.turn.calls]
    assert len(set(ids)) == 2
    read = codec(protocol_of(client)).reply.decode(back.body)
    assert read.stop == "tool_calls"
    for piece in (1, 3, 7, 1000):
        translator = StreamTranslator(source=server, target=client, request=request)
        output = translator.feed(stream_bytes(answer, server, piece)) + translator.finish()
        assert summary(translator.reply) == summary(back.reply)
        _, received = read_stream(output, client)
        assert summary(received) == summary(read)


def chat_answer(text: str, reason: str | None) -> dict[str, Any]:
    """A Chat Completions reply with any finish reason, or none."""
    choice: dict[str, Any] = {"index": 0, "message": {"role": "assistant", "content": text}}
    choice |= {"finish_reason": reason} if reason is not None else {}
    return {"id": "id_1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def chat_stream(text: str, reason: str | None) -> bytes:
    deltas: list[tuple[dict[str, Any], str | None]] = [({"content": each}, None) for each in text]
    chunks = [
        {"id": "id_1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}
        for delta, finish_reason in [*deltas, ({}, reason)]
    ]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


@pytest.mark.parametrize("client", ["openai", "vllm", "openai_chat", "mistral"])
@pytest.mark.parametrize("reason", ["stop", "eos", "tool_calls", "", None])
def test_J1_between_chat_peers_the_reason_is_tool_calls_whatever_the_provider_sent(
    client: str, reason: str | None
) -> None:
    request = convert_for("openai", "vllm")
    back = convert_reply(chat_answer(f"Hi.{CALL}", reason), source="vllm", target=client, request=request)
    assert back.body["choices"][0]["finish_reason"] == "tool_calls"
    assert [call["function"]["name"] for call in back.body["choices"][0]["message"]["tool_calls"]] == ["get_weather"]
    translator = StreamTranslator(source="vllm", target=client, request=request)
    output = translator.feed(chat_stream(f"Hi.{CALL}", reason)) + translator.finish()
    lines = [line[6:] for line in output.splitlines() if line.startswith(b"data: {")]
    reasons = [choice.get("finish_reason") for line in lines for choice in json.loads(line)["choices"]]
    assert [each for each in reasons if each is not None] == ["tool_calls"]


@pytest.mark.parametrize("reason", ["stop", "eos"])
def test_a_reply_without_calls_keeps_the_finish_reason_of_its_provider(reason: str) -> None:
    body = chat_answer("Hi.", reason)
    assert convert_reply(body, source="vllm", target="openai").body == body


def test_a_reply_without_a_finish_reason_gets_one() -> None:
    out = convert_reply(chat_answer("Hi.", None), source="vllm", target="openai")
    assert out.body["choices"][0]["finish_reason"] == "stop"
    assert "$.stop" in {entry.path for entry in out.report.entries}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_report_has_one_entry_that_text_became_calls_with_the_dialect(client: str) -> None:
    request = convert_for(client, "vllm")
    answer = reply(f"I look.\n{CALL}\n{OTHER}")
    back = convert_reply(reply_body(answer, "vllm"), source="vllm", target=client, request=request)
    translator = StreamTranslator(source="vllm", target=client, request=request)
    translator.feed(stream_bytes(answer, "vllm"))
    translator.finish()
    reader = StreamReader(source="vllm", request=request)
    reader.feed(stream_bytes(answer, "vllm"))
    reader.finish()
    for report in (back.report, translator.report, reader.report):
        (found,) = [entry for entry in report if "as text" in entry.reason]
        assert (found.action, found.fault) == ("converted", "canonical")
        assert "(hermes)" in found.reason
    silent = convert_reply(reply_body(reply("Hi."), "vllm"), source="vllm", target=client, request=request)
    assert not [entry for entry in silent.report if "as text" in entry.reason]


def test_calls_in_text_are_reported_while_the_reply_streams() -> None:
    reader = StreamReader(source="vllm")
    data = stream_bytes(reply(f"{CALL} And so on."), "vllm", 4)
    assert not [*reader.report]
    reader.feed(data[: len(data) * 9 // 10])
    assert [entry.action for entry in reader.report] == ["converted"]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("text", [CALL[:-25], f"{CALL}{CALL[:-25]}"])
def test_a_reply_that_ends_inside_a_call_was_cut_whole_and_streamed(client: str, text: str) -> None:
    request = convert_for(client, "vllm")
    back = convert_reply(reply_body(reply(text), "vllm"), source="vllm", target=client, request=request)
    translator = StreamTranslator(source="vllm", target=client, request=request)
    translator.feed(stream_bytes(reply(text), "vllm"))
    translator.finish()
    assert (back.reply.stop, translator.reply.stop) == ("length", "length")
    assert [call.name for call in translator.calls] == ["get_weather"] * (text.count("<tool_call>") - 1)


def test_arguments_that_are_not_json_are_not_cut_and_leave_no_marks() -> None:
    text = '<tool_call>{"name": "get_weather", "arguments": {"city": Bonn!}}</tool_call> Done.'
    for client, stop in (("openai", "tool_calls"), ("anthropic", "stop")):
        back = convert_reply(
            reply_body(reply(text), "vllm"), source="vllm", target=client, request=convert_for(client, "vllm")
        )
        assert back.reply.stop == stop
        assert "tool_call>" not in json.dumps(back.body)
        assert "Bonn!" in json.dumps(back.body)


@pytest.mark.law
@given(
    st.sampled_from(SERVERS),
    st.sampled_from(CLIENTS),
    st.sampled_from(sorted(DIALECTS)),
    st.dictionaries(st.text("ab", min_size=1, max_size=2), st.text('a é\n"<{}', max_size=9), max_size=2),
    st.lists(st.integers(0, 2000), max_size=8),
)
def test_however_a_stream_is_cut_the_client_gets_the_same_calls(
    server: str, client: str, dialect: str, extra: dict[str, str], cuts: list[int]
) -> None:
    request = convert_for(client, server)
    call = ToolCall("", "get_weather", {"city": "Bonn", **{f"x_{key}": value for key, value in extra.items()}})
    text = write_calls([call], dialect, tools=[FUNCTION])
    data = stream_bytes(reply(f"I look.\n{text}"), server)
    outputs = []
    for ends in ((), sorted(cuts)):
        translator = StreamTranslator(source=server, target=client, request=request)
        edges = [0, *(end for end in ends if end < len(data)), len(data)]
        output = b"".join(translator.feed(data[start:end]) for start, end in pairwise(edges))
        outputs.append(output + translator.finish())
        assert [(each.name, each.arguments) for each in translator.calls] == [(call.name, call.arguments)]
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("client", CLIENTS)
def test_text_reaches_the_client_at_once_and_markup_never(client: str) -> None:
    translator = StreamTranslator(source="vllm", target=client, request=convert_for(client, "vllm"))
    reader = StreamReader(source=client, policy=NEVER)
    encoder = codec("openai_chat").stream.Encoder()
    sent_text = received = ""
    for event in of_reply(reply(f"I look at it now. {CALL}{CALL}"), piece=3):
        output = translator.feed(encoder.write([event]))
        received += "".join(each.text for each in reader.feed(output) if isinstance(each, TextDelta))
        if isinstance(event, TextDelta):
            sent_text += event.text
        before = sent_text.partition("<")[0]
        assert received == before or (not received and len(before) < 3) or received == before.rstrip()
    reader.feed(translator.finish())
    assert received.rstrip() == "I look at it now."
    assert len(reader.calls) == 2
    assert not any(mark in json.dumps(call.arguments) for call in reader.calls for mark in MARKUP)


def test_a_call_is_shown_once_it_is_known_that_the_reply_has_no_calls_of_its_own() -> None:
    reader = StreamReader(source="vllm", request=convert_for("openai", "vllm"))
    text = '<tool_call>{"name": "get_weather", "arguments": {"city": "Bonn"}}</tool_call>'
    encode = codec("openai_chat").stream.Encoder().write
    *pieces, last = of_reply(reply(text))
    before = reader.feed(encode(pieces))
    assert not any(isinstance(event, InputDelta) for event in before)
    after = [*reader.feed(encode([last])), *reader.finish()]
    assert "".join(event.text for event in after if isinstance(event, InputDelta)) == '{"city": "Bonn"}'


def test_a_client_that_wants_whole_calls_gets_them_whole() -> None:
    policy = Policy(stream_calls="whole")
    reader = StreamReader(source="vllm", request=convert_for("openai", "vllm"), policy=policy)
    data = stream_bytes(reply(f"I look. {CALL}"), "vllm", 2)
    for start in range(0, len(data), 40):
        for event in reader.feed(data[start : start + 40]):
            assert not isinstance(event, InputDelta) or json.loads(event.text) == {"city": "Bonn"}
    reader.finish()
    assert [call.arguments for call in reader.calls] == [{"city": "Bonn"}]


@pytest.mark.parametrize("dialect", sorted(dialects.names()))
def test_every_dialect_that_can_be_written_is_found_in_a_reply_of_a_model_that_was_offered_the_tool(
    dialect: str,
) -> None:
    tools = [
        {
            "type": "function",
            "function": {"name": "bash", "parameters": {"properties": {"command": {"type": "string"}}}},
        }
    ]
    text = write_calls([ToolCall("call_1", "bash", {"command": "ls"})], dialect, tools=tools)
    request = convert(
        {"model": "m", "messages": [{"role": "user", "content": "Go"}], "tools": tools}, source="openai", target="vllm"
    )
    back = convert_reply(reply_body(reply(text), "vllm"), source="vllm", target="openai", request=request)
    assert without_ids(back.reply) == [("call", "bash", {"command": "ls"}, "function"), ("stop", "tool_calls")]


# --- text without calls -----------------------------------------------------------------------------

PLAIN = (
    "A plain answer.",
    "In Hermes a call is written as `<tool_call>{…}</tool_call>`.",
    '```json\n{"name": "other", "arguments": {}}\n```',
    "a < b and <b>bold</b>, 3 [x] {y}",
    "",
    "\n\n  ",
    "It ends with <tool_call",
)


@pytest.mark.parametrize("text", PLAIN)
@pytest.mark.parametrize("server", SERVERS)
def test_text_without_calls_is_forwarded_byte_for_byte_in_the_same_protocol(server: str, text: str) -> None:
    client = "ollama" if server == "ollama" else "openai"
    request = convert_for(client, server)
    body = json.dumps(reply_body(reply(text), server), ensure_ascii=False).encode()
    back = convert_reply(body, source=server, target=client, request=request)
    assert back.data == body
    data = stream_bytes(reply(text), server, 3)
    for size in (1, 50, len(data)):
        translator = StreamTranslator(source=server, target=client, request=request)
        output = b"".join(translator.feed(data[start : start + size]) for start in range(0, len(data), size))
        assert output + translator.finish() == data
    assert translator.reply.turn.text == text


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("text", PLAIN)
def test_text_without_calls_is_the_same_as_without_a_search(client: str, text: str) -> None:
    body, data, request = (
        reply_body(reply(text), "vllm"),
        stream_bytes(reply(text), "vllm", 3),
        convert_for(client, "vllm"),
    )
    looked, left = (
        convert_reply(body, source="vllm", target=client, request=request, policy=policy) for policy in (ALWAYS, NEVER)
    )
    assert looked.body == left.body
    received = []
    for policy in (ALWAYS, NEVER):
        translator = StreamTranslator(source="vllm", target=client, request=request, policy=policy)
        received.append(summary(read_stream(translator.feed(data) + translator.finish(), client)[1]))
    assert received[0] == received[1]


# --- whose text is searched -------------------------------------------------------------------------


def test_profiles_decide_whose_text_is_searched() -> None:
    assert [name for name in profiles.names() if profiles.get(name).calls.in_text] == [
        "llamacpp",
        "ollama",
        "openai_compatible",
        "openrouter",
        "vllm",
    ]


@pytest.mark.parametrize("provider", FIRST_PARTY)
def test_the_text_of_a_first_party_api_is_searched_only_by_policy(provider: str) -> None:
    answer = reply(f"I look. {CALL}")
    for policy, stop in ((Policy(), "stop"), (NEVER, "stop"), (ALWAYS, "tool_calls")):
        back = convert_reply(reply_body(answer, provider), source=provider, target="anthropic", policy=policy)
        reader = StreamReader(source=provider, target="anthropic", policy=policy)
        reader.feed(stream_bytes(answer, provider))
        reader.finish()
        assert back.reply.stop == reader.reply.stop == stop
        assert len(back.reply.turn.calls) == len(reader.calls) == (1 if stop == "tool_calls" else 0)
        assert summary(reader.reply) == summary(back.reply)


@pytest.mark.parametrize("server", SERVERS)
def test_never_leaves_the_text_of_a_server_alone(server: str) -> None:
    answer = reply(CALL)
    back = convert_reply(reply_body(answer, server), source=server, target="anthropic", policy=NEVER)
    assert summary(back.reply) == [("Text", CALL), ("stop", "stop")]


def test_a_profile_of_ones_own_switches_it_on_for_a_provider() -> None:
    overrides = profiles.Overrides('[profiles.xai.rules]\n"calls.in_text" = true\n')
    back = convert_reply(reply_body(reply(CALL), "xai"), source="xai", target="openai", overrides=overrides)
    assert [call.name for call in back.reply.turn.calls] == ["get_weather"]


# --- whose names, what kind, how whole --------------------------------------------------------------


@pytest.mark.parametrize("is_stream", [False, True])
def test_E4_a_renamed_tool_comes_back_under_its_own_name(is_stream: bool) -> None:
    tools = [{"name": "files/read", "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}]
    request = convert_for("anthropic", "vllm", tools=tools)
    (name,) = (tool["function"]["name"] for tool in request.body["tools"])
    assert name != "files/read"
    text = f"<tool_call><function={name}><parameter=n>5</parameter></function></tool_call>"
    assert only_call(text, "anthropic", request, is_stream) == ToolCall("", "files/read", {"n": 5})


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_free_text_tool_comes_back_as_free_text(is_stream: bool) -> None:
    tools = [{"type": "custom", "name": "apply_patch", "description": "Patches."}]
    request = convert_for("openai_responses", "vllm", tools=tools)
    patch = '*** Begin\n+ "a" <b>\n'
    text = f'<tool_call>{{"name": "apply_patch", "arguments": {json.dumps({"input": patch})}}}</tool_call>'
    call = only_call(text, "openai_responses", request, is_stream)
    assert (call.name, call.type, call.raw_input, call.arguments) == ("apply_patch", "custom", patch, None)


def only_call(text: str, client: str, request: ConvertedRequest, is_stream: bool) -> ToolCall:
    """The one call of an answer as the client gets it, without its id."""
    if is_stream:
        translator = StreamTranslator(source="vllm", target=client, request=request)
        answer = read_stream(translator.feed(stream_bytes(reply(text), "vllm")) + translator.finish(), client)[1]
    else:
        back = convert_reply(reply_body(reply(text), "vllm"), source="vllm", target=client, request=request)
        answer = codec(protocol_of(client)).reply.decode(back.body)
    assert answer.stop == "tool_calls"
    (call,) = answer.turn.calls
    return ToolCall("", call.name, call.arguments, call.type, call.raw_input if call.type == "custom" else None)


@pytest.mark.parametrize("stop", ["stop", "length"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("server", SERVERS)
def test_a_call_that_was_cut_is_never_one_that_can_be_run(server: str, client: str, stop: StopReason) -> None:
    request = convert_for(client, server)
    answer = reply('I look. <tool_call>{"name": "get_weather", "arguments": {"city": "Bo', stop)
    back = convert_reply(reply_body(answer, server), source=server, target=client, request=request)
    read = codec(protocol_of(client)).reply.decode(back.body)
    assert not [call for call in (*back.reply.turn.calls, *read.turn.calls) if call.arguments]
    translator = StreamTranslator(source=server, target=client, request=request)
    output = translator.feed(stream_bytes(answer, server)) + translator.finish()
    assert translator.calls == ()
    events, _ = read_stream(output, client)
    ended = [event for event in events if isinstance(event, BlockEnded) and isinstance(event.block, ToolCall)]
    assert not [event for event in ended if not event.cut and event.block.arguments]  # type: ignore[union-attr]
    assert isinstance(events[-1], Failed) or (isinstance(events[-1], Finished) and events[-1].stop != "tool_calls")


def test_a_connection_that_breaks_inside_a_call_leaves_no_call() -> None:
    data = stream_bytes(reply(CALL), "vllm", 4)
    translator = StreamTranslator(source="vllm", target="anthropic", request=convert_for("anthropic", "vllm"))
    output = translator.feed(data[: len(data) * 2 // 3]) + translator.fail()
    assert translator.calls == ()
    events, _ = read_stream(output, "anthropic")
    assert isinstance(events[-1], Failed)


def test_thinking_in_text_is_thinking_and_calls_in_it_are_drafts() -> None:
    back = convert_reply(
        reply_body(reply(f"<think>Perhaps {CALL}?</think>Let me see. {CALL}"), "vllm"),
        source="vllm",
        target="anthropic",
    )
    assert without_ids(back.reply) == [
        ("Thinking", f"Perhaps {CALL}?"),
        ("Text", "Let me see. "),
        ("call", "get_weather", {"city": "Bonn"}, "function"),
        ("stop", "tool_calls"),
    ]


@pytest.mark.parametrize("client", ["anthropic", "openai_responses"])
@pytest.mark.parametrize("more", ["", " or else"])
def test_law_11_a_draft_in_a_thought_that_was_cut_off_is_no_call(client: str, more: str) -> None:
    request = convert_for(client, "vllm")
    stops: tuple[StopReason, ...] = ("length", "filter")
    for stop in stops:
        answer = reply(f"<think>I could {CALL}{more}", stop)
        back = convert_reply(reply_body(answer, "vllm"), source="vllm", target=client, request=request)
        assert back.reply.turn.calls == ()
        assert "".join(block.text for block in back.reply.turn.blocks if isinstance(block, Thinking)) == (
            f"I could {CALL}{more}"
        )
        assert not any("wrote calls as text" in entry.reason for entry in back.report.entries)
        translator = StreamTranslator(source="vllm", target=client, request=request)
        data = translator.feed(stream_bytes(answer, "vllm")) + translator.finish()
        assert read_stream(data, client)[1].turn.calls == ()
    ended = reply(f"<think>I could {CALL}{more}")
    back = convert_reply(reply_body(ended, "vllm"), source="vllm", target=client, request=request)
    assert [call.name for call in back.reply.turn.calls] == ["get_weather"]


def test_law_11_calls_before_a_thought_that_was_cut_off_stay_calls() -> None:
    answer = reply(f"{CALL}<think>I could also {OTHER}", "length")
    back = convert_reply(
        reply_body(answer, "vllm"), source="vllm", target="anthropic", request=convert_for("anthropic", "vllm")
    )
    assert [call.arguments for call in back.reply.turn.calls] == [{"city": "Bonn"}]
    assert isinstance(back.reply.turn.blocks[-1], Thinking)
    assert back.reply.stop == "length"


def test_calls_of_a_provider_without_ids_differ_from_turn_to_turn() -> None:
    found = []
    for turns in (1, 3):
        messages = [{"role": ("user", "assistant")[number % 2], "content": "x"} for number in range(turns)]
        request = convert_for("anthropic", "ollama", messages=messages)
        back = convert_reply(reply_body(reply(CALL), "ollama"), source="ollama", target="anthropic", request=request)
        found += [call.id for call in back.reply.turn.calls]
    assert len(set(found)) == 2


def test_R_003_8_the_accumulator_collects_calls_in_text() -> None:
    data = stream_bytes(reply(f"I look. {CALL}"), "xai", 2)
    for policy, count in ((ALWAYS, 1), (NEVER, 0), (Policy(), 0)):
        calls = ToolCallAccumulator("xai", policy=policy)
        for start in range(0, len(data), 30):
            calls.add_chunk(data[start : start + 30])
        calls.finish()
        assert len(calls.get_completed()) == count
        assert calls.text.rstrip() == ("I look." if count else f"I look. {CALL}")


# --- the simulator ----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_calls_that_a_provider_leaves_in_the_text_are_parsed_end_to_end(
    dialect: str, client: str, is_stream: bool
) -> None:
    request = convert(BODIES[client], source=client, target="openai", model="gpt-4.1", policy=ALWAYS)
    order = f"fault=text_dialect, dialect={dialect}, calls=2"
    answered = ask(Simulator(), "openai", {**request.body, "stream": is_stream}, order=order)
    assert answered.status == 200
    if is_stream:
        translator = StreamTranslator(source="openai", target=client, request=request, policy=ALWAYS)
        output = b"".join(translator.feed(piece) for piece in answered.pieces) + translator.finish()
        received = read_stream(output, client)[1]
    else:
        back = convert_reply(answered.data, source="openai", target=client, request=request, policy=ALWAYS)
        received = codec(protocol_of(client)).reply.decode(back.body)
    assert [(call.name, call.arguments) for call in received.turn.calls] == [("get_weather", {"city": "Bonn"})] * 2
    assert received.stop == "tool_calls"
    assert received.turn.text.strip() == ""


# --- never two calls for one ------------------------------------------------------------------------


def with_own_call(text: str) -> dict[str, Any]:
    body = chat_answer(text, "tool_calls")
    call = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"x":1}'}}
    body["choices"][0]["message"]["tool_calls"] = [call]
    return body


DRAFTS = [
    'I call <tool_call>{"name":"add","arguments":{"x":1}}</tool_call>',
    '<tool_call>{"name":"add","arguments":{}}</tool_call>',
    "Hi.",
]


@pytest.mark.parametrize("text", DRAFTS)
def test_a_reply_with_calls_of_its_own_is_not_searched_for_others(text: str) -> None:
    body = with_own_call(text)
    assert convert_reply(body, source="vllm", target="openai").body == body
    out = convert_reply(body, source="vllm", target="anthropic")
    assert [block["type"] for block in out.body["content"]] == ["text", "tool_use"]
    assert out.body["content"][0]["text"] == text


@pytest.mark.parametrize("step", [1, 40, 1 << 20])
@pytest.mark.parametrize("text", DRAFTS)
def test_a_stream_with_calls_of_its_own_is_not_searched_for_others(text: str, step: int) -> None:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"x":1}'}}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}, *({"content": piece} for piece in text)]
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": delta, "finish_reason": None} for delta in (*deltas, {"tool_calls": [call]})
    ]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    raw = b"".join(b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n" for choice in choices)
    raw += b"data: [DONE]\n\n"
    translator = StreamTranslator(source="vllm", target="anthropic")
    for start in range(0, len(raw), step):
        translator.feed(raw[start : start + step])
    translator.finish()
    assert translator.reply.turn.text == text
    assert [call.arguments for call in translator.calls] == [{"x": 1}]
    assert not any("wrote calls as text" in entry.reason for entry in translator.report.entries)


def test_a_reply_is_not_searched_where_the_client_forbade_tools() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [
            {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}
        ],
        "tool_choice": "none",
    }
    request = repair(body, target="vllm", model="m")
    answer = chat_answer('<tool_call>{"name":"add","arguments":{}}</tool_call>', "stop")
    out = convert_reply(answer, source="vllm", target="vllm", request=request)
    assert (out.body, out.report.entries) == (answer, ())


@pytest.mark.parametrize("server", SERVERS)
def test_text_before_a_lone_end_of_thought_is_thinking_in_a_whole_reply(server: str) -> None:
    answer = reply(f"They want the list.\n</think>\n\nI look. {CALL}")
    back = convert_reply(reply_body(answer, server), source=server, target="anthropic")
    assert summary(back.reply)[:2] == [("Thinking", "They want the list."), ("Text", "I look. ")]
    assert len(back.reply.turn.calls) == 1
    assert "before </think> was read as thinking" in str(back.report)


@pytest.mark.parametrize(
    "text",
    ["The tag `</think>` ends a thought.", "Write </think> and go on.", "a</think>\nb</think>\nc", "Hello!</think>\n"],
)
def test_a_text_about_the_end_of_a_thought_stays_text(text: str) -> None:
    back = convert_reply(reply_body(reply(text), "vllm"), source="vllm", target="anthropic")
    assert summary(back.reply) == [("Text", text), ("stop", "stop")]
