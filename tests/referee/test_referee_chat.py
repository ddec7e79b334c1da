"""The referee on Chat Completions bodies: recordings, OpenAI's own definitions as a judge, and single readings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.referee.good_bodies import ONE, TWO, chat_call, chat_calling, chat_result, chat_rich, chat_tool, good
from support.referee.typed_judges import mutants, overlaid, sdk_refuses, shape_faults
from toolglot import lint, profiles

RECORDINGS = Path(__file__).parents[1] / "recordings" / "openai_chat"
RECORDED = {file.name.removesuffix(".request.json"): file for file in sorted(RECORDINGS.glob("*.request.json"))}
OPENAI = profiles.get("openai")

ILLEGAL: dict[str, dict[str, str]] = {
    "mistral_history": {"calls.arguments": "the profile cannot say that Mistral takes an object too"},
    "mistral_stream": {"calls.arguments": "the profile cannot say that Mistral takes an object too"},
    "mistral_media": {"turns.media": "only voxtral hears; the recording is of a large model"},
    "openai_media": {"turns.media": "only the audio models hear; the recording is of gpt-4.1"},
    "openai_reasoning": {
        "request.max_tokens_field": "a reasoning model refuses max_tokens",
        "reasoning.refused_sampling": "a reasoning model refuses stop",
    },
    "openai_tools_of_every_kind": {"schema.strict_all_required": "strict, and not all is required"},
    "openai_unknown_fields": {
        "request.unknown_fields": "the fields are unknown on purpose",
        "request.fields": "min_p is not one of OpenAI's",
        "request.sampling": "top_k is not one of OpenAI's",
    },
}
"""Recordings that their own target would refuse, or that the profile judges too strictly: the keys, and why."""


@pytest.mark.parametrize("name", RECORDED)
def test_a_recording_is_legal_at_its_own_target_or_explained(name: str) -> None:
    body = json.loads(RECORDED[name].read_text(encoding="utf-8"))
    found = lint(body, name.split("_", maxsplit=1)[0])
    assert {violation.key for violation in found} == set(ILLEGAL.get(name, {})), [str(violation) for violation in found]


DIFFERENCES = {
    r"delete model": "Azure has it in the address, llama.cpp does not need it",
    r"delete (tools|messages\[\*\]\.tool_calls)\[\*\]\.type": "to Mistral a missing one is function",
    r"delete response_format\.json_schema": "llama.cpp has the schema beside it",
    r"delete messages\[\*\]\.content\[\*\]\.file": "Mistral has the file's id beside it",
    r"type messages\[\*\]\.content\[\*\]\.input_audio": "Mistral writes audio as a plain text",
    r"(delete|type) web_search_options\.": "the inside of a hosted tool's settings is not looked at",
    r"type stream": "the definition has it in its subclasses",
}
"""Where OpenAI's definition and the reader differ: what was done to the body, and why."""

BASE = good("openai") + [
    json.loads(file.read_text(encoding="utf-8"))
    for name, file in RECORDED.items()
    if name.startswith("openai") and name != "openai_unknown_fields"
]


def test_good_bodies_have_the_shape_of_openais_definition() -> None:
    bodies = overlaid(BASE, 300)
    assert len(bodies) >= 300
    assert [body for body in bodies if sdk_refuses("openai", body)] == []
    assert [str(found) for body in bodies for found in shape_faults("openai", body)] == []


def test_wrong_shapes_are_refused_where_openais_definition_refuses_them() -> None:
    bodies = mutants(BASE, 1500)
    differing = [m.what for m in bodies if sdk_refuses("openai", m.body) != bool(shape_faults("openai", m.body))]
    unexplained = [what for what in differing if not any(re.match(pattern, what) for pattern in DIFFERENCES)]
    assert len(bodies) >= 300
    assert unexplained == []
    assert [pattern for pattern in DIFFERENCES if not any(re.match(pattern, what) for what in differing)] == []


# --- Single readings --------------------------------------------------------------------------------


def keys(body: Any, target: str = "openai") -> set[str]:
    return {found.key or found.rule for found in lint(body, target)}


