"""Whole replies that leave out or misplace what is plainly meant: understood, completed for the client, reported."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolglot
from toolglot import StreamTranslator, convert_reply

CLIENTS = ("anthropic", "openai", "openai_responses", "gemini", "bedrock", "cohere", "ollama")
CALL = {"id": "call_abc123", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Bonn"}'}}
ITEM = {"type": "function_call", "call_id": "fc_abc123", "name": "get_weather", "arguments": '{"city":"Bonn"}'}
WEATHER = {"type": "tool_use", "id": "toolu_abc123", "name": "get_weather", "input": {"city": "Bonn"}}


def chat(message: dict[str, Any], **choice: Any) -> dict[str, Any]:
    whole = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}, **choice}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [whole]}


def stream_of(*chunks: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def paths(out: toolglot.ConvertedReply) -> set[str]:
    return {entry.path for entry in out.report.entries}


# --- the bodies of the requirements, word by word ---------------------------------------------------


def test_the_bare_chat_reply_of_r_002_is_a_call_for_an_anthropic_client() -> None:
    out = convert_reply({"choices": [{"message": {"tool_calls": [CALL]}}]}, source="openai", target="anthropic")
    assert (out.body["content"], out.body["stop_reason"]) == ([WEATHER], "tool_use")
    assert {"$.choices[0].message.role", "$.stop", "$.id", "$.created", "$.usage"} <= paths(out)


@pytest.mark.parametrize("more", [{}, {"id": "fc_abc123"}])
def test_the_bare_response_of_r_002_is_a_call_for_an_anthropic_client(more: dict[str, str]) -> None:
    out = convert_reply({"output": [{**ITEM, **more}]}, source="openai_responses", target="anthropic")
    assert (out.body["content"], out.body["stop_reason"]) == ([WEATHER], "tool_use")
    assert {"$.id", "$.model", "$.stop"} <= paths(out)


BARE: dict[str, tuple[dict[str, Any], str]] = {
    "openai": ({"choices": [{"message": {"content": "Hi"}}]}, "$.choices[0].message.role"),
    "openai_responses": ({"output": [{"content": [{"text": "Hi"}]}]}, "$.output[0].type"),
    "anthropic": ({"content": [{"text": "Hi"}]}, "$.content[0].type"),
    "gemini": ({"candidates": [{"content": {"parts": [{"text": "Hi"}]}}]}, "$.stop"),
    "bedrock": ({"output": {"message": {"content": [{"text": "Hi"}]}}}, "$.output.message.role"),
    "cohere": ({"message": {"content": [{"type": "text", "text": "Hi"}]}}, "$.message.role"),
    "ollama": ({"message": {"content": "Hi"}}, "$.message.role"),
}


@pytest.mark.parametrize("target", CLIENTS)
@pytest.mark.parametrize("source", BARE)
def test_a_reply_with_nothing_but_text_is_whole_for_every_client(source: str, target: str) -> None:
    body, missing = BARE[source]
    out = convert_reply(body, source=source, target=target)
    assert (out.reply.turn.text, out.reply.stop) == ("Hi", "stop")
    assert missing in paths(out)
    again = convert_reply(out.body, source=target, target=target)
    assert again.body == out.body
    assert not again.report.entries


@pytest.mark.parametrize("protocol", BARE)
def test_what_has_no_meaning_is_still_an_error(protocol: str) -> None:
    bodies: list[dict[str, Any]] = [
        {},
        {"id": "x", "model": "m"},
        {"output": 3, "choices": 3, "content": 3, "message": 3},
    ]
    if protocol == "gemini":  # an answer without candidates is legal there
        bodies = [{"candidates": 3}]
    for body in bodies:
        with pytest.raises(toolglot.ProviderError):
            convert_reply(body, source=protocol, target="anthropic")


def test_two_bare_responses_that_differ_have_ids_that_differ() -> None:
    one, two = ({**ITEM, "name": name} for name in ("f", "g"))
    ids = {
        convert_reply({"output": [item]}, source="openai_responses", target="openai_responses").body["id"]
        for item in (one, two)
    }
    assert len(ids) == 2
    assert all(id.startswith("resp_") for id in ids)


def test_counts_that_are_text_or_have_a_fraction_are_read() -> None:
    body = {**chat({"content": "Hi"}), "usage": {"prompt_tokens": "12", "completion_tokens": 3.0}}
    out = convert_reply(body, source="openai", target="anthropic")
    assert out.body["usage"] == {"input_tokens": 12, "output_tokens": 3}
    assert "$.usage.prompt_tokens" in paths(out)


@pytest.mark.parametrize("key", ["delta", "text"])
def test_a_choice_with_a_delta_or_a_text_instead_of_its_message_is_read(key: str) -> None:
    choice = {"index": 0, "finish_reason": "stop", key: {"content": "Hi"} if key == "delta" else "Hi"}
    out = convert_reply({"id": "x", "model": "m", "choices": [choice]}, source="openai", target="anthropic")
    assert out.body["content"] == [{"type": "text", "text": "Hi"}]
    assert "$.choices[0].message" in paths(out)


def test_a_completion_of_claude_2_is_a_message() -> None:
    out = convert_reply(
        {"completion": " Paris.", "stop_reason": "stop_sequence", "stop": "\n\nHuman:"},
        source="anthropic",
        target="openai",
    )
    assert out.body["choices"][0]["message"]["content"] == " Paris."
    assert "$.content" in paths(out)


# --- why it ended -----------------------------------------------------------------------------------


def test_a_native_reply_gets_the_finish_reason_that_it_lacks() -> None:
    out = convert_reply(chat({"tool_calls": [CALL]}, finish_reason=None), source="openai", target="openai")
    assert out.body["choices"][0]["finish_reason"] == "tool_calls"
    assert "$.stop" in paths(out)


def test_the_reason_in_finish_details_is_understood_and_stays_where_it_was() -> None:
    body = chat({"content": "Hi"}, finish_details={"type": "max_tokens"})
    body["choices"][0]["finish_reason"] = None
    native = convert_reply(body, source="openai", target="openai")
    assert native.body == body
    assert not native.report.entries
    body["choices"][0]["finish_details"] = {"type": "stop"}
    assert convert_reply(body, source="openai", target="anthropic").body["stop_reason"] == "end_turn"


def test_azures_filtered_choice_without_a_message_is_a_filtered_answer() -> None:
    body = chat({})
    body["choices"] = [{"index": 0, "finish_reason": "content_filter", "content_filter_results": {"hate": {}}}]
    native = convert_reply(body, source="azure", target="azure")
    assert (native.body, native.report.entries) == (body, ())
    out = convert_reply(body, source="azure", target="anthropic")
    assert (out.body["content"], out.body["stop_reason"]) == ([], "refusal")


@pytest.mark.parametrize(
    ("reason", "stop"), [(1, "end_turn"), (2, "max_tokens"), (3, "refusal"), ("MODEL_ARMOR", "refusal")]
)
def test_geminis_reasons_by_number_and_model_armor_are_understood(reason: object, stop: str) -> None:
    body = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": reason}]}
    assert convert_reply(body, source="gemini", target="anthropic").body["stop_reason"] == stop
    native = convert_reply(body, source="gemini", target="gemini")
    assert (native.body, native.report.entries) == (body, ())


def test_what_geminis_own_tools_read_is_counted_as_input() -> None:
    counts = {"promptTokenCount": 10, "toolUsePromptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 20}
    body = {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP"}],
        "usageMetadata": counts,
    }
    assert convert_reply(body, source="gemini", target="anthropic").body["usage"]["input_tokens"] == 17
    native = convert_reply(body, source="gemini", target="gemini")
    assert (native.body, native.report.entries) == (body, ())


# --- the one call of old times ----------------------------------------------------------------------

OLD = {"content": None, "function_call": {"name": "get_weather", "arguments": '{"city":"Bonn"}'}}


@pytest.mark.parametrize("target", CLIENTS)
def test_a_function_call_of_old_times_is_a_call(target: str) -> None:
    out = convert_reply(chat(OLD, finish_reason="function_call"), source="openai", target=target)
    (call,) = out.reply.turn.calls
    assert (call.name, call.arguments, out.reply.stop) == ("get_weather", {"city": "Bonn"}, "tool_calls")
    assert bool(call.id) is (target != "openai")


def test_a_native_function_call_of_old_times_stays_as_it_is() -> None:
    body = chat(OLD, finish_reason="function_call")
    out = convert_reply(body, source="openai", target="openai")
    assert (out.body, out.report.entries) == (body, ())


def test_a_function_call_beside_tool_calls_is_not_a_second_call() -> None:
    out = convert_reply(chat({**OLD, "tool_calls": [CALL]}), source="openai", target="anthropic")
    assert out.body["content"] == [WEATHER]


def old_chunks() -> list[dict[str, Any]]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    pieces: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "function_call": {"name": "get_weather", "arguments": ""}},
        {"function_call": {"arguments": '{"city"'}},
        {"function_call": {"arguments": ':"Bonn"}'}},
    ]
    chunks = [{**head, "choices": [{"index": 0, "delta": piece, "finish_reason": None}]} for piece in pieces]
    return [*chunks, {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "function_call"}]}]


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_a_streamed_function_call_of_old_times_is_the_call_of_the_whole_reply(step: int) -> None:
    raw = stream_of(*old_chunks())
    translator = StreamTranslator(source="openai", target="anthropic")
    for start in range(0, len(raw), step):
        translator.feed(raw[start : start + step])
    translator.finish()
    whole = convert_reply(chat(OLD, finish_reason="function_call"), source="openai", target="anthropic")
    assert translator.reply.turn.calls == whole.reply.turn.calls
    assert translator.reply.stop == "tool_calls"


def test_a_native_streamed_function_call_of_old_times_is_forwarded() -> None:
    raw = stream_of(*old_chunks())
    translator = StreamTranslator(source="openai", target="openai")
    assert translator.feed(raw) + translator.finish() == raw
    assert not translator.report.entries


# --- ids and calls that a client of the same protocol gets as they came ------------------------------


@pytest.mark.parametrize("id", ["x" * 60, "call_with:colons", "call_1"])
def test_an_id_of_the_provider_itself_stays_whatever_it_looks_like(id: str) -> None:
    body = chat({"content": None, "tool_calls": [{**CALL, "id": id}]}, finish_reason="tool_calls")
    for name in ("openai", "mistral"):
        out = convert_reply(body, source=name, target=name)
        assert (out.body, out.report.entries) == (body, ())


def test_a_duplicate_id_in_one_reply_is_replaced_and_reported() -> None:
    body = chat({"content": None, "tool_calls": [CALL, CALL]}, finish_reason="tool_calls")
    out = convert_reply(body, source="openai", target="openai")
    first, second = (call["id"] for call in out.body["choices"][0]["message"]["tool_calls"])
    assert first == "call_abc123" != second
    assert any("call_abc123" in entry.reason for entry in out.report.entries)


@pytest.mark.parametrize(("reason", "is_reported"), [("length", False), ("tool_calls", True)])
def test_truncated_native_arguments_are_reported_unless_the_finish_reason_is_length(
    reason: str, is_reported: bool
) -> None:
    cut = {**CALL, "function": {"name": "get_weather", "arguments": '{"city":"Bo'}}
    body = chat({"content": None, "tool_calls": [cut]}, finish_reason=reason)
    out = convert_reply(body, source="openai", target="openai")
    assert out.body == body
    assert bool(out.report.entries) is is_reported
