"""Messages of Cohere's chat protocol, both ways. Requests and replies share them.

Calls stand beside the content and come after it in a turn. A tool message is one result; what is left over of
it travels with the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from toolglot.conversation import Block, Media, Opaque, Role, Text, Thinking, ToolCall, ToolResult, Turn
from toolglot.jsontext import compact
from toolglot.protocols.cohere.form import (
    NO_CONTENT,
    PARTS,
    PLAIN_CALL,
    PLAN,
    PROTOCOL,
    THINKING,
    CohereCall,
    CohereMedia,
    CohereMessage,
    CohereText,
    CohereThinking,
)
from toolglot.protocols.fields import result_messages
from toolglot.protocols.fields.argument_text import object_of, read_arguments
from toolglot.protocols.fields.failed_result import content_with_error
from toolglot.protocols.fields.media import data_url, image_detail, read_data_url
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    leftover,
    one_of,
    optional,
    own_value,
    read_required,
    required,
    rest_of,
    type_error,
    with_extra,
    with_rest,
)

_MESSAGE = frozenset({"role", "content", "tool_calls", "tool_plan"})
_RESULT = frozenset({"role", "content", "tool_call_id"})
_CALL = frozenset({"id", "type", "function"})
_FUNCTION = frozenset({"name", "arguments"})
_TEXT = frozenset({"type", "text"})
_THINKING = frozenset({"type", "thinking"})
_IMAGE = frozenset({"type", "image_url"})
_URL = frozenset({"url"})
_DETAILED_URL = frozenset({"url", "detail"})
_DOCUMENT = frozenset({"type", "document"})
_DATA = frozenset({"data"})
_ROLES: Final[dict[str, Role]] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}

_TEXT_BESIDE_CALLS: Final = CohereMessage("text")
"""Beside calls, the text of others is a plan."""

Part = Text | Media | Opaque


def read_message(fields: Fields) -> Turn:
    role = one_of(fields, "role", _ROLES)
    content: Any = fields.get("content")
    form = NO_CONTENT if content is None else PARTS if type(content) is list else None
    if role == "tool":
        return Turn("tool", (_read_result(fields, content, form),))
    calls = optional(fields, "tool_calls", list)
    if calls and type(content) is str:
        form = _TEXT_BESIDE_CALLS
    if calls == []:
        form = CohereMessage(None if form is None else form.content, has_empty_calls=True)
    blocks = (*_read_content(content, _read_part), *_read_plan(fields))
    extra = leftover(fields, _MESSAGE, PROTOCOL)
    return Turn(role, (*blocks, *each(calls or (), _read_call, ".tool_calls")), extra=extra, form=form)


def _read_plan(fields: Fields) -> tuple[Text, ...]:
    plan = optional(fields, "tool_plan", str)
    return () if plan is None else (Text(plan, form=PLAN),)


def _read_content(content: Any, read: Callable[[Fields], Any]) -> tuple[Any, ...]:
    """A message's content, written as a string or as parts."""
    if content is None:
        return ()
    if type(content) is str:
        return (Text(content),)
    if type(content) is not list:
        raise type_error("a string or an array of parts", content, ".content")
    return tuple(each(content, read, ".content"))


def _read_result(fields: Fields, content: Any, form: CohereMessage | None) -> ToolResult:
    plain = content is None or type(content) is str
    return ToolResult(
        required(fields, "tool_call_id", str),
        content if plain else _read_content(content, _read_result_part),
        is_complete=True,
        extra=leftover(fields, _RESULT, PROTOCOL),
        form=form,
    )


def _read_result_part(fields: Fields) -> Part:
    """A part of a result: text or a document."""
    part = _read_part(fields)
    return part if isinstance(part, Text) else Opaque(PROTOCOL, fields, fields["type"])


def _read_part(fields: Fields) -> Part | Thinking:
    kind = required(fields, "type", str)
    reader = _READERS.get(kind)
    return Opaque(PROTOCOL, fields, kind) if reader is None else reader(fields)


def _text(fields: Fields) -> Text:
    return Text(required(fields, "text", str), extra=leftover(fields, _TEXT, PROTOCOL))


def _thinking(fields: Fields) -> Thinking:
    return Thinking(required(fields, "thinking", str), extra=leftover(fields, _THINKING, PROTOCOL), form=THINKING)


def _image(fields: Fields) -> Media:
    def read(image: Fields) -> tuple[str, str | None, Fields | None]:
        detail = image_detail(image)
        return required(image, "url", str), detail, rest_of(image, _URL if detail is None else _DETAILED_URL)

    url, detail, rest = read_required(fields, "image_url", read)
    extra, form = leftover(fields, _IMAGE, PROTOCOL), None if rest is None else CohereMedia(rest)
    inline = read_data_url(url)
    if inline is None:
        return Media("image", url=url, extra=extra, form=form, detail=detail)
    return Media("image", *inline, extra=extra, form=form, detail=detail)


def _document(fields: Fields) -> Text | Opaque:
    """A document is text for everyone else; here it stays one."""
    document = required(fields, "document", dict)
    data: Any = document.get("data")
    if type(data) is not str and type(data) is not dict:
        return Opaque(PROTOCOL, fields, "document")
    rest = rest_of(document, _DATA) or {}
    form = CohereText(document_rest=rest, document_data=data if type(data) is dict else None)
    text = data if type(data) is str else compact(data)
    return Text(text, extra=leftover(fields, _DOCUMENT, PROTOCOL), form=form)


