"""What toolglot writes is read by the real SDKs: replies by the client, requests by the type definitions."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as struct_replace

from sdk import definitions, features, reading
from sdk.loopback import Loopback, serving
from sdk.made_replies import REPLIES
from sdk.recording import FOLDER, MODULES, Sdk, load
from toolglot import profiles
from toolglot.conversation import Conversation, Reply
from toolglot.protocols.fields.refusals import only_refuses, without_refusals

PROTOCOLS = {
    "anthropic": "anthropic",
    "boto3": "bedrock",
    "cohere": "cohere",
    "genai": "gemini",
    "mistral": "openai_chat",
    "ollama": "ollama",
    "openai": "openai_chat",
    "responses": "openai_responses",
}


def codec(protocol: str, part: str) -> Any:
    return importlib.import_module(f"toolglot.protocols.{protocol}.{part}")


def recorded(part: str, *, of: str = "*", name: str = "*") -> list[str]:
    return sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.glob(f"{of}/{name}_*.{part}.json"))


def decoded(recording: str, part: str) -> Any:
    return codec(recording.partition("/")[0], part).decode(json.loads((FOLDER / recording).read_text("utf-8")))


def foreign_replies(name: str) -> dict[str, Reply]:
    """Every reply that did not come in the client's own protocol."""
    protocol = PROTOCOLS[name]
    others = [found for found in recorded("reply") if not found.startswith(f"{protocol}/")]
    return {**REPLIES, **{found: decoded(found, "reply") for found in others}}


CLIENTS = {name: foreign_replies(name) for name in MODULES}
SERVED = [
    (name, found)
    for name, replies in CLIENTS.items()
    for found, reply in replies.items()
    if not features.of_reply(reply) & features.OPEN_REPLIES[name]
]
OWN = [(name, found) for name, protocol in PROTOCOLS.items() for found in recorded("reply", of=protocol, name=name)]
CONVERSATIONS: dict[str, Conversation] = {found: decoded(found, "request") for found in recorded("request")}
WRITTEN = [
    (name, found)
    for name, protocol in PROTOCOLS.items()
    for found, conversation in CONVERSATIONS.items()
    if not found.startswith(f"{protocol}/")
    and not features.of_conversation(conversation) & (features.NEEDS_RENDERING[name] | features.OPEN[name])
]


class Clients:
    """The SDKs, each opened once, at one provider."""

    def __init__(self, provider: Loopback) -> None:
        self.provider = provider
        self._open: dict[str, tuple[Sdk, Any, Any]] = {}

    def call(self, name: str, answer: dict[str, Any]) -> tuple[Any, Any]:
        """The client, and the reply as it read it."""
        if name not in self._open:
            sdk = load(name)
            opened = sdk.open(self.provider.url)
            self._open[name] = sdk, opened, opened.__enter__()
        sdk, _, client = self._open[name]
        self.provider.give(json.dumps(answer))
        return client, sdk.scenarios["plain"](client)

    def close(self) -> None:
        for _, opened, _ in self._open.values():
            opened.__exit__(None, None, None)


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    with serving() as provider:
        found = Clients(provider)
        yield found
        found.close()


def seen_by(name: str, reply: Reply) -> reading.Seen:
    """What the user of an SDK sees, by what its protocol can express."""
    expected = reading.expected_of(reply, free_text=name in reading.HAS_FREE_TEXT)
    calls = expected.calls if name in reading.HAS_CALL_IDS else tuple(("", *call[1:]) for call in expected.calls)
    thinking = expected.thinking if name in reading.SHOWS_THINKING else ""
    tokens = expected.tokens or ((0, 0) if name in reading.HAS_ALWAYS_USAGE else None)
    stop = reading.STOPS[name].get(expected.stop or "")
    return replace(expected, calls=calls, tokens=tokens, thinking=thinking, stop=stop)


@pytest.mark.parametrize(("name", "found"), SERVED)
def test_a_reply_from_elsewhere_is_read_by_the_sdk(clients: Clients, name: str, found: str) -> None:
    reply = CLIENTS[name][found]
    if name == "mistral" and not profiles.get("mistral").turns.refusals:
        reply = struct_replace(reply, turn=struct_replace(reply.turn, blocks=without_refusals(reply.turn.blocks)))
    body = codec(PROTOCOLS[name], "reply").encode(reply)
    client, answer = clients.call(name, body)
    seen, expected = reading.SEEN[name](answer), seen_by(name, reply)
    if name == "openai" and only_refuses(reply.turn.blocks):
        expected = replace(expected, stop="stop")  # as OpenAI does: `refusal` has the rest
    assert seen == (expected if expected.stop is not None else replace(expected, stop=seen.stop))
    reading.refuse_invalid(name, body, answer, client)


@pytest.mark.parametrize(("name", "found"), OWN)
def test_a_native_reply_is_read_by_the_sdk_as_it_was(clients: Clients, name: str, found: str) -> None:
    reply = decoded(found, "reply")
    body = codec(PROTOCOLS[name], "reply").encode(reply)
    client, answer = clients.call(name, body)
    expected = reading.expected_of(reply)
    seen = reading.SEEN[name](answer)
    assert seen.text == expected.text
    assert [call[1:] for call in seen.calls] == [call[1:] for call in expected.calls]
    assert seen.tokens == expected.tokens
    reading.refuse_invalid(name, body, answer, client)


@pytest.mark.parametrize(("name", "found"), WRITTEN)
def test_a_request_from_elsewhere_has_the_shape_that_the_sdk_defines(name: str, found: str) -> None:
    definitions.refuse_invalid(name, codec(PROTOCOLS[name], "request").encode(CONVERSATIONS[found]))


@pytest.mark.parametrize("name", MODULES)
def test_most_recordings_are_judged(name: str) -> None:
    """The features that are left out must not eat up the tests."""
    assert sum(client == name for client, _ in SERVED) >= 45
    assert sum(client == name for client, _ in WRITTEN) >= 85


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("anthropic", {"messages": [{"role": "user", "content": [{"type": "text"}]}]}),
        ("anthropic", {"messages": [], "tools": [{"name": "a"}]}),
        ("boto3", {"messages": [{"role": "user", "content": "text"}]}),
        ("cohere", {"messages": [{"role": "tool", "content": "x"}]}),
        ("genai", {"contents": [{"parts": [{"function_name": "x"}]}]}),
        ("mistral", {"messages": [{"role": "developer", "content": "x"}]}),
        ("ollama", {"messages": [{"content": "x"}]}),
        ("openai", {"messages": [{"role": "assistant", "tool_calls": [{"id": "a", "type": "function"}]}]}),
        ("responses", {"input": [{"type": "function_call", "name": "x"}]}),
    ],
)
def test_the_definitions_refuse_what_is_wrong(name: str, body: dict[str, Any]) -> None:
    with pytest.raises((ValueError, AssertionError)):
        definitions.refuse_invalid(name, body)
