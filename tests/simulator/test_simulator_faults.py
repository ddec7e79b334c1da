"""Each fault shows the bytes that it promises, whole and in streams."""

from __future__ import annotations

import json
import time
from typing import Any

import anthropic
import openai
import pytest

from sdk import simulated
from support.simulator.asgi_client import PATHS, Answered, ask, request
from support.simulator.good_requests import BODIES, MODELS
from toolglot.conversation import ToolCall
from toolglot.conversation.events import Accumulator, BlockEnded, Failed, Finished
from toolglot.errors import InputError
from toolglot.protocols.base import codec
from toolglot.simulator import FAULTS, Fault, Server, Simulator, read_fault
from toolglot.simulator.scripts.text_calls import DIALECTS

pytest_plugins = ["toolglot.simulator.pytest_plugin"]

Body = dict[str, Any]
PROTOCOLS = {name: name for name in BODIES} | dict.fromkeys(("openai", "mistral", "deepseek", "kimi"), "openai_chat")


def fails(provider: str, fault: str, *, stream: bool = False, simulator: Simulator | None = None) -> Answered:
    """The answer to a request that orders a fault; an empty order is none."""
    body, where = BODIES[provider], provider
    if stream and provider in MODELS:
        where = f"{provider}_stream"
    elif stream:
        body = {**body, "stream": True}
    order = fault if "=" in fault.partition(",")[0] or not fault else f"fault={fault}"
    return ask(simulator or Simulator(clock=lambda: 7.0), where, body, model=MODELS.get(provider, ""), order=order)


def frames(provider: str, answered: Answered) -> list[Any]:
    """The frames of a stream, as its protocol frames them."""
    framer = codec(PROTOCOLS[provider]).stream.framer()
    return [*framer.feed(answered.data), *framer.finish()]


def calls_of(answered: Answered) -> list[Body]:
    pieces = [chunk["choices"][0]["delta"].get("tool_calls") or [] for chunk in answered.chunks if chunk["choices"]]
    return [call for piece in pieces for call in piece]


# --- answers of a status ----------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("status", [name for name in FAULTS if name.isdigit()])
@pytest.mark.parametrize("provider", BODIES)
def test_a_status_on_order_has_the_providers_body(provider: str, status: str, stream: bool) -> None:
    answered = fails(provider, status, stream=stream)
    assert answered.status == int(status)
    failure = codec(PROTOCOLS[provider]).errors.decode(answered.status, answered.data, answered.headers)
    assert failure is not None
    assert failure.message
    kinds = {"429": "rate_limit", "500": "server", "503": "overloaded", "529": "overloaded", "504": "timeout"}
    assert failure.kind == kinds.get(status, failure.kind)


def test_too_many_requests_say_when_to_come_back() -> None:
    assert fails("openai", "429").headers["retry-after"] == "1"
    assert fails("anthropic", "429,retry_after=7").headers["retry-after"] == "7"
    delay = fails("gemini", "429, retry-after=2.5").json["error"]["details"][-1]["retryDelay"]
    assert delay == "2.5s"
    assert fails("mistral", "429").json["type"] == "rate_limited"
    assert fails("anthropic", "529").json["error"] == {"type": "overloaded_error", "message": "Overloaded"}


@pytest.mark.parametrize("provider", BODIES)
def test_a_prompt_can_be_refused_as_too_long(provider: str) -> None:
    answered = fails(provider, "context_overflow")
    failure = codec(PROTOCOLS[provider]).errors.decode(answered.status, answered.data, answered.headers)
    assert answered.status == 400
    assert provider == "mistral" or (failure is not None and failure.kind == "context_overflow")


def test_the_sdk_retries_what_can_be_retried(toolglot_simulator: Server) -> None:
    toolglot_simulator.fault("429,retry_after=0", times=2)
    with openai.OpenAI(api_key="key", base_url=toolglot_simulator.url("openai"), max_retries=3) as client:
        scripted = client.chat.completions.create(**BODIES["openai"])
    assert scripted.choices[0].finish_reason == "tool_calls"
    assert [request.status for request in toolglot_simulator.requests] == [429, 429, 200]
    assert [request.fault for request in toolglot_simulator.requests] == ["429", "429", ""]


