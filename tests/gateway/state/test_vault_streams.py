"""What the vault puts back does not depend on whether a reply was streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.gateway.http_client import ask, request_of
from support.gateway.served_gateway import Served, gateway
from toolglot import simulator

THINKING = {"thinking": "Hm."}
CALLS = {"calls": [{"name": "read_file", "arguments": {"path": name}} for name in ("a", "b")]}
MODELS = {
    "mistral": "mistral/mistral-large-latest",
    "kimi": "kimi/kimi-k2.5",
    "anthropic": "anthropic/claude-sonnet-4-5",
}


def follow(served: Served, model: str, *, stream: bool, is_continued: bool) -> list[str]:
    """Two turns with calls between them; the client's ids."""
    path, body = request_of("openai_responses", model, stream=stream)
    got = ask(served, path, body)
    assert got.status == 200, got.data
    response = got.body if not stream else next(e["response"] for e in got.events if e["type"] == "response.completed")
    ids = [item["call_id"] for item in response["output"] if item["type"] == "function_call"]
    results: list[Any] = [{"type": "function_call_output", "call_id": id, "output": "text"} for id in ids]
    more: dict[str, Any] = {"input": results, "previous_response_id": response["id"]}
    if not is_continued:
        more = {"input": [{"role": "user", "content": body["input"]}, *response["output"], *results]}
    got = ask(served, path, {**body, "stream": False, **more})
    assert got.status == 200, got.data
    return ids


@pytest.mark.parametrize("provider", MODELS)
@pytest.mark.parametrize("reply", [CALLS, {**THINKING, **CALLS}], ids=["calls", "thinking and calls"])
@pytest.mark.parametrize("is_continued", [False, True], ids=["whole history", "previous_response_id"])
def test_a_streamed_turn_is_put_back_like_a_whole_one(provider: str, reply: dict[str, Any], is_continued: bool) -> None:
    found = []
    for stream in (False, True):
        with simulator.serve({"rules": [{"reply": reply}]}) as simulated, gateway(simulated) as served:
            ids = follow(served, MODELS[provider], stream=stream, is_continued=is_continued)
            vault = served.app._services.vault  # type: ignore[union-attr]
            sent = json.dumps(simulated.requests[-1].body)
            is_renamed = not any(id in sent for id in ids)
            found.append((vault.hits, vault.misses, is_renamed))
    whole, streamed = found
    assert whole == streamed
    if provider == "mistral":
        assert whole == (1, 0, True), "its own ids of nine characters, which its prompt cache knows"
