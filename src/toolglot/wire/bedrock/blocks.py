"""Content blocks of the Bedrock Converse protocol, both ways. Requests and replies share them.

A block is an object with one member that says what it is: `{"toolUse": {…}}`. What else stands beside that
member is kept in the note `block`. A block with none that is known, or with several, is carried as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from toolglot.conversation import Block, Extra, Media, Opaque, ServerTool, Text, Thinking, ToolCall, ToolResult
from toolglot.wire.argument_text import compact
from toolglot.wire.media import AUDIO_TYPES
from toolglot.wire.reading import (
    Fields,
    each,
    held,
    leftover,
    note,
    noted,
    optional,
    own_value,
    required,
    rest_of,
    restored,
    with_rest,
)

PROTOCOL: Final = "bedrock"

_TOOL_USE = frozenset({"toolUseId", "name", "input"})
_TOOL_RESULT = frozenset({"toolUseId", "content", "status"})
_REASONING = frozenset({"reasoningText", "redactedContent"})
_REASONING_TEXT = frozenset({"text", "signature"})
_MEDIA = frozenset({"format", "source"})
_DOCUMENT = _MEDIA | {"name"}
_SOURCES: Final = ({"bytes"}, {"s3Location"})
_URI = frozenset({"uri"})
_S3: Final = "s3://"
_TYPES: Final = {
    "document": {
        "pdf": "application/pdf",
        "csv": "text/csv",
        "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xls": "application/vnd.ms-excel",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "html": "text/html",
        "txt": "text/plain",
        "md": "text/markdown",
    },
    "audio": AUDIO_TYPES,
    "video": {"mkv": "video/x-matroska", "mov": "video/quicktime", "three_gp": "video/3gpp"},
}
_FORMATS = {media_type: format for formats in _TYPES.values() for format, media_type in formats.items()}
_FORMATS["image/jpg"] = "jpeg"


def beside(fields: Fields, member: str) -> Fields | None:
    """What stands beside a union's member."""
    return None if len(fields) == 1 else rest_of(fields, frozenset({member}))


def wrapped(member: str, value: Any, extra: Extra | None) -> Fields:
    """A union's member with what stood beside it."""
    return with_rest({member: value}, extra, PROTOCOL, "block")


def read_block(fields: Fields) -> Block:
    """A block, by the one member that it has."""
    members = [key for key, value in fields.items() if value is not None and key in _READERS]
    if len(members) != 1:
        return Opaque(PROTOCOL, fields, next(iter(fields), ""))
    return _READERS[members[0]](fields)


def _text(fields: Fields) -> Text:
    return Text(required(fields, "text", str), extra=leftover(fields, frozenset({"text"}), PROTOCOL))


def _tool_use(fields: Fields) -> Block:
    def read(call: Fields) -> Block:
        if call.get("type") == "server_tool_use":
            return ServerTool(PROTOCOL, "call", fields, str(call.get("name", "")), str(call.get("toolUseId", "")))
        return ToolCall(
            required(call, "toolUseId", str),
            required(call, "name", str),
            required(call, "input", dict),
            extra=noted(leftover(call, _TOOL_USE, PROTOCOL, 3), PROTOCOL, block=beside(fields, "toolUse")),
        )

    return held(fields, "toolUse", read)


def _tool_result(fields: Fields) -> Block:
    def read(result: Fields) -> Block:
        kind = optional(result, "type", str)
        if kind is not None and kind != "tool_result":
            return ServerTool(PROTOCOL, "result", fields, kind, str(result.get("toolUseId", "")))
        status = optional(result, "status", str)
        return ToolResult(
            required(result, "toolUseId", str),
            tuple(each(required(result, "content", list), _read_result_part, ".content")),
            is_error=status == "error",
            is_complete=True,
            extra=noted(
                leftover(result, _TOOL_RESULT, PROTOCOL, 2 + (status is not None)),
                PROTOCOL,
                block=beside(fields, "toolResult"),
                status=None if status == "error" else status,
            ),
        )

    return held(fields, "toolResult", read)


def _read_result_part(fields: Fields) -> Text | Media | Opaque:
    """A part of a result. A JSON value is text for everyone else; here it stays one."""
    if fields.keys() == {"json"} and fields["json"] is not None:
        value = fields["json"]
        return Text(compact(value), extra=noted(None, PROTOCOL, json=value))
    part = read_block(fields)
    return part if isinstance(part, Text | Media) else Opaque(PROTOCOL, fields, next(iter(fields), ""))


def _reasoning(fields: Fields) -> Block:
    def read(reasoning: Fields) -> Block:
        shown, hidden = reasoning.get("reasoningText"), reasoning.get("redactedContent")
        if (shown is None) == (hidden is None):
            return Opaque(PROTOCOL, fields, "reasoningContent")
        notes = {"block": beside(fields, "reasoningContent"), "reasoning": rest_of(reasoning, _REASONING) or {}}
        if hidden is not None:
            redacted = required(reasoning, "redactedContent", str)
            return Thinking(redacted=redacted, extra=noted(None, PROTOCOL, **notes))
        return held(reasoning, "reasoningText", lambda text: _reasoning_text(text, notes))

    return held(fields, "reasoningContent", read)


