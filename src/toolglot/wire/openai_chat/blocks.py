"""Content parts, tool calls and tool messages of the Chat Completions protocol, both ways.

Objects that hold one of their own (`function` in a tool call, say) keep what was left over of the inner one in
a note with the name of its field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, TypeVar

import msgspec

from toolglot import arguments
from toolglot.canonical_json import ENVELOPE_DEPTH
from toolglot.conversation import Block, Extra, Media, Opaque, Text, ToolCall, ToolResult
from toolglot.errors import InputError
from toolglot.limits import DEEPEST, Limits
from toolglot.wire.reading import (
    ERROR_PREFIX,
    Fields,
    each,
    expected,
    inside,
    leftover,
    note,
    noted,
    optional,
    required,
    restored,
)

PROTOCOL: Final = "openai_chat"

Part = Text | Media | Opaque
ContentForm = Literal["text", "parts", "none"]
T = TypeVar("T")

_TEXT = frozenset({"type", "text"})
_AUDIO = frozenset({"data", "format"})
_FILE = frozenset({"file_id", "file_data", "filename"})
_URL = frozenset({"url"})
_FUNCTION = frozenset({"name", "arguments"})
_CUSTOM = frozenset({"name", "input"})
_TOOL_MESSAGE = frozenset({"role", "content", "tool_call_id", "name"})

_AUDIO_TYPES: Final = {"mp3": "audio/mpeg"}
_AUDIO_FORMATS: Final = {"audio/mpeg": "mp3", "audio/x-wav": "wav", "audio/wave": "wav"}

"""The protocol has no field for a tool's failure."""

_ARGUMENT_LIMITS: Final = Limits(max_depth=DEEPEST - ENVELOPE_DEPTH)
"""What is deeper could not be stored as an object; it stays text."""


# --- objects in objects -----------------------------------------------------------------------------


def held(fields: Fields, key: str, read: Callable[[Fields], T]) -> T:
    """The object in a field, read."""
    inner = required(fields, key, dict)
    try:
        return read(inner)
    except InputError as error:
        raise inside(error, f".{key}") from None


def rest_of(fields: Fields, known: frozenset[str]) -> Fields | None:
    """What is left over of an inner object; None if nothing is."""
    rest = leftover(fields, known, PROTOCOL)
    return rest[PROTOCOL] if rest else None


def with_rest(fields: Fields, extra: Extra | None, key: str) -> Fields:
    """An inner object with what was left over of it."""
    rest = note(extra, PROTOCOL, key)
    return restored(fields, {PROTOCOL: rest}, PROTOCOL) if rest else fields


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


def _from_data_url(url: str) -> tuple[str, str] | None:
    """The media type and the data of an address that holds them, if it comes back as the same address."""
    media_type, mark, data = url.removeprefix("data:").partition(";base64,")
    if not mark or not media_type or "," in media_type or not url.startswith("data:"):
        return None
    return media_type, data


def _by_address(kind: Literal["image", "video"], key: str) -> Callable[[Fields], Part]:
    outer = frozenset({"type", key})

    def media(url: str, extra: Extra | None) -> Media:
        inline = _from_data_url(url)
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
        media_type = _AUDIO_TYPES.get(format, f"audio/{format}")
        extra = noted(
            leftover(fields, frozenset({"type", "input_audio"}), PROTOCOL),
            PROTOCOL,
            input_audio=rest_of(inner, _AUDIO),
            format=None if _audio_format(media_type) == format else format,
        )
        return Media("audio", media_type, data=data, extra=extra)

    return held(fields, "input_audio", read)


def _audio_format(media_type: str) -> str:
    return _AUDIO_FORMATS.get(media_type, media_type.removeprefix("audio/"))


def _file(fields: Fields) -> Part:
    def read(inner: Fields) -> Part:
        written = optional(inner, "file_data", str)
        inline = _from_data_url(written) if written is not None else None
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
    return noted(
        leftover(fields, frozenset({"id", "type", key}), PROTOCOL),
        PROTOCOL,
        untyped=True if fields.get("type") is None else None,
        no_id=True if fields.get("id") is None else None,
        **notes,
    )


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
        extra = _call_extra(fields, "function", function=rest_of(inner, _FUNCTION), arguments=form)
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
    try:
        parsed = arguments.parse(written, limits=_ARGUMENT_LIMITS).arguments
    except InputError:
        return None, written, "raw"
    if _compact(parsed) == written:
        return parsed, None, None
    return parsed, written, "raw"


def _compact(value: Fields) -> str:
    return msgspec.json.encode(value).decode()


def read_result(fields: Fields) -> ToolResult:
    """A tool message. What else it says belongs to the result, which is all that it holds."""
    parts, form = read_content(fields)
    name = optional(fields, "name", str) or ""
    known = _TOOL_MESSAGE if name else _TOOL_MESSAGE - {"name"}
    content: Any = fields["content"] if form == "text" else parts if form == "parts" else None
    return ToolResult(
        optional(fields, "tool_call_id", str) or "",
        content,
        name=name,
        is_complete=True,
        extra=noted(
            leftover(fields, known, PROTOCOL),
            PROTOCOL,
            content=None if form == "text" else form,
            no_id=True if fields.get("tool_call_id") is None else None,
        ),
    )