def _read_call(fields: Fields) -> ToolCall:
    kind = optional(fields, "type", str)
    name, written, rest = read_required(
        fields,
        "function",
        lambda inner: (required(inner, "name", str), optional(inner, "arguments", str), rest_of(inner, _FUNCTION)),
    )
    arguments, raw, fixes = (None, None, ()) if written is None else read_arguments(written)
    form = None
    if kind != "function" or written is None or rest:
        form = CohereCall(None if kind == "function" else kind, kind is None, written is None, rest)
    id, extra = required(fields, "id", str), leftover(fields, _CALL, PROTOCOL)
    return ToolCall(id, name, arguments, raw_input=raw, extra=extra, argument_fixes=fixes, form=form)


_READERS: Final[dict[str, Callable[[Fields], Part | Thinking]]] = {
    "text": _text,
    "thinking": _thinking,
    "image_url": _image,
    "document": _document,
}


# --- writing ----------------------------------------------------------------------------------------


def write_turn(turn: Turn) -> list[Fields]:
    """A turn as messages: one for each result, and one for the rest if there is any."""
    return result_messages.write_turn(turn, (Text, Media, ToolCall), _write_result, write_message)


def write_message(turn: Turn, *, as_parts: bool = False) -> Fields:
    """The content of a turn without its results. Text alone is a string, unless parts came or are required."""
    fields: Fields = {"role": {"tool": "user", "developer": "system"}.get(turn.role, turn.role)}
    own = turn.form if type(turn.form) is CohereMessage else None
    form = None if own is None else own.content
    calls = turn.calls
    plans, blocks = _split_plan(turn.blocks, is_planned=bool(calls) and form is None)
    if plans:
        fields["tool_plan"] = "".join(plan.text for plan in plans)
    parts = _write_parts(blocks)
    if form is None and as_parts and (parts or not calls):
        form = "parts"
    texts = [block.text for block in blocks if isinstance(block, Text)]
    if form != "parts" and parts and len(parts) == len(texts):
        fields["content"] = result_messages.one_text(texts, turn.role)
    elif form == "parts" or parts:
        fields["content"] = parts
    elif form is None and not calls:
        fields["content"] = ""
    if calls or (own is not None and own.has_empty_calls):
        fields["tool_calls"] = [_write_call(call) for call in calls]
    return with_extra(fields, turn.extra, PROTOCOL)


def _split_plan(blocks: Iterable[Block], *, is_planned: bool) -> tuple[list[Text], list[Block]]:
    """The content besides calls, and the rest. A message cannot have both content and calls."""
    plans: list[Text] = []
    rest: list[Block] = []
    for block in blocks:
        if isinstance(block, Text) and (is_planned or is_plan(block)):
            plans.append(block)
        else:
            rest.append(block)
    return plans, rest


def is_plan(block: Text) -> bool:
    return type(block.form) is CohereText and block.form.is_plan


def _write_parts(blocks: Iterable[Block]) -> list[Fields]:
    """The blocks that content can hold."""
    return [part for block in blocks if (part := _write_part(block)) is not None]


def _write_part(block: Block) -> Fields | None:
    if isinstance(block, Text):
        return _write_text(block)
    if isinstance(block, Thinking):
        return _write_thinking(block)
    if isinstance(block, Media):
        return _write_image(block)
    return own_value(block, PROTOCOL)


def _write_thinking(block: Thinking) -> Fields | None:
    """The thinking of any model. What another provider does not show is not written."""
    if not block.text and type(block.form) is not CohereThinking:
        return None
    return with_extra({"type": "thinking", "thinking": block.text}, block.extra, PROTOCOL)


def _write_text(block: Text) -> Fields:
    form = block.form
    if type(form) is not CohereText or form.document_rest is None:
        return with_extra({"type": "text", "text": block.text}, block.extra, PROTOCOL)
    data = form.document_data
    written = data if data is not None and compact(data) == block.text else block.text
    document = with_rest({"data": written}, form.document_rest)
    return with_extra({"type": "document", "document": document}, block.extra, PROTOCOL)


def _write_image(block: Media) -> Fields | None:
    """An image, inline or by address. There is no part for other media."""
    url = block.url if block.data is None else data_url(block.media_type, block.data)
    if url is None or block.kind != "image":
        return None
    inner = {"url": url} if block.detail is None else {"url": url, "detail": block.detail}
    image = with_rest(inner, block.form.image_rest) if type(block.form) is CohereMedia else inner
    return with_extra({"type": "image_url", "image_url": image}, block.extra, PROTOCOL)


def _write_result(result: ToolResult) -> Fields:
    """A result without its images. There is no field for a failure, so the text says it."""
    fields: Fields = {"role": "tool", "tool_call_id": result.call_id}
    content = content_with_error(result)
    if isinstance(content, tuple):
        fields["content"] = _write_parts(part for part in content if not isinstance(part, Media))
    elif content is not None or type(result.form) is not CohereMessage or result.form.content != "none":
        fields["content"] = content or ""
    return with_extra(fields, result.extra, PROTOCOL)


def _write_call(call: ToolCall) -> Fields:
    form = call.form if type(call.form) is CohereCall else PLAIN_CALL
    function: Fields = {"name": call.name}
    if call.raw_input is not None and call.type != "custom":
        function["arguments"] = call.raw_input
    elif call.arguments is not None or not form.has_no_arguments:
        function["arguments"] = compact(object_of(call))
    fields: Fields = {"id": call.id, "function": with_rest(function, form.function_rest)}
    if not form.is_untyped:
        fields["type"] = "function" if form.type is None else form.type
    return with_extra(fields, call.extra, PROTOCOL)
