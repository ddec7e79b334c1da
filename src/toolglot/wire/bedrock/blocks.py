"""Content blocks of the Bedrock Converse protocol, both ways. Requests and replies share them.

A block is an object with one member that says what it is: `{"toolUse": {…}}`. What else stands beside that
member is kept in the note `block`. A block with none that is known, or with several, is carried as it came.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from toolglot.conversation import Block, Extra, Media, Opaque, ServerTool, Text, Thinking, ToolCall, ToolResult
from toolglot.errors import InputError
from toolglot.wire.reading import Fields, each, inside, leftover, note, noted, optional, required, restored

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
    "audio": {"mp3": "audio/mpeg"},
    "video": {"mkv": "video/x-matroska", "mov": "video/quicktime", "three_gp": "video/3gpp"},
}
_FORMATS = {media_type: format for formats in _TYPES.values() for format, media_type in formats.items()}
_FORMATS["image/jpg"] = "jpeg"


def beside(fields: Fields, member: str) -> Fields | None:
    """What stands beside a union's member."""
    rest = leftover(fields, frozenset({member}), PROTOCOL)
    return rest[PROTOCOL] if rest else None


def wrapped(member: str, value: Any, extra: Extra | None) -> Fields:
    """A union's member with what stood beside it."""
    return restored({member: value}, {PROTOCOL: note(extra, PROTOCOL, "block") or {}}, PROTOCOL)


def read_block(fields: Fields) -> Block:
    """A block, by the one member that it has."""
    members = [key for key, value in fields.items() if value is not None and key in _READERS]
    if len(members) != 1:
        return Opaque(PROTOCOL, fields, next(iter(fields), ""))
    return _READERS[members[0]](fields)


def _text(fields: Fields) -> Text:
    return Text(required(fields, "text", str), extra=leftover(fields, frozenset({"text"}), PROTOCOL))


def _tool_use(fields: Fields) -> Block:
    call = required(fields, "toolUse", dict)
    try:
        if call.get("type") == "server_tool_use":
            return ServerTool(PROTOCOL, "call", fields, str(call.get("name", "")), str(call.get("toolUseId", "")))
        return ToolCall(
            required(call, "toolUseId", str),
            required(call, "name", str),
            required(call, "input", dict),
            extra=noted(leftover(call, _TOOL_USE, PROTOCOL), PROTOCOL, block=beside(fields, "toolUse")),
        )
    except InputError as error:
        raise inside(error, ".toolUse") from None


def _tool_result(fields: Fields) -> Block:
    result = required(fields, "toolResult", dict)
    try:
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
                leftover(result, _TOOL_RESULT, PROTOCOL),
                PROTOCOL,
                block=beside(fields, "toolResult"),
                status=None if status == "error" else status,
            ),
        )
    except InputError as error:
        raise inside(error, ".toolResult") from None


def _read_result_part(fields: Fields) -> Text | Media | Opaque:
    """A part of a result. A JSON value is text for everyone else; here it stays one."""
    if fields.keys() == {"json"} and fields["json"] is not None:
        value = fields["json"]
        return Text(compact(value), extra=noted(None, PROTOCOL, json=value))
    part = read_block(fields)
    return part if isinstance(part, Text | Media) else Opaque(PROTOCOL, fields, next(iter(fields), ""))


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _reasoning(fields: Fields) -> Block:
    reasoning = required(fields, "reasoningContent", dict)
    shown, hidden = reasoning.get("reasoningText"), reasoning.get("redactedContent")
    if (shown is None) == (hidden is None):
        return Opaque(PROTOCOL, fields, "reasoningContent")
    rest = leftover(reasoning, _REASONING, PROTOCOL)
    notes = {"block": beside(fields, "reasoningContent"), "reasoning": rest[PROTOCOL] if rest else {}}
    try:
        if hidden is not None:
            redacted = required(reasoning, "redactedContent", str)
            return Thinking(redacted=redacted, extra=noted(None, PROTOCOL, **notes))
        return _reasoning_text(required(reasoning, "reasoningText", dict), notes)
    except InputError as error:
        raise inside(error, ".reasoningContent") from None


def _reasoning_text(fields: Fields, notes: Fields) -> Thinking:
    try:
        return Thinking(
            required(fields, "text", str),
            signature=optional(fields, "signature", str),
            extra=noted(leftover(fields, _REASONING_TEXT, PROTOCOL), PROTOCOL, **notes),
        )
    except InputError as error:
        raise inside(error, ".reasoningText") from None


def _media(kind: Any) -> Callable[[Fields], Block]:
    known = _DOCUMENT if kind == "document" else _MEDIA

    def read(fields: Fields) -> Block:
        media = required(fields, kind, dict)
        try:
            source = required(media, "source", dict)
            format = optional(media, "format", str)
            if source.keys() not in _SOURCES or None in source.values():
                return Opaque(PROTOCOL, fields, kind)
            media_type = "" if format is None else _TYPES.get(kind, {}).get(format, f"{kind}/{format}")
            data, url, location = _read_source(source)
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
        except InputError as error:
            raise inside(error, f".{kind}") from None

    return read


def _read_source(source: Fields) -> tuple[str | None, str | None, Fields | None]:
    """Inline data or an address in S3, and what else is said about that address."""
    try:
        if "bytes" in source:
            return required(source, "bytes", str), None, None
        location = required(source, "s3Location", dict)
        try:
            rest, uri = leftover(location, _URI, PROTOCOL), required(location, "uri", str)
            return None, uri, rest[PROTOCOL] if rest else None if uri.startswith(_S3) else {}
        except InputError as error:
            raise inside(error, ".s3Location") from None
    except InputError as error:
        raise inside(error, ".source") from None


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
    value: Fields | None = block.value if block.protocol == PROTOCOL else None
    return value


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
    return wrapped("reasoningContent", restored(fields, {PROTOCOL: rest or {}}, PROTOCOL), block.extra)


def _write_media(block: Media) -> Fields | None:
    """Converse takes inline data and addresses in S3, and wants a name on every document."""
    location = note(block.extra, PROTOCOL, "location")
    if block.data is not None:
        source: Fields = {"bytes": block.data}
    elif block.url is not None and (location is not None or block.url.startswith(_S3)):
        source = {"s3Location": restored({"uri": block.url}, {PROTOCOL: location or {}}, PROTOCOL)}
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
