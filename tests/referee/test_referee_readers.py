"""What the readers of the referee see: hand-made bodies and recordings against the picture that they should give."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdk import census
from support.referee.mutated_bodies import PROTOCOLS, Body, known, mutants, recorded
from toolglot import profiles
from toolglot.referee.readers.forms import MAX_FINDINGS
from toolglot.referee.view import Message, PartView, ToolView, View


def read(protocol: str, body: Any) -> View:
    reader: Callable[[Any], View] = importlib.import_module(f"toolglot.referee.readers.{protocol}").read
    return reader(body)


def summarise_part(item: PartView) -> str:
    """An item in a line: kind, type, path, and what identifies it."""
    own = [item.id, item.item_id, item.name, item.text, item.media, item.source, item.signature]
    marks = [word for word, is_so in (("custom", item.is_custom), ("redacted", item.is_redacted)) if is_so]
    if item.is_error is not None:
        marks.append("error" if item.is_error else "success")
    if not item.has_content:
        marks.append("no content")
    shown = [part for part in (*own, *marks) if part]
    inside = "".join(f" < {summarise_part(part)} >" for part in item.content)
    return " ".join([item.kind, item.type or "-", item.path, *shown]) + inside


def summarise_messages(view: View) -> list[tuple[str, str, list[str]]]:
    return [(message.role, message.path, [summarise_part(item) for item in message.items]) for message in view.messages]


def summarise_tools(view: View) -> list[tuple[str, str, str | None, str]]:
    return [(tool.kind, tool.path, tool.name, tool.schema_path) for tool in view.tools or ()]


def shapes(protocol: str, body: Any) -> list[tuple[str, str]]:
    return [(shape.path, shape.rule) for shape in read(protocol, body).shapes]


# --- Responses --------------------------------------------------------------------------------------


def test_responses_runs_of_the_models_items_and_of_results_are_one_message_each() -> None:
    view = read(
        "openai_responses",
        {
            "instructions": "Be brief.",
            "input": [
                {"role": "developer", "content": "Go on."},
                {"role": "user", "content": [{"type": "input_text", "text": "Look"}]},
                {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}], "content": []},
                {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]},
                {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "f", "arguments": "{}"},
                {"type": "custom_tool_call", "call_id": "b", "name": "p", "input": "x"},
                {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
                {"type": "function_call_output", "call_id": "a", "output": "", "name": "f"},
                {"type": "custom_tool_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "ok"}]},
                {"type": "shell_call_output", "call_id": "c", "output": []},
                {"role": "assistant", "content": "Done"},
                {"id": "msg_1"},
                {"role": "user", "content": ""},
                {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True},
                {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
            ],
        },
    )
    assert view.system == Message(
        role="system", path="$.instructions", items=(PartView(kind="text", path="$.instructions", text="Be brief."),)
    )
    assert summarise_messages(view) == [
        ("developer", "$.input[0]", ["text - $.input[0].content Go on."]),
        ("user", "$.input[1]", ["text input_text $.input[1].content[0] Look"]),
        (
            "assistant",
            "$.input[2]",
            [
                "thinking reasoning $.input[2] rs_1 Hm",
                "other refusal $.input[3].content[0] No",
                "call function_call $.input[4] a fc_1 f",
                "call custom_tool_call $.input[5] b p custom",
                "server web_search_call $.input[6] ws_1",
            ],
        ),
        (
            "tool",
            "$.input[7]",
            [
                "result function_call_output $.input[7] a f < text - $.input[7].output >",
                "result custom_tool_call_output $.input[8] b custom < text input_text $.input[8].output[0] ok >",
                "server shell_call_output $.input[9]",
            ],
        ),
        ("assistant", "$.input[10]", ["text - $.input[10].content Done", "other item_reference $.input[11] msg_1"]),
        ("user", "$.input[12]", []),
        ("user", "$.input[13]", ["other mcp_approval_response $.input[13]"]),
        ("assistant", "$.input[14]", ["thinking reasoning $.input[14] gAAA"]),
    ]
    assert [message.is_empty_string for message in view.messages] == [False] * 5 + [True, False, False]
    assert view.messages_path == "$.input"
    assert view.messages[2].items[2].arguments == "{}"
    assert view.messages[2].items[3].arguments == "x"
    assert view.is_continued, "the item reference stands for what the server holds"
    assert view.shapes == ()


def test_responses_a_text_is_a_user_message_and_other_fields_are_settings() -> None:
    view = read(
        "openai_responses",
        {
            "model": "gpt-5.5",
            "input": "Go",
            "tools": [
                {
                    "type": "function",
                    "name": "f",
                    "parameters": {"type": "object"},
                    "strict": False,
                    "description": "d",
                },
                {"type": "custom", "name": "c"},
                {
                    "type": "namespace",
                    "name": "n",
                    "description": "d",
                    "tools": [{"type": "function", "name": "g", "x": 1}, {"type": "mcp"}],
                },
                {"type": "web_search", "y": 1},
            ],
            "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}, {}]},
            "parallel_tool_calls": False,
            "max_output_tokens": 64,
            "temperature": 1,
            "top_p": None,
            "reasoning": {"effort": "low"},
            "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}},
            "user": "ana",
            "stop": ["x"],
        },
    )
    assert summarise_messages(view) == [("user", "$.input", ["text - $.input Go"])]
    assert summarise_tools(view) == [
        ("function", "$.tools[0]", "f", "$.tools[0].parameters"),
        ("custom", "$.tools[1]", "c", ""),
        ("namespace", "$.tools[2]", "n", ""),
        ("server", "$.tools[3]", None, ""),
    ]
    assert view.tools is not None
    assert view.tools[0].strict is False
    assert [member.path for member in view.tools[2].members] == ["$.tools[2].tools[0]"]
    assert view.tools[3].extra_fields == ("y",)
    assert view.extra_paths == ("$.tools[2].tools[0].x",)
    assert view.extra_fields == ("stop",)
    assert view.choice is not None
    assert (view.choice.mode, view.choice.names) == ("allowed", ("f",))
    assert view.parallel is not None
    assert view.parallel.value is False
    assert view.max_tokens is not None
    assert (view.max_tokens.path, view.max_tokens.value, view.max_tokens_field) == (
        "$.max_output_tokens",
        64,
        "max_output_tokens",
    )
    assert [(name, setting.path) for name, setting in view.sampling.items()] == [("temperature", "$.temperature")]
    assert view.effort is not None
    assert (view.effort.path, view.effort.value) == ("$.reasoning.effort", "low")
    assert view.output is not None
    assert (view.output.path, view.output.value) == ("$.text.format", "json_schema")
    assert view.user is not None
    assert not view.is_continued
    assert shapes(
        "openai_responses", {"input": "Go", "tools": [{"type": "namespace", "tools": [{"type": "mcp"}]}]}
    ) == [
        ("$.tools[0].name", ""),
        ("$.tools[0].description", ""),
        ("$.tools[0].tools[0].type", ""),
    ]


@pytest.mark.parametrize(
    ("choice", "mode", "names"),
    [
        ("required", "required", ()),
        ({"type": "function", "name": "f"}, "named", ("f",)),
        ({"type": "custom", "name": "c"}, "named", ("c",)),
        ({"type": "web_search_preview"}, "named", ()),
        ({"type": "mcp", "server_label": "s", "name": "read"}, "named", ()),
    ],
)
def test_responses_choice(choice: Any, mode: str, names: tuple[str, ...]) -> None:
    view = read("openai_responses", {"input": "Go", "tool_choice": choice})
    assert view.choice is not None
    assert (view.choice.mode, view.choice.names, view.shapes) == (mode, names, ())


def test_responses_media() -> None:
    parts = [
        {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
        {"type": "input_image", "image_url": "https://example.com/a.png"},
        {"type": "input_image", "file_id": "file-1"},
        {"type": "input_file", "file_data": "data:application/pdf;base64,AA=="},
        {"type": "input_file", "file_url": "https://example.com/A.PDF"},
        {"type": "input_file", "filename": "a.zip", "file_data": "AA=="},
        {"type": "input_file", "file_id": "file-2"},
        {"type": "input_image"},
    ]
    view = read("openai_responses", {"input": [{"role": "user", "content": parts}]})
    assert [(item.media, item.source) for item in view.messages[0].items] == [
        ("image", "data"),
        ("image", "url"),
        ("image", "file"),
        ("document", "data"),
        ("document", "url"),
        ("file", "data"),
        ("file", "file"),
        ("image", ""),
    ]


def test_responses_unknown_fields_are_listed_with_their_paths() -> None:
    items: list[Body] = [
        {"role": "user", "content": [{"type": "input_text", "text": "a", "q": 1}], "name": "ana"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "z": 1},
        {"role": "assistant", "content": "b", "w": 1},
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "a", "v": 1}]},
    ]
    view = read("openai_responses", {"input": items})
    assert view.messages[0].extra_fields == ("name",)
    assert view.messages[0].items[0].extra_fields == ("q",)
    assert view.messages[1].items[0].extra_fields == ("z",)
    assert view.extra_paths == ("$.input[2].w", "$.input[3].output[0].v")
    assert view.shapes == ()


def test_responses_shapes() -> None:
    items: list[Any] = [
        7,
        {"type": "no_such_item"},
        {"type": "function_call", "name": 7, "arguments": {}},
        {"role": "bot", "content": "x"},
        {"role": "user", "content": [{"type": "output_text", "text": "a"}]},
        {"role": "assistant", "content": [{"type": "input_text", "text": "a"}, "b"]},
        {"type": "reasoning", "summary": []},
        {"type": "message", "content": "x"},
        {"role": "user"},
    ]
    assert shapes("openai_responses", {"input": items, "tools": {}, "tool_choice": ["f"]}) == [
        ("$.input[0]", ""),
        ("$.input[1].type", ""),
        ("$.input[2].call_id", "openai-responses-id-required"),
        ("$.input[2].name", ""),
        ("$.input[2].arguments", ""),
        ("$.input[3].role", ""),
        ("$.input[4].content[0].type", "openai-responses-role-content"),
        ("$.input[5].content[0].type", "openai-responses-role-content"),
        ("$.input[5].content[1]", ""),
        ("$.input[6].id", ""),
        ("$.input[7].role", ""),
        ("$.input[8].content", ""),
        ("$.tools", ""),
        ("$.tool_choice", ""),
    ]


# --- Gemini -----------------------------------------------------------------------------------------


def test_gemini_reads_both_spellings_and_names_fields_as_written() -> None:
    view = read(
        "gemini",
        {
            "system_instruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {"parts": [{"text": "Go"}]},
                {
                    "role": "model",
                    "parts": [
                        {"text": "Hm", "thought": True},
                        {"text": "", "thought_signature": "AAAA"},
                        {"functionCall": {"id": "1", "name": "f", "args": {"a": 1}}, "thoughtSignature": "BBBB"},
                        {"function_call": {"name": "g"}},
                        {"executableCode": {"code": "1"}},
                        {"thoughtSignature": "CCCC"},
                    ],
                },
                {
                    "role": "function",
                    "parts": [
                        {
                            "function_response": {
                                "name": "f",
                                "response": {"output": 1},
                                "parts": [
                                    {"inline_data": {"mime_type": "image/png", "data": "AAAA"}},
                                    {"fileData": {"fileUri": "gs://a"}},
                                ],
                            }
                        },
                        {"functionResponse": {"name": "g"}},
                        {"inlineData": {"mimeType": "application/pdf", "data": "AAAA"}},
                        {"file_data": {"file_uri": "https://e", "mime_type": "video/mp4"}},
                    ],
                },
            ],
        },
    )
    assert view.system is not None
    assert [summarise_part(item) for item in view.system.items] == ["text text $.system_instruction.parts[0] Be brief."]
    where, inner = "$.contents[2].parts", "$.contents[2].parts[0].function_response"
    assert summarise_messages(view) == [
        ("user", "$.contents[0]", ["text text $.contents[0].parts[0] Go"]),
        (
            "assistant",
            "$.contents[1]",
            [
                "thinking thought $.contents[1].parts[0] Hm",
                "text text $.contents[1].parts[1] AAAA",
                "call functionCall $.contents[1].parts[2] 1 f BBBB",
                "call functionCall $.contents[1].parts[3] g",
                "server executableCode $.contents[1].parts[4]",
                "other - $.contents[1].parts[5] CCCC",
            ],
        ),
        (
            "user",
            "$.contents[2]",
            [
                (
                    f"result functionResponse {where}[0] f < other response {inner}.response >"
                    f" < media inlineData {inner}.parts[0] image data > < media fileData {inner}.parts[1] file url >"
                ),
                f"result functionResponse {where}[1] g no content",
                f"media inlineData {where}[2] document data",
                f"media fileData {where}[3] video url",
            ],
        ),
    ]
    assert [item.arguments for item in view.messages[1].items[2:4]] == [{"a": 1}, {}]
    assert view.shapes == ()


def test_gemini_tools_and_settings() -> None:
    view = read(
        "gemini",
        {
            "contents": [],
            "tools": [
                {
                    "function_declarations": [
                        {"name": "f", "parameters": {"any_of": [{"min_length": 1}], "properties": {"max_items": {}}}},
                        {"name": "g", "parameters_json_schema": {"min_length": 1}},
                        {"name": "h"},
                    ],
                    "googleSearch": {},
                },
                {"code_execution": {}},
            ],
            "generation_config": {
                "maxOutputTokens": 5,
                "top_k": 3,
                "stopSequences": ["a"],
                "thinkingConfig": {"thinkingBudget": 0, "thinking_level": "LOW"},
                "response_mime_type": "application/json",
                "responseSchema": {},
                "newSetting": 1,
            },
        },
    )
    assert summarise_tools(view) == [
        ("function", "$.tools[0].function_declarations[0]", "f", "$.tools[0].function_declarations[0].parameters"),
        (
            "function",
            "$.tools[0].function_declarations[1]",
            "g",
            "$.tools[0].function_declarations[1].parameters_json_schema",
        ),
        ("function", "$.tools[0].function_declarations[2]", "h", ""),
        ("server", "$.tools[0].googleSearch", None, ""),
        ("server", "$.tools[1].code_execution", None, ""),
    ]
    assert view.tools is not None
    assert [tool.schema_field for tool in view.tools[:3]] == ["parameters", "parametersJsonSchema", ""]
    assert view.tools[0].schema == {"anyOf": [{"minLength": 1}], "properties": {"max_items": {}}}
    assert view.tools[1].schema == {"min_length": 1}
    assert [tool.type for tool in view.tools[3:]] == ["googleSearch", "codeExecution"]
    assert view.max_tokens is not None
    assert view.max_tokens.path == "$.generation_config.maxOutputTokens"
    assert {name: setting.path for name, setting in view.sampling.items()} == {
        "top_k": "$.generation_config.top_k",
        "stop": "$.generation_config.stopSequences",
    }
    settings = (view.thinking_mode, view.budget, view.effort, view.output)
    assert [setting and (setting.path, setting.value) for setting in settings] == [
        ("$.generation_config.thinkingConfig.thinkingBudget", "off"),
        ("$.generation_config.thinkingConfig.thinkingBudget", 0),
        ("$.generation_config.thinkingConfig.thinking_level", "low"),
        ("$.generation_config.response_mime_type", "json_schema"),
    ]
    assert view.extra_paths == ("$.generation_config.newSetting",)
    assert view.shapes == ()


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"mode": "AUTO"}, ("auto", ())),
        ({"mode": "none"}, ("none", ())),
        ({"mode": "ANY"}, ("required", ())),
        ({"mode": "ANY", "allowedFunctionNames": ["f"]}, ("named", ("f",))),
        ({"mode": "ANY", "allowed_function_names": ["f", "g"]}, ("allowed", ("f", "g"))),
        ({"mode": "VALIDATED"}, ("auto", ())),
        ({"mode": "VALIDATED", "allowedFunctionNames": ["f"]}, ("allowed", ("f",))),
        ({"mode": "MODE_UNSPECIFIED"}, None),
        ({}, None),
    ],
)
def test_gemini_choice(config: Body, expected: tuple[str, tuple[str, ...]] | None) -> None:
    view = read("gemini", {"contents": [], "toolConfig": {"function_calling_config": config}})
    assert (view.choice and (view.choice.mode, view.choice.names)) == expected
    assert view.choice is None or view.choice.path == "$.toolConfig.function_calling_config"
    assert view.shapes == ()


@pytest.mark.parametrize(("budget", "mode"), [(0, "off"), (-1, "adaptive"), (100, "on"), ("100", None), (True, None)])
def test_gemini_a_budget_decides_whether_to_think(budget: Any, mode: str | None) -> None:
    view = read("gemini", {"contents": [], "generationConfig": {"thinkingConfig": {"thinkingBudget": budget}}})
    assert (view.thinking_mode and view.thinking_mode.value) == mode


def test_gemini_shapes() -> None:
    body = {
        "contents": [
            {"role": "system", "parts": [{"text": "x"}]},
            {"role": "model", "parts": [{}, {"text": "a", "functionCall": {"name": "f"}}, {"text": 7}, "x"]},
            {"parts": [{"functionCall": {"args": []}}, {"functionResponse": {"response": "x"}}]},
            {"parts": [{"inlineData": {"data": "no_such_value"}}, {"text": "a", "thoughtSignature": 7}]},
            {"parts": [{"fileData": {}, "videoMetadata": {"fps": "x"}}]},
        ],
        "generationConfig": {"temperature": "hot", "topK": "40", "seed": 1.5, "maxOutputTokens": "12"},
        "toolConfig": {"functionCallingConfig": {"mode": "MUST"}},
        "labels": [],
    }
    assert shapes("gemini", body) == [
        ("$.contents[0].role", ""),
        ("$.contents[1].parts[0]", ""),
        ("$.contents[1].parts[1]", ""),
        ("$.contents[1].parts[2].text", ""),
        ("$.contents[1].parts[3]", ""),
        ("$.contents[2].parts[0].functionCall.args", ""),
        ("$.contents[2].parts[1].functionResponse.response", ""),
        ("$.contents[3].parts[0].inlineData.data", ""),
        ("$.contents[3].parts[1].thoughtSignature", "gemini-thought-foreign"),
        ("$.contents[4].parts[0].videoMetadata.fps", ""),
        ("$.generationConfig.temperature", ""),
        ("$.generationConfig.seed", ""),
        ("$.toolConfig.functionCallingConfig.mode", ""),
        ("$.labels", ""),
    ]
    assert shapes("gemini", {}) == [("$.contents", "")]
    assert shapes("gemini", {"contents": None, "tools": None}) == [("$.contents", "")]


# --- Bedrock ----------------------------------------------------------------------------------------


def test_bedrock_blocks_tools_and_settings() -> None:
    view = read(
        "bedrock",
        {
            "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"text": "Go"},
                        {"image": {"format": "png", "source": {"bytes": "AA=="}}},
                        {"document": {"name": "D", "source": {"s3Location": {"uri": "s3://b/k"}}}},
                        {"guardContent": {"text": {"text": "g"}}},
                        {"cachePoint": {"type": "default"}},
                    ],
                },
                {
                    "role": "assistant",
                    "content": [
                        {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "s"}}},
                        {"reasoningContent": {"redactedContent": "AA=="}},
                        {"toolUse": {"toolUseId": "a", "name": "f", "input": {"x": 1}}},
                        {"toolUse": {"toolUseId": "b", "name": "s", "input": {}, "type": "server_tool_use"}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "toolResult": {
                                "toolUseId": "a",
                                "content": [
                                    {"text": ""},
                                    {"json": 1},
                                    {"video": {"format": "mp4", "source": {"bytes": ""}}},
                                ],
                                "status": "success",
                            }
                        },
                        {"toolResult": {"toolUseId": "c", "content": [], "status": "error"}},
                        {"toolResult": {"toolUseId": "d", "content": []}},
                    ],
                },
            ],
            "toolConfig": {
                "tools": [
                    {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}, "strict": True}},
                    {"systemTool": {"name": "s"}},
                    {"cachePoint": {"type": "default"}},
                ],
                "toolChoice": {"tool": {"name": "f"}},
            },
            "inferenceConfig": {"maxTokens": 5, "temperature": 0.5, "stopSequences": ["a"]},
            "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
            "outputConfig": {
                "effort": "low",
                "textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": "{}"}}},
            },
        },
    )
    assert view.shapes == ()
    assert view.system is not None
    assert [summarise_part(item) for item in view.system.items] == ["text text $.system[0] Be brief."]
    result, inner = "$.messages[2].content[0]", "$.messages[2].content[0].toolResult.content"
    assert summarise_messages(view) == [
        (
            "user",
            "$.messages[0]",
            [
                "text text $.messages[0].content[0] Go",
                "media image $.messages[0].content[1] image data",
                "media document $.messages[0].content[2] D document file",
                "other guardContent $.messages[0].content[3]",
            ],
        ),
        (
            "assistant",
            "$.messages[1]",
            [
                "thinking reasoningContent $.messages[1].content[0] Hm s",
                "thinking reasoningContent $.messages[1].content[1] redacted",
                "call toolUse $.messages[1].content[2] a f",
                "server toolUse $.messages[1].content[3] s",
            ],
        ),
        (
            "user",
            "$.messages[2]",
            [
                (
                    f"result toolResult {result} a success < text text {inner}[0] >"
                    f" < other json {inner}[1] > < media video {inner}[2] video data >"
                ),
                "result toolResult $.messages[2].content[1] c error",
                "result toolResult $.messages[2].content[2] d",
            ],
        ),
    ]
    assert view.messages[1].items[2].arguments == {"x": 1}
    assert view.cache_markers == ("$.system[1]", "$.messages[0].content[4]", "$.toolConfig.tools[2]")
    assert summarise_tools(view) == [
        ("function", "$.toolConfig.tools[0]", "f", "$.toolConfig.tools[0].toolSpec.inputSchema.json"),
        ("server", "$.toolConfig.tools[1]", "s", ""),
    ]
    assert view.tools is not None
    assert view.tools[0].strict is True
    assert view.choice is not None
    assert (view.choice.path, view.choice.mode, view.choice.names) == ("$.toolConfig.toolChoice", "named", ("f",))
    assert view.max_tokens is not None
    assert view.max_tokens.path == "$.inferenceConfig.maxTokens"
    assert list(view.sampling) == ["temperature", "stop"]
    found = (view.thinking_mode, view.budget, view.effort, view.output)
    assert [setting and (setting.path, setting.value) for setting in found] == [
        ("$.additionalModelRequestFields.thinking.type", "on"),
        ("$.additionalModelRequestFields.thinking.budget_tokens", 1024),
        ("$.outputConfig.effort", "low"),
        ("$.outputConfig.textFormat", "json_schema"),
    ]


def test_bedrock_shapes() -> None:
    body = {
        "messages": [
            {"role": "bot", "content": []},
            {"role": "user", "content": "Go"},
            {"role": "assistant", "content": [{"toolUse": {"name": "", "input": {}}}, {}, {"text": "a", "image": {}}]},
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "content": [{"toolResult": {"toolUseId": "x", "content": []}}, {}],
                            "status": "bad",
                        }
                    },
                    {"nothing": 1},
                ],
            },
            {"content": []},
        ],
        "toolConfig": {"tools": [{"toolSpec": {"name": "f", "description": ""}}], "toolChoice": {"none": {}}},
        "inferenceConfig": {"maxTokens": 0, "temperature": -1},
        "additionalModelRequestFields": {"thinking": {"type": 7}},
    }
    assert shapes("bedrock", body) == [
        ("$.messages[0].role", ""),
        ("$.messages[1].content", ""),
        ("$.messages[2].content[0].toolUse.toolUseId", "bedrock-id-required"),
        ("$.messages[2].content[0].toolUse.name", ""),
        ("$.messages[2].content[1]", ""),
        ("$.messages[2].content[2]", ""),
        ("$.messages[3].content[0].toolResult.toolUseId", "bedrock-id-required"),
        ("$.messages[3].content[0].toolResult.content[0]", ""),
        ("$.messages[3].content[0].toolResult.content[1]", ""),
        ("$.messages[3].content[0].toolResult.status", ""),
        ("$.messages[3].content[1]", ""),
        ("$.messages[4].role", ""),
        ("$.toolConfig.tools[0].toolSpec.inputSchema", "bedrock-tools-schema-required"),
        ("$.toolConfig.tools[0].toolSpec.description", ""),
        ("$.toolConfig.toolChoice", "bedrock-choice-modes"),
        ("$.inferenceConfig.maxTokens", ""),
        ("$.inferenceConfig.temperature", ""),
    ]
    view = read("bedrock", body)
    assert view.choice is None
    assert [message.path for message in view.messages] == ["$.messages[1]", "$.messages[2]", "$.messages[3]"]
    assert [part.kind for part in view.messages[2].items[0].content] == ["other"]
    assert view.thinking_mode is not None
    assert view.thinking_mode.value == 7
    assert read("bedrock", {"toolConfig": {"tools": [{"x": 1}], "toolChoice": {"any": {}}}}).tools == ()


# --- Cohere and Ollama ------------------------------------------------------------------------------


def test_cohere_messages_tools_and_settings() -> None:
    view = read(
        "cohere",
        {
            "model": "command-a",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "Go", "q": 1},
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                        {"type": "image_url", "image_url": {"url": "https://e/a.png", "z": 1}},
                    ],
                },
                {
                    "role": "assistant",
                    "tool_plan": "Plan",
                    "content": [{"type": "thinking", "thinking": "Hm"}],
                    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                },
                {"role": "tool", "tool_call_id": "a", "content": ""},
                {
                    "role": "tool",
                    "tool_call_id": "b",
                    "content": [{"type": "document", "document": {"data": {}}, "w": 1}],
                },
                {"role": "user", "content": "", "name": "ana"},
            ],
            "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {}}, "y": 1}],
            "tool_choice": "REQUIRED",
            "max_tokens": 5,
            "p": 0.5,
            "k": 3,
            "seed": None,
            "thinking": {"type": "enabled", "token_budget": 9},
            "response_format": {"type": "json_object"},
        },
    )
    assert view.shapes == ()
    assert summarise_messages(view) == [
        ("system", "$.messages[0]", ["text - $.messages[0].content Be brief."]),
        (
            "user",
            "$.messages[1]",
            [
                "text text $.messages[1].content[0] Go",
                "media image_url $.messages[1].content[1] image data",
                "media image_url $.messages[1].content[2] image url",
            ],
        ),
        (
            "assistant",
            "$.messages[2]",
            [
                "thinking thinking $.messages[2].content[0] Hm",
                "other tool_plan $.messages[2].tool_plan Plan",
                "call function $.messages[2].tool_calls[0] a f",
            ],
        ),
        ("tool", "$.messages[3]", ["result tool $.messages[3] a < text - $.messages[3].content >"]),
        ("tool", "$.messages[4]", ["result tool $.messages[4] b < other document $.messages[4].content[0] >"]),
        ("user", "$.messages[5]", []),
    ]
    assert view.messages[5].is_empty_string
    assert view.messages[5].extra_fields == ("name",)
    assert view.messages[1].items[0].extra_fields == ("q",)
    assert view.extra_paths == ("$.messages[1].content[2].image_url.z", "$.messages[4].content[0].w")
    assert view.tools == (
        ToolView(
            path="$.tools[0]",
            name="f",
            type="function",
            description="d",
            schema={},
            schema_path="$.tools[0].function.parameters",
            schema_field="parameters",
            extra_fields=("y",),
        ),
    )
    assert view.choice is not None
    assert view.choice.mode == "required"
    assert {name: setting.path for name, setting in view.sampling.items()} == {"top_p": "$.p", "top_k": "$.k"}
    found = (view.max_tokens, view.thinking_mode, view.budget, view.output)
    assert [setting and (setting.path, setting.value) for setting in found] == [
        ("$.max_tokens", 5),
        ("$.thinking.type", "on"),
        ("$.thinking.token_budget", 9),
        ("$.response_format", "json"),
    ]
    schema = {"messages": [], "response_format": {"type": "json_object", "json_schema": {}}}
    assert (read("cohere", schema).output or view.output).value == "json_schema"  # type: ignore[union-attr]


def test_cohere_shapes() -> None:
    body = {
        "messages": [
            {"role": "developer", "content": "x"},
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
            {"role": "tool", "content": 7},
            {"role": "user", "content": [{"type": "file"}]},
            "x",
        ],
        "tools": [{"type": "web_search", "function": {"name": "f"}}],
        "tool_choice": {"name": "f"},
        "thinking": {"type": 7},
        "k": 0.5,
    }
    assert shapes("cohere", body) == [
        ("$.model", ""),
        ("$.messages[0].role", ""),
        ("$.messages[1].tool_calls[0].id", "cohere-id-required"),
        ("$.messages[1].tool_calls[0].function.arguments", ""),
        ("$.messages[2].tool_call_id", "cohere-id-required"),
        ("$.messages[2].content", ""),
        ("$.messages[3].content[0].type", ""),
        ("$.messages[4]", ""),
        ("$.tools[0].type", "cohere-tools-server"),
        ("$.tools[0].function.parameters", "cohere-tools-schema-required"),
        ("$.tool_choice", "cohere-choice-modes"),
        ("$.thinking.type", ""),
        ("$.k", ""),
    ]
    view = read("cohere", body)
    assert [message.path for message in view.messages] == ["$.messages[1]", "$.messages[2]", "$.messages[3]"]
    assert view.choice is None


def test_ollama_messages_tools_and_settings() -> None:
    view = read(
        "ollama",
        {
            "model": "qwen3",
            "messages": [
                {"role": "System", "content": "Be brief."},
                {"role": "user", "content": "Go", "images": ["AA==", 7], "q": 1},
                {
                    "role": "assistant",
                    "content": "",
                    "thinking": "Hm",
                    "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}, "z": 1}],
                },
                {"role": "tool", "content": "done", "tool_name": "f", "tool_call_id": "a", "images": ["AA=="]},
                {"role": "narrator", "content": "So"},
            ],
            "tools": [
                {"type": "function", "function": {"name": "f", "description": "d", "parameters": {}, "strict": True}}
            ],
            "options": {"num_predict": 5, "temperature": 0, "stop": ["a"], "new": 1},
            "format": {"type": "object"},
            "think": True,
        },
    )
    assert [shape.path for shape in view.shapes] == ["$.messages[1].images[1]"]
    assert summarise_messages(view) == [
        ("system", "$.messages[0]", ["text - $.messages[0].content Be brief."]),
        (
            "user",
            "$.messages[1]",
            ["text - $.messages[1].content Go", "media images $.messages[1].images[0] image data"],
        ),
        (
            "assistant",
            "$.messages[2]",
            ["thinking thinking $.messages[2].thinking Hm", "call function $.messages[2].tool_calls[0] a f"],
        ),
        (
            "tool",
            "$.messages[3]",
            [
                (
                    "result tool $.messages[3] a f < text - $.messages[3].content done >"
                    " < media images $.messages[3].images[0] image data >"
                )
            ],
        ),
        ("user", "$.messages[4]", ["text - $.messages[4].content So"]),
    ]
    assert view.messages[2].is_empty_string
    assert view.messages[2].items[1].arguments == {"x": 1}
    assert (view.messages[1].extra_fields, view.messages[2].items[1].extra_fields) == (("q",), ("z",))
    assert view.extra_paths == ("$.options.new",)
    assert summarise_tools(view) == [("function", "$.tools[0]", "f", "$.tools[0].function.parameters")]
    assert view.tools is not None
    assert view.tools[0].strict is True
    assert list(view.sampling) == ["temperature", "stop"]
    found = (view.max_tokens, view.thinking_mode, view.effort, view.output)
    assert [setting and (setting.path, setting.value) for setting in found] == [
        ("$.options.num_predict", 5),
        ("$.think", "on"),
        None,
        ("$.format", "json_schema"),
    ]


@pytest.mark.parametrize(
    ("think", "mode", "effort"), [(False, "off", None), ("high", None, "high"), (None, None, None)]
)
def test_ollama_think_is_a_switch_or_a_level(think: Any, mode: str | None, effort: str | None) -> None:
    view = read("ollama", {"model": "m", "think": think, "format": "json", "options": {"num_predict": -1}})
    assert (view.thinking_mode and view.thinking_mode.value) == mode
    assert (view.effort and view.effort.value) == effort
    assert view.output is not None
    assert view.output.value == "json"
    assert view.max_tokens is None, "a negative number is no limit"
    assert view.shapes == ()


def test_ollama_shapes() -> None:
    body = {
        "model": "",
        "messages": [{"content": "x"}, {"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}, {}]}],
        "options": {"temperature": "hot", "seed": 1.5},
        "format": "xml",
        "keep_alive": [],
        "think": 7,
    }
    assert shapes("ollama", body) == [
        ("$.model", ""),
        ("$.messages[0].role", ""),
        ("$.messages[1].tool_calls[0].function.name", ""),
        ("$.messages[1].tool_calls[0].function.arguments", ""),
        ("$.messages[1].tool_calls[1].function", ""),
        ("$.options.temperature", ""),
        ("$.options.seed", ""),
        ("$.format", ""),
        ("$.keep_alive", ""),
        ("$.think", ""),
    ]


# --- every protocol ---------------------------------------------------------------------------------

RECORDED: Final = {
    f"{protocol}-{name}": (protocol, body) for protocol in PROTOCOLS for name, body in recorded(protocol)
}


@pytest.mark.parametrize(("protocol", "body"), RECORDED.values(), ids=RECORDED.keys())
def test_a_recording_has_no_wrong_shape_and_the_census_finds_the_same(protocol: str, body: Body) -> None:
    view = read(protocol, body)
    assert view.shapes == ()
    counted = Counter(_short(found) for found in census.of_body(protocol, body).elements())
    expected = {found: n for found, n in counted.items() if found[0] in ("call", "result", "media", "thinking")}
    written_out = _documents_as_text(body)
    if written_out:  # a document to the referee, though no canonical block carries it
        expected["media",] = expected.get(("media",), 0) + written_out
    assert _seen(view) == expected


def _documents_as_text(value: Any) -> int:
    """Bedrock's documents whose text is in the request."""
    if isinstance(value, list):
        return sum(_documents_as_text(member) for member in value)
    if not isinstance(value, dict):
        return 0
    document = value.get("document")
    source = document.get("source", {}) if isinstance(document, dict) else {}
    return int("text" in source or "content" in source) + sum(_documents_as_text(member) for member in value.values())


