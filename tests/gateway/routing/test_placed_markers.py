"""The gateway places cache markers for clients that have none, reports what they cost, and can be told not to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.gateway.http_client import ask
from support.gateway.served_gateway import Served, gateway
from toolglot import profiles, simulator
from toolglot.simulator.serving import Server
from toolglot.upstream.cache_prices import cost_of_markers

CLAUDE, BEDROCK = "anthropic/claude-opus-5", "bedrock/anthropic.claude-opus-5-v1:0"
LONG = "You are a careful assistant who reads files. " * 300
MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": LONG},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "What is new?"},
]


@pytest.fixture
def simulated() -> Iterator[Server]:
    with simulator.serve({"rules": [{"reply": {"text": "Hello"}}]}) as server:
        yield server


def reported(served: Served, model: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The report of a request of Chat Completions."""
    got = ask(served, "/v1/chat/completions", {"model": model, "messages": messages})
    assert got.status == 200, got.body
    entries: list[dict[str, Any]] = ask(served, f"/toolglot/requests/{got.headers['x-toolglot-request']}").body[
        "report"
    ]
    return entries


def about_caches(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["reason"] for entry in entries if "cache marker" in entry["reason"]]


@pytest.mark.parametrize("model", [CLAUDE, BEDROCK])
def test_markers_are_placed_and_their_cost_is_reported(simulated: Server, model: str) -> None:
    with gateway(simulated) as served:
        assert about_caches(reported(served, model, MESSAGES[:2])) == []
        assert "cache" not in json.dumps(simulated.requests[-1].body)
        placed, cost = about_caches(reported(served, model, MESSAGES))
    assert placed.startswith(
        "cache markers at the end of the system prompt, the messages of the request before, the mes"
    )
    assert cost.startswith("the cost of the cache markers: ")
    assert model != CLAUDE or "cost $6.25 when they are written to the cache, and $0.5 each time" in cost
    assert json.dumps(simulated.requests[-1].body).count("ephemeral" if model == CLAUDE else "cachePoint") == 3


def test_the_policy_turns_it_off(simulated: Server) -> None:
    with gateway(simulated, upstreams='[policy]\ncache_markers = "carry"') as served:
        assert about_caches(reported(served, CLAUDE, MESSAGES)) == []
    assert "cache_control" not in json.dumps(simulated.requests[-1].body)


def test_an_unknown_price_is_said_to_be_unknown() -> None:
    entry = cost_of_markers(None, profiles.get("anthropic", "claude-new"))
    assert entry.reason == "the cost of the cache markers: the price of claude-new is not known"
    assert entry.gravity == "housekeeping"
