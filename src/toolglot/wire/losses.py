"""Fields of one protocol that no other has a place for: told, since they are not carried.

`extra` of a conversation and its parts returns to its own protocol and nowhere else. Each field is told once,
with how often it stood there. Fields that say nothing (null, empty) are not worth a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from toolglot.conversation import Conversation, Extra, Reply, ToolResult, Turn

_NOTE: Final = "~"
_AROUND: Final = "~choice"
_HOUSEKEEPING: Final = frozenset(
    {
        "object",
        "created",
        "created_at",
        "index",
        "type",
        "id",
        "status",
        "total_tokens",
        "totalTokenCount",
        "totalTokens",
    }
    | {"summary", "content", "system_fingerprint", "metrics", "stop_sequence", "parallel_tool_calls"}
)
"""Fields of a reply that tell a client nothing, or that are carried in another form."""
_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})


def unwritten(value: Conversation | Reply, protocol: str) -> Iterator[tuple[str, str]]:
    """Every field that a protocol will not show: the field, and what to tell of it."""
    counts: dict[tuple[str, str], int] = {}
    silent = _HOUSEKEEPING if isinstance(value, Reply) else frozenset[str]()
    for place, extra in _extras(value):
        for written_in, fields in extra.items():
            if written_in == protocol:
                continue
            for field, written in fields.items():
                if not field.startswith(_NOTE) and written not in _EMPTY and field not in silent:
                    counts[place, field] = counts.get((place, field), 0) + 1
    for (place, field), count in counts.items():
        times = "" if count == 1 else f" ({count} times)"
        yield field[:80], f"{field[:80]} on {place} has no place there{times}"


def _extras(value: Conversation | Reply) -> Iterator[tuple[str, Extra]]:
    if value.extra is not None:
        yield "the body", value.extra
    if isinstance(value, Reply):
        yield from _of_answer(value.extra)
        yield from _of_turn(value.turn)
        if value.usage is not None and value.usage.extra is not None:
            yield "the usage", value.usage.extra
        return
    for turn in value.turns:
        yield from _of_turn(turn)
    for tool in value.tools:
        if tool.extra is not None:
            yield "a tool", tool.extra
    options = value.options
    for place, part in (
        ("the tool choice", options.tool_choice),
        ("the reasoning settings", options.reasoning),
        ("the output format", options.output),
    ):
        if part is not None and part.extra is not None:
            yield place, part.extra


def _of_answer(extra: Extra | None) -> Iterator[tuple[str, Extra]]:
    """What stood beside the answer, where a protocol wraps it in an object of its own."""
    for protocol, fields in (extra or {}).items():
        around = fields.get(_AROUND)
        if isinstance(around, dict):
            yield "the answer", {protocol: around}


def _of_turn(turn: Turn) -> Iterator[tuple[str, Extra]]:
    if turn.extra is not None:
        yield "a message", turn.extra
    for block in turn.blocks:
        if block.extra is not None:
            yield "a block", block.extra
        if isinstance(block, ToolResult) and isinstance(block.content, tuple):
            for part in block.content:
                if part.extra is not None:
                    yield "a part of a result", part.extra
