"""Replies of our own in every protocol, one for each class of what a reply can say; and the streams of the same."""

from __future__ import annotations

from typing import Any, Final

from toolglot.conversation.reply_events import of_reply
from toolglot.protocols.base import codec

Fields = dict[str, Any]

PROTOCOLS: Final = ("anthropic", "openai_chat", "openai_responses", "gemini", "bedrock", "cohere", "ollama")
PNG: Final = "iVBORw0KGgo="


def anthropic(*blocks: Fields, stop: str = "end_turn", usage: Fields | None = None, **more: Any) -> Fields:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": list(blocks),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage or {"input_tokens": 7, "output_tokens": 5},
        **more,
    }


def chat(message: Fields, stop: str = "stop", usage: Fields | None = None, **choice: Any) -> Fields:
    counts = usage or {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    answer = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": stop, **choice}
    common = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-x"}
    return {**common, "choices": [answer], "usage": counts}


def responses(*items: Fields, status: str = "completed", usage: Fields | None = None, **more: Any) -> Fields:
    counts = usage or {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": "gpt-x",
        "output": list(items),
        "tool_choice": "auto",
        "tools": [],
        "parallel_tool_calls": True,
        "usage": counts,
        **more,
    }


def gemini(*parts: Fields, stop: str = "STOP", usage: Fields | None = None, **candidate: Any) -> Fields:
    counts = usage or {"promptTokenCount": 7, "candidatesTokenCount": 5, "totalTokenCount": 12}
    answer = {"content": {"role": "model", "parts": list(parts)}, "finishReason": stop, "index": 0, **candidate}
    return {"candidates": [answer], "usageMetadata": counts, "modelVersion": "gemini-x", "responseId": "r1"}


def bedrock(*blocks: Fields, stop: str = "end_turn", usage: Fields | None = None, **more: Any) -> Fields:
    counts = usage or {"inputTokens": 7, "outputTokens": 5, "totalTokens": 12}
    message = {"role": "assistant", "content": list(blocks)}
    return {"output": {"message": message}, "stopReason": stop, "usage": counts, "metrics": {"latencyMs": 1}, **more}


def cohere(message: Fields, stop: str = "COMPLETE", usage: Fields | None = None, **more: Any) -> Fields:
    counts = usage or {"tokens": {"input_tokens": 7, "output_tokens": 5}}
    return {"id": "c1", "finish_reason": stop, "message": {"role": "assistant", **message}, "usage": counts, **more}


def ollama(message: Fields, stop: str = "stop", **more: Any) -> Fields:
    return {
        "model": "qwen",
        "created_at": "2026-01-01T00:00:00Z",
        "done": True,
        "done_reason": stop,
        "message": {"role": "assistant", "content": "", **message},
        "prompt_eval_count": 7,
        "eval_count": 5,
        **more,
    }


def message_item(*parts: Fields, **more: Any) -> Fields:
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": list(parts),
        **more,
    }


def output_text(text: str, annotations: list[Fields] | None = None) -> Fields:
    return {"type": "output_text", "text": text, "annotations": annotations or []}


def function(id: str, name: str, arguments: Any) -> Fields:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def item(call_id: str, name: str, arguments: str) -> Fields:
    common = {"type": "function_call", "id": f"fc_{call_id}", "call_id": f"call_{call_id}", "status": "completed"}
    return {**common, "name": name, "arguments": arguments}


READ: Final = '{"path": "a"}'
SAY: Final[Fields] = {"type": "text", "text": "Done."}
URL: Final[Fields] = {
    "type": "url_citation",
    "url": "https://a.test",
    "title": "proof",
    "start_index": 0,
    "end_index": 4,
}


def chat_call(arguments: str) -> Fields:
    return chat({"content": None, "tool_calls": [function("call_1", "read", arguments)]}, "tool_calls")


