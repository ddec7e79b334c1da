"""Changes of requests that were once made in silence: each has its entry, of the right gravity."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolglot import convert, profiles, repair
from toolglot.protocols.base import codec

USER = {"role": "user", "content": "Read a.txt"}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("read", "write", "list")
]
Fields = dict[str, Any]


def chat(*messages: Fields, **fields: Any) -> Fields:
    return {"model": "m", "messages": [USER, *messages], "tools": TOOLS, **fields}


def call_and_result(arguments: str) -> tuple[Fields, Fields]:
    made = {"id": "call_a", "type": "function", "function": {"name": "read", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [made]}, {
        "role": "tool",
        "tool_call_id": "call_a",
        "content": "x",
    }


def forced(source: str) -> Any:
    if source == "gemini":
        return {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read", "write"]}}
    if source == "openai_responses":
        tools = [{"type": "function", "name": name} for name in ("read", "write")]
        return {"type": "allowed_tools", "mode": "required", "tools": tools}
    named = [{"type": "function", "function": {"name": name}} for name in ("read", "write")]
    return {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": named}}


BODIES: dict[str, Fields] = {
    "openai": chat(tool_choice=forced("openai")),
    "openai_responses": {
        "model": "m",
        "input": "Hi",
        "tools": [{"type": "function", **tool["function"], "strict": False} for tool in TOOLS],  # type: ignore[dict-item]
        "tool_choice": forced("openai_responses"),
    },
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "tools": [{"functionDeclarations": [tool["function"] for tool in TOOLS]}],
        "toolConfig": forced("gemini"),
    },
}
MODELS = {"openai": "gpt-5.1", "openai_responses": "gpt-5.2", "gemini": "gemini-3-pro"}


@pytest.mark.parametrize("source", BODIES)
@pytest.mark.parametrize("target", BODIES)
def test_a_choice_that_forces_one_of_several_tools_stays_one_where_there_is_a_form_for_it(
    source: str, target: str
) -> None:
    out = convert(BODIES[source], source=source, target=target, model=MODELS[target])
    assert out.body["toolConfig" if target == "gemini" else "tool_choice"] == forced(target)
    assert not [entry for entry in out.report if entry.path == "$.tool_choice"]


@pytest.mark.parametrize(
    ("target", "model", "written"),
    [
        ("anthropic", "claude-sonnet-4-6", {"type": "any"}),
        ("mistral", "mistral-large-latest", "required"),
    ],
)
def test_elsewhere_only_the_tools_of_a_forced_choice_are_offered_and_one_is_required(
    target: str, model: str, written: Any
) -> None:
    out = convert(BODIES["openai"], source="openai", target=target, model=model)
    assert out.body["tool_choice"] == written
    assert len(out.body["tools"]) == 2
    (entry,) = [entry for entry in out.report if entry.path == "$.tool_choice"]
    assert entry.gravity == "change"


def test_a_forced_choice_that_becomes_auto_is_a_loss() -> None:
    out = convert(BODIES["openai"], source="openai", target="kimi", model="kimi-k2-thinking")
    assert out.body["tool_choice"] == "auto"
    assert [entry.gravity for entry in out.report if entry.path == "$.tool_choice"] == ["loss"]


@pytest.mark.parametrize("choice", [{"type": "brand_new"}, "weird"])
def test_an_unknown_tool_choice_goes_to_its_own_provider_and_is_a_loss_elsewhere(choice: Any) -> None:
    body = chat(tool_choice=choice)
    native = convert(body, source="openai", target="openai", model="m")
    assert native.body["tool_choice"] == choice
    assert not native.report.losses
    for target, model in (("anthropic", "claude-sonnet-4-6"), ("openai_responses", "gpt-5.2"), ("mistral", "m")):
        lost = convert(body, source="openai", target=target, model=model).report.losses
        assert [entry.path for entry in lost] == ["$.tool_choice"], target


@pytest.mark.parametrize(
    ("arguments", "words", "gravity"),
    [
        (json.dumps('{"path": "a"}'), "JSON in a string", "change"),
        ("", "without arguments", "housekeeping"),
        ('{"path": "a", "path": "b"}', "'path' more than once", "loss"),
        ('{"path": "\\ud83d"}', "a lone surrogate", "loss"),
    ],
)
def test_arguments_that_are_not_sent_as_they_were_written_are_reported(
    arguments: str, words: str, gravity: str
) -> None:
    report = convert(
        chat(*call_and_result(arguments)), source="openai", target="anthropic", model="claude-sonnet-4-6"
    ).report
    (entry,) = [entry for entry in report if words in entry.reason]
    assert entry.gravity == gravity
    assert entry.native_ids == ("call_a",)


def test_arguments_with_other_spaces_are_the_same() -> None:
    report = convert(chat(*call_and_result('{ "path":  "a" }')), source="openai", target="anthropic", model="m").report
    assert not [entry for entry in report if "argument" in entry.reason]


def test_a_duplicate_key_is_reported_unless_the_very_bytes_are_sent() -> None:
    data = b'{"model": "m", "max_tokens": 5, "max_tokens": 6, "messages": [{"role": "user", "content": "Say \\"x\\""}]}'
    native = repair(data, target="anthropic", model="m")
    assert native.data == data
    assert str(native.report) == "nothing was changed"
    for body in (data, data.decode()):
        (lost,) = convert(body, source="anthropic", target="openai", model="gpt-4.1").report.losses
        assert "'max_tokens' occurs more than once" in lost.reason
    (lost,) = repair(data.decode(), target="anthropic", model="m").report.losses
    assert "max_tokens" in lost.reason


def test_half_a_character_in_a_body_is_reported_for_objects_and_bytes() -> None:
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "a \ud83d"}]}
    for form in (body, json.dumps(body).encode()):
        out = convert(form, source="anthropic", target="openai", model="gpt-4.1")
        assert out.body["messages"][0]["content"] == "a �"
        assert len(out.report.losses) == 1
    assert len(repair(body, target="anthropic").report.losses) == 1


def test_the_name_of_a_result_that_is_not_its_calls_is_reported() -> None:
    call, result = call_and_result("{}")
    assert not repair(chat(call, {**result, "name": "other"}), target="openai").report.entries  # which takes it
    for target, model in (("anthropic", "m"), ("gemini", "gemini-3-pro"), ("mistral", "m")):
        report = convert(chat(call, {**result, "name": "other"}), source="openai", target=target, model=model).report
        assert any("'other'" in entry.reason and entry.native_ids == ("call_a",) for entry in report), target


def test_unknown_fields_reach_an_unknown_host_and_are_reported_elsewhere() -> None:
    body = {"model": "m", "messages": [USER], "enable_thinking": False, "brand_new": 1}
    native = convert(body, source="openai_compatible", target="openai_compatible", model="m")
    assert native.body == body
    assert not native.report.entries
    for target in ("openai", "mistral", "gemini"):
        report = convert(body, source="openai_compatible", target=target, model="m").report
        assert any(entry.path == "$.brand_new" and entry.gravity == "loss" for entry in report), target
        assert any(entry.path == "$.reasoning" for entry in report), target


def test_ids_in_the_form_of_another_provider_are_one_entry_of_housekeeping() -> None:
    messages: list[Fields] = []
    for number in range(9):
        call, result = call_and_result("{}")
        call["tool_calls"][0]["id"] = result["tool_call_id"] = f"call_{number}"
        messages += [call, result]
    out = convert(chat(*messages), source="openai", target="anthropic", model="claude-sonnet-4-6")
    assert out.body["messages"][1]["content"][0]["id"] == "toolu_0"
    assert len([entry for entry in out.report if "call ids" in entry.reason]) == 1
    assert [entry.gravity for entry in out.report if "call ids" in entry.reason] == ["housekeeping"]


def test_a_cache_marker_on_a_tool_that_is_left_out_is_reported() -> None:
    tool = {"name": "read", "input_schema": {"type": "object"}}
    body = {
        "model": "m",
        "max_tokens": 5,
        "messages": [USER],
        "tools": [tool, {**tool, "cache_control": {"type": "ephemeral"}}],
    }
    report = repair(body, target="anthropic").report
    assert [entry.gravity for entry in report if "cache marker" in entry.reason] == ["housekeeping"]


def test_whether_to_think_is_a_loss_where_it_is_unknown_whether_the_host_thinks() -> None:
    body = {"model": "m", "messages": [USER], "enable_thinking": False}
    report = convert(body, source="qwen", target="openai_compatible", model="m").report
    assert [(entry.path, entry.gravity) for entry in report] == [("$.reasoning", "loss")]
    described = convert(body, source="qwen", target="openai", model="gpt-4.1").report
    assert [(entry.path, entry.gravity) for entry in described] == [("$.reasoning", "housekeeping")]


def test_a_budget_of_openrouter_stays_as_it_is_with_the_fields_beside_it() -> None:
    body = {
        "model": "anthropic/claude-sonnet-4.5",
        "messages": [USER],
        "reasoning": {"max_tokens": 2000, "exclude": True},
    }
    out = convert(body, source="openrouter", target="openrouter", model="anthropic/claude-sonnet-4.5")
    assert out.body == body
    assert str(out.report) == "nothing was changed"


def test_fields_beside_thinking_stay_where_only_its_amount_is_changed() -> None:
    thinking = {"type": "enabled", "budget_tokens": 2000, "display": "omitted"}
    body = {"max_tokens": 9000, "messages": [USER], "thinking": thinking, "output_config": {"effort": "high"}}
    out = repair(body, target="anthropic", model="claude-sonnet-4-5")
    assert out.body["thinking"] == thinking
    assert "effort" not in out.body.get("output_config", {})


@pytest.mark.parametrize(
    ("target", "body"),
    [
        ("openai", {"model": "m", "messages": [{**USER, "~content": "parts", "~system": "top"}], "max_tokens": 5}),
        ("anthropic", {"model": "m", "messages": [{**USER, "~content": "parts"}], "max_tokens": 5}),
        ("gemini", {"contents": [{"role": "user", "parts": [{"text": "Hi", "~snake": {"text": "words"}}]}]}),
        ("bedrock", {"messages": [{"role": "user", "content": [{"text": "Hi", "~worded": {"text": "no"}}]}]}),
        ("cohere", {"model": "m", "messages": [{**USER, "~content": "parts", "~calls": []}]}),
        ("ollama", {"model": "m", "messages": [{**USER, "~content": "none"}], "stream": False}),
        ("openai_responses", {"model": "m", "input": [{**USER, "~content": "text", "~untyped": False}]}),
    ],
)
def test_a_field_with_a_tilde_stays_in_its_protocol_and_is_reported_elsewhere(target: str, body: Fields) -> None:
    fields = {**body, "~limit": "max_completion_tokens", "~tools": [1], "~text": {"a": 1}, "~~odd": 1, "~own": {"a": 1}}
    profile = profiles.get(target)
    request = codec(profile.protocol).request
    assert request.encode(request.decode(fields), profile) == fields
    other = "anthropic" if target == "openai" else "openai"
    reported = {entry.path for entry in convert(fields, source=target, target=other, model="m").report}
    assert {"$.~limit", "$.~tools", "$.~text", "$.~~odd", "$.~own"} <= reported


def test_image_detail_and_verbosity_are_carried_between_protocols_that_have_both() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"}}
    messages = [{"role": "user", "content": [picture]}]
    from_cohere = convert({"model": "m", "messages": messages}, source="cohere", target="openai", model="gpt-5")
    assert from_cohere.body["messages"] == messages
    body = {"model": "gpt-5", "messages": messages, "verbosity": "low"}
    there = convert(body, source="openai", target="openai_responses", model="gpt-5")
    assert there.body["text"] == {"verbosity": "low"}
    assert there.body["input"][0]["content"][0]["detail"] == "low"
    back = convert(there.body, source="openai_responses", target="openai", model="gpt-5")
    assert back.body == body
    assert [str(out.report) for out in (from_cohere, there, back)] == ["nothing was changed"] * 3


def test_the_description_of_an_output_schema_is_carried_between_protocols_that_have_one() -> None:
    schema = {"type": "object", "properties": {}}
    inner = {"name": "x", "description": "The answer.", "schema": schema}
    body = {"model": "gpt-5", "messages": [USER], "response_format": {"type": "json_schema", "json_schema": inner}}
    responses = convert(body, source="openai", target="openai_responses", model="gpt-5").body
    assert responses["text"]["format"]["description"] == "The answer."
    again = convert(responses, source="openai_responses", target="bedrock", model="anthropic.claude-sonnet-4-5").body
    assert again["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["description"] == "The answer."
    native = convert(again, source="bedrock", target="openai", model="gpt-5").body
    assert native["response_format"]["json_schema"]["description"] == "The answer."


@pytest.mark.parametrize("target", ["mistral", "groq", "deepseek", "cohere", "ollama"])
def test_an_empty_demand_for_a_web_search_is_reported_where_it_is_lost(target: str) -> None:
    out = convert({"model": "m", "messages": [USER], "web_search_options": {}}, source="openai", target=target)
    assert "web_search_options" not in out.body
    assert [entry.gravity for entry in out.report if entry.path == "$.web_search_options"] == ["loss"]


@pytest.mark.parametrize("target", ["anthropic", "gemini", "openai_responses"])
def test_a_web_search_that_the_target_runs_is_not_reported_as_lost(target: str) -> None:
    body = {"model": "m", "messages": [USER], "web_search_options": {"search_context_size": "low"}}
    out = convert(body, source="openai", target=target)
    assert len(out.body["tools"]) == 1
    assert "$.web_search_options" not in {entry.path for entry in out.report}
