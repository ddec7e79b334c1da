"""Content blocks of the Bedrock Converse protocol, both ways. Requests and replies share them.

A block is an object with one member that says what it is: `{"toolUse": {…}}`. What else is beside that member is kept
in the form. A block with no known member, or with several, is carried as it came.

An answer with its citations, a document of text, a search result and text for a guardrail are text for other
protocols. Here they come back as they were, from the form `BedrockText`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import Block, Media, Opaque, ServerTool, Text, Thinking, ToolCall, ToolResult
from toolglot.jsontext import compact
from toolglot.protocols.bedrock.form import (
    PLAIN_MEDIA,
    PLAIN_THINKING,
    PROTOCOL,
    SUCCESS,
    BedrockCall,
    BedrockJson,
    BedrockMedia,
    BedrockResult,
    BedrockText,
    BedrockThinking,
)
from toolglot.protocols.fields.argument_text import object_of
from toolglot.protocols.fields.failed_result import has_failed, result_content
from toolglot.protocols.fields.media import AUDIO_TYPES
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    leftover,
    optional,
    own_value,
    read_required,
    required,
    rest_of,
    with_extra,
    with_rest,
)

_TOOL_USE = frozenset({"toolUseId", "name", "input"})
_TOOL_RESULT = frozenset({"toolUseId", "content", "status"})
_REASONING = frozenset({"reasoningText", "redactedContent"})
_REASONING_TEXT = frozenset({"text", "signature"})
_MEDIA = frozenset({"format", "source"})
_DOCUMENT = _MEDIA | {"name"}
_SOURCES: Final = ({"bytes"}, {"s3Location"})
_GUARDED = frozenset({"text"})
_AS_TEXT = frozenset({"text", "content", "source", "title", "name", "format"})
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
    """What is beside a union's member."""
    return None if len(fields) == 1 else rest_of(fields, frozenset({member}))


def read_block(fields: Fields) -> Block:
    """A block, by the one member that it has."""
    members = [key for key, value in fields.items() if value is not None and key in _READERS]
    if len(members) != 1:
        return Opaque(PROTOCOL, fields, next(iter(fields), ""))
    return _READERS[members[0]](fields)


def text_of(fields: Fields) -> str | None:
    """The title, the origin and the text of a block that holds text, but is not a block `text`.

    None for a block without text.
    """
    member, inner = next(iter(fields.items())) if len(fields) == 1 else ("", None)
    if type(inner) is not dict:
        return None
    if member == "citationsContent":
        return _joined(inner.get("content"), "")
    if member == "guardContent":
        return _joined([inner.get("text")], "")
    title, source = inner.get("name" if member == "document" else "title"), inner.get("source")
    text, origin = (
        (_source_text(source), None) if member == "document" else (_joined(inner.get("content"), "\n"), source)
    )
    if not text or not all(part is None or type(part) is str for part in (title, origin)):
        return None
    return "\n".join(part for part in (title, origin, text) if part)


def _source_text(source: Any) -> str | None:
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


def _as_text(member: str) -> Callable[[Fields], Block]:
    """A reader of blocks that hold text; a block without text is carried as it came."""

    def read(fields: Fields) -> Block:
        text = text_of(fields)
        if text is None:
            return Opaque(PROTOCOL, fields, member)
        inner = fields[member]
        guarded = rest_of(inner["text"], _GUARDED) if member == "guardContent" else None
        return Text(text, extra=leftover(inner, _AS_TEXT, PROTOCOL), form=BedrockText(fields, guarded))

    return read


def _text(fields: Fields) -> Text:
    return Text(required(fields, "text", str), extra=leftover(fields, frozenset({"text"}), PROTOCOL))


def _tool_use(fields: Fields) -> Block:
    def read(call: Fields) -> Block:
        if call.get("type") == "server_tool_use":
            return ServerTool(PROTOCOL, "call", fields, str(call.get("name", "")), str(call.get("toolUseId", "")))
        id, rest = required(call, "toolUseId", str), beside(fields, "toolUse")
        return ToolCall(
            id,
            required(call, "name", str),
            required(call, "input", dict),
            extra=leftover(call, _TOOL_USE, PROTOCOL, 3),
            form=BedrockCall(rest, not id) if rest or not id else None,
        )

    return read_required(fields, "toolUse", read)


