"""Every client reads the token counts that the simulated provider has: input, cached reads and writes, output.

All clients that the gateway serves, on upstreams of all protocols, with a prompt cache and without, whole and streamed;
the counts are compared with the simulator's own of the same request, and so are those of the gateway's record and its
cost. Others lost them on the way from Responses to Messages (BerriAI/litellm#36091), in streams of Chat Completions
(BerriAI/litellm#41067) and in the cost (BerriAI/litellm#11364, BerriAI/litellm#14849).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.gateway.http_client import PROTOCOLS, ask, request_of
from support.gateway.served_gateway import Served, gateway
from support.translate.cached_replies import meaning, usage_in
from toolglot import simulator
from toolglot.simulator.serving import Server

LONG = "A long instruction that stays the same from one request to the next. " * 500
TARGETS = {
    "anthropic": "anthropic/claude-opus-5",
    "vertex_claude": "vertex_claude/claude-opus-5",
    "bedrock": "bedrock/anthropic.claude-opus-5-v1:0",
    "openrouter": "openrouter/anthropic/claude-opus-5",
    "openai_chat": "openai_chat/gpt-4.1",
    "openai_responses": "openai_responses/gpt-5.5",
    "gemini": "gemini/gemini-2.5-pro",
    "deepseek": "deepseek/deepseek-chat",
    "kimi": "kimi/kimi-k2.6",
    "xai": "xai/grok-4.7",
    "mistral": "mistral/mistral-large-latest",
    "cohere": "cohere/command-a-03-2025",
    "ollama": "ollama/qwen3",
}
PRICES = {
    "anthropic": (5, 0.5, 6.25, 25),
    "vertex_claude": (5, 0.5, 6.25, 25),
    "openai_chat": (2, 0.5, 2, 8),
    "openai_responses": (5, 0.5, 5, 30),
    "bedrock": (5, 0.5, 6.25, 25),
    "gemini": (1.25, 0.125, 1.25, 10),
    "deepseek": (0.27, 0.07, 0.27, 1.1),
    "xai": (2, 0.5, 2, 6),
    "mistral": (0.68, 0.068, 0.68, 2.09),
}
"""Dollars for a million tokens of input, from the cache, into it, and of output; those of the others are not known."""
AUTOMATIC = {"openai_chat", "openai_responses", "gemini", "deepseek", "kimi", "xai", "mistral"}
MARK = {"cache_control": {"type": "ephemeral"}}
OPENROUTER = '[upstreams.openrouter]\nurl = "{url}"\nkey_env = "SIMULATED_KEY"'


@pytest.fixture(scope="module")
def simulated() -> Iterator[Server]:
    with simulator.serve() as server:
        yield server


@pytest.fixture(scope="module")
def served(simulated: Server) -> Iterator[Served]:
    with gateway(simulated, upstreams=OPENROUTER.format(url=simulated.url("openrouter"))) as running:
        yield running


def send(served: Served, client: str, model: str, words: str, *, stream: bool) -> str:
    more: dict[str, Any] = {"stream": True} if stream else {}
    if client == "openai" and stream:
        more["stream_options"] = {"include_usage": True}
    if client == "anthropic":
        more["system"] = [{"type": "text", "text": words, **MARK}]
    got = ask(served, *request_of(client, model, words, **more))
    assert got.status == 200, got.data
    return got.data.decode()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("client", PROTOCOLS)
def test_the_client_reads_what_the_provider_counted(
    served: Served, simulated: Server, client: str, target: str, stream: bool
) -> None:
    words = f"{client} {target} {stream}. {LONG}"
    send(served, client, TARGETS[target], words, stream=stream)
    text = send(served, client, TARGETS[target], words, stream=stream)
    counted = simulated.requests[-1].usage
    assert counted is not None
    read, written = counted.cache_read_tokens or 0, counted.cache_write_tokens or 0
    assert read > 1000 or target not in AUTOMATIC
    assert read > 1000 or (client, target) != ("anthropic", "anthropic")
    protocol = "openai_chat" if client == "openai" else client
    got = meaning(protocol, usage_in(protocol, text))
    assert (got.input, got.output) == (counted.input_tokens, counted.output_tokens)
    assert got.read == (0 if client == "ollama" else read)
    assert got.written == (0 if client in ("ollama", "gemini") else written)
    recorded = served.records[-1].reply.usage
    assert recorded is not None
    cost = served.records[-1].reply.cost
    assert (cost is None) == (target not in PRICES)
    if cost is not None:
        plain, cached, into, out = PRICES[target]
        fresh = (counted.input_tokens or 0) - read - written
        dollars = fresh * plain + read * cached + written * into + (counted.output_tokens or 0) * out
        assert cost == pytest.approx(dollars * 1000, abs=1)
    names = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    assert [recorded.get(name, 0) for name in names] == [counted.input_tokens, read, written, counted.output_tokens]
