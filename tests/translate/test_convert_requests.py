"""`convert`: a request of one protocol as a request that the target accepts."""

from __future__ import annotations

import contextlib
import json
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

import toolglot
from toolglot import Policy, convert
from toolglot.render import render

Fields = dict[str, Any]

WEATHER: Fields = {
    "name": "get_weather",
    "description": "Get current weather for a location",
    "input_schema": {
        "type": "object",
        "properties": {
            "location": {"type": "string", "description": "City name"},
            "units": {
                "type": "string",
                "enum": ["celsius", "fahrenheit"],
                "description": "Temperature units (optional, defaults to fahrenheit)",
            },
        },
        "required": ["location", "units"],
    },
}
FILTERED = {**WEATHER["input_schema"], "required": ["location"]}


def asking(*messages: Fields, **fields: Any) -> Fields:
    said = messages or ({"role": "user", "content": "hi"},)
    return {"model": "claude-sonnet-4-6", "max_tokens": 100, "messages": list(said), **fields}


def calling(*ids: str, name: str = "get_weather") -> tuple[Fields, Fields]:
    calls = [{"type": "tool_use", "id": id, "name": name, "input": {"location": "Rome"}} for id in ids]
    results = [{"type": "tool_result", "tool_use_id": id, "content": "72°F, sunny"} for id in ids]
    return {"role": "assistant", "content": calls}, {"role": "user", "content": results}


def to(target: str, body: Fields, *, source: str = "anthropic", model: str = "", **policy: Any) -> Any:
    return convert(body, source=source, target=target, model=model, policy=Policy(**policy))


# --- seed 002 ---------------------------------------------------------------------------------------


def test_R_002_1_tools_from_anthropic_to_chat_are_functions_that_are_not_strict() -> None:
    out = to("openai", asking(tools=[WEATHER]), model="gpt-4.1")
    assert out.body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "get_weather",
                "description": "Get current weather for a location",
                "parameters": FILTERED,
                "strict": False,
            },
        }
    ]


def test_R_002_2_tools_from_anthropic_to_responses_are_flat() -> None:
    out = to("openai_responses", asking(tools=[WEATHER]), model="gpt-5.2")
    assert out.body["tools"] == [
        {
            "type": "function",
            "name": "get_weather",
            "description": "Get current weather for a location",
            "parameters": FILTERED,
            "strict": False,
        }
    ]


def test_R_002_2_R_002_T6_the_nested_function_is_an_option() -> None:
    out = to("openai_responses", asking(tools=[WEATHER]), model="gpt-5.2", responses_id_style="clasp")
    (tool,) = out.body["tools"]
    assert tool["function"] == {
        "name": "get_weather",
        "description": "Get current weather for a location",
        "parameters": FILTERED,
        "strict": False,
    }
    assert tool["name"] == "get_weather"
    assert tool["parameters"] == FILTERED


def test_R_002_3_required_names_that_were_filtered_are_told_with_their_reason() -> None:
    out = to("openai", asking(tools=[WEATHER]), model="gpt-4.1")
    (entry,) = [entry for entry in out.report if entry.action == "filtered"]
    assert "units is no longer required" in entry.reason
    assert entry.fault == "policy"


@pytest.mark.parametrize(
    ("source", "target"), [("openai", "anthropic"), ("anthropic", "gemini"), ("openai", "openai_responses")]
)
def test_R_002_3_required_names_are_filtered_from_anthropic_to_openai_only(source: str, target: str) -> None:
    function = {"name": "w", "parameters": WEATHER["input_schema"]}
    tools = [WEATHER] if source == "anthropic" else [{"type": "function", "function": function}]
    out = to(target, asking(tools=tools), source=source)
    assert not [entry for entry in out.report if entry.action == "filtered"]


def test_R_002_T1_aggressive_filtering_and_none_are_options() -> None:
    schema = {"type": "object", "properties": {"all": {"type": "boolean"}}, "required": ["all"]}
    tool = {"name": "t", "input_schema": schema}
    kept = to("openai", asking(tools=[tool]), model="gpt-4.1").body["tools"][0]["function"]["parameters"]
    gone = to("openai", asking(tools=[tool]), model="gpt-4.1", required="aggressive").body["tools"][0]["function"]
    assert kept["required"] == ["all"]
    assert "required" not in gone["parameters"]
    asked = to("openai", asking(tools=[WEATHER]), model="gpt-4.1", required="keep").body["tools"][0]["function"]
    assert asked["parameters"]["required"] == ["location", "units"]
    assert asked["strict"] is False


