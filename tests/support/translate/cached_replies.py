"""Replies with cached tokens in every protocol, and what their clients read of them.

Written by hand, after the providers' documentation: Anthropic and Bedrock count cached tokens beside the other input,
OpenAI, Gemini and Cohere inside of it, Ollama not at all.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from support.protocols.streams.bedrock import aws

Fields = dict[str, Any]
PROTOCOLS = ["anthropic", "openai_chat", "openai_responses", "gemini", "bedrock", "cohere", "ollama"]
INPUT, READ, WRITTEN, OUTPUT = 1000, 600, 300, 50
FRESH = INPUT - READ - WRITTEN
WRITES = {"anthropic", "openai_chat", "openai_responses", "bedrock"}
"""Protocols that count what was written to a cache."""
SPLIT_ANTHROPIC = {
    "input_tokens": FRESH,
    "cache_creation_input_tokens": WRITTEN,
    "cache_read_input_tokens": READ,
    "output_tokens": OUTPUT,
}
SPLIT_BEDROCK = {
    "inputTokens": FRESH,
    "outputTokens": OUTPUT,
    "totalTokens": INPUT + OUTPUT,
    "cacheReadInputTokens": READ,
    "cacheWriteInputTokens": WRITTEN,
}
CHAT = {
    "prompt_tokens": INPUT,
    "completion_tokens": OUTPUT,
    "total_tokens": INPUT + OUTPUT,
    "prompt_tokens_details": {"cached_tokens": READ, "cache_write_tokens": WRITTEN},
}
RESPONSES = {
    "input_tokens": INPUT,
    "input_tokens_details": {"cached_tokens": READ, "cache_write_tokens": WRITTEN},
    "output_tokens": OUTPUT,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": INPUT + OUTPUT,
}
GEMINI = {
    "promptTokenCount": INPUT,
    "candidatesTokenCount": OUTPUT,
    "totalTokenCount": INPUT + OUTPUT,
    "cachedContentTokenCount": READ,
}
COHERE = {
    "billed_units": {"input_tokens": INPUT, "output_tokens": OUTPUT},
    "tokens": {"input_tokens": INPUT, "output_tokens": OUTPUT},
    "cached_tokens": READ,
}
OLLAMA = {"prompt_eval_count": INPUT, "eval_count": OUTPUT}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
RESPONSE = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
OUTPUT_ITEM = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
}
CANDIDATE = {"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP", "index": 0}
CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
WHOLE: dict[str, Fields] = {
    "anthropic": {
        **MESSAGE,
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
        "usage": SPLIT_ANTHROPIC,
    },
    "openai_chat": {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
        "usage": CHAT,
    },
    "openai_responses": {**RESPONSE, "status": "completed", "output": [OUTPUT_ITEM], "usage": RESPONSES},
    "gemini": {"candidates": [CANDIDATE], "usageMetadata": GEMINI, "modelVersion": "m"},
    "bedrock": {
        "output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}},
        "stopReason": "end_turn",
        "usage": SPLIT_BEDROCK,
        "metrics": {"latencyMs": 1},
    },
    "cohere": {
        "id": "c",
        "finish_reason": "COMPLETE",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]},
        "usage": COHERE,
    },
    "ollama": {
        "model": "m",
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": "Hi"},
        "done": True,
        "done_reason": "stop",
        **OLLAMA,
    },
}


def sse(*events: Fields, named: bool = True) -> bytes:
    lines = []
    for event in events:
        head = f"event: {event['type']}\n" if named else ""
        lines.append(f"{head}data: {json.dumps(event)}\n\n")
    return "".join(lines).encode()


def anthropic_stream(first: Fields, last: Fields) -> bytes:
    return sse(
        {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None, "usage": first}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": last},
        {"type": "message_stop"},
    )


def chat_stream(usage: Fields) -> bytes:
    delta = {"index": 0, "delta": {"role": "assistant", "content": "Hi"}, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    chunks = ({**CHUNK, "choices": [delta]}, {**CHUNK, "choices": [end]}, {**CHUNK, "choices": [], "usage": usage})
    return sse(*chunks, named=False) + b"data: [DONE]\n\n"


def stream_with(protocol: str, first: Fields, last: Fields) -> bytes:
    """A stream with these token counts at its beginning, if its protocol has some there, and at its end."""
    if protocol == "anthropic":
        return anthropic_stream(first, last)
    if protocol == "openai_chat":
        return chat_stream(last)
    if protocol == "openai_responses":
        done = {**RESPONSE, "status": "completed", "output": [OUTPUT_ITEM], "usage": last}
        delta = {"item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": "Hi"}
        return sse(
            {"type": "response.created", "response": {**RESPONSE, "status": "in_progress", "output": []}},
            {"type": "response.output_item.added", "output_index": 0, "item": {**OUTPUT_ITEM, "content": []}},
            {"type": "response.output_text.delta", **delta},
            {"type": "response.output_item.done", "output_index": 0, "item": OUTPUT_ITEM},
            {"type": "response.completed", "response": done},
        )
    if protocol == "gemini":
        return sse({"candidates": [CANDIDATE], "usageMetadata": last, "modelVersion": "m"}, named=False)
    if protocol == "bedrock":
        return aws(
            ("messageStart", {"role": "assistant"}),
            ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Hi"}}),
            ("contentBlockStop", {"contentBlockIndex": 0}),
            ("messageStop", {"stopReason": "end_turn"}),
            ("metadata", {"usage": last, "metrics": {"latencyMs": 1}}),
        )
    if protocol == "cohere":
        return sse(
            {"type": "message-start", "id": "c", "delta": {"message": {"role": "assistant", "content": []}}},
            {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}},
            {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": "Hi"}}}},
            {"type": "content-end", "index": 0},
            {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": last}},
        )
    return (json.dumps({**WHOLE["ollama"], **last}) + "\n").encode()


def whole_with(protocol: str, usage: Fields) -> Fields:
    """A whole reply with these token counts."""
    return {**WHOLE[protocol], "usageMetadata" if protocol == "gemini" else "usage": usage}


STREAMS: dict[str, bytes] = {
    # the counts of the input come first, and only that of the output at the end
    "anthropic": stream_with("anthropic", {**SPLIT_ANTHROPIC, "output_tokens": 1}, {"output_tokens": OUTPUT}),
    "openai_chat": stream_with("openai_chat", {}, CHAT),
    "openai_responses": stream_with("openai_responses", {}, RESPONSES),
    "gemini": stream_with("gemini", {}, GEMINI),
    "bedrock": stream_with("bedrock", {}, SPLIT_BEDROCK),
    "cohere": stream_with("cohere", {}, COHERE),
    "ollama": stream_with("ollama", {}, OLLAMA),
}


def expected_counts(source: str, client: str) -> Fields:
    """What a client of one protocol must read of the reply of another."""
    read = 0 if source == "ollama" else READ
    written = WRITTEN if source in WRITES else 0
    if client in ("anthropic", "bedrock"):
        return {"fresh": INPUT - read - written, "read": read, "written": written, "output": OUTPUT}
    if client in ("openai_chat", "openai_responses"):
        return {"input": INPUT, "read": read, "written": written, "output": OUTPUT}
    if client in ("gemini", "cohere"):
        return {"input": INPUT, "read": read, "output": OUTPUT}
    return {"input": INPUT, "output": OUTPUT}


def read_counts(client: str, usage: Fields) -> Fields:
    """The counts in the words of a client's protocol."""
    if client == "anthropic":
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
        return dict(zip(("fresh", "read", "written", "output"), (usage.get(name, 0) for name in names), strict=True))
    if client == "bedrock":
        assert usage["totalTokens"] == INPUT + OUTPUT
        names = ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens", "outputTokens")
        return dict(zip(("fresh", "read", "written", "output"), (usage.get(name, 0) for name in names), strict=True))
    if client in ("openai_chat", "openai_responses"):
        is_chat = client == "openai_chat"
        assert usage["total_tokens"] == INPUT + OUTPUT
        details = usage.get("prompt_tokens_details" if is_chat else "input_tokens_details", {})
        return {
            "input": usage["prompt_tokens" if is_chat else "input_tokens"],
            "read": details.get("cached_tokens", 0),
            "written": details.get("cache_write_tokens", 0),
            "output": usage["completion_tokens" if is_chat else "output_tokens"],
        }
    if client == "gemini":
        assert usage["totalTokenCount"] == INPUT + OUTPUT
        read = usage.get("cachedContentTokenCount", 0)
        return {"input": usage["promptTokenCount"], "read": read, "output": usage["candidatesTokenCount"]}
    if client == "cohere":
        tokens = usage["tokens"]
        return {
            "input": tokens["input_tokens"],
            "read": usage.get("cached_tokens", 0),
            "output": tokens["output_tokens"],
        }
    return {"input": usage["prompt_eval_count"], "output": usage["eval_count"]}


