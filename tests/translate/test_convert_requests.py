"""`convert`: a request of one protocol as a request that the target accepts."""

from __future__ import annotations

import contextlib
import json
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

import toolglot
from support.translate.weather_requests import WEATHER, Fields, call_and_result, claude_body, convert_to
from toolglot import convert
from toolglot.render import render

# --- bytes and reports ------------------------------------------------------------------------------


def test_law_3_an_unchanged_native_request_is_forwarded_byte_for_byte() -> None:
    data = b'{ "model":"claude-sonnet-4-6", "max_tokens":9,"messages":[{"role":"user","content":"h\\u0069"}],"new":1.0}'
    out = convert(data, source="anthropic", target="anthropic")
    assert out.data is data
    assert not out.report.entries


def test_the_model_option_replaces_the_requests_own_model() -> None:
    out = convert(claude_body(), source="anthropic", target="anthropic", model="claude-opus-4-6")
    assert out.body["model"] == out.model == "claude-opus-4-6"


def test_fields_that_cannot_be_carried_are_reported_once_with_a_count() -> None:
    marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    body = claude_body({"role": "user", "content": [marked, marked]}, service_tier="auto")
    entries = [str(entry) for entry in convert_to("openai", body, model="gpt-4.1").report]
    assert sum("cache_control" in entry for entry in entries) == 1
    assert any("(2 times)" in entry for entry in entries)
    assert any("service_tier" in entry for entry in entries)


def test_what_the_url_states_elsewhere_is_known_to_the_caller() -> None:
    out = convert_to("gemini", claude_body(stream=True), model="gemini-3-pro")
    assert out.stream is True
    assert out.model == "gemini-3-pro"
    assert "stream" not in out.body


# --- tools that were seen before --------------------------------------------------------------------


@pytest.mark.parametrize("value", [1, True, 1.0, False, 0, None, "1"])
@pytest.mark.parametrize("before", [1, True, 1.0, False, 0])
def test_tools_that_differ_only_in_the_type_of_a_value_are_not_taken_for_each_other(before: Any, value: Any) -> None:
    for default in (before, value):
        schema = {"type": "object", "properties": {"n": {"default": default}}, "required": []}
        out = convert_to("openai", claude_body(tools=[{"name": "count", "input_schema": schema}]), model="gpt-4.1")
        (tool,) = json.loads(out.data)["tools"]
        written = tool["function"]["parameters"]["properties"]["n"]["default"]
        assert (type(written), written) == (type(default), default)


def test_a_schema_with_a_number_of_more_than_64_bits_is_fitted_as_others_are() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 2**70}}}
    out = convert_to("openai", claude_body(tools=[{"name": "count", "input_schema": schema}]), model="gpt-4.1")
    assert out.body["tools"][0]["function"]["parameters"]["properties"]["n"]["maximum"] == 2**70


def test_tools_that_no_request_could_hold_are_refused() -> None:
    conversation = toolglot.Conversation((toolglot.Turn("user", (toolglot.Text("hi"),)),))
    half = msgspec.structs.replace(conversation, tools=(toolglot.ToolSpec("f", "half of a pair: \ud83d"),))
    with pytest.raises(toolglot.InputError, match=r"\$\.tools: the tools cannot be written as JSON"):
        render(half, toolglot.profiles.get("openai", "gpt-4.1"))


# --- names, namespaces, free text -------------------------------------------------------------------


def test_E4_illegal_names_are_renamed_everywhere_and_reported() -> None:
    name = "files/read.all"
    tool = {**WEATHER, "name": name}
    body = claude_body(
        {"role": "user", "content": "hi"},
        *call_and_result("toolu_1", name=name),
        tools=[tool],
        tool_choice={"type": "tool", "name": name},
    )
    out = convert_to("openai", body, model="gpt-4.1")
    emitted = out.body["tools"][0]["function"]["name"]
    assert emitted != name
    assert out.body["tool_choice"]["function"]["name"] == emitted
    assert out.body["messages"][1]["tool_calls"][0]["function"]["name"] == emitted
    assert any(entry.action == "renamed" and entry.fault == "projection" for entry in out.report)


