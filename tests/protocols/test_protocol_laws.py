"""The laws of every codec: lossless in both directions, also through the stored form, and refusal with a path."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.protocols.body_laws import malformed, same_json
from support.protocols.strategies.anthropic import anthropic_replies, anthropic_requests
from support.protocols.strategies.bedrock import bedrock_replies, bedrock_requests
from support.protocols.strategies.cohere import cohere_replies, cohere_requests
from support.protocols.strategies.gemini import gemini_replies, gemini_requests
from support.protocols.strategies.ollama import ollama_replies, ollama_requests
from support.protocols.strategies.openai_chat import chat_replies, chat_requests
from support.protocols.strategies.openai_responses import openai_responses_replies, openai_responses_requests
from support.protocols.strategies.wire_objects import Fields
from toolglot import InputError, dump, load

BODIES: dict[str, tuple[st.SearchStrategy[Fields], st.SearchStrategy[Fields]]] = {
    "anthropic": (anthropic_requests, anthropic_replies),
    "bedrock": (bedrock_requests, bedrock_replies),
    "cohere": (cohere_requests, cohere_replies),
    "gemini": (gemini_requests, gemini_replies),
    "ollama": (ollama_requests, ollama_replies),
    "openai_chat": (chat_requests, chat_replies),
    "openai_responses": (openai_responses_requests, openai_responses_replies),
}
protocols = pytest.mark.parametrize("protocol", BODIES)


def codec(protocol: str, part: str) -> Any:
    return importlib.import_module(f"toolglot.protocols.{protocol}.{part}")


@pytest.mark.law
@protocols
@pytest.mark.parametrize("part", ["request", "reply"])
@given(data=st.data())
def test_law_3_a_body_comes_back_as_it_was(protocol: str, part: str, data: st.DataObject) -> None:
    module, body = codec(protocol, part), data.draw(BODIES[protocol][part == "reply"])
    before = json.dumps(body)
    assert same_json(module.encode(module.decode(body)), body)
    assert json.dumps(body) == before


@pytest.mark.law
@protocols
@given(data=st.data())
def test_law_3_a_request_comes_back_through_the_stored_form_too(protocol: str, data: st.DataObject) -> None:
    request, body = codec(protocol, "request"), data.draw(BODIES[protocol][0])
    assert same_json(request.encode(load(dump(request.decode(body)))), body)


@pytest.mark.law
@pytest.mark.parametrize("protocol", ["cohere", "ollama"])
@given(data=st.data())
def test_one_message_is_one_turn(protocol: str, data: st.DataObject) -> None:
    body = data.draw(BODIES[protocol][0])
    assert len(codec(protocol, "request").decode(body).turns) == len(body["messages"])


@pytest.mark.law
@protocols
@pytest.mark.parametrize("part", ["request", "reply"])
@given(data=st.data())
def test_a_malformed_body_comes_back_or_is_refused_with_a_path(protocol: str, part: str, data: st.DataObject) -> None:
    body = data.draw(malformed(BODIES[protocol][part == "reply"]))
    module = codec(protocol, part)
    try:
        value = module.decode(body)
    except InputError as error:
        path = error.path
    else:
        path = "$" if same_json(module.encode(value), body) else "lost"
    assert path.startswith("$")