def _short(found: census.Found) -> tuple[str, ...]:
    """What the picture has of it: the text of a result is not compared."""
    return found[:2] if found[0] == "result" else found


def _seen(view: View) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for item in _items(view):
        if item.kind == "call":
            found["call", item.id or "", item.name or "", census.written(item.arguments)] += 1
        elif item.kind == "result":
            found["result", item.id or ""] += 1
        elif item.kind in ("media", "thinking"):
            found[(item.kind,)] += 1
    return found


def _items(view: View) -> Iterator[PartView]:
    for message in (*view.messages, *((view.system,) if view.system is not None else ())):
        for item in message.items:
            yield item
            yield from item.content


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_path_of_a_view_exists_in_the_body(protocol: str) -> None:
    count = 0
    for body in known(protocol):
        view = read(protocol, body)
        for path in _paths(view):
            assert _at(body, path) is not None, path
            count += 1
        for item in _items(view):
            assert set((item.text or "").split("\n")) <= {*"\n".join(_texts(_at(body, item.path))).split("\n"), ""}
    assert count > 50


def _paths(view: View) -> Iterator[str]:
    yield from (item.path for item in _items(view))
    yield from (message.path for message in view.messages)
    for tool in view.tools or ():
        yield from (tool.path, *((tool.schema_path,) if tool.schema is not None else ()))
    settings = (view.max_tokens, view.thinking_mode, view.effort, view.budget, view.output, view.user, view.choice)
    yield from (setting.path for setting in (*settings, view.parallel, *view.sampling.values()) if setting)
    yield from view.cache_markers


