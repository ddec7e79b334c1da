"""Cached tokens are counted rightly in every pair of protocols, whole and streamed."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from support.translate.cached_replies import (
    FRESH,
    INPUT,
    OUTPUT,
    PROTOCOLS,
    READ,
    SPLIT_ANTHROPIC,
    STREAMS,
    WHOLE,
    WRITES,
    WRITTEN,
    anthropic_stream,
    chat_stream,
    expected_counts,
    read_counts,
    usage_in,
)
from toolglot import StreamTranslator, convert_reply
from toolglot.conversation import Usage
from toolglot.protocols.base import codec
from toolglot.upstream.prices import Price, Prices


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("source", PROTOCOLS)
def test_whole_replies_count_cached_tokens_in_every_pair(source: str, client: str) -> None:
    out = convert_reply(WHOLE[source], source=source, target=client)
    assert read_counts(client, usage_in(client, json.dumps(out.body))) == expected_counts(source, client)


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("source", PROTOCOLS)
def test_streams_count_cached_tokens_in_every_pair(source: str, client: str) -> None:
    translator = StreamTranslator(source=source, target=client)
    data = translator.feed(STREAMS[source]) + translator.finish()
    text = data.decode("utf-8", "replace")
    assert read_counts(client, usage_in(client, text)) == expected_counts(source, client)


@pytest.mark.parametrize("field", ["prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens"])
@pytest.mark.parametrize("client", PROTOCOLS)
def test_cached_tokens_beside_the_details_are_read(client: str, field: str) -> None:
    """DeepSeek, Moonshot and Mistral have them there."""
    usage = {"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT, field: READ}
    out = convert_reply({**WHOLE["openai_chat"], "usage": usage}, source="openai_chat", target=client)
    translator = StreamTranslator(source="openai_chat", target=client)
    data = translator.feed(chat_stream(usage)) + translator.finish()
    if client == "openai_chat":
        assert out.body["usage"] == usage
        assert (
            codec(client).reply.encode(codec(client).reply.decode(WHOLE[client] | {"usage": usage}))["usage"] == usage
        )
        return
    expected = expected_counts("gemini", client)
    assert read_counts(client, usage_in(client, json.dumps(out.body))) == expected
    assert read_counts(client, usage_in(client, data.decode("utf-8", "replace"))) == expected


def test_the_last_counts_of_an_anthropic_stream_are_valid() -> None:
    """A later event replaces counts of the first, also by 0, and does not add to them."""
    stream = anthropic_stream(
        {**SPLIT_ANTHROPIC, "output_tokens": 1}, {**SPLIT_ANTHROPIC, "cache_creation_input_tokens": 0}
    )
    translator = StreamTranslator(source="anthropic", target="openai_chat")
    usage = usage_in("openai_chat", (translator.feed(stream) + translator.finish()).decode())
    assert usage["prompt_tokens"] == FRESH + READ
    assert usage["prompt_tokens_details"] == {"cached_tokens": READ, "cache_write_tokens": 0}


@pytest.mark.parametrize("source", PROTOCOLS)
def test_cost_has_cached_tokens_at_their_own_price(source: str) -> None:
    price = Price(Decimal(10), Decimal(50), Decimal(1), Decimal("12.5"))
    usage = codec(source).reply.decode(WHOLE[source]).usage
    assert isinstance(usage, Usage)
    read = 0 if source == "ollama" else READ
    written = WRITTEN if source in WRITES else 0
    dollars = Decimal((INPUT - read - written) * 10 + read + OUTPUT * 50) + written * Decimal("12.5")
    assert Prices({"m": price}).cost("m", usage) == dollars / 1_000_000