# --- time and connections ---------------------------------------------------------------------------


def test_a_server_that_hangs_answers_late_or_never() -> None:
    begun = time.monotonic()
    late = fails("openai", "timeout,seconds=0.05")
    assert late.status == 504
    assert time.monotonic() - begun >= 0.05
    simulator = Simulator()
    headers = {"authorization": "Bearer key", "x-simulate": "fault=timeout"}
    gone = request(simulator, PATHS["openai"], BODIES["openai"], headers=headers, leaves=True)
    assert gone.status == 0
    assert simulator.requests[-1].fault == "timeout"


def test_an_sdk_gives_up_on_a_server_that_hangs(toolglot_simulator: Server) -> None:
    toolglot_simulator.fault("timeout,seconds=30")
    with (
        anthropic.Anthropic(
            api_key="key", base_url=toolglot_simulator.url("anthropic"), max_retries=0, timeout=0.2
        ) as client,
        pytest.raises(anthropic.APITimeoutError),
    ):
        client.messages.create(**BODIES["anthropic"])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("provider", ["openai", "anthropic", "bedrock", "ollama"])
def test_a_slow_answer_comes_byte_by_byte(provider: str, stream: bool) -> None:
    plain = fails(provider, "", stream=stream)
    slow = fails(provider, "slow_drip,seconds=0", stream=stream)
    assert all(len(piece) == 1 for piece in slow.pieces)
    assert slow.data == plain.data


def test_a_client_that_leaves_ends_a_slow_answer() -> None:
    headers = {"authorization": "Bearer key", "x-simulate": "fault=slow_drip, seconds=60"}
    left = request(Simulator(), PATHS["openai"], BODIES["openai"], headers=headers, leaves=True)
    assert len(left.pieces) == 1


@pytest.mark.parametrize("provider", BODIES)
def test_a_connection_breaks_after_so_many_events(provider: str) -> None:
    plain = frames(provider, fails(provider, "", stream=True))
    after = min(2, len(plain) - 1)
    broken = fails(provider, f"reset,after={after}", stream=True)
    assert broken.is_broken
    assert len(broken.pieces) == after
    whole = fails(provider, "reset")
    assert whole.is_broken
    assert len(whole.data) < int(whole.headers["content-length"])


def test_an_sdk_sees_the_connection_break(toolglot_simulator: Server) -> None:
    toolglot_simulator.fault("reset,after=3", times=2)
    with anthropic.Anthropic(api_key="key", base_url=toolglot_simulator.url("anthropic"), max_retries=0) as client:
        with (
            pytest.raises(Exception, match="peer closed connection"),
            client.messages.stream(**BODIES["anthropic"]) as events,
        ):
            events.until_done()
        with pytest.raises(Exception, match=r"Connection error|peer closed connection"):
            client.messages.create(**BODIES["anthropic"])


# --- streams that are not as they should be ---------------------------------------------------------

ENDS = {
    "anthropic": b"message_stop",
    "openai": b'finish_reason":"',
    "openai_responses": b"response.completed",
    "gemini": b"finishReason",
    "mistral": b'finish_reason":"',
    "deepseek": b'finish_reason":"',
    "kimi": b'finish_reason":"',
    "bedrock": b"messageStop",
    "cohere": b"message-end",
    "ollama": b'"done":true',
}


@pytest.mark.parametrize("provider", BODIES)
def test_a_stream_can_end_without_its_end(provider: str) -> None:
    assert ENDS[provider] in fails(provider, "", stream=True).data
    cut = fails(provider, "no_end", stream=True)
    assert not cut.is_broken
    assert ENDS[provider] not in cut.data
    assert b"[DONE]" not in cut.data