def _at(body: Any, path: str) -> Any:
    steps = re.findall(r"\.([A-Za-z_0-9]+)|\[(\d+)\]", path)
    for name, index in steps:
        body = body[name] if name else body[int(index)]
    return body


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for member in members for text in _texts(member)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_rule_of_a_shape_is_one_of_the_profile(protocol: str) -> None:
    profile = profiles.get(protocol)
    rules = {rule.id for rule in profile.origins.values()} | {fact.id for fact in profile.facts}
    named = {shape.rule for mutant in mutants(protocol) for shape in read(protocol, mutant.body).shapes} - {""}
    assert named <= rules
    assert named or protocol == "gemini"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("body", [None, 7, "x", [], [{}]])
def test_a_body_that_is_no_object_is_one_shape(protocol: str, body: Any) -> None:
    view = read(protocol, body)
    assert [shape.path for shape in view.shapes] == ["$"]
    assert (view.messages, view.tools, view.system) == ((), None, None)


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        ("openai_responses", {"input": [7] * 5_000, **{f"x{n}": 1 for n in range(5_000)}}),
        ("gemini", {"contents": [7] * 5_000, **{f"x{n}": 1 for n in range(5_000)}}),
        ("bedrock", {"messages": [7] * 5_000, **{f"x{n}": 1 for n in range(5_000)}}),
        ("cohere", {"messages": [7] * 5_000, **{f"x{n}": 1 for n in range(5_000)}}),
        ("ollama", {"messages": [7] * 5_000, **{f"x{n}": 1 for n in range(5_000)}}),
    ],
)
def test_findings_are_bounded(protocol: str, body: Body) -> None:
    view = read(protocol, body)
    assert len(view.shapes) == MAX_FINDINGS
    assert len(view.extra_fields) == MAX_FINDINGS