@pytest.mark.parametrize("target", ["groq", "deepseek", "ollama", "gemini", "bedrock"])
def test_R_002_1_strict_is_left_out_where_the_target_refuses_it(target: str) -> None:
    assert '"strict"' not in to(target, asking(tools=[WEATHER])).data.decode()


def test_R_002_10_ids_go_to_the_prefix_of_the_target_and_pair() -> None:
    body = asking({"role": "user", "content": "hi"}, *calling("toolu_abc123", "toolu_def456"), tools=[WEATHER])
    chat = to("openai", body, model="gpt-4.1").body["messages"]
    assert [call["id"] for call in chat[1]["tool_calls"]] == ["call_abc123", "call_def456"]
    assert [message["tool_call_id"] for message in chat[2:]] == ["call_abc123", "call_def456"]
    items = to("openai_responses", body, model="gpt-5.2").body["input"]
    assert [item["call_id"] for item in items[1:]] == ["call_abc123", "call_def456"] * 2
    assert not any("id" in item for item in items)


def test_R_002_9_R_002_T3_clasp_ids_are_an_option() -> None:
    body = asking({"role": "user", "content": "hi"}, *calling("toolu_abc123"), tools=[WEATHER])
    items = to("openai_responses", body, model="gpt-5.2", responses_id_style="clasp").body["input"]
    assert [item["call_id"] for item in items[1:]] == ["fc_abc123", "fc_abc123"]


@pytest.mark.parametrize(
    ("said", "chat", "responses"),
    [
        ({"type": "auto"}, "auto", "auto"),
        ({"type": "any"}, "required", "required"),
        ({"type": "none"}, "none", "none"),
        (
            {"type": "tool", "name": "get_weather"},
            {"type": "function", "function": {"name": "get_weather"}},
            {"type": "function", "name": "get_weather"},
        ),
    ],
)
def test_R_002_12_the_tool_choice_table(said: Fields, chat: Any, responses: Any) -> None:
    body = asking(tools=[WEATHER], tool_choice=said)
    assert to("openai", body, model="gpt-4.1").body["tool_choice"] == chat
    assert to("openai_responses", body, model="gpt-5.2").body["tool_choice"] == responses


@pytest.mark.parametrize(
    ("choice", "written"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "get_weather"}, {"type": "function", "function": {"name": "get_weather"}}),
    ],
)
def test_R_002_12_R_002_T6_the_table_to_the_letter_is_an_option(choice: Fields, written: Any) -> None:
    body = asking(tools=[WEATHER], tool_choice=choice)
    out = to("openai_responses", body, model="gpt-5.2", responses_id_style="clasp")
    assert out.body["tool_choice"] == written


@pytest.mark.parametrize(
    ("target", "read"),
    [
        ("openai_responses", {"type": "function", "name": "get_weather"}),
        ("openai", {"type": "function", "function": {"name": "get_weather"}}),
        ("anthropic", {"type": "tool", "name": "get_weather"}),
    ],
)
def test_R_002_12_a_nested_choice_and_nested_tools_are_read_as_responses_input(target: str, read: Fields) -> None:
    function = {"name": "get_weather", "description": "Get weather", "parameters": FILTERED, "strict": False}
    body = {
        "model": "gpt-5.2",
        "input": "hi",
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
    }
    out = to(target, body, source="openai_responses", model="gpt-5.2" if "openai" in target else "claude-sonnet-4-6")
    assert out.body["tool_choice"] == read
    assert not toolglot.lint(out.body, target=target)
    assert {entry.path for entry in out.report} >= {"$.tools[0].function", "$.tool_choice.function"}


@pytest.mark.parametrize("target", ["openai", "anthropic", "gemini"])
def test_R_002_12_what_the_option_writes_is_read_as_responses_input(target: str) -> None:
    asked = asking(tools=[WEATHER], tool_choice={"type": "tool", "name": "get_weather"})
    written = to("openai_responses", asked, model="gpt-5.2", responses_id_style="clasp").body
    out = to(target, written, source="openai_responses")
    direct = to(target, asked)
    for key in ("tool_choice", "toolConfig"):
        assert out.body.get(key) == direct.body.get(key)


