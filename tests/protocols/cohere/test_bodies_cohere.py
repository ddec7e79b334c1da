"""Cohere's chat protocol: lossless in both directions, and strict about types."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from support.protocols.body_laws import same_json
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
from toolglot.protocols.cohere import reply, request


def test_decoding_a_request() -> None:
    body = {
        "model": "command-a",
        "messages": [
            {"role": "system", "content": "be brief"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "look"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
                    {"type": "image_url", "image_url": {"url": "https://example.invalid/a.png"}},
                ],
            },
            {
                "role": "assistant",
                "tool_plan": "I will call f",
                "content": [{"type": "thinking", "thinking": "hm"}],
                "tool_calls": [
                    {"id": "f0", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
                    {"id": "g0", "type": "function", "function": {"name": "g", "arguments": '{ "a": 1 }'}},
                    {"id": "h0", "type": "function", "function": {"name": "h", "arguments": "{cut"}},
                    {"id": "i0", "type": "function", "function": {"name": "i", "arguments": "[1]"}},
                ],
            },
            {
                "role": "tool",
                "tool_call_id": "f0",
                "content": [
                    {"type": "document", "document": {"data": {"b": 2}, "id": "d"}},
                    {"type": "document", "document": {"data": "plain"}},
                    {"type": "text", "text": "!"},
                ],
            },
            {"role": "tool", "tool_call_id": "g0", "content": "out"},
        ],
        "tools": [
            {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
        ],
        "tool_choice": "REQUIRED",
        "strict_tools": True,
        "max_tokens": 9,
        "temperature": 0.5,
        "p": 0.9,
        "k": 3,
        "seed": 1,
        "stop_sequences": ["END"],
        "response_format": {"type": "json_object", "json_schema": {"type": "object"}},
        "thinking": {"type": "enabled", "token_budget": 1024},
        "stream": True,
    }
    found = request.decode(body)
    assert request.encode(found) == body
    assert [turn.role for turn in found.turns] == ["system", "user", "assistant", "tool", "tool"]
    assert found.turns[1].blocks == (
        Text("look"),
        Media("image", "image/png", data="aGk="),
        Media("image", url="https://example.invalid/a.png"),
    )
    thought, plan, *calls = found.turns[2].blocks
    assert isinstance(plan, Text)
    assert plan.text == "I will call f"
    assert isinstance(thought, Thinking)
    assert thought.text == "hm"
    assert calls == [
        ToolCall("f0", "f", {"a": 1}),
        ToolCall("g0", "g", {"a": 1}, raw_input='{ "a": 1 }'),
        ToolCall("h0", "h", raw_input="{cut"),
        ToolCall("i0", "i", raw_input="[1]"),
    ]
    (result,) = found.turns[3].results
    assert (result.call_id, result.text, result.is_complete) == ("f0", '{"b":2}plain!', True)
    assert found.turns[4].blocks == (ToolResult("g0", "out", is_complete=True),)
    assert found.tools == (ToolSpec("f", "d", {"type": "object"}, strict=True),)
    assert found.options == Options(
        Sampling(9, 0.5, 0.9, 3, ("END",), 1),
        Reasoning("on", budget_tokens=1024),
        ToolChoice("required"),
        OutputFormat("json_schema", schema={"type": "object"}),
        stream=True,
    )
    assert found.model == "command-a"


def test_a_document_that_was_changed_is_written_as_the_text_that_it_is_now() -> None:
    part = {"type": "document", "document": {"data": {"a": 1}, "id": "d"}}
    found = request.decode({"messages": [{"role": "tool", "tool_call_id": "t", "content": [part]}]})
    (result,) = found.turns[0].results
    assert isinstance(result.content, tuple)
    assert isinstance(result.content[0], Text)
    shortened = replace(result, content=(replace(result.content[0], text="…"),))
    (message,) = request.encode(Conversation((Turn("tool", (shortened,)),)))["messages"]
    assert message["content"] == [{"type": "document", "document": {"data": "…", "id": "d"}}]


def test_a_conversation_made_elsewhere_is_written() -> None:
    made = Conversation(
        (
            Turn("developer", (Text("a"), Text("b"))),
            Turn(
                "user",
                (
                    Text("see"),
                    Media("image", "image/png", data="aGk="),
                    Media("image", file_id="f1"),
                    Media("document", url="https://example.invalid/a.pdf"),
                ),
            ),
            Turn(
                "assistant",
                (
                    Thinking("hm", "sig"),
                    Opaque("anthropic", {}),
                    ServerTool("anthropic", "call", {}),
                    Text("so"),
                    ToolCall("c1", "f"),
                ),
            ),
            Turn(
                "user",
                (
                    ToolResult("c1", (Text("x"), Media("image", data="aGk=")), is_error=True),
                    ToolResult("c2", "Error: known", is_error=True),
                    ToolResult("c3", "y", is_error=True),
                    Text("go on"),
                ),
            ),
            Turn("assistant", (ToolCall("c4", "f", {"é": 1}),)),
            Turn("tool", (ToolResult("c4"), ToolResult("c5", is_error=True))),
            Turn("tool", (Text("stray"),)),
            Turn("tool"),
            Turn("assistant"),
        ),
        (ToolSpec("f", strict=True), ToolSpec("web_search", type="web_search_20250305", issuer=Issuer("anthropic"))),
        Options(
            tool_choice=ToolChoice("named", ("f",)),
            reasoning=Reasoning("adaptive"),
            output=OutputFormat("json"),
        ),
    )
    assert request.encode(made) == {
        "messages": [
            {"role": "system", "content": "a\nb"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "see"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
                ],
            },
            {
                "role": "assistant",
                "tool_plan": "so",
                "content": [{"type": "thinking", "thinking": "hm"}],
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {
                "role": "tool",
                "tool_call_id": "c1",
                "content": [{"type": "text", "text": "Error: x"}],
            },
            {"role": "tool", "tool_call_id": "c2", "content": "Error: known"},
            {"role": "tool", "tool_call_id": "c3", "content": "Error: y"},
            {"role": "user", "content": "go on"},
            {
                "role": "assistant",
                "tool_calls": [{"id": "c4", "type": "function", "function": {"name": "f", "arguments": '{"é":1}'}}],
            },
            {"role": "tool", "tool_call_id": "c4", "content": ""},
            {"role": "tool", "tool_call_id": "c5", "content": "Error:"},
            {"role": "user", "content": "stray"},
            {"role": "assistant", "content": ""},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
        "strict_tools": True,
        "tool_choice": "REQUIRED",
        "thinking": {"type": "enabled"},
        "response_format": {"type": "json_object"},
    }


def test_thinking_that_another_provider_hides_is_not_written() -> None:
    turn = Turn("assistant", (Thinking(redacted="xx"), Text("so")))
    assert request.encode(Conversation((turn,)))["messages"] == [{"role": "assistant", "content": "so"}]
    own = {"messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": ""}]}]}
    assert request.encode(request.decode(own)) == own


def test_a_tool_of_its_own_client_without_parameters_stays_without() -> None:
    body = {"messages": [], "tools": [{"type": "function", "function": {"name": "f"}}]}
    assert request.encode(request.decode(body)) == body


def test_a_result_that_is_only_a_value_is_written_as_its_json() -> None:
    results = (ToolResult("c", result={"a": [1.0]}), ToolResult("d", result={"b": 1}, is_error=True))
    written = request.encode(Conversation((Turn("tool", results),)))["messages"]
    assert [message["content"] for message in written] == ['{"a":[1.0]}', 'Error: {"b":1}']


def test_E8_a_free_text_call_from_elsewhere_is_one_argument() -> None:
    turn = Turn("assistant", (ToolCall("c", "patch", type="custom", raw_input='+"x"'),))
    (written,) = request.encode(Conversation((turn,)))["messages"][0]["tool_calls"]
    assert written["function"] == {"name": "patch", "arguments": '{"input":"+\\"x\\""}'}
    assert reply.encode(Reply(turn, "tool_calls"))["message"]["tool_calls"] == [written]


@pytest.mark.parametrize(
    ("written", "arguments"),
    [('"{\\"a\\":1}"', {"a": 1}), ("", {}), (" ", {}), ('{"a": 1}', {"a": 1}), ('{"a":', None), ("[1]", None)],
)
def test_arguments_are_read_with_the_unwrapping_of_chat_and_come_back_as_they_were(
    written: str, arguments: Fields | None
) -> None:
    body = call(id="c", type="function", function={"name": "f", "arguments": written})
    found = request.decode(body)
    assert found.turns[0].calls[0].arguments == arguments
    assert request.encode(found) == body


def test_what_cohere_cannot_express_is_not_written() -> None:
    options = Options(tool_choice=ToolChoice("auto"), reasoning=Reasoning(effort="high"))
    assert request.encode(Conversation(options=options)) == {"messages": []}


def content(*parts: Any) -> Fields:
    return {"messages": [{"role": "user", "content": list(parts)}]}


def call(**fields: Any) -> Fields:
    return {"messages": [{"role": "assistant", "tool_calls": [fields]}]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"messages": None}, r"^\$\.messages: expected an array, got null"),
        ({"messages": ["hi"]}, r"^\$\.messages\[0\]: expected an object, got a string"),
        ({"messages": [{}]}, r"^\$\.messages\[0\]\.role: expected a string, but the field is missing"),
        ({"messages": [{"role": "robot"}]}, r"^\$\.messages\[0\]\.role: expected one of system, user, assistant, tool"),
        ({"messages": [{"role": "user", "content": 3}]}, r"^\$\.messages\[0\]\.content: expected a string or an array"),
        ({"messages": [{"role": "tool"}]}, r"^\$\.messages\[0\]\.tool_call_id: expected a string, but the field"),
        (
            {"messages": [{"role": "tool", "tool_call_id": "t", "content": 3}]},
            r"^\$\.messages\[0\]\.content: expected a string or an array of parts, got a whole number",
        ),
        (content({}), r"^\$\.messages\[0\]\.content\[0\]\.type: expected a string, but the field is missing"),
        (content({"type": "text"}), r"content\[0\]\.text: expected a string, but"),
        (content({"type": "thinking", "thinking": 1}), r"content\[0\]\.thinking: expected a string"),
        (content({"type": "image_url", "image_url": "u"}), r"content\[0\]\.image_url: expected an object"),
        (content({"type": "image_url", "image_url": {}}), r"content\[0\]\.image_url\.url: expected a string"),
        (content({"type": "document", "document": "d"}), r"content\[0\]\.document: expected an object"),
        (call(id="c"), r"^\$\.messages\[0\]\.tool_calls\[0\]\.function: expected an object"),
        (
            call(id="c", function={"name": "f", "arguments": {}}),
            r"tool_calls\[0\]\.function\.arguments: expected a str",
        ),
        (call(function={"name": "f"}), r"tool_calls\[0\]\.id: expected a string, but the field is missing"),
        ({"tools": [{"type": 1}]}, r"^\$\.tools\[0\]\.type: expected a string"),
        ({"tools": [{"type": "function"}]}, r"^\$\.tools\[0\]\.function: expected an object"),
        ({"tools": [{"function": {"name": 3}}]}, r"^\$\.tools\[0\]\.function\.name: expected a string"),
        ({"tool_choice": {}}, r"^\$\.tool_choice: expected a string, got an object"),
        ({"strict_tools": 1}, r"^\$\.strict_tools: expected true or false"),
        ({"thinking": {"type": 1}}, r"^\$\.thinking\.type: expected a string"),
        ({"thinking": {"type": "enabled", "token_budget": 1.5}}, r"^\$\.thinking\.token_budget: expected a whole"),
        ({"response_format": {}}, r"^\$\.response_format\.type: expected a string"),
        (
            {"response_format": {"type": "json_object", "schema": "{}"}},
            r"^\$\.response_format\.schema: expected an object",
        ),
        ({"temperature": "hot"}, r"^\$\.temperature: expected a number, got a string"),
        ({"stop_sequences": [1]}, r"^\$\.stop_sequences\[0\]: expected a string"),
    ],
)
def test_a_field_of_the_wrong_type_is_refused_with_its_path(change: Fields, message: str) -> None:
    with pytest.raises(InputError, match=message):
        request.decode({"messages": [], **change})


CALL_MESSAGE: Fields = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f"}}]}
TEXT_MESSAGE: Fields = {"role": "assistant", "content": [{"type": "text", "text": "x"}]}


@pytest.mark.parametrize(
    ("reason", "message", "stop"),
    [
        ("COMPLETE", TEXT_MESSAGE, "stop"),
        ("COMPLETE", CALL_MESSAGE, "tool_calls"),
        ("STOP_SEQUENCE", TEXT_MESSAGE, "stop"),
        ("TOOL_CALL", CALL_MESSAGE, "tool_calls"),
        ("TOOL_CALL", TEXT_MESSAGE, "stop"),
        ("MAX_TOKENS", CALL_MESSAGE, "length"),
        ("ERROR", TEXT_MESSAGE, "error"),
        ("TIMEOUT", TEXT_MESSAGE, "error"),
        ("SOMETHING_NEW", TEXT_MESSAGE, "stop"),
        (None, TEXT_MESSAGE, None),
    ],
)
def test_J1_J2_why_a_reply_ended_is_derived_from_its_calls(reason: str | None, message: Fields, stop: str) -> None:
    assert reply.decode({"id": "r", "message": message, "finish_reason": reason}).stop == stop


def test_a_count_written_as_a_float_is_a_count_and_comes_back_as_one() -> None:
    body = {"id": "r", "message": TEXT_MESSAGE, "usage": {"tokens": {"input_tokens": 12.0, "output_tokens": 3}}}
    found = reply.decode(body)
    assert found.usage is not None
    assert (found.usage.input_tokens, found.usage.output_tokens) == (12, 3)
    assert same_json(reply.encode(found), body)
    changed = replace(found, usage=replace(found.usage, input_tokens=13))
    assert reply.encode(changed)["usage"] == {"tokens": {"input_tokens": 13, "output_tokens": 3}}


def test_tokens_from_the_cache_are_counted() -> None:
    usage = {"tokens": {"input_tokens": 20, "output_tokens": 1}, "cached_tokens": 5.0}
    body = {"id": "r", "message": TEXT_MESSAGE, "usage": usage}
    found = reply.decode(body)
    assert found.usage is not None
    assert found.usage.cache_read_tokens == 5
    assert same_json(reply.encode(found), body)
    changed = replace(found, usage=replace(found.usage, cache_read_tokens=6))
    assert reply.encode(changed)["usage"]["cached_tokens"] == 6
    with pytest.raises(InputError, match=r"^\$\.usage\.cached_tokens: expected a number"):
        reply.decode({**body, "usage": {"cached_tokens": "5"}})


def test_foreign_images_of_a_reply_are_left_out_and_native_ones_are_not() -> None:
    turn = Turn("assistant", (Media("image", "image/png", data="aGk="), Text("x")))
    assert reply.encode(Reply(turn))["message"] == {"role": "assistant", "content": [{"type": "text", "text": "x"}]}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    own = {"id": "r", "message": {"role": "assistant", "content": [image]}}
    assert reply.encode(reply.decode(own)) == own


@pytest.mark.parametrize(("stop", "reason"), [("error", "ERROR"), ("filter", "ERROR"), ("stop", "COMPLETE")])
def test_E1_a_reply_that_failed_does_not_look_finished(stop: Any, reason: str) -> None:
    assert reply.encode(Reply(Turn("assistant"), stop))["finish_reason"] == reason


def test_a_reply_made_elsewhere_is_written() -> None:
    turn = Turn("assistant", (Thinking("hm", "sig"), Text("x"), ToolCall("c", "f", {"a": 1})))
    assert reply.encode(Reply(turn, "tool_calls", Usage(10, 5, 3, 2), "m1", "c")) == {
        "id": "m1",
        "message": {
            "role": "assistant",
            "tool_plan": "x",
            "content": [{"type": "thinking", "thinking": "hm"}],
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
        },
        "finish_reason": "TOOL_CALL",
        "usage": {"tokens": {"input_tokens": 10, "output_tokens": 5}, "cached_tokens": 3},
    }
    assert reply.encode(Reply(Turn("assistant"), usage=Usage())) == {
        "id": "",
        "message": {"role": "assistant", "content": []},
        "usage": {},
    }
    assert "content" not in reply.encode(Reply(Turn("assistant", (ToolCall("c", "f"),))))["message"]


def test_a_changed_stop_reason_is_written() -> None:
    found = reply.decode({"id": "r", "message": TEXT_MESSAGE, "finish_reason": "STOP_SEQUENCE"})
    assert reply.encode(replace(found, stop="length"))["finish_reason"] == "MAX_TOKENS"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"message": None}, r"^\$\.message: expected an object, got null"),
        ({"message": {"role": "user"}}, r"^\$\.message\.role: expected one of assistant"),
        ({"message": {"role": "assistant", "content": 1}}, r"^\$\.message\.content: expected a string or an array"),
        ({"id": None}, r"^\$\.id: expected a string, got null"),
        ({"finish_reason": 1}, r"^\$\.finish_reason: expected a string"),
        ({"usage": {"tokens": []}}, r"^\$\.usage\.tokens: expected an object"),
        ({"usage": {"tokens": {"input_tokens": "3"}}}, r"^\$\.usage\.tokens\.input_tokens: expected a number, got a s"),
    ],
)
def test_a_reply_with_a_field_of_the_wrong_type_is_refused(change: Fields, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reply.decode({"id": "r", "message": TEXT_MESSAGE, **change})
