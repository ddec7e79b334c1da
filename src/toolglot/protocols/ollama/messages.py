"""Messages of Ollama's chat protocol, both ways. Requests and replies share them.

A message has a field for each kind of content, so a turn's blocks are in the order of the fields: thinking,
text, images, calls. A tool message is one result; what is left over of it travels with the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from toolglot.conversation import Block, Extra, Media, Opaque, Role, Text, Thinking, ToolCall, ToolResult, Turn
from toolglot.protocols.fields import result_messages
from toolglot.protocols.fields.argument_text import object_of
from toolglot.protocols.fields.failed_result import text_of, told_content
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    held,
    leftover,
    note,
    noted,
    one_of,
    optional,
    optional_texts,
    required,
    rest_of,
    restored,
    with_rest,
    without_empty,
)

PROTOCOL: Final = "ollama"

_MESSAGE = frozenset({"role", "content", "thinking", "images", "tool_calls"})
_RESULT = frozenset({"role", "content", "images", "tool_name", "tool_call_id"})
_CALL = frozenset({"id", "function"})
_FUNCTION = frozenset({"name", "arguments"})
_ROLES: Final[dict[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def _message_rest(fields: Fields, known: frozenset[str], form: str | None) -> Extra | None:
    """What is left over, empty values included.

    Content is the exception: it is always written, unless a note says that there was none, or null.
    """
    if form == "null":
        fields = {key: value for key, value in fields.items() if key != "content"}
    extra = leftover(fields, without_empty(fields, known) | {"content"}, PROTOCOL)
    return noted(extra, PROTOCOL, content=form)


def read_message(fields: Fields) -> Turn:
    role = one_of(fields, "role", _ROLES)
    content = optional(fields, "content", str)
    form = None if content is not None else "null" if "content" in fields else "none"
    if role == "tool":
        return Turn("tool", (_read_result(fields, content, _message_rest(fields, _RESULT, form)),))
    blocks: list[Block] = []
    thinking = optional(fields, "thinking", str)
    if thinking:
        blocks.append(Thinking(thinking))
    if content:
        blocks.append(Text(content))
    blocks += _read_images(fields)
    blocks += each(optional(fields, "tool_calls", list) or (), _read_call, ".tool_calls")
    return Turn(role, tuple(blocks), extra=_message_rest(fields, _MESSAGE, form))


def _read_images(fields: Fields) -> list[Media]:
    return [Media("image", data=data) for data in optional_texts(fields, "images")]


def _read_result(fields: Fields, content: str | None, extra: Extra | None) -> ToolResult:
    images = _read_images(fields)
    parts = ((Text(content),) if content else ()) + tuple(images)
    return ToolResult(
        optional(fields, "tool_call_id", str) or "",
        parts if images else content,
        name=optional(fields, "tool_name", str) or "",
        is_complete=True,
        extra=extra,
    )


def _read_call(fields: Fields) -> ToolCall:
    name, arguments, rest = held(
        fields,
        "function",
        lambda inner: (required(inner, "name", str), required(inner, "arguments", dict), rest_of(inner, _FUNCTION)),
    )
    extra = noted(leftover(fields, without_empty(fields, _CALL), PROTOCOL), PROTOCOL, function=rest)
    return ToolCall(optional(fields, "id", str) or "", name, arguments, extra=extra)


# --- writing ----------------------------------------------------------------------------------------


def write_turn(turn: Turn) -> list[Fields]:
    """A turn as messages: one for each result, and one for the rest if there is any."""
    return result_messages.write_turn(turn, (Text, Thinking, Media, ToolCall), _write_result, write_message)


def write_message(turn: Turn) -> Fields:
    """What a turn says, its results apart."""
    fields: Fields = {"role": {"tool": "user", "developer": "system"}.get(turn.role, turn.role)}
    texts = (block.text for block in turn.blocks if isinstance(block, Text))
    _write_content(fields, result_messages.one_text(texts, turn.role), turn.blocks, turn.extra)
    thinking = "".join(block.text for block in turn.blocks if isinstance(block, Thinking))
    if thinking:
        fields["thinking"] = thinking
    calls = [_write_call(call) for call in turn.calls]
    if calls:
        fields["tool_calls"] = calls
    return restored(fields, turn.extra, PROTOCOL)


def _write_content(
    fields: Fields, text: str, blocks: Iterable[Block | Text | Media | Opaque], extra: Extra | None
) -> None:
    """Text and inline images, for which alone there is a field. Ollama fetches nothing: an address is not written."""
    form = note(extra, PROTOCOL, "content")
    if text or form != "none":
        fields["content"] = text if text or form != "null" else None
    pictures = [block for block in blocks if isinstance(block, Media) and block.kind == "image"]
    images = [block.data for block in pictures if block.data is not None]
    if images:
        fields["images"] = images


def _write_result(result: ToolResult) -> Fields:
    """A result. There is no field for a failure, so that its text says it."""
    fields: Fields = {"role": "tool"}
    content = told_content(result)
    _write_content(fields, text_of(content), content if isinstance(content, tuple) else (), result.extra)
    if result.name:
        fields["tool_name"] = result.name
    if result.call_id and note(result.extra, PROTOCOL, "no_id") is None:
        fields["tool_call_id"] = note(result.extra, PROTOCOL, "own_id") or result.call_id
    return restored(fields, result.extra, PROTOCOL)


def _write_call(call: ToolCall) -> Fields:
    function = with_rest({"name": call.name, "arguments": object_of(call)}, call.extra, PROTOCOL, "function")
    has_id = call.id and note(call.extra, PROTOCOL, "no_id") is None
    fields: Fields = {"id": call.id, "function": function} if has_id else {"function": function}
    return restored(fields, call.extra, PROTOCOL)