def test_E7_tools_beyond_the_limit_go_but_for_those_that_are_used() -> None:
    tools = [{**WEATHER, "name": f"tool_{number}"} for number in range(140)]
    body = claude_body({"role": "user", "content": "hi"}, *call_and_result("toolu_1", name="tool_139"), tools=tools)
    out = convert_to("openai", body, model="gpt-4.1")
    names = [tool["function"]["name"] for tool in out.body["tools"]]
    assert len(names) == 128
    assert names[-1] == "tool_139"
    assert any(entry.action == "dropped" and "128 tools" in entry.reason for entry in out.report)


PATCH: Fields = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Applies a patch.",
    "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "*** Begin" LINE+'},
}
FREE_TEXT = '*** Begin\n-a "quoted"\\\n+b\t\u00e9\n'


def test_E8_a_free_text_tool_is_a_function_of_one_string_and_its_call_is_byte_exact_both_ways() -> None:
    body = {
        "model": "gpt-5.2",
        "input": [
            {"role": "user", "content": "patch it"},
            {"type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch", "input": FREE_TEXT},
            {"type": "custom_tool_call_output", "call_id": "call_1", "output": "done"},
            {"role": "user", "content": "again"},
        ],
        "tools": [PATCH],
    }
    out = convert(body, source="openai_responses", target="anthropic", model="claude-sonnet-4-6")
    (tool,) = out.body["tools"]
    assert tool["input_schema"]["required"] == ["input"]
    assert 'start: "*** Begin" LINE+' in tool["input_schema"]["properties"]["input"]["description"]
    assert out.body["messages"][1]["content"][0]["input"] == {"input": FREE_TEXT}
    reply = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "tool_use", "id": "toolu_9", "name": "apply_patch", "input": {"input": FREE_TEXT}}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    back = toolglot.convert_reply(reply, source="anthropic", target="openai_responses", request=out)
    (item,) = back.body["output"]
    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "apply_patch", FREE_TEXT)
    assert item["call_id"] == "call_9"


def test_E8_a_namespace_becomes_a_prefix_and_comes_back() -> None:
    function = {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}
    body = {
        "model": "gpt-5.2",
        "input": [
            {"role": "user", "content": "hi"},
            {"type": "function_call", "call_id": "call_1", "name": "read", "namespace": "files", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "done"},
        ],
        "tools": [{"type": "namespace", "name": "files", "description": "Files.", "tools": [function]}, function],
    }
    out = convert(body, source="openai_responses", target="anthropic", model="claude-sonnet-4-6")
    assert [tool["name"] for tool in out.body["tools"]] == ["files__read", "read"]
    assert out.body["messages"][1]["content"][0]["name"] == "files__read"
    reply = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "tool_use", "id": "toolu_9", "name": "files__read", "input": {}}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    back = toolglot.convert_reply(reply, source="anthropic", target="openai_responses", request=out)
    assert (back.body["output"][0]["name"], back.body["output"][0]["namespace"]) == ("read", "files")


def test_E8_a_namespaced_tool_does_not_get_a_flat_name_that_is_taken() -> None:
    function = {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}
    body = {
        "model": "gpt-5.2",
        "input": "hi",
        "tools": [
            {"type": "namespace", "name": "files", "description": "Files.", "tools": [function]},
            {**function, "name": "files__read"},
        ],
    }
    out = convert(body, source="openai_responses", target="anthropic", model="claude-sonnet-4-6")
    assert [tool["name"] for tool in out.body["tools"]] == ["files__read_", "files__read"]


# --- tools that a provider runs ---------------------------------------------------------------------

SEARCH = {"type": "web_search_20250305", "name": "web_search"}


def test_a_server_tool_for_another_provider_is_refused_by_name_with_its_path() -> None:
    with pytest.raises(toolglot.ServerToolError) as refused:
        convert_to("openai", claude_body(tools=[WEATHER, SEARCH]))
    assert refused.value.path == "$.tools[1]"
    assert "web_search_20250305" in refused.value.message
    assert "server_tools" in refused.value.hint


