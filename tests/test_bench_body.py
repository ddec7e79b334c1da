"""The body that the benches measure with is what it says it is."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import msgspec
import pytest

from agent_body import agent_body
from toolglot import ToolCall, ToolResult
from toolglot.protocols.anthropic import request as anthropic


def blocks(body: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [block for message in body["messages"] for block in message["content"] if block["type"] == kind]


def weight(value: object) -> int:
    return len(msgspec.json.encode(value))


@pytest.mark.parametrize(("messages", "size"), [(40, 114_000), (400, 1_140_000)])
def test_a_body_weighs_what_the_limits_were_set_for(messages: int, size: int) -> None:
    made = agent_body(messages)
    assert len(made) == pytest.approx(size, rel=0.03)
    assert len(msgspec.json.decode(made)["messages"]) == messages


def test_the_same_arguments_give_the_same_bytes_in_every_process() -> None:
    assert agent_body() == agent_body()
    assert hashlib.sha256(agent_body()).hexdigest()[:16] == "367774a20974a6d8"


def test_most_bytes_are_tool_results_and_a_quarter_is_system_and_tools() -> None:
    body = msgspec.json.decode(agent_body())
    assert weight(blocks(body, "tool_result")) > 0.5 * weight(body)
    assert weight(body["system"]) + weight(body["tools"]) == pytest.approx(30_000, rel=0.1)


def test_the_tools_have_names_of_their_own_and_two_to_twelve_properties() -> None:
    tools = msgspec.json.decode(agent_body())["tools"]
    assert len({tool["name"] for tool in tools}) == 15
    counts = [len(tool["input_schema"]["properties"]) for tool in tools]
    assert (min(counts), max(counts)) == (2, 12)
    assert all(len(tool["description"]) > 500 for tool in tools)
    assert len({tool["name"] for tool in msgspec.json.decode(agent_body(3, 40))["tools"]}) == 40


@pytest.mark.parametrize("messages", [1, 2, 3, 40, 41, 400])
def test_every_call_is_answered_once_in_the_next_message(messages: int) -> None:
    body = msgspec.json.decode(agent_body(messages))
    assert body["messages"][-1]["role"] == "user"
    for before, after in zip(body["messages"], body["messages"][1:], strict=False):
        calls = [block["id"] for block in before["content"] if block["type"] == "tool_use"]
        assert [block["tool_use_id"] for block in after["content"] if block["type"] == "tool_result"] == calls
    ids = Counter(call["id"] for call in blocks(body, "tool_use"))
    assert set(ids.values()) <= {1}
    assert all(id.startswith("toolu_01") and len(id) == 30 for id in ids)


def test_it_has_what_agents_send() -> None:
    body = msgspec.json.decode(agent_body())
    results = blocks(body, "tool_result")
    assert {type(result["content"]) for result in results} == {str, list}
    assert any(result.get("is_error") for result in results)
    assert any(sum(block["type"] == "tool_use" for block in message["content"]) > 1 for message in body["messages"])
    assert [block for block in body["system"] if "cache_control" in block]
    text = agent_body().decode()
    assert not text.isascii()
    assert all(escape in text for escape in ("\\n", '\\"', "\\t", "\\\\"))


def test_no_large_content_stands_there_twice() -> None:
    contents = [str(result["content"]) for result in blocks(msgspec.json.decode(agent_body(400)), "tool_result")]
    large = [content for content in contents if len(content) > 100]
    assert len(set(large)) == len(large) > 200


def test_the_codec_reads_it_whole_and_gives_it_back() -> None:
    body = msgspec.json.decode(agent_body())
    conversation = anthropic.decode(body)
    kinds = Counter(type(block) for turn in conversation.turns for block in turn.blocks)
    assert kinds[ToolCall] == len(blocks(body, "tool_use")) == kinds[ToolResult]
    assert anthropic.encode(conversation) == body
