"""Conversations that were stored as version 1: its notes are read as forms."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from toolglot import Conversation, Text, ToolCall, ToolResult, ToolSpec, Turn, dump, load
from toolglot.conversation import OutputFormat, Reply, Usage, forms
from toolglot.conversation.version_1 import upgrade
from toolglot.protocols import base

Body = dict[str, Any]


def _from_version_1(**fields: Any) -> Conversation:
    return load(json.dumps({"format": "toolglot.conversation", "version": 1, "conversation": fields}))


def test_notes_of_version_1_are_read_as_forms() -> None:
    call = {
        "block": "tool_call",
        "id": "",
        "name": "f",
        "arguments": {},
        "extra": {"ollama": {"~function": {"index": 0}}},
    }
    result = {"block": "tool_result", "call_id": "", "is_complete": True, "extra": {"ollama": {"~content": "none"}}}
    found = _from_version_1(
        turns=[
            {"role": "user", "extra": {"ollama": {"~content": "null", "x": 1}}},
            {"role": "assistant", "blocks": [call]},
            {"role": "tool", "blocks": [result]},
        ],
        tools=[
            {"name": "f", "extra": {"ollama": {"~untyped": True, "~no_parameters": True}}},
            {"name": "", "type": "later", "extra": {"ollama": {"~tool": {"type": "later"}}}},
        ],
        options={"stream": True, "output": {"extra": {"ollama": {"~format": "later"}}}},
        model="m",
        extra={"ollama": {"~options": {"num_ctx": 1}, "~streams_unsaid": True}},
    )
    assert found.turns[0].extra == {"ollama": {"x": 1}}
    assert base.codec("ollama").request.encode(found) == {
        "model": "m",
        "messages": [
            {"role": "user", "content": None, "x": 1},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"function": {"name": "f", "arguments": {}, "index": 0}}],
            },
            {"role": "tool"},
        ],
        "tools": [{"function": {"name": "f"}}, {"type": "later"}],
        "options": {"num_ctx": 1},
        "format": "later",
    }
    assert load(dump(found)) == found


def test_notes_of_version_1_that_cohere_had_are_read_as_forms() -> None:
    def noted(**notes: Any) -> Body:
        return {"cohere": {f"~{name}": value for name, value in notes.items()}}

    document = {"block": "text", "text": "a", "extra": noted(document={"id": "d"})}
    call = {"block": "tool_call", "id": "1", "name": "f", "extra": noted(untyped=True, bare=True, function={"x": 1})}
    found = _from_version_1(
        turns=[
            {"role": "user", "blocks": [document], "extra": noted(content="parts")},
            {"role": "assistant", "blocks": [{"block": "text", "text": "b", "extra": noted(plan=True)}, call]},
            {
                "role": "assistant",
                "blocks": [{"block": "thinking", "extra": noted(own=True)}],
                "extra": noted(calls=[]),
            },
        ],
        options={
            "tool_choice": {"extra": noted(choice="LATER")},
            "reasoning": {"extra": noted(thinking={"type": "later"})},
            "output": {"kind": "json_schema", "schema": {}, "extra": noted(schema="schema")},
        },
    )
    assert base.codec("cohere").request.encode(found) == {
        "messages": [
            {"role": "user", "content": [{"type": "document", "document": {"data": "a", "id": "d"}}]},
            {"role": "assistant", "tool_plan": "b", "tool_calls": [{"id": "1", "function": {"name": "f", "x": 1}}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": ""}], "tool_calls": []},
        ],
        "tool_choice": "LATER",
        "thinking": {"type": "later"},
        "response_format": {"type": "json_object", "schema": {}},
    }


def test_notes_of_version_1_that_gemini_had_are_read_as_forms() -> None:
    def noted(**notes: Any) -> Body:
        return {"gemini": {f"~{name}": value for name, value in notes.items()}}

    call = {
        "block": "tool_call",
        "id": "",
        "name": "f",
        "arguments": {},
        "extra": noted(inner={"x": 1, "~no_args": True}),
    }
    inner = {"x": 1, "~snake": {"mime_type": "mimeType"}, "~base64": {"url_safe": True, "padding": "="}}
    media = {"block": "media", "kind": "image", "media_type": "image/png", "data": "+/8=", "extra": noted(inner=inner)}
    found = _from_version_1(
        turns=[
            {"role": "system", "extra": noted(system="top", parts="absent")},
            {"role": "user", "blocks": [media], "extra": noted(no_role=True, parts="object")},
            {"role": "assistant", "blocks": [{"block": "thinking", "extra": noted(thought=True)}, call]},
        ],
        tools=[{"name": "f", "parameters": {}, "extra": noted(schema="parameters", group=1)}],
        options={
            "sampling": {"top_k": 40},
            "tool_choice": {"extra": noted(mode="auto")},
            "reasoning": {"extra": noted(empty=True)},
        },
        extra=noted(
            tools=[{"~bare": True}, {"~one": True, "~snake": {"function_declarations": "functionDeclarations"}}],
            tool_config={"x": 1},
            config={"x": 1, "~floats": {"topK": 40.0}, "~snake": {"top_k": "topK"}},
        ),
    )
    body = base.codec("gemini").request.encode(found)
    assert body == {
        "systemInstruction": {},
        "contents": [
            {"parts": {"inlineData": {"mime_type": "image/png", "data": "-_8", "x": 1}}},
            {
                "role": "model",
                "parts": [{"text": "", "thought": True}, {"functionCall": {"name": "f", "x": 1}}],
            },
        ],
        "tools": [{}, {"function_declarations": {"name": "f", "parameters": {}}}],
        "toolConfig": {"functionCallingConfig": {"mode": "auto"}, "x": 1},
        "generationConfig": {"top_k": 40.0, "thinkingConfig": {}, "x": 1},
    }
    assert type(body["generationConfig"]["top_k"]) is float


def test_notes_of_version_1_that_anthropic_had_are_read_as_forms() -> None:
    def extra(**notes: Any) -> Body:
        return {"extra": {"anthropic": {f"~{name}": content for name, content in notes.items()}}}

    text = {"block": "text", "text": "a"}
    block = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a"}}
    result = {"block": "tool_result", "call_id": "1", "is_complete": True, **extra(not_error=True)}
    found = _from_version_1(
        turns=[
            {"role": "system", "blocks": [text], **extra(content="text", system="top")},
            {"role": "system", "blocks": [text], **extra(content="text", system="message")},
            {"role": "user", "blocks": [{**text, **extra(block=block)}]},
            {
                "role": "assistant",
                "blocks": [{"block": "tool_call", "id": "1", "name": "f", **extra(read=["trimmed"])}],
            },
            {"role": "user", "blocks": [result]},
            {"role": "user", "blocks": [text], **extra(content="text")},
        ],
        tools=[
            {"name": "f", **extra(type="custom", no_parameters=True)},
            {"name": "", "type": "later", **extra(tool={"type": "later"})},
        ],
        options={
            "tool_choice": extra(choice={"type": "later"}),
            "reasoning": extra(thinking={"type": "later"}),
            "output": extra(format={"type": "later"}),
        },
        **extra(stop_sequences=[], metadata={"later": 1}, output_config={}),
    )
    assert base.codec("anthropic").request.encode(found) == {
        "system": "a",
        "messages": [
            {"role": "system", "content": "a"},
            {"role": "user", "content": [block]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "is_error": False}]},
            {"role": "user", "content": "a"},
        ],
        "tools": [{"name": "f", "type": "custom"}, {"type": "later"}],
        "tool_choice": {"type": "later"},
        "thinking": {"type": "later"},
        "output_config": {"format": {"type": "later"}},
        "stop_sequences": [],
        "metadata": {"later": 1},
    }
    assert found.turns[3].calls[0].argument_fixes == ("trimmed",)
    assert load(dump(found)) == found


def test_notes_of_version_1_on_replies_of_anthropic_are_read_as_forms() -> None:
    usage = Usage(1, 2, extra={"anthropic": {"~details": {"later": 1}}})
    notes = {"anthropic": {"~read": True, "~stop_reason": "pause_turn"}}
    found = upgrade(Reply(Turn("assistant"), "pause", usage, "1", "m", notes))
    body = base.codec("anthropic").reply.encode(found)
    assert found.extra is None
    assert body["stop_reason"] == "pause_turn"
    assert body["usage"] == {"input_tokens": 1, "output_tokens": 2, "output_tokens_details": {"later": 1}}


def test_notes_of_version_1_that_bedrock_had_are_read_as_forms() -> None:
    def extra(fields: Body | None = None, **notes: Any) -> Body:
        return {"extra": {"bedrock": {**{f"~{name}": content for name, content in notes.items()}, **(fields or {})}}}

    document = {"document": {"name": "n", "source": {"text": "a"}}}
    marker = {"cachePoint": {"type": "default"}}
    markers = {"before": [], "behind": [marker], "told": True}
    media = {"block": "media", "kind": "document", "media_type": "application/x", "data": "aGk="}
    found = _from_version_1(
        turns=[
            {
                "role": "user",
                "blocks": [
                    {"block": "text", "text": "n\na", **extra(worded=document)},
                    {**media, **extra(unnamed=True, format="y", block={"x": 1})},
                ],
            },
            {
                "role": "assistant",
                "blocks": [
                    {"block": "thinking", "text": "", **extra(reasoning={"later": 1})},
                    {"block": "tool_call", "id": "", "name": "f", **extra(no_id=True, block={"x": 1})},
                ],
            },
            {
                "role": "user",
                "blocks": [
                    {
                        "block": "tool_result",
                        "call_id": "",
                        "content": [{"block": "text", "text": '{"a":1.0}', **extra(json={"a": 1.0})}],
                        "is_complete": True,
                        **extra(status="success"),
                    }
                ],
            },
        ],
        tools=[
            {"name": "f", **extra({"cachePoint": [marker], "later": 1}, no_schema=True, markers=markers)},
            {"name": "", "type": "later", **extra(tool={"later": {}})},
        ],
        options={"tool_choice": extra(choice={"later": {}})},
        model="m",
        **extra(addressed=True, inference={}, tools={"later": 1}, own={"additionalModelRequestFields": {"a": 1}}),
    )
    assert base.codec("bedrock").request.encode(found) == {
        "messages": [
            {
                "role": "user",
                "content": [document, {"document": {"format": "y", "source": {"bytes": "aGk="}}, "x": 1}],
            },
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": ""}, "later": 1}},
                    {"toolUse": {"toolUseId": "", "name": "f", "input": {}}, "x": 1},
                ],
            },
            {
                "role": "user",
                "content": [{"toolResult": {"toolUseId": "", "content": [{"json": {"a": 1.0}}], "status": "success"}}],
            },
        ],
        "toolConfig": {
            "tools": [{"toolSpec": {"name": "f", "later": 1}}, marker, {"later": {}}],
            "toolChoice": {"later": {}},
            "later": 1,
        },
        "inferenceConfig": {},
        "additionalModelRequestFields": {"a": 1},
    }
    assert load(dump(found)) == found


def test_notes_of_version_1_that_responses_had_are_read_as_forms() -> None:
    def extra(fields: Body | None = None, **notes: Any) -> Body:
        own = {f"~{name}": content for name, content in notes.items()}
        return {"extra": {"openai_responses": {**own, **(fields or {})}}}

    text = {"block": "text", "text": "a"}
    image = {"block": "media", "kind": "image", "url": "https://a"}
    file = {"block": "media", "kind": "file", "data": "aGk="}
    part = {"block": "opaque", "protocol": "openai_responses", "value": {"type": "later"}, "kind": "later"}
    call = {"block": "tool_call", "id": "fc_1", "name": "f", "arguments": {}, "raw_input": "{ }"}
    result = {"block": "tool_result", "call_id": "fc_1", "is_complete": True}
    found = _from_version_1(
        turns=[
            {"role": "system", "blocks": [text], **extra(system="top")},
            {"role": "system", "blocks": [text], **extra(system="message", untyped=True, content="text")},
            {
                "role": "user",
                "blocks": [
                    {**text, **extra(type="output_text")},
                    {**image, **extra(no_detail=True)},
                    {**file, **extra(bare=True)},
                    {**part, **extra(part=True)},
                ],
            },
            {
                "role": "assistant",
                "blocks": [
                    {**text, **extra(message={"id": "msg_1", "~content": "text", "~untyped": True, "~~odd": 1})},
                    {"block": "thinking", "id": "rs_1", **extra({"summary": []}, reasoning=True)},
                    {**text, **extra({"~~odd": 2}, message={})},
                    {**text, **extra(refusal=True, joined=True)},
                    {**part, **extra(part=True, joined=True)},
                    {**call, **extra({"id": "fc_1"}, call_id="item", arguments="raw", read=["trimmed"])},
                ],
            },
            {
                "role": "tool",
                "blocks": [
                    {**result, **extra(item="custom_tool_call_output", output="absent")},
                    {**result, "content": [text], **extra(item="function_call_output", output="parts")},
                ],
            },
        ],
        tools=[
            {"name": "f", **extra(strict="absent", no_parameters=True)},
            {"name": "g", "namespace": "n", "parameters": {}, "strict": True, **extra(namespace={"~~odd": 1})},
            {"name": "", "type": "later", **extra(tool={"type": "later"})},
        ],
        options={
            "tool_choice": {"mode": "allowed", **extra(tools=[{"type": "mcp"}], mode="auto")},
            "reasoning": extra({"later": 1}, said=True),
            "output": extra(format={"type": "later"}),
        },
        **extra({"~~odd": 1}, model="", text={"verbosity": "low"}),
    )
    assert base.codec("openai_responses").request.encode(found) == {
        "model": "",
        "instructions": "a",
        "input": [
            {"role": "system", "content": "a"},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "output_text", "text": "a"},
                    {"type": "input_image", "image_url": "https://a"},
                    {"type": "input_file", "file_data": "aGk="},
                    {"type": "later"},
                ],
            },
            {"role": "assistant", "content": "a", "id": "msg_1", "~odd": 1},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {
                "type": "message",
                "role": "assistant",
                "content": [
                    {"type": "output_text", "text": "a", "~odd": 2},
                    {"type": "refusal", "refusal": "a"},
                    {"type": "later"},
                ],
            },
            {"type": "function_call", "name": "f", "arguments": "{ }", "id": "fc_1"},
            {"type": "custom_tool_call_output", "call_id": "fc_1"},
            {"type": "function_call_output", "call_id": "fc_1", "output": [{"type": "input_text", "text": "a"}]},
        ],
        "tools": [
            {"type": "function", "name": "f"},
            {
                "type": "namespace",
                "name": "n",
                "tools": [{"type": "function", "name": "g", "parameters": {}, "strict": True}],
                "~odd": 1,
            },
            {"type": "later"},
        ],
        "tool_choice": {"type": "allowed_tools", "tools": [{"type": "mcp"}], "mode": "auto"},
        "reasoning": {"later": 1},
        "text": {"format": {"type": "later"}, "verbosity": "low"},
        "~odd": 1,
    }
    assert found.turns[3].calls[0].argument_fixes == ("trimmed",)
    assert [block.is_refusal for block in found.turns[3].blocks if isinstance(block, Text)] == [False, False, True]
    assert load(dump(found)) == found


@pytest.mark.parametrize(
    ("notes", "choice"),
    [
        ({"~unsaid": True}, None),
        ({"~choice": {"type": "later"}}, {"type": "later"}),
        ({"~type": "custom"}, {"type": "custom", "name": "f"}),
    ],
)
def test_a_tool_choice_of_version_1_that_responses_had_is_read_as_it_was(notes: Body, choice: object) -> None:
    named = {"mode": "named", "names": ["f"]} if "~type" in notes else {}
    found = _from_version_1(options={"tool_choice": {**named, "extra": {"openai_responses": notes}}})
    assert base.codec("openai_responses").request.encode(found).get("tool_choice") == choice


def test_an_input_of_version_1_that_responses_had_is_read_as_it_was() -> None:
    notes = {"openai_responses": {"~content": "text", "~input": "text"}}
    found = _from_version_1(turns=[{"role": "user", "blocks": [{"block": "text", "text": "a"}], "extra": notes}])
    assert base.codec("openai_responses").request.encode(found) == {"input": "a"}
    found = _from_version_1(extra={"openai_responses": {"~input": "absent", "~tools": []}})
    assert base.codec("openai_responses").request.encode(found) == {"tools": []}


def test_notes_of_version_1_on_replies_of_responses_are_read_as_forms() -> None:
    usage = Usage(1, 2, extra={"openai_responses": {"~read": True, "~input_details": {"later": 1}}})
    notes = {"openai_responses": {"~read": True, "~status": "queued", "~~odd": 1}}
    found = upgrade(Reply(Turn("assistant"), "pause", usage, "1", "m", notes))
    assert base.codec("openai_responses").reply.encode(found) == {
        "id": "1",
        "model": "m",
        "output": [],
        "status": "queued",
        "usage": {"input_tokens": 1, "output_tokens": 2, "input_tokens_details": {"later": 1}},
        "~odd": 1,
    }


def test_an_image_of_version_1_that_cohere_had_keeps_its_unknown_fields() -> None:
    media = {"block": "media", "kind": "image", "url": "https://a", "extra": {"cohere": {"~image": {"~~odd": 1}}}}
    found = _from_version_1(turns=[{"role": "user", "blocks": [media]}])
    (message,) = base.codec("cohere").request.encode(found)["messages"]
    assert message["content"] == [{"type": "image_url", "image_url": {"url": "https://a", "~odd": 1}}]


@pytest.mark.parametrize("protocol", base.names())
def test_a_field_of_version_1_that_begins_like_a_note_keeps_its_own_name(protocol: str) -> None:
    found = _from_version_1(extra={protocol: {"~~odd": 1, "~~~odd": 2, "plain": 3}})
    assert found.extra == {protocol: {"~odd": 1, "~~odd": 2, "plain": 3}}


def test_a_bedrock_tool_of_version_1_keeps_all_fields_but_its_markers() -> None:
    marker = {"cachePoint": {"type": "default"}}
    own = {"~markers": {"behind": [marker], "told": True}, **marker, "xmarkers": 1}
    found = _from_version_1(tools=[{"name": "f", "extra": {"bedrock": own, "anthropic": {"x": 1}}}])
    assert found.tools[0].extra == {"bedrock": {"xmarkers": 1}, "anthropic": {"x": 1}}
    assert base.codec("bedrock").request.encode(found)["toolConfig"]["tools"][-1] == marker


@pytest.mark.parametrize("note", [None, 3, [], {}, "x", {"a": None}, [[]]])
def test_notes_of_version_1_that_make_no_sense_are_dropped(note: object) -> None:
    for protocol in base.names():
        if (kinds := forms.library(protocol)).from_notes is None:
            continue
        for name in _note_names(kinds):
            extra = {protocol: {f"~{name}": note}}
            blocks = (
                Text("x", extra=extra),
                ToolCall("1", "f", {}, extra=extra),
                ToolResult("1", "r", extra=extra),
            )
            conversation = Conversation(
                (Turn("user", blocks, extra=extra),), (ToolSpec("f", extra=extra),), extra=extra
            )
            options = replace(conversation.options, output=OutputFormat(extra=extra))
            document = json.loads(dump(replace(conversation, options=options)))
            found = load(json.dumps({**document, "version": 1}))
            base.codec(protocol).request.encode(found)


def _note_names(kinds: forms.FormLibrary) -> set[str]:
    """Names that notes had, or may have had."""
    fields = {field for kind in kinds.types.values() for field in kind.__struct_fields__}
    return fields | {"content", "function", "options", "tool", "format", "choice", "read", "no_id", "own_id", "system"}