def test_a_server_tool_is_left_out_by_policy_and_reported() -> None:
    out = convert_to("openai", claude_body(tools=[WEATHER, SEARCH]), model="gpt-4.1", server_tools="drop")
    assert [tool["function"]["name"] for tool in out.body["tools"]] == ["get_weather"]
    assert any(entry.action == "dropped" and "web_search" in entry.reason for entry in out.report)


@pytest.mark.parametrize(
    ("type", "name"),
    [("bash_20250124", "bash"), ("text_editor_20250728", "str_replace_based_edit_tool"), ("memory_20250818", "memory")],
)
def test_a_tool_that_the_client_runs_becomes_a_function(type: str, name: str) -> None:
    out = convert_to("openai", claude_body(tools=[{"type": type, "name": name}]), model="gpt-4.1")
    function = out.body["tools"][0]["function"]
    assert function["name"] == name
    assert "command" in function["parameters"]["properties"]
    assert any(entry.action == "converted" and type in entry.reason for entry in out.report)


def test_a_native_server_tool_is_carried_whatever_its_type() -> None:
    body = claude_body(tools=[{"type": "brand_new_20270101", "name": "brand_new"}])
    out = convert(body, source="anthropic", target="anthropic")
    assert out.body == body
    assert not out.report.entries


# --- tool choice ------------------------------------------------------------------------------------


def test_E9_a_forced_tool_is_the_only_one_declared_where_forcing_is_refused() -> None:
    body = claude_body(
        tools=[WEATHER, {**WEATHER, "name": "other"}], tool_choice={"type": "tool", "name": "get_weather"}
    )
    out = convert_to("glm", body)
    assert [tool["function"]["name"] for tool in out.body["tools"]] == ["get_weather"]
    assert out.body["tool_choice"] == "auto"
    assert any(entry.action == "converted" and "named" in entry.reason for entry in out.report)


def test_E10_no_tools_are_declared_to_a_target_without_the_choice_none() -> None:
    out = convert_to("glm", claude_body(tools=[WEATHER], tool_choice={"type": "none"}))
    assert "tools" not in out.body
    assert "tool_choice" not in out.body


def test_a_target_that_needs_its_tools_declared_keeps_them_without_a_choice() -> None:
    body = claude_body(
        {"role": "user", "content": "hi"}, *call_and_result("toolu_1"), tools=[WEATHER], tool_choice={"type": "none"}
    )
    out = convert_to("bedrock", body, model="anthropic.claude-sonnet-4-6")
    assert len(out.body["toolConfig"]["tools"]) == 1
    assert any("cannot be forbidden" in entry.reason for entry in out.report)


# --- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"x"', b"\xff", "nonsense", b"[" * 100_000, 5, None])
def test_what_is_no_json_object_is_refused(body: Any) -> None:
    with pytest.raises(toolglot.InputError):
        convert(body, source="anthropic", target="openai")


def test_half_a_surrogate_pair_is_replaced() -> None:
    data = b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"\\ud800"}]}'
    assert "\ufffd" in convert(data, source="anthropic", target="openai").data.decode()


def test_a_wrong_field_is_an_error_in_the_clients_own_shape_with_its_path() -> None:
    with pytest.raises(toolglot.InputError) as refused:
        convert({"model": "m", "messages": [{"role": "user", "content": 5}]}, source="anthropic", target="openai")
    error = toolglot.error_for(refused.value, target="anthropic")
    assert error.status == 400
    assert error.body["error"]["type"] == "invalid_request_error"
    assert "$.messages[0].content" in error.body["error"]["message"]


def test_an_object_that_is_no_json_is_made_plain() -> None:
    circle: list[Any] = []
    circle.append(circle)
    out = convert(
        claude_body(metadata={"user_id": "u", "x": object(), "y": circle}), source="anthropic", target="anthropic"
    )
    assert b"user_id" in out.data


# --- what is assumed, and what is reported ----------------------------------------------------------


def test_a_kept_model_of_another_provider_is_reported() -> None:
    out = convert(claude_body(), source="anthropic", target="openai")
    assert any(entry.action == "assumed" and "claude-sonnet-4-6" in entry.reason for entry in out.report)


