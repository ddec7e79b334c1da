"""Usage of real providers with cached tokens is read as they wrote it, and reaches every client consistently.

`recordings/cached_usage.json` has the token counts of recorded replies, one for each host and sort: whole ones, and
those of a stream's events in order. They are put into replies of their protocol here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.translate.cached_replies import PROTOCOLS, meaning, stream_with, usage_in, whole_with
from toolglot import StreamTranslator, convert_reply
from toolglot.conversation import Usage
from toolglot.upstream.prices import cost

Fields = dict[str, Any]
RECORDED: list[Fields] = json.loads((Path(__file__).parents[1] / "recordings" / "cached_usage.json").read_bytes())
IDS = [f"{each['provider']}-{'stream' if each['stream'] else 'whole'}-{number}" for number, each in enumerate(RECORDED)]


def merged(recorded: Fields) -> Fields:
    """The last value of every count of a stream."""
    last: Fields = {}
    for usage in recorded["usage"]:
        last |= {name: value for name, value in usage.items() if value is not None}
    return last


def reply_in(recorded: Fields, client: str) -> tuple[Usage | None, Fields, list[str]]:
    """The canonical usage, what the client reads, and the reasons of the report."""
    protocol, usages = recorded["protocol"], recorded["usage"]
    if recorded["stream"]:
        translator = StreamTranslator(source=protocol, target=client)
        data = translator.feed(stream_with(protocol, usages[0], usages[-1])) + translator.finish()
        reasons = [entry.reason for entry in translator.report.entries]
        return translator.reply.usage, usage_in(client, data.decode("utf-8", "replace")), reasons
    out = convert_reply(whole_with(protocol, usages[-1]), source=protocol, target=client)
    return out.reply.usage, usage_in(client, json.dumps(out.body)), [entry.reason for entry in out.report.entries]


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("recorded", RECORDED, ids=IDS)
def test_recorded_usage_means_the_same_to_every_client(recorded: Fields, client: str) -> None:
    protocol = recorded["protocol"]
    expected = meaning(protocol, merged(recorded))
    assert expected.read or expected.written, "it was chosen for its cached tokens"
    usage, seen, reasons = reply_in(recorded, client)
    if client == protocol:
        assert seen == merged(recorded), "as the provider wrote it"
        return
    assert usage is not None
    counted = (usage.input_tokens, usage.cache_read_tokens or 0, usage.cache_write_tokens or 0, usage.output_tokens)
    assert counted == expected[:4]
    assert (usage.cache_write_1h_tokens or 0) == expected.hour
    got = meaning(client, seen)
    assert (got.input, got.output) == (expected.input, expected.output)
    assert got.read == (0 if client == "ollama" else expected.read)
    if client in ("anthropic", "bedrock", "openai_chat", "openai_responses"):
        assert got.written == expected.written
    if client in ("anthropic", "bedrock"):
        assert got.hour == expected.hour
    counts = [value for value in seen.values() if type(value) is int]
    assert all(count >= 0 for count in counts)
    total = seen.get("total_tokens", seen.get("totalTokens", seen.get("totalTokenCount")))
    if client in ("openai_chat", "openai_responses", "bedrock", "gemini"):
        assert total == expected.input + expected.output
    wrote = merged(recorded)
    is_beside = protocol == "openai_chat" and expected.input > wrote["prompt_tokens"]
    assert any("beside the input" in reason for reason in reasons) == is_beside


@pytest.mark.parametrize("recorded", RECORDED, ids=IDS)
def test_the_cost_of_recorded_usage_counts_every_token_once(recorded: Fields) -> None:
    other = "gemini" if recorded["protocol"] == "openai_chat" else "openai_chat"
    usage, _, _ = reply_in(recorded, other)
    assert usage is not None
    means = meaning(recorded["protocol"], merged(recorded))
    fresh = means.input - means.read - means.written
    five = means.written - means.hour
    dollars = fresh * 5 + means.read * 0.5 + five * 6.25 + means.hour * 10 + means.output * 25
    assert float(cost("claude-opus-5", usage) or 0) == pytest.approx(dollars / 1e6)


def test_some_host_counts_cached_tokens_beside_the_input() -> None:
    """Otherwise the rule for that is not tested."""
    counts = [(each["stream"], merged(each)) for each in RECORDED if each["provider"] == "azure"]
    beside = [
        stream for stream, wrote in counts if wrote["prompt_tokens_details"]["cached_tokens"] > wrote["prompt_tokens"]
    ]
    assert set(beside) == {False, True}
