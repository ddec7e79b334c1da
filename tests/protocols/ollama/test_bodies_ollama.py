"""Ollama's chat protocol: lossless in both directions, and strict about types."""

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
    ToolChoice,
    Usage,
)
from toolglot.protocols.ollama import reply, request


def test_decoding_a_request() -> None:
    body = {
        "model": "qwen3",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "look", "images": ["aGk="]},
            {
                "role": "assistant",
                "content": "",
                "thinking": "hm",
                "tool_calls": [
                    {"id": "call_1", "function": {"index": 0, "name": "f", "arguments": {"a": 1}}},
                    {"function": {"name": "g", "arguments": {}}},
                ],
            },
            {"role": "tool", "content": "out", "tool_name": "f", "tool_call_id": "call_1"},
            {"role": "tool", "content": "seen", "tool_name": "g", "images": ["aGk="]},
        ],
        "tools": [
            {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
        ],
        "options": {"temperature": 0.5, "num_predict": 9, "stop": ["END"], "seed": 1, "top_k": 3, "num_ctx": 4096},
        "think": "high",
        "format": {"type": "object"},
        "stream": False,
        "keep_alive": "5m",
    }
    found = request.decode(body)
    assert request.encode(found) == body
    assert [turn.role for turn in found.turns] == ["system", "user", "assistant", "tool", "tool"]
    assert found.turns[1].blocks == (Text("look"), Media("image", data="aGk="))
    thought, first, second = found.turns[2].blocks
    assert thought == Thinking("hm")
    assert isinstance(first, ToolCall)
    assert replace(first, form=None) == ToolCall("call_1", "f", {"a": 1})
    assert second == ToolCall("", "g", {})
    assert found.turns[3].blocks == (ToolResult("call_1", "out", name="f", is_complete=True),)
    seen = (Text("seen"), Media("image", data="aGk="))
    assert found.turns[4].blocks == (ToolResult("", seen, name="g", is_complete=True),)
    assert found.tools == (ToolSpec("f", "d", {"type": "object"}),)
    assert found.options == Options(
        Sampling(9, 0.5, top_k=3, stop=("END",), seed=1),
        Reasoning("on", "high"),
        output=OutputFormat("json_schema", schema={"type": "object"}),
        stream=False,
    )
    assert found.model == "qwen3"


@pytest.mark.parametrize("count", [-1, -2, 40.0])
def test_a_limit_without_a_canonical_form_is_kept_and_not_understood(count: float) -> None:
    body = {"messages": [], "options": {"num_predict": count}}
    found = request.decode(body)
    assert found.options.sampling.max_tokens is None
    assert same_json(request.encode(found), body)


@pytest.mark.parametrize(
    ("think", "reasoning"),
    [(True, Reasoning("on")), (False, Reasoning("off")), ("low", Reasoning("on", "low"))],
)
def test_think_is_whether_and_how_much_to_reason(think: object, reasoning: Reasoning) -> None:
    assert request.decode({"messages": [], "think": think}).options.reasoning == reasoning
    assert request.encode(Conversation(options=Options(reasoning=reasoning)))["think"] == think


def test_a_conversation_made_elsewhere_is_written() -> None:
    made = Conversation(
        (
            Turn("developer", (Text("a"), Text("b"))),
            Turn(
                "user",
                (
                    Media("image", url="https://example.invalid/a.png"),
                    Media("document", "application/pdf", data="JVBERi0="),
                    Media("audio", "audio/wav", data="UklGRg=="),
                    Media("image", "image/png", data="aGk="),
                    Text("see"),
                ),
            ),
            Turn(
                "assistant",
                (Thinking("hm", "sig"), Thinking(redacted="xx"), Opaque("anthropic", {}), ToolCall("c1", "f")),
            ),
            Turn(
                "user",
                (
                    ToolResult("c1", (Text("x"), Media("image", data="aGk=")), is_error=True),
                    ToolResult("c2", "Error: known", is_error=True),
                    Text("go on"),
                ),
            ),
            Turn("tool", (ToolResult("c3"), Opaque("anthropic", {}))),
            Turn("tool", (Text("stray"),)),
            Turn("tool"),
            Turn("assistant"),
        ),
        (ToolSpec("f", strict=True), ToolSpec("web_search", type="web_search_20250305", issuer=Issuer("anthropic"))),
        Options(
            tool_choice=ToolChoice("required"),
            reasoning=Reasoning("adaptive"),
            output=OutputFormat("json"),
        ),
    )
    assert request.encode(made) == {
        "messages": [
            {"role": "system", "content": "a\nb"},
            {"role": "user", "content": "see", "images": ["aGk="]},
            {
                "role": "assistant",
                "content": "",
                "thinking": "hm",
                "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": {}}}],
            },
            {"role": "tool", "content": "Error: x", "images": ["aGk="], "tool_call_id": "c1"},
            {"role": "tool", "content": "Error: known", "tool_call_id": "c2"},
            {"role": "user", "content": "go on"},
            {"role": "tool", "content": "", "tool_call_id": "c3"},
            {"role": "user", "content": "stray"},
            {"role": "assistant", "content": ""},
        ],
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "think": True,
        "format": "json",
        "stream": False,
    }
    plain = Conversation(options=Options(reasoning=Reasoning(budget_tokens=9), output=OutputFormat()))
    assert request.encode(plain) == {"messages": [], "stream": False}