def usage_in(client: str, text: str) -> Fields:
    """The last value of every count of a reply or a stream, as its clients add them up."""
    found: Fields = {}
    if client == "ollama":
        for line in text.splitlines():
            found |= json.loads(line)
        return found
    key = '"usageMetadata":' if client == "gemini" else '"usage":'
    for part in text.split(key)[1:]:
        value, _ = json.JSONDecoder().raw_decode(part.lstrip())
        found |= value or {}
    return found


class Counted(NamedTuple):
    """What the counts of a reply mean."""

    input: int
    """All of it."""
    read: int
    written: int
    output: int
    hour: int = 0


def meaning(protocol: str, usage: Fields) -> Counted:
    """What counts of a protocol mean."""

    def of(name: str) -> int:
        count: int | None = usage.get(name)
        return count or 0

    if protocol == "anthropic":
        read, written = of("cache_read_input_tokens"), of("cache_creation_input_tokens")
        hour = (usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens") or 0
        return Counted(of("input_tokens") + read + written, read, written, of("output_tokens"), hour)
    if protocol == "bedrock":
        read, written = of("cacheReadInputTokens"), of("cacheWriteInputTokens")
        hour = sum(each["inputTokens"] for each in usage.get("cacheDetails") or [] if each["ttl"] == "1h")
        return Counted(of("inputTokens") + read + written, read, written, of("outputTokens"), hour)
    if protocol == "gemini":
        output = of("candidatesTokenCount") + of("thoughtsTokenCount")
        return Counted(of("promptTokenCount") + of("toolUsePromptTokenCount"), of("cachedContentTokenCount"), 0, output)
    if protocol == "cohere":
        tokens = usage["tokens"]
        return Counted(int(tokens["input_tokens"]), int(of("cached_tokens")), 0, int(tokens["output_tokens"]))
    if protocol == "ollama":
        return Counted(of("prompt_eval_count"), 0, 0, of("eval_count"))
    names = ("prompt_tokens", "completion_tokens") if protocol == "openai_chat" else ("input_tokens", "output_tokens")
    details = usage.get("prompt_tokens_details" if protocol == "openai_chat" else "input_tokens_details") or {}
    read = details.get("cached_tokens") or of("prompt_cache_hit_tokens") or of("cached_tokens")
    written = details.get("cache_write_tokens") or 0
    whole = of(names[0])
    if read + written > whole:  # counted beside it: Grok on Azure
        whole += read + written
    return Counted(whole, read, written, of(names[1]))
