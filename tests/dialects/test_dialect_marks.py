"""Marks without meaning, and calls of tools that were not offered: what is dropped, what is text, what is reported."""

from __future__ import annotations

from typing import Any

import pytest

from support.dialects.replies import read
from support.dialects.written_calls import FULL, REQUEST, TOOLS, written
from toolglot import InputError, Policy, StreamTranslator, ToolCall, convert, convert_reply, write_calls
from toolglot.dialects import registry
from toolglot.dialects.dialect import is_special
from toolglot.dialects.text_stream import TextToolStream, parse_text

CLOSERS = [(name, closer) for name in registry.names() for closer in registry.get(name).closers]
SPECIAL = [each for each in CLOSERS if is_special(each[1])]
SECTIONS = [
    ("kimi_k2", "<|tool_calls_section_begin|><|tool_calls_section_end|>"),
    ("kimi_k2", "<|tool_calls_section_begin|>\n<|tool_call_begin|><|tool_call_end|>\n<|tool_calls_section_end|>"),
    ("deepseek_v3", "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>"),
    ("deepseek_v31", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜><｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
    ("deepseek_v32", "<｜DSML｜function_calls>\n</｜DSML｜function_calls>"),
    ("kimi_k3", "<|open|>tools<|sep|><|close|>tools<|sep|>"),
    ("step3", "<｜tool_calls_begin｜><｜tool_calls_end｜>"),
    ("minimax_m3", "]<]minimax[>[<tool_call>]<]minimax[>[</tool_call>"),
    ("cohere_command3", "<|START_ACTION|><|END_ACTION|>"),
    ("internlm2", "<|action_start|><|action_end|>"),
    ("apertus", "<|tools_prefix|><|tools_suffix|>"),
    ("lfm2", "<|tool_call_start|><|tool_call_end|>"),
    ("llama4_pythonic", "<|python_start|><|python_end|>"),
    ("gemma4", "<|tool_call><tool_call|>"),
]
TAGS = [
    ("hermes", "<tool_call>\n</tool_call>"),
    ("qwen3_coder", "<tool_call></tool_call>"),
]


@pytest.mark.parametrize(("dialect", "section"), SECTIONS)
def test_a_section_with_nothing_in_it_is_dropped(dialect: str, section: str) -> None:
    for name in (dialect, "auto"):
        found = read(f"Hello.{section}\nBye.", name)
        assert (found.text, found.calls, found.cut) == ("Hello.\nBye.", (), ())


@pytest.mark.parametrize(("dialect", "section"), TAGS)
def test_a_section_of_ordinary_tags_is_dropped_only_where_its_dialect_is_named(dialect: str, section: str) -> None:
    assert read(f"Hello.{section} Bye.", dialect).text == "Hello. Bye."
    assert read(f"Hello.{section} Bye.").text == f"Hello.{section} Bye."


@pytest.mark.parametrize(("dialect", "closer"), SPECIAL)
def test_a_special_token_that_closes_nothing_is_dropped(dialect: str, closer: str) -> None:
    for name in (dialect, "auto"):
        assert read(f"Hello.{closer}\nBye.{closer}", name).text == "Hello.\nBye."


@pytest.mark.parametrize(("dialect", "closer"), SPECIAL)
def test_a_special_token_is_dropped_behind_a_wrong_closer_too(dialect: str, closer: str) -> None:
    call = ToolCall("abc123def", "ls", {"path": "/home"})
    text = write_calls([call], dialect, tools=TOOLS)
    for name in (dialect, "auto"):
        found = read(f"{text}\n</wrong>\n{closer}", name)
        assert [each.arguments for each in found.calls] == [{"path": "/home"}]
        assert found.text.strip() in ("</wrong>", "")


@pytest.mark.parametrize(("dialect", "closer"), SPECIAL)
def test_a_special_token_in_a_sentence_is_a_word_of_it(dialect: str, closer: str) -> None:
    text = f"A call of {dialect} ends with {closer} and nothing else."
    assert read(text).text == text


def test_dropped_marks_are_reported_by_replies_and_streams() -> None:
    request = convert(REQUEST, source="anthropic", target="vllm", model="some-model")
    section = SECTIONS[0][1]
    body = {"choices": [{"message": {"role": "assistant", "content": f"Hello.{section}"}, "finish_reason": "stop"}]}
    back = convert_reply(body, source="vllm", target="anthropic", request=request)
    assert back.body["content"] == [{"type": "text", "text": "Hello."}]
    assert [entry.action for entry in back.report if "<|tool_calls_section_begin|>" in entry.reason] == ["dropped"]
    stream = StreamTranslator(source="vllm", target="anthropic", request=request)
    stream.feed(b'data: {"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello.')
    stream.feed(f'{section}"}},"finish_reason":"stop"}}]}}\n\ndata: [DONE]\n\n'.encode())
    stream.finish()
    assert stream.reply.turn.text == "Hello."
    assert [entry.action for entry in stream.report if "<|tool_calls_section_begin|>" in entry.reason] == ["dropped"]


# --- tools that were not offered --------------------------------------------------------------------

OTHERS = [{"name": "other", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}}]
NO_NAMES = ("bash_tag",)
"""A command has no name: where none runs it, it is text anyway."""


@pytest.mark.parametrize("named", [True, False], ids=["named", "auto"])
@pytest.mark.parametrize("dialect", registry.names())
def test_a_call_of_a_tool_that_was_not_offered_can_be_text_to_the_last_character(dialect: str, named: bool) -> None:
    text = f"Look:\n{written(dialect, FULL)}"
    found = parse_text(text, dialect=dialect if named else "auto", tools=OTHERS, unoffered="text")
    if dialect in ("cohere_command3", "cohere_command4", "gigachat3", "harmony", "inkling") and not found.calls:
        return
    assert (found.text, found.calls, found.cut) == (text, (), ())


@pytest.mark.parametrize("dialect", registry.names())
def test_a_call_of_a_tool_that_was_offered_stays_one(dialect: str) -> None:
    text = written(dialect, FULL)
    assert parse_text(text, dialect=dialect, tools=TOOLS, unoffered="text") == parse_text(
        text, dialect=dialect, tools=TOOLS
    )


def test_a_tool_that_was_not_offered_is_called_by_default_and_where_the_tools_are_unknown() -> None:
    text = written("hermes", FULL)
    assert len(parse_text(text, tools=OTHERS).calls) == 1
    assert len(parse_text(text, unoffered="text").calls) == 1


def test_a_policy_decides_on_calls_of_tools_that_were_not_offered() -> None:
    request = convert(REQUEST, source="anthropic", target="vllm", model="some-model")
    text = written("hermes", ToolCall("", "zip", {"a": 1}))
    body = {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
    types: dict[str, Any] = {}
    for choice in ("call", "text"):
        policy = Policy(unoffered_calls=choice)
        back = convert_reply(body, source="vllm", target="anthropic", request=request, policy=policy)
        types[choice] = [block["type"] for block in back.body["content"]]
    assert types == {"call": ["tool_use"], "text": ["text"]}


def test_another_choice_is_refused() -> None:
    with pytest.raises(InputError, match="call or text"):
        TextToolStream(unoffered="error")  # type: ignore[arg-type]