def _tool_result(fields: Fields) -> Block:
    def read(result: Fields) -> Block:
        kind = optional(result, "type", str)
        if kind is not None and kind != "tool_result":
            return ServerTool(PROTOCOL, "result", fields, kind, str(result.get("toolUseId", "")))
        status, rest = optional(result, "status", str), beside(fields, "toolResult")
        form = SUCCESS if status == "success" and not rest else None
        if form is None and (rest or (status is not None and status != "error")):
            form = BedrockResult(rest, None if status == "error" else status)
        return ToolResult(
            required(result, "toolUseId", str),
            tuple(each(required(result, "content", list), _read_result_part, ".content")),
            is_error=status == "error",
            is_complete=True,
            extra=leftover(result, _TOOL_RESULT, PROTOCOL, 2 + (status is not None)),
            form=form,
        )

    return read_required(fields, "toolResult", read)


def _read_result_part(fields: Fields) -> Text | Media | Opaque:
    """A part of a result. A JSON value is text for other protocols; its form keeps the value."""
    if fields.keys() == {"json"} and fields["json"] is not None:
        value = fields["json"]
        return Text(compact(value), form=BedrockJson(value))
    part = read_block(fields)
    return part if isinstance(part, Text | Media) else Opaque(PROTOCOL, fields, next(iter(fields), ""))


def _reasoning(fields: Fields) -> Block:
    def read(reasoning: Fields) -> Block:
        shown, hidden = reasoning.get("reasoningText"), reasoning.get("redactedContent")
        if (shown is None) == (hidden is None):
            return Opaque(PROTOCOL, fields, "reasoningContent")
        block_rest, rest = beside(fields, "reasoningContent"), rest_of(reasoning, _REASONING)
        form = BedrockThinking(block_rest, rest) if block_rest or rest else PLAIN_THINKING
        if hidden is not None:
            return Thinking(redacted=required(reasoning, "redactedContent", str), form=form)
        return read_required(reasoning, "reasoningText", lambda text: _reasoning_text(text, form))

    return read_required(fields, "reasoningContent", read)


def _reasoning_text(fields: Fields, form: BedrockThinking) -> Thinking:
    return Thinking(
        required(fields, "text", str),
        signature=optional(fields, "signature", str),
        extra=leftover(fields, _REASONING_TEXT, PROTOCOL),
        form=form,
    )


def _media(kind: Any) -> Callable[[Fields], Block]:
    known = _DOCUMENT if kind == "document" else _MEDIA

    def read_media(fields: Fields, media: Fields) -> Block:
        format = optional(media, "format", str)
        source = read_required(media, "source", _read_source)
        if source is None:
            return _as_text(kind)(fields)
        media_type = "" if format is None else _TYPES.get(kind, {}).get(format, f"{kind}/{format}")
        data, url, location = source
        name = optional(media, "name", str) if kind == "document" else None
        form = BedrockMedia(
            beside(fields, kind),
            location,
            format if format_of(media_type) != format else None,
            kind == "document" and name is None,
        )
        return Media(
            kind,
            media_type,
            data,
            url,
            name=name,
            extra=leftover(media, known, PROTOCOL),
            form=None if form == PLAIN_MEDIA else form,
        )

    return lambda fields: read_required(fields, kind, lambda media: read_media(fields, media))


def _read_source(source: Fields) -> tuple[str | None, str | None, Fields | None] | None:
    """Inline data or an address in S3, and the unknown fields of that address; None for anything else."""
    if source.keys() not in _SOURCES or None in source.values():
        return None
    if "bytes" in source:
        return required(source, "bytes", str), None, None
    return read_required(source, "s3Location", _read_location)


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
    "citationsContent": _as_text("citationsContent"),
    "searchResult": _as_text("searchResult"),
    "guardContent": _as_text("guardContent"),
}


# --- writing ----------------------------------------------------------------------------------------


