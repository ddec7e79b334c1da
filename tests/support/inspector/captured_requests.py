"""Captures as a gateway writes them, without a gateway."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from toolglot.conversation.report import order_by_gravity
from toolglot.translate.replies import convert_reply
from toolglot.translate.requests import convert

WEATHER: dict[str, Any] = {
    "name": "get weather!",
    "description": "The weather.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
"""A tool whose name most targets refuse."""


def talk(rounds: int = 1, *, text: str = "What is the weather in Paris?") -> list[dict[str, Any]]:
    """Messages of an Anthropic client, with a call and its result in each round."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": text}]
    for number in range(rounds):
        id = f"toolu_{number:03d}"
        call = {"type": "tool_use", "id": id, "name": "get weather!", "input": {"city": f"City {number}"}}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": f"I look, {number}."}, call]})
        result = {"type": "tool_result", "tool_use_id": id, "content": f"It is {number} degrees."}
        messages.append({"role": "user", "content": [result, {"type": "text", "text": f"And now, {number}?"}]})
    return messages


def captured(
    messages: list[dict[str, Any]] | None = None,
    *,
    target: str = "openai_responses",
    model: str = "gpt-5.5",
    id: str = "tg_1",
    **fields: Any,
) -> dict[str, Any]:
    """The capture of a request of an Anthropic client that was sent to a target."""
    body = {
        "model": "claude-opus-5",
        "max_tokens": 100,
        "system": "Be nice.",
        "tools": [WEATHER],
        "messages": talk() if messages is None else messages,
        **fields,
    }
    return captured_body(body, source="anthropic", target=target, model=model, id=id)


def captured_body(body: dict[str, Any], *, source: str, target: str, model: str, id: str = "tg_1") -> dict[str, Any]:
    """The capture of a request of any client."""
    text = json.dumps(body)
    out = convert(text.encode(), source=source, target=target, model=model)
    entries = [{**msgspec.to_builtins(entry), "text": str(entry)} for entry in order_by_gravity(out.report.entries)]
    return {
        "toolglot_capture": 1,
        "id": id,
        "time": 1_795_000_000.0,
        "method": "POST",
        "path": "/v1/messages",
        "client": "0123456789ab",
        "protocol": source,
        "model": body.get("model", ""),
        "target": out.target.name,
        "upstream": out.target.name,
        "sent_model": model,
        "status": 200,
        "seconds": 2.5,
        "report": entries,
        "reply_report": [],
        "attempts": [{"upstream": out.target.name, "at": 0.01}],
        "request": text,
        "rendered": out.data.decode(),
        "unchanged": False,
    }


def with_reply(capture: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
    """A capture with a whole reply of its provider."""
    request = convert(
        capture["request"].encode(), source=capture["protocol"], target=capture["target"], model=capture["sent_model"]
    )
    text = json.dumps(reply)
    back = convert_reply(text.encode(), source=capture["target"], target=capture["protocol"], request=request)
    return {**capture, "reply": text, "response": back.data.decode(), "stream": False}
