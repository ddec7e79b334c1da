"""The simulated prompt caches follow the documented rules of each provider: the group `cache` of its profile."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolglot import convert, profiles
from toolglot.conversation import Usage
from toolglot.profiles.rules import CacheRules
from toolglot.simulator import Simulator
from toolglot.simulator.prompt_cache import CacheScope, CacheUse, PromptBlock, PromptCaches
from toolglot.simulator.responder import Responder, SimulatedRequest
from toolglot.simulator.scripts.script_reading import script_from
from toolglot.simulator.simulated_upstreams import upstreams

Body = dict[str, Any]
CLAUDE, NOVA, CHAT, GEMINI = "claude-opus-5", "amazon.nova-pro-v1:0", "gpt-5.5", "gemini-2.5-pro"
BEDROCK, ROUTED = "anthropic.claude-opus-5-v1:0", "anthropic/claude-opus-5"
LONG = "A long instruction that stays the same. " * 600
"""6,000 tokens."""
MARK = {"cache_control": {"type": "ephemeral"}}
PATHS = {
    "anthropic": "/anthropic/v1/messages",
    "openai": "/openai/v1/chat/completions",
    "responses": "/openai/v1/responses",
    "openrouter": "/openrouter/v1/chat/completions",
    "xai": "/xai/v1/chat/completions",
    "deepseek": "/deepseek/chat/completions",
    "kimi": "/kimi/v1/chat/completions",
    "bedrock": f"/bedrock/model/{BEDROCK}/converse",
    "nova": f"/bedrock/model/{NOVA}/converse",
    "gemini": f"/gemini/v1beta/models/{GEMINI}:generateContent",
}


class Provider:
    """A simulated provider with a clock of its own."""

    def __init__(self, name: str, script: Body | None = None) -> None:
        self.name = name
        self.time = 1000.0
        self.data = b""
        self._responder = Responder(script_from(script or {}), lambda: self.time)

    @property
    def reply(self) -> Body:
        """The last reply."""
        found: Body = json.loads(self.data)
        return found

    def send(self, body: Body, *, key: str = "sk-one-0123456789", **headers: str) -> Usage:
        sent = {"authorization": f"Bearer {key}", "anthropic-version": "2023-06-01"}
        sent |= {"x-api-key": key, "x-goog-api-key": key} | {
            name.replace("_", "-"): text for name, text in headers.items()
        }
        request = SimulatedRequest(
            method="POST", path=PATHS[self.name], headers=sent, query={}, body=json.dumps(body).encode()
        )
        outcome = self._responder.answer(request)
        assert outcome.status == 200, outcome.error
        assert outcome.usage is not None
        self.data = b"".join(outcome.pieces)
        return outcome.usage


def claude(*messages: str, system_mark: bool = True, last_mark: bool = True, **fields: Any) -> Body:
    """A request with a marker on the system prompt and one on the last message."""
    turns: list[Body] = []
    for index, text in enumerate(messages):
        block: Body = {"type": "text", "text": text}
        if last_mark and index == len(messages) - 1:
            block |= MARK
        turns.append({"role": "assistant" if index % 2 else "user", "content": [block]})
    system = [{"type": "text", "text": LONG, **(MARK if system_mark else {})}]
    return {"model": CLAUDE, "max_tokens": 100, "system": system, "messages": turns, **fields}


def chat(*messages: str, **fields: Any) -> Body:
    turns: list[Body] = [{"role": "system", "content": LONG}]
    turns += [{"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(messages)]
    return {"model": CHAT, "messages": turns, **fields}


def tokens(text: str) -> int:
    return len(text) // 4


# --- markers ----------------------------------------------------------------------------------------


def test_a_marker_writes_and_the_same_prompt_is_read() -> None:
    provider = Provider("anthropic")
    first = provider.send(claude("Hi"))
    assert (first.cache_read_tokens, first.input_tokens) != (None, None)
    assert first.cache_read_tokens == 0
    assert first.cache_write_tokens is not None
    assert first.cache_write_tokens > tokens(LONG)
    second = provider.send(claude("Hi"))
    assert second.cache_read_tokens == first.cache_write_tokens
    assert second.cache_write_tokens == 0
    usage = provider.reply["usage"]
    assert usage["cache_read_input_tokens"] == second.cache_read_tokens
    assert usage["input_tokens"] == (second.input_tokens or 0) - (second.cache_read_tokens or 0)


def test_a_longer_conversation_reads_the_earlier_one_and_writes_the_rest() -> None:
    provider = Provider("anthropic")
    first = provider.send(claude("Hi"))
    second = provider.send(claude("Hi", "Hello", "More " * 400))
    assert second.cache_read_tokens == first.cache_write_tokens
    assert second.cache_write_tokens == pytest.approx(500, abs=40)


def test_without_markers_claude_caches_nothing() -> None:
    provider = Provider("anthropic")
    for _ in range(2):
        usage = provider.send(claude("Hi", system_mark=False, last_mark=False))
        assert (usage.cache_read_tokens, usage.cache_write_tokens) == (0, 0)


def test_a_marker_of_the_request_is_one_on_its_last_block() -> None:
    provider = Provider("anthropic")
    body = claude("Hi", system_mark=False, last_mark=False, **MARK)
    first = provider.send(body)
    assert (first.cache_write_tokens or 0) > tokens(LONG)
    assert provider.send(body).cache_read_tokens == first.cache_write_tokens


@pytest.mark.parametrize(
    ("model", "size", "is_cached"),
    [
        (CLAUDE, 1000, False),
        (CLAUDE, 1100, True),
        ("claude-opus-4-5", 4000, False),
        ("claude-opus-4-5", 4200, True),
        ("claude-3-5-haiku-latest", 2000, False),
        ("claude-3-5-haiku-latest", 2100, True),
    ],
)
def test_anthropic_min_tokens(model: str, size: int, is_cached: bool) -> None:
    minimum = profiles.get("anthropic", model).cache.min_tokens
    assert (size > minimum) is is_cached
    provider = Provider("anthropic")
    body = {"model": model, "max_tokens": 10, "system": [{"type": "text", "text": "word" * size, **MARK}]}
    body["messages"] = [{"role": "user", "content": "Hi"}]
    provider.send(body)
    assert bool(provider.send(body).cache_read_tokens) is is_cached


@pytest.mark.parametrize(("ttl", "seconds"), [(None, 300), ("5m", 300), ("1h", 3600)])
def test_anthropic_time_to_live(ttl: str | None, seconds: int) -> None:
    provider = Provider("anthropic")
    marker = {"type": "ephemeral"} | ({"ttl": ttl} if ttl is not None else {})
    body = claude("Hi", system_mark=False, last_mark=False)
    body["messages"][0]["content"][0]["cache_control"] = marker
    provider.send(body)
    provider.time += seconds - 1
    assert provider.send(body).cache_read_tokens
    provider.time += seconds - 1  # the use before started it anew
    assert provider.send(body).cache_read_tokens
    provider.time += seconds
    assert provider.send(body).cache_read_tokens == 0


@pytest.mark.parametrize(("between", "is_read"), [(18, True), (19, False)])
def test_a_marker_looks_back_twenty_blocks(between: int, is_read: bool) -> None:
    assert profiles.get("anthropic", CLAUDE).cache.lookback == 20
    provider = Provider("anthropic")
    first = provider.send(claude("Hi", system_mark=False))
    body = claude("Hi", "x", "y", system_mark=False)
    added = [{"type": "text", "text": f"block {index}"} for index in range(between)]
    body["messages"] = [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": added},
        {"role": "user", "content": [{"type": "text", "text": "y", **MARK}]},
    ]
    assert provider.send(body).cache_read_tokens == (first.cache_write_tokens if is_read else 0)


def test_other_tools_cost_everything_and_another_choice_only_the_messages() -> None:
    provider = Provider("anthropic")
    tool = {"name": "look", "description": "Look", "input_schema": {"type": "object", "properties": {}}}
    body = claude("Hi " * 2000, tools=[tool])
    first = provider.send(body)
    chosen = provider.send({**body, "tool_choice": {"type": "any"}})
    assert tokens(LONG) <= (chosen.cache_read_tokens or 0) < (first.cache_write_tokens or 0) - 1000
    assert provider.send({**body, "tools": [{**tool, "description": "See"}]}).cache_read_tokens == 0


def test_deferred_tools_are_no_part_of_the_prefix() -> None:
    provider = Provider("anthropic")
    tool = {"name": "look", "description": "Look", "input_schema": {"type": "object", "properties": {}}}
    first = provider.send(claude("Hi", tools=[tool]))
    later = {**tool, "name": "find", "defer_loading": True}
    assert provider.send(claude("Hi", tools=[tool, later])).cache_read_tokens == first.cache_write_tokens


def test_another_key_or_model_reads_nothing() -> None:
    provider = Provider("anthropic")
    provider.send(claude("Hi"))
    assert provider.send(claude("Hi"), key="sk-two-0123456789").cache_read_tokens == 0
    assert provider.send({**claude("Hi"), "model": "claude-sonnet-5"}).cache_read_tokens == 0
    assert provider.send(claude("Hi")).cache_read_tokens


def test_a_change_of_an_earlier_message_costs_what_follows_it() -> None:
    provider = Provider("anthropic")
    provider.send(claude("Hi", "Hello", "Go on"))
    changed = provider.send(claude("Hi!", "Hello", "Go on"))
    assert changed.cache_read_tokens == pytest.approx(tokens(LONG), abs=20)


def converse(*items: Body, **fields: Any) -> Body:
    return {"system": [{"text": LONG}], "messages": [{"role": "user", "content": [*items]}], **fields}


POINT = {"cachePoint": {"type": "default"}}


def test_a_cache_point_of_bedrock_marks_the_block_before_it() -> None:
    provider = Provider("bedrock")
    first = provider.send(converse({"text": "Hi"}, POINT))
    assert (first.cache_write_tokens or 0) > tokens(LONG)
    second = provider.send(converse({"text": "Hi"}, {"text": "More"}, POINT))
    assert second.cache_read_tokens == first.cache_write_tokens
    usage = provider.reply["usage"]
    assert usage["cacheReadInputTokens"] == second.cache_read_tokens
    assert usage["cacheWriteInputTokens"] == second.cache_write_tokens
    assert usage["inputTokens"] + usage["cacheReadInputTokens"] + usage["cacheWriteInputTokens"] == second.input_tokens


def test_nova_caches_system_and_messages() -> None:
    provider = Provider("nova")
    first = provider.send(converse({"text": "Hi"}, POINT))
    assert provider.send(converse({"text": "Hi"}, POINT)).cache_read_tokens == first.cache_write_tokens
    blocks = [PromptBlock(section="tools", text=LONG, marker=""), PromptBlock(section="system", text="Hi")]
    caches, rules = PromptCaches(), profiles.get("bedrock", NOVA).cache
    assert caches.use(blocks, rules, CacheScope("key", NOVA), 0.0) == CacheUse(0, 0)  # not at tools


def test_openrouter_carries_markers_to_claude() -> None:
    provider = Provider("openrouter")
    body = chat("Hi") | {"model": ROUTED}
    provider.send(body)
    assert provider.send(body).cache_read_tokens == 0
    body["messages"][0]["content"] = [{"type": "text", "text": LONG, **MARK}]
    first = provider.send(body)
    assert provider.send(body).cache_read_tokens == first.cache_write_tokens
    assert provider.reply["usage"]["prompt_tokens_details"]["cached_tokens"] == first.cache_write_tokens
    assert provider.reply["usage"]["prompt_tokens"] > tokens(LONG)


# --- automatic caches -------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "step"), [("openai", 128), ("deepseek", 64)])
def test_automatic_caches_grow_in_steps(name: str, step: int) -> None:
    model = {"openai": CHAT, "deepseek": "deepseek-chat"}[name]
    assert profiles.get(name, model).cache.step_tokens == step
    provider = Provider(name)
    assert provider.send(chat("Hi") | {"model": model}).cache_read_tokens == 0
    usage = provider.send(chat("Hi", "Hello", "More") | {"model": model})
    read = usage.cache_read_tokens or 0
    assert read % step == 0
    assert tokens(LONG) - step < read < tokens(LONG) + step
    assert usage.cache_write_tokens is None
    assert provider.reply["usage"]["prompt_tokens_details"]["cached_tokens"] == usage.cache_read_tokens


@pytest.mark.parametrize(
    ("name", "model", "field"),
    [("deepseek", "deepseek-chat", "prompt_cache_hit_tokens"), ("kimi", "kimi-k2.5", "cached_tokens")],
)
def test_deepseek_and_moonshot_count_in_fields_of_their_own(name: str, model: str, field: str) -> None:
    provider, body = Provider(name), chat("Hi") | {"model": model}
    provider.send(body)
    usage = provider.send(body)
    assert usage.cache_read_tokens
    assert provider.reply["usage"][field] == usage.cache_read_tokens
    again = provider.send({**body, "stream": True, "stream_options": {"include_usage": True}})
    assert again.cache_read_tokens == usage.cache_read_tokens
    assert f'"{field}":{usage.cache_read_tokens}'.encode() in provider.data


@pytest.mark.parametrize(("size", "is_cached"), [(900, False), (1100, True)])
def test_openai_min_tokens(size: int, is_cached: bool) -> None:
    assert profiles.get("openai", CHAT).cache.min_tokens == 1024
    provider = Provider("openai")
    body = {"model": CHAT, "messages": [{"role": "user", "content": "word" * size}]}
    provider.send(body)
    assert bool(provider.send(body).cache_read_tokens) is is_cached


def test_openai_time_to_live() -> None:
    provider = Provider("openai")
    provider.send(chat("Hi"))
    provider.time += 299
    assert provider.send(chat("Hi")).cache_read_tokens
    provider.time += 300
    assert provider.send(chat("Hi")).cache_read_tokens == 0


@pytest.mark.parametrize("name", ["openai", "responses"])
def test_a_cache_key_separates_caches(name: str) -> None:
    provider = Provider(name)
    fields = {"model": CHAT, "instructions": LONG, "input": "Hi", "store": False}
    body = chat("Hi") if name == "openai" else fields
    provider.send({**body, "prompt_cache_key": "one"})
    assert provider.send({**body, "prompt_cache_key": "two"}).cache_read_tokens == 0
    assert provider.send(body).cache_read_tokens == 0
    assert provider.send({**body, "prompt_cache_key": "one"}).cache_read_tokens


def test_an_affinity_header_separates_caches() -> None:
    provider, body = Provider("xai"), chat("Hi") | {"model": "grok-4"}
    provider.send(body, x_grok_conv_id="one")
    assert provider.send(body, x_grok_conv_id="two").cache_read_tokens == 0
    assert provider.send(body, x_grok_conv_id="one").cache_read_tokens


def test_gemini_caches_by_itself() -> None:
    provider = Provider("gemini")
    contents: list[Body] = [{"role": "user", "parts": [{"text": "Hi"}]}]
    body = {"systemInstruction": {"parts": [{"text": LONG}]}, "contents": contents}
    assert provider.send(body).cache_read_tokens == 0
    assert "cachedContentTokenCount" not in provider.reply["usageMetadata"]
    more = [*contents, {"role": "model", "parts": [{"text": "Yes"}]}, {"role": "user", "parts": [{"text": "Go"}]}]
    usage = provider.send({**body, "contents": more})
    assert (usage.cache_read_tokens or 0) > tokens(LONG)
    assert provider.reply["usageMetadata"]["cachedContentTokenCount"] == usage.cache_read_tokens
    assert provider.reply["usageMetadata"]["promptTokenCount"] == usage.input_tokens


# --- for all ----------------------------------------------------------------------------------------


def test_a_stream_has_the_same_counts() -> None:
    provider = Provider("anthropic")
    first = provider.send(claude("Hi"))
    second = provider.send(claude("Hi", stream=True))
    assert second.cache_read_tokens == first.cache_write_tokens
    assert f'"cache_read_input_tokens":{second.cache_read_tokens}'.encode() in provider.data


def test_the_usage_of_a_script_is_as_it_says() -> None:
    usage = {"input_tokens": 10, "output_tokens": 2, "cache_read_tokens": 7}
    provider = Provider("anthropic", {"rules": [{"reply": {"text": "Hi", "usage": usage}}]})
    for _ in range(2):
        found = provider.send(claude("Hi"))
        assert (found.input_tokens, found.cache_read_tokens, found.cache_write_tokens) == (10, 7, None)


def test_memory_is_bounded_and_the_oldest_entries_go_first() -> None:
    caches, rules = PromptCaches(max_entries=10), CacheRules(style="automatic")
    for index in range(50):
        caches.use([PromptBlock(section="messages", text=f"prompt {index}")], rules, CacheScope("k", "m"), 0.0)
        assert len(caches) <= 10
    scope = CacheScope("k", "m")
    assert caches.use([PromptBlock(section="messages", text="prompt 49")], rules, scope, 0.0).read > 0
    assert caches.use([PromptBlock(section="messages", text="prompt 3")], rules, scope, 0.0).read == 0


async def test_a_script_change_keeps_the_caches_and_a_reset_drops_them() -> None:
    simulator = Simulator()
    upstream = upstreams(simulator)["anthropic"]

    async def read() -> int | None:
        request = convert(claude("Hi"), source="anthropic", target="anthropic", model=CLAUDE)
        response = await upstream.send("/v1/messages", request.data, headers={"anthropic-version": "2023-06-01"})
        await response.close()
        usage = simulator.requests[-1].usage
        assert usage is not None
        return usage.cache_read_tokens

    assert await read() == 0
    simulator.use({"rules": [{"reply": {"text": "Hello"}}]})
    assert await read()
    simulator.reset()
    assert await read() == 0
