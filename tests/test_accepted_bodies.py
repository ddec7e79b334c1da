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

JOINED = ("azure", "openai")
"""Providers for which the referee and the renderer agree on bodies to which something happened, too."""

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


# --- the laws' conversations --------------------------------------------------------------------------


def _assert_left_alone(provider: str, model: str, body: Fields) -> None:
    """The two judges joined: what the referee finds right, the renderer does not change at its own provider."""
    data = json.dumps(body).encode()
    if lint(data, provider, model=model) or any(form in data for form in OLD_FORMS):
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
    if provider in JOINED:
        _assert_left_alone(provider, model, after_a_mishap(chance, body))


@pytest.mark.law
@MANY
@given(broken_bodies(providers=JOINED))
def test_law_3_what_the_referee_finds_right_of_broken_bodies_leaves_byte_for_byte(
    given_body: tuple[str, Fields],
) -> None:
    provider, body = given_body
    _assert_left_alone(provider, model_of(provider, body), body)