def test_R_002_15_arguments_are_one_json_text() -> None:
    body = asking({"role": "user", "content": "hi"}, *calling("toolu_1"), tools=[WEATHER])
    (call,) = to("openai", body, model="gpt-4.1").body["messages"][1]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"location": "Rome"}


def test_R_002_16_a_format_that_the_target_does_not_know_moves_into_the_description() -> None:
    schema = {"type": "object", "properties": {"at": {"type": "string", "format": "uri"}}}
    out = to("gemini", asking(tools=[{"name": "t", "input_schema": schema}]))
    assert '"format"' not in out.data.decode()
    assert "uri" in out.data.decode()
    assert any(entry.action == "lowered" for entry in out.report)


OPENAI_FORMATS = ("date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")


@pytest.mark.parametrize("target", ["openai", "openai_responses"])
def test_R_002_16_a_format_stays_for_openai_and_goes_where_the_user_says_so(target: str) -> None:
    schema = {"type": "object", "properties": {"u": {"type": "string", "format": "uri"}}}
    body = asking(tools=[{"name": "t", "input_schema": schema}])
    assert '"format":"uri"' in to(target, body, model="gpt-4.1").data.decode()
    listed = toolglot.profiles.Overrides(
        f'[profiles.{target}.rules]\n"schema.formats" = {json.dumps(list(OPENAI_FORMATS))}'
    )
    out = convert(body, source="anthropic", target=target, model="gpt-4.1", overrides=listed)
    assert '"format"' not in out.data.decode()
    assert "format: uri" in out.data.decode()
    assert "format: this format is not accepted; moved into the description" in [entry.reason for entry in out.report]


@pytest.mark.parametrize("target", ["openai", "openai_responses"])
def test_R_002_16_a_strict_tool_loses_a_format_that_strict_mode_refuses(target: str) -> None:
    schema = {
        "type": "object",
        "properties": {"u": {"type": "string", "format": "uri"}},
        "required": ["u"],
        "additionalProperties": False,
    }
    out = to(target, asking(tools=[{"name": "t", "input_schema": schema, "strict": True}]), model="gpt-4.1")
    tool = out.body["tools"][0].get("function", out.body["tools"][0])
    assert "format" not in tool["parameters"]["properties"]["u"] or not tool["strict"]


HALVES = (
    b'{"model":"gpt-4.1","messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"tool_calls":['
    b'{"id":"c\\ud800","type":"function","function":{"name":"f","arguments":"{\\"n\\":1}"}},'
    b'{"id":"c\\uD801","type":"function","function":{"name":"f","arguments":"{\\"n\\":2}"}}]},'
    b'{"role":"tool","tool_call_id":"c\\ud801","content":"two"},{"role":"tool","tool_call_id":"c\\ud800","content":"one"}]}'
)


@pytest.mark.parametrize("body", [HALVES, json.loads(HALVES)])
@pytest.mark.parametrize(("target", "model"), [("anthropic", "claude-sonnet-4-6"), ("openai", "gpt-4.1")])
def test_R_001_5_results_of_ids_that_differ_in_half_a_surrogate_stay_with_their_calls(
    body: Any, target: str, model: str
) -> None:
    messages = convert(body, source="openai", target=target, model=model).body["messages"]
    if target == "openai":
        calls = {call["id"]: json.loads(call["function"]["arguments"])["n"] for call in messages[1]["tool_calls"]}
        found = {calls[message["tool_call_id"]]: message["content"] for message in messages[2:]}
    else:
        calls = {call["id"]: call["input"]["n"] for call in messages[1]["content"]}
        found = {calls[result["tool_use_id"]]: result["content"] for result in messages[2]["content"]}
    assert found == {1: "one", 2: "two"}


# --- bytes and reports ------------------------------------------------------------------------------


def test_law_3_a_request_that_goes_home_unchanged_is_forwarded_byte_for_byte() -> None:
    data = b'{ "model":"claude-sonnet-4-6", "max_tokens":9,"messages":[{"role":"user","content":"h\\u0069"}],"new":1.0}'
    out = convert(data, source="anthropic", target="anthropic")
    assert out.data is data
    assert not out.report.entries


