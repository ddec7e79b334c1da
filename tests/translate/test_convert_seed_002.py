"""`convert` as seed 002 demands: tools, the required filter, tool choices, ids and formats (R-002-*)."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolglot
from support.translate.weather_requests import WEATHER, Fields, call_and_result, claude_body, convert_to
from toolglot import convert

FILTERED = {**WEATHER["input_schema"], "required": ["location"]}


def test_R_002_1_tools_from_anthropic_to_chat_are_functions_that_are_not_strict() -> None:
    out = convert_to("openai", claude_body(tools=[WEATHER]), model="gpt-4.1")
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
    out = convert_to("openai_responses", claude_body(tools=[WEATHER]), model="gpt-5.2")
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
    out = convert_to("openai_responses", claude_body(tools=[WEATHER]), model="gpt-5.2", responses_id_style="clasp")
    (tool,) = out.body["tools"]
    assert tool["function"] == {
        "name": "get_weather",
        "description": "Get current weather for a location",
        "parameters": FILTERED,
        "strict": False,
    }
    assert tool["name"] == "get_weather"
    assert tool["parameters"] == FILTERED


def test_R_002_3_filtered_required_names_are_reported_with_their_reason() -> None:
    out = convert_to("openai", claude_body(tools=[WEATHER]), model="gpt-4.1")
    (entry,) = [entry for entry in out.report if entry.action == "filtered"]
    assert "units is no longer required" in entry.reason
    assert entry.fault == "policy"


@pytest.mark.parametrize(
    ("source", "target"), [("openai", "anthropic"), ("anthropic", "gemini"), ("openai", "openai_responses")]
)
def test_R_002_3_required_names_are_filtered_from_anthropic_to_openai_only(source: str, target: str) -> None:
    function = {"name": "w", "parameters": WEATHER["input_schema"]}
    tools = [WEATHER] if source == "anthropic" else [{"type": "function", "function": function}]
    out = convert_to(target, claude_body(tools=tools), source=source)
    assert not [entry for entry in out.report if entry.action == "filtered"]


def test_R_002_T1_aggressive_filtering_and_none_are_options() -> None:
    schema = {"type": "object", "properties": {"all": {"type": "boolean"}}, "required": ["all"]}
    tool = {"name": "t", "input_schema": schema}
    kept = convert_to("openai", claude_body(tools=[tool]), model="gpt-4.1").body["tools"][0]["function"]["parameters"]
    gone = convert_to("openai", claude_body(tools=[tool]), model="gpt-4.1", required="aggressive").body["tools"][0][
        "function"
    ]
    assert kept["required"] == ["all"]
    assert "required" not in gone["parameters"]
    function = convert_to("openai", claude_body(tools=[WEATHER]), model="gpt-4.1", required="keep").body["tools"][0][
        "function"
    ]
    assert function["parameters"]["required"] == ["location", "units"]
    assert function["strict"] is False


@pytest.mark.parametrize("target", ["groq", "deepseek", "ollama", "gemini", "bedrock"])
def test_R_002_1_strict_is_left_out_where_the_target_refuses_it(target: str) -> None:
    assert '"strict"' not in convert_to(target, claude_body(tools=[WEATHER])).data.decode()


def test_R_002_10_ids_go_to_the_prefix_of_the_target_and_pair() -> None:
    body = claude_body(
        {"role": "user", "content": "hi"}, *call_and_result("toolu_abc123", "toolu_def456"), tools=[WEATHER]
    )
    chat = convert_to("openai", body, model="gpt-4.1").body["messages"]
    assert [call["id"] for call in chat[1]["tool_calls"]] == ["call_abc123", "call_def456"]
    assert [message["tool_call_id"] for message in chat[2:]] == ["call_abc123", "call_def456"]
    items = convert_to("openai_responses", body, model="gpt-5.2").body["input"]
    assert [item["call_id"] for item in items[1:]] == ["call_abc123", "call_def456"] * 2
    assert not any("id" in item for item in items)


def test_R_002_9_R_002_T3_clasp_ids_are_an_option() -> None:
    body = claude_body({"role": "user", "content": "hi"}, *call_and_result("toolu_abc123"), tools=[WEATHER])
    items = convert_to("openai_responses", body, model="gpt-5.2", responses_id_style="clasp").body["input"]
    assert [item["call_id"] for item in items[1:]] == ["fc_abc123", "fc_abc123"]


@pytest.mark.parametrize(
    ("choice", "chat", "responses"),
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
def test_R_002_12_the_tool_choice_table(choice: Fields, chat: Any, responses: Any) -> None:
    body = claude_body(tools=[WEATHER], tool_choice=choice)
    assert convert_to("openai", body, model="gpt-4.1").body["tool_choice"] == chat
    assert convert_to("openai_responses", body, model="gpt-5.2").body["tool_choice"] == responses


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
    body = claude_body(tools=[WEATHER], tool_choice=choice)
    out = convert_to("openai_responses", body, model="gpt-5.2", responses_id_style="clasp")
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
    out = convert_to(
        target, body, source="openai_responses", model="gpt-5.2" if "openai" in target else "claude-sonnet-4-6"
    )
    assert out.body["tool_choice"] == read
    assert not toolglot.lint(out.body, target=target)
    assert {entry.path for entry in out.report} >= {"$.tools[0].function", "$.tool_choice.function"}


@pytest.mark.parametrize("target", ["openai", "anthropic", "gemini"])
def test_R_002_12_what_the_option_writes_is_read_as_responses_input(target: str) -> None:
    body = claude_body(tools=[WEATHER], tool_choice={"type": "tool", "name": "get_weather"})
    written = convert_to("openai_responses", body, model="gpt-5.2", responses_id_style="clasp").body
    out = convert_to(target, written, source="openai_responses")
    direct = convert_to(target, body)
    for key in ("tool_choice", "toolConfig"):
        assert out.body.get(key) == direct.body.get(key)


def test_R_002_15_arguments_are_one_json_text() -> None:
    body = claude_body({"role": "user", "content": "hi"}, *call_and_result("toolu_1"), tools=[WEATHER])
    (call,) = convert_to("openai", body, model="gpt-4.1").body["messages"][1]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"location": "Rome"}


def test_R_002_16_a_format_that_the_target_does_not_know_moves_into_the_description() -> None:
    schema = {"type": "object", "properties": {"at": {"type": "string", "format": "uri"}}}
    out = convert_to("gemini", claude_body(tools=[{"name": "t", "input_schema": schema}]))
    assert '"format"' not in out.data.decode()
    assert "uri" in out.data.decode()
    assert any(entry.action == "lowered" for entry in out.report)


OPENAI_FORMATS = ("date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")


@pytest.mark.parametrize("target", ["openai", "openai_responses"])
def test_R_002_16_a_format_stays_for_openai_unless_the_user_overrides_it(target: str) -> None:
    schema = {"type": "object", "properties": {"u": {"type": "string", "format": "uri"}}}
    body = claude_body(tools=[{"name": "t", "input_schema": schema}])
    assert '"format":"uri"' in convert_to(target, body, model="gpt-4.1").data.decode()
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
    out = convert_to(
        target, claude_body(tools=[{"name": "t", "input_schema": schema, "strict": True}]), model="gpt-4.1"
    )
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