def call(**fields: Any) -> Fields:
    return {"messages": [{"role": "assistant", "tool_calls": [fields]}]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"messages": None}, r"^\$\.messages: expected an array, got null"),
        ({"messages": ["hi"]}, r"^\$\.messages\[0\]: expected an object, got a string"),
        ({"messages": [{}]}, r"^\$\.messages\[0\]\.role: expected a string, but the field is missing"),
        ({"messages": [{"role": "robot"}]}, r"^\$\.messages\[0\]\.role: expected one of system, user, assistant, tool"),
        ({"messages": [{"role": "user", "content": []}]}, r"^\$\.messages\[0\]\.content: expected a string, got an a"),
        ({"messages": [{"role": "user", "images": [1]}]}, r"^\$\.messages\[0\]\.images\[0\]: expected a string"),
        ({"messages": [{"role": "tool", "tool_name": 1}]}, r"^\$\.messages\[0\]\.tool_name: expected a string"),
        ({"messages": [{"role": "assistant", "thinking": 1}]}, r"^\$\.messages\[0\]\.thinking: expected a string"),
        (call(), r"^\$\.messages\[0\]\.tool_calls\[0\]\.function: expected an object, but the field is missing"),
        (call(function={"name": "f", "arguments": "{}"}), r"tool_calls\[0\]\.function\.arguments: expected an object"),
        (call(id=1, function={"name": "f", "arguments": {}}), r"tool_calls\[0\]\.id: expected a string"),
        ({"tools": [{"type": 1}]}, r"^\$\.tools\[0\]\.type: expected a string"),
        ({"tools": [{"type": "function"}]}, r"^\$\.tools\[0\]\.function: expected an object"),
        ({"tools": [{"function": {"name": 3}}]}, r"^\$\.tools\[0\]\.function\.name: expected a string"),
        ({"options": {"temperature": "hot"}}, r"^\$\.options\.temperature: expected a number, got a string"),
        ({"options": {"stop": "END"}}, r"^\$\.options\.stop: expected an array"),
        ({"think": 3}, r"^\$\.think: expected true, false or a string, got a whole number"),
        ({"format": 3}, r'^\$\.format: expected "json" or an object, got a whole number'),
        ({"stream": "yes"}, r"^\$\.stream: expected true or false, got a string"),
    ],
)
def test_a_field_of_the_wrong_type_is_refused_with_its_path(change: Fields, message: str) -> None:
    with pytest.raises(InputError, match=message):
        request.decode({"messages": [], **change})


def test_a_result_that_is_only_a_value_is_written_as_its_json() -> None:
    results = (ToolResult("c", result={"a": [1.0]}), ToolResult("d", result={"b": 1}, is_error=True))
    written = request.encode(Conversation((Turn("tool", results),)))["messages"]
    assert [message["content"] for message in written] == ['{"a":[1.0]}', 'Error: {"b":1}']


def test_E8_a_free_text_call_from_elsewhere_is_one_argument() -> None:
    turn = Turn("assistant", (ToolCall("c", "patch", type="custom", raw_input="+x"),))
    written = [{"id": "c", "function": {"name": "patch", "arguments": {"input": "+x"}}}]
    assert request.encode(Conversation((turn,)))["messages"][0]["tool_calls"] == written
    assert reply.encode(Reply(turn, "tool_calls"))["message"]["tool_calls"] == written


