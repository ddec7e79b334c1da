"""The Bedrock Converse protocol: lossless in both directions, and strict about types."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from support.protocols.strategies.wire_objects import Fields
from toolglot import InputError, Text, Thinking, ToolCall, ToolResult, ToolSpec, Turn
from toolglot.conversation import (
    Conversation,
    Issuer,
    Media,
    Opaque,
    Options,
    OutputFormat,
    Reasoning,
    Reply,
    Sampling,
    ServerTool,
    ToolChoice,
    Usage,
)
from toolglot.protocols.bedrock import reply, request


def test_decoding_a_request() -> None:
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
    blocks = found.turns[2].blocks
    thoughts = [replace(block, extra=None, form=None) for block in blocks if isinstance(block, Thinking)]
    assert thoughts == [Thinking("hm", "sig"), Thinking(redacted="xx")]
    assert blocks[2] == ToolCall("t1", "f", {"a": 1})
    assert [type(block) for block in blocks[3:]] == [ServerTool, ServerTool, Text]
    assert [block.phase for block in blocks if isinstance(block, ServerTool)] == ["call", "result"]
    (result,) = found.turns[3].results
    assert (result.call_id, result.is_error, result.is_complete) == ("t1", True, True)
    assert result.text == 'out{"b":[1.0,"é"]}'
    assert found.turns[3].blocks[1:4] == (
        Media("image", "image/png", data="aGk="),
        Media("document", "text/plain", url="s3://b/k", name="n"),
        Media("video", "video/3gpp", data="aGk="),
    )
    assert replace(found.turns[3].blocks[4], extra=None, form=None) == Text("n\nplain")
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
                    Thinking("shown", redacted="xx"),
                    Thinking(redacted="xx"),
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
        {"reasoningContent": {"reasoningText": {"text": "unsigned"}}},
        {"reasoningContent": {"reasoningText": {"text": "signed", "signature": "sig"}}},
        {"reasoningContent": {"reasoningText": {"text": "shown"}}},
        {"reasoningContent": {"redactedContent": "xx"}},
        {"toolUse": {"toolUseId": "c1", "name": "f", "input": {}}},
    ]
    assert body["messages"][2]["content"] == [
        {"toolResult": {"toolUseId": "c1", "content": [{"text": "x"}], "status": "error"}},
        {"toolResult": {"toolUseId": "c2", "content": []}},
    ]
    empty = {"json": {"type": "object", "properties": {}}}
    assert body["toolConfig"] == {
        "tools": [{"toolSpec": {"name": "f", "inputSchema": empty}}],
        "toolChoice": {"auto": {}},
    }


WORDED: list[tuple[Fields, str]] = [
    (
        {"citationsContent": {"content": [{"text": "7 "}, {"text": "°C"}], "citations": [{"title": "t"}]}},
        "7 °C",
    ),
    (
        {"searchResult": {"source": "https://a", "title": "A", "content": [{"text": "x"}, {"text": "y"}]}},
        "A\nhttps://a\nx\ny",
    ),
    ({"document": {"format": "txt", "name": "n", "source": {"text": "plain"}}}, "n\nplain"),
    ({"guardContent": {"text": {"text": "guard this", "qualifiers": ["query"]}}}, "guard this"),
    ({"document": {"name": "n", "source": {"content": [{"text": "a"}, {"text": "b"}]}, "context": "c"}}, "n\na\nb"),
]


@pytest.mark.parametrize(("block", "words"), WORDED)
def test_words_in_another_form_are_text_for_everyone_else_and_come_back_as_they_were(block: Fields, words: str) -> None:
    body = blocks(block, {"toolResult": {"toolUseId": "t", "content": [block]}})
    found = request.decode(body)
    assert request.encode(found) == body
    text, result = found.turns[0].blocks
    assert isinstance(text, Text)
    assert isinstance(result, ToolResult)
    assert (text.text, result.text) == (words, words)
    changed = replace(text, text="…")
    assert request.encode(Conversation((Turn("user", (changed,)),)))["messages"][0]["content"] == [{"text": "…"}]


@pytest.mark.parametrize(
    "block",
    [
        {"citationsContent": {"content": [{"image": 1}]}},
        {"citationsContent": 3},
        {"citationsContent": {"content": [{"text": "x"}]}, "later": 1},
        {"searchResult": {"title": 3, "content": [{"text": "x"}]}},
        {"searchResult": {"content": []}},
        {"document": {"source": {"text": None}}},
        {"guardContent": {"image": {"format": "png", "source": {"bytes": "aGk="}}}},
        {"document": {"source": {"text": "x", "later": 1}}},
        {"image": {"source": {"text": "x"}}},
    ],
)
def test_what_holds_no_words_is_carried_as_it_came(block: Fields) -> None:
    found = request.decode(blocks(block))
    assert isinstance(found.turns[0].blocks[0], Opaque)
    assert request.encode(found) == blocks(block)


def test_the_answer_with_citations_is_the_text_of_a_reply() -> None:
    message = {"role": "assistant", "content": [WORDED[0][0]]}
    assert reply.decode({"output": {"message": message}}).turn.text == "7 °C"


def test_E8_a_free_text_call_from_elsewhere_is_one_argument() -> None:
    turn = Turn("assistant", (ToolCall("c", "patch", type="custom", raw_input="+x"),))
    written = [{"toolUse": {"toolUseId": "c", "name": "patch", "input": {"input": "+x"}}}]
    assert request.encode(Conversation((turn,)))["messages"][0]["content"] == written
    assert reply.encode(Reply(turn, "tool_calls"))["output"]["message"]["content"] == written


def test_a_result_that_is_only_a_value_is_written_as_its_json() -> None:
    results = (
        ToolResult("c", result={"a": [1.0]}),
        ToolResult("d", result="x"),
        ToolResult("e", result={"a": 1}, error="boom", is_error=True),
    )
    written = request.encode(Conversation((Turn("tool", results),)))["messages"][0]["content"]
    contents = [part["toolResult"]["content"] for part in written]
    assert contents == [[{"text": '{"a":[1.0]}'}], [{"text": "x"}], [{"text": "boom"}]]


# --- options of the model ---------------------------------------------------------------------------

SCHEMA: Fields = {"type": "object", "properties": {"a": {"type": "string"}}}


def text_format(schema: str, **fields: Any) -> Fields:
    return {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": schema, **fields}}}}


@pytest.mark.parametrize(
    ("options", "written"),
    [
        (
            Options(reasoning=Reasoning("on", budget_tokens=4096)),
            {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 4096}}},
        ),
        (Options(reasoning=Reasoning("off")), {"additionalModelRequestFields": {"thinking": {"type": "disabled"}}}),
        (
            Options(Sampling(top_k=5), Reasoning("adaptive", "high")),
            {
                "additionalModelRequestFields": {
                    "thinking": {"type": "adaptive"},
                    "output_config": {"effort": "high"},
                    "top_k": 5,
                }
            },
        ),
        (
            Options(output=OutputFormat("json_schema", "answer", SCHEMA)),
            {"outputConfig": text_format('{"type":"object","properties":{"a":{"type":"string"}}}', name="answer")},
        ),
        (Options(output=OutputFormat("json")), {}),
    ],
)
def test_foreign_options_are_written_where_claude_reads_them(options: Options, written: Fields) -> None:
    body = request.encode(Conversation(options=options))
    assert body == {"messages": [], **written}
    again = request.decode(body).options
    assert again == (options if written else Options())


def test_a_budget_without_a_mode_turns_thinking_on() -> None:
    body = request.encode(Conversation(options=Options(reasoning=Reasoning(budget_tokens=2048))))
    assert body["additionalModelRequestFields"] == {"thinking": {"type": "enabled", "budget_tokens": 2048}}


def test_the_models_own_fields_are_decoded_and_come_back_as_they_were() -> None:
    body: Fields = {
        "messages": [],
        "additionalModelRequestFields": {
            "thinking": {"type": "enabled", "budget_tokens": 2000, "display": "omitted"},
            "output_config": {"effort": "low", "later": 1},
            "top_k": 7,
            "anthropic_beta": ["x"],
        },
        "outputConfig": {**text_format('{ "type": "object" }', description="d"), "effort": "max", "later": 2},
    }
    found = request.decode(body)
    assert request.encode(found) == body
    assert found.options.reasoning == Reasoning("on", "max", 2000)
    assert found.options.sampling.top_k == 7
    assert found.options.output == OutputFormat("json_schema", schema={"type": "object"}, description="d")
    assert found.extra is not None
    assert found.extra["bedrock"]["additionalModelRequestFields"] == {
        "output_config": {"later": 1},
        "anthropic_beta": ["x"],
    }, "unknown fields can be reported"
    assert found.extra["bedrock"]["outputConfig"] == {"later": 2}
    changed = replace(found, options=Options(reasoning=Reasoning(effort="high")))
    assert request.encode(changed) == {
        "messages": [],
        "additionalModelRequestFields": {"output_config": {"later": 1, "effort": "high"}, "anthropic_beta": ["x"]},
        "outputConfig": {"later": 2},
    }


@pytest.mark.parametrize(
    "body",
    [
        {"additionalModelRequestFields": {"thinking": "on", "output_config": 1, "top_k": True}},
        {"additionalModelRequestFields": {"thinking": {"type": "later", "budget_tokens": 5}}},
        {"additionalModelRequestFields": "x", "outputConfig": 3},
        {"additionalModelRequestFields": {}, "outputConfig": {}},
        {"outputConfig": text_format("[]")},
        {"outputConfig": text_format("{")},
        {"outputConfig": {"textFormat": {"type": "json_schema", "structure": {}}, "effort": 1}},
    ],
)
def test_fields_of_a_model_that_are_not_understood_are_carried_and_never_refused(body: Fields) -> None:
    found = request.decode({"messages": [], **body})
    assert found.options == Options()
    assert request.encode(found) == {"messages": [], **body}


def test_an_output_config_of_which_the_name_is_odd_is_read_without_it() -> None:
    found = request.decode({"messages": [], "outputConfig": text_format("{}", name=3)})
    assert found.options.output == OutputFormat("json_schema", schema={})


def test_a_tool_of_its_own_client_without_a_schema_stays_without() -> None:
    for spec in ({"name": "f"}, {"name": "f", "inputSchema": {}}, {"name": "f", "inputSchema": None}):
        body = {"messages": [], "toolConfig": {"tools": [{"toolSpec": spec}]}}
        assert request.encode(request.decode(body)) == body


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


CALL_CONTENT: list[Fields] = [{"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}]
TEXT_CONTENT: list[Fields] = [{"text": "x"}]


@pytest.mark.parametrize(
    ("reason", "content", "stop"),
    [
        ("end_turn", TEXT_CONTENT, "stop"),
        ("stop_sequence", TEXT_CONTENT, "stop"),
        ("end_turn", CALL_CONTENT, "tool_calls"),
        ("tool_use", CALL_CONTENT, "tool_calls"),
        ("tool_use", TEXT_CONTENT, "stop"),
        ("max_tokens", CALL_CONTENT, "length"),
        ("model_context_window_exceeded", TEXT_CONTENT, "length"),
        ("guardrail_intervened", TEXT_CONTENT, "filter"),
        ("content_filtered", TEXT_CONTENT, "filter"),
        ("malformed_tool_use", TEXT_CONTENT, "error"),
        ("malformed_something_new", TEXT_CONTENT, "error"),
        ("something_new", TEXT_CONTENT, "stop"),
        (None, TEXT_CONTENT, None),
    ],
)
def test_J1_J2_why_a_reply_ended_is_derived_from_its_calls(
    reason: str | None, content: list[Fields], stop: str
) -> None:
    body = {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": reason}
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
    assert replace(again, extra=None, form=None) == made.usage
    assert reply.encode(Reply(Turn("assistant"))) == {
        "output": {"message": {"role": "assistant", "content": []}},
        "usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0},
        "metrics": {"latencyMs": 0},
    }, "Converse clients are promised usage and metrics"
    assert reply.encode(Reply(Turn("assistant"), usage=Usage(7)))["usage"] == {
        "inputTokens": 7,
        "outputTokens": 0,
        "totalTokens": 7,
    }


def test_a_call_from_elsewhere_without_an_id_gets_one_in_a_reply() -> None:
    turn = Turn("assistant", (ToolCall("a", "f"), Text("x"), ToolCall("", "g"), ToolCall("", "h")))
    written = reply.encode(Reply(turn))["output"]["message"]["content"]
    assert [part["toolUse"]["toolUseId"] for part in written if "toolUse" in part] == ["a", "tooluse_1", "tooluse_2"]
    own = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "", "name": "f", "input": {}}}]}
    assert reply.encode(reply.decode({"output": {"message": own}})) == {"output": {"message": own}}


def test_law_12_a_client_is_shown_what_was_thought_but_no_signature_of_another_provider() -> None:
    turn = Turn("assistant", (Thinking("hm", "sig"), Thinking("shown", redacted="xx"), Thinking(redacted="xx")))
    assert reply.encode(Reply(turn))["output"]["message"]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "hm"}}},
        {"reasoningContent": {"reasoningText": {"text": "shown"}}},
    ]
    own = {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": "", "signature": "s"}}}]}
    assert reply.encode(reply.decode({"output": {"message": own}})) == {"output": {"message": own}}


def test_E1_a_reply_that_failed_does_not_look_finished() -> None:
    assert reply.encode(Reply(Turn("assistant"), "error"))["stopReason"] == "malformed_model_output"


def test_a_changed_stop_reason_is_written() -> None:
    body = {"output": {"message": {"role": "assistant", "content": TEXT_CONTENT}}, "stopReason": "stop_sequence"}
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
