"""Content blocks of the Bedrock Converse protocol, both ways. Requests and replies share them.

A block is an object with one member that says what it is: `{"toolUse": {…}}`. What else stands beside that
member is kept in the note `block`. A block with none that is known, or with several, is carried as it came.

What holds words in another form (an answer with its citations, a document of text, a search result, words for a
guardrail) is text for everyone else; here it comes back as it was, which is the note `worded`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import Block, Extra, Media, Opaque, ServerTool, Text, Thinking, ToolCall, ToolResult
from toolglot.jsontext import compact
from toolglot.protocols.fields.argument_text import object_of
from toolglot.protocols.fields.failed_result import has_failed, said_content
from toolglot.protocols.fields.media import AUDIO_TYPES
from toolglot.protocols.fields.reading import (
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
_GUARDED = frozenset({"text"})
_IN_WORDS = frozenset({"text", "content", "source", "title", "name", "format"})
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


def words_of(fields: Fields) -> str | None:
    """What a block says that holds words in another form than as text: its title, where it is from, and its text.

    None for a block that holds none.
    """
    ((member, inner),) = fields.items()
    if type(inner) is not dict:
        return None
    if member == "citationsContent":
        return _joined(inner.get("content"), "")
    if member == "guardContent":
        return _joined([inner.get("text")], "")
    title, source = inner.get("name" if member == "document" else "title"), inner.get("source")
    said, origin = (_said_by(source), None) if member == "document" else (_joined(inner.get("content"), "\n"), source)
    if not said or not all(part is None or type(part) is str for part in (title, origin)):
        return None
    return "\n".join(part for part in (title, origin, said) if part)


def _said_by(source: Any) -> str | None:
    if type(source) is not dict or len(source) != 1:
        return None
    text = source.get("text")
    return text if type(text) is str else _joined(source.get("content"), "\n")


def _joined(parts: Any, between: str) -> str | None:
    """The texts of a list of them; None if it has anything else."""
    if type(parts) is not list:
        return None
    texts = [part["text"] for part in parts if type(part) is dict and type(part.get("text")) is str]
    return between.join(texts) if len(texts) == len(parts) else None


def _worded(member: str) -> Callable[[Fields], Block]:
    """Words in another form, with what is said about them; what does not hold any is carried as it came."""

    def read(fields: Fields) -> Block:
        words = words_of(fields) if len(fields) == 1 else None
        if words is None:
            return Opaque(PROTOCOL, fields, member)
        inner = fields[member]
        guarded = rest_of(inner["text"], _GUARDED) if member == "guardContent" else None
        extra = noted(leftover(inner, _IN_WORDS, PROTOCOL), PROTOCOL, worded=fields, inner=guarded)
        return Text(words, extra=extra)

    return read


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
            extra=noted(
                leftover(call, _TOOL_USE, PROTOCOL, 3),
                PROTOCOL,
                block=beside(fields, "toolUse"),
                no_id=True if call["toolUseId"] == "" else None,
            ),
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
            return _worded(kind)(fields)
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
    "citationsContent": _worded("citationsContent"),
    "searchResult": _worded("searchResult"),
    "guardContent": _worded("guardContent"),
}


# --- writing ----------------------------------------------------------------------------------------


def write_blocks(blocks: Iterable[Block]) -> list[Fields]:
    """The blocks that Converse has a place for."""
    return [fields for block in blocks if (fields := _write_block(block)) is not None]


def write_reply(blocks: Iterable[Block]) -> list[Fields]:
    """The same for a client, which wants an id on every call, and to which only Bedrock's signatures are shown."""
    return write_blocks(_for_client(blocks))


def _for_client(blocks: Iterable[Block]) -> Iterable[Block]:
    ordinal = 0
    for block in blocks:
        if isinstance(block, ToolCall):
            unnamed = not block.id and not note(block.extra, PROTOCOL, "no_id")
            yield replace(block, id=f"tooluse_{ordinal}") if unnamed else block
            ordinal += 1
        elif isinstance(block, Thinking) and note(block.extra, PROTOCOL, "reasoning") is None:
            yield replace(block, signature=None, redacted=None)
        else:
            yield block


def _write_block(block: Block) -> Fields | None:
    if isinstance(block, Text):
        return _write_text(block)
    if isinstance(block, ToolCall):
        fields = {"toolUseId": block.id, "name": block.name, "input": object_of(block)}
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
    worded: Fields | None = note(block.extra, PROTOCOL, "worded")
    if worded is not None:
        return worded if words_of(worded) == block.text else {"text": block.text}
    return restored({"text": block.text}, block.extra, PROTOCOL)


def _write_result(result: ToolResult) -> Fields:
    content = said_content(result)
    parts = (Text(content),) if isinstance(content, str) else content or ()
    fields: Fields = {"toolUseId": result.call_id, "content": write_blocks(parts)}
    status = "error" if has_failed(result) else note(result.extra, PROTOCOL, "status")
    if status is not None:
        fields["status"] = status
    return wrapped("toolResult", restored(fields, result.extra, PROTOCOL), result.extra)


def _write_thinking(block: Thinking) -> Fields | None:
    """What was thought, by whichever model; nothing where nothing is shown of it."""
    is_own = note(block.extra, PROTOCOL, "reasoning") is not None
    if not is_own and not block.text and block.redacted is None and block.signature is None:
        return None
    if block.redacted is not None and (is_own or not block.text):
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