def write_blocks(blocks: Iterable[Block]) -> list[Fields]:
    """The blocks that Converse can express."""
    return [fields for block in blocks if (fields := _write_block(block)) is not None]


def write_reply(blocks: Iterable[Block]) -> list[Fields]:
    """The same for a client, which wants an id on every call, and to which only Bedrock's signatures are shown."""
    return write_blocks(_for_client(blocks))


def _for_client(blocks: Iterable[Block]) -> Iterable[Block]:
    ordinal = 0
    for block in blocks:
        if isinstance(block, ToolCall):
            yield replace(block, id=f"tooluse_{ordinal}") if needs_id(block) else block
            ordinal += 1
        elif isinstance(block, Thinking) and type(block.form) is not BedrockThinking:
            yield replace(block, signature=None, redacted=None)
        else:
            yield block


def needs_id(call: ToolCall) -> bool:
    """Whether a call has no id. If it came like that, it stays like that."""
    return not call.id and not (type(call.form) is BedrockCall and call.form.has_empty_id)


def _write_block(block: Block) -> Fields | None:
    if isinstance(block, Text):
        return _write_text(block)
    if isinstance(block, ToolCall):
        fields = {"toolUseId": block.id, "name": block.name, "input": object_of(block)}
        call = {"toolUse": with_extra(fields, block.extra, PROTOCOL)}
        return with_rest(call, block.form.block_rest) if type(block.form) is BedrockCall else call
    if isinstance(block, ToolResult):
        return _write_result(block)
    if isinstance(block, Thinking):
        return _write_thinking(block)
    if isinstance(block, Media):
        return _write_media(block)
    return own_value(block, PROTOCOL)


def _write_text(block: Text) -> Fields:
    form = block.form
    if type(form) is BedrockJson and compact(form.value) == block.text:
        return {"json": form.value}
    if type(form) is BedrockText:
        return form.block if text_of(form.block) == block.text else {"text": block.text}
    return with_extra({"text": block.text}, block.extra, PROTOCOL)


def _write_result(result: ToolResult) -> Fields:
    content = result_content(result)
    parts = (Text(content),) if isinstance(content, str) else content or ()
    fields: Fields = {"toolUseId": result.call_id, "content": write_blocks(parts)}
    form = result.form if type(result.form) is BedrockResult else None
    status = "error" if has_failed(result) else None if form is None else form.status
    if status is not None:
        fields["status"] = status
    written = {"toolResult": with_extra(fields, result.extra, PROTOCOL)}
    return written if form is None else with_rest(written, form.block_rest)


def _write_thinking(block: Thinking) -> Fields | None:
    """Thinking of any model; None if nothing of it is shown."""
    form = block.form if type(block.form) is BedrockThinking else None
    if form is None and not block.text and block.redacted is None and block.signature is None:
        return None
    if block.redacted is not None and (form is not None or not block.text):
        fields: Fields = {"redactedContent": block.redacted}
    else:
        shown: Fields = {"text": block.text}
        if block.signature is not None:
            shown["signature"] = block.signature
        fields = {"reasoningText": with_extra(shown, block.extra, PROTOCOL)}
    if form is None:
        return {"reasoningContent": fields}
    return with_rest({"reasoningContent": with_rest(fields, form.reasoning_rest)}, form.block_rest)


def _write_media(block: Media) -> Fields | None:
    """Converse takes inline data and addresses in S3, and wants a name on every document."""
    form = block.form if type(block.form) is BedrockMedia else PLAIN_MEDIA
    if block.data is not None:
        source: Fields = {"bytes": block.data}
    elif block.url is not None and (form.location_rest is not None or block.url.startswith(_S3)):
        source = {"s3Location": with_rest({"uri": block.url}, form.location_rest)}
    else:
        return None
    kind = "document" if block.kind == "file" else block.kind
    fields: Fields = {"source": source}
    format = form.format or format_of(block.media_type)
    if format is not None:
        fields["format"] = format
    if kind == "document" and (block.name is not None or not form.has_no_name):
        fields["name"] = "document" if block.name is None else block.name
    return with_rest({kind: with_extra(fields, block.extra, PROTOCOL)}, form.block_rest)
