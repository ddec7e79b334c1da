"""The Anthropic Messages protocol: lossless in both directions, and strict about types."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from support.protocols.strategies.wire_objects import Fields
from toolglot import InputError, Issuer, Text, Thinking, ToolCall, ToolResult, ToolSpec, Turn
from toolglot.conversation import (
    Block,
    Compaction,
    Conversation,
    Media,
    Opaque,
    Options,
    Reasoning,
    Reply,
    ServerTool,
    StopReason,
    ToolChoice,
    Usage,
)
from toolglot.protocols.anthropic import reply, request
from toolglot.protocols.anthropic.form import UNSIGNED

BASE: Fields = {"model": "claude", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}


def test_decoding_a_request() -> None:
    body = {
        **BASE,
        "system": "be brief",
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "sig"},
                    {"type": "redacted_thinking", "data": "xx"},
                    {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
                    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
                    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                    {"type": "compaction", "content": "c"},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "out", "is_error": True},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
                    {"type": "document", "source": {"type": "url", "url": "u"}, "title": "t"},
                ],
            },
            {"role": "system", "content": "mid"},
        ],
        "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": True}],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        "metadata": {"user_id": "u1"},
        "stop_sequences": ["END"],
        "temperature": 1,
    }
    found = request.decode(body)
    assert [turn.role for turn in found.turns] == ["system", "user", "assistant", "user", "system"]
    blocks = found.turns[2].blocks
    assert blocks[:3] == (Thinking("hm", "sig"), Thinking(redacted="xx"), ToolCall("toolu_1", "f", {"a": 1}))
    assert [type(block) for block in blocks[3:]] == [ServerTool, ServerTool, Compaction]
    assert [block.phase for block in blocks if isinstance(block, ServerTool)] == ["call", "result"]
    assert found.turns[3].blocks == (
        ToolResult("toolu_1", "out", is_error=True, is_complete=True),
        Media("image", "image/png", data="aGk="),
        Media("document", url="u", name="t"),
    )
    options = found.options
    assert options.tool_choice == ToolChoice("named", ("f",), parallel=False)
    assert options.reasoning == Reasoning("on", "high", 1024)
    assert options.output is not None
    assert (options.output.kind, options.output.schema) == ("json_schema", {"type": "object"})
    assert (options.user, options.sampling.stop, options.sampling.temperature) == ("u1", ("END",), 1)
    assert (found.tools[0].strict, found.tools[0].parameters) == (True, {"type": "object"})
    assert found.model == "claude"


def test_a_conversation_made_elsewhere_is_written() -> None:
    made = Conversation(
        (
            Turn("system", (Text("a"),)),
            Turn("developer", (Text("b"),)),
            Turn("user", (Media("image", file_id="f1"), Media("file", "text/plain", data="aGk=", name="n"))),
            Turn("assistant", (ToolCall("c1", "f"), Opaque("gemini", {"x": 1}), ServerTool("gemini", "call", {}))),
            Turn("tool", (ToolResult("c1", (Text("x"), Opaque("gemini", {}))),)),
            Turn("developer", (Text("mid"),)),
        ),
        options=Options(tool_choice=ToolChoice("allowed", ("f",)), reasoning=Reasoning("adaptive")),
    )
    body = request.encode(made)
    assert body["system"] == [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user", "system"]
    assert body["messages"][0]["content"] == [
        {"type": "image", "source": {"type": "file", "file_id": "f1"}},
        {"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": "aGk="}, "title": "n"},
    ]
    assert body["messages"][1]["content"] == [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]
    assert body["messages"][2]["content"][0]["content"] == [{"type": "text", "text": "x"}]
    assert body["tool_choice"] == {"type": "auto"}
    assert body["thinking"] == {"type": "adaptive"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"messages": None}, r"^\$\.messages: expected an array, got null"),
        ({"messages": "hi"}, r"^\$\.messages: expected an array, got a string"),
        ({"messages": ["hi"]}, r"^\$\.messages\[0\]: expected an object, got a string"),
        ({"messages": [{"content": "x"}]}, r"^\$\.messages\[0\]\.role: expected a string, but the field is missing"),
        ({"messages": [{"role": "robot", "content": ""}]}, r"^\$\.messages\[0\]\.role: expected one of user, assist"),
        ({"messages": [{"role": "user", "content": 3}]}, r"^\$\.messages\[0\]\.content: expected a string or an array"),
        ({"messages": [{"role": "user", "content": [{}]}]}, r"^\$\.messages\[0\]\.content\[0\]\.type: expected a str"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
            r"content\[0\]\.text: expected a string, but",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": 1.5}}]}]},
            r"content\[0\]\.source\.url: expected a string, got a number",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": 1}]}]},
            r"content\[0\]\.content: expected a string or an array of blocks, got a whole number",
        ),
        ({"system": 3}, r"^\$\.system: expected a string or an array of text blocks"),
        ({"tools": [{"name": 3}]}, r"^\$\.tools\[0\]\.name: expected a string, got a whole number"),
        ({"tool_choice": {}}, r"^\$\.tool_choice\.type: expected a string, but the field is missing"),
        ({"tool_choice": {"type": "tool"}}, r"^\$\.tool_choice\.name: "),
        ({"thinking": {"type": True}}, r"^\$\.thinking\.type: expected a string, got true or false"),
        ({"output_config": {"effort": 1}}, r"^\$\.output_config\.effort: "),
        ({"output_config": {"format": 1}}, r"^\$\.output_config\.format: expected an object"),
        ({"metadata": {"user_id": 1}}, r"^\$\.metadata\.user_id: "),
        ({"temperature": "hot"}, r"^\$\.temperature: expected a number, got a string"),
        ({"stop_sequences": [1]}, r"^\$\.stop_sequences\[0\]: expected a string"),
        ({"stream": "yes"}, r"^\$\.stream: expected true or false, got a string"),
    ],
)
def test_a_field_of_the_wrong_type_is_refused_with_its_path(change: Fields, message: str) -> None:
    with pytest.raises(InputError, match=message):
        request.decode({**BASE, **change})


CALL_CONTENT: list[Fields] = [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]
TEXT_CONTENT: list[Fields] = [{"type": "text", "text": "x"}]


@pytest.mark.parametrize(
    ("reason", "content", "stop"),
    [
        ("end_turn", TEXT_CONTENT, "stop"),
        ("end_turn", CALL_CONTENT, "tool_calls"),
        ("tool_use", CALL_CONTENT, "tool_calls"),
        ("tool_use", TEXT_CONTENT, "stop"),
        ("max_tokens", CALL_CONTENT, "length"),
        ("model_context_window_exceeded", TEXT_CONTENT, "length"),
        ("refusal", TEXT_CONTENT, "filter"),
        ("pause_turn", TEXT_CONTENT, "pause"),
        ("compaction", TEXT_CONTENT, "pause"),
        ("something_new", TEXT_CONTENT, "stop"),
        (None, TEXT_CONTENT, None),
    ],
)
def test_J1_J2_why_a_reply_ended_is_derived_from_its_calls(
    reason: str | None, content: list[Fields], stop: str
) -> None:
    body = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": content, "stop_reason": reason}
    assert reply.decode(body).stop == stop


def reply_of(*blocks: Block, stop: StopReason = "stop", usage: Usage | None = None) -> Fields:
    return reply.encode(Reply(Turn("assistant", blocks), stop, usage, "m1", "c"))


@pytest.mark.parametrize(
    ("thought", "written"),
    [
        (Thinking("hm"), [{"type": "thinking", "thinking": "hm", "signature": UNSIGNED}]),
        (Thinking("hm", "sig"), [{"type": "thinking", "thinking": "hm", "signature": UNSIGNED}]),
        (Thinking("hm", redacted="xx", id="rs_1"), [{"type": "thinking", "thinking": "hm", "signature": UNSIGNED}]),
        (Thinking(redacted="xx"), []),
    ],
)
def test_law_12_T1_T2_of_another_models_thinking_the_text_alone_is_shown(thought: Thinking, written: Any) -> None:
    assert reply_of(thought)["content"] == written


def test_native_thinking_stays_as_it_was() -> None:
    content = [
        {"type": "thinking", "thinking": "a"},
        {"type": "thinking", "thinking": "", "signature": "s"},
        {"type": "redacted_thinking", "data": "xx"},
        {"type": "image", "source": {"type": "url", "url": "u"}},
    ]
    body = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": content}
    assert reply.encode(reply.decode(body)) == body


def test_a_request_shows_thinking_that_can_be_read() -> None:
    made = Conversation((Turn("assistant", (Thinking("hm", "s", "xx"), Thinking(redacted="yy"))),))
    assert request.encode(made)["messages"][0]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "yy"},
    ]


def test_G1_a_reply_made_elsewhere_has_no_media() -> None:
    assert reply_of(Media("image", url="u"), Text("x"), Opaque("gemini", {}))["content"] == TEXT_CONTENT


def test_C1_a_call_with_free_text_holds_it_in_one_argument() -> None:
    (written,) = reply_of(ToolCall("c", "patch", type="custom", raw_input="+x"))["content"]
    assert written["input"] == {"input": "+x"}


@pytest.mark.parametrize(
    ("usage", "written"),
    [
        (None, {"input_tokens": 0, "output_tokens": 0}),
        (Usage(21), {"input_tokens": 21, "output_tokens": 0}),
        (
            Usage(21, 5, reasoning_tokens=4),
            {"input_tokens": 21, "output_tokens": 5, "output_tokens_details": {"thinking_tokens": 4}},
        ),
    ],
)
def test_U5_U6_a_reply_made_elsewhere_has_all_counts_that_clients_demand(usage: Usage | None, written: Fields) -> None:
    assert reply_of(usage=usage)["usage"] == written


def test_U1_tokens_of_thinking_are_counted() -> None:
    usage = {"input_tokens": 1, "output_tokens": 5, "output_tokens_details": {"thinking_tokens": 4, "x": 1}}
    body = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [], "usage": usage}
    found = reply.decode(body)
    assert found.usage is not None
    assert found.usage.reasoning_tokens == 4
    assert reply.encode(found) == body


def test_E1_a_failed_reply_does_not_look_finished() -> None:
    assert reply_of(stop="error")["stop_reason"] == "max_tokens"


def test_a_reason_that_changed_is_written_as_it_is_now() -> None:
    body = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": TEXT_CONTENT,
        "stop_reason": "end_turn",
    }
    changed = replace(reply.decode(body), stop="length")
    assert reply.encode(changed)["stop_reason"] == "max_tokens"


TEXT_DOCUMENT: Fields = {
    "type": "document",
    "title": "t",
    "source": {"type": "text", "media_type": "text/plain", "data": "the text"},
    "context": "c",
}
PARTS: list[Fields] = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (TEXT_DOCUMENT, "t\nthe text"),
        ({"type": "document", "source": {"type": "content", "content": "said"}}, "said"),
        ({"type": "document", "source": {"type": "content", "content": PARTS}, "title": None}, "a\nb"),
        ({"type": "search_result", "source": "s", "title": "t", "content": PARTS}, "t\ns\na\nb"),
    ],
)
def test_A1_a_document_of_words_is_text_that_others_read_and_returns_as_it_was(block: Fields, words: str) -> None:
    result = {"type": "tool_result", "tool_use_id": "a", "content": [block]}
    body = {"messages": [{"role": "user", "content": [block, result]}]}
    found = request.decode(body)
    assert (found.turns[0].text, found.turns[0].results[0].text) == (words, words)
    assert request.encode(found) == body
    changed = replace(found.turns[0].blocks[0], text="new")
    (written,) = request.encode(Conversation((Turn("user", (changed,)),)))["messages"][0]["content"]
    assert (written["type"], written["text"]) == ("text", "new")


@pytest.mark.parametrize(
    "block",
    [
        {"type": "document", "source": {"type": "text", "data": 3}},
        {"type": "document", "source": {"type": "content", "content": [{"type": "image"}]}},
        {"type": "document", "source": {"type": "content", "content": 3}},
        {"type": "search_result", "source": "s", "title": 3, "content": PARTS},
        {"type": "search_result", "source": 3, "title": "t", "content": PARTS},
        {"type": "search_result", "source": "s", "title": "t", "content": []},
    ],
)
def test_a_document_that_is_not_all_words_is_carried_as_it_came(block: Fields) -> None:
    body = {"messages": [{"role": "user", "content": [block]}]}
    found = request.decode(body)
    assert found.turns[0].blocks == (Opaque("anthropic", block, block["type"]),)
    assert request.encode(found) == body


@pytest.mark.parametrize(
    ("result", "content"),
    [
        (ToolResult("a", result={"a": 1, "b": [1.0]}), '{"a":1,"b":[1.0]}'),
        (ToolResult("a", error="boom", is_error=True), "boom"),
    ],
)
def test_J1_a_result_without_content_has_the_value_of_the_tool(result: ToolResult, content: str) -> None:
    (written,) = request.encode(Conversation((Turn("tool", (result,)),)))["messages"][0]["content"]
    assert written["content"] == content


def test_S1_S2_tools_from_elsewhere_have_a_schema_and_are_not_run_by_others() -> None:
    made = Conversation(
        tools=(ToolSpec("ping"), ToolSpec("googleSearch", type="googleSearch", issuer=Issuer("gemini")))
    )
    empty = {"type": "object", "properties": {}}
    assert request.encode(made)["tools"] == [{"name": "ping", "input_schema": empty}]
    assert "tools" not in request.encode(Conversation(tools=made.tools[1:]))
    body = {**BASE, "tools": [{"name": "ping"}, {"name": "pong", "type": "custom"}]}
    assert request.encode(request.decode(body)) == body


def test_a_reply_made_elsewhere_is_written() -> None:
    made = Reply(Turn("assistant", (Text("x"),)), "length", Usage(10, 5, 3, 2), "m1", "c")
    body = reply.encode(made)
    assert body["stop_reason"] == "max_tokens"
    assert body["usage"] == {
        "input_tokens": 5,
        "output_tokens": 5,
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 2,
    }
    assert reply.decode(body).usage == made.usage
    assert "stop_reason" not in reply.encode(Reply(Turn("assistant")))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "error"}, r"^\$\.type: expected one of message, got 'error'"),
        ({"role": "user"}, r"^\$\.role: expected one of assistant"),
        ({"content": "x"}, r"^\$\.content: expected an array"),
        ({"usage": {"input_tokens": "3"}}, r"^\$\.usage\.input_tokens: expected a whole number, got a string"),
        ({"id": None}, r"^\$\.id: expected a string, got null"),
    ],
)
def test_a_reply_with_a_field_of_the_wrong_type_is_refused(change: Fields, message: str) -> None:
    body = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": [], **change}
    with pytest.raises(InputError, match=message):
        reply.decode(body)


def test_what_a_result_holds_is_text_media_or_carried_as_it_came() -> None:
    held = {"type": "tool_use", "id": "i", "name": "n", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "x"}, held]}
    body = {"messages": [{"role": "user", "content": [result]}]}
    found = request.decode(body)
    (read,) = found.turns[0].results
    assert read.content == (Text("x"), Opaque("anthropic", held, "tool_use"))
    assert request.encode(found) == body


def test_an_error_beside_a_source_has_its_own_path() -> None:
    media = {"type": "document", "source": {"type": "url", "url": "u"}, "title": 1}
    with pytest.raises(InputError, match=r"^\$\.messages\[0\]\.content\[0\]\.title: "):
        request.decode({"messages": [{"role": "user", "content": [media]}]})
