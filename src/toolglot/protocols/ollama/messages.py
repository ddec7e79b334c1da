"""Messages of Ollama's chat protocol, both ways. Requests and replies share them.

A message has a field for each kind of content, so a turn's blocks are in the order of the fields: thinking,
text, images, calls. A tool message is one result; what is left over of it travels with the result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from toolglot.conversation import Block, Extra, Form, Media, Opaque, Role, Text, Thinking, ToolCall, ToolResult, Turn
from toolglot.protocols.fields import result_messages
from toolglot.protocols.fields.argument_text import object_of
from toolglot.protocols.fields.failed_result import content_with_error, text_of
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    leftover,
    one_of,
    optional,
    optional_texts,
    read_required,
    required,
    rest_of,
    with_extra,
    with_rest,
    without_empty,
)
from toolglot.protocols.ollama.form import NO_CONTENT, NULL_CONTENT, PROTOCOL, OllamaCall, OllamaMessage

_MESSAGE = frozenset({"role", "content", "thinking", "images", "tool_calls"})
_RESULT = frozenset({"role", "content", "images", "tool_name", "tool_call_id"})
_CALL = frozenset({"id", "function"})
_FUNCTION = frozenset({"name", "arguments"})
_ROLES: Final[dict[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def _message_rest(fields: Fields, known: frozenset[str]) -> Extra | None:
    """What is left over, empty values included.

    Content is the exception: it is always written, unless the form says that it was missing or null.
    """
    if fields.get("content", "") is None:
        fields = {key: value for key, value in fields.items() if key != "content"}
    return leftover(fields, without_empty(fields, known) | {"content"}, PROTOCOL)


def read_message(fields: Fields) -> Turn:
    role = one_of(fields, "role", _ROLES)
    content = optional(fields, "content", str)
    form = None if content is not None else NULL_CONTENT if "content" in fields else NO_CONTENT
    if role == "tool":
        return Turn("tool", (_read_result(fields, content, form),))
    blocks: list[Block] = []
    thinking = optional(fields, "thinking", str)
    if thinking:
        blocks.append(Thinking(thinking))
    if content:
        blocks.append(Text(content))
    blocks += _read_images(fields)
    blocks += each(optional(fields, "tool_calls", list) or (), _read_call, ".tool_calls")
    return Turn(role, tuple(blocks), extra=_message_rest(fields, _MESSAGE), form=form)


def _read_images(fields: Fields) -> list[Media]:
    return [Media("image", data=data) for data in optional_texts(fields, "images")]


def _read_result(fields: Fields, content: str | None, form: OllamaMessage | None) -> ToolResult:
    images = _read_images(fields)
    parts = ((Text(content),) if content else ()) + tuple(images)
    return ToolResult(
        optional(fields, "tool_call_id", str) or "",
        parts if images else content,
        name=optional(fields, "tool_name", str) or "",
        is_complete=True,
        extra=_message_rest(fields, _RESULT),
        form=form,
    )


def _read_call(fields: Fields) -> ToolCall:
    name, arguments, rest = read_required(
        fields,
        "function",
        lambda inner: (required(inner, "name", str), required(inner, "arguments", dict), rest_of(inner, _FUNCTION)),
    )
    extra, form = leftover(fields, without_empty(fields, _CALL), PROTOCOL), OllamaCall(rest) if rest else None
    return ToolCall(optional(fields, "id", str) or "", name, arguments, extra=extra, form=form)


# --- writing ----------------------------------------------------------------------------------------


def write_turn(turn: Turn) -> list[Fields]:
    """A turn as messages: one for each result, and one for the rest if there is any."""
    return result_messages.write_turn(turn, (Text, Thinking, Media, ToolCall), _write_result, write_message)


def write_message(turn: Turn) -> Fields:
    """The message of a turn without its results."""
    fields: Fields = {"role": {"tool": "user", "developer": "system"}.get(turn.role, turn.role)}
    texts = (block.text for block in turn.blocks if isinstance(block, Text))
    _write_content(fields, result_messages.one_text(texts, turn.role), turn.blocks, turn.form)
    thinking = "".join(block.text for block in turn.blocks if isinstance(block, Thinking))
    if thinking:
        fields["thinking"] = thinking
    calls = [_write_call(call) for call in turn.calls]
    if calls:
        fields["tool_calls"] = calls
    return with_extra(fields, turn.extra, PROTOCOL)


def _write_content(
    fields: Fields, text: str, blocks: Iterable[Block | Text | Media | Opaque], form: Form | None
) -> None:
    """Text and inline images, for which alone there is a field. Ollama fetches nothing: an address is not written."""
    missing = form.content if type(form) is OllamaMessage else None
    if text or missing != "none":
        fields["content"] = text if text or missing != "null" else None
    pictures = [block for block in blocks if isinstance(block, Media) and block.kind == "image"]
    images = [block.data for block in pictures if block.data is not None]
    if images:
        fields["images"] = images


def _write_result(result: ToolResult) -> Fields:
    """A result. There is no field for a failure, so the text says it."""
    fields: Fields = {"role": "tool"}
    content = content_with_error(result)
    _write_content(fields, text_of(content), content if isinstance(content, tuple) else (), result.form)
    if result.name:
        fields["tool_name"] = result.name
    if result.call_id and result.id_omitted is None:
        fields["tool_call_id"] = result.written_id or result.call_id
    return with_extra(fields, result.extra, PROTOCOL)


def _write_call(call: ToolCall) -> Fields:
    function: Fields = {"name": call.name, "arguments": object_of(call)}
    if type(call.form) is OllamaCall:
        function = with_rest(function, call.form.function_rest)
    has_id = call.id and call.id_omitted is None
    fields: Fields = {"id": call.id, "function": function} if has_id else {"function": function}
    return with_extra(fields, call.extra, PROTOCOL)
