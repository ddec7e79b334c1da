"""Options beside the text: the dialect, the tools in any form, a text that begins with thinking, an id."""

from __future__ import annotations

from typing import Any

import pytest

from toolglot import Reply, Text, ToolCall, Turn
from toolglot.conversation.events import Event
from toolglot.dialects.offered_tools import tool_schemas
from toolglot.dialects.reply_reader import CallsInText, with_calls
from toolglot.dialects.text_stream import TextToolStream, parse_text, parsed_text

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"p": {"type": "string"}}}
TOOLS = [{"name": "ls", "parameters": SCHEMA}]
CALL = '<tool_call>{"name": "ls", "arguments": {"p": "/"}}</tool_call>'
PYTHONIC = "[ls(p='/')]"


def in_pieces(text: str, size: int, **options: Any) -> list[Event]:
    stream = TextToolStream(**options)
    events: list[Event] = []
    for start in range(0, len(text), size):
        events += stream.feed(text[start : start + size])
    return events + stream.finish()


@pytest.mark.parametrize("dialect", ["hermes", "auto"])
@pytest.mark.parametrize("opener", ["", "<think>"])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_text_may_begin_with_thinking_that_the_prompt_has_opened(dialect: str, opener: str, size: int) -> None:
    text = f"{opener}I look: {CALL} No.</think>Yes.{CALL}"
    found = parsed_text(in_pieces(text, size, dialect=dialect, tools=TOOLS, starts_thinking=True))
    assert (found.thinking, found.text) == (f"I look: {CALL} No.", "Yes.")
    assert [call.arguments for call in found.calls] == [{"p": "/"}]


def test_thinking_that_never_ends_is_all_there_is() -> None:
    found = parse_text("Still thinking", dialect="cohere_command4", starts_thinking=True)
    assert (found.thinking, found.text) == ("Still thinking", "")


@pytest.mark.parametrize(("dialect", "end"), [("hermes", "</think>"), ("auto", "\n</think>"), ("auto", "<channel|>")])
def test_the_end_of_a_thought_of_nothing_is_no_text(dialect: str, end: str) -> None:
    found = parse_text(f"{end}{CALL}", dialect=dialect, tools=TOOLS)
    assert (found.text, found.thinking, len(found.calls)) == ("", "", 1)
    assert parse_text(f"Yes {end}", dialect=dialect).text == f"Yes {end}"


@pytest.mark.parametrize(
    "generation",
    [
        '<function=ls{"p": "/"}</function>',
        '<function=ls>{"p": "/"}</function>',
        '<function=ls {"p": "/"} </function>',
        '<function=ls [{"p": "/"}]</function>',
        '<function(ls)>{"p": "/"}</function>',
        '<function/ls>{"p": "/"}</function>',
        '<function=ls({"p": "/"})></function>',
        '{"name": "ls", "arguments": {"p": "/"}}',
        '[{"name": "ls", "parameters": {"p": "/"}}]',
    ],
)
def test_what_groq_hands_out_as_a_failed_generation_is_read(generation: str) -> None:
    found = parse_text(generation, tools=TOOLS)
    assert (found.text, [(call.name, call.arguments) for call in found.calls]) == ("", [("ls", {"p": "/"})])


@pytest.mark.parametrize(
    "tool",
    [
        {"toolSpec": {"name": "ls", "inputSchema": {"json": SCHEMA}}},
        {"functionDeclarations": [{"name": "ls", "parameters": SCHEMA}]},
        {"function_declarations": [{"name": "ls", "parametersJsonSchema": SCHEMA}]},
        {"type": "function", "function": {"name": "ls", "parameters": SCHEMA}},
        {"name": "ls", "input_schema": SCHEMA},
    ],
)
def test_tools_are_known_in_the_form_of_every_provider(tool: dict[str, Any]) -> None:
    assert tool_schemas([tool]) == {"ls": SCHEMA}


def test_any_text_will_do_for_the_stem_of_ids() -> None:
    ids = {parse_text(CALL, ids=stem).calls[0].id for stem in ("\ud800", "\udfff", "", "a")}
    assert len(ids) == 4


def test_a_list_in_a_line_counts_only_where_its_dialect_is_named() -> None:
    text = f"Look: {PYTHONIC}"
    assert parse_text(text, tools=TOOLS).text == text
    assert [call.name for call in parse_text(text, dialect="pythonic", tools=TOOLS).calls] == ["ls"]
    for code in (f"x = {PYTHONIC}", f"f({PYTHONIC})", f"[{PYTHONIC}]"):
        assert parse_text(code, dialect="pythonic", tools=TOOLS).text == code


def test_text_of_no_dialect_comes_in_few_events() -> None:
    text = "{" * 100_000
    stream = TextToolStream(tools=TOOLS)
    events = stream.feed(text) + stream.finish()
    assert parsed_text(events).text == text
    assert len(events) < 2_000


def test_extra_fields_of_a_text_stay_with_its_first_piece() -> None:
    turn = Turn("assistant", (Text(f"Look. {CALL} Done.", extra={"openai_chat": {"a": 1}}),))
    first, call, last = with_calls(Reply(turn), CallsInText(tools=TOOLS)).turn.blocks
    assert isinstance(first, Text)
    assert isinstance(call, ToolCall)
    assert isinstance(last, Text)
    assert (first.text, first.extra) == ("Look. ", {"openai_chat": {"a": 1}})
    assert (last.text, last.extra) == (" Done.", None)


@pytest.mark.parametrize(
    ("values", "written", "meant"),
    [(["7", 8], "7", "7"), (["7", 8], "8", 8), (["null", 7], "null", "null"), (["ok", None], "null", None)],
)
def test_a_value_that_a_schema_lists_is_that_value(values: list[Any], written: str, meant: object) -> None:
    tools = [{"name": "set", "parameters": {"properties": {"v": {"enum": values}}}}]
    text = f"<tool_call>set<arg_key>v</arg_key><arg_value>{written}</arg_value></tool_call>"
    assert parse_text(text, dialect="glm47", tools=tools).calls[0].arguments == {"v": meant}


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("ling3", "<tool_call>ls\n<arg_key>p</arg_key>\n<arg_value>/</arg_value>\n</tool_call><|role_end|>"),
        (
            "muse_glimmer",
            " to=ls<|message|><atem:invoke name='ls'><atem:parameter name='p'>/</atem:parameter></atem:invoke><|eot|>",
        ),
    ],
)
def test_marks_of_a_turn_are_no_text_where_the_dialect_is_named(dialect: str, text: str) -> None:
    for size in (1, 7, 1000):
        found = parsed_text(in_pieces(text, size, dialect=dialect, tools=TOOLS))
        assert (found.text, [(call.name, call.arguments) for call in found.calls]) == ("", [("ls", {"p": "/"})])