def test_repair_reports_replaced_ids_and_lists_all_ids() -> None:
    body = claude_body(
        {"role": "user", "content": "hi"}, *call_and_result("toolu_1"), *call_and_result("toolu_1"), tools=[WEATHER]
    )
    out = toolglot.repair(body, target="anthropic")
    (entry,) = [entry for entry in out.report if entry.action == "replaced"]
    assert "toolu_1" in entry.reason
    assert entry.native_ids == ("toolu_1",)
    assert entry.fault == "projection"
    assert len(out.report.ids.canonical) == len(out.report.ids.calls) == len(out.report.ids.results) == 2
    assert out.report.ids.format == "toolu_…"
    assert toolglot.lint(out.body, "anthropic") == ()


def test_law_10_a_clean_report_lists_the_ids_too() -> None:
    body = claude_body({"role": "user", "content": "hi"}, *call_and_result("toolu_1"), tools=[WEATHER])
    out = toolglot.repair(body, target="anthropic")
    assert not out.report.entries
    assert out.report.summary == "nothing was changed"
    assert out.report.ids.calls == ("toolu_1",)
    assert out.report.ids.canonical[0].startswith("hist_tool_")


def test_an_entry_has_the_turn_and_the_clients_own_ids() -> None:
    (call, _) = call_and_result("toolu_1")
    body = claude_body({"role": "user", "content": "hi"}, call, {"role": "user", "content": "and?"}, tools=[WEATHER])
    out = toolglot.repair(body, target="anthropic")
    entry = next(entry for entry in out.report if entry.action == "added")
    assert entry.native_ids == ("toolu_1",)
    assert "[toolu_1]" in str(entry)
    assert entry.turn == 1
    assert not [entry for entry in out.report if entry.action == "moved"]


def test_any_mapping_is_a_body() -> None:
    assert convert(MappingProxyType(claude_body()), source="anthropic", target="openai", model="gpt-4.1").body[
        "messages"
    ]


def test_parts_of_a_result_that_become_one_text_stay_lines() -> None:
    parts = [{"type": "text", "text": "line one"}, {"type": "text", "text": "line two"}]
    (call, result) = call_and_result("toolu_1")
    result["content"][0]["content"] = parts
    out = convert_to(
        "gemini", claude_body({"role": "user", "content": "hi"}, call, result, tools=[WEATHER]), model="gemini-3-pro"
    )
    assert "line one\\nline two" in out.data.decode()


# --- hostile input ----------------------------------------------------------------------------------


def test_what_is_written_to_a_converted_body_reaches_no_other() -> None:
    for body in (
        claude_body(tools=[{"type": "bash_20250124", "name": "bash"}]),
        claude_body({"role": "user", "content": "hi"}, *call_and_result("toolu_1")),
    ):
        first = convert(body, source="anthropic", target="bedrock", model="anthropic.claude-sonnet-4-6")
        (tool,) = first.body["toolConfig"]["tools"]
        tool["toolSpec"]["inputSchema"]["json"]["properties"]["POISON"] = {}
        again = convert(body, source="anthropic", target="bedrock", model="anthropic.claude-sonnet-4-6")
        assert b"POISON" not in again.data


@pytest.mark.parametrize("depth", [150, 450, 900, 990])
@pytest.mark.parametrize("target", ["anthropic", "openai", "gemini"])
def test_what_nests_deeply_is_converted_or_refused(target: str, depth: int) -> None:
    nested = "[" * depth + "]" * depth
    block = '{"type":"server_tool_use","id":"s","name":"web_search","input":{"x":' + nested + "}}"
    message = '{"role":"assistant","content":[' + block + "]}"
    data = '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"},' + message + "]}"
    with contextlib.suppress(toolglot.LimitError):
        out = convert(data, source="anthropic", target=target)
        assert str(out.report)
        assert out.report.ids.calls == ()


def test_parts_that_are_shared_do_not_multiply() -> None:
    schema: Fields = {"type": "string"}
    for _ in range(60):
        schema = {"type": "object", "properties": {"a": schema, "b": schema}}
    with pytest.raises(toolglot.LimitError):
        convert(claude_body(tools=[{"name": "t", "input_schema": schema}]), source="anthropic", target="openai")


# --- what a strict reading refuses ------------------------------------------------------------------