@pytest.mark.parametrize("provider", BODIES)
def test_a_stream_can_break_off_with_an_error_event(provider: str) -> None:
    answered = fails(provider, "error_event,after=1", stream=True)
    assert answered.status == 200
    protocol = codec(PROTOCOLS[provider])
    decoder = protocol.stream.Decoder()
    events = [event for frame in frames(provider, answered) for event in decoder.read(frame)]
    assert isinstance([*events, *decoder.finish()][-1], Failed)


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "cohere", "ollama", "openai_responses"])
def test_an_event_can_be_no_json(provider: str) -> None:
    good = frames(provider, fails(provider, "", stream=True))
    bad = frames(provider, fails(provider, "malformed_event,after=1", stream=True))
    assert len(bad) == len(good)
    position = min(1, len(good) - 1)
    with pytest.raises(json.JSONDecodeError):
        json.loads(bad[position].data)
    assert [frame.data for frame in bad[position + 1 :]] == [frame.data for frame in good[position + 1 :]]


# --- calls that are not as they should be -----------------------------------------------------------


def stops(provider: str, answered: Answered) -> str:
    found: dict[str, Any] = {
        "anthropic": lambda body: body["stop_reason"],
        "openai_responses": lambda body: body["incomplete_details"]["reason"],
        "gemini": lambda body: body["candidates"][0]["finishReason"],
        "bedrock": lambda body: body["stopReason"],
        "cohere": lambda body: body["finish_reason"],
        "ollama": lambda body: body["done_reason"],
    }
    return str(found.get(provider, lambda body: body["choices"][0]["finish_reason"])(answered.json))


CUT = {"anthropic": "max_tokens", "openai_responses": "max_output_tokens", "gemini": "MAX_TOKENS"} | {
    "bedrock": "max_tokens",
    "cohere": "MAX_TOKENS",
}


@pytest.mark.parametrize("provider", BODIES)
def test_a_call_can_be_cut_by_length(provider: str) -> None:
    assert stops(provider, fails(provider, "truncated_call")) == CUT.get(provider, "length")
    streamed = fails(provider, "truncated_call", stream=True)
    decoder = codec(PROTOCOLS[provider]).stream.Decoder()
    events = [event for frame in frames(provider, streamed) for event in decoder.read(frame)] + decoder.finish()
    assert [event.stop for event in events if isinstance(event, Finished)] == ["length"]
    whole = [event.block for event in events if isinstance(event, BlockEnded) and not event.cut]
    assert not [block for block in whole if isinstance(block, ToolCall)]


@pytest.mark.parametrize("provider", ["openai", "mistral", "deepseek", "kimi", "cohere", "openai_responses"])
def test_arguments_that_are_text_can_be_broken(provider: str) -> None:
    for stream in (False, True):
        data = fails(provider, "malformed_arguments", stream=stream).data.decode()
        assert "Bonn" in data
        assert ", }" in data


def test_arguments_that_are_objects_are_broken_in_the_providers_way() -> None:
    broken = fails("anthropic", "malformed_arguments", stream=True)
    pieces = [event["delta"]["partial_json"] for event in broken.chunks if "partial_json" in event.get("delta", {})]
    with pytest.raises(json.JSONDecodeError):
        json.loads("".join(pieces))
    for stream in (False, True):
        malformed = fails("gemini", "malformed_arguments", stream=stream)
        body = malformed.chunks[-1] if stream else malformed.json
        assert body["candidates"][0]["finishReason"] == "MALFORMED_FUNCTION_CALL"
        refused = fails("ollama", "malformed_arguments", stream=stream)
        assert refused.status == 500
        assert "error parsing tool call" in refused.json["error"]
    assert fails("bedrock", "malformed_arguments").json["stopReason"] == "malformed_tool_use"


