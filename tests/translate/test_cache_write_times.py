"""For how long a prompt was written to a cache: Anthropic and Bedrock say it, and it has its own price.

The replies are written by hand after the providers' documentation: `cache_creation` of Anthropic, `cacheDetails` of
Bedrock, which lists the longer time first.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from support.protocols.streams.bedrock import aws
from support.translate.cached_replies import PROTOCOLS, WHOLE, anthropic_stream, read_counts, usage_in
from toolglot import StreamTranslator, convert_reply
from toolglot.conversation import Usage
from toolglot.protocols.base import codec
from toolglot.upstream.prices import cost

Fields = dict[str, Any]
HOUR, FIVE, READ, FRESH = 200, 100, 600, 100
ANTHROPIC: Fields = {
    "input_tokens": FRESH,
    "cache_creation_input_tokens": HOUR + FIVE,
    "cache_read_input_tokens": READ,
    "cache_creation": {"ephemeral_5m_input_tokens": FIVE, "ephemeral_1h_input_tokens": HOUR},
    "output_tokens": 50,
}
BEDROCK: Fields = {
    "inputTokens": FRESH,
    "outputTokens": 50,
    "totalTokens": 1050,
    "cacheReadInputTokens": READ,
    "cacheWriteInputTokens": HOUR + FIVE,
    "cacheDetails": [{"inputTokens": HOUR, "ttl": "1h"}, {"inputTokens": FIVE, "ttl": "5m"}],
}
USAGES = {"anthropic": ANTHROPIC, "bedrock": BEDROCK}
STREAMS = {
    "anthropic": anthropic_stream({**ANTHROPIC, "output_tokens": 1}, {"output_tokens": 50}),
    "bedrock": aws(
        ("messageStart", {"role": "assistant"}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Hi"}}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": "end_turn"}),
        ("metadata", {"usage": BEDROCK, "metrics": {"latencyMs": 1}}),
    ),
}


def details(client: str, usage: Fields) -> object:
    """What the client reads of the times."""
    return usage.get("cache_creation" if client == "anthropic" else "cacheDetails")


@pytest.mark.parametrize("source", USAGES)
@pytest.mark.parametrize("client", PROTOCOLS)
def test_the_times_reach_every_client_that_has_a_field_for_them(source: str, client: str) -> None:
    whole = convert_reply({**WHOLE[source], "usage": USAGES[source]}, source=source, target=client)
    translator = StreamTranslator(source=source, target=client)
    streamed = translator.feed(STREAMS[source]) + translator.finish()
    for report in (whole.report, translator.report):
        assert not [entry for entry in report.entries if "1h" in entry.reason and entry.gravity != "housekeeping"]
    for text in (json.dumps(whole.body), streamed.decode("utf-8", "replace")):
        usage = usage_in(client, text)
        counts = read_counts(client, usage)
        assert counts.get("written", 300) == 300
        assert counts.get("fresh", FRESH) == FRESH
        expected = USAGES.get(client, {})
        assert details(client, usage) == details(client, expected)


@pytest.mark.parametrize("source", USAGES)
def test_the_cost_has_each_time_at_its_price(source: str) -> None:
    usage = codec(source).reply.decode({**WHOLE[source], "usage": USAGES[source]}).usage
    assert isinstance(usage, Usage)
    assert (usage.input_tokens, usage.cache_write_tokens, usage.cache_write_1h_tokens) == (1000, 300, HOUR)
    dollars = FRESH * Decimal(5) + READ * Decimal("0.5") + FIVE * Decimal("6.25") + HOUR * 10 + 50 * 25
    assert cost("claude-opus-5", usage) == dollars / 1_000_000


@pytest.mark.parametrize("source", USAGES)
def test_a_reply_to_its_own_client_stays_as_it_came(source: str) -> None:
    body = {**WHOLE[source], "usage": USAGES[source]}
    reply = codec(source).reply
    assert reply.encode(reply.decode(body)) == body


@pytest.mark.parametrize("count", [-5, "many", None, True, 10**9, 1.5])
def test_times_that_cannot_be_true_are_not_counted(count: object) -> None:
    creation = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": count}
    body = {**WHOLE["anthropic"], "usage": {**ANTHROPIC, "cache_creation": creation}}
    usage = codec("anthropic").reply.decode(body).usage
    assert usage is not None
    assert usage.cache_write_1h_tokens == (300 if count == 10**9 else None)
    listed = [{"inputTokens": count, "ttl": "1h"}, "5m", {"ttl": 5}]
    usage = codec("bedrock").reply.decode({**WHOLE["bedrock"], "usage": {**BEDROCK, "cacheDetails": listed}}).usage
    assert usage is not None
    assert usage.cache_write_1h_tokens == (300 if count == 10**9 else None)