BODIES: Final[dict[str, dict[str, Fields]]] = {
    "text": {
        "anthropic": anthropic({"type": "text", "text": "Grüße "}, SAY),
        "openai_chat": chat({"content": "Grüße Done."}),
        "openai_responses": responses(message_item(output_text("Grüße "), output_text("Done."))),
        "gemini": gemini({"text": "Grüße "}, {"text": "Done."}),
        "bedrock": bedrock({"text": "Grüße "}, {"text": "Done."}),
        "cohere": cohere({"content": [{"type": "text", "text": "Grüße "}, SAY]}),
        "ollama": ollama({"content": "Grüße Done."}),
    },
    "thinking": {
        "anthropic": anthropic({"type": "thinking", "thinking": "hm hm", "signature": "c2ln"}, SAY),
        "openai_chat": chat({"content": "Done.", "reasoning_content": "hm hm"}),
        "openai_responses": responses(
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm hm"}]},
            message_item(output_text("Done.")),
        ),
        "gemini": gemini({"text": "hm hm", "thought": True}, {"text": "Done.", "thoughtSignature": "c2ln"}),
        "bedrock": bedrock(
            {"reasoningContent": {"reasoningText": {"text": "hm hm", "signature": "c2ln"}}}, {"text": "Done."}
        ),
        "cohere": cohere({"content": [{"type": "thinking", "thinking": "hm hm"}, SAY]}),
        "ollama": ollama({"content": "Done.", "thinking": "hm hm"}),
    },
    "calls": {
        "anthropic": anthropic(
            SAY,
            {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}},
            {"type": "tool_use", "id": "toolu_2", "name": "list", "input": {}},
            stop="tool_use",
        ),
        "openai_chat": chat(
            {
                "content": "Done.",
                "tool_calls": [function("call_1", "read", READ), function("call_2", "list", "{}")],
            },
            "tool_calls",
        ),
        "openai_responses": responses(
            message_item(output_text("Done.")), item("1", "read", READ), item("2", "list", "{}")
        ),
        "gemini": gemini(
            {"text": "Done."},
            {"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "list", "args": {}}},
        ),
        "bedrock": bedrock(
            {"text": "Done."},
            {"toolUse": {"toolUseId": "tooluse_1", "name": "read", "input": {"path": "a"}}},
            {"toolUse": {"toolUseId": "tooluse_2", "name": "list", "input": {}}},
            stop="tool_use",
        ),
        "cohere": cohere(
            {
                "tool_plan": "Done.",
                "tool_calls": [function("read_1", "read", READ), function("list_2", "list", "{}")],
            },
            "TOOL_CALL",
        ),
        "ollama": ollama(
            {
                "content": "Done.",
                "tool_calls": [
                    {"function": {"name": "read", "arguments": {"path": "a"}}},
                    {"function": {"name": "list", "arguments": {}}},
                ],
            }
        ),
    },
    "cut": {
        "anthropic": anthropic(SAY, stop="max_tokens"),
        "openai_chat": chat({"content": "Done."}, "length"),
        "openai_responses": responses(
            message_item(output_text("Done.")), status="incomplete", incomplete_details={"reason": "max_output_tokens"}
        ),
        "gemini": gemini({"text": "Done."}, stop="MAX_TOKENS"),
        "bedrock": bedrock({"text": "Done."}, stop="max_tokens"),
        "cohere": cohere({"content": [SAY]}, "MAX_TOKENS"),
        "ollama": ollama({"content": "Done."}, "length"),
    },
    "refusal": {
        "anthropic": anthropic({"type": "text", "text": "I cannot."}, stop="refusal"),
        "openai_chat": chat({"content": None, "refusal": "I cannot."}),
        "openai_responses": responses(message_item({"type": "refusal", "refusal": "I cannot."})),
        "gemini": gemini({"text": "I cannot."}, stop="SAFETY"),
        "bedrock": bedrock({"text": "I cannot."}, stop="guardrail_intervened"),
    },
    "pause": {"anthropic": anthropic(SAY, stop="pause_turn")},
    "cached and reasoning tokens": {
        "anthropic": anthropic(
            SAY,
            usage={
                "input_tokens": 7,
                "output_tokens": 5,
                "cache_read_input_tokens": 30,
                "cache_creation_input_tokens": 2,
            },
        ),
        "openai_chat": chat(
            {"content": "Done."},
            usage={
                "prompt_tokens": 37,
                "completion_tokens": 5,
                "total_tokens": 42,
                "prompt_tokens_details": {"cached_tokens": 30},
                "completion_tokens_details": {"reasoning_tokens": 4},
            },
        ),
        "openai_responses": responses(
            message_item(output_text("Done.")),
            usage={
                "input_tokens": 37,
                "output_tokens": 5,
                "total_tokens": 42,
                "input_tokens_details": {"cached_tokens": 30},
                "output_tokens_details": {"reasoning_tokens": 4},
            },
        ),
        "gemini": gemini(
            {"text": "Done."},
            usage={
                "promptTokenCount": 37,
                "candidatesTokenCount": 1,
                "thoughtsTokenCount": 4,
                "cachedContentTokenCount": 30,
                "totalTokenCount": 42,
            },
        ),
        "bedrock": bedrock(
            {"text": "Done."},
            usage={
                "inputTokens": 7,
                "outputTokens": 5,
                "totalTokens": 44,
                "cacheReadInputTokens": 30,
                "cacheWriteInputTokens": 2,
            },
        ),
    },
    "citations": {
        "anthropic": anthropic(
            {
                **SAY,
                "citations": [{"type": "char_location", "cited_text": "proof", "document_index": 0}],
            }
        ),
        "openai_chat": chat({"content": "Done.", "annotations": [{"type": "url_citation", "url_citation": URL}]}),
        "openai_responses": responses(message_item(output_text("Done.", [URL]))),
        "gemini": gemini({"text": "Done."}, groundingMetadata={"webSearchQueries": ["proof"]}),
        "cohere": cohere({"content": [SAY], "citations": [{"start": 0, "end": 4, "text": "proof"}]}),
    },
    "logprobs": {
        "openai_chat": chat({"content": "Done."}, logprobs={"content": [{"token": "Done.", "logprob": -0.125}]}),
        "gemini": gemini({"text": "Done."}, avgLogprobs=-0.125),
        "cohere": cohere({"content": [SAY]}, logprobs=[{"token_ids": [1], "logprobs": [-0.125]}]),
    },
    "media": {
        "gemini": gemini({"text": "Done."}, {"inlineData": {"mimeType": "image/png", "data": PNG}}),
        "bedrock": bedrock({"text": "Done."}, {"image": {"format": "png", "source": {"bytes": PNG}}}),
    },
    "server tools": {
        "anthropic": anthropic(
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "proof"}}, SAY
        ),
        "openai_responses": responses(
            {
                "type": "web_search_call",
                "id": "ws_1",
                "status": "completed",
                "action": {"type": "search", "query": "proof"},
            },
            message_item(output_text("Done.")),
        ),
        "gemini": gemini({"executableCode": {"language": "PYTHON", "code": "proof"}}, {"text": "Done."}),
    },
    "unknown fields": {
        "anthropic": anthropic({**SAY, "novelty": "proof"}, oddity="proof"),
        "openai_chat": chat({"content": "Done.", "novelty": "proof"}),
        "openai_responses": responses(message_item(output_text("Done.")), novelty="proof"),
        "gemini": gemini({"text": "Done."}, novelty="proof"),
        "bedrock": bedrock({"text": "Done."}, novelty="proof"),
        "cohere": cohere({"content": [SAY], "novelty": "proof"}),
        "ollama": ollama({"content": "Done."}, novelty="proof"),
    },
    "no counts": {
        "openai_chat": {key: value for key, value in chat({"content": "Done."}).items() if key != "usage"},
        "gemini": {key: value for key, value in gemini({"text": "Done."}).items() if key != "usageMetadata"},
    },
    "one count": {"gemini": gemini({"text": "Done."}, usage={"candidatesTokenCount": 5, "totalTokenCount": 5})},
    "arguments in a string": {
        "openai_chat": chat_call('"{\\"path\\":\\"a\\"}"'),
        "openai_responses": responses(item("1", "read", '"{\\"path\\":\\"a\\"}"')),
        "cohere": cohere({"tool_calls": [function("read_1", "read", '"{\\"path\\":\\"a\\"}"')]}, "TOOL_CALL"),
    },
    "blank arguments": {
        "openai_chat": chat({"content": None, "tool_calls": [function("call_1", "list", "")]}, "tool_calls"),
        "openai_responses": responses(item("1", "list", "")),
        "cohere": cohere({"tool_calls": [function("list_1", "list", "")]}, "TOOL_CALL"),
    },
    "a key twice": {
        "openai_chat": chat_call('{"a":1,"a":2}'),
        "openai_responses": responses(item("1", "read", '{"a":1,"a":2}')),
        "cohere": cohere({"tool_calls": [function("read_1", "read", '{"a":1,"a":2}')]}, "TOOL_CALL"),
    },
    "half a surrogate pair": {
        "openai_chat": chat_call('{"a":"\\ud83d"}'),
        "openai_responses": responses(item("1", "read", '{"a":"\\ud83d"}')),
        "cohere": cohere({"tool_calls": [function("read_1", "read", '{"a":"\\ud83d"}')]}, "TOOL_CALL"),
    },
}
"""Classes of replies: the body of each protocol that can say it."""

MARKS: Final = ("proof", "-0.125", PNG)
"""What the bodies hold that has no field of its own in every protocol."""


def stream_of(protocol: str, body: Fields) -> bytes:
    """A provider's stream that adds up to a body."""
    reply = codec(protocol).reply.decode(body)
    data = codec(protocol).stream.Encoder().write([*of_reply(reply, piece=9)])
    if protocol.startswith("openai") and body is BODIES["blank arguments"][protocol]:
        return data.replace(b'"{}"', b'""')  # which our own writer never writes
    return data
