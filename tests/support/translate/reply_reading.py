"""What a client reads in a reply or a stream: texts, thinking, calls, why it ended, what it cost, from the raw bytes.

A reader of its own for each protocol, which shares no code with what writes them, so that what the provider sent and
what the client gets can be compared. A stream is first put together to the body that it adds up to, as an SDK does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

Fields = dict[str, Any]


class Counts(NamedTuple):
    """Tokens; None where the protocol does not say."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    written: int | None = None
    reasoning: int | None = None


class ReadCall(NamedTuple):
    name: str
    arguments: Any
    """The value where it is JSON, else the text."""
    id: str = ""


class ReadReply(NamedTuple):
    """A reply as its client understands it."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ReadCall, ...] = ()
    stop: str | None = None
    counts: Counts = Counts()
    model: str = ""
    media: int = 0


_STOPS: Final = {
    **dict.fromkeys(("end_turn", "stop_sequence", "stop", "STOP", "COMPLETE", "STOP_SEQUENCE", "completed"), "stop"),
    **dict.fromkeys(("tool_use", "tool_calls", "function_call", "TOOL_CALL"), "tool_calls"),
    **dict.fromkeys(("max_tokens", "length", "MAX_TOKENS", "model_context_window_exceeded", "incomplete"), "length"),
    **dict.fromkeys(("refusal", "content_filter", "SAFETY", "guardrail_intervened", "content_filtered"), "filter"),
    "pause_turn": "pause",
}


def read_reply(protocol: str, body: Fields) -> ReadReply:
    found = _READERS[protocol](body)
    stop = "tool_calls" if found.calls and found.stop == "stop" else found.stop
    return found._replace(stop="stop" if stop == "tool_calls" and not found.calls else stop)


def read_stream(protocol: str, data: bytes) -> ReadReply:
    return read_reply(protocol, _ASSEMBLERS[protocol](data))


def _value(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        return json.loads(arguments) if arguments.strip() else {}
    except ValueError:
        return arguments


def _total(*counts: int | None) -> int | None:
    return None if counts[0] is None else sum(count or 0 for count in counts)


# --- whole replies ----------------------------------------------------------------------------------


def _anthropic(body: Fields) -> ReadReply:
    blocks, usage = body["content"], body.get("usage") or {}
    cached, written = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    thought = (usage.get("output_tokens_details") or {}).get("thinking_tokens")
    used = _total(usage.get("input_tokens"), cached, written)
    counts = Counts(used, usage.get("output_tokens"), cached, written, thought)
    return ReadReply(
        "".join(block["text"] for block in blocks if block["type"] == "text"),
        "".join(block["thinking"] for block in blocks if block["type"] == "thinking"),
        tuple(ReadCall(b["name"], _value(b["input"]), b["id"]) for b in blocks if b["type"] == "tool_use"),
        _STOPS.get(body.get("stop_reason") or ""),
        counts,
        body.get("model", ""),
        sum(block["type"] == "image" for block in blocks),
    )


def _chat(body: Fields) -> ReadReply:
    choice = body["choices"][0]
    message, usage = choice["message"], body.get("usage") or {}
    content = message.get("content") or ""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    prompt, completion = (usage.get(f"{side}_tokens_details") or {} for side in ("prompt", "completion"))
    text = "".join(part.get("text", "") for part in parts if part["type"] == "text") + (message.get("refusal") or "")
    stop = _STOPS.get(choice.get("finish_reason") or "")
    return ReadReply(
        text,
        message.get("reasoning_content") or message.get("reasoning") or "",
        tuple(_function(call) for call in message.get("tool_calls") or ()),
        "filter" if message.get("refusal") and stop == "stop" else stop,
        Counts(
            *(usage.get("prompt_tokens"), usage.get("completion_tokens")),
            *(prompt.get("cached_tokens"), prompt.get("cache_write_tokens"), completion.get("reasoning_tokens")),
        ),
        body.get("model", ""),
        sum(part["type"] != "text" for part in parts),
    )


def _function(call: Fields) -> ReadCall:
    inner = call.get("function") or call.get("custom") or {}
    return ReadCall(inner.get("name") or "", _value(inner.get("arguments", inner.get("input"))), call.get("id") or "")


def _responses(body: Fields) -> ReadReply:
    items, usage = body["output"], body.get("usage") or {}
    parts = [part for item in items if item["type"] == "message" for part in item["content"]]
    thoughts = [item for item in items if item["type"] == "reasoning"]
    why = (body.get("incomplete_details") or {}).get("reason")
    stop = {"max_output_tokens": "length", "content_filter": "filter"}.get(why or "")
    stop = stop or _STOPS.get(body.get("status") or "")
    details = usage.get("input_tokens_details") or {}
    return ReadReply(
        "".join(part.get("text") or part.get("refusal") or "" for part in parts),
        "".join(part["text"] for item in thoughts for part in item.get("summary") or item.get("content") or ()),
        tuple(
            ReadCall(item["name"], _value(item.get("arguments", item.get("input"))), item["call_id"])
            for item in items
            if item["type"] in ("function_call", "custom_tool_call")
        ),
        "filter" if stop == "stop" and parts and all(part["type"] == "refusal" for part in parts) else stop,
        Counts(
            *(usage.get("input_tokens"), usage.get("output_tokens"), details.get("cached_tokens")),
            *(details.get("cache_write_tokens"), (usage.get("output_tokens_details") or {}).get("reasoning_tokens")),
        ),
        body.get("model", ""),
        sum(item["type"] == "image_generation_call" for item in items),
    )


def _gemini(body: Fields) -> ReadReply:
    candidate, usage = body["candidates"][0], body.get("usageMetadata") or {}
    parts = (candidate.get("content") or {}).get("parts") or ()
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    answer, thoughts = usage.get("candidatesTokenCount"), usage.get("thoughtsTokenCount")
    return ReadReply(
        "".join(part["text"] for part in parts if "text" in part and not part.get("thought")),
        "".join(part["text"] for part in parts if "text" in part and part.get("thought")),
        tuple(ReadCall(call["name"], call.get("args") or {}, call.get("id") or "") for call in calls),
        _STOPS.get(candidate.get("finishReason") or ""),
        Counts(
            usage.get("promptTokenCount"),
            None if answer is None and thoughts is None else (answer or 0) + (thoughts or 0),
            usage.get("cachedContentTokenCount"),
            None,
            thoughts,
        ),
        body.get("modelVersion", ""),
        sum("inlineData" in part for part in parts),
    )


def _bedrock(body: Fields) -> ReadReply:
    blocks, usage = body["output"]["message"]["content"], body.get("usage") or {}
    cached, written = usage.get("cacheReadInputTokens"), usage.get("cacheWriteInputTokens")
    thoughts = [block["reasoningContent"].get("reasoningText") or {} for block in blocks if "reasoningContent" in block]
    return ReadReply(
        "".join(block["text"] for block in blocks if "text" in block),
        "".join(thought.get("text", "") for thought in thoughts),
        tuple(
            ReadCall(call["name"], _value(call["input"]), call["toolUseId"])
            for call in (block["toolUse"] for block in blocks if "toolUse" in block)
        ),
        _STOPS.get(body.get("stopReason") or ""),
        Counts(_total(usage.get("inputTokens"), cached, written), usage.get("outputTokens"), cached, written),
        "",
        sum("image" in block for block in blocks),
    )


def _cohere(body: Fields) -> ReadReply:
    message, usage = body["message"], (body.get("usage") or {}).get("tokens") or {}
    content = message.get("content") or ()
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return ReadReply(
        (message.get("tool_plan") or "") + "".join(part["text"] for part in parts if part["type"] == "text"),
        "".join(part["thinking"] for part in parts if part["type"] == "thinking"),
        tuple(_function(call) for call in message.get("tool_calls") or ()),
        _STOPS.get(body.get("finish_reason") or ""),
        Counts(usage.get("input_tokens"), usage.get("output_tokens"), (body.get("usage") or {}).get("cached_tokens")),
    )


def _ollama(body: Fields) -> ReadReply:
    message = body["message"]
    return ReadReply(
        message.get("content") or "",
        message.get("thinking") or "",
        tuple(_function(call) for call in message.get("tool_calls") or ()),
        _STOPS.get(body.get("done_reason") or ""),
        Counts(body.get("prompt_eval_count"), body.get("eval_count")),
        body.get("model", ""),
        len(message.get("images") or ()),
    )


_READERS: Final[dict[str, Callable[[Fields], ReadReply]]] = {
    "anthropic": _anthropic,
    "openai_chat": _chat,
    "openai_responses": _responses,
    "gemini": _gemini,
    "bedrock": _bedrock,
    "cohere": _cohere,
    "ollama": _ollama,
}


# --- streams ----------------------------------------------------------------------------------------


def _events(data: bytes) -> Iterator[Fields]:
    for block in data.decode().replace("\r\n", "\n").split("\n\n"):
        lines = [line[5:].strip() for line in block.split("\n") if line.startswith("data:")]
        if lines and lines != ["[DONE]"]:
            yield json.loads("\n".join(lines))


def _from_anthropic(data: bytes) -> Fields:
    body: Fields = {"content": []}
    written: dict[int, str] = {}
    for event in _events(data):
        kind = event["type"]
        if kind == "message_start":
            body = {**event["message"], "content": []}
        elif kind == "content_block_start":
            body["content"].append(dict(event["content_block"]))
        elif kind == "content_block_delta":
            delta, block = event["delta"], body["content"][event["index"]]
            if delta["type"] == "input_json_delta":
                written[event["index"]] = written.get(event["index"], "") + delta["partial_json"]
                block["input"] = written[event["index"]]
            else:
                key = delta["type"].removesuffix("_delta")
                if key == "citations":
                    block.setdefault("citations", []).append(delta["citation"])
                else:
                    block[key] = block.get(key, "") + delta[key]
        elif kind == "message_delta":
            body |= event["delta"]
            body["usage"] = {**(body.get("usage") or {}), **(event.get("usage") or {})}
    return body


def _from_chat(data: bytes) -> Fields:
    message: Fields = {"content": "", "refusal": "", "reasoning_content": "", "reasoning": ""}
    calls: dict[int, Fields] = {}
    choice: Fields = {"message": message}
    body: Fields = {"choices": [choice]}
    for event in _events(data):
        body |= {key: event[key] for key in ("model", "usage") if event.get(key)}
        for chunk in event.get("choices") or ():
            delta = chunk.get("delta") or {}
            for key in ("content", "refusal", "reasoning_content", "reasoning"):
                message[key] += delta.get(key) or ""
            for piece in delta.get("tool_calls") or ():
                call = calls.setdefault(piece["index"], {"id": "", "function": {"name": "", "arguments": ""}})
                call["id"] = piece.get("id") or call["id"]
                inner = piece.get("function") or {}
                call["function"]["name"] += inner.get("name") or ""
                call["function"]["arguments"] += inner.get("arguments") or ""
            choice["finish_reason"] = chunk.get("finish_reason") or choice.get("finish_reason")
    message["tool_calls"] = list(calls.values())
    return body


def _from_responses(data: bytes) -> Fields:
    (body,) = [event["response"] for event in _events(data) if event["type"] in _RESPONSE_ENDS]
    return dict(body)


_RESPONSE_ENDS: Final = ("response.completed", "response.incomplete", "response.failed")


def _from_gemini(data: bytes) -> Fields:
    parts: list[Fields] = []
    candidate: Fields = {"content": {"parts": parts}}
    body: Fields = {"candidates": [candidate]}
    for event in _events(data):
        body |= {key: value for key, value in event.items() if key != "candidates"}
        for received in event.get("candidates") or ():
            parts += (received.get("content") or {}).get("parts") or ()
            candidate["finishReason"] = received.get("finishReason") or candidate.get("finishReason")
    return body


def _frames(data: bytes) -> Iterator[tuple[str, Fields]]:
    at = 0
    while at < len(data):
        total, head = int.from_bytes(data[at : at + 4], "big"), int.from_bytes(data[at + 4 : at + 8], "big")
        headers, position = {}, at + 12
        while position < at + 12 + head:
            size = data[position]
            name = data[position + 1 : position + 1 + size].decode()
            position += 2 + size  # the name, and the type of the value, which is a string
            size = int.from_bytes(data[position : position + 2], "big")
            headers[name] = data[position + 2 : position + 2 + size].decode()
            position += 2 + size
        yield headers.get(":event-type", ""), json.loads(data[at + 12 + head : at + total - 4] or b"{}")
        at += total


def _from_bedrock(data: bytes) -> Fields:
    blocks: dict[int, Fields] = {}
    body: Fields = {}
    for kind, event in _frames(data):
        if kind == "contentBlockStart":
            blocks[event["contentBlockIndex"]] = {key: dict(value) for key, value in event["start"].items()}
        elif kind == "contentBlockDelta":
            _add_bedrock(blocks.setdefault(event["contentBlockIndex"], {}), event["delta"])
        elif kind in ("messageStop", "metadata"):
            body |= event
    return {**body, "output": {"message": {"content": list(blocks.values())}}}


def _add_bedrock(block: Fields, delta: Fields) -> None:
    if "text" in delta:
        block["text"] = block.get("text", "") + delta["text"]
    elif "toolUse" in delta:
        block["toolUse"]["input"] = block["toolUse"].get("input", "") + delta["toolUse"]["input"]
    elif "reasoningContent" in delta:
        inner = block.setdefault("reasoningContent", {"reasoningText": {"text": ""}})["reasoningText"]
        inner["text"] += delta["reasoningContent"].get("text", "")
    else:
        block |= delta


def _from_cohere(data: bytes) -> Fields:
    texts: dict[tuple[str, int], Fields] = {}
    calls: dict[int, Fields] = {}
    message: Fields = {"tool_plan": ""}
    body: Fields = {"message": message}
    for event in _events(data):
        delta, kind = event.get("delta") or {}, event["type"]
        update = delta.get("message") or {}
        if kind in ("content-start", "content-delta"):
            part = update["content"]
            for key in ("text", "thinking"):
                if part.get(key) is not None:
                    held = texts.setdefault((key, event["index"]), {"type": key, key: ""})
                    held[key] += part[key]
        elif kind == "tool-plan-delta":
            message["tool_plan"] += update["tool_plan"]
        elif kind == "tool-call-start":
            calls[event["index"]] = {**update["tool_calls"], "function": dict(update["tool_calls"]["function"])}
        elif kind == "tool-call-delta":
            calls[event["index"]]["function"]["arguments"] += update["tool_calls"]["function"]["arguments"]
        elif kind == "message-end":
            body |= delta
    return {**body, "message": {**message, "content": list(texts.values()), "tool_calls": list(calls.values())}}


def _from_ollama(data: bytes) -> Fields:
    message: Fields = {"content": "", "thinking": "", "tool_calls": [], "images": []}
    body: Fields = {}
    for line in data.decode().splitlines():
        event = json.loads(line)
        update = event.pop("message", None) or {}
        body |= event
        for key in message:
            message[key] += update.get(key) or type(message[key])()
    return {**body, "message": message}


_ASSEMBLERS: Final[dict[str, Callable[[bytes], Fields]]] = {
    "anthropic": _from_anthropic,
    "openai_chat": _from_chat,
    "openai_responses": _from_responses,
    "gemini": _from_gemini,
    "bedrock": _from_bedrock,
    "cohere": _from_cohere,
    "ollama": _from_ollama,
}
