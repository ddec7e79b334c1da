"""Bodies in which messages are written as another protocol writes them (B6), or as agents keep them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

import toolglot
from support.translate.broken_bodies import SOURCES, STRANGERS, words_of
from support.translate.conversion_checks import CLAUDE, GPT, assert_reported, convert_checked, every_target, parts_of
from toolglot import ConvertedRequest, convert, repair

Fields = dict[str, Any]

KEYS = {"gemini": "contents", "openai_responses": "input"}
TOOL = {"name": "read", "description": "Reads.", "parameters": {"type": "object", "properties": {}}}


def body_of(source: str, *messages: Fields) -> Fields:
    return {KEYS.get(source, "messages"): list(messages)}


def user(source: str) -> Fields:
    """A question in a source's own words."""
    if source == "gemini":
        return {"role": "user", "parts": [{"text": "go"}]}
    return {"role": "user", "content": [{"text": "go"}] if source == "bedrock" else "go"}


@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda stranger: json.dumps(stranger)[:60])
@pytest.mark.parametrize("source", sorted({name for name, _ in SOURCES}))
def test_B6_a_message_of_another_form_is_read_as_what_it_is(source: str, stranger: Fields) -> None:
    out = convert_checked(body_of(source, user(source), stranger, user(source)), source, CLAUDE)
    parts = parts_of(out, CLAUDE)
    written = json.dumps(stranger)
    assert words_of(written) <= words_of(out.data.decode())
    assert bool(parts.calls) == any(f'"{key}": ' in written for key in ("input", "arguments", "args"))


def test_B6_calls_and_results_of_four_protocols_are_paired_in_one_body() -> None:
    body = body_of(
        "openai",
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"n": 1}}]},
        {"role": "tool", "tool_call_id": "toolu_1", "content": "printed 1."},
        {"role": "model", "parts": [{"functionCall": {"id": "g2", "name": "read", "args": {"n": 2}}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "g2", "content": "printed 2."}]},
        {"type": "function_call", "call_id": "call_3", "name": "read", "arguments": '{"n":3}'},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "call_3", "content": [{"text": "printed 3."}]}}]},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c4", "name": "read", "args": {"n": 4}}]},
        {"type": "function_call_output", "call_id": "c4", "output": "printed 4."},
    )
    for target in (CLAUDE, GPT, ("gemini", "gemini-2.5-pro"), ("mistral", "mistral-large-latest")):
        parts = parts_of(convert_checked(body, "openai", target), target)
        assert {n: f"printed {n}." in text for n, text in parts.answers().items()} == dict.fromkeys(range(1, 5), True)


def test_B6_an_image_of_anthropics_in_a_result_of_chats_is_an_image() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    body = body_of(
        "openai",
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "see"}, image]},
    )
    results = convert_checked(body, "openai", CLAUDE).body["messages"][-1]["content"][0]["content"]
    assert results == [{"type": "text", "text": "see"}, image]
    assert "data:image/png;base64,iVBORw0KGgo=" in convert_checked(body, "openai", GPT).data.decode()


def test_a_reinterpreted_role_is_reported_with_its_path() -> None:
    out = convert_checked(body_of("openai", {"role": "human", "content": "go"}), "openai", CLAUDE)
    assert_reported(out, "the role 'human' was read as user", action="converted", fault="canonical")
    assert "$.messages[0].role" in [entry.path for entry in out.report]


def test_an_unknown_role_is_refused_with_its_path() -> None:
    with pytest.raises(toolglot.InputError, match="'narrator'") as refused:
        convert(body_of("openai", {"role": "narrator", "content": "go"}), source="openai", target="anthropic")
    assert refused.value.path == "$.messages[0].role"


# --- functions --------------------------------------------------------------------------------------


def with_functions() -> Fields:
    return {
        "model": "gpt-4.1",
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": '{"n":1}'}},
            {"role": "function", "name": "read", "content": "printed 1."},
        ],
        "functions": [TOOL],
    }


@every_target
def test_functions_from_before_there_were_tools_are_tools_elsewhere(target: tuple[str, str]) -> None:
    if target[0] == "openai":
        return
    out = convert_checked(with_functions(), "openai", target)
    assert "printed 1." in parts_of(out, target).answers()[1]
    assert len(out.rendered.conversation.tools) == 1
    assert_reported(out, "functions, their calls and their results were read as tools", action="converted")


def test_law_3_native_functions_are_forwarded() -> None:
    data = msgspec.json.encode(with_functions())
    assert repair(data, target="openai").data is data


# --- what is not judged -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("anthropic", {"role": "user", "content": [{"type": "newer", "name": "x", "text": "t"}]}),
        ("openai", {"role": "user", "content": [{"type": "newer", "name": "x"}], "name": "me"}),
        ("openai_responses", {"type": "newer_item", "name": "x", "content": "t"}),
        ("gemini", {"role": "user", "parts": [{"newer": {"name": "x"}}]}),
        ("bedrock", {"role": "user", "content": [{"newer": {"name": "x"}}]}),
    ],
)
def test_law_3_native_fields_that_may_be_new_are_forwarded(target: str, message: Fields) -> None:
    limit = {"max_tokens": 9} if target == "anthropic" else {}
    data = msgspec.json.encode({"model": "m", **limit, **body_of(target, message)})
    out = repair(data, target=target)
    assert out.data is data, str(out.report)


def test_a_tool_that_was_only_called_before_comes_back_under_its_own_name() -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "files/read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
    tool = {"name": "write", "input_schema": {"type": "object"}}
    out: ConvertedRequest = convert(
        {
            "model": "m",
            "max_tokens": 9,
            "tools": [tool],
            "messages": [{"role": "assistant", "content": [block]}, {"role": "user", "content": [result]}],
        },
        source="anthropic",
        target="openai",
        model="gpt-4.1",
    )
    (renamed,) = {
        call["function"]["name"] for message in out.body["messages"] for call in message.get("tool_calls", ())
    }
    assert renamed != "files/read"
    call = {"id": "call_9", "type": "function", "function": {"name": renamed, "arguments": "{}"}}
    answer = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}}]}
    back = toolglot.convert_reply(answer, source="openai", target="anthropic", request=out)
    assert [block["name"] for block in back.body["content"]] == ["files/read"]


def test_an_empty_list_of_calls_beside_the_content_means_nothing() -> None:
    message = {"role": "assistant", "content": "x", "tool_calls": []}
    items = [{"role": "user", "content": "hi"}, message, {"role": "user", "content": "so"}]
    out = toolglot.repair({"model": "gpt-5.2", "input": items}, target="openai_responses")
    assert [item["content"] for item in out.body["input"]] == ["hi", "x", "so"]
    assert toolglot.repair(out.data, target="openai_responses").data == out.data


@pytest.mark.parametrize(("target", "model"), [("cohere", "command-a-03-2025"), ("ollama", "qwen3")])
def test_the_name_of_an_old_function_pairs_its_result(target: str, model: str) -> None:
    arguments = "{}" if target == "cohere" else {}
    calls = [{"id": id, "type": "function", "function": {"name": id, "arguments": arguments}} for id in ("a", "b")]
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "look", "tool_calls": calls},
        {"role": "function", "name": "b", "content": "of b"},
        {"role": "tool", "tool_call_id": "a", "content": "of a"},
    ]
    out = toolglot.repair({"model": model, "messages": messages}, target=target)
    assert not toolglot.lint(out.body, target, model=model)
    results = out.body["messages"][2:]
    assert {result["content"]: result.get("tool_call_id") or result["tool_name"] for result in results} == {
        "of a": "a",
        "of b": "b",
    }
