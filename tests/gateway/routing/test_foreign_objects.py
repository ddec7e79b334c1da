"""Objects of another client key in requests for models: whichever protocol names them, they do not exist."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from support.gateway.http_client import ask
from support.gateway.served_gateway import UPSTREAMS, Served, gateway
from toolglot.gateway.accounting.client_keys import new_key, save
from toolglot.gateway.endpoints.passed_requests import as_object_id
from toolglot.gateway.state.owned_objects import OwnedObject, OwnedObjects
from toolglot.protocols.base import get
from toolglot.simulator import serve
from toolglot.simulator.serving import Server
from toolglot.store import SqliteStore

ADDRESS = "https://generativelanguage.googleapis.com/v1beta/files/secret"
IDS = ("files/secret", "file-secret", "cachedContents/secret", "vs_secret")
MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "vertex_claude": "claude-opus-5",
    "openai": "gpt-4.1",
    "openai_chat": "gpt-4.1",
    "openai_responses": "gpt-5.5",
    "gemini": "gemini-2.5-pro",
    "mistral": "mistral-large-latest",
    "deepseek": "deepseek-chat",
    "kimi": "kimi-k2.5",
    "ollama": "llama3.2-vision",
    "cohere": "command-a-03-2025",
    "bedrock": "anthropic.claude-sonnet-4-5-20250929-v1:0",
    "xai": "grok-4",
    "vllm": "m",
}
REFERENCES = ("file_id", "fileUri", "cachedContent", "vector_store_ids")
"""Fields in which a provider looks up an object of its account."""


def named(protocol: str, model: str, value: str) -> tuple[str, dict[str, Any]] | None:
    """A request of a client that names an object in one of the ways that its protocol has."""
    is_file = not value.startswith("http")
    words = {"type": "text", "text": "What is this?"}
    part: dict[str, Any]
    if protocol == "anthropic":
        source = {"type": "file", "file_id": value} if is_file else {"type": "url", "url": value}
        content = [words, {"type": "document", "source": source}]
        return "/v1/messages", {"model": model, "max_tokens": 50, "messages": [{"role": "user", "content": content}]}
    if protocol == "openai":
        part = {"type": "file", "file": {"file_id": value}}
        if not is_file:
            part = {"type": "image_url", "image_url": {"url": value}}
        return "/v1/chat/completions", {"model": model, "messages": [{"role": "user", "content": [words, part]}]}
    if protocol == "openai_responses":
        part = {"type": "input_file", "file_id": value} if is_file else {"type": "input_file", "file_url": value}
        parts = [{"type": "input_text", "text": "What is this?"}, part]
        return "/v1/responses", {"model": model, "input": [{"role": "user", "content": parts}]}
    if protocol == "gemini":
        data = {"fileData": {"fileUri": value, "mimeType": "application/pdf"}}
        body = {"contents": [{"role": "user", "parts": [{"text": "What is this?"}, data]}]}
        return f"/v1beta/models/{model}:generateContent", body
    if protocol == "cohere":
        part = {"type": "image_url", "image_url": {"url": value}}
        return "/v2/chat", {"model": model, "messages": [{"role": "user", "content": [words, part]}]}
    return None


CLIENTS = ("anthropic", "openai", "openai_responses", "gemini", "cohere")


class Keys(NamedTuple):
    served: Served
    owner: str
    other: str
    simulated: Server

    @property
    def sent(self) -> list[Any]:
        """The requests that reached a provider."""
        return list(self.simulated.requests)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keys]:
    file = tmp_path_factory.mktemp("objects") / "store.db"
    (a, owner), (b, other) = (new_key(name, now=time.time()) for name in "ab")

    async def fill() -> None:
        store = SqliteStore(file)
        for key in (a, b):
            await save(store, key)
        await OwnedObjects(store, seconds=10**6).claim(dict.fromkeys(IDS, OwnedObject(a.hashed)))
        await store.close()

    asyncio.run(fill())
    with (
        serve({"rules": [{"reply": {"text": "Hello."}}]}) as simulated,
        gateway(simulated, settings=f'store = "{file}"', models={"gpt-5.5": "openai_responses/gpt-5.5"}) as served,
    ):
        yield Keys(served, owner, other, simulated)


def references(value: Any) -> list[str]:
    """What a body that a provider got looks up in the account."""
    if isinstance(value, list):
        return [each for item in value for each in references(item)]
    if not isinstance(value, dict):
        return []
    own = [each for name in REFERENCES if name in value for each in ([value[name]] if value[name] else [])]
    return [json.dumps(own)] * bool(own) + [each for item in value.values() for each in references(item)]


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("value", [ADDRESS, ADDRESS.replace("files/", "files%2F") + "?alt=media", "file-secret"])
def test_no_pair_of_protocols_reaches_an_object_of_another_key(
    keys: Keys, client: str, upstream: str, value: str
) -> None:
    request = named(client, f"{upstream}/{MODELS[upstream]}", value)
    assert request is not None
    before = len(keys.sent)
    refused = ask(keys.served, *request, key=keys.other)
    reached = [each for sent in keys.sent[before:] for each in references(sent.body)]
    assert not reached, "the provider looked up what belongs to another key"
    before = len(keys.sent)
    ask(keys.served, *request, key=keys.owner)
    own = [each for sent in keys.sent[before:] for each in references(sent.body)]
    if own:
        assert refused.status == 404, refused.data
        assert b"No object found" in refused.data


@pytest.mark.parametrize(
    ("client", "upstream"),
    [
        *((client, "gemini") for client in CLIENTS if client != "cohere"),
        ("anthropic", "anthropic"),
        ("openai", "openai_chat"),
        ("openai_responses", "openai_responses"),
    ],
)
def test_a_key_may_name_its_own_objects_through_every_protocol_that_can(keys: Keys, client: str, upstream: str) -> None:
    value = ADDRESS if upstream == "gemini" else "file-secret"
    request = named(client, f"{upstream}/{MODELS[upstream]}", value)
    assert request is not None
    before = len(keys.sent)
    got = ask(keys.served, *request, key=keys.owner)
    assert references(keys.sent[before].body), got.data
    assert ask(keys.served, *request, key=keys.other).status == 404


@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/v1/messages", "/v1/responses/compact"])
def test_every_endpoint_that_sends_a_conversation_is_checked(keys: Keys, path: str) -> None:
    client = "openai_responses" if "responses" in path else "anthropic"
    request = named(client, f"gemini/{MODELS['gemini']}", ADDRESS)
    assert request is not None
    got = ask(keys.served, path, request[1], key=keys.other)
    assert got.status == 404, got.data


def test_other_stored_things_are_objects_too(keys: Keys) -> None:
    path, body = named("gemini", f"gemini/{MODELS['gemini']}", "https://example.com/a.pdf") or ("", {})
    assert ask(keys.served, path, {**body, "cachedContent": "cachedContents/secret"}, key=keys.other).status == 404
    search = {"type": "file_search", "vector_store_ids": ["vs_secret"]}
    model = f"openai_responses/{MODELS['openai_responses']}"
    got = ask(keys.served, "/v1/responses", {"model": model, "input": "?", "tools": [search]}, key=keys.other)
    assert got.status == 404


def test_a_repeated_key_hides_no_object(keys: Keys) -> None:
    part = b'{"type": "input_file", "file_id": "file-secret", "file_id": "file-x"}'
    body = b'{"model": "gpt-5.5", "input": [{"role": "user", "content": [%b]}]}' % part
    got = ask(keys.served, "/v1/responses", body, key=keys.other)
    assert got.status == 400
    assert b"more than one way" in got.data


@pytest.mark.parametrize(
    "value",
    [
        ADDRESS,
        "files/secret",
        "/v1beta/files/secret",
        "files%2Fsecret",
        "//files//secret",
        "files/secret?alt=media",
        "files/secret#x",
        "files/secret;x",
        "files/secret:download",
        f"{ADDRESS}:download?alt=media",
        "https://generativelanguage.googleapis.com/download/v1beta/files/secret:download?alt=media",
        "HTTPS://generativelanguage.googleapis.com/v1beta//files/secret",
    ],
)
def test_a_file_of_gemini_has_one_id_however_its_address_is_written(value: str) -> None:
    record = get("gemini")
    assert as_object_id(record.passed, value, record.service_prefix) == "files/secret"
