"""The Chat Completions protocol: lossless in both directions, and strict about types."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from support.conversations.strategies import conversations
from support.protocols.body_laws import same_json
from support.protocols.messages_openai_chat import BASE, blocks_of, call, messages_of
from support.protocols.strategies.openai_chat import chat_requests
from support.protocols.strategies.wire_objects import Fields
from toolglot import (
    InputError,
    Issuer,
    Media,
    Opaque,
    ServerTool,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    dump,
    load,
)
from toolglot.conversation import Conversation, Options, OutputFormat, Reasoning, Sampling, ToolChoice, ToolSpec
from toolglot.protocols.anthropic import request as anthropic_request
from toolglot.protocols.openai_chat import request
from toolglot.protocols.openai_chat.form import (
    BARE,
    DOCUMENT_URL,
    RAW_ARGUMENTS,
    REFUSAL_FIELD,
    REFUSAL_PART,
    ChatRequest,
    ChatThinking,
)


@pytest.mark.law
@given(chat_requests)
def test_one_message_is_one_turn(body: Fields) -> None:
    assert len(request.decode(body).turns) == len(body["messages"])


@pytest.mark.law
@given(conversations)
def test_any_conversation_made_elsewhere_can_be_written_and_read_again(made: Conversation) -> None:
    body = request.encode(load(dump(made).replace(b'"openai_chat"', b'"gemini"')))
    assert same_json(request.encode(request.decode(body)), body)


def comes_back_or_is_refused(
    decode: Callable[[Fields], Any], encode: Callable[[Any], Fields], body: Any
) -> bool:  # any exception but an InputError is a failure
    try:
        found = decode(body)
    except InputError as error:
        return error.path.startswith("$.")
    return same_json(encode(found), body)


def test_decoding_a_request() -> None:
    body = {
        **BASE,
        "messages": [
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {
                "role": "assistant",
                "reasoning_content": "hm",
                "content": "look",
                "tool_calls": [
                    call('{"a":1}'),
                    call('{"a": 1}', "c2"),
                    {"id": "c3", "type": "custom", "custom": {"name": "g", "input": "x = 1"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "out", "name": "f"},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "out"}]},
            {"role": "function", "name": "old", "content": "out"},
            {"role": "assistant", "content": None, "refusal": "no", "function_call": {"name": "f", "arguments": "{}"}},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True},
            },
            {"type": "custom", "custom": {"name": "g", "format": {"type": "text"}}},
            {"type": "builtin_function", "function": {"name": "$web_search"}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "parallel_tool_calls": False,
        "max_tokens": 5,
        "stop": "END",
        "temperature": 1,
        "top_p": 0.5,
        "seed": 7,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "reasoning_effort": "high",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": True},
        },
        "stream": True,
        "stream_options": {"include_usage": True},
        "user": "u1",
    }
    found = request.decode(body)
    roles = ["developer", "user", "assistant", "tool", "tool", "tool", "assistant"]
    assert [turn.role for turn in found.turns] == roles
    reason = found.turns[2].blocks
    assert reason == (
        Thinking("hm", form=ChatThinking("reasoning_content")),
        Text("look"),
        ToolCall("c1", "f", {"a": 1}),
        ToolCall("c2", "f", {"a": 1}, raw_input='{"a": 1}', form=RAW_ARGUMENTS),
        ToolCall("c3", "g", type="custom", raw_input="x = 1"),
    )
    assert found.turns[3].blocks == (ToolResult("c1", "out", name="f", is_complete=True),)
    assert found.turns[4].results[0].content == (Text("out"),)
    assert [block.kind for turn in found.turns for block in turn.blocks if isinstance(block, Opaque)] == [
        "function",
        "function_call",
    ]
    assert found.turns[6].blocks[0] == Text("no", form=REFUSAL_FIELD, is_refusal=True)
    assert (found.tools[0].parameters, found.tools[0].strict) == ({"type": "object"}, True)
    assert found.tools[1] == ToolSpec("g", type="custom", format={"type": "text"})
    assert (found.tools[2].type, found.tools[2].issuer) == ("builtin_function", Issuer("openai_chat"))
    options = found.options
    assert options.sampling == Sampling(5, 1, 0.5, None, ("END",), 7, 0.1, 0.2)
    assert options.reasoning == Reasoning(effort="high")
    assert options.output == OutputFormat("json_schema", "n", {"type": "object"}, True)
    choice = options.tool_choice
    assert choice is not None
    assert (choice.mode, choice.names, choice.parallel) == ("named", ("f",), False)
    assert (options.stream, options.user, found.model) == (True, "u1", "gpt")
    assert found.extra == {"openai_chat": {"stream_options": {"include_usage": True}}}
    assert found.form == ChatRequest("max_tokens", stop="text", seed_field="seed")
    assert same_json(request.encode(found), body)


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            Media("image", "image/png", data="aGk="),
        ),
        ({"type": "image_url", "image_url": {"url": "https://a"}}, Media("image", url="https://a")),
        (
            {"type": "image_url", "image_url": {"url": "data:;base64,aGk="}},
            Media("image", url="data:;base64,aGk="),
        ),
        ({"type": "video_url", "video_url": {"url": "https://a"}}, Media("video", url="https://a")),
        (
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
            Media("audio", "audio/mpeg", data="aGk="),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
            Media("audio", "audio/wav", data="aGk="),
        ),
        ({"type": "file", "file": {"file_id": "f1"}}, Media("file", file_id="f1")),
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk=", "filename": "n"}},
            Media("file", "application/pdf", data="aGk=", name="n"),
        ),
        ({"type": "file", "file": {"file_data": "aGk="}}, Media("file", data="aGk=")),
        ({"type": "file", "file": {"file_data": "https://a"}}, Media("file", url="https://a")),
        ({"type": "refusal", "refusal": "no"}, Text("no", form=REFUSAL_PART, is_refusal=True)),
        (
            {"type": "input_audio", "input_audio": "UklGRg=="},
            Media("audio", "audio/wav", data="UklGRg==", form=BARE),
        ),
        ({"type": "input_audio", "input_audio": "aGk="}, Media("audio", data="aGk=", form=BARE)),
        (
            {"type": "input_audio", "input_audio": "https://a"},
            Media("audio", url="https://a", form=BARE),
        ),
        ({"type": "file", "file_id": "f1"}, Media("file", file_id="f1", form=BARE)),
        (
            {"type": "document_url", "document_url": "https://a", "document_name": "n"},
            Media("document", url="https://a", name="n", form=DOCUMENT_URL),
        ),
        (
            {"type": "document_url", "document_url": "data:application/pdf;base64,aGk="},
            Media("document", "application/pdf", data="aGk=", form=DOCUMENT_URL),
        ),
        (
            {"type": "document_url", "document_url": {"url": "u"}},
            Opaque("openai_chat", {"type": "document_url", "document_url": {"url": "u"}}, "document_url"),
        ),
        (
            {"type": "thinking", "thinking": []},
            Opaque("openai_chat", {"type": "thinking", "thinking": []}, "thinking"),
        ),
        ({"type": "later"}, Opaque("openai_chat", {"type": "later"}, "later")),
    ],
)
def test_a_content_part_means_the_same_both_ways(part: Fields, block: Any) -> None:
    assert blocks_of({"role": "user", "content": [part]}) == (block,)
    assert messages_of(Turn("user", (block,))) == [{"role": "user", "content": [part]}]


@pytest.mark.parametrize(
    ("written", "arguments", "raw"),
    [
        ('{"a":1}', {"a": 1}, None),
        ('{"a":1.0}', {"a": 1.0}, None),
        ('{"a":"é"}', {"a": "é"}, None),
        ("{}", {}, None),
        ('{ "a": 1 }', {"a": 1}, '{ "a": 1 }'),
        ('{"a":1,"a":2}', {"a": 2}, '{"a":1,"a":2}'),
        ("", {}, ""),
        ('{"a":', None, '{"a":'),
        ("[1]", None, "[1]"),
        ("nonsense", None, "nonsense"),
        ('{"a":1e999}', None, '{"a":1e999}'),
        ('{"a":' * 190 + "1" + "}" * 190, None, '{"a":' * 190 + "1" + "}" * 190),
    ],
)
def test_arguments_are_an_object_and_their_text_is_kept_where_it_differs(
    written: str, arguments: Fields | None, raw: str | None
) -> None:
    (found,) = blocks_of({"role": "assistant", "tool_calls": [call(written)]})
    assert (found.arguments, found.raw_input) == (arguments, raw)
    assert messages_of(Turn("assistant", (found,)))[0]["tool_calls"] == [call(written)]


@pytest.mark.parametrize(
    ("made", "written"),
    [
        (ToolCall("c1", "f"), "{}"),
        (ToolCall("c1", "f", {}), "{}"),
        (ToolCall("c1", "f", {"a": [1, 2.0, "é"]}), '{"a":[1,2.0,"é"]}'),
        (ToolCall("c1", "f", {"a": 1}, raw_input='"{\\"a\\":1}"'), '{"a":1}'),
        (ToolCall("c1", "f", raw_input="nonsense"), "nonsense"),
    ],
)
def test_R_002_15_arguments_are_written_as_one_json_text(made: ToolCall, written: str) -> None:
    assert messages_of(Turn("assistant", (made,))) == [
        {"role": "assistant", "content": None, "tool_calls": [call(written)]}
    ]


def test_R_002_15_arguments_encoded_twice_are_the_object_that_they_mean() -> None:
    (found,) = blocks_of({"role": "assistant", "tool_calls": [call(json.dumps('{"a":1}'))]})
    assert found.arguments == {"a": 1}


def test_R_002_8_a_lone_tool_result_becomes_a_tool_message_and_no_empty_user_message() -> None:
    result = {"type": "tool_result", "tool_use_id": "call_abc123", "content": "72°F, sunny"}
    found = anthropic_request.decode({"messages": [{"role": "user", "content": [result]}]})
    assert request.encode(found) == {
        "messages": [{"role": "tool", "tool_call_id": "call_abc123", "content": "72°F, sunny"}]
    }


def test_R_002_8_results_beside_other_blocks_come_first_one_message_each() -> None:
    picture = Media("image", url="https://a")
    assert messages_of(Turn("user", (Text("see"), ToolResult("a", "1"), picture, ToolResult("b", "2")))) == [
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "https://a"}}],
        },
    ]
    foreign = (ServerTool("anthropic", "call", {}), Opaque("anthropic", {}), Thinking("hm"))
    assert messages_of(Turn("user", (*foreign, ToolResult("a", "1")))) == [
        {"role": "tool", "tool_call_id": "a", "content": "1"}
    ]


@pytest.mark.parametrize(
    ("result", "content"),
    [
        (ToolResult("a"), ""),
        (ToolResult("a", ()), ""),
        (ToolResult("a", (Text("x"),)), "x"),
        (ToolResult("a", (Text("x"), Text("y"))), [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]),
        (
            ToolResult("a", (Media("image", "image/png", data="aGk="), Opaque("anthropic", {}))),
            [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}],
        ),
        (ToolResult("a", "boom", is_error=True), "Error: boom"),
        (ToolResult("a", "Error: boom", is_error=True), "Error: boom"),
        (ToolResult("a", "Error: boom"), "Error: boom"),
        (ToolResult("a", is_error=True, error="boom"), "Error: boom"),
        (ToolResult("a", (Text("boom"),), is_error=True), "Error: boom"),
        (ToolResult("a", (Text("Error: boom"),), is_error=True), "Error: boom"),
        (
            ToolResult("a", (Media("image", url="u"), Text("boom")), is_error=True),
            [{"type": "image_url", "image_url": {"url": "u"}}, {"type": "text", "text": "Error: boom"}],
        ),
        (
            ToolResult("a", (Media("image", url="u"),), is_error=True),
            [{"type": "text", "text": "Error:"}, {"type": "image_url", "image_url": {"url": "u"}}],
        ),
    ],
)
def test_a_foreign_result_is_written_with_its_error_in_the_text(result: ToolResult, content: Any) -> None:
    assert messages_of(Turn("tool", (result,))) == [{"role": "tool", "tool_call_id": "a", "content": content}]


def test_what_is_left_of_a_message_without_content_is_still_written() -> None:
    message = {"role": "tool", "tool_call_id": "a"}
    (found,) = blocks_of(message)
    assert messages_of(Turn("tool", (found,))) == [message]
    (nameless,) = blocks_of({"role": "tool", "content": "x"})
    assert messages_of(Turn("tool", (nameless,))) == [{"role": "tool", "content": "x"}]


@pytest.mark.parametrize(
    ("turn", "messages"),
    [
        (Turn("system", (Text("a"),)), [{"role": "system", "content": "a"}]),
        (
            Turn("developer", (Text("a"), Text("b"))),
            [{"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
        ),
        (
            Turn("assistant", (Thinking("h"), Thinking(redacted="x"), Text("a"), Thinking("m"), Text("b"))),
            [{"role": "assistant", "reasoning_content": "hm", "content": "ab"}],
        ),
        (Turn("assistant"), [{"role": "assistant", "content": ""}]),
        (
            Turn("assistant", (Text("a"), ToolCall("c1", "f"), ToolResult("c1", "x"))),
            [
                {"role": "assistant", "content": "a", "tool_calls": [call("{}")]},
                {"role": "tool", "tool_call_id": "c1", "content": "x"},
            ],
        ),
        (Turn("user"), [{"role": "user", "content": ""}]),
        (Turn("user", (ToolCall("c1", "f"), Text("a"))), [{"role": "user", "content": "a"}]),
        (Turn("tool"), []),
        (Turn("tool", (Text("a"),)), [{"role": "user", "content": "a"}]),
        (
            Turn("user", (Media("image", file_id="f1"), Media("audio", url="u"))),
            [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f1"}}]}],
        ),
        (
            Turn("user", (Media("audio", "audio/x-wav", data="aGk="), Media("document", "a/b", data="aGk="))),
            [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
                        {"type": "file", "file": {"file_data": "data:a/b;base64,aGk="}},
                    ],
                }
            ],
        ),
        (
            Turn("assistant", (ToolCall("c1", "g", {"a": 1}, "custom"),)),
            [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "g", "input": '{"a":1}'}}],
                }
            ],
        ),
    ],
)
def test_a_turn_made_elsewhere_is_written(turn: Turn, messages: list[Fields]) -> None:
    assert messages_of(turn) == messages


def test_thoughts_of_merged_messages_are_one_text() -> None:
    thought = Thinking("a", form=ChatThinking("reasoning"))
    assert messages_of(Turn("assistant", (thought, thought, Text("x")))) == [
        {"role": "assistant", "reasoning": "aa", "content": "x"}
    ]


def test_options_made_elsewhere_are_written() -> None:
    made = Conversation(
        tools=(
            ToolSpec("f", "d", {"type": "object"}, strict=False),
            ToolSpec("g", type="custom"),
            ToolSpec("s", type="web_search_20250305", issuer=Issuer("anthropic")),
        ),
        options=Options(
            Sampling(9, stop=("a",)),
            Reasoning("on"),
            ToolChoice("named", ("g",)),
            OutputFormat("json_schema", schema={}),
        ),
    )
    assert request.encode(made) == {
        "messages": [],
        "tools": [
            {
                "type": "function",
                "function": {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": False},
            },
            {"type": "custom", "custom": {"name": "g"}},
        ],
        "tool_choice": {"type": "custom", "custom": {"name": "g"}},
        "max_completion_tokens": 9,
        "stop": ["a"],
        "response_format": {"type": "json_schema", "json_schema": {"name": "response", "schema": {}}},
    }


ALLOWED: Fields = {
    "type": "allowed_tools",
    "allowed_tools": {
        "mode": "required",
        "tools": [{"type": "function", "function": {"name": "f"}}, {"type": "mcp", "server_label": "x"}],
    },
}


@pytest.mark.parametrize(
    ("written", "mode", "names"),
    [
        ("auto", "auto", ()),
        ("none", "none", ()),
        ("required", "required", ()),
        ("any", "required", ()),
        ("later", "auto", ()),
        ({"type": "later"}, "auto", ()),
        ({"type": "function", "function": {"name": "f"}}, "named", ("f",)),
        ({"type": "custom", "custom": {"name": "g"}}, "named", ("g",)),
        (ALLOWED, "required", ("f",)),
    ],
)
def test_decoding_a_tool_choice(written: Any, mode: str, names: tuple[str, ...]) -> None:
    choice = request.decode({**BASE, "tool_choice": written}).options.tool_choice
    assert choice is not None
    assert (choice.mode, choice.names, choice.parallel) == (mode, names, None)


@pytest.mark.parametrize(
    ("reason", "written"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "X"}, {"type": "function", "function": {"name": "X"}}),
    ],
)
def test_R_002_12_a_tool_choice_of_anthropic_is_written(reason: Fields, written: Any) -> None:
    found = anthropic_request.decode({"messages": [], "tool_choice": reason})
    assert request.encode(found) == {"messages": [], "tool_choice": written}


def written_choice(choice: ToolChoice, tools: tuple[ToolSpec, ...] = ()) -> Fields:
    body = request.encode(Conversation(tools=tools, options=Options(tool_choice=choice)))
    return {key: value for key, value in body.items() if key in ("tool_choice", "parallel_tool_calls")}


def test_parallel_calls_are_written_only_where_they_were_set() -> None:
    assert written_choice(ToolChoice("required", parallel=False)) == {
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }
    decoded = request.decode({**BASE, "parallel_tool_calls": True}).options.tool_choice
    assert decoded is not None
    assert written_choice(decoded) == {"parallel_tool_calls": True}
    assert written_choice(ToolChoice("none", parallel=True, form=decoded.form))["tool_choice"] == "none"


def test_allowed_tools_are_written_with_the_names_that_they_have_now() -> None:
    tools = (ToolSpec("g", type="custom"),)
    listed = [{"type": "function", "function": {"name": "f2"}}, {"type": "custom", "custom": {"name": "g"}}]
    read = request.decode({**BASE, "tool_choice": ALLOWED}).options.tool_choice
    assert read is not None
    later = Opaque("openai_chat", {"type": "later"})
    for form, opaque, mode in ((read.form, None, "required"), (None, None, "auto"), (None, later, "auto")):
        assert written_choice(ToolChoice("allowed", ("f2", "g"), form=form, opaque=opaque), tools)["tool_choice"] == {
            "type": "allowed_tools",
            "allowed_tools": {"mode": mode, "tools": listed},
        }
    assert written_choice(ToolChoice("none", form=read.form)) == {"tool_choice": "none"}
    assert written_choice(ToolChoice("none", opaque=later)) == {"tool_choice": "none"}


def test_of_two_limits_the_newer_counts() -> None:
    found = request.decode({**BASE, "max_tokens": 5, "max_completion_tokens": 6})
    assert found.options.sampling.max_tokens == 6


@pytest.mark.parametrize(
    ("written", "kind"),
    [({"type": "text"}, "text"), ({"type": "json_object"}, "json"), ({"type": "later"}, "text"), ({}, "text")],
)
def test_decoding_an_output_format(written: Fields, kind: str) -> None:
    output = request.decode({**BASE, "response_format": written}).options.output
    assert output is not None
    assert output.kind == kind


def in_part(part: Fields) -> Fields:
    return {"messages": [{"role": "user", "content": [part]}]}


def in_calls(*calls: Any) -> Fields:
    return {"messages": [{"role": "assistant", "tool_calls": list(calls)}]}


FIRST_MESSAGE = r"^\$\.messages\[0\]"
PART = FIRST_MESSAGE + r"\.content\[0\]"
CALL = FIRST_MESSAGE + r"\.tool_calls\[0\]"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"messages": None}, r"^\$\.messages: expected an array, got null"),
        ({"messages": ["hi"]}, FIRST_MESSAGE + r": expected an object, got a string"),
        ({"messages": [{"content": "x"}]}, FIRST_MESSAGE + r"\.role: expected a string, but the field is missing"),
        (
            {"messages": [{"role": "robot"}]},
            FIRST_MESSAGE + r"\.role: expected one of system, developer, user, assistant, tool",
        ),
        (
            {"messages": [{"role": "user", "content": 3}]},
            FIRST_MESSAGE + r"\.content: expected a string or an array of parts",
        ),
        (
            {"messages": [{"role": "tool", "tool_call_id": 3}]},
            FIRST_MESSAGE + r"\.tool_call_id: expected a string, got a whole",
        ),
        ({"messages": [{"role": "tool", "content": [3]}]}, PART + r": expected an object, got a whole number"),
        ({"messages": [{"role": "assistant", "refusal": 3}]}, FIRST_MESSAGE + r"\.refusal: expected a string"),
        (
            {"messages": [{"role": "assistant", "function_call": "f"}]},
            FIRST_MESSAGE + r"\.function_call: expected an object",
        ),
        ({"messages": [{"role": "assistant", "tool_calls": {}}]}, FIRST_MESSAGE + r"\.tool_calls: expected an array"),
        (in_part({}), PART + r"\.type: expected a string, but the field is missing"),
        (in_part({"type": "text"}), PART + r"\.text: expected a string, but the field is missing"),
        (in_part({"type": "image_url"}), PART + r"\.image_url: expected an object, but the field is missing"),
        (
            in_part({"type": "image_url", "image_url": {"url": 1.5}}),
            PART + r"\.image_url\.url: expected a string, got a n",
        ),
        (in_part({"type": "input_audio", "input_audio": {"data": "x"}}), PART + r"\.input_audio\.format: "),
        (in_part({"type": "file", "file": {"file_id": 3}}), PART + r"\.file\.file_id: expected a string"),
        (in_calls({}), CALL + r"\.type: expected a string, but the field is missing"),
        (in_calls({"type": "function"}), CALL + r"\.function: expected an object, but the field is missing"),
        (in_calls({"function": {}}), CALL + r"\.function\.name: expected a string, but the field is missing"),
        (in_calls(call(3)), CALL + r"\.function\.arguments: expected a string, got a whole number"),
        (in_calls({"id": 3, "function": {"name": "f"}}), CALL + r"\.id: expected a string"),
        (
            in_calls({"id": 3, "type": "custom", "custom": {"name": "g", "input": ""}}),
            CALL + r"\.id: expected a string",
        ),
        (in_calls({"type": "custom", "custom": {"name": "g"}}), CALL + r"\.custom\.input: expected a string, but"),
        ({"tools": [{"name": 3}]}, r"^\$\.tools\[0\]\.type: expected a string, but the field is missing"),
        ({"tools": [{"type": "function", "function": {}}]}, r"^\$\.tools\[0\]\.function\.name: expected a string"),
        ({"tools": [{"type": "custom", "custom": {"name": 3}}]}, r"^\$\.tools\[0\]\.custom\.name: expected a string"),
        ({"tool_choice": 3}, r"^\$\.tool_choice: expected a string or an object, got a whole number"),
        ({"tool_choice": {}}, r"^\$\.tool_choice\.type: expected a string, but the field is missing"),
        ({"tool_choice": {"type": "function", "function": {}}}, r"^\$\.tool_choice\.function\.name: "),
        (
            {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": [{"type": "function"}]}}},
            r"^\$\.tool_choice\.allowed_tools\.tools\[0\]\.function: expected an object",
        ),
        ({"parallel_tool_calls": "no"}, r"^\$\.parallel_tool_calls: expected true or false, got a string"),
        ({"response_format": "json"}, r"^\$\.response_format: expected an object"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": "s"}}},
            r"^\$\.response_format\.json_schema\.schema: expected an object",
        ),
        ({"max_tokens": 1.5}, r"^\$\.max_tokens: expected a whole number, got a number"),
        ({"stop": [1]}, r"^\$\.stop\[0\]: expected a string"),
        ({"stop": 1}, r"^\$\.stop: expected an array"),
        ({"reasoning_effort": 1}, r"^\$\.reasoning_effort: expected a string"),
        ({"temperature": True}, r"^\$\.temperature: expected a number, got true or false"),
        ({"model": 3}, r"^\$\.model: expected a string"),
    ],
)
def test_a_field_of_the_wrong_type_is_refused_with_its_path(change: Fields, message: str) -> None:
    with pytest.raises(InputError, match=message):
        request.decode({**BASE, **change})
