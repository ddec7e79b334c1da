"""The Anthropic Messages protocol: lossless at home, and strict about types."""

from __future__ import annotations

import pytest

from toolglot import InputError, Text, Thinking, ToolCall, ToolResult, Turn
from toolglot.conversation import Conversation, Media, Opaque, Options, Reasoning, Reply, ServerTool, ToolChoice, Usage
from toolglot.wire.anthropic import reply, request
from wire_strategies import Fields

BASE: Fields = {"model": "claude", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}


def test_a_request_says_what_it_means() -> None:
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
    said = found.turns[2].blocks
    assert said[:3] == (Thinking("hm", "sig"), Thinking(redacted="xx"), ToolCall("toolu_1", "f", {"a": 1}))
    assert [type(block) for block in said[3:]] == [ServerTool, ServerTool, Opaque]
    assert [block.phase for block in said if isinstance(block, ServerTool)] == ["call", "result"]
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


CALLED: list[Fields] = [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]
SAID: list[Fields] = [{"type": "text", "text": "x"}]


@pytest.mark.parametrize(
    ("said", "content", "stop"),
    [
        ("end_turn", SAID, "stop"),
        ("end_turn", CALLED, "tool_calls"),
        ("tool_use", CALLED, "tool_calls"),
        ("tool_use", SAID, "stop"),
        ("max_tokens", CALLED, "length"),
        ("model_context_window_exceeded", SAID, "length"),
        ("refusal", SAID, "filter"),
        ("pause_turn", SAID, "pause"),
        ("something_new", SAID, "stop"),
        (None, SAID, None),
    ],
)
def test_J1_J2_why_a_reply_ended_is_derived_from_its_calls(said: str | None, content: list[Fields], stop: str) -> None:
    body = {"id": "m", "type": "message", "role": "assistant", "model": "c", "content": content, "stop_reason": said}
    assert reply.decode(body).stop == stop


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


def test_an_error_beside_a_source_is_not_said_to_be_in_it() -> None:
    media = {"type": "document", "source": {"type": "url", "url": "u"}, "title": 1}
    with pytest.raises(InputError, match=r"^\$\.messages\[0\]\.content\[0\]\.title: "):
        request.decode({"messages": [{"role": "user", "content": [media]}]})
