"""A cancelled call is an error result on every target that has one, and says so in words everywhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolglot import Conversation, History, Text, ToolCall, ToolResult, ToolSpec, Turn, lint, profiles, request_for

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}
MODELS = {
    "anthropic": "claude-sonnet-4-6",
    "openai": "gpt-5.1",
    "openai_responses": "gpt-5.2",
    "gemini": "gemini-3-pro",
    "bedrock": "anthropic.claude-sonnet-4-6",
    "cohere": "command-a-03-2025",
    "ollama": "qwen3",
    "mistral": "mistral-large-latest",
    "kimi": "kimi-k2-turbo-preview",
    "deepseek": "deepseek-chat",
    "xai": "grok-4",
    "groq": "llama-3.3-70b-versatile",
}
FLAGGED = {"anthropic": '"is_error":true', "bedrock": '"status":"error"', "gemini": '"response":{"error":'}
"""How a protocol that has a word for it says that a call failed."""
CALL = ToolCall("call_1", "read", {"path": "a"})
TOOLS = (ToolSpec("read", "Reads.", SCHEMA),)


def history(*more: Turn) -> History:
    past = History(provider="openai")
    for turn in (Turn("user", (Text("go"),)), Turn("assistant", (CALL,)), *more):
        past.append(turn)
    return past


def sent(past: History, target: str) -> str:
    conversation = Conversation(past.turns, TOOLS, model=MODELS[target])
    out = request_for(conversation, target=target, model=MODELS[target])
    assert not lint(out.body, target, model=MODELS[target])
    return out.data.decode()


def check(body: str, target: str, words: str) -> None:
    flag = FLAGGED.get(profiles.get(target).protocol)
    assert words in body
    if flag is not None:
        assert flag in body.replace(" ", "")
    else:
        assert f"Error: {words}" in body


@pytest.mark.parametrize("target", MODELS)
def test_a_call_that_was_cancelled_is_an_error_on_every_target(target: str) -> None:
    past = history()
    (call,) = past.ledger
    past.cancel(call.id)
    check(sent(past, target), target, "Cancelled by the user.")
    silent = history()
    silent.cancel(call.id, reason=" ")
    check(sent(silent, target), target, "The call was cancelled.")


@pytest.mark.parametrize("target", MODELS)
@pytest.mark.parametrize("content", ["Stopped.", None, "", (Text("Stopped."),)], ids=["text", "none", "empty", "parts"])
def test_a_cancel_that_does_not_say_that_it_is_an_error_is_one_too(target: str, content: Any) -> None:
    past = history(Turn("tool", (ToolResult("call_1", content, name="read", status="cancelled"),)))
    check(sent(past, target), target, "Stopped." if content else "The call was cancelled.")


@pytest.mark.parametrize("target", MODELS)
def test_a_call_without_a_result_is_an_error_that_says_so(target: str) -> None:
    past = history(Turn("user", (Text("and now?"),)))
    check(sent(past, target), target, "[No result: the tool call was interrupted. It may or may not have run.]")


@pytest.mark.parametrize("target", MODELS)
def test_law_5_what_follows_does_not_change_how_a_cancel_was_sent(target: str) -> None:
    past = history()
    (call,) = past.ledger
    past.cancel(call.id)
    past.append(Turn("user", (Text("and now?"),)))
    before = json.loads(sent(past, target))
    past.append(Turn("assistant", (Text("It was cancelled."),)))
    past.append(Turn("user", (Text("again"),)))
    after = json.loads(sent(past, target))
    key = next(key for key in ("messages", "input", "contents") if key in before)
    assert after[key][: len(before[key])] == before[key]
