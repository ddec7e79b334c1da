"""Reminders that a coding agent sends as system messages after each result: no role speaks that did not speak.

The current Claude Code ends its requests with a `role: "system"` message after every tool result. A bridge would put
words into the model's mouth, once for each result, so there is one only where the target refuses everything else.
"""

from __future__ import annotations

import pytest

from support.conversations.broken_conversations import TARGETS
from support.translate.conversion_checks import Fields, Target, convert_checked
from toolglot import Policy, profiles

STEPS = 5
BRIDGE = Policy().bridge_assistant
MODEL_ROLES = ("assistant", "model")

REFUSED: dict[Target, str] = {
    ("bedrock", "meta.llama3-1-70b-instruct"): "bedrock-result-user-after",
    ("bedrock", "mistral.mistral-large-2407-v1:0"): "bedrock-result-user-after",
    ("llamacpp", "mistral-small-3.2"): "llamacpp-mistral-user-after-result",
    ("openai_compatible", "mistral-small-3-2-24b-instruct"): "compatible-mistral-user-after-result",
    ("openrouter", "mistralai/mistral-large"): "openrouter-mistral-user-after-result",
    ("vllm", "mistralai/Mistral-Small-3.2-24B-Instruct-2506"): "vllm-mistral-user-after-result",
}
"""The targets whose refusal is documented, with the rule that says so."""

OTHERS: tuple[Target, ...] = (
    ("anthropic", "claude-opus-4-8"),
    ("anthropic", "claude-sonnet-5"),
    ("bedrock", "amazon.nova-pro-v1:0"),
    ("gemini", "gemini-2.5-flash"),
    ("mistral", "mistral-small-latest"),
    ("ollama", "mistral"),
    ("openrouter", "google/gemini-3-pro-preview"),
    ("vllm", "Qwen/Qwen3-32B"),
)
EVERY = [target for target in dict.fromkeys((*TARGETS, *OTHERS)) if target not in REFUSED]


def agent_request(steps: int) -> Fields:
    """What Claude Code sends after so many results."""
    messages: list[Fields] = [
        {"role": "user", "content": [{"type": "text", "text": "List the files."}]},
        {"role": "system", "content": "These tools can be loaded: CronList."},
    ]
    for number in range(steps):
        call_id = f"toolu_{number:022d}"
        call = {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": f"ls {number}"}}
        result = {"type": "tool_result", "tool_use_id": call_id, "content": f"{number}.txt"}
        messages += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
            {"role": "system", "content": f"Reminder {number}: be brief."},
        ]
    schema = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    return {
        "model": "claude-opus-4-8",
        "max_tokens": 1000,
        "system": "You are an agent.",
        "messages": messages,
        "tools": [{"name": "Bash", "description": "Run a command.", "input_schema": schema}],
    }


def messages_of(body: Fields) -> list[Fields]:
    return next(body[key] for key in ("messages", "contents", "input") if key in body)


def model_turns(body: Fields) -> list[Fields]:
    return [
        message
        for message in messages_of(body)
        if message.get("role") in MODEL_ROLES or message.get("type") == "function_call"
    ]


@pytest.mark.parametrize("target", EVERY, ids="/".join)
def test_a_reminder_after_each_result_adds_no_turn_of_the_model(target: Target) -> None:
    out = convert_checked(agent_request(STEPS), "anthropic", target)
    assert len(model_turns(out.body)) == STEPS
    assert f'"{BRIDGE}"' not in out.data.decode()
    assert not [entry for entry in out.report.entries if "bridge" in entry.reason]
    for number in range(STEPS):
        assert out.data.decode().count(f"Reminder {number}: be brief.") == 1


@pytest.mark.parametrize("target", EVERY, ids="/".join)
def test_a_reminder_stays_where_it_was_as_the_history_grows(target: Target) -> None:
    longest = messages_of(convert_checked(agent_request(STEPS), "anthropic", target).body)
    for steps in range(1, STEPS):
        messages = messages_of(convert_checked(agent_request(steps), "anthropic", target).body)
        assert longest[: len(messages)] == messages


@pytest.mark.parametrize("target", REFUSED, ids="/".join)
def test_a_bridge_is_added_where_the_refusal_is_documented(target: Target) -> None:
    rule = profiles.get(*target).origin("results.user_after")
    assert rule.id == REFUSED[target]
    assert rule.confidence in ("observed", "documented", "recorded")
    out = convert_checked(agent_request(STEPS), "anthropic", target)
    assert len(model_turns(out.body)) == 2 * STEPS
    assert [entry for entry in out.report.entries if f"({rule.id})" in entry.reason]
