"""Content parts, tool calls and tool messages of the Chat Completions protocol, both ways.

Objects that hold one of their own (`function` in a tool call, say) keep what was left over of the inner one in
a note with the name of its field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

from toolglot.conversation import Block, Extra, Media, Opaque, Text, ToolCall, ToolResult
from toolglot.wire.argument_text import compact, read_arguments
from toolglot.wire.failed_result import told_content
from toolglot.wire.media import audio_format, audio_type, data_url, read_data_url
from toolglot.wire.reading import (
    Fields,
    each,
    expected,
    held,
    leftover,
    note,
    noted,
    optional,
    required,
    rest_of,
    restored,
    with_notes,
    with_rest,
)

PROTOCOL: Final = "openai_chat"

Part = Text | Media | Opaque
ContentForm = Literal["text", "parts", "none"]

_TEXT = frozenset({"type", "text"})
_AUDIO = frozenset({"data", "format"})
_FILE = frozenset({"file_id", "file_data", "filename"})
_URL = frozenset({"url"})
_FUNCTION = frozenset({"name", "arguments"})
_CUSTOM = frozenset({"name", "input"})
_CALL: Final = {key: frozenset({"id", "type", key}) for key in ("function", "custom")}
_TOOL_MESSAGE = frozenset({"role", "content", "tool_call_id", "name"})
_UNNAMED_TOOL_MESSAGE = _TOOL_MESSAGE - {"name"}


# --- content ----------------------------------------------------------------------------------------


def read_content(fields: Fields) -> tuple[tuple[Part, ...], ContentForm]:
    """A message's content, and whether it is a string, parts or nothing."""
    content: Any = fields.get("content")
    if content is None:
        return (), "none"
    if type(content) is str:
        return (Text(content),), "text"
    if type(content) is not list:
        raise expected("a string or an array of parts", content, ".content")
    return tuple(each(content, read_part, ".content")), "parts"


def read_part(fields: Fields) -> Part:
    kind = required(fields, "type", str)
    reader = _READERS.get(kind)
    return reader(fields) if reader is not None else Opaque(PROTOCOL, fields, kind)


def _text(fields: Fields) -> Text:
    return Text(required(fields, "text", str), extra=leftover(fields, _TEXT, PROTOCOL))


def _by_address(kind: Literal["image", "video"], key: str) -> Callable[[Fields], Part]:
    outer = frozenset({"type", key})

    def media(url: str, extra: Extra | None) -> Media:
        inline = read_data_url(url)
        if inline is None:
            return Media(kind, url=url, extra=extra)
        return Media(kind, inline[0], data=inline[1], extra=extra)

    def read(fields: Fields) -> Part:
        extra = leftover(fields, outer, PROTOCOL)
        if type(fields.get(key)) is str:
            return media(fields[key], noted(extra, PROTOCOL, bare=True))
        return held(
            fields,
            key,
            lambda inner: media(required(inner, "url", str), noted(extra, PROTOCOL, **{key: rest_of(inner, _URL)})),
        )

    return read


def _audio(fields: Fields) -> Part:
    def read(inner: Fields) -> Part:
        data, format = required(inner, "data", str), required(inner, "format", str)
        if ":" in data:  # an address, which some hosts take
            return Opaque(PROTOCOL, fields, "input_audio")
        media_type = audio_type(format)
        extra = noted(
            leftover(fields, frozenset({"type", "input_audio"}), PROTOCOL),
            PROTOCOL,
            input_audio=rest_of(inner, _AUDIO),
            format=None if audio_format(media_type) == format else format,
        )
        return Media("audio", media_type, data=data, extra=extra)

    return held(fields, "input_audio", read)


