"""A reply with the wrong source: the error names what it looks like, and what to pass."""

from __future__ import annotations

from typing import Any

import pytest

from support.translate.reply_bodies import BODIES, PROTOCOLS
from toolglot import ProviderError, convert_reply
from toolglot.protocols.reply_detection import protocol_of_reply

ALIKE = {("ollama", "cohere"), ("cohere", "ollama")}
"""Protocols whose plainest replies are read as each other's."""
WRONG = [(seen, source) for seen in PROTOCOLS for source in PROTOCOLS if seen != source and (seen, source) not in ALIKE]


@pytest.mark.parametrize("kind", BODIES)
def test_every_reply_is_known_by_its_shape(kind: str) -> None:
    assert {protocol: protocol_of_reply(body) for protocol, body in BODIES[kind].items()} == {
        protocol: protocol for protocol in BODIES[kind]
    }


@pytest.mark.parametrize(("seen", "source"), WRONG)
@pytest.mark.parametrize("kind", ["text", "calls"])
def test_a_wrong_source_is_an_error_with_the_right_one(kind: str, seen: str, source: str) -> None:
    with pytest.raises(ProviderError) as caught:
        convert_reply(BODIES[kind][seen], source=source, target="anthropic")
    message = str(caught.value)
    assert f"not a reply of the protocol {source}, but looks like one of {seen}" in message
    assert f'pass source="{seen}"' in message


def test_the_error_names_the_protocol_of_the_wrong_provider() -> None:
    with pytest.raises(ProviderError, match=r'of the protocol openai_chat, but .* pass source="gemini"'):
        convert_reply(BODIES["text"]["gemini"], source="mistral", target="anthropic")


@pytest.mark.parametrize(
    "body",
    [{"model": "gpt-5", "messages": [{"role": "user", "content": "Hi"}]}, {"contents": [{"parts": [{"text": "Hi"}]}]}],
)
def test_a_request_instead_of_a_reply_is_an_error_with_a_hint(body: dict[str, Any]) -> None:
    with pytest.raises(ProviderError, match=r"looks like a request of .*; use convert for a request"):
        convert_reply(body, source="anthropic", target="openai")


@pytest.mark.parametrize("body", [{}, {"hello": 1}, {"choices": None}, {"type": "message"}])
def test_an_unknown_shape_is_refused_with_its_first_fault(body: dict[str, Any]) -> None:
    with pytest.raises(ProviderError, match="cannot be read at "):
        convert_reply(body, source="openai_responses", target="anthropic")
