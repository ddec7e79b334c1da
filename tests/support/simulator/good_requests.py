"""A good request to each provider of the simulator: a question, and a tool that can answer it."""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}
CHAT: Body = {"messages": [{"role": "user", "content": "Weather?"}], "tools": [FUNCTION]}
BODIES: dict[str, Body] = {
    "anthropic": {
        "model": "claude-opus-5",
        "max_tokens": 100,
        "messages": CHAT["messages"],
        "tools": [{"name": "get_weather", "input_schema": SCHEMA}],
    },
    "openai": {"model": "gpt-4.1", **CHAT},
    "openai_responses": {
        "model": "gpt-5.5",
        "input": CHAT["messages"],
        "tools": [{"type": "function", "name": "get_weather", "parameters": SCHEMA, "strict": False}],
    },
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": "Weather?"}]}],
        "tools": [{"functionDeclarations": [{"name": "get_weather", "parametersJsonSchema": SCHEMA}]}],
    },
    "mistral": {"model": "mistral-large-latest", **CHAT},
    "deepseek": {"model": "deepseek-chat", **CHAT},
    "kimi": {"model": "kimi-k2.5", **CHAT},
    "bedrock": {
        "messages": [{"role": "user", "content": [{"text": "Weather?"}]}],
        "toolConfig": {"tools": [{"toolSpec": {"name": "get_weather", "inputSchema": {"json": SCHEMA}}}]},
    },
    "cohere": {"model": "command-a-03-2025", **CHAT},
    "ollama": {"model": "qwen3", **CHAT, "stream": False},
}
MODELS = {"gemini": "gemini-3-pro", "bedrock": "anthropic.claude-opus-5-v1:0"}
