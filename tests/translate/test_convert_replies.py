"""`convert_reply` and `convert_error`: what a provider answers, as the client reads it."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

import toolglot
from toolglot import convert, convert_error, convert_reply

Fields = dict[str, Any]

SCHEMA = {
    "type": "object",
    "properties": {"location": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["location"],
}
TOOL = {"name": "get_weather", "description": "Weather.", "input_schema": SCHEMA}


def chat(*calls: Fields, content: Any = None, finish: str | None = "stop") -> Fields:
    message: Fields = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = list(calls)
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt", "choices": [choice]}


def call(id: str | None, arguments: Any = '{"location":"San Francisco"}', name: str = "get_weather") -> Fields:
    call: Fields = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return call if id is None else {"id": id, **call}


def request_with(tool: Fields = TOOL, target: str = "openai") -> toolglot.ConvertedRequest:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "tools": [tool]}
    return convert(body, source="anthropic", target=target, model="gpt-4.1")


@pytest.mark.parametrize("finish", ["tool_calls", "stop", None])
def test_R_002_6_R_002_T8_calls_of_chat_are_tool_use_whatever_the_finish_reason(finish: str | None) -> None:
    out = convert_reply(chat(call("call_abc123"), finish=finish), source="openai", target="anthropic")
    assert out.body["content"] == [
        {"type": "tool_use", "id": "toolu_abc123", "name": "get_weather", "input": {"location": "San Francisco"}}
    ]
    assert out.body["stop_reason"] == "tool_use"


def test_R_002_7_calls_of_responses_are_tool_use() -> None:
    item = {
        "type": "function_call",
        "id": "fc_abc123",
        "call_id": "fc_abc123",
        "name": "get_weather",
        "arguments": '{"location":"San Francisco"}',
    }
    body = {"id": "resp_1", "object": "response", "status": "completed", "model": "gpt", "output": [item]}
    out = convert_reply(body, source="openai_responses", target="anthropic")
    assert out.body["content"] == [
        {"type": "tool_use", "id": "toolu_abc123", "name": "get_weather", "input": {"location": "San Francisco"}}
    ]
    assert out.body["stop_reason"] == "tool_use"


def test_ids_of_parallel_calls_stay_apart_and_missing_ones_are_made_deterministically() -> None:
    replies = [
        convert_reply(chat(call(None), call(None), call("call_1")), source="openai", target="anthropic").body
        for _ in range(2)
    ]
    ids = [block["id"] for block in replies[0]["content"]]
    assert len(set(ids)) == 3
    assert all(id.startswith("toolu_") for id in ids)
    assert replies[0] == replies[1]


def test_a_reply_for_its_own_protocol_is_forwarded_byte_for_byte() -> None:
    data = b'{"id" : "msg_1","type":"message","role":"assistant","model":"m","content":[],"n":1.0}'
    out = convert_reply(data, source="anthropic", target="anthropic")
    assert out.data is data


def test_a_renamed_tool_comes_back_under_its_own_name() -> None:
    request = request_with({**TOOL, "name": "files/read"})
    emitted = request.body["tools"][0]["function"]["name"]
    out = convert_reply(chat(call("call_1", name=emitted)), source="openai", target="anthropic", request=request)
    assert out.body["content"][0]["name"] == "files/read"


def test_a_name_that_the_model_made_up_stays_as_it_wrote_it() -> None:
    out = convert_reply(chat(call("call_1", name="other")), source="openai", target="anthropic", request=request_with())
    assert out.body["content"][0]["name"] == "other"


def test_arguments_that_do_not_fit_the_original_schema_are_reported() -> None:
    reply = chat(call("call_1", '{"days":"three"}'))
    out = convert_reply(reply, source="openai", target="anthropic", request=request_with())
    reasons = [entry.reason for entry in out.report if entry.action == "mismatched"]
    assert any("$.days" in reason for reason in reasons)
    assert any("location" in reason for reason in reasons)


def test_arguments_are_checked_less_the_required_names_that_were_filtered() -> None:
    schema = {**SCHEMA, "properties": {"location": {"type": "string", "description": "Optional."}}}
    request = request_with({**TOOL, "input_schema": schema})
    out = convert_reply(chat(call("call_1", "{}")), source="openai", target="anthropic", request=request)
    assert not [entry for entry in out.report if entry.action == "mismatched"]


def test_nulls_that_strict_mode_introduced_are_taken_out_before_the_check() -> None:
    schema = {**SCHEMA, "additionalProperties": False}
    request = request_with({**TOOL, "input_schema": schema, "strict": True})
    function = request.body["tools"][0]["function"]
    assert function["strict"] is True
    assert function["parameters"]["required"] == ["location", "days"]
    reply = chat(call("call_1", '{"location":"Rome","days":null}'))
    out = convert_reply(reply, source="openai", target="anthropic", request=request)
    assert out.body["content"][0]["input"] == {"location": "Rome"}
    assert not [entry for entry in out.report if entry.action == "mismatched"]


def test_counts_and_stop_reasons_that_the_client_cannot_read_are_reported() -> None:
    body = chat(content="hi", finish="content_filter")
    body["usage"] = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    out = convert_reply(body, source="openai", target="ollama")
    reasons = [entry.reason for entry in out.report]
    assert any("'filter'" in reason for reason in reasons)
    assert any("cache read tokens" in reason for reason in reasons)


# --- errors -----------------------------------------------------------------------------------------


def test_an_error_inside_an_answer_is_raised_as_the_providers() -> None:
    with pytest.raises(toolglot.ProviderError) as raised:
        convert_reply({"error": {"message": "overloaded", "code": 503}}, source="openrouter", target="anthropic")
    assert raised.value.failure.kind == "overloaded"
    again = toolglot.error_for(raised.value.failure, target="anthropic")
    assert again.status == 529
    assert again.body["error"]["type"] == "overloaded_error"


def test_an_error_of_one_protocol_is_written_in_another_with_its_headers() -> None:
    body = {"error": {"message": "slow down", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}
    out = convert_error(429, body, source="openai", target="anthropic", headers={"Retry-After": "7"})
    assert out.status == 429
    assert out.body["error"]["type"] == "rate_limit_error"
    assert out.headers["retry-after"] == "7"
    assert out.failure.retryable
    assert out.data.startswith(b"{")


def test_what_is_no_error_is_not_converted_as_one() -> None:
    with pytest.raises(toolglot.InputError, match="not an error"):
        convert_error(200, chat(content="hi"), source="openai", target="anthropic")


# --- calls that cannot be run -----------------------------------------------------------------------


CUT = '{"city":"Os'


@pytest.mark.parametrize("written", [CUT, "not json", "[1]", '{"a":1}{"b":2}'])
@pytest.mark.parametrize("target", ["anthropic", "bedrock", "ollama"])
def test_law_11_a_call_that_cannot_be_read_is_not_handed_on_as_one_that_can_be_run(target: str, written: str) -> None:
    out = convert_reply(chat(call("call_1", written)), source="openai", target=target, request=request_with())
    assert not out.reply.turn.calls
    assert written in out.reply.turn.text
    assert out.reply.stop == ("length" if written == CUT else "stop")
    assert any(entry.action == "converted" and "cannot be run" in entry.reason for entry in out.report)


def test_law_11_a_gemini_client_gets_the_usual_finish_reason_for_a_truncated_call() -> None:
    out = convert_reply(chat(call("call_1", CUT)), source="openai", target="gemini", request=request_with())
    (candidate,) = out.body["candidates"]
    assert (candidate["content"]["parts"], candidate["finishReason"]) == ([], "MAX_TOKENS")
    assert any("cannot be run" in entry.reason for entry in out.report)


@pytest.mark.parametrize("written", ["not json", "[1]", '{"a":1}{"b":2}'])
def test_law_11_a_gemini_client_gets_its_own_finish_reason_for_an_unreadable_call(written: str) -> None:
    out = convert_reply(chat(call("call_1", written)), source="openai", target="gemini", request=request_with())
    (candidate,) = out.body["candidates"]
    assert candidate["content"]["parts"] == []
    assert candidate["finishReason"] == "MALFORMED_FUNCTION_CALL"
    assert written in candidate["finishMessage"]
    assert any("cannot be run" in entry.reason for entry in out.report)


def test_law_11_a_call_that_can_be_read_stays_beside_one_that_cannot_for_a_gemini_client() -> None:
    calls = call("call_1"), call("call_2", "not json")
    out = convert_reply(chat(*calls), source="openai", target="gemini", request=request_with())
    (candidate,) = out.body["candidates"]
    assert [part["functionCall"]["name"] for part in candidate["content"]["parts"]] == ["get_weather"]
    assert candidate["finishReason"] == "STOP"


def test_law_11_a_client_that_reads_arguments_as_text_gets_what_the_model_wrote() -> None:
    out = convert_reply(chat(call("call_1", "not json")), source="openai", target="openai_responses")
    assert out.body["output"][0]["arguments"] == "not json"
    assert any("passed on unchanged" in entry.reason for entry in out.report)


def test_law_11_a_call_that_was_cut_under_another_reason_ends_the_answer_as_cut() -> None:
    out = convert_reply(chat(call("call_1", CUT)), source="openai", target="openai_responses")
    assert out.body["output"][0]["arguments"] == CUT
    assert out.body["output"][0]["status"] == "incomplete"
    assert (out.body["status"], out.body["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert {"incomplete" in entry.reason for entry in out.report} == {True, False}
    assert any("its stop reason does not say so" in entry.reason for entry in out.report)


@pytest.mark.parametrize("written", ["", None])
def test_no_arguments_are_an_empty_object(written: Any) -> None:
    out = convert_reply(chat(call("call_1", written)), source="openai", target="anthropic")
    assert out.body["content"][0]["input"] == {}


def test_an_empty_text_beside_calls_is_not_shown() -> None:
    out = convert_reply(chat(call("call_1"), content=""), source="mistral", target="anthropic")
    assert [block["type"] for block in out.body["content"]] == ["tool_use"]


def test_an_undeclared_tool_is_reported() -> None:
    out = convert_reply(chat(call("call_1", name="other")), source="openai", target="anthropic", request=request_with())
    assert any(entry.action == "mismatched" and "not a tool of the request" in entry.reason for entry in out.report)


def test_a_duplicate_id_is_reported() -> None:
    out = convert_reply(chat(call("call_1"), call("call_1")), source="openai", target="anthropic")
    assert len({block["id"] for block in out.body["content"]}) == 2
    assert any(entry.action == "replaced" and "call_1" in entry.reason for entry in out.report)


def test_signatures_that_the_client_cannot_send_back_are_reported() -> None:
    part = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}
    body = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}
    out = convert_reply(body, source="gemini", target="anthropic")
    assert "c2ln" not in out.data.decode()
    assert any("signature" in entry.reason for entry in out.report)


def test_a_reply_without_a_model_or_an_id_gets_both() -> None:
    body = {"output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}}, "stopReason": "end_turn"}
    out = convert_reply(body, source="bedrock", target="anthropic", request=request_with(target="bedrock"))
    assert out.body["model"] == "gpt-4.1"
    assert out.body["id"]


# --- mistakes of the caller -------------------------------------------------------------------------


def test_mistakes_of_the_caller_are_input_errors() -> None:
    for mistake in (
        lambda: convert_reply(chat(content="hi"), source="openai", target="anthropic", request={}),  # type: ignore[arg-type]
        lambda: convert({}, source="openai", target="anthropic", policy={}),  # type: ignore[arg-type]
        lambda: toolglot.error_for("no", target="anthropic"),  # type: ignore[arg-type]
        lambda: toolglot.Policy(server_tools="dorp"),  # type: ignore[arg-type]
        lambda: toolglot.Policy(bridge_user=" "),
    ):
        with pytest.raises(toolglot.InputError):
            mistake()


def test_an_error_of_the_provider_can_be_handed_on_as_it_was_raised() -> None:
    with pytest.raises(toolglot.ProviderError) as raised:
        convert_reply({"error": {"message": "no", "code": 401}}, source="openrouter", target="anthropic")
    assert toolglot.error_for(raised.value, target="anthropic").status == 401
    assert "auth" in str(raised.value)
    assert convert_error(500, None, source="openai", target="anthropic", headers=None).status == 500


def test_a_mistake_in_the_configuration_is_not_the_clients() -> None:
    assert toolglot.error_for(toolglot.ProfileError("no such key"), target="anthropic").status == 500


@pytest.mark.parametrize("reason", [{"a": 1}, ["a"], 5, None])
def test_a_finish_reason_of_the_wrong_type_is_no_crash(reason: Any) -> None:
    body = {"candidates": [{"finishReason": reason}]}
    with contextlib.suppress(toolglot.InputError, toolglot.ProviderError):
        convert_reply(body, source="gemini", target="openai")


def test_law_9_many_calls_of_a_tool_with_many_parameters_are_checked_in_linear_time() -> None:
    many = {f"p{number}": {"type": "string"} for number in range(1_000)}
    request = request_with({**TOOL, "input_schema": {"type": "object", "properties": many, "required": list(many)}})
    calls = [call(f"call_{number}", "{}") for number in range(500)]
    out = convert_reply(chat(*calls), source="openai", target="anthropic", request=request)
    assert len(out.body["content"]) == 500
