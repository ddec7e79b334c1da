"""Messages of the Chat Completions protocol, both ways. Requests and replies share them.

One message is one turn. Its blocks are in this order: thinking, content, what stands in fields of its own,
calls. A turn made elsewhere may need several messages, since every tool result is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from toolglot.conversation import Block, Extra, Opaque, Role, Thinking, ToolCall, ToolResult, Turn
from toolglot.wire.openai_chat.blocks import (
    PROTOCOL,
    placed,
    read_call,
    read_content,
    read_result,
    write_call,
    write_content,
    write_part,
    write_result,
)
from toolglot.wire.reading import Fields, each, leftover, note, noted, one_of, optional, restored

_MESSAGE = frozenset({"role", "content"})
_REASONING: Final = ("reasoning_content", "reasoning")
_OWN_FIELDS: Final[dict[str, type]] = {"refusal": str, "function_call": dict}
"""Fields of an assistant message that are blocks nobody else has: `refusal` is also a content part."""
_ASSISTANT = _MESSAGE | {"tool_calls"} | _OWN_FIELDS.keys()


def read_message(fields: Fields) -> Turn:
    return one_of(fields, "role", _ROLES)(fields)


def read_assistant(fields: Fields) -> Turn:
    thoughts = [key for key in _REASONING if type(fields.get(key)) is str]
    parts, form = read_content(fields)
    blocks: list[Block] = [Thinking(fields[key], extra={PROTOCOL: {"~field": key}}) for key in thoughts]
    blocks += parts
    for key, kind in _OWN_FIELDS.items():
        value = optional(fields, key, kind)
        if value is not None:
            blocks.append(Opaque(PROTOCOL, {"type": key, key: value}, key, placed(key)))
    calls = optional(fields, "tool_calls", list)
    blocks += each(calls or (), read_call, ".tool_calls")
    extra = leftover(fields, _ASSISTANT.union(thoughts) if thoughts else _ASSISTANT, PROTOCOL)
    return Turn(
        "assistant",
        tuple(blocks),
        extra=noted(extra, PROTOCOL, content=form, tool_calls=[] if calls == [] else None),
    )


def _plain(role: Role) -> Callable[[Fields], Turn]:
    def read(fields: Fields) -> Turn:
        parts, form = read_content(fields)
        return Turn(role, parts, extra=noted(leftover(fields, _MESSAGE, PROTOCOL), PROTOCOL, content=form))

    return read


def _tool(fields: Fields) -> Turn:
    return Turn("tool", (read_result(fields),))


def _function(fields: Fields) -> Turn:
    """The result of a call as it was before there were tools: it has no id, and stays as it is."""
    return Turn("tool", (Opaque(PROTOCOL, fields, "function", placed("message")),))


_ROLES: Final[dict[str, Callable[[Fields], Turn]]] = {
    "system": _plain("system"),
    "developer": _plain("developer"),
    "user": _plain("user"),
    "assistant": read_assistant,
    "tool": _tool,
    "function": _function,
}


# --- writing ----------------------------------------------------------------------------------------


def write_messages(turn: Turn) -> list[Fields]:
    """A turn's messages: its results one each, and one for the rest if there is any."""
    messages: list[Fields] = []
    if turn.role == "assistant":
        return [_write_assistant(turn, messages), *messages]
    parts: list[Fields] = []
    for block in turn.blocks:
        if isinstance(block, ToolResult):
            messages.append(write_result(block))
        elif isinstance(block, Opaque) and _place(block) == "message":
            messages.append(block.value)
        elif (part := write_part(block)) is not None:
            parts.append(part)
    if parts or not (messages or turn.role == "tool"):
        form = note(turn.extra, PROTOCOL, "content")
        fields: Fields = {"role": "user" if turn.role == "tool" else turn.role}
        if parts or form != "none":
            fields["content"] = write_content(parts, form)
        messages.append(restored(fields, turn.extra, PROTOCOL))
    return messages


def _place(block: Opaque) -> Any:
    return note(block.extra, PROTOCOL, "place") if block.protocol == PROTOCOL else None


def write_assistant(turn: Turn) -> Fields:
    """The one message of a model's turn; results, which would be messages of their own, have no place in it."""
    return _write_assistant(turn, [])


def _write_assistant(turn: Turn, apart: list[Fields]) -> Fields:
    """The message of a model's turn. What is a message of its own is put into `apart`."""
    fields: Fields = {"role": "assistant"}
    calls: list[Fields] = []
    parts: list[Fields] = []
    for block in turn.blocks:
        if isinstance(block, ToolCall):
            calls.append(write_call(block))
        elif isinstance(block, Thinking):
            field = note(block.extra, PROTOCOL, "field")
            if field is not None:
                fields[field] = fields.get(field, "") + block.text
        elif isinstance(block, ToolResult):
            apart.append(write_result(block))
        elif isinstance(block, Opaque) and (place := _place(block)) is not None:
            if place == "tool_calls":
                calls.append(block.value)
            elif place == "message":
                apart.append(block.value)
            elif place in _OWN_FIELDS:
                fields[place] = block.value[place]
        elif (part := write_part(block)) is not None:
            parts.append(part)
    _write_said(fields, parts, calls, turn.extra)
    return restored(fields, turn.extra, PROTOCOL)


def _write_said(fields: Fields, parts: list[Fields], calls: list[Fields], extra: Extra | None) -> None:
    """Content and calls; a message that has calls alone has null for content."""
    form = note(extra, PROTOCOL, "content")
    if parts or form != "none":
        has_nothing = not parts and bool(calls) and form != "parts"
        fields["content"] = None if has_nothing else write_content(parts, form, joined=True)
    if calls or note(extra, PROTOCOL, "tool_calls") is not None:
        fields["tool_calls"] = calls
