"""Clients apart: whatever one of them asks for, it gets nothing of another; limits in the shapes that clients read."""

from __future__ import annotations

import asyncio
import http.client
import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.gateway.http_client import PROTOCOLS, Got, ask, request_of
from support.gateway.served_gateway import Served, gateway
from support.hostile.hostile_upstream import GOOD, hostile, once, whole
from support.waiting import HANG_SECONDS, wait_until
from toolglot.gateway.accounting.client_keys import ClientKey, new_key, revoke, save, saved_keys
from toolglot.gateway.accounting.usage import Amounts, UsageRow, group_usage, read_usage
from toolglot.gateway.endpoints.table import known_paths
from toolglot.simulator import serve
from toolglot.simulator.serving import Server
from toolglot.store import SqliteStore

PRIVATE_TEXT = "The word is heliotrope."
"""The text of client A, which no other client may read."""
THINKING = {"rules": [{"reply": {"text": "I know a secret: heliotrope.", "thinking": "heliotrope, heliotrope"}}]}


SCRIPT = {"rules": [{"reply": {"text": "Hello."}}]}


def stored(file: Path, act: Any) -> Any:
    """What something gives that is done with a store, as another process would."""

    async def run() -> Any:
        store = SqliteStore(file)
        try:
            return await act(store)
        finally:
            await store.close()

    return asyncio.run(run())


def add(file: Path, name: str, **limits: Any) -> tuple[ClientKey, str]:
    key, secret = new_key(name, now=time.time(), **limits)
    stored(file, lambda store: save(store, key))
    return key, secret


def used(file: Path, requests: int) -> list[UsageRow]:
    """What was used, as soon as so many requests are written down."""
    rows: list[UsageRow] = []

    def is_written() -> bool:
        nonlocal rows
        rows = stored(file, read_usage)
        return sum(row.amounts.requests for row in rows) >= requests

    wait_until(is_written)
    return rows


# --- apart ------------------------------------------------------------------------------------------


def paths(response: str, item: str, request: str) -> list[tuple[str, str, Any]]:
    """Every address of the gateway with what A would ask there, and those that are passed on."""
    named = []
    for pattern, endpoint, _ in known_paths():
        if endpoint.action == "inspector_events":  # it has no end: tests/gateway/inspector/test_live_events.py
            continue
        text = pattern.replace("(?:beta|alpha)?", "beta").replace("(?:beta|alpha)", "beta")
        text = text.replace("(?:v1/)?", "v1/").replace("(?:models/)?", "models/").replace("(?:tuned)?", "")
        name = request if endpoint.action == "request" or endpoint.action.startswith("inspector") else response
        text = text.replace("targets/(?P<part>[^/]+)", "targets/mistral").replace("(?P<part>[^/]+)", "request")
        named.append(text.replace("(?P<model>.+)", "gemini-2.5-pro").replace("(?P<name>[^/]+)", name))
    named += [
        "/v1/files",
        "/v1/batches",
        f"/v1/files/{response}",
        "/v1/conversations",
        "/toolglot/usage",
        "/toolglot/keys",
    ]
    bodies: list[Any] = [
        None,
        {"model": "openai_responses/gpt-5.5", "input": "What is the word?", "previous_response_id": response},
        {"model": "openai_responses/gpt-5.5", "input": [{"type": "item_reference", "id": item}]},
        {"model": "mistral/mistral-large-latest", "input": "What is the word?", "previous_response_id": response},
        {"model": "anthropic/claude-sonnet-4-5", "messages": [{"role": "user", "content": "?"}], "max_tokens": 50},
        {"contents": [{"parts": [{"text": "?"}]}]},
    ]
    found = [("GET", path, None) for path in named] + [("DELETE", path, None) for path in named]
    return found + [("POST", path, body) for path in named for body in bodies]


