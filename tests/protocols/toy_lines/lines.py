"""A line of a conversation, both ways: what requests and replies share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolglot.conversation import Block, Role, Text, ToolCall, ToolResult, Turn
from toolglot.protocols.fields.reading import each, one_of, optional, required

_ROLES: Final[Mapping[str, Role]] = {"user": "user", "model": "assistant", "system": "system", "tool": "tool"}
_NAMES: Final = {role: name for name, role in _ROLES.items()} | {"developer": "system"}


def read_line(line: dict[str, Any]) -> Turn:
    role, text = one_of(line, "who", _ROLES), optional(line, "text", str)
    if role == "tool":
        return Turn("tool", (ToolResult(required(line, "id", str), text, name=optional(line, "tool", str) or ""),))
    blocks: list[Block] = [Text(text)] if text else []
    blocks += each(optional(line, "calls", list) or (), read_call, ".calls")
    return Turn(role, tuple(blocks))


def read_call(call: dict[str, Any]) -> ToolCall:
    return ToolCall(required(call, "id", str), required(call, "tool", str), required(call, "input", dict))


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