def _file(fields: Fields) -> Part:
    def read(inner: Fields) -> Part:
        written = optional(inner, "file_data", str)
        inline = read_data_url(written) if written is not None else None
        is_address = inline is None and written is not None and ":" in written
        return Media(
            "file",
            inline[0] if inline else "",
            data=inline[1] if inline else None if is_address else written,
            url=written if is_address else None,
            file_id=optional(inner, "file_id", str),
            name=optional(inner, "filename", str),
            extra=noted(leftover(fields, frozenset({"type", "file"}), PROTOCOL), PROTOCOL, file=rest_of(inner, _FILE)),
        )

    return held(fields, "file", read)


_READERS: Final[dict[str, Callable[[Fields], Part]]] = {
    "text": _text,
    "image_url": _by_address("image", "image_url"),
    "video_url": _by_address("video", "video_url"),
    "input_audio": _audio,
    "file": _file,
}


# --- tool calls and tool messages -------------------------------------------------------------------


def read_call(fields: Fields) -> ToolCall | Opaque:
    """A call as an assistant message lists it. Some hosts leave out its type or its id."""
    kind = optional(fields, "type", str)
    if kind == "custom":
        return _custom_call(fields)
    if kind == "function" or (kind is None and "function" in fields):
        return _function_call(fields)
    return Opaque(PROTOCOL, fields, required(fields, "type", str), placed("tool_calls"))


def placed(place: str) -> Extra:
    """A note that says where in a message a block stood that is no part of its content."""
    return {PROTOCOL: {"~place": place}}


def _call_extra(fields: Fields, key: str, **notes: Any) -> Extra | None:
    untyped, no_id = fields.get("type") is None, fields.get("id") is None
    if untyped:
        notes["untyped"] = True
    if no_id:
        notes["no_id"] = True
    return with_notes(leftover(fields, _CALL[key], PROTOCOL, 3 - untyped - no_id), PROTOCOL, notes)


def _custom_call(fields: Fields) -> ToolCall:
    id = optional(fields, "id", str) or ""

    def read(inner: Fields) -> ToolCall:
        return ToolCall(
            id,
            required(inner, "name", str),
            type="custom",
            raw_input=required(inner, "input", str),
            extra=_call_extra(fields, "custom", custom=rest_of(inner, _CUSTOM)),
        )

    return held(fields, "custom", read)


def _function_call(fields: Fields) -> ToolCall:
    id = optional(fields, "id", str) or ""

    def read(inner: Fields) -> ToolCall:
        parsed, raw, form = _read_arguments(inner)
        rest = rest_of(inner, _FUNCTION, 1 + (form != "none"))
        extra = _call_extra(fields, "function", function=rest, arguments=form)
        return ToolCall(id, required(inner, "name", str), parsed, raw_input=raw, extra=extra)

    return held(fields, "function", read)


def _read_arguments(fields: Fields) -> tuple[Fields | None, str | None, str | None]:
    """The object, the text where the object does not say it all, and how they were written."""
    written: Any = fields.get("arguments")
    if written is None:
        return None, None, "none"
    if type(written) is dict:
        return written, None, "object"
    if type(written) is not str:
        raise expected("a string", written, ".arguments")
    parsed, raw = read_arguments(written)
    return parsed, raw, None if raw is None else "raw"


def read_result(fields: Fields) -> ToolResult:
    """A tool message. What else it says belongs to the result, which is all that it holds."""
    parts, form = read_content(fields)
    name, id = optional(fields, "name", str), optional(fields, "tool_call_id", str)
    known = _TOOL_MESSAGE if name else _UNNAMED_TOOL_MESSAGE
    read = 1 + bool(name) + (id is not None) + (form != "none")
    content: Any = fields["content"] if form == "text" else parts if form == "parts" else None
    return ToolResult(
        id or "",
        content,
        name=name or "",
        is_complete=True,
        extra=noted(
            leftover(fields, known, PROTOCOL, read),
            PROTOCOL,
            content=None if form == "text" else form,
            no_id=True if id is None else None,
        ),
    )


# --- writing ----------------------------------------------------------------------------------------


def write_parts(blocks: Iterable[Block]) -> list[Fields]:
    """The blocks that are content and that the protocol has a part for."""
    return [part for block in blocks if (part := write_part(block)) is not None]


