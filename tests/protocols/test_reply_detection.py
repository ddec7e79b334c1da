"""A reply that is given under the wrong source: the error says what it looks like, and what to pass."""

from __future__ import annotations

from typing import Any

import pytest

from support.translate.reply_bodies import BODIES, PROTOCOLS
from toolglot import ProviderError, convert_reply
from toolglot.protocols.reply_detection import protocol_of_reply

ALIKE = {("ollama", "cohere"), ("cohere", "ollama")}
"""Protocols whose plainest replies are read as each other's."""
WRONG = [(seen, said) for seen in PROTOCOLS for said in PROTOCOLS if seen != said and (seen, said) not in ALIKE]


@pytest.mark.parametrize("kind", BODIES)
def test_every_reply_is_known_by_its_shape(kind: str) -> None:
    assert {protocol: protocol_of_reply(body) for protocol, body in BODIES[kind].items()} == {
        protocol: protocol for protocol in BODIES[kind]
    }


@pytest.mark.parametrize(("seen", "said"), WRONG)
@pytest.mark.parametrize("kind", ["text", "calls"])
def test_a_wrong_source_is_told_with_the_right_one(kind: str, seen: str, said: str) -> None:
    with pytest.raises(ProviderError) as caught:
        convert_reply(BODIES[kind][seen], source=said, target="anthropic")
    message = str(caught.value)
    assert f"not a reply of the protocol {said}, but looks like one of {seen}" in message
    assert f'pass source="{seen}"' in message


def test_the_provider_that_was_named_is_told_by_its_protocol() -> None:
    with pytest.raises(ProviderError, match=r'of the protocol openai_chat, but .* pass source="gemini"'):
        convert_reply(BODIES["text"]["gemini"], source="mistral", target="anthropic")


@pytest.mark.parametrize(
    "body",
    [{"model": "gpt-5", "messages": [{"role": "user", "content": "Hi"}]}, {"contents": [{"parts": [{"text": "Hi"}]}]}],
)
def test_a_request_in_the_place_of_a_reply_is_told(body: dict[str, Any]) -> None:
    with pytest.raises(ProviderError, match=r"looks like a request of .*; use convert for a request"):
        convert_reply(body, source="anthropic", target="openai")


@pytest.mark.parametrize("body", [{}, {"hello": 1}, {"choices": None}, {"type": "message"}])
def test_what_looks_like_nothing_is_told_by_its_first_fault(body: dict[str, Any]) -> None:
    with pytest.raises(ProviderError, match="cannot be read at "):
        convert_reply(body, source="openai_responses", target="anthropic")