def test_foreign_images_of_a_reply_are_left_out_and_native_ones_are_not() -> None:
    turn = Turn("assistant", (Media("image", "image/png", data="aGk="), Text("x")))
    assert reply.encode(Reply(turn))["message"] == {"role": "assistant", "content": "x"}
    own = {"model": "m", "message": {**TEXT_MESSAGE, "images": ["aGk="]}, "done": True}
    assert reply.encode(reply.decode(own)) == own


CALL_MESSAGE: Fields = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"function": {"name": "f", "arguments": {}}}],
}
TEXT_MESSAGE: Fields = {"role": "assistant", "content": "x"}


@pytest.mark.parametrize(
    ("done", "reason", "message", "stop"),
    [
        (True, "stop", TEXT_MESSAGE, "stop"),
        (True, None, TEXT_MESSAGE, "stop"),
        (True, "stop", CALL_MESSAGE, "tool_calls"),
        (True, "length", CALL_MESSAGE, "length"),
        (True, "length", TEXT_MESSAGE, "length"),
        (True, "load", TEXT_MESSAGE, "stop"),
        (False, None, CALL_MESSAGE, None),
        (False, "stop", TEXT_MESSAGE, None),
    ],
)
def test_J1_J2_why_a_reply_ended_is_derived_from_its_calls(
    done: bool, reason: str | None, message: Fields, stop: str
) -> None:
    assert reply.decode({"model": "m", "message": message, "done": done, "done_reason": reason}).stop == stop


def test_decoding_the_usage_of_a_reply() -> None:
    body = {"model": "m", "message": TEXT_MESSAGE, "done": True, "prompt_eval_count": 3, "eval_count": 0}
    assert reply.decode(body).usage == Usage(3, 0)
    assert reply.decode({"model": "m", "message": TEXT_MESSAGE, "done": True}).usage is None


def test_a_reply_made_elsewhere_is_written() -> None:
    turn = Turn("assistant", (Thinking("hm", "sig"), Text("x"), ToolCall("c", "f", {"a": 1})))
    body = reply.encode(Reply(turn, "tool_calls", Usage(10, 5, 3, 2), "m1", "c"))
    assert body == {
        "model": "c",
        "message": {
            "role": "assistant",
            "content": "x",
            "thinking": "hm",
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}],
        },
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 10,
        "eval_count": 5,
    }
    assert reply.encode(Reply(Turn("assistant"))) == {
        "model": "",
        "message": {"role": "assistant", "content": ""},
        "done": False,
    }


@pytest.mark.parametrize(("stop", "reason"), [("error", "length"), ("filter", "stop"), ("pause", "stop")])
def test_E1_a_reply_that_failed_does_not_look_finished(stop: Any, reason: str) -> None:
    assert reply.encode(Reply(Turn("assistant"), stop))["done_reason"] == reason


def test_a_changed_stop_reason_is_written() -> None:
    found = reply.decode({"model": "m", "message": TEXT_MESSAGE, "done": True, "done_reason": "load"})
    assert reply.encode(replace(found, stop="length"))["done_reason"] == "length"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"message": None}, r"^\$\.message: expected an object, got null"),
        ({"message": {"role": "user"}}, r"^\$\.message\.role: expected one of assistant"),
        ({"message": {"role": "assistant", "content": 1}}, r"^\$\.message\.content: expected a string"),
        ({"model": None}, r"^\$\.model: expected a string, got null"),
        ({"done": "yes"}, r"^\$\.done: expected true or false"),
        ({"done_reason": 1}, r"^\$\.done_reason: expected a string"),
        ({"eval_count": 1.5}, r"^\$\.eval_count: expected a whole number, got a number"),
    ],
)
def test_a_reply_with_a_field_of_the_wrong_type_is_refused(change: Fields, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reply.decode({"model": "m", "message": TEXT_MESSAGE, "done": True, **change})


def test_a_request_streams_by_default() -> None:
    default = request.decode({"model": "m", "messages": []})
    assert default.options.stream is True
    assert "stream" not in request.encode(default)
    assert request.encode(Conversation())["stream"] is False
    assert request.decode({"model": "m", "messages": [], "stream": False}).options.stream is False