def test_a_deep_schema_is_read_without_recursing_for_ever() -> None:
    schema: Body = {}
    for _ in range(5_000):
        schema = {"items": schema}
    view = read("gemini", {"contents": [], "tools": [{"functionDeclarations": [{"name": "f", "parameters": schema}]}]})
    assert view.shapes == ()


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.law
@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(body=JSON)
def test_law_no_json_makes_a_reader_raise(protocol: str, body: Any) -> None:
    assert isinstance(read(protocol, body), View)


@pytest.mark.law
@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(data=st.data())
def test_law_a_known_body_with_anything_in_it_makes_no_reader_raise(protocol: str, data: st.DataObject) -> None:
    """Values of every sort where readers look: the words of the protocol with anything beside and inside them."""
    body = data.draw(st.sampled_from(known(protocol)))
    words = sorted(_words(body))
    inner = st.recursive(
        JSON | st.sampled_from(words),
        lambda within: st.lists(within, max_size=3) | st.dictionaries(st.sampled_from(words), within, max_size=4),
        max_leaves=20,
    )
    mixed = {**body, **data.draw(st.dictionaries(st.sampled_from(sorted(body)), inner, min_size=1))}
    view = read(protocol, mixed)
    assert read(protocol, mixed) == view, "the same body, the same picture"


def _words(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {key for key in value if len(key) < 40} | {word for member in value.values() for word in _words(member)}
    if isinstance(value, list):
        return {word for member in value for word in _words(member)}
    return {value} if isinstance(value, str) and len(value) < 20 else set()