# --- writing ----------------------------------------------------------------------------------------


def write_parts(blocks: Iterable[Block]) -> list[Fields]:
    """The blocks that are content and that the protocol has a part for."""
    return [part for block in blocks if (part := _write_part(block)) is not None]


def _write_part(block: Block) -> Fields | None:
    if isinstance(block, Text):
        return restored({"type": "text", "text": block.text}, block.extra, PROTOCOL)
    if isinstance(block, Media):
        return _write_media(block)
    if isinstance(block, Opaque) and block.protocol == PROTOCOL and note(block.extra, PROTOCOL, "place") is None:
        value: Fields = block.value
        return value
    return None


def _write_media(block: Media) -> Fields | None:
    if block.kind == "audio":
        return _write_audio(block)
    address = f"data:{block.media_type};base64,{block.data}" if block.data is not None else block.url
    if block.kind in ("image", "video") and address is not None:
        key = f"{block.kind}_url"
        is_bare = note(block.extra, PROTOCOL, "bare")
        inner: Any = address if is_bare else with_rest({"url": address}, block.extra, key)
        return restored({"type": key, key: inner}, block.extra, PROTOCOL)
    fields: Fields = {"file_id": block.file_id} if block.file_id is not None else {}
    if address is not None:
        fields["file_data"] = address if block.media_type or block.data is None else block.data
    if block.name is not None:
        fields["filename"] = block.name
    return restored({"type": "file", "file": with_rest(fields, block.extra, "file")}, block.extra, PROTOCOL)


def _write_audio(block: Media) -> Fields | None:
    if block.data is None:
        return None
    format = note(block.extra, PROTOCOL, "format") or _audio_format(block.media_type)
    inner = with_rest({"data": block.data, "format": format}, block.extra, "input_audio")
    return restored({"type": "input_audio", "input_audio": inner}, block.extra, PROTOCOL)


def write_content(parts: list[Fields], form: ContentForm | None, *, joined: bool = False) -> str | list[Fields]:
    """Parts as they were written before; as a string where that says the same."""
    if form != "parts" and (joined or len(parts) <= 1) and all(part.keys() == _TEXT for part in parts):
        return "".join(part["text"] for part in parts)
    return parts


def write_call(call: ToolCall) -> Fields:
    inner: Fields = {"name": call.name}
    if call.type == "custom":
        key = "custom"
        inner["input"] = call.raw_input if call.raw_input is not None else _compact(call.arguments or {})
    else:
        key = "function"
        _write_arguments(inner, call)
    if call.extra is None:
        return {"id": call.id, "type": key, key: inner}
    fields: Fields = {"id": call.id} if call.id or not note(call.extra, PROTOCOL, "no_id") else {}
    if not note(call.extra, PROTOCOL, "untyped"):
        fields["type"] = key
    fields[key] = with_rest(inner, call.extra, key)
    return restored(fields, call.extra, PROTOCOL)


def _write_arguments(fields: Fields, call: ToolCall) -> None:
    """Arguments as this protocol's model wrote them; those of another as the object that they mean."""
    form = note(call.extra, PROTOCOL, "arguments")
    if form == "object" and call.arguments is not None:
        fields["arguments"] = call.arguments
    elif call.raw_input is not None and (form == "raw" or call.arguments is None):
        fields["arguments"] = call.raw_input
    elif call.arguments is not None or form != "none":
        fields["arguments"] = _compact(call.arguments or {})


def write_result(result: ToolResult) -> Fields:
    """A result as a tool message."""
    form = note(result.extra, PROTOCOL, "content")
    fields: Fields = {"role": "tool"}
    if result.call_id or not note(result.extra, PROTOCOL, "no_id"):
        fields["tool_call_id"] = result.call_id
    if result.name:
        fields["name"] = result.name
    content = _result_content(result, form)
    if result.content is not None or result.is_error or form != "none":
        fields["content"] = content
    return restored(fields, result.extra, PROTOCOL)


def _result_content(result: ToolResult, form: ContentForm | None) -> str | list[Fields]:
    if result.content is None or isinstance(result.content, str):
        text = result.content or (result.error if result.is_error else None) or ""
        return _marked(text) if result.is_error else text
    parts = write_parts(result.content)
    if result.is_error:
        index = next((index for index, part in enumerate(parts) if part["type"] == "text"), None)
        if index is None:
            parts.insert(0, {"type": "text", "text": ERROR_PREFIX.rstrip()})
        else:
            parts[index] = {**parts[index], "text": _marked(parts[index]["text"])}
    return write_content(parts, form)


def _marked(text: str) -> str:
    return text if text.startswith(ERROR_PREFIX.rstrip()) else f"{ERROR_PREFIX}{text}"
