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
from broken_bodies import Fields, after_a_mishap, broken_bodies, model_of
from broken_conversations import SOURCES, TARGETS, conversations, grown_conversations
from many_examples import MANY
from toolglot import Conversation, RefusedError, lint, profiles, read_request
from toolglot.render import render
from toolglot.wire.codecs import codec

UNDECIDED = (b'"content": null, "tool_calls": []', b'"id": ""', b'"parts": [', b'"role": "human"', b'"role": "ai"')
"""Forms that some servers take without reading them, and that are read as they are meant: messages without content and
calls, ids that say nothing, and messages as another protocol writes them."""

OLD_FORMS = (b'"function_call":', b'"role": "function"')
"""Calls and results of the first Chat API: without the functions that they belong to, they are read as tools."""

BODIES = Path(__file__).parent / "accepted_bodies"
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
def test_an_accepted_body_is_right_and_leaves_byte_for_byte(provider: str, case: dict[str, Any]) -> None:
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
            "gemini-turn-empty",
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
    ],
)
def test_what_a_provider_surely_refuses_is_named(provider: str, model: str, body: dict[str, Any], rule: str) -> None:
    assert rule in {violation.rule for violation in lint(body, provider, model=model)}


# --- the laws' conversations --------------------------------------------------------------------------


def _is_undecided(provider: str, body: Fields) -> bool:
    """Whether the referee lets a body pass that says something to nobody, or that law 5 changes.

    A signature that was lost gets its stand-in in every turn, so that what is sent of a turn never changes; Gemini 3
    looks at the last ones only. An empty list of messages makes Ollama load a model: nothing is asked.
    """
    if not next((body[key] for key in ("messages", "contents", "input") if key in body), None):
        return True
    if profiles.get(provider).protocol == "gemini":
        return any(_lacks_signature(content) for content in body["contents"]) or '"id": ""' in json.dumps(body)
    if provider == "openai_responses":
        return any(item.get("content") == [] for item in body["input"])
    return any(form in json.dumps(body).encode() for form in UNDECIDED)


def _lacks_signature(content: Fields) -> bool:
    parts = content.get("parts", [])
    called = next((part for part in parts if "functionCall" in part), None) if isinstance(parts, list) else None
    return called is not None and "thoughtSignature" not in called


def _assert_left_alone(provider: str, model: str, body: Fields) -> None:
    """The two judges joined: what the referee finds right, the renderer does not change at its own provider."""
    data = json.dumps(body).encode()
    if lint(data, provider, model=model) or any(form in data for form in OLD_FORMS) or _is_undecided(provider, body):
        event("found wrong")
        return
    event("found right")
    received = read_request(data, source=provider)
    if profiles.get(provider).protocol in MODEL_IN_ADDRESS:
        received.address(model=model, stream=False)
    sent = received.for_target(provider, model=model)
    assert sent.data == data, str(sent.report)
    told = [entry for entry in sent.report.entries if entry.gravity != "housekeeping" and entry.action != "assumed"]
    assert [str(entry) for entry in told] == []


@pytest.mark.law
@MANY
@given(conversations | grown_conversations(), st.sampled_from(TARGETS), st.sampled_from(SOURCES), st.randoms())
def test_law_3_what_the_referee_finds_right_of_the_laws_conversations_leaves_byte_for_byte(
    conversation: Conversation, target: tuple[str, str], source: str, chance: random.Random
) -> None:
    provider, model = target
    profile = profiles.get(provider, model)
    try:
        made = render(replace(conversation, model=model), profile, source=profiles.get(source))
    except RefusedError:
        return
    body = codec(profile.protocol).request.encode(made.conversation, profile)
    _assert_left_alone(provider, model, body)
    _assert_left_alone(provider, model, after_a_mishap(chance, body))


@pytest.mark.law
@MANY
@given(broken_bodies(sources=TARGETS))
def test_law_3_what_the_referee_finds_right_of_broken_bodies_leaves_byte_for_byte(
    given_body: tuple[str, Fields],
) -> None:
    provider, body = given_body
    _assert_left_alone(provider, model_of(provider, body, TARGETS), body)
