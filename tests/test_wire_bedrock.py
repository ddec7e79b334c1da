"""The Bedrock Converse protocol: lossless at home, and strict about types."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from toolglot import InputError, Text, Thinking, ToolCall, ToolResult, ToolSpec, Turn
from toolglot.conversation import (
    Conversation,
    Issuer,
    Media,
    Opaque,
    Options,
    Reply,
    Sampling,
    ServerTool,
    ToolChoice,
    Usage,
)
from toolglot.wire.bedrock import reply, request
from wire_strategies import Fields


def test_a_request_says_what_it_means() -> None:
    body = {
        "modelId": "claude",
        "system": [{"text": "be brief"}, {"cachePoint": {"type": "default"}}],
        "messages": [
            {"role": "user", "content": [{"text": "hi"}]},
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}},
                    {"reasoningContent": {"redactedContent": "xx"}},
                    {"toolUse": {"toolUseId": "t1", "name": "f", "input": {"a": 1}}},
                    {"toolUse": {"toolUseId": "t2", "name": "s", "input": {}, "type": "server_tool_use"}},
                    {"toolResult": {"toolUseId": "t2", "content": [], "type": "nova_grounding_result"}},
                    {"guardContent": {"text": {"text": "g"}}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": "t1",
                            "content": [{"text": "out"}, {"json": {"b": [1.0, "é"]}}, {"searchResult": {}}],
                            "status": "error",
                        }
                    },
                    {"image": {"format": "png", "source": {"bytes": "aGk="}}},
                    {"document": {"format": "txt", "name": "n", "source": {"s3Location": {"uri": "s3://b/k"}}}},
                    {"video": {"format": "three_gp", "source": {"bytes": "aGk="}}},
                    {"document": {"format": "txt", "name": "n", "source": {"text": "plain"}}},
                ],
            },
        ],
        "inferenceConfig": {"maxTokens": 5, "temperature": 1, "topP": 0.5, "stopSequences": ["END"]},
        "toolConfig": {
            "tools": [
                {
                    "toolSpec": {
                        "name": "f",
                        "description": "d",
                        "inputSchema": {"json": {"type": "object"}},
                        "strict": True,
                    }
                },
                {"systemTool": {"name": "nova_grounding"}},
            ],
            "toolChoice": {"tool": {"name": "f"}},
        },
    }
    found = request.decode(body)
    assert request.encode(found) == body
    assert [turn.role for turn in found.turns] == ["system", "user", "assistant", "user"]
    assert found.turns[0].blocks[0] == Text("be brief")
    said = found.turns[2].blocks
    thoughts = [replace(block, extra=None) for block in said if isinstance(block, Thinking)]
    assert thoughts == [Thinking("hm", "sig"), Thinking(redacted="xx")]
    assert said[2] == ToolCall("t1", "f", {"a": 1})
    assert [type(block) for block in said[3:]] == [ServerTool, ServerTool, Opaque]
    assert [block.phase for block in said if isinstance(block, ServerTool)] == ["call", "result"]
    (result,) = found.turns[3].results
    assert (result.call_id, result.is_error, result.is_complete) == ("t1", True, True)
    assert result.text == 'out{"b":[1.0,"é"]}'
    assert found.turns[3].blocks[1:4] == (
        Media("image", "image/png", data="aGk="),
        Media("document", "text/plain", url="s3://b/k", name="n"),
        Media("video", "video/3gpp", data="aGk="),
    )
    assert isinstance(found.turns[3].blocks[4], Opaque)
    assert found.options.tool_choice == ToolChoice("named", ("f",))
    assert found.options.sampling == Sampling(5, 1, 0.5, stop=("END",))
    assert found.tools[0] == ToolSpec("f", "d", {"type": "object"}, strict=True)
    assert (found.tools[1].name, found.tools[1].type) == ("nova_grounding", "systemTool")
    assert found.model == "claude"


def test_a_json_part_that_was_changed_is_written_as_the_text_that_it_is_now() -> None:
    part = {"toolResult": {"toolUseId": "t", "content": [{"json": {"a": 1}}]}}
    found = request.decode({"messages": [{"role": "user", "content": [part]}]})
    (result,) = found.turns[0].results
    assert isinstance(result.content, tuple)
    assert isinstance(result.content[0], Text)
    shortened = replace(result, content=(replace(result.content[0], text="…"),))
    body = request.encode(Conversation((Turn("user", (shortened,)),)))
    assert body["messages"][0]["content"][0]["toolResult"]["content"] == [{"text": "…"}]


def test_a_conversation_made_elsewhere_is_written() -> None:
    made = Conversation(
        (
            Turn("system", (Text("a"),)),
            Turn("developer", (Text("b"),)),
            Turn(
                "user",
                (
                    Media("image", "image/jpg", data="aGk="),
                    Media("image", file_id="f1"),
                    Media("image", url="https://example.invalid/a.png"),
                    Media("file", "text/plain; charset=utf-8", data="aGk="),
                    Media("document", url="s3://b/k", name="n"),
                ),
            ),
            Turn(
                "assistant",
                (
                    Thinking("unsigned"),
                    Thinking("signed", "sig"),
                    Opaque("anthropic", {"type": "compaction"}),
                    ServerTool("anthropic", "call", {}),
                    ToolCall("c1", "f"),
                ),
            ),
            Turn("tool", (ToolResult("c1", "x", is_error=True), ToolResult("c2"))),
            Turn("developer", (Text("mid"),)),
        ),
        (ToolSpec("f"), ToolSpec("web_search", type="web_search_20250305", issuer=Issuer("anthropic"))),
        Options(tool_choice=ToolChoice("allowed", ("f",))),
    )
    body = request.encode(made)
    assert body["system"] == [{"text": "a"}, {"text": "b"}]
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user", "user"]
    assert body["messages"][0]["content"] == [
        {"image": {"format": "jpeg", "source": {"bytes": "aGk="}}},
        {"document": {"format": "txt", "name": "document", "source": {"bytes": "aGk="}}},
        {"document": {"name": "n", "source": {"s3Location": {"uri": "s3://b/k"}}}},
    ]
    assert body["messages"][1]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "signed", "signature": "sig"}}},
        {"toolUse": {"toolUseId": "c1", "name": "f", "input": {}}},
    ]
    assert body["messages"][2]["content"] == [
        {"toolResult": {"toolUseId": "c1", "content": [{"text": "x"}], "status": "error"}},
        {"toolResult": {"toolUseId": "c2", "content": []}},
    ]
    assert body["toolConfig"] == {"tools": [{"toolSpec": {"name": "f"}}], "toolChoice": {"auto": {}}}


@pytest.mark.parametrize(
    ("choice", "written"),
    [
        (ToolChoice("required"), {"any": {}}),
        (ToolChoice("named", ("f",)), {"tool": {"name": "f"}}),
        (ToolChoice("none"), None),
        (None, None),
    ],
)
def test_a_choice_from_elsewhere_is_written_where_there_is_one(choice: ToolChoice | None, written: Any) -> None:
    tools = request.encode(Conversation((), (ToolSpec("f"),), Options(tool_choice=choice)))["toolConfig"]
    assert tools.get("toolChoice") == written


def test_a_choice_without_tools_is_not_written() -> None:
    assert request.encode(Conversation(options=Options(tool_choice=ToolChoice()))) == {"messages": []}


def blocks(*content: Any) -> Fields:
    return {"messages": [{"role": "user", "content": list(content)}]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"messages": None}, r"^\$\.messages: expected an array, got null"),
        ({"messages": ["hi"]}, r"^\$\.messages\[0\]: expected an object, got a string"),
        ({"messages": [{"content": []}]}, r"^\$\.messages\[0\]\.role: expected a string, but the field is missing"),
        ({"messages": [{"role": "system", "content": []}]}, r"^\$\.messages\[0\]\.role: expected one of user, assist"),
        ({"messages": [{"role": "user", "content": "x"}]}, r"^\$\.messages\[0\]\.content: expected an array"),
        (blocks(3), r"^\$\.messages\[0\]\.content\[0\]: expected an object"),
        (blocks({"text": 3}), r"content\[0\]\.text: expected a string, got a whole number"),
        (blocks({"toolUse": 3}), r"content\[0\]\.toolUse: expected an object"),
        (blocks({"toolUse": {"toolUseId": "t", "name": "f", "input": "{}"}}), r"\.toolUse\.input: expected an object"),
        (blocks({"toolResult": {"toolUseId": "t", "content": "x"}}), r"\.toolResult\.content: expected an array"),
        (blocks({"toolResult": {"toolUseId": "t", "content": [1]}}), r"\.toolResult\.content\[0\]: expected an obj"),
        (blocks({"reasoningContent": {"redactedContent": 1}}), r"\.reasoningContent\.redactedContent: expected a str"),
        (blocks({"reasoningContent": {"reasoningText": {}}}), r"\.reasoningContent\.reasoningText\.text: expected"),
        (blocks({"image": {"source": {"bytes": 1.5}}}), r"\.image\.source\.bytes: expected a string, got a number"),
        (blocks({"image": {"source": {"s3Location": 1}}}), r"\.image\.source\.s3Location: expected an object"),
        (blocks({"image": {"source": {"s3Location": {}}}}), r"\.image\.source\.s3Location\.uri: expected a string"),
        ({"system": "x"}, r"^\$\.system: expected an array"),
        ({"system": [{"text": 1}]}, r"^\$\.system\[0\]\.text: expected a string"),
        ({"inferenceConfig": {"maxTokens": "5"}}, r"^\$\.inferenceConfig\.maxTokens: expected a whole number"),
        ({"inferenceConfig": {"stopSequences": [1]}}, r"^\$\.inferenceConfig\.stopSequences\[0\]: expected a string"),
        ({"toolConfig": {"tools": [{"toolSpec": {}}]}}, r"^\$\.toolConfig\.tools\[0\]\.toolSpec\.name: expected"),
        (
            {"toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": "{}"}}}]}},
            r"^\$\.toolConfig\.tools\[0\]\.toolSpec\.inputSchema\.json: expected an object",
        ),
        ({"toolConfig": {"toolChoice": "auto"}}, r"^\$\.toolConfig\.toolChoice: expected an object"),
        ({"toolConfig": {"toolChoice": {"auto": 1}}}, r"^\$\.toolConfig\.toolChoice\.auto: expected an object"),
        ({"toolConfig": {"toolChoice": {"tool": {}}}}, r"^\$\.toolConfig\.toolChoice\.tool\.name: expected a string"),
    ],
)
def test_a_field_of_the_wrong_type_is_refused_with_its_path(change: Fields, message: str) -> None:
    with pytest.raises(InputError, match=message):
        request.decode({"messages": [], **change})


CALLED: list[Fields] = [{"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}]
SAID: list[Fields] = [{"text": "x"}]


@pytest.mark.parametrize(
    ("said", "content", "stop"),
    [
        ("end_turn", SAID, "stop"),
        ("stop_sequence", SAID, "stop"),
        ("end_turn", CALLED, "tool_calls"),
        ("tool_use", CALLED, "tool_calls"),
        ("tool_use", SAID, "stop"),
        ("max_tokens", CALLED, "length"),
        ("model_context_window_exceeded", SAID, "length"),
        ("guardrail_intervened", SAID, "filter"),
        ("content_filtered", SAID, "filter"),
        ("malformed_tool_use", SAID, "error"),
        ("malformed_something_new", SAID, "error"),
        ("something_new", SAID, "stop"),
        (None, SAID, None),
    ],
)
def test_J1_J2_why_a_reply_ended_is_derived_from_its_calls(said: str | None, content: list[Fields], stop: str) -> None:
    body = {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": said}
    assert reply.decode(body).stop == stop


def test_a_reply_made_elsewhere_is_written() -> None:
    made = Reply(Turn("assistant", (Text("x"),)), "length", Usage(10, 5, 3, 2), "m1", "c")
    body = reply.encode(made)
    assert body["output"] == {"message": {"role": "assistant", "content": [{"text": "x"}]}}
    assert body["stopReason"] == "max_tokens"
    assert body["usage"] == {
        "inputTokens": 5,
        "outputTokens": 5,
        "totalTokens": 15,
        "cacheReadInputTokens": 3,
        "cacheWriteInputTokens": 2,
    }
    again = reply.decode(body).usage
    assert again is not None
    assert replace(again, extra=None) == made.usage
    assert "stopReason" not in reply.encode(Reply(Turn("assistant")))


def test_a_reply_that_ended_otherwise_than_it_said_is_written_as_it_ended() -> None:
    body = {"output": {"message": {"role": "assistant", "content": SAID}}, "stopReason": "stop_sequence"}
    assert reply.encode(replace(reply.decode(body), stop="filter"))["stopReason"] == "content_filtered"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"output": None}, r"^\$\.output: expected an object, got null"),
        ({"output": {}}, r"^\$\.output\.message: expected an object, but the field is missing"),
        ({"output": {"message": {"role": "user"}}}, r"^\$\.output\.message\.role: expected one of assistant"),
        ({"output": {"message": {"role": "assistant", "content": [1]}}}, r"^\$\.output\.message\.content\[0\]: exp"),
        ({"stopReason": 1}, r"^\$\.stopReason: expected a string"),
        ({"usage": {"inputTokens": "3"}}, r"^\$\.usage\.inputTokens: expected a whole number, got a string"),
    ],
)
def test_a_reply_with_a_field_of_the_wrong_type_is_refused(change: Fields, message: str) -> None:
    body = {"output": {"message": {"role": "assistant", "content": []}}, **change}
    with pytest.raises(InputError, match=message):
        reply.decode(body)
