"""Forms: how a protocol wrote a value. They are stored, checked, and ignored by every protocol but their own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from toolglot import Conversation, InputError, Turn, dump, load
from toolglot.conversation import Value, forms
from toolglot.conversation.canonical_json import validate
from toolglot.conversation.forms import FormStruct
from toolglot.protocols import base

Body = dict[str, Any]

PLAIN: Body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": False}
DOCUMENT: Body = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a"}, "later": 1}
CALLED: Body = {"name": "f", "later": 1}
BODIES: dict[str, list[Body]] = {
    "openai_chat": [
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "a"}]},
                {"role": "assistant", "content": None, "tool_calls": []},
                {"role": "assistant", "content": "b", "refusal": "no", "reasoning": "hm"},
                {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{ }", "x": 1}}]},
                {"role": "tool"},
                {"role": "assistant", "content": "c", "function_call": {"name": "f", "arguments": "{}"}},
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "https://a", "detail": "low"}}],
                },
                {"role": "user", "content": [{"type": "file_url", "file_url": {"url": "aGk=", "x": 1}}]},
                {"role": "user", "content": [{"type": "input_audio", "input_audio": "aGk="}]},
            ],
            "tools": [{"function": {"name": "f", "x": 1}}],
            "tool_choice": {"type": "later"},
            "response_format": {"type": "json_schema", "json_schema": {"schema": {}, "description": "d", "x": 1}},
            "thinking": {"type": "enabled", "x": 1},
            "stop": "END",
            "max_tokens": 5,
        },
        {"messages": [], "tools": [], "stop": [], "parallel_tool_calls": True, "response_format": {"type": "later"}},
    ],
    "ollama": [
        {"model": "m", "messages": [{"role": "user"}, {"role": "user", "content": None}]},
        {
            **PLAIN,
            "messages": [
                {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}, "index": 0}}]},
                {"role": "tool", "tool_name": "f"},
            ],
            "tools": [{"function": {"name": "f", "later": [1]}}, {"type": "later", "x": 1}],
            "options": {"num_ctx": 1},
            "format": "later",
        },
    ],
    "cohere": [
        {
            "model": "m",
            "messages": [
                {"role": "user"},
                {"role": "user", "content": [{"type": "text", "text": "a"}]},
                {"role": "user", "content": [{"type": "document", "document": {"data": {"a": 1}, "id": "d"}}]},
                {
                    "role": "assistant",
                    "content": "a",
                    "tool_plan": "b",
                    "tool_calls": [{"id": "1", "function": CALLED}],
                },
                {"role": "tool", "tool_call_id": "1"},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": ""}], "tool_calls": []},
            ],
            "tools": [{"function": {"name": "f", "later": [1]}}, {"type": "later", "x": 1}],
            "tool_choice": "LATER",
            "thinking": {"type": "later"},
            "response_format": {"type": "json_object", "schema": {}},
        },
        {**PLAIN, "response_format": {"type": "later"}},
    ],
    "gemini": [
        {
            "system_instruction": {"parts": {"text": "a"}},
            "contents": [
                {"parts": [{"text": "a", "thought_signature": "s"}, {"text": "", "thought": True}]},
                {"role": "model", "parts": [{"function_call": {"name": "f", "later": 1}}]},
                {"role": "function", "parts": [{"functionResponse": {"later": 1}}]},
                {"role": "user", "parts": [{"inline_data": {"mime_type": "image/png", "data": "-_8", "later": 1}}]},
                {"role": "user"},
            ],
            "tools": [
                {"function_declarations": {"name": "f", "parametersJsonSchema": {}}},
                {},
                {"function_declarations": [{"name": "g", "parameters": {}}], "google_search": {}},
            ],
            "toolConfig": {"function_calling_config": {"mode": "any", "allowed_function_names": ["f"]}, "later": 1},
            "generationConfig": {
                "top_k": 40.0,
                "thinkingConfig": {"thinking_level": "high", "later": 1},
                "response_schema": {},
                "later": 1,
            },
        },
        {"contents": {"parts": []}, "tools": [], "generationConfig": {"thinkingConfig": {}}, "toolConfig": {}},
    ],
    "anthropic": [
        {
            **PLAIN,
            "system": "a",
            "tools": [],
            "stop_sequences": [],
            "metadata": {"user_id": "u", "later": 1},
            "output_config": {},
            "thinking": {"type": "later"},
            "tool_choice": {"type": "later"},
        },
        {
            "model": "m",
            "system": [{"type": "text", "text": "a"}],
            "messages": [
                {"role": "user", "content": [DOCUMENT, {"type": "text", "text": "b"}]},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "is_error": False}]},
            ],
            "tools": [{"name": "f", "type": "custom"}, {"name": "g", "type": "later"}],
            "output_config": {"format": {"type": "later"}, "later": 1},
        },
        {**PLAIN, "messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]},
        {**PLAIN, "messages": [{"role": "system", "content": [{"type": "text", "text": "a"}]}]},
    ],
    "bedrock": [
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"document": {"name": "n", "source": {"text": "a"}, "later": 1}},
                        {"guardContent": {"text": {"text": "a", "later": 1}}},
                        {"image": {"format": "later", "source": {"s3Location": {"uri": "s3://a", "later": 1}}}, "x": 1},
                        {"document": {"format": "pdf", "source": {"bytes": "aGk="}}},
                    ],
                },
                {
                    "role": "assistant",
                    "content": [
                        {"reasoningContent": {"reasoningText": {"text": "a"}, "later": 1}, "x": 1},
                        {"reasoningContent": {"reasoningText": {"text": ""}}},
                        {"toolUse": {"toolUseId": "", "name": "f", "input": {}}, "x": 1},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"toolResult": {"toolUseId": "", "content": [{"json": {"a": 1.0}}], "status": "success"}},
                        {"toolResult": {"toolUseId": "", "content": [], "status": "later"}, "x": 1},
                    ],
                },
            ],
            "inferenceConfig": {"later": 1},
            "toolConfig": {
                "tools": [
                    {"cachePoint": {"type": "default"}},
                    {"toolSpec": {"name": "f"}, "x": 1},
                    {"toolSpec": {"name": "g", "inputSchema": {"later": 1}}},
                    {"cachePoint": {"type": "default"}},
                    {"later": {}},
                ],
                "toolChoice": {"any": {}, "x": 1},
                "later": 1,
            },
            "additionalModelRequestFields": {"thinking": {"type": "later"}},
        },
        {"modelId": "m", "messages": [], "inferenceConfig": {}, "toolConfig": {"toolChoice": {"later": {}}}},
    ],
    "openai_responses": [
        {
            "instructions": "",
            "input": [
                {"role": "user", "content": "a"},
                {"type": "message", "role": "system", "content": [{"type": "output_text", "text": "b"}]},
                {
                    "type": "message",
                    "role": "user",
                    "content": [
                        {"type": "input_image", "image_url": "https://a"},
                        {"type": "input_file", "file_data": "aGk=", "filename": "a.txt"},
                        {"type": "later", "x": 1},
                    ],
                },
                {"role": "assistant", "content": "c", "id": "msg_1", "~odd": 1},
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [
                        {"type": "output_text", "text": "d", "annotations": []},
                        {"type": "refusal", "refusal": "no"},
                        {"type": "later"},
                    ],
                },
                {"type": "reasoning", "id": "rs_1", "summary": []},
                {"type": "function_call", "id": "fc_1", "name": "f", "arguments": "{ }"},
                {"type": "custom_tool_call_output", "call_id": "fc_1"},
                {"type": "function_call_output", "call_id": "fc_2", "output": [{"type": "input_text", "text": "e"}]},
            ],
            "tools": [
                {"type": "function", "name": "f"},
                {"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "g"}], "~later": 1},
                {"type": "later"},
            ],
            "tool_choice": {"type": "allowed_tools", "tools": [{"type": "mcp"}]},
            "reasoning": {"later": 1},
            "text": {"verbosity": "low", "format": {"type": "json_schema", "schema": {}}},
        },
        {"model": "", "tools": [], "text": {}, "parallel_tool_calls": True, "prompt": {"id": "p"}},
        {"input": "a", "tool_choice": {"type": "later"}},
        {"input": "a", "tool_choice": {"type": "custom", "name": "f"}, "text": {"format": {"type": "later"}}},
    ],
}
"""Requests with spellings that no canonical value can express, by protocol."""


def _decoded() -> list[tuple[str, Body, Conversation]]:
    return [(name, body, base.codec(name).request.decode(body)) for name in BODIES for body in BODIES[name]]


@pytest.mark.parametrize(("protocol", "body", "conversation"), _decoded())
def test_a_loaded_conversation_is_encoded_as_it_came(protocol: str, body: Body, conversation: Conversation) -> None:
    assert load(dump(conversation)) == conversation
    assert base.codec(protocol).request.encode(load(dump(conversation))) == body


@pytest.mark.parametrize(("protocol", "body", "conversation"), _decoded())
def test_a_checked_conversation_is_encoded_as_it_came(protocol: str, body: Body, conversation: Conversation) -> None:
    found, changes = validate(conversation)
    assert not changes
    assert found == conversation
    assert base.codec(protocol).request.encode(found) == body


@pytest.mark.parametrize(("protocol", "body", "conversation"), _decoded())
def test_other_protocols_ignore_a_form(protocol: str, body: Body, conversation: Conversation) -> None:
    del body
    for other in base.names():
        if other != protocol:
            encode = base.codec(other).request.encode
            assert encode(conversation) == encode(_without_forms(conversation)), other


def _without_forms(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_without_forms(item) for item in value)
    if not isinstance(value, Value):
        return value
    changes = {field: _without_forms(getattr(value, field)) for field in value.__struct_fields__}
    return replace(value, **{**changes, "form": None} if "form" in changes else changes)


@pytest.mark.parametrize("protocol", base.names())
def test_every_form_names_its_protocol_and_describes_its_fields(protocol: str) -> None:
    for tag, kind in forms.library(protocol).types.items():
        assert tag.partition(".")[0] == kind.protocol == protocol
        for field in kind.__struct_fields__:
            described = [line for base_ in kind.__mro__ for line in (base_.__doc__ or "").splitlines()]
            assert any(line.strip().startswith(f"{field}: ") for line in described), (kind, field)


def _document(turn: Body) -> str:
    return json.dumps({"format": "toolglot.conversation", "version": 2, "conversation": {"turns": [turn]}})


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ({"form": "nobody.message"}, "Unknown form 'nobody.message'"),
        ({"form": "ollama.nothing"}, "Unknown form 'ollama.nothing'"),
        ({"form": 3}, "Unknown form 3"),
        ({}, "Unknown form None"),
        ([], "Expected `object`, got `list`"),
        ({"form": "ollama.message", "content": 3}, "got `int`"),
        ({"form": "gemini.content", "parts": "x"}, "$.conversation.turns[0].form: Invalid enum value 'x' in its parts"),
        ({"form": "ollama.message", "later": 3}, "unknown field `later`"),
    ],
)
def test_an_unknown_form_is_an_error_with_its_path(form: object, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        load(_document({"role": "user", "form": form}))
    assert problem in str(caught.value)
    assert "$.conversation.turns[0].form" in str(caught.value)


def test_a_form_of_an_unknown_class_is_refused_when_checked() -> None:
    class Stranger(forms.Form):
        pass

    with pytest.raises(InputError, match="expected a form"):
        validate(Turn("user", form=Stranger()))


def test_forms_are_small() -> None:
    for protocol in base.names():
        for kind in forms.library(protocol).types.values():
            assert issubclass(kind, FormStruct)
            assert not kind.__struct_config__.gc
