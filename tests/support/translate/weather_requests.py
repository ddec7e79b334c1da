"""The weather example of seed 002: requests of Anthropic's protocol with its tool, and their conversion."""

from __future__ import annotations

from typing import Any

from toolglot import Policy, convert

Fields = dict[str, Any]
WEATHER: Fields = {
    "name": "get_weather",
    "description": "Get current weather for a location",
    "input_schema": {
        "type": "object",
        "properties": {
            "location": {"type": "string", "description": "City name"},
            "units": {
                "type": "string",
                "enum": ["celsius", "fahrenheit"],
                "description": "Temperature units (optional, defaults to fahrenheit)",
            },
        },
        "required": ["location", "units"],
    },
}


def claude_body(*messages: Fields, **fields: Any) -> Fields:
    chosen = messages or ({"role": "user", "content": "hi"},)
    return {"model": "claude-sonnet-4-6", "max_tokens": 100, "messages": list(chosen), **fields}


def call_and_result(*ids: str, name: str = "get_weather") -> tuple[Fields, Fields]:
    calls = [{"type": "tool_use", "id": id, "name": name, "input": {"location": "Rome"}} for id in ids]
    results = [{"type": "tool_result", "tool_use_id": id, "content": "72°F, sunny"} for id in ids]
    return {"role": "assistant", "content": calls}, {"role": "user", "content": results}


def convert_to(target: str, body: Fields, *, source: str = "anthropic", model: str = "", **policy: Any) -> Any:
    return convert(body, source=source, target=target, model=model, policy=Policy(**policy))
