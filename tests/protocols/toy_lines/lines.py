"""A line of a conversation, both ways: what requests and replies share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolglot.conversation import Block, Role, Text, ToolCall, ToolResult, Turn

_ROLES: Final[Mapping[str, Role]] = {"user": "user", "model": "assistant", "system": "system", "tool": "tool"}
_NAMES: Final = {role: name for name, role in _ROLES.items()} | {"developer": "system"}


def read_line(line: dict[str, Any]) -> Turn:
    if line["who"] == "tool":
        return Turn("tool", (ToolResult(line["id"], line["text"], name=line.get("tool", "")),))
    blocks: list[Block] = [Text(line["text"])] if line.get("text") else []
    blocks += [read_call(call) for call in line.get("calls", ())]
    return Turn(_ROLES[line["who"]], tuple(blocks))


def read_call(call: dict[str, Any]) -> ToolCall:
    return ToolCall(call["id"], call["tool"], call["input"])


def write_call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "tool": call.name, "input": call.arguments or {}}


def write_lines(turn: Turn) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = [
        {"who": "tool", "id": result.call_id, "text": result.text} for result in turn.results
    ]
    if turn.text or turn.calls:
        line: dict[str, Any] = {"who": _NAMES[turn.role], "text": turn.text}
        if turn.calls:
            line["calls"] = [write_call(call) for call in turn.calls]
        lines.append(line)
    return lines