def test_a_model_that_is_asked_for_replaces_the_requests_own() -> None:
    out = convert(asking(), source="anthropic", target="anthropic", model="claude-opus-4-6")
    assert out.body["model"] == out.model == "claude-opus-4-6"


def test_fields_that_have_no_place_are_told_once_with_how_often() -> None:
    marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    body = asking({"role": "user", "content": [marked, marked]}, service_tier="auto")
    told = [str(entry) for entry in to("openai", body, model="gpt-4.1").report]
    assert sum("cache_control" in entry for entry in told) == 1
    assert any("(2 times)" in entry for entry in told)
    assert any("service_tier" in entry for entry in told)


def test_what_the_address_says_elsewhere_is_told_to_the_caller() -> None:
    out = to("gemini", asking(stream=True), model="gemini-3-pro")
    assert out.stream is True
    assert out.model == "gemini-3-pro"
    assert "stream" not in out.body


# --- tools that were seen before --------------------------------------------------------------------


@pytest.mark.parametrize("value", [1, True, 1.0, False, 0, None, "1"])
@pytest.mark.parametrize("before", [1, True, 1.0, False, 0])
def test_tools_that_differ_only_in_the_type_of_a_value_are_not_taken_for_each_other(before: Any, value: Any) -> None:
    for default in (before, value):
        schema = {"type": "object", "properties": {"n": {"default": default}}, "required": []}
        out = to("openai", asking(tools=[{"name": "count", "input_schema": schema}]), model="gpt-4.1")
        (tool,) = json.loads(out.data)["tools"]
        written = tool["function"]["parameters"]["properties"]["n"]["default"]
        assert (type(written), written) == (type(default), default)


def test_a_schema_with_a_number_of_more_than_64_bits_is_fitted_as_others_are() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 2**70}}}
    out = to("openai", asking(tools=[{"name": "count", "input_schema": schema}]), model="gpt-4.1")
    assert out.body["tools"][0]["function"]["parameters"]["properties"]["n"]["maximum"] == 2**70


def test_tools_that_no_request_could_hold_are_refused() -> None:
    conversation = toolglot.Conversation((toolglot.Turn("user", (toolglot.Text("hi"),)),))
    half = msgspec.structs.replace(conversation, tools=(toolglot.ToolSpec("f", "half of a pair: \ud83d"),))
    with pytest.raises(toolglot.InputError, match=r"\$\.tools: the tools cannot be written as JSON"):
        render(half, toolglot.profiles.get("openai", "gpt-4.1"))


# --- names, namespaces, free text -------------------------------------------------------------------


def test_E4_illegal_names_are_renamed_everywhere_and_told() -> None:
    name = "files/read.all"
    tool = {**WEATHER, "name": name}
    body = asking(
        {"role": "user", "content": "hi"},
        *calling("toolu_1", name=name),
        tools=[tool],
        tool_choice={"type": "tool", "name": name},
    )
    out = to("openai", body, model="gpt-4.1")
    emitted = out.body["tools"][0]["function"]["name"]
    assert emitted != name
    assert out.body["tool_choice"]["function"]["name"] == emitted
    assert out.body["messages"][1]["tool_calls"][0]["function"]["name"] == emitted
    assert any(entry.action == "renamed" and entry.fault == "projection" for entry in out.report)


def test_E7_tools_beyond_the_limit_go_but_for_those_that_are_used() -> None:
    tools = [{**WEATHER, "name": f"tool_{number}"} for number in range(140)]
    body = asking({"role": "user", "content": "hi"}, *calling("toolu_1", name="tool_139"), tools=tools)
    out = to("openai", body, model="gpt-4.1")
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


def test_E8_a_flat_name_that_is_taken_is_not_given_to_a_namespaced_tool() -> None:
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
        to("openai", asking(tools=[WEATHER, SEARCH]))
    assert refused.value.path == "$.tools[1]"
    assert "web_search_20250305" in refused.value.message
    assert "server_tools" in refused.value.hint


def test_a_server_tool_is_left_out_where_the_policy_says_so_and_that_is_told() -> None:
    out = to("openai", asking(tools=[WEATHER, SEARCH]), model="gpt-4.1", server_tools="drop")
    assert [tool["function"]["name"] for tool in out.body["tools"]] == ["get_weather"]
    assert any(entry.action == "dropped" and "web_search" in entry.reason for entry in out.report)


