"""A dialect added from outside, as CONTRIBUTING.md says: one file with its reader and its writer, and its vectors."""

from __future__ import annotations

from typing import Any

import pytest

import toolglot
from support.dialects.toy_arrow import TOY_ARROW
from support.dialects.vectors import check_vector
from toolglot import Conversation, Text, ToolCall, ToolResult, Turn

TOOLS: list[Any] = [{"name": "ls", "parameters": {"type": "object", "properties": {"p": {"type": "string"}}}}, "pwd"]
VECTORS: list[dict[str, Any]] = [
    {"text": '=>> ls {"p": "/"} <<=', "calls": [("ls", {"p": "/"})]},
    {
        "text": 'I look. =>> ls {"p": "/"} <<==>> pwd {} <<=',
        "rest": "I look. ",
        "calls": [("ls", {"p": "/"}), ("pwd", {})],
    },
    {"text": '=>> ls {"p": "<<= =>>"} <<=', "calls": [("ls", {"p": "<<= =>>"})]},
    {"text": '=>> ls {"p": "/"', "cut": ["ls"]},
    {"text": "a =>> b", "rest": "a =>> b"},
]


@pytest.fixture(autouse=True)
def registered(clean_registry: None) -> None:
    toolglot.register_dialect(TOY_ARROW)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["text"])
def test_a_toy_dialect_is_read_as_it_is_meant_however_it_is_cut(vector: dict[str, Any]) -> None:
    expected = {
        "text": vector.get("rest", ""),
        "calls": [{"name": name, "arguments": arguments} for name, arguments in vector.get("calls", ())],
        "cut": [{"name": name} for name in vector.get("cut", ())],
    }
    check_vector("own_arrow", {"text": vector["text"], "expected": expected}, TOOLS)


def test_a_toy_dialect_is_found_out_and_named_by_its_model() -> None:
    text = VECTORS[0]["text"]
    assert toolglot.detect(text).dialect == "own_arrow"
    assert [call.name for call in toolglot.parse_text(text, model="toy-arrow-7b").calls] == ["ls"]
    assert "own_arrow" in toolglot.dialects.names()


def test_a_toy_dialect_writes_calls_that_it_reads_back_and_tools_by_prompt() -> None:
    calls = [ToolCall("a", "ls", {"p": 'a "b" <<= {'}), ToolCall("b", "pwd", {})]
    text = toolglot.write_calls(calls, "own_arrow", tools=TOOLS)
    assert text == '=>> ls {"p":"a \\"b\\" <<= {"} <<=\n=>> pwd {} <<='
    found = toolglot.parse_text(text, dialect="own_arrow", tools=TOOLS)
    assert [(call.name, call.arguments) for call in found.calls] == [(call.name, call.arguments) for call in calls]
    turns = (Turn("user", (Text("Look."),)), Turn("assistant", (*calls,)), Turn("tool", (ToolResult("a", "bin"),)))
    prompt = toolglot.to_prompt(TOOLS, Conversation(turns), "own_arrow")
    assert '=>> tool_name {"argument":"a text","other_argument":3} <<=' in prompt.system
    assert prompt.turns[2].text == '=<< {"name":"ls","call":1,"content":"bin"} >>='
