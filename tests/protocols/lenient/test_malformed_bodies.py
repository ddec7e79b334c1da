"""Bodies that a strict reading refuses although it is plain what they mean."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot import InputError, lint, repair
from toolglot.protocols.base import codec
from toolglot.protocols.lenient.malformed_bodies import fix_request

Fields = dict[str, Any]
HI: Fields = {"role": "user", "content": "hi"}


def chat(id: Any, arguments: Any, content: Any = "done") -> Fields:
    call = {"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}
    answer = {"role": "tool", "tool_call_id": id, "content": content}
    return {"model": "gpt-4.1", "messages": [HI, {"role": "assistant", "content": None, "tool_calls": [call]}, answer]}


def anthropic(id: Any, arguments: Any, content: Any = "done") -> Fields:
    call = {"type": "tool_use", "id": id, "name": "f", "input": arguments}
    answer = {"type": "tool_result", "tool_use_id": id, "content": content}
    messages = [HI, {"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]
    return {"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": messages}


def bedrock(id: Any, arguments: Any, content: Any = "done") -> Fields:
    call = {"toolUse": {"toolUseId": id, "name": "f", "input": arguments}}
    answer = {"toolResult": {"toolUseId": id, "content": content}}
    messages = [
        {"role": "user", "content": [{"text": "hi"}]},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [answer]},
    ]
    tool = {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object", "properties": {}}}}}
    return {"modelId": "anthropic.claude-sonnet-4-6", "messages": messages, "toolConfig": {"tools": [tool]}}


def responses(id: Any, arguments: Any, content: Any = "done") -> Fields:
    call = {"type": "function_call", "call_id": id, "name": "f", "arguments": arguments}
    answer = {"type": "function_call_output", "call_id": id, "output": content}
    return {"model": "gpt-5.2", "input": [HI, call, answer]}


def gemini(id: Any, arguments: Any, content: Any = "done") -> Fields:
    call = {"functionCall": {"id": id, "name": "f", "args": arguments}}
    answer = {"functionResponse": {"id": id, "name": "f", "response": content}}
    return {
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [call]},
            {"role": "user", "parts": [answer]},
        ]
    }


def cohere(id: Any, arguments: Any, content: Any = "done") -> Fields:
    call = {"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}
    answer = {"role": "tool", "tool_call_id": id, "content": content}
    return {"model": "command-a-03-2025", "messages": [HI, {"role": "assistant", "tool_calls": [call]}, answer]}


def ollama(id: Any, arguments: Any, content: Any = "done") -> Fields:
    call = {"id": id, "function": {"name": "f", "arguments": arguments}}
    answer = {"role": "tool", "tool_name": "f", "tool_call_id": id, "content": content}
    return {"model": "qwen3", "messages": [HI, {"role": "assistant", "content": "", "tool_calls": [call]}, answer]}


BODIES = {
    "anthropic": anthropic,
    "bedrock": bedrock,
    "cohere": cohere,
    "gemini": gemini,
    "ollama": ollama,
    "openai": chat,
    "openai_responses": responses,
}


@pytest.mark.parametrize("target", BODIES)
@pytest.mark.parametrize("id", [None, 7, "", "call_1"])
@pytest.mark.parametrize("arguments", [None, "", {}, {"a": 1}, '{"a":1}', [1], "x", 5])
@pytest.mark.parametrize("content", ["done", None, {"a": 1}, 5])
def test_B7_F3_a_malformed_exchange_is_repaired(target: str, id: Any, arguments: Any, content: Any) -> None:
    out = repair(BODIES[target](id, arguments, content), target=target)
    assert [str(violation) for violation in lint(out.body, target, out.model)] == []


@pytest.mark.parametrize(
    "protocol", ["anthropic", "bedrock", "cohere", "gemini", "ollama", "openai_chat", "openai_responses"]
)
def test_a_body_in_order_is_left_alone(protocol: str) -> None:
    body = BODIES["openai" if protocol == "openai_chat" else protocol]("call_1", "{}", "done")
    meant, entries = fix_request(body, protocol)
    assert (meant is body) == (not entries)


def test_a_lone_block_and_null_content_are_read_as_meant() -> None:
    body = anthropic("toolu_1", {})
    body["messages"][0] = {"role": "user", "content": {"type": "text", "text": "hi"}}
    body["messages"].append({"role": "user", "content": None})
    out = repair(body, target="anthropic")
    assert out.body["messages"][0]["content"] == [{"type": "text", "text": "hi"}]
    assert lint(out.body, "anthropic") == ()


def test_A6_an_output_without_a_call_id_is_paired_or_kept_as_text() -> None:
    body = {"model": "gpt-5.2", "input": [HI, {"type": "function_call_output", "output": "lost"}]}
    out = repair(body, target="openai_responses")
    assert "lost" in out.data.decode()
    assert lint(out.body, "openai_responses") == ()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.law
@given(
    st.sampled_from(["anthropic", "bedrock", "cohere", "gemini", "ollama", "openai_chat", "openai_responses"]),
    st.dictionaries(st.sampled_from(["messages", "input", "contents"]), json_values),
)
def test_no_body_makes_fixing_raise(protocol: str, body: Fields) -> None:
    meant, fixes = fix_request(body, protocol)
    if fixes:
        with contextlib.suppress(InputError):
            codec(protocol).request.decode(meant)


def test_an_unknown_protocol_is_an_error() -> None:
    with pytest.raises(InputError, match="unknown protocol"):
        fix_request({"messages": []}, "none")