@pytest.mark.parametrize(
    ("type", "name"),
    [("bash_20250124", "bash"), ("text_editor_20250728", "str_replace_based_edit_tool"), ("memory_20250818", "memory")],
)
def test_a_tool_that_the_client_runs_becomes_a_function(type: str, name: str) -> None:
    out = to("openai", asking(tools=[{"type": type, "name": name}]), model="gpt-4.1")
    function = out.body["tools"][0]["function"]
    assert function["name"] == name
    assert "command" in function["parameters"]["properties"]
    assert any(entry.action == "converted" and type in entry.reason for entry in out.report)


def test_a_server_tool_at_home_is_carried_whatever_its_type() -> None:
    body = asking(tools=[{"type": "brand_new_20270101", "name": "brand_new"}])
    out = convert(body, source="anthropic", target="anthropic")
    assert out.body == body
    assert not out.report.entries


# --- tool choice ------------------------------------------------------------------------------------


def test_E9_a_forced_tool_that_the_target_refuses_is_the_only_one_it_is_told_of() -> None:
    body = asking(tools=[WEATHER, {**WEATHER, "name": "other"}], tool_choice={"type": "tool", "name": "get_weather"})
    out = to("glm", body)
    assert [tool["function"]["name"] for tool in out.body["tools"]] == ["get_weather"]
    assert out.body["tool_choice"] == "auto"
    assert any(entry.action == "converted" and "named" in entry.reason for entry in out.report)


def test_E10_a_target_without_none_is_told_of_no_tools() -> None:
    out = to("glm", asking(tools=[WEATHER], tool_choice={"type": "none"}))
    assert "tools" not in out.body
    assert "tool_choice" not in out.body


def test_a_target_that_needs_its_tools_declared_keeps_them_without_a_choice() -> None:
    body = asking({"role": "user", "content": "hi"}, *calling("toolu_1"), tools=[WEATHER], tool_choice={"type": "none"})
    out = to("bedrock", body, model="anthropic.claude-sonnet-4-6")
    assert len(out.body["toolConfig"]["tools"]) == 1
    assert any("cannot be forbidden" in entry.reason for entry in out.report)


# --- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"x"', b"\xff", "nonsense", b"[" * 100_000, 5, None])
def test_what_is_no_json_object_is_refused(body: Any) -> None:
    with pytest.raises(toolglot.InputError):
        convert(body, source="anthropic", target="openai")


def test_half_a_surrogate_pair_is_mended() -> None:
    data = b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"\\ud800"}]}'
    assert "\ufffd" in convert(data, source="anthropic", target="openai").data.decode()


def test_a_wrong_field_is_told_in_the_clients_own_shape_with_its_path() -> None:
    with pytest.raises(toolglot.InputError) as refused:
        convert({"model": "m", "messages": [{"role": "user", "content": 5}]}, source="anthropic", target="openai")
    error = toolglot.error_for(refused.value, target="anthropic")
    assert error.status == 400
    assert error.body["error"]["type"] == "invalid_request_error"
    assert "$.messages[0].content" in error.body["error"]["message"]


def test_an_object_that_is_no_json_is_made_plain() -> None:
    circle: list[Any] = []
    circle.append(circle)
    out = convert(asking(metadata={"user_id": "u", "x": object(), "y": circle}), source="anthropic", target="anthropic")
    assert b"user_id" in out.data


# --- what is assumed, and what is told --------------------------------------------------------------


def test_a_model_of_another_provider_that_is_kept_is_told() -> None:
    out = convert(asking(), source="anthropic", target="openai")
    assert any(entry.action == "assumed" and "claude-sonnet-4-6" in entry.reason for entry in out.report)


def test_repair_tells_the_ids_that_it_replaced_and_lists_all_ids() -> None:
    body = asking({"role": "user", "content": "hi"}, *calling("toolu_1"), *calling("toolu_1"), tools=[WEATHER])
    out = toolglot.repair(body, target="anthropic")
    (entry,) = [entry for entry in out.report if entry.action == "replaced"]
    assert "toolu_1" in entry.reason
    assert entry.native_ids == ("toolu_1",)
    assert entry.fault == "projection"
    assert len(out.report.ids.canonical) == len(out.report.ids.calls) == len(out.report.ids.results) == 2
    assert out.report.ids.format == "toolu_…"
    assert toolglot.lint(out.body, "anthropic") == ()


