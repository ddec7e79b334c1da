"""The referee's reader of the Bedrock Converse protocol."""

from __future__ import annotations

from support.referee.reader_views import read, shapes, summarise_messages, summarise_part, summarise_tools

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
    paths = [marker.path for marker in view.cache_markers]
    assert paths == ["$.toolConfig.tools[2]", "$.system[1]", "$.messages[0].content[4]"]
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
