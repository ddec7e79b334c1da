"""Traffic of every kind through a gateway: enough that each of its metrics has something to say."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from support.gateway.http_client import Got, ask, request_of
from support.gateway.served_gateway import Served

TOOL: dict[str, Any] = {"name": "read_file", "input_schema": {"type": "object", "properties": {}}}
SCRIPT = {
    "rules": [
        {"when": {"contains": "overloaded"}, "fault": 529},
        {"when": {"contains": "broken"}, "fault": "reset,after=2", "reply": {"text": "A longer text, " * 50}},
        {"when": {"contains": "think"}, "reply": {"thinking": "Let me see.", "text": "It says hello."}},
        {"reply": {"text": "Hello."}},
    ]
}


def say(served: Served, words: str, *, protocol: str = "openai", model: str = "", **more: Any) -> Got:
    path, body = request_of(protocol, model or "mistral/mistral-large-latest", words, **more)
    return ask(served, path, body)


def make_traffic(served: Served) -> None:
    """Requests of three clients to four upstreams: answered, repaired, refused, failed, broken off and sent twice."""
    for protocol in ("anthropic", "openai", "gemini"):
        for stream in (False, True):
            assert say(served, "Hello", protocol=protocol, stream=stream).status == 200
    assert say(served, "Be overloaded").status == 503
    assert say(served, "Be broken", stream=True).status == 200
    assert ask(served, "/v1/chat/completions", b"{").status == 400
    _keep_thinking(served)
    _repair(served)
    _be_refused_a_signature(served)


def lose_cache(served: Served) -> None:
    """A conversation that was cached, and whose system prompt is another one in its second request."""
    for system in ("Be brief. " * 2000, "Be long. " * 2000):
        marked = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
        messages = [{"role": "user", "content": "Hello"}]
        got = say(served, "", protocol="anthropic", model="claude-opus-5", system=marked, messages=messages)
        assert got.status == 200, got.data


def _keep_thinking(served: Served) -> None:
    """A turn that the vault keeps something of, and the next one, which needs it."""
    model = "anthropic/claude-sonnet-4-5"
    thinking: dict[str, Any] = {"reasoning_effort": "high", "max_tokens": 4000}
    answer = say(served, "Please think", model=model, **thinking).body["choices"][0]["message"]["content"]
    turns = [("user", "Please think"), ("assistant", answer), ("user", "Go on")]
    messages = [{"role": role, "content": text} for role, text in turns]
    assert say(served, "", model=model, messages=messages, **thinking).status == 200


def _repair(served: Served) -> None:
    """A name that OpenAI does not take, by a rule; and a result without a call, which breaks none of a provider's."""
    tools = [{**TOOL, "name": "files/read"}]
    result = {"type": "tool_result", "tool_use_id": "toolu_nobody", "content": "hello"}
    messages = [{"role": "user", "content": [result, {"type": "text", "text": "Hello"}]}]
    got = say(served, "", protocol="anthropic", model="openai/gpt-5.5", tools=tools, messages=messages)
    assert got.status == 200, got.data


def _be_refused_a_signature(served: Served) -> None:
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": "Zm9yZ2Vk"},
        {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {}},
    ]
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "hello"}
    messages = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": content},
        {"role": "user", "content": [result]},
    ]
    thinking = {"type": "enabled", "budget_tokens": 2000}
    more = {"messages": messages, "tools": [TOOL], "thinking": thinking, "max_tokens": 4000}
    got = say(served, "", protocol="anthropic", model="claude-sonnet-4-5", **more)
    assert got.status == 200, got.data
    assert served.records[-1].calls.retry_reason


def samples(served: Served, key: str | None = "a-client-key-of-some-length") -> list[Sample]:
    """What `/metrics` says, read as Prometheus reads it."""
    got = ask(served, "/metrics", key=key)
    assert got.status == 200, got.data
    return samples_of(got.data)


def samples_of(text: bytes) -> list[Sample]:
    return [sample for family in text_string_to_metric_families(text.decode()) for sample in family.samples]


def number(found: list[Sample], name: str, **labels: str) -> float:
    """The sum of all that has these labels."""
    return sum(s.value for s in found if s.name == name and labels.items() <= s.labels.items())