@pytest.mark.parametrize(
    ("provider", "word"),
    [
        ("openai", "stop"),
        ("anthropic", "end_turn"),
        ("bedrock", "end_turn"),
        ("cohere", "COMPLETE"),
        ("mistral", "stop"),
    ],
)
def test_an_answer_can_say_that_it_stopped_although_it_calls(provider: str, word: str) -> None:
    answered = fails(provider, "wrong_stop")
    assert stops(provider, answered) == word
    assert b"get_weather" in answered.data
    streamed = fails(provider, "wrong_stop", stream=True).data
    assert f'"{word}"'.encode() in streamed
    assert b"get_weather" in streamed


def test_an_answer_can_say_that_it_calls_although_it_does_not() -> None:
    simulator = Simulator({"rules": [{"reply": {"text": "Hello"}}]})
    assert fails("openai", "wrong_stop", simulator=simulator).json["choices"][0]["finish_reason"] == "tool_calls"
    assert b'"tool_calls"' in fails("openai", "wrong_stop", stream=True, simulator=simulator).data
    assert fails("anthropic", "wrong_stop", simulator=simulator).json["stop_reason"] == "tool_use"


def two(fault: str, provider: str = "openai") -> list[Body]:
    simulator = Simulator({"chunk": 5, "rules": [{"reply": {"calls": 2}, "fault": fault}]})
    return calls_of(fails(provider, "", stream=True, simulator=simulator))


def test_calls_of_a_stream_can_all_have_the_index_zero() -> None:
    calls = two("index_zero")
    assert {call["index"] for call in calls} == {0}
    assert len({call["id"] for call in calls if call.get("id")}) == 2


def test_calls_of_a_stream_can_have_no_index() -> None:
    assert not [call for call in two("no_index") if "index" in call]


def test_calls_of_a_stream_can_repeat_their_names() -> None:
    calls = two("repeated_names")
    assert len(calls) > 2
    assert {call["function"]["name"] for call in calls} == {"get_weather"}
    assert {(call["index"], call["id"]) for call in calls} == {(0, calls[0]["id"]), (1, calls[-1]["id"])}


def test_calls_can_have_empty_ids() -> None:
    assert {call["id"] for call in two("empty_ids")} == {""}
    assert fails("openai", "empty_ids").json["choices"][0]["message"]["tool_calls"][0]["id"] == ""


def test_mistral_sends_whole_calls_in_the_last_chunk() -> None:
    simulator = Simulator({"chunk": 3, "rules": [{"reply": {"text": "I look.", "calls": 2}}]})
    chunks = fails("mistral", "", stream=True, simulator=simulator).chunks
    assert [call["function"]["arguments"] for call in chunks[-1]["choices"][0]["delta"]["tool_calls"]] == [
        '{"city":"Bonn"}'
    ] * 2
    assert chunks[-1]["usage"]["total_tokens"]
    assert not [chunk for chunk in chunks[:-1] if chunk["choices"][0]["delta"].get("tool_calls")]


# --- models -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_can_be_written_as_text(dialect: str) -> None:
    message = fails("openai", f"text_dialect,dialect={dialect}").json["choices"][0]["message"]
    assert "tool_calls" not in message
    assert "get_weather" in message["content"]
    assert "Bonn" in message["content"]
    streamed = fails("openai", f"text_dialect,dialect={dialect}", stream=True)
    scripted = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in streamed.chunks)
    assert scripted == message["content"]


def test_hermes_is_the_dialect_where_none_is_named() -> None:
    content = fails("openai", "text_dialect").json["choices"][0]["message"]["content"]
    assert content == '<tool_call>\n{"name":"get_weather","arguments":{"city":"Bonn"}}\n</tool_call>'


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("provider", BODIES)
def test_a_model_can_say_nothing(provider: str, stream: bool) -> None:
    answered = fails(provider, "empty", stream=stream)
    assert answered.status == 200
    assert b"Bonn" not in answered.data
    if not stream:
        assert codec(PROTOCOLS[provider]).reply.decode(answered.json).turn.text == ""


