"""The laws of the renderer, on conversations in which everything goes wrong, for every target."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from broken_conversations import SOURCES, TARGETS, conversations
from toolglot import Conversation, RefusedError, profiles
from toolglot.referee import lint
from toolglot.render import Rendered, render
from toolglot.wire.codecs import codec

pytestmark = pytest.mark.law
MANY = settings(max_examples=2000, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

targets = st.sampled_from(TARGETS)
sources = st.sampled_from(SOURCES)


def rendered(conversation: Conversation, target: tuple[str, str], source: str) -> Rendered | None:
    name, model = target
    try:
        return render(replace(conversation, model=model), profiles.get(name, model), source=profiles.get(source))
    except RefusedError as refused:
        event(f"refused: {type(refused).__name__}")
        return None


def body_of(made: Rendered, target: tuple[str, str]) -> dict[str, Any]:
    profile = profiles.get(*target)
    return codec(profile.protocol).request.encode(made.conversation, profile)


@MANY
@given(conversations, targets, sources)
def test_law_1_what_is_rendered_the_referee_accepts(
    conversation: Conversation, target: tuple[str, str], source: str
) -> None:
    made = rendered(conversation, target, source)
    if made is not None:
        body = body_of(made, target)
        assert [str(violation) for violation in lint(body, *target)] == [], msgspec.json.encode(body)
