"""A Gemini upstream that answers with a JSON array although the gateway asks it for events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import pytest

from support.gateway.http_client import ask, request_of
from support.gateway.served_gateway import Served, gateway
from support.hostile.hostile_upstream import Hostile, hostile, once, whole

CHUNKS: Final = [
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hel"}]}, "index": 0}], "modelVersion": "g"},
    {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "lo"}]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5},
        "modelVersion": "g",
    },
]


@pytest.fixture(scope="module")
def provider() -> Iterator[Hostile]:
    with hostile({"passed": once(whole(json.dumps(CHUNKS, indent=1).encode()))}) as running:
        yield running


@pytest.fixture(scope="module")
def served(provider: Hostile) -> Iterator[Served]:
    upstream = f'[upstreams.g]\nprovider = "gemini"\nurl = "{provider.url}"\nkey_env = "SOME_KEY"'
    with gateway(None, upstreams=upstream, environ={"SOME_KEY": "k"}) as running:
        yield running


def test_a_client_that_requested_events_gets_events(served: Served, provider: Hostile) -> None:
    path, body = request_of("gemini", "g/gemini-2.5-flash", stream=True)
    got = ask(served, path, body)
    assert b"alt=sse" in provider.heads[-1]
    assert got.headers["content-type"].startswith("text/event-stream")
    assert [json.loads(line[6:]) for line in got.data.splitlines() if line.startswith(b"data: ")] == CHUNKS


def test_a_client_that_requested_an_array_gets_an_array(served: Served) -> None:
    path, body = request_of("gemini", "g/gemini-2.5-flash", stream=True)
    got = ask(served, path.replace("?alt=sse", ""), body)
    assert got.headers["content-type"] == "application/json"
    assert got.body == CHUNKS