def write_part(block: Block) -> Fields | None:
    if isinstance(block, Text):
        fields: Fields = {"type": "text", "text": block.text}
        return restored(fields, block.extra, PROTOCOL) if block.extra else fields
    if isinstance(block, Media):
        return _write_media(block)
    if isinstance(block, Opaque) and block.protocol == PROTOCOL and note(block.extra, PROTOCOL, "place") is None:
        value: Fields = block.value
        return value
    return None


def _write_media(block: Media) -> Fields | None:
    if block.kind == "audio":
        return _write_audio(block)
    address = data_url(block.media_type, block.data) if block.data is not None else block.url
    if block.kind in ("image", "video") and address is not None:
        key = f"{block.kind}_url"
        is_bare = note(block.extra, PROTOCOL, "bare")
        inner: Any = address if is_bare else with_rest({"url": address}, block.extra, PROTOCOL, key)
        return restored({"type": key, key: inner}, block.extra, PROTOCOL)
    fields: Fields = {"file_id": block.file_id} if block.file_id is not None else {}
    if address is not None:
        fields["file_data"] = address if block.media_type or block.data is None else block.data
    if block.name is not None:
        fields["filename"] = block.name
    return restored({"type": "file", "file": with_rest(fields, block.extra, PROTOCOL, "file")}, block.extra, PROTOCOL)


def _write_audio(block: Media) -> Fields | None:
    if block.data is None:
        return None
    format = note(block.extra, PROTOCOL, "format") or audio_format(block.media_type)
    inner = with_rest({"data": block.data, "format": format}, block.extra, PROTOCOL, "input_audio")
    return restored({"type": "input_audio", "input_audio": inner}, block.extra, PROTOCOL)


def write_content(parts: list[Fields], form: ContentForm | None, *, joined: bool = False) -> str | list[Fields]:
    """Parts as they were written before; as a string where that says the same."""
    if form != "parts" and (joined or len(parts) <= 1) and all(map(_is_plain, parts)):
        return "".join([part["text"] for part in parts])
    return parts


def _is_plain(part: Fields) -> bool:
    return len(part) == 2 and "type" in part and "text" in part


def write_call(call: ToolCall) -> Fields:
    inner: Fields = {"name": call.name}
    if call.type == "custom":
        key = "custom"
        inner["input"] = call.raw_input if call.raw_input is not None else compact(call.arguments or {})
    else:
        key = "function"
        _write_arguments(inner, call)
    if call.extra is None:
        return {"id": call.id, "type": key, key: inner}
    fields: Fields = {"id": call.id} if call.id or not note(call.extra, PROTOCOL, "no_id") else {}
    if not note(call.extra, PROTOCOL, "untyped"):
        fields["type"] = key
    fields[key] = with_rest(inner, call.extra, PROTOCOL, key)
    return restored(fields, call.extra, PROTOCOL)


def _write_arguments(fields: Fields, call: ToolCall) -> None:
    """Arguments as this protocol's model wrote them; those of another as the object that they mean."""
    form = note(call.extra, PROTOCOL, "arguments") if call.extra else None
    if form == "object" and call.arguments is not None:
        fields["arguments"] = call.arguments
    elif call.raw_input is not None and (form == "raw" or call.arguments is None):
        fields["arguments"] = call.raw_input
    elif call.arguments is not None or form != "none":
        fields["arguments"] = compact(call.arguments or {})


def write_result(result: ToolResult) -> Fields:
    """A result as a tool message."""
    form = note(result.extra, PROTOCOL, "content") if result.extra else None
    fields: Fields = {"role": "tool"}
    if result.call_id or not note(result.extra, PROTOCOL, "no_id"):
        fields["tool_call_id"] = result.call_id
    if result.name:
        fields["name"] = result.name
    content = told_content(result)
    if isinstance(content, tuple):
        fields["content"] = write_content(write_parts(content), form)
    elif content is not None or form != "none":
        fields["content"] = content or ""
    return restored(fields, result.extra, PROTOCOL)