def user(content: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": content}]}


@pytest.mark.parametrize(
    ("target", "setting", "key"),
    [
        ("qwen", {"enable_thinking": False, "tool_choice": "required"}, None),
        ("qwen", {"enable_thinking": True, "tool_choice": "required"}, "choice.while_thinking"),
        ("deepseek", {"thinking": {"type": "disabled"}, "tool_choice": "required"}, None),
        ("kimi", {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}, "reasoning.one_setting"),
        ("openrouter", {"reasoning": {"enabled": True, "effort": "high", "max_tokens": 100}}, None),
        ("openrouter", {"reasoning": {"effort": "odd"}}, "reasoning.efforts"),
        ("groq", {"enable_thinking": True}, "reasoning.switch"),
        ("deepseek", {"reasoning_effort": "none"}, "reasoning.efforts"),
    ],
)
def test_each_host_has_its_own_switch_for_thinking(target: str, setting: dict[str, Any], key: str | None) -> None:
    found = keys(user("Hi") | {"tools": [chat_tool()]} | setting, target)
    assert (key in found) if key else (found == set())


def allowed(name: str) -> dict[str, Any]:
    tools = [{"type": "function", "function": {"name": name}}]
    return {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": tools}}


@pytest.mark.parametrize(
    ("choice", "key"),
    [
        ("any", None),
        ("odd", "choice.modes"),
        ({"type": "function", "function": {"name": "get_weather"}}, None),
        ({"type": "function", "function": {"name": "no_such"}}, "choice.needs_tools"),
        ({"type": "custom", "custom": {"name": "free"}}, None),
        (allowed("get_weather"), None),
        (allowed("no_such"), "choice.needs_tools"),
        ({"type": "odd"}, "choice.modes"),
        (7, "shape"),
    ],
)
def test_a_choice_is_read_in_all_its_forms(choice: Any, key: str | None) -> None:
    tools = [chat_tool(), {"type": "custom", "custom": {"name": "free"}}]
    found = keys(user("Hi") | {"tools": tools, "tool_choice": choice})
    assert (key in found) if key else (found == set())


@pytest.mark.parametrize(
    ("part", "target", "key"),
    [
        ({"type": "image_url", "image_url": "https://example.com/a.png"}, "kimi", "turns.media_sources"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, "kimi", None),
        ({"type": "file", "file": {"file_id": "file-1"}}, "openai", None),
        ({"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA"}}, "azure", "turns.media"),
        ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, "openai", None),
        ({"type": "video_url", "video_url": {"url": "https://example.com/a.mp4"}}, "openai", "turns.media"),
        ({"type": "document_url", "document_url": "https://example.com/a.pdf"}, "mistral", None),
        ({"type": "image_embeds"}, "vllm", None),
        ({"type": "odd"}, "openai", "shape"),
        ({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, "groq", "request.cache_markers"),
        ({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, "openrouter", None),
    ],
)
def test_parts_are_read_by_kind_and_source(part: dict[str, Any], target: str, key: str | None) -> None:
    found = keys(user([part]), target)
    assert (key in found) if key else (found == set())


def test_a_reasoning_field_is_refused_where_there_is_none_and_ignored_where_fields_are() -> None:
    turn = {"role": "assistant", "content": "a", "reasoning": "Hm."}
    body = {"model": "m", "messages": [{"role": "user", "content": "a"}, turn, {"role": "user", "content": "b"}]}
    (found,) = lint(body, "groq")
    assert (found.key, found.message) == (
        "reasoning.carrier",
        "for 'role:assistant' … property 'reasoning' is unsupported",
    )
    assert keys(body, "vllm") == keys(body, "llamacpp") == set()


def test_custom_calls_hold_free_text() -> None:
    call = {"id": ONE, "type": "custom", "custom": {"name": "free", "input": "not json"}}
    turn = {"role": "assistant", "content": None, "tool_calls": [call]}
    body = {"model": "m", "messages": [{"role": "user", "content": "a"}, turn, chat_result(OPENAI, ONE)]}
    assert keys(body) == set()
    del call["custom"]
    assert keys(body) == {"shape"}


def test_calls_of_two_messages_in_a_row_are_not_one_turn() -> None:
    body = chat_rich(OPENAI)
    body["messages"][2:] = [
        chat_calling(OPENAI, ONE),
        chat_calling(OPENAI, TWO),
        chat_result(OPENAI, ONE),
        chat_result(OPENAI, TWO),
    ]
    assert keys(body) == {"results.adjacent"}


def test_answers_instead_of_text_are_content() -> None:
    for fields in (
        {"refusal": "No."},
        {"audio": {"id": "audio_1"}},
        {"function_call": {"name": "f", "arguments": "{}"}},
    ):
        turn = {"role": "assistant", "content": None, **fields}
        assert keys({"messages": [{"role": "user", "content": "a"}, turn, {"role": "user", "content": "b"}]}) == set()
    bare = {"role": "assistant", "content": None}
    body = {"messages": [{"role": "user", "content": "a"}, bare, {"role": "user", "content": "b"}]}
    assert keys(body, "kimi") == {"turns.empty_turn"}


def test_newer_models_take_tools_on_another_endpoint() -> None:
    (found,) = lint(user("Hi") | {"model": "gpt-5.6-terra", "tools": [chat_tool()]}, "openai")
    assert (found.key, found.hint) == ("tools.protocol", "use the target openai_responses")


def test_output_and_budget_in_other_forms() -> None:
    assert keys(user("Hi") | {"response_format": {"type": "text"}}) == set()
    assert keys(user("Hi") | {"response_format": {"type": "odd"}}) == {"shape", "request.output"}
    assert keys(user("Hi") | {"thinking_budget": 100}, "qwen") == set()


def test_a_call_that_is_no_object_and_a_message_that_is_none() -> None:
    body = user("Hi")
    body["messages"] += [7, {"role": "assistant", "content": "a", "tool_calls": [7]}, {"role": 5}]
    assert "shape" in keys(body)
    assert keys({"messages": "Hi", "tools": "none"}) >= {"shape"}


def test_arguments_are_read_as_json() -> None:
    body = chat_rich(OPENAI)
    objects = profiles.Overrides("[profiles.openai.rules]\n'calls.arguments_object_only' = true")
    for arguments in ("", "null", "[]", "{", '{"a": 1} x', "\ud800", "[" * 100_000):
        body["messages"][2]["tool_calls"] = [chat_call(ONE, arguments=arguments), chat_call(TWO)]
        assert keys(body) == set(), "OpenAI takes them"
        assert {found.key for found in lint(body, "openai", overrides=objects)} == {"calls.arguments_object_only"}


def test_there_must_be_messages() -> None:
    assert keys({"model": "m", "messages": []}) == {"turns.required"}
    assert keys({"model": "m"}) == {"shape"}


def test_a_choice_without_tools_is_fine_where_it_does_not_need_them() -> None:
    overrides = profiles.Overrides("[profiles.openai.rules]\n'choice.needs_tools' = false")
    assert lint(user("Hi") | {"tool_choice": "auto"}, "openai", overrides=overrides) == ()


def test_prefix_items_are_refused_where_there_are_no_tuples() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "prefixItems": [{"type": "string"}]}}}
    assert keys(user("Hi") | {"tools": [chat_tool(parameters=schema)]}) == {"schema.tuple_items"}
    assert keys(user("Hi") | {"tools": [chat_tool(parameters=schema)]}, "kimi") == set()
