"""Content blocks of the Anthropic Messages protocol, both ways. Requests and replies share them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from toolglot.conversation import Block, Media, Opaque, ServerTool, Text, Thinking, ToolCall, ToolResult
from toolglot.wire.reading import (
    Fields,
    each,
    expected,
    held,
    leftover,
    note,
    noted,
    optional,
    own_value,
    required,
    restored,
)

PROTOCOL: Final = "anthropic"

_TEXT = frozenset({"type", "text"})
_THINKING = frozenset({"type", "thinking", "signature"})
_REDACTED = frozenset({"type", "data"})
_TOOL_USE = frozenset({"type", "id", "name", "input"})
_TOOL_RESULT = frozenset({"type", "tool_use_id", "content", "is_error"})
_MEDIA = frozenset({"type", "source", "title"})
_SOURCES: Final = {
    "base64": frozenset({"type", "media_type", "data"}),
    "url": frozenset({"type", "url"}),
    "file": frozenset({"type", "file_id"}),
}


def read_content(content: Any, path: str = ".content") -> tuple[Block, ...]:
    """A message's content, written as a string or as blocks."""
    if type(content) is str:
        return (Text(content),)
    if type(content) is not list:
        raise expected("a string or an array of blocks", content, path)
    return tuple(each(content, read_block, path))


def read_block(fields: Fields) -> Block:
    kind = fields.get("type")
    reader = _READERS.get(kind) if type(kind) is str else None
    if reader is not None:
        return reader(fields)
    name = required(fields, "type", str)
    if name == "server_tool_use" or name.endswith("_tool_use"):
        return ServerTool(PROTOCOL, "call", fields, str(fields.get("name", "")), str(fields.get("id", "")))
    if name.endswith("_tool_result"):
        return ServerTool(PROTOCOL, "result", fields, name, str(fields.get("tool_use_id", "")))
    return Opaque(PROTOCOL, fields, name)


def _text(fields: Fields) -> Text:
    text = required(fields, "text", str)
    return Text(text) if len(fields) == 2 else Text(text, extra=leftover(fields, _TEXT, PROTOCOL))


def _thinking(fields: Fields) -> Thinking:
    return Thinking(
        required(fields, "thinking", str),
        signature=optional(fields, "signature", str),
        extra=leftover(fields, _THINKING, PROTOCOL),
    )


def _redacted(fields: Fields) -> Thinking:
    return Thinking(redacted=required(fields, "data", str), extra=leftover(fields, _REDACTED, PROTOCOL))


def _tool_use(fields: Fields) -> ToolCall:
    return ToolCall(
        required(fields, "id", str),
        required(fields, "name", str),
        required(fields, "input", dict),
        extra=None if len(fields) == 4 else leftover(fields, _TOOL_USE, PROTOCOL),
    )


def _tool_result(fields: Fields) -> ToolResult:
    content: Any = fields.get("content")
    if content is not None and type(content) is not str:
        if type(content) is not list:
            raise expected("a string or an array of blocks", content, ".content")
        content = tuple(each(content, _read_result_part, ".content"))
    flag = optional(fields, "is_error", bool)
    extra = leftover(fields, _TOOL_RESULT, PROTOCOL, 2 + (content is not None) + (flag is not None))
    if flag is False:
        extra = noted(extra, PROTOCOL, not_error=True)
    return ToolResult(required(fields, "tool_use_id", str), content, is_error=bool(flag), is_complete=True, extra=extra)


def _read_result_part(fields: Fields) -> Text | Media | Opaque:
    part = read_block(fields)
    return part if isinstance(part, Text | Media) else Opaque(PROTOCOL, fields, str(fields["type"]))


def _media(kind: Any) -> Callable[[Fields], Block]:
    def read(fields: Fields) -> Block:
        name, extra = optional(fields, "title", str), leftover(fields, _MEDIA, PROTOCOL)

        def read_source(source: Fields) -> Block:
            form = source.get("type")
            known = _SOURCES.get(form) if type(form) is str else None
            if known is None or not source.keys() <= known or None in source.values():
                return Opaque(PROTOCOL, fields, kind)
            return Media(
                kind,
                media_type=optional(source, "media_type", str) or "",
                data=required(source, "data", str) if form == "base64" else None,
                url=required(source, "url", str) if form == "url" else None,
                file_id=required(source, "file_id", str) if form == "file" else None,
                name=name,
                extra=extra,
            )

        return held(fields, "source", read_source)

    return read


_READERS: Final[dict[str, Callable[[Fields], Block]]] = {
    "text": _text,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "image": _media("image"),
    "document": _media("document"),
}


# --- writing ----------------------------------------------------------------------------------------


def write_blocks(blocks: Iterable[Block]) -> list[Fields]:
    """The blocks that this protocol has a form for; what is another protocol's own is left out."""
    return [fields for block in blocks if (fields := _write_block(block)) is not None]


def _write_block(block: Block) -> Fields | None:
    if isinstance(block, Text):
        return restored({"type": "text", "text": block.text}, block.extra, PROTOCOL)
    if isinstance(block, ToolCall):
        fields = {"type": "tool_use", "id": block.id, "name": block.name, "input": block.arguments or {}}
        return restored(fields, block.extra, PROTOCOL)
    if isinstance(block, ToolResult):
        return _write_result(block)
    if isinstance(block, Thinking):
        return _write_thinking(block)
    if isinstance(block, Media):
        return _write_media(block)
    return own_value(block, PROTOCOL)


def _write_result(result: ToolResult) -> Fields:
    fields: Fields = {"type": "tool_result", "tool_use_id": result.call_id}
    if isinstance(result.content, str):
        fields["content"] = result.content
    elif result.content is not None:
        fields["content"] = write_blocks(result.content)
    if result.is_error:
        fields["is_error"] = True
    elif note(result.extra, PROTOCOL, "not_error"):
        fields["is_error"] = False
    return restored(fields, result.extra, PROTOCOL)


def _write_thinking(block: Thinking) -> Fields:
    if block.redacted is not None:
        return restored({"type": "redacted_thinking", "data": block.redacted}, block.extra, PROTOCOL)
    fields: Fields = {"type": "thinking", "thinking": block.text}
    if block.signature is not None:
        fields["signature"] = block.signature
    return restored(fields, block.extra, PROTOCOL)


def _write_media(block: Media) -> Fields:
    if block.data is not None:
        source: Fields = {"type": "base64", "media_type": block.media_type, "data": block.data}
    elif block.url is not None:
        source = {"type": "url", "url": block.url}
    else:
        source = {"type": "file", "file_id": block.file_id}
    fields: Fields = {"type": "image" if block.kind == "image" else "document", "source": source}
    if block.name is not None and block.kind != "image":
        fields["title"] = block.name
    return restored(fields, block.extra, PROTOCOL)