def test_law_10_a_clean_report_lists_the_ids_too() -> None:
    body = asking({"role": "user", "content": "hi"}, *calling("toolu_1"), tools=[WEATHER])
    out = toolglot.repair(body, target="anthropic")
    assert not out.report.entries
    assert out.report.summary == "nothing was changed"
    assert out.report.ids.calls == ("toolu_1",)
    assert out.report.ids.canonical[0].startswith("hist_tool_")


def test_an_entry_says_in_which_turn_and_with_the_clients_own_ids() -> None:
    (asked, _) = calling("toolu_1")
    body = asking({"role": "user", "content": "hi"}, asked, {"role": "user", "content": "and?"}, tools=[WEATHER])
    out = toolglot.repair(body, target="anthropic")
    entry = next(entry for entry in out.report if entry.action == "added")
    assert entry.native_ids == ("toolu_1",)
    assert "[toolu_1]" in str(entry)
    assert entry.turn == 1
    assert not [entry for entry in out.report if entry.action == "moved"]


def test_any_mapping_is_a_body() -> None:
    assert convert(MappingProxyType(asking()), source="anthropic", target="openai", model="gpt-4.1").body["messages"]


def test_parts_of_a_result_that_become_one_text_stay_lines() -> None:
    parts = [{"type": "text", "text": "line one"}, {"type": "text", "text": "line two"}]
    (asked, answered) = calling("toolu_1")
    answered["content"][0]["content"] = parts
    out = to(
        "gemini", asking({"role": "user", "content": "hi"}, asked, answered, tools=[WEATHER]), model="gemini-3-pro"
    )
    assert "line one\\nline two" in out.data.decode()


# --- hostile input ----------------------------------------------------------------------------------


