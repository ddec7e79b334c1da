"""The referee's reader of the Gemini protocol."""

from __future__ import annotations

from typing import Any

import pytest

from support.referee.mutated_bodies import Body
from support.referee.reader_views import read, shapes, summarise_messages, summarise_part, summarise_tools

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