@pytest.mark.parametrize("id", [None, 7])
def test_B7_ids_that_are_null_or_numbers_are_read_as_meant_and_reported(id: Any) -> None:
    (call, result) = call_and_result("x")
    call["content"][0]["id"] = result["content"][0]["tool_use_id"] = id
    out = toolglot.repair(
        claude_body({"role": "user", "content": "hi"}, call, result, tools=[WEATHER]), target="anthropic"
    )
    assert toolglot.lint(out.body, "anthropic") == ()
    assert [entry.path for entry in out.report if entry.action == "converted"] == [
        "$.messages[1].content[0].id",
        "$.messages[2].content[0].tool_use_id",
    ]
    assert "72" in out.data.decode()


@pytest.mark.parametrize(
    ("arguments", "expected"), [("", {}), (None, {}), ("x", {"_raw": "x"}), ([1], {"_raw": [1]}), ('{"a":1}', {"a": 1})]
)
def test_F3_arguments_that_are_no_object_become_one_and_are_reported(arguments: Any, expected: Fields) -> None:
    (call, result) = call_and_result("toolu_1")
    call["content"][0]["input"] = arguments
    out = toolglot.repair(
        claude_body({"role": "user", "content": "hi"}, call, result, tools=[WEATHER]), target="anthropic"
    )
    assert out.body["messages"][1]["content"][0]["input"] == expected
    assert any(entry.path == "$.messages[1].content[0].input" for entry in out.report)


def test_B6_a_call_that_is_in_the_content_too_is_one_call() -> None:
    part = {"type": "tool_use", "id": "call_1", "name": "f", "input": {"a": 1}}
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [part], "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "done"},
    ]
    out = convert({"model": "m", "messages": messages}, source="openai", target="anthropic", model="claude-sonnet-4-6")
    blocks = out.body["messages"][1]["content"]
    assert [block["type"] for block in blocks] == ["tool_use"]
    assert any("it is one call" in entry.reason for entry in out.report)
    assert toolglot.lint(out.body, "anthropic", "claude-sonnet-4-6") == ()


def test_a_meaningless_body_is_refused_with_its_first_error() -> None:
    (call, result) = call_and_result("toolu_1")
    call["content"][0]["id"] = None
    call["content"].append({"type": "text", "text": 5})
    with pytest.raises(toolglot.InputError) as refused:
        toolglot.repair(claude_body(call, result), target="anthropic")
    assert refused.value.path == "$.messages[0].content[0].id"


# --- what only the provider has ---------------------------------------------------------------------


@pytest.mark.parametrize("field", ["previous_response_id", "conversation"])
def test_law_3_a_request_that_continues_a_stored_response_is_forwarded(field: str) -> None:
    output = {"type": "function_call_output", "call_id": "c", "output": "3"}
    body = msgspec.json.encode({"model": "gpt-5.1", field: "resp_1", "input": [output]})
    out = toolglot.convert(body, source="openai_responses", target="openai_responses")
    assert out.data is body
    assert [entry.action for entry in out.report] == ["assumed"]
    other = toolglot.convert(body, source="openai_responses", target="openai_responses", model="gpt-5.2")
    assert other.body == {"model": "gpt-5.2", field: "resp_1", "input": [output]}


def test_a_request_that_continues_what_another_provider_stored_is_refused_by_name() -> None:
    body = {"model": "gpt-5.1", "previous_response_id": "resp_1", "input": "go on"}
    with pytest.raises(toolglot.StoredHistoryError, match="only openai_responses has stored") as raised:
        toolglot.convert(body, source="openai_responses", target="gemini", model="gemini-3-pro")
    assert raised.value.path == "$.previous_response_id"


REFERRING = {
    "model": "gpt-5-mini",
    "input": [
        {"role": "user", "content": "2 + 2?"},
        {"type": "item_reference", "id": "fc_1"},
        {"type": "function_call_output", "call_id": "call_1", "output": "4"},
    ],
}


def test_law_3_a_result_whose_call_is_a_reference_is_forwarded() -> None:
    body = msgspec.json.encode(REFERRING)
    out = toolglot.convert(body, source="openai_responses", target="openai_responses")
    assert out.data is body
    assert [(entry.action, entry.gravity) for entry in out.report] == [("assumed", "housekeeping")]