def _reasoning_text(fields: Fields, notes: Fields) -> Thinking:
    return Thinking(
        required(fields, "text", str),
        signature=optional(fields, "signature", str),
        extra=noted(leftover(fields, _REASONING_TEXT, PROTOCOL), PROTOCOL, **notes),
    )


def _media(kind: Any) -> Callable[[Fields], Block]:
    known = _DOCUMENT if kind == "document" else _MEDIA

    def read_media(fields: Fields, media: Fields) -> Block:
        format = optional(media, "format", str)
        source = held(media, "source", _read_source)
        if source is None:
            return Opaque(PROTOCOL, fields, kind)
        media_type = "" if format is None else _TYPES.get(kind, {}).get(format, f"{kind}/{format}")
        data, url, location = source
        name = optional(media, "name", str) if kind == "document" else None
        extra = noted(
            leftover(media, known, PROTOCOL),
            PROTOCOL,
            block=beside(fields, kind),
            location=location,
            format=format if format_of(media_type) != format else None,
            unnamed=True if kind == "document" and name is None else None,
        )
        return Media(kind, media_type, data, url, name=name, extra=extra)

    return lambda fields: held(fields, kind, lambda media: read_media(fields, media))


def _read_source(source: Fields) -> tuple[str | None, str | None, Fields | None] | None:
    """Inline data or an address in S3, and what else is said about that address; None for anything else."""
    if source.keys() not in _SOURCES or None in source.values():
        return None
    if "bytes" in source:
        return required(source, "bytes", str), None, None
    return held(source, "s3Location", _read_location)


def _read_location(location: Fields) -> tuple[None, str, Fields | None]:
    uri = required(location, "uri", str)
    return None, uri, rest_of(location, _URI) or (None if uri.startswith(_S3) else {})


def format_of(media_type: str) -> str | None:
    """What Converse calls a media type."""
    if not media_type:
        return None
    plain = media_type.partition(";")[0]
    return _FORMATS.get(plain, plain.rpartition("/")[2])


_READERS: Final[dict[str, Callable[[Fields], Block]]] = {
    "text": _text,
    "toolUse": _tool_use,
    "toolResult": _tool_result,
    "reasoningContent": _reasoning,
    "image": _media("image"),
    "document": _media("document"),
    "video": _media("video"),
    "audio": _media("audio"),
}


# --- writing ----------------------------------------------------------------------------------------


def write_blocks(blocks: Iterable[Block]) -> list[Fields]:
    """The blocks that Converse has a place for."""
    return [fields for block in blocks if (fields := _write_block(block)) is not None]


def _write_block(block: Block) -> Fields | None:
    if isinstance(block, Text):
        return _write_text(block)
    if isinstance(block, ToolCall):
        fields = {"toolUseId": block.id, "name": block.name, "input": block.arguments or {}}
        return wrapped("toolUse", restored(fields, block.extra, PROTOCOL), block.extra)
    if isinstance(block, ToolResult):
        return _write_result(block)
    if isinstance(block, Thinking):
        return _write_thinking(block)
    if isinstance(block, Media):
        return _write_media(block)
    return own_value(block, PROTOCOL)


def _write_text(block: Text) -> Fields:
    value = note(block.extra, PROTOCOL, "json")
    if value is not None and compact(value) == block.text:
        return {"json": value}
    return restored({"text": block.text}, block.extra, PROTOCOL)


def _write_result(result: ToolResult) -> Fields:
    content = (Text(result.content),) if isinstance(result.content, str) else result.content or ()
    fields: Fields = {"toolUseId": result.call_id, "content": write_blocks(content)}
    status = "error" if result.is_error else note(result.extra, PROTOCOL, "status")
    if status is not None:
        fields["status"] = status
    return wrapped("toolResult", restored(fields, result.extra, PROTOCOL), result.extra)


def _write_thinking(block: Thinking) -> Fields | None:
    """Thinking from elsewhere goes only with a signature: Converse refuses what is not signed."""
    rest: Fields | None = note(block.extra, PROTOCOL, "reasoning")
    if rest is None and block.signature is None:
        return None
    if block.redacted is not None:
        fields: Fields = {"redactedContent": block.redacted}
    else:
        shown: Fields = {"text": block.text}
        if block.signature is not None:
            shown["signature"] = block.signature
        fields = {"reasoningText": restored(shown, block.extra, PROTOCOL)}
    return wrapped("reasoningContent", with_rest(fields, block.extra, PROTOCOL, "reasoning"), block.extra)


def _write_media(block: Media) -> Fields | None:
    """Converse takes inline data and addresses in S3, and wants a name on every document."""
    location = note(block.extra, PROTOCOL, "location")
    if block.data is not None:
        source: Fields = {"bytes": block.data}
    elif block.url is not None and (location is not None or block.url.startswith(_S3)):
        source = {"s3Location": with_rest({"uri": block.url}, block.extra, PROTOCOL, "location")}
    else:
        return None
    kind = "document" if block.kind == "file" else block.kind
    fields: Fields = {"source": source}
    format = note(block.extra, PROTOCOL, "format") or format_of(block.media_type)
    if format is not None:
        fields["format"] = format
    if kind == "document" and (block.name is not None or not note(block.extra, PROTOCOL, "unnamed")):
        fields["name"] = "document" if block.name is None else block.name
    return wrapped(kind, restored(fields, block.extra, PROTOCOL), block.extra)
