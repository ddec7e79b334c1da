"""Calls as every dialect writes them."""

from __future__ import annotations

from typing import Any

from toolglot import ToolCall, write_calls

LS = {"type": "object", "properties": {"path": {"type": "string"}, "depth": {"type": "integer"}}}


SHELL = {"type": "object", "properties": {"command": {"type": "string"}}}


TOOLS: list[dict[str, Any]] = [{"name": "ls", "parameters": LS}, {"name": "pwd"}, {"name": "bash", "parameters": SHELL}]


FULL, EMPTY = ToolCall("abc123def", "ls", {"path": "/home", "depth": 3}), ToolCall("abc123def", "pwd", {})


COMMAND = ToolCall("abc123def", "bash", {"command": "ls -la"})


def written(dialect: str, call: ToolCall) -> str:
    return write_calls([COMMAND if dialect == "bash_tag" else call], dialect, tools=TOOLS)


REQUEST: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 99,
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [{"name": tool["name"], "input_schema": tool.get("parameters", {"type": "object"})} for tool in TOOLS],
}