@pytest.mark.parametrize("target", ["openai", "anthropic", "gemini"])
def test_a_reference_to_what_only_its_provider_has_is_refused_by_name_elsewhere(target: str) -> None:
    with pytest.raises(toolglot.StoredHistoryError, match="only openai_responses has stored") as raised:
        toolglot.convert(REFERRING, source="openai_responses", target=target, model="m")
    assert raised.value.path == "$.input[1]"


def test_a_stored_prompt_without_input_goes_to_its_provider_only() -> None:
    body = msgspec.json.encode({"prompt": {"id": "pmpt_1"}})
    assert toolglot.convert(body, source="openai_responses", target="openai_responses").data is body
    with pytest.raises(toolglot.StoredHistoryError):
        toolglot.convert(body, source="openai_responses", target="anthropic", model="claude-sonnet-4-5")


def test_clients_of_anthropic_get_the_error_to_send_the_whole_thread() -> None:
    body = {
        "model": "claude-opus-5",
        "max_tokens": 9,
        "thread": {"type": "continue", "id": "t"},
        "messages": [{"role": "user", "content": "x"}],
    }
    with pytest.raises(toolglot.StoredHistoryError) as raised:
        toolglot.convert(body, source="anthropic", target="openai", model="gpt-4.1")
    error = toolglot.error_for(raised.value, target="anthropic")
    assert error.status == 400
    assert error.body["error"]["details"]["error_code"] == "thread_unsupported_request"


def test_usage_is_requested_of_a_stream_of_another_protocol() -> None:
    body = {"model": "c", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "x"}]}
    out = toolglot.convert(body, source="anthropic", target="openai", model="gpt-4.1")
    assert out.body["stream_options"] == {"include_usage": True}
    always = toolglot.convert(body, source="anthropic", target="mistral", model="mistral-large-latest")
    assert "stream_options" not in always.body
    native = {"model": "gpt-4.1", "stream": True, "messages": [{"role": "user", "content": "x"}]}
    assert toolglot.convert(native, source="openai", target="openai").body == native


# --- from a history ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target", ["anthropic", "openai", "openai_responses", "gemini", "mistral", "bedrock", "ollama"]
)
def test_a_history_becomes_a_request_that_its_target_accepts(target: str) -> None:
    history = toolglot.History(provider="openai")
    history.append(toolglot.Turn("user", (toolglot.Text("go"),)))
    history.append(toolglot.Turn("assistant", (toolglot.ToolCall("call_0", "ls", {"p": "/"}),)))
    tool = toolglot.ToolSpec("ls", parameters={"type": "object"})
    out = toolglot.request_for(history, target=target, model="m-1", tools=(tool,))
    assert not toolglot.lint(out.body, target, model="m-1")
    assert any("no result" in entry.reason for entry in out.report)
    with pytest.raises(toolglot.InputError, match="a Conversation or a History"):
        toolglot.request_for([], target=target)  # type: ignore[arg-type]


def test_a_spare_server_tool_is_left_out_and_one_that_is_requested_is_refused() -> None:
    out = convert_to("openai", claude_body(tools=[WEATHER, SEARCH]), model="gpt-4.1", server_tools="spare")
    assert [tool["function"]["name"] for tool in out.body["tools"]] == [WEATHER["name"]]
    assert any(entry.action == "dropped" for entry in out.report)
    forced = {"type": "tool", "name": SEARCH["name"]}
    for body in (claude_body(tools=[SEARCH]), claude_body(tools=[WEATHER, SEARCH], tool_choice=forced)):
        with pytest.raises(toolglot.ServerToolError, match="runs itself"):
            convert_to("openai", body, model="gpt-4.1", server_tools="spare")


def test_a_body_that_is_changed_at_its_own_provider_keeps_the_order_of_its_fields() -> None:
    body = {"stream": False, "temperature": -0.5, "model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi"}]}
    out = convert(json.dumps(body), source="openai", target="openai")
    assert out.body == body | {"temperature": 0}
    assert [*out.body] == [*body]