# --- orders -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("nothing", "unknown fault 'nothing'"),
        ("reset,after=x", "expected a number from 0"),
        ("reset,after", "expected key=value"),
        ("reset,after=1.5", "expected an integer from 0"),
        ("reset,color=red", "the fault reset has no option 'color'"),
        ("429,after=2", "the fault 429 has no option 'after'"),
        ("empty,after=2", "the fault empty has no option 'after'"),
        ("text_dialect,dialect=elvish", "unknown dialect 'elvish'"),
        ("timeout,seconds=1e9", "expected a number from 0 to 600"),
    ],
)
def test_an_order_that_makes_no_sense_is_refused(order: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_fault(order)
    answered = fails("openai", order)
    assert answered.status == 400
    assert words in answered.json["error"]["message"]


@pytest.mark.parametrize(
    ("order", "fault"),
    [
        (429, Fault(name="429")),
        ({"kind": 429, "retry_after": 2}, Fault(name="429", retry_after=2.0)),
        ({"kind": "reset", "after": "3"}, Fault(name="reset", after=3)),
        ({"kind": "slow_drip", "seconds": 0.5}, Fault(name="slow_drip", seconds=0.5)),
        ({"kind": "text_dialect", "dialect": "mistral"}, Fault(name="text_dialect", dialect="mistral")),
        (Fault(name="reset", after=4, dialect="unused"), Fault(name="reset", after=4)),
        (Fault(name="429"), Fault(name="429")),
        (Fault(name="empty"), Fault(name="empty")),
    ],
)
def test_a_fault_is_a_number_a_text_or_an_object(order: Any, fault: Fault) -> None:
    assert read_fault(order) == fault


@pytest.mark.parametrize(
    ("order", "path", "words"),
    [
        ({"after": 2}, "fault.kind", "needs its kind"),
        ({"kind": True}, "fault.kind", "needs its kind"),
        ({"kind": "reset", "after": -1}, "fault.after", "expected a number from 0 to 1000000, got -1"),
        ({"kind": "reset", "after": True}, "fault.after", "expected a number from 0"),
        ({"kind": "reset", "after": 10**400}, "fault.after", "expected a number from 0"),
        ({"kind": "reset", "after": [1]}, "fault.after", "expected a number from 0"),
        ({"kind": "text_dialect", "dialect": 3}, "fault.dialect", "unknown dialect 3"),
        ({"kind": "reset", 3: 3}, "fault", "has no option '3'"),
        (True, "fault", "expected a fault, got True"),
        (None, "fault", "expected a fault, got None"),
        (428, "fault", "unknown fault '428'"),
        (Fault(name="rest"), "fault", "unknown fault 'rest'"),
    ],
)
def test_an_order_of_the_wrong_kind_says_where(order: Any, path: str, words: str) -> None:
    with pytest.raises(InputError) as found:
        Simulator().fault(order)
    assert words in found.value.message
    assert found.value.path == path


def test_an_order_that_is_misspelt_gets_a_suggestion_and_the_list() -> None:
    with pytest.raises(InputError) as found:
        read_fault("wrong-stop")
    assert found.value.hint.startswith("did you mean wrong_stop? one of 400, ")


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("chunk=0", "x-simulate.chunk: expected a number from 1"),
        ("pace=-1", "x-simulate.pace: expected a number from 0 to 60"),
        ("calls=1.5", "x-simulate.calls: expected an integer"),
        ("chnk=3", "unknown key 'chnk' without a fault (did you mean chunk? one of fault, chunk, "),
        ("after=3", "unknown key 'after' without a fault"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused(order: str, words: str) -> None:
    answered = ask(Simulator(), "openai", BODIES["openai"], order=order)
    assert answered.status == 400
    assert words in answered.json["error"]["message"]


def test_a_fault_that_cannot_happen_here_is_reported() -> None:
    assert "Chat Completions only" in fails("anthropic", "index_zero", stream=True).json["error"]["message"]
    assert "streams only" in fails("openai", "no_end").json["error"]["message"]
    with_calls_only = Simulator({"rules": [{"reply": {"text": "Hello"}}]})
    assert fails("openai", "truncated_call", simulator=with_calls_only).status == 200


def test_orders_of_a_request_come_before_those_in_the_queue_and_those_of_a_rule() -> None:
    simulator = Simulator({"rules": [{"fault": "500"}]})
    simulator.fault("429")
    assert fails("openai", "529", simulator=simulator).status == 529
    assert fails("openai", "", simulator=simulator).status == 429
    assert fails("openai", "", simulator=simulator).status == 500


def test_a_request_can_choose_how_it_is_answered() -> None:
    order = "chunk=2, bytes=10, calls=3"
    answered = fails("openai", order, stream=True)
    assert {len(piece) for piece in answered.pieces[:-1]} == {10}
    assert max(len(call["function"].get("arguments", "")) for call in calls_of(answered)) == 2
    assert {call["index"] for call in calls_of(answered)} == {0, 1, 2}
    whole = fails("openai", "bytes=10")
    assert {len(piece) for piece in whole.pieces[:-1]} == {10}


def test_an_sdk_sees_broken_arguments(toolglot_simulator: Server) -> None:
    toolglot_simulator.script(rules=[{"reply": {"calls": [{"name": "get_weather", "arguments": '{"city": "Bo'}]}}])
    with pytest.raises(json.JSONDecodeError):
        simulated.openai(toolglot_simulator.url("openai"), stream=False)


SCRIPTED_REPLIES: list[Body] = [
    {"text": "Hello"},
    {"thinking": "Hm."},
    {"text": "Grüße 🌍", "thinking": "Hm.", "calls": 3},
    {"calls": [{"name": "get_weather", "arguments": "not json"}]},
    {"calls": [{"name": "other", "arguments": {"n": 10**30, "t": "\ud83d"}}], "stop": "error"},
    {"text": "cut", "stop": "length"},
    {"stop": "filter"},
    {"text": "later", "stop": "pause"},
]


@pytest.mark.parametrize("scripted", SCRIPTED_REPLIES, ids=range(len(SCRIPTED_REPLIES)))
@pytest.mark.parametrize("provider", BODIES)
def test_every_reply_and_every_fault_go_together(provider: str, scripted: Body) -> None:
    simulator = Simulator({"chunk": 3, "rules": [{"reply": scripted}]})
    for fault in ("", *FAULTS):
        order = f"{fault},seconds=0" if fault in ("timeout", "slow_drip") else fault
        for stream in (False, True):
            answered = fails(provider, order, stream=stream, simulator=simulator)
            assert answered.status in (200, 400, 408, 500, 504) or answered.status == int(fault)


@pytest.mark.parametrize("scripted", SCRIPTED_REPLIES, ids=range(len(SCRIPTED_REPLIES)))
@pytest.mark.parametrize("provider", BODIES)
def test_a_stream_adds_up_to_the_whole_answer(provider: str, scripted: Body) -> None:
    simulator = Simulator({"chunk": 3, "rules": [{"reply": scripted}]}, clock=lambda: 7.0)
    protocol = codec(PROTOCOLS[provider])
    whole = protocol.reply.decode(fails(provider, "", simulator=simulator).json)
    decoder, accumulator = protocol.stream.Decoder(tools=["get_weather"]), Accumulator()
    streamed = fails(provider, "", stream=True, simulator=simulator)
    for frame in frames(provider, streamed):
        accumulator.add(decoder.read(frame))
    accumulator.add(decoder.finish())
    assert accumulator.failure is None or scripted.get("stop") == "error"
    assert accumulator.reply.turn.text == whole.turn.text
    assert [(call.name, call.arguments) for call in accumulator.reply.turn.calls] == [
        (call.name, call.arguments) for call in whole.turn.calls
    ]
    own_forms = {"mistral": ["the content of a chunk is a list of parts"]}  # its thinking
    is_plain = decoder.builder.problems in ([], own_forms.get(provider))
    assert is_plain or not scripted.get("calls") or scripted["calls"] != 3
