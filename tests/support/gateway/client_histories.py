"""Histories with tools as the clients of four protocols send them, and what a provider makes of the same.

    path, body = request("gemini", "mistral/mistral-large-latest", [UserText("Hi"), Calls(Call("c1", "a.txt")), …])
    pairs_in("openai", simulated.requests[-1].body)      # [("a.txt", "hello")]: calls and what they returned

Nothing here is toolglot's own: bodies are written and read as the documents of the providers have them.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from support.gateway.http_client import Got, request_of

CLIENTS = ("anthropic", "openai", "openai_responses", "gemini")


class Call(NamedTuple):
    """A call of `read_file`."""

    id: str
    path: str


class Result(NamedTuple):
    """What a call returned."""

    id: str
    text: str
    is_error: bool = False
    image: str = ""
    """A PNG."""


class UserText(NamedTuple):
    """Words of the user."""

    text: str


class Calls(NamedTuple):
    """An answer that calls."""

    calls: tuple[Call, ...]


class Results(NamedTuple):
    """What the client sends back."""

    results: tuple[Result, ...]


Turn = UserText | Calls | Results
Fields = dict[str, Any]


def request(client: str, model: str, turns: list[Turn], **more: Any) -> tuple[str, Fields]:
    """A path and a body with this history."""
    path, body = request_of(client, model, "", **more)
    if client == "gemini":
        body["contents"] = [_gemini(turn) for turn in turns]
    elif client == "openai_responses":
        body["input"] = [item for turn in turns for item in _responses(turn)]
    elif client == "anthropic":
        body["messages"] = [_anthropic(turn) for turn in turns]
    else:
        body["messages"] = [message for turn in turns for message in _chat(turn)]
    return path, body


def _anthropic(turn: Turn) -> Fields:
    if isinstance(turn, UserText):
        return {"role": "user", "content": turn.text}
    if isinstance(turn, Calls):
        made = [{"type": "tool_use", "id": c.id, "name": "read_file", "input": {"path": c.path}} for c in turn.calls]
        return {"role": "assistant", "content": made}
    results: list[Fields] = []
    for result in turn.results:
        content: list[Fields] = [{"type": "text", "text": result.text}]
        if result.image:
            source = {"type": "base64", "media_type": "image/png", "data": result.image}
            content.append({"type": "image", "source": source})
        block = {"type": "tool_result", "tool_use_id": result.id, "content": content}
        results.append({**block, "is_error": True} if result.is_error else block)
    return {"role": "user", "content": results}


def _chat(turn: Turn) -> list[Fields]:
    if isinstance(turn, UserText):
        return [{"role": "user", "content": turn.text}]
    if isinstance(turn, Calls):
        made = [
            {
                "id": c.id,
                "type": "function",
                "function": {"name": "read_file", "arguments": json.dumps({"path": c.path})},
            }
            for c in turn.calls
        ]
        return [{"role": "assistant", "content": None, "tool_calls": made}]
    messages: list[Fields] = []
    for result in turn.results:
        content: Any = result.text
        if result.image:
            url = f"data:image/png;base64,{result.image}"
            content = [{"type": "text", "text": result.text}, {"type": "image_url", "image_url": {"url": url}}]
        messages.append({"role": "tool", "tool_call_id": result.id, "content": content})
    return messages


def _responses(turn: Turn) -> list[Fields]:
    if isinstance(turn, UserText):
        return [{"role": "user", "content": turn.text}]
    if isinstance(turn, Calls):
        return [
            {
                "type": "function_call",
                "call_id": call.id,
                "name": "read_file",
                "arguments": json.dumps({"path": call.path}),
            }
            for call in turn.calls
        ]
    items: list[Fields] = []
    for result in turn.results:
        output: Any = result.text
        if result.image:
            url = f"data:image/png;base64,{result.image}"
            output = [{"type": "input_text", "text": result.text}, {"type": "input_image", "image_url": url}]
        items.append({"type": "function_call_output", "call_id": result.id, "output": output})
    return items


def _gemini(turn: Turn) -> Fields:
    if isinstance(turn, UserText):
        return {"role": "user", "parts": [{"text": turn.text}]}
    if isinstance(turn, Calls):
        made = [{"functionCall": {"id": c.id, "name": "read_file", "args": {"path": c.path}}} for c in turn.calls]
        return {"role": "model", "parts": made}
    parts: list[Fields] = []
    for result in turn.results:
        response = {"error" if result.is_error else "output": result.text}
        fields: Fields = {"id": result.id, "name": "read_file", "response": response}
        if result.image:
            fields["parts"] = [{"inlineData": {"mimeType": "image/png", "data": result.image}}]
        parts.append({"functionResponse": fields})
    return {"role": "user", "parts": parts}


# --- what a provider was sent -----------------------------------------------------------------------


def pairs_in(upstream: str, body: Fields) -> list[tuple[str, str]]:
    """The path of every call and the text of its result, as the protocol pairs them. A call without one: `?`."""
    if upstream == "gemini":
        return _gemini_pairs(body["contents"])
    calls, results = _CALLS[upstream](body)
    by_id: dict[str, list[str]] = {}
    for id, text in results:
        by_id.setdefault(id, []).append(text)
    return [(path, "|".join(by_id.get(id, ["?"]))) for id, path in calls]


def _anthropic_calls(body: Fields) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    blocks = [block for m in body["messages"] if isinstance(m["content"], list) for block in m["content"]]
    return (
        [(block["id"], block["input"].get("path", "")) for block in blocks if block["type"] == "tool_use"],
        [(b["tool_use_id"], json.dumps(b.get("content"))) for b in blocks if b["type"] == "tool_result"],
    )


def _chat_calls(body: Fields) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    made = [call for message in body["messages"] for call in message.get("tool_calls") or ()]
    return (
        [(call["id"], json.loads(call["function"]["arguments"]).get("path", "")) for call in made],
        [(m["tool_call_id"], json.dumps(m["content"])) for m in body["messages"] if m["role"] == "tool"],
    )


def _responses_calls(body: Fields) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    items = body["input"] if isinstance(body["input"], list) else []
    return (
        [(i["call_id"], json.loads(i["arguments"])["path"]) for i in items if i.get("type") == "function_call"],
        [(i["call_id"], json.dumps(i["output"])) for i in items if i.get("type") == "function_call_output"],
    )


_CALLS = {
    "anthropic": _anthropic_calls,
    "openai": _chat_calls,
    "mistral": _chat_calls,
    "kimi": _chat_calls,
    "openai_responses": _responses_calls,
}


def _gemini_pairs(contents: list[Fields]) -> list[tuple[str, str]]:
    """Gemini pairs by position: the responses of the turn that follows, in the order of the calls."""
    pairs: list[tuple[str, str]] = []
    for index, content in enumerate(contents):
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        after = contents[index + 1]["parts"] if index + 1 < len(contents) else []
        found = [json.dumps(part["functionResponse"]["response"]) for part in after if "functionResponse" in part]
        pairs += [(c["args"].get("path", ""), found[i] if i < len(found) else "?") for i, c in enumerate(calls)]
    return pairs


# --- what a client got ------------------------------------------------------------------------------


class ClientReply(NamedTuple):
    """An answer."""

    text: str
    calls: list[tuple[str, str, str]]
    """Id, name and the text of the arguments, of every call as far as it came."""
    stop: str


def read_reply(client: str, got: Got, *, stream: bool) -> ClientReply:
    if client == "gemini":
        return _read_gemini(got.events if stream else [got.body])
    if client == "anthropic":
        return _read_message_stream(got.events) if stream else _read_message(got.body)
    if client == "openai_responses":
        return _read_response(got.events[-1]["response"] if stream else got.body)
    return _read_chunks(got.events) if stream else _read_choice(got.body["choices"][0])


def _read_gemini(chunks: list[Fields]) -> ClientReply:
    parts = [part for chunk in chunks for part in chunk["candidates"][0].get("content", {}).get("parts", ())]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    return ClientReply(
        "".join(part.get("text", "") for part in parts if not part.get("thought")),
        [(call.get("id", ""), call["name"], json.dumps(call.get("args"))) for call in calls],
        chunks[-1]["candidates"][0].get("finishReason", ""),
    )


def _read_message(body: Fields) -> ClientReply:
    content = body["content"]
    return ClientReply(
        "".join(block["text"] for block in content if block["type"] == "text"),
        [(b["id"], b["name"], json.dumps(b["input"])) for b in content if b["type"] == "tool_use"],
        body["stop_reason"],
    )


def _read_message_stream(events: list[Fields]) -> ClientReply:
    text, stop = "", ""
    calls: dict[int, tuple[str, str, str]] = {}
    for event in events:
        if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use":
            block = event["content_block"]
            calls[event["index"]] = (block["id"], block["name"], "")
        elif event["type"] == "content_block_delta":
            text += event["delta"].get("text", "")
            if "partial_json" in event["delta"]:
                id, name, before = calls[event["index"]]
                calls[event["index"]] = (id, name, before + event["delta"]["partial_json"])
        elif event["type"] == "message_delta":
            stop = event["delta"]["stop_reason"]
    return ClientReply(text, [*calls.values()], stop)


def _read_response(body: Fields) -> ClientReply:
    made = [item for item in body["output"] if item["type"] == "function_call"]
    texts = [part["text"] for item in body["output"] if item["type"] == "message" for part in item["content"]]
    calls = [(i["call_id"], i["name"], i["arguments"]) for i in made if i.get("status") != "incomplete"]
    return ClientReply("".join(texts), calls, (body.get("incomplete_details") or {}).get("reason") or body["status"])


def _read_choice(choice: Fields) -> ClientReply:
    message = choice["message"]
    made = message.get("tool_calls") or ()
    calls = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in made]
    return ClientReply(message.get("content") or "", calls, choice["finish_reason"])


def _read_chunks(events: list[Fields]) -> ClientReply:
    text, stop = "", ""
    calls: dict[int, tuple[str, str, str]] = {}
    for choice in (choice for event in events for choice in event["choices"]):
        text += choice["delta"].get("content") or ""
        stop = choice.get("finish_reason") or stop
        for piece in choice["delta"].get("tool_calls") or ():
            id, name, before = calls.get(piece["index"], ("", "", ""))
            function = piece["function"]
            call = (piece.get("id") or id, function.get("name") or name, before + (function.get("arguments") or ""))
            calls[piece["index"]] = call
    return ClientReply(text, [*calls.values()], stop)
