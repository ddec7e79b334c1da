"""The sessions that clients name become keys of prompt caches: hashed, reported, and never in place of the client's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from support.gateway.http_client import Got, ask, request_of
from support.gateway.served_gateway import Served, gateway
from toolglot import profiles, simulator
from toolglot.conversation import Conversation, Options, Text, Turn
from toolglot.gateway.routing.cache_keys import SESSION_HEADERS, cache_key, session_of
from toolglot.simulator.serving import Server

SESSION = "0d5f5ae5-6bf6-4d2f-8f0e-0f3d8f3a7c11"
CLAUDE_CODE = json.dumps({"device_id": "d", "account_uuid": "a", "session_id": SESSION})
USER: dict[str, Any] = {"metadata": {"user_id": CLAUDE_CODE}}
GPT, RESPONSES, GROK, MISTRAL = "openai_chat/gpt-4.1", "openai_responses/gpt-5.5", "xai/grok-4", "mistral/mistral-large"
TWO_KEYS = 'client_keys = ["env:FIRST", "env:SECOND"]'
KEYS = {"FIRST": "first-key-0123456789abcdef", "SECOND": "second-key-0123456789abcdef"}


@pytest.fixture
def simulated() -> Iterator[Server]:
    with simulator.serve({"rules": [{"reply": {"text": "Hello"}}]}) as server:
        yield server


@pytest.fixture
def served(simulated: Server) -> Iterator[Served]:
    with gateway(simulated) as running:
        yield running


def send(served: Served, protocol: str, model: str, *, key: str = "k", **more: Any) -> Got:
    headers: Mapping[str, str] = more.pop("headers", {})
    path, body = request_of(protocol, model, **more)
    got = ask(served, path, body, key=key, headers=headers)
    assert got.status == 200, got.data
    return got


@pytest.mark.parametrize("model", [GPT, RESPONSES, MISTRAL])
def test_the_session_of_claude_code_becomes_the_cache_key(served: Served, simulated: Server, model: str) -> None:
    keys = []
    for words in ("Hello", "Go on"):
        send(served, "anthropic", model, words=words, **USER)
        sent = simulated.requests[-1].body
        keys.append(sent["prompt_cache_key"])
        assert SESSION not in json.dumps(sent["prompt_cache_key"])
    assert keys[0] == keys[1]
    assert len(keys[0]) <= 64
    other = json.dumps({"session_id": "another"})
    send(served, "anthropic", model, metadata={"user_id": other})
    assert simulated.requests[-1].body["prompt_cache_key"] != keys[0]


def test_it_is_reported_as_housekeeping(served: Served) -> None:
    got = send(served, "anthropic", GPT, **USER)
    report = ask(served, f"/toolglot/requests/{got.headers['x-toolglot-request']}", key="k").body["report"]
    [entry] = [entry for entry in report if "openai-cache-key-field" in entry["reason"]]
    assert (entry["gravity"], entry["path"]) == ("housekeeping", "$.prompt_cache_key")


@pytest.mark.parametrize("name", SESSION_HEADERS)
def test_session_headers_become_the_cache_key(served: Served, simulated: Server, name: str) -> None:
    send(served, "anthropic", GPT, headers={name: "ses_1"})
    first = simulated.requests[-1].body["prompt_cache_key"]
    send(served, "anthropic", GPT, headers={name: "ses_2"})
    assert simulated.requests[-1].body["prompt_cache_key"] not in (first, "ses_2")


def test_the_affinity_header_of_the_target_is_sent(served: Served, simulated: Server) -> None:
    send(served, "anthropic", GROK, **USER)
    first = simulated.requests[-1].headers["x-grok-conv-id"]
    assert SESSION not in first
    send(served, "openai_responses", GROK, prompt_cache_key="codex-session")
    assert simulated.requests[-1].headers["x-grok-conv-id"] not in (first, "codex-session")
    send(served, "openai", GROK)
    assert "x-grok-conv-id" not in simulated.requests[-1].headers


def test_what_the_client_set_stays(served: Served, simulated: Server) -> None:
    send(served, "openai_responses", GPT, prompt_cache_key="mine", headers={"x-session-affinity": "other"})
    assert simulated.requests[-1].body["prompt_cache_key"] == "mine"


def test_another_provider_gets_a_hash_of_what_the_client_set(simulated: Server) -> None:
    """Two clients may call their conversations alike."""
    with gateway(simulated, settings=TWO_KEYS, environ=KEYS) as served:
        for key in KEYS.values():
            for _ in range(2):
                send(served, "openai_responses", MISTRAL, key=key, prompt_cache_key="mine" * 30_000)
    keys = [request.body["prompt_cache_key"] for request in simulated.requests]
    assert keys[0] == keys[1] != keys[2] == keys[3]
    assert all(len(key) <= 64 and "mine" not in key for key in keys)


@pytest.mark.parametrize(("protocol", "model"), [("openai", GPT), ("openai_responses", RESPONSES)])
def test_a_key_that_is_too_long_is_hashed_also_for_the_own_client(
    served: Served, simulated: Server, protocol: str, model: str
) -> None:
    long = "session-0d5f5ae5-6bf6-4d2f-8f0e-0f3d8f3a7c11-agent-0d5f5ae5-6bf6-4d2f-8f0e"
    for key in (long, long, f"{long}2", "s" * 64):
        send(served, protocol, model, prompt_cache_key=key)
    sent = [request.body["prompt_cache_key"] for request in simulated.requests]
    assert sent[0] == sent[1] != sent[2]
    assert [len(key) for key in sent] == [32, 32, 32, 64]
    entries = served.records[0].sent.entries
    assert [entry.gravity for entry in entries if "cache-key-length" in entry.reason] == ["housekeeping"]


@pytest.mark.parametrize(("protocol", "model"), [("openai", GPT), ("openai_responses", RESPONSES)])
def test_a_client_of_the_provider_itself_gets_no_key(
    served: Served, simulated: Server, protocol: str, model: str
) -> None:
    send(served, protocol, model, headers={"x-session-affinity": "ses_1"})
    assert "prompt_cache_key" not in simulated.requests[-1].body


def test_a_body_of_the_same_protocol_is_not_changed(served: Served, simulated: Server) -> None:
    send(served, "openai", MISTRAL, headers={"x-session-affinity": "ses_1"})
    assert "prompt_cache_key" not in simulated.requests[-1].body


def test_without_a_session_there_is_no_key(served: Served, simulated: Server) -> None:
    send(served, "anthropic", GPT)
    assert "prompt_cache_key" not in simulated.requests[-1].body


def test_a_setting_switches_it_off(simulated: Server) -> None:
    with gateway(simulated, settings="cache_keys = false") as served:
        send(served, "anthropic", GPT, **USER)
        send(served, "anthropic", GROK, **USER)
    assert "prompt_cache_key" not in simulated.requests[0].body
    assert "x-grok-conv-id" not in simulated.requests[1].headers


def test_each_client_key_has_keys_of_its_own(simulated: Server) -> None:
    with gateway(simulated, settings=TWO_KEYS, environ=KEYS) as served:
        for key in KEYS.values():
            send(served, "anthropic", GPT, key=key, **USER)
    first, second = [request.body["prompt_cache_key"] for request in simulated.requests]
    assert first != second


def test_the_hash_depends_on_the_client_and_the_secret_of_the_gateway() -> None:
    key = cache_key(SESSION, "client", "secret")
    assert key == cache_key(SESSION, "client", "secret")
    assert len({key, cache_key(SESSION, "other", "secret"), cache_key(SESSION, "client", "other")}) == 3


def conversation(user: str | None, words: str = "Hi") -> Conversation:
    return Conversation(turns=(Turn("user", (Text(words),)),), options=Options(user=user))


@pytest.mark.parametrize(
    ("user", "session"),
    [
        (CLAUDE_CODE, SESSION),
        (f"user_0a1b_account_b2c3_session_{SESSION}", SESSION),
        ("person-7", "person-7\0Hi"),
        ('{"session_id": 7}', '{"session_id": 7}\0Hi'),
        ("{not JSON", "{not JSON\0Hi"),
        ("", ""),
        (None, ""),
        ("x" * 10_000, ""),
    ],
)
def test_the_session_in_a_user_id(user: str | None, session: str) -> None:
    assert session_of({}, conversation(user), profiles.get("anthropic")) == session


def test_the_user_of_a_chat_client_is_not_a_session() -> None:
    assert session_of({}, conversation("person-7"), profiles.get("openai")) == ""


BALANCED = '{ to = ["openai_chat/gpt-4.1", "openai_responses/gpt-5.5", "mistral/mistral-large"], weights = [1, 1, 1] }'


def test_balanced_upstreams_keep_a_session_also_when_its_first_message_changes(simulated: Server) -> None:
    """A compaction replaces the first message."""
    with gateway(simulated, models={"even": BALANCED}) as served:
        taken: dict[int, set[str]] = {}
        for number in range(12):
            user: dict[str, Any] = {"metadata": {"user_id": json.dumps({"session_id": f"session {number}"})}}
            for words in ("Hello", f"A summary {number}"):
                send(served, "anthropic", "even", words=words, **user)
                taken.setdefault(number, set()).add(served.records[-1].route.upstream)
    assert all(len(upstreams) == 1 for upstreams in taken.values())
    assert len(set.union(*taken.values())) == 3


def test_a_session_comes_back_after_a_failover(simulated: Server) -> None:
    with gateway(simulated, models={"even": BALANCED}) as served:
        upstreams = []
        for number in range(3):
            if number == 1:
                simulated.fault(503)
            send(served, "anthropic", "even", **USER)
            upstreams.append(served.records[-1].route.upstream)
    assert upstreams[0] == upstreams[2] != upstreams[1]
