"""Do no harm: a request that its provider takes is right for the referee, and leaves byte for byte.

`accepted_bodies/<provider>.json` holds a small body of our own for each shape that real providers were seen to take.
Each is judged by both sides: the referee, and the renderer at the same provider. The laws' conversations join the two
as well: whatever the referee finds right is not changed.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from msgspec.structs import replace

import toolglot
from support.conversations.broken_conversations import SOURCES, TARGETS, conversations, grown_conversations
from support.law_examples import MANY
from support.translate.broken_bodies import Fields, after_a_mishap, broken_bodies, model_of
from toolglot import Conversation, RefusedError, lint, profiles, read_request
from toolglot.protocols.base import codec
from toolglot.render import render

BODIES = Path(__file__).parents[1] / "accepted_bodies"
MODEL_IN_ADDRESS = ("gemini", "bedrock")


def _cases() -> list[Any]:
    return [
        pytest.param(file.stem, case, id=f"{file.stem}: {case['shape']}")
        for file in sorted(BODIES.glob("*.json"))
        for case in json.loads(file.read_text())
    ]


def _at_its_provider(provider: str, case: dict[str, Any]) -> toolglot.ConvertedRequest:
    data = json.dumps(case["body"]).encode()
    received = toolglot.read_request(data, source=provider)
    if profiles.get(provider).protocol in MODEL_IN_ADDRESS:
        received.address(model=case["model"], stream=case.get("stream", False))
    return received.for_target(provider)


@pytest.mark.parametrize(("provider", "case"), _cases())
def test_an_accepted_body_has_no_violation_and_is_sent_byte_for_byte(provider: str, case: dict[str, Any]) -> None:
    found = toolglot.lint(case["body"], provider, model=case["model"])
    assert not found, [f"{violation.rule}: {violation.message}" for violation in found]
    sent = _at_its_provider(provider, case)
    assert sent.data == json.dumps(case["body"]).encode(), str(sent.report)
    assert [entry for entry in sent.report.entries if entry.gravity != "housekeeping"] == []


@pytest.mark.parametrize(
    ("provider", "model", "body", "rule"),
    [
        ("gemini", "gemini-2.5-pro", {"contents": []}, "gemini-some-input"),
        (
            "gemini",
            "gemini-2.5-pro",
            {"contents": [{"role": "user", "parts": [{"text": "q"}]}, {"role": "model", "parts": []}]},
            "gemini-prefill-empty",
        ),
        (
            "mistral",
            "mistral-large-latest",
            {"model": "mistral-large-latest", "messages": [{"role": "system", "content": "s"}]},
            "mistral-turn-last",
        ),
        (
            "bedrock",
            "amazon.nova-lite-v1:0",
            {
                "messages": [
                    {"role": "user", "content": [{"text": "q"}]},
                    {"role": "assistant", "content": []},
                    {"role": "user", "content": [{"text": "go on"}]},
                ]
            },
            "bedrock-turn-empty",
        ),
        (
            "vertex",
            "gemini-2.5-pro",
            {
                "contents": [
                    {"role": "user", "parts": [{"text": "q"}]},
                    {"role": "model", "parts": [{"functionCall": {"id": "", "name": "read", "args": {}}}]},
                    {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "a"}}}]},
                ]
            },
            "vertex-old-id-refused",
        ),
        (
            "openai",
            "o3",
            {
                "model": "o3",
                "messages": [
                    {"role": "user", "content": "q"},
                    {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}},
                    {"role": "function", "name": "read", "content": "a"},
                ],
            },
            "openai-o-turn-function",
        ),
        (
            "openai",
            "gpt-4.1",
            {
                "model": "gpt-4.1",
                "messages": [
                    {"role": "user", "content": "q"},
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
                        ],
                    },
                    {"role": "function", "name": "read", "content": "a"},
                    {"role": "tool", "tool_call_id": "call_1", "content": "b"},
                ],
            },
            "openai-result-adjacent",
        ),
        (
            "ollama",
            "qwen3",
            {"model": "qwen3", "messages": [{"role": "assistant", "parts": [{"functionCall": {"name": "read"}}]}]},
            "shape",
        ),
        ("ollama", "qwen3", {"model": "qwen3", "messages": [{"role": "human", "content": "q"}]}, "shape"),
        (
            "anthropic",
            "claude-sonnet-4-5",
            {
                "model": "claude-sonnet-4-5",
                "max_tokens": 2048,
                "thinking": {"type": "enabled", "budget_tokens": 1024},
                "messages": [
                    {"role": "user", "content": "q"},
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "a", "input": {}}]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "r"}]},
                    {"role": "user", "content": "and now"},
                ],
            },
            "anthropic-thinking-leading",
        ),
    ],
)
def test_what_a_provider_surely_refuses_is_named(provider: str, model: str, body: dict[str, Any], rule: str) -> None:
    assert rule in {violation.rule for violation in lint(body, provider, model=model)}


def test_a_call_of_the_open_step_without_its_signature_gets_a_placeholder_and_earlier_ones_stay() -> None:
    words = {"role": "user", "parts": [{"text": "q"}]}
    call = {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]}
    result = {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "a"}}}]}
    body = {"contents": [words, call, result, words, call, result]}
    contents = _at_its_provider("gemini", {"body": body, "model": "gemini-3-pro"}).body["contents"]
    assert contents[:4] == body["contents"][:4]
    assert contents[4]["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"


# --- the laws' conversations --------------------------------------------------------------------------


def _assert_left_alone(provider: str, model: str, body: Fields) -> None:
    """The two judges joined: what the referee finds right, the renderer does not change at its own provider."""
    data = json.dumps(body).encode()
    if lint(data, provider, model=model):
        event("found wrong")
        return
    event("found right")
    received = read_request(data, source=provider)
    if profiles.get(provider).protocol in MODEL_IN_ADDRESS:
        received.address(model=model, stream=False)
    sent = received.for_target(provider, model=model)
    assert sent.data == data, str(sent.report)
    entries = [entry for entry in sent.report.entries if entry.gravity != "housekeeping" and entry.action != "assumed"]
    assert [str(entry) for entry in entries] == []


@pytest.mark.law
@MANY
@given(conversations | grown_conversations(), st.sampled_from(TARGETS), st.sampled_from(SOURCES), st.randoms())
def test_law_3_a_conversation_that_the_referee_accepts_is_sent_byte_for_byte(
    conversation: Conversation, target: tuple[str, str], source: str, rng: random.Random
) -> None:
    provider, model = target
    profile = profiles.get(provider, model)
    try:
        made = render(replace(conversation, model=model), profile, source=profiles.get(source))
    except RefusedError:
        return
    body = codec(profile.protocol).request.encode(made.conversation, profile)
    _assert_left_alone(provider, model, body)
    _assert_left_alone(provider, model, after_a_mishap(rng, body))


@pytest.mark.law
@MANY
@given(broken_bodies(sources=TARGETS))
def test_law_3_a_broken_body_that_the_referee_accepts_is_sent_byte_for_byte(
    example: tuple[str, Fields],
) -> None:
    provider, body = example
    _assert_left_alone(provider, model_of(provider, body, TARGETS), body)