def test_one_key_can_read_nothing_of_another_at_any_address(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    (_, a), (_, b) = add(file, "a"), add(file, "b")
    settings = f'store = "{file}"\n[inspector]\nkeep = "bodies"'
    with serve(THINKING) as simulated, gateway(simulated, settings=settings) as served:
        path, body = request_of("openai_responses", "openai_responses/gpt-5.5", PRIVATE_TEXT)
        first = ask(served, path, body, key=a)
        elsewhere = ask(served, *request_of("openai_responses", "mistral/mistral-large-latest", PRIVATE_TEXT), key=a)
        thought = ask(served, *request_of("openai", "anthropic/claude-sonnet-4-5", PRIVATE_TEXT), key=a)
        assert (first.status, elsewhere.status, thought.status) == (200, 200, 200)
        sent = len(simulated.requests)
        for got in (first, elsewhere):
            item = got.body["output"][-1]["id"]
            for method, where, payload in paths(got.body["id"], item, got.headers["x-toolglot-request"]):
                answer = ask(served, where, payload, method=method, key=b)
                assert PRIVATE_TEXT.encode() not in answer.data, (method, where)
                assert answer.status != 500, (method, where, answer.data)
        sent_bodies = json.dumps([request.body for request in simulated.requests[sent:]])
        assert PRIVATE_TEXT not in sent_bodies, "nothing of A goes to a provider for B"
        assert first.body["id"] not in sent_bodies, "nor what would call it up there"
        for got in (first, elsewhere):
            assert ask(served, f"/v1/responses/{got.body['id']}", key=a).status == 200
            assert ask(served, f"/toolglot/requests/{got.headers['x-toolglot-request']}", key=a).status == 200
            assert PRIVATE_TEXT in ask(served, f"/v1/responses/{got.body['id']}/input_items", key=a).data.decode()
        ids = {listed["id"] for listed in ask(served, "/toolglot/requests", key=b).body["requests"]}
        assert first.headers["x-toolglot-request"] not in ids


def test_the_vault_gives_nothing_to_another_key(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    (_, a), (_, b) = add(file, "a"), add(file, "b")
    with serve(THINKING) as simulated, gateway(simulated, settings=f'store = "{file}"') as served:
        path, body = request_of("openai", "anthropic/claude-sonnet-4-5", PRIVATE_TEXT, reasoning_effort="high")
        got = ask(served, path, body, key=a)
        assert got.status == 200
        again = {
            **body,
            "messages": [*body["messages"], got.body["choices"][0]["message"], {"role": "user", "content": "?"}],
        }
        for key, has_thinking in ((b, False), (a, True)):
            assert ask(served, path, again, key=key).status == 200
            assert ('"signature"' in json.dumps(simulated.requests[-1].body)) == has_thinking


def test_what_is_used_is_counted_for_its_own_key(tmp_path: Path, simulated: Server) -> None:
    file = tmp_path / "store.db"
    (one, a), (two, b) = add(file, "a"), add(file, "b")
    with gateway(simulated, settings=f'store = "{file}"') as served:
        for key, stream in ((a, True), (a, False), (b, False)):
            got = ask(served, *request_of("anthropic", "openai_chat/gpt-4.1", stream=stream), key=key)
            assert got.status == 200
        assert ask(served, *request_of("anthropic", "nobody/knows-this"), key=b).status == 404
    rows = used(file, 3)
    found = group_usage(rows, "key")
    assert {row.model for row in rows} == {"gpt-4.1"}
    assert (found[one.hashed].requests, found[two.hashed].requests) == (2, 1)
    assert found[one.hashed].input > found[two.hashed].input > 0
    assert found[two.hashed].cost == found[two.hashed].input * 2000 + found[two.hashed].output * 8000


def test_nothing_of_a_key_or_a_conversation_stands_in_the_rows_of_keys_and_usage(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    _, a = add(file, "a", tokens_total=10**6)
    with serve(THINKING) as simulated, gateway(simulated, settings=f'store = "{file}"') as served:
        assert ask(served, *request_of("anthropic", "mistral/mistral-large-latest", PRIVATE_TEXT), key=a).status == 200
    with closing(sqlite3.connect(file)) as looking:
        everything = repr(looking.execute("SELECT * FROM kept WHERE kind = 'keys'").fetchall())
        everything += repr(looking.execute("SELECT * FROM counted").fetchall())
    assert a[8:] not in everything
    assert "heliotrope" not in everything
    assert "'spent'" in everything


# --- limits -----------------------------------------------------------------------------------------


def error_of(protocol: str, got: Got) -> str:
    return json.dumps(got.body["error"] if protocol != "ollama" else got.body)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_refusal_has_the_shape_that_the_client_reads(tmp_path: Path, simulated: Server, protocol: str) -> None:
    file = tmp_path / "store.db"
    _, narrow = add(file, "narrow", models=("gpt-*",))
    _, slow = add(file, "slow", requests_per_minute=1)
    _, poor = add(file, "poor", tokens_per_day=1)
    _, broke = add(file, "broke", spend_per_month="0.0000001")
    with gateway(simulated, settings=f'store = "{file}"') as served:
        path, body = request_of(protocol, "mistral/mistral-large-latest")
        got = ask(served, path, body, key=narrow)
        assert got.status == 403
        assert "'narrow' may not use" in error_of(protocol, got)
        assert ask(served, path, body, key=slow).status == 200
        got = ask(served, path, body, key=slow)
        assert got.status == 429
        assert "1 requests per minute" in error_of(protocol, got)
        if protocol != "gemini":
            assert 0 < int(got.headers["retry-after"]) <= 66
        for key, words in ((poor, "of 1 tokens a day; it renews at"), (broke, "of $0.0000001 a month; it renews at")):
            assert ask(served, path, body, key=key).status == 200
            got = ask(served, path, body, key=key)
            assert got.status in (400, 402, 403, 429)
            assert words in error_of(protocol, got)


def test_counting_tokens_asks_for_the_model_and_uses_nothing_up(tmp_path: Path, simulated: Server) -> None:
    file = tmp_path / "store.db"
    _, key = add(file, "narrow", models=("anthropic/*",), requests_per_minute=1)
    with gateway(simulated, settings=f'store = "{file}"') as served:
        for model, status in (("mistral/mistral-large-latest", 403), *[("anthropic/claude-sonnet-4-5", 200)] * 3):
            _, body = request_of("anthropic", model)
            del body["max_tokens"]
            assert ask(served, "/v1/messages/count_tokens", body, key=key).status == status


def test_what_is_passed_on_counts_against_the_limits_of_a_key(tmp_path: Path, simulated: Server) -> None:
    file = tmp_path / "store.db"
    _, narrow = add(file, "narrow", models=("only/e",))
    _, hasty = add(file, "hasty", requests_per_minute=2)
    upstreams = f'[upstreams.only]\nprovider = "openai"\nurl = "{simulated.url("openai")}"\nkey_env = "SIMULATED_KEY"'
    with gateway(None, settings=f'store = "{file}"', upstreams=upstreams) as served:
        assert ask(served, "/v1/moderations", {"model": "f", "input": "a"}, key=narrow).status == 403
        assert ask(served, "/v1/moderations", {"input": "a"}, key=narrow).status == 403
        assert ask(served, "/v1/moderations", {"model": "e", "input": "a"}, key=narrow).status != 403
        for _ in range(2):
            assert ask(served, "/v1/moderations", {"model": "e", "input": "a"}, key=hasty).status not in (403, 429)
        assert ask(served, "/v1/moderations", {"model": "e", "input": "a"}, key=hasty).status == 429
    assert {(row.upstream, row.model) for row in used(file, 3)} == {("only", "e")}


def test_embeddings_are_counted_and_limited_by_key(tmp_path: Path, simulated: Server) -> None:
    file = tmp_path / "store.db"
    _, limited = add(file, "limited", tokens_per_day=20, models=("openai/text-embedding-*",))
    with gateway(simulated, settings=f'store = "{file}"') as served:
        body = {"model": "openai/text-embedding-3-small", "input": "a" * 80}
        got = ask(served, "/v1/embeddings", {**body, "model": "cohere/embed-v4.0"}, key=limited)
        assert got.status == 403
        assert ask(served, "/v1/embeddings", body, key=limited).status == 200
        got = ask(served, "/v1/embeddings", body, key=limited)
        assert "budget" in got.body["error"]["message"]
    (row,) = used(file, 1)
    assert (row.upstream, row.model, row.amounts.input) == ("openai", "text-embedding-3-small", 20)


def test_a_stream_that_its_client_leaves_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    _, key = add(file, "a", tokens_total=10**6)
    script = {"rules": [{"reply": {"text": "word " * 4000}}], "pace": 0.02}
    with serve(script) as slow, gateway(slow, settings=f'store = "{file}"') as served:
        path, body = request_of("anthropic", "anthropic/claude-sonnet-4-5", stream=True)
        _left(served, path, body, key)
        rows = used(file, 1)
    (row,) = rows
    assert row.amounts.failed == 1
    assert row.amounts.input > 0, "Anthropic tells the input first"


def _left(served: Served, path: str, body: Any, key: str) -> None:
    """Begin to read an answer, and go away."""
    parts = urlsplit(served.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=HANG_SECONDS)
    connection.request("POST", path, json.dumps(body), {"x-api-key": key})
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.read(300)
    connection.sock.close()
    answer.close()
    connection.close()


def test_a_key_that_is_made_or_revoked_counts_in_a_running_gateway(tmp_path: Path, simulated: Server) -> None:
    file = tmp_path / "store.db"
    with gateway(simulated, settings=f'store = "{file}"') as served:
        path, body = request_of("anthropic", "openai_chat/gpt-4.1")
        assert ask(served, path, body, key="any").status == 200
        _, secret = add(file, "a")
        wait_until(lambda: ask(served, path, body, key="any").status != 200)
        assert ask(served, path, body, key=secret).status == 200
        stored(file, lambda store: revoke(store, "a", time.time()))
        wait_until(lambda: ask(served, path, body, key=secret).status != 200)
        got = ask(served, path, body, key=secret)
        assert got.status == 401
        assert "'a' is revoked" in got.body["error"]["message"]
    assert [key.name for key in stored(file, saved_keys)] == ["a"]


# --- counts that cannot be true ----------------------------------------------------------------------


@pytest.mark.parametrize("count", [-(10**9), 10**30, 10**13])
def test_token_counts_that_cannot_be_true_refill_no_key_and_keep_nothing_from_being_stored(
    tmp_path: Path, count: int
) -> None:
    file = tmp_path / "store.db"
    impossible = {"prompt_tokens": count, "completion_tokens": count, "total_tokens": 2 * count}
    possible = {"prompt_tokens": 20, "completion_tokens": 20, "total_tokens": 40}
    ways = {
        name: once(whole(json.dumps(GOOD | {"usage": usage}).encode()))
        for name, usage in (("impossible", impossible), ("possible", possible))
    }
    _, secret = add(file, "a", tokens_total=45)
    with hostile(ways) as provider:
        upstream = f'[upstreams.h]\nprovider = "openai"\nurl = "{provider.url}"\nkey_env = "H"'
        with gateway(None, settings=f'store = "{file}"', upstreams=upstream, environ={"H": "h"}) as served:
            assert ask(served, *request_of("openai", "h/possible"), key=secret).status == 200
            assert ask(served, *request_of("openai", "h/impossible"), key=secret).status == 200
            refused = ask(served, *request_of("openai", "h/possible"), key=secret)
            assert refused.body["error"]["code"] == "insufficient_quota"
            rows = {row.model: row.amounts for row in used(file, 2)}
            (record,) = [each for each in served.records if each.route.model == "impossible"]
    assert (rows["possible"].input, rows["possible"].output) == (20, 20)
    assert 0 < rows["impossible"].input < 1000
    assert 0 < rows["impossible"].output < 1000
    assert any("ignored token counts" in entry.reason for entry in record.reply.entries)


# --- without a store --------------------------------------------------------------------------------


def test_without_a_store_nothing_is_kept_and_configured_keys_are_still_demanded(simulated: Server) -> None:
    settings = 'store = "off"\nclient_keys = ["env:CLIENT"]'
    with gateway(simulated, settings=settings, environ={"CLIENT": "key-of-some-client-123"}) as served:
        path, body = request_of("openai_responses", "mistral/mistral-large-latest")
        assert ask(served, path, body, key="wrong").status == 401
        got = ask(served, path, body, key="key-of-some-client-123")
        assert got.status == 200
        assert ask(served, f"/v1/responses/{got.body['id']}", key="key-of-some-client-123").status == 404


def test_without_a_store_limits_are_kept_in_memory(simulated: Server) -> None:
    keys = "".join(
        f'[keys.{name}]\nkey = "env:{name.upper()}"\n{limit}\n'
        for name, limit in (
            ("narrow", 'models = ["gpt-*"]'),
            ("slow", "requests_per_minute = 2"),
            ("poor", "tokens_total = 1"),
        )
    )
    environ = {name: f"key-of-client-{name.lower()}" for name in ("NARROW", "SLOW", "POOR")}
    with gateway(simulated, settings='store = "off"', upstreams=keys, environ=environ) as served:
        path, body = request_of("anthropic", "mistral/mistral-large-latest")
        assert ask(served, path, body, key="wrong").status == 401
        assert ask(served, path, body, key=environ["NARROW"]).status == 403
        assert [ask(served, path, body, key=environ["SLOW"]).status for _ in range(3)] == [200, 200, 429]
        assert [ask(served, path, body, key=environ["POOR"]).status for _ in range(3)] == [200, 402, 402]


def test_what_is_kept_is_kept_as_long_as_is_set(tmp_path: Path, simulated: Server) -> None:
    file = tmp_path / "store.db"
    settings = f'store = "{file}"\nretention_hours = 2\nusage_days = 3'
    with gateway(simulated, settings=settings) as served:
        begun = time.time()
        assert ask(served, *request_of("openai_responses", "mistral/mistral-large-latest")).status == 200
        used(file, 1)
        spent = time.time() - begun
    with closing(sqlite3.connect(file)) as looking:
        kept = looking.execute("SELECT DISTINCT until FROM kept WHERE kind = 'responses'").fetchall()
        counted = looking.execute("SELECT until FROM counted WHERE kind = 'usage'").fetchall()
    assert all(-60 < until - begun - 2 * 3600 < spent + 60 for (until,) in kept)
    assert all(-60 < until - begun - 3 * 86_400 < spent + 60 for (until,) in counted)
    assert kept
    assert counted


def test_a_sum_of_amounts_is_the_sum_of_each() -> None:
    assert Amounts(1, 2, cost=10**9) + Amounts(3, 4) == Amounts(4, 6, cost=10**9)
    assert Amounts(cost=1_500_000_000).dollars == 1.5