def test_what_is_written_to_a_converted_body_reaches_no_other() -> None:
    for body in (
        asking(tools=[{"type": "bash_20250124", "name": "bash"}]),
        asking({"role": "user", "content": "hi"}, *calling("toolu_1")),
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
    said = '{"role":"assistant","content":[' + block + "]}"
    data = '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"},' + said + "]}"
    with contextlib.suppress(toolglot.LimitError):
        out = convert(data, source="anthropic", target=target)
        assert str(out.report)
        assert out.report.ids.calls == ()


def test_parts_that_are_shared_do_not_multiply() -> None:
    schema: Fields = {"type": "string"}
    for _ in range(60):
        schema = {"type": "object", "properties": {"a": schema, "b": schema}}
    with pytest.raises(toolglot.LimitError):
        convert(asking(tools=[{"name": "t", "input_schema": schema}]), source="anthropic", target="openai")


# --- what a strict reading refuses ------------------------------------------------------------------


@pytest.mark.parametrize("id", [None, 7])
def test_B7_ids_that_are_null_or_numbers_are_read_as_meant_and_told(id: Any) -> None:
    (asked, answered) = calling("x")
    asked["content"][0]["id"] = answered["content"][0]["tool_use_id"] = id
    out = toolglot.repair(
        asking({"role": "user", "content": "hi"}, asked, answered, tools=[WEATHER]), target="anthropic"
    )
    assert toolglot.lint(out.body, "anthropic") == ()
    assert [entry.path for entry in out.report if entry.action == "converted"] == [
        "$.messages[1].content[0].id",
        "$.messages[2].content[0].tool_use_id",
    ]
    assert "72" in out.data.decode()


@pytest.mark.parametrize(
    ("given", "meant"), [("", {}), (None, {}), ("x", {"_raw": "x"}), ([1], {"_raw": [1]}), ('{"a":1}', {"a": 1})]
)
def test_F3_arguments_that_are_no_object_are_made_one_and_told(given: Any, meant: Fields) -> None:
    (asked, answered) = calling("toolu_1")
    asked["content"][0]["input"] = given
    out = toolglot.repair(
        asking({"role": "user", "content": "hi"}, asked, answered, tools=[WEATHER]), target="anthropic"
    )
    assert out.body["messages"][1]["content"][0]["input"] == meant
    assert any(entry.path == "$.messages[1].content[0].input" for entry in out.report)


def test_B6_a_call_that_stands_in_the_content_too_is_one_call() -> None:
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


def test_what_nobody_could_mean_is_refused_with_the_first_complaint() -> None:
    (asked, answered) = calling("toolu_1")
    asked["content"][0]["id"] = None
    asked["content"].append({"type": "text", "text": 5})
    with pytest.raises(toolglot.InputError) as refused:
        toolglot.repair(asking(asked, answered), target="anthropic")
    assert refused.value.path == "$.messages[0].content[0].id"


# --- what only the provider has ---------------------------------------------------------------------


@pytest.mark.parametrize("field", ["previous_response_id", "conversation"])
def test_law_3_a_request_that_continues_what_its_provider_stored_goes_home_as_it_is(field: str) -> None:
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


def test_law_3_a_result_whose_call_is_a_reference_goes_home_as_it_is() -> None:
    body = msgspec.json.encode(REFERRING)
    out = toolglot.convert(body, source="openai_responses", target="openai_responses")
    assert out.data is body
    assert [(entry.action, entry.gravity) for entry in out.report] == [("assumed", "housekeeping")]


@pytest.mark.parametrize("target", ["openai", "anthropic", "gemini"])
def test_a_reference_to_what_only_its_provider_has_is_refused_by_name_elsewhere(target: str) -> None:
    with pytest.raises(toolglot.StoredHistoryError, match="only openai_responses has stored") as raised:
        toolglot.convert(REFERRING, source="openai_responses", target=target, model="m")
    assert raised.value.path == "$.input[1]"


def test_a_stored_prompt_without_input_goes_home_only() -> None:
    body = msgspec.json.encode({"prompt": {"id": "pmpt_1"}})
    assert toolglot.convert(body, source="openai_responses", target="openai_responses").data is body
    with pytest.raises(toolglot.StoredHistoryError):
        toolglot.convert(body, source="openai_responses", target="anthropic", model="claude-sonnet-4-5")


def test_anthropics_clients_are_told_to_send_the_whole_thread() -> None:
    body = {
        "model": "claude-opus-5",
        "max_tokens": 9,
        "thread": {"type": "continue", "id": "t"},
        "messages": [{"role": "user", "content": "x"}],
    }
    with pytest.raises(toolglot.StoredHistoryError) as raised:
        toolglot.convert(body, source="anthropic", target="openai", model="gpt-4.1")
    told = toolglot.error_for(raised.value, target="anthropic")
    assert told.status == 400
    assert told.body["error"]["details"]["error_code"] == "thread_unsupported_request"


def test_a_stream_of_another_protocol_is_asked_what_it_costs() -> None:
    body = {"model": "c", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "x"}]}
    asked = toolglot.convert(body, source="anthropic", target="openai", model="gpt-4.1")
    assert asked.body["stream_options"] == {"include_usage": True}
    always = toolglot.convert(body, source="anthropic", target="mistral", model="mistral-large-latest")
    assert "stream_options" not in always.body
    home = {"model": "gpt-4.1", "stream": True, "messages": [{"role": "user", "content": "x"}]}
    assert toolglot.convert(home, source="openai", target="openai").body == home


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


def test_a_spare_server_tool_is_left_out_and_one_that_is_asked_for_is_refused() -> None:
    out = to("openai", asking(tools=[WEATHER, SEARCH]), model="gpt-4.1", server_tools="spare")
    assert [tool["function"]["name"] for tool in out.body["tools"]] == [WEATHER["name"]]
    assert any(entry.action == "dropped" for entry in out.report)
    forced = {"type": "tool", "name": SEARCH["name"]}
    for body in (asking(tools=[SEARCH]), asking(tools=[WEATHER, SEARCH], tool_choice=forced)):
        with pytest.raises(toolglot.ServerToolError, match="runs itself"):
            to("openai", body, model="gpt-4.1", server_tools="spare")


def test_a_body_that_is_changed_at_its_own_provider_keeps_the_order_of_its_fields() -> None:
    body = {"stream": False, "temperature": -0.5, "model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi"}]}
    out = convert(json.dumps(body), source="openai", target="openai")
    assert out.body == body | {"temperature": 0}
    assert [*out.body] == [*body]
