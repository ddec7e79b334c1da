"""Cache markers: they go where they are refused, and what they mark stays."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import toolglot

MARK = {"type": "ephemeral"}
POINT = {"cachePoint": {"type": "default"}}
LLAMA, CLAUDE, NOVA = "meta.llama3-3-70b-instruct-v1:0", "us.anthropic.claude-sonnet-4-5", "amazon.nova-pro-v1:0"


def chat(**mark: Any) -> dict[str, Any]:
    """A body of Chat with a marker wherever one is written."""
    function = {"name": "f", "parameters": {"type": "object", "properties": {}}}
    call = {"id": "call_a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return {
        "model": "gpt-4.1",
        "messages": [
            {"role": "system", "content": "s", **mark},
            {"role": "user", "content": [{"type": "text", "text": "hi", **mark}]},
            {"role": "assistant", "content": None, "tool_calls": [call], **mark},
            {"role": "tool", "tool_call_id": "call_a", "content": "r", **mark},
            {"role": "user", "content": [{"type": "text", "text": "so", **mark}]},
        ],
        "tools": [{"type": "function", "function": function, **mark}],
    }


def converse(*point: dict[str, Any]) -> dict[str, Any]:
    tool = {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object", "properties": {}}}}}
    result = {"toolUseId": "tooluse_a", "content": [{"text": "r"}, *point]}
    return {
        "system": [{"text": "s"}, *point],
        "messages": [
            {"role": "user", "content": [{"text": "hi"}, *point]},
            {
                "role": "assistant",
                "content": [*point, {"toolUse": {"toolUseId": "tooluse_a", "name": "f", "input": {}}}],
            },
            {"role": "user", "content": [{"toolResult": result}, *point]},
        ],
        "toolConfig": {"tools": [tool, *point]},
    }


@pytest.mark.parametrize(
    ("target", "model"), [("openai", "gpt-4.1"), ("groq", "llama-3.3-70b-versatile"), ("cerebras", "gpt-oss-120b")]
)
def test_markers_in_a_body_of_chat_go_where_they_are_refused(target: str, model: str) -> None:
    body = {**chat(cache_control=MARK), "model": model}
    assert toolglot.lint(body, target, model=model)
    out = toolglot.repair(body, target=target)
    assert out.body == {**chat(), "model": model}
    assert not toolglot.lint(out.body, target, model=model)
    (entry,) = out.report
    assert entry.action == "dropped"
    assert "cache markers" in entry.reason
    assert "(6 times)" in entry.reason


def test_one_marker_is_reported_without_a_count() -> None:
    body = chat()
    body["messages"][-1]["cache_control"] = MARK
    (entry,) = toolglot.repair(body, target="openai").report
    assert "times" not in entry.reason


@pytest.mark.parametrize("target", ["llamacpp", "vllm"])
def test_a_host_that_ignores_what_it_does_not_know_gets_them(target: str) -> None:
    data = msgspec.json.encode(chat(cache_control=MARK))
    assert toolglot.repair(data, target=target).data == data


def test_a_host_that_takes_them_gets_them() -> None:
    body = {**chat(cache_control=MARK), "model": "anthropic/claude-sonnet-4.5"}
    for message in body["messages"][-2:]:
        message.pop("cache_control", None)
    body["messages"].pop(0)
    data = msgspec.json.encode(body)
    assert toolglot.repair(data, target="openrouter").data == data


def test_cache_points_go_where_a_model_of_bedrock_refuses_them() -> None:
    body = converse(POINT)
    assert toolglot.lint(body, "bedrock", model=LLAMA)
    out = toolglot.repair(body, target="bedrock", model=LLAMA)
    assert out.body == converse()
    assert not toolglot.lint(out.body, "bedrock", model=LLAMA)
    assert [entry.action for entry in out.report] == ["dropped"]


@pytest.mark.parametrize("model", [CLAUDE, NOVA])
def test_cache_points_stay_where_a_model_of_bedrock_takes_them(model: str) -> None:
    data = msgspec.json.encode({key: value for key, value in converse(POINT).items() if key != "toolConfig"})
    plain = toolglot.repair(data, target="bedrock", model=model)
    assert plain.body["system"] == [{"text": "s"}, POINT]


def test_a_turn_that_was_a_marker_alone_leaves_nothing_that_is_refused() -> None:
    messages = [{"role": "user", "content": [{"text": "hi"}]}, {"role": "assistant", "content": [POINT]}]
    messages.append({"role": "user", "content": [{"text": "so"}]})
    out = toolglot.repair({"messages": messages}, target="bedrock", model=LLAMA)
    assert not toolglot.lint(out.body, "bedrock", model=LLAMA)


def test_without_markers_nothing_is_touched() -> None:
    data = msgspec.json.encode(chat())
    assert toolglot.repair(data, target="openai").data == data
