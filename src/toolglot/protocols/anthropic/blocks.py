"""Content blocks of the Anthropic Messages protocol, both ways. Requests and replies share them.

Documents and search results that are text are `Text`, which every other protocol can show. Its form keeps the
block that it was; as long as the text is what that block says, it returns as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from toolglot.conversation import (
    Block,
    Compaction,
    Media,
    Opaque,
    ResultPart,
    ServerTool,
    Text,
    Thinking,
    ToolCall,
    ToolChange,
    ToolReference,
    ToolResult,
)
from toolglot.protocols.anthropic.form import NOT_ERROR, PROTOCOL, AnthropicResult, AnthropicText
from toolglot.protocols.anthropic.tools import (
    ADDITION,
    REMOVAL,
    read_addition,
    read_found,
    read_reference,
    read_removal,
    write_change,
    write_reference,
)
from toolglot.protocols.anthropic.web_search import issuer_of, owned_citations
from toolglot.protocols.fields.argument_text import object_of
from toolglot.protocols.fields.failed_result import has_failed, result_content
from toolglot.protocols.fields.reading import (
    Fields,
    each_by_type,
    leftover,
    optional,
    own_value,
    read_required,
    require_all,
    required,
    type_error,
    with_extra,
)

_TEXT = frozenset({"type", "text"})
_THINKING = frozenset({"type", "thinking", "signature"})
_REDACTED = frozenset({"type", "data"})
_TOOL_USE = frozenset({"type", "id", "name", "input"})
_TOOL_USE_KINDS: Final = {"id": str, "name": str, "input": dict}
_TOOL_RESULT = frozenset({"type", "tool_use_id", "content", "is_error"})
_MEDIA = frozenset({"type", "source", "title"})
_SEARCH_RESULT = frozenset({"type", "source", "title", "content"})
COMPACTION: Final = ("content", "encrypted_content")
"""The fields of a compaction that hold its summary: as text, and as only its provider can read it."""
_SOURCES: Final = {
    "base64": frozenset({"type", "media_type", "data"}),
    "url": frozenset({"type", "url"}),
    "file": frozenset({"type", "file_id"}),
}

_Part = Text | Media | Opaque
Reader = Callable[[Fields], Block]


def read_content(content: Any, path: str = ".content", readers: dict[str, Reader] | None = None) -> tuple[Block, ...]:
    """A message's content, written as a string or as blocks."""
    if type(content) is str:
        return (Text(content),)
    if type(content) is not list:
        raise type_error("a string or an array of blocks", content, path)
    return tuple(each_by_type(content, readers or READERS, unknown, path))


def unknown(fields: Fields) -> Block:
    """A block of a type that only its provider knows: a tool of its own, or something to be carried."""
    name = required(fields, "type", str)
    if name == "server_tool_use" or name.endswith("_tool_use"):
        id = str(fields.get("id", ""))
        return ServerTool(issuer_of(id), "call", fields, str(fields.get("name", "")), id)
    if name.endswith("_tool_result"):
        id = str(fields.get("tool_use_id", ""))
        found = read_found(fields.get("content")) if name == "tool_search_tool_result" else ()
        return ServerTool(issuer_of(id), "result", fields, name, id, loaded=found)
    return Opaque(PROTOCOL, fields, name)


def _text(fields: Fields) -> Text:
    text = fields.get("text")
    if type(text) is not str:
        text = required(fields, "text", str)
    return Text(text) if len(fields) == 2 else Text(text, None, owned_citations(leftover(fields, _TEXT, PROTOCOL)))


def _thinking(fields: Fields) -> Thinking:
    return Thinking(
        required(fields, "thinking", str),
        signature=optional(fields, "signature", str),
        extra=leftover(fields, _THINKING, PROTOCOL),
    )


def _redacted(fields: Fields) -> Thinking:
    return Thinking(redacted=required(fields, "data", str), extra=leftover(fields, _REDACTED, PROTOCOL))


def _tool_use(fields: Fields) -> ToolCall:
    try:
        id, name, arguments = fields["id"], fields["name"], fields["input"]
    except KeyError:
        raise require_all(fields, _TOOL_USE_KINDS) from None
    if type(id) is not str or type(name) is not str or type(arguments) is not dict:
        raise require_all(fields, _TOOL_USE_KINDS)
    if len(fields) == 4:
        return ToolCall(id, name, arguments)
    return ToolCall(id, name, arguments, extra=leftover(fields, _TOOL_USE, PROTOCOL))


def _tool_result(fields: Fields) -> ToolResult:
    id, content = fields.get("tool_use_id"), fields.get("content")
    if type(id) is not str:
        id = required(fields, "tool_use_id", str)
    if content is not None and type(content) is not str:
        if type(content) is not list:
            raise type_error("a string or an array of blocks", content, ".content")
        content = _only_text(content) or tuple(each_by_type(content, _RESULT_READERS, _unknown_part, ".content"))
    if len(fields) == 3 and content is not None:
        return ToolResult(id, content, False, "", True)
    flag = optional(fields, "is_error", bool)
    extra = leftover(fields, _TOOL_RESULT, PROTOCOL, 2 + (content is not None) + (flag is not None))
    return ToolResult(id, content, bool(flag), "", True, extra=extra, form=NOT_ERROR if flag is False else None)


def _only_text(content: list[Any]) -> tuple[Text, ...] | None:
    """Content that is one text and no more, as nearly all is that is a list; None for any other."""
    part = content[0] if len(content) == 1 else None
    if type(part) is not dict or len(part) != 2 or part.get("type") != "text":
        return None
    text = part.get("text")
    return (Text(text),) if type(text) is str else None


def _unknown_part(fields: Fields) -> Opaque:
    """What a result holds that is neither text nor media."""
    return Opaque(PROTOCOL, fields, required(fields, "type", str))


def _compaction(fields: Fields) -> Compaction:
    """A summary of what came before it. Without content the provider failed to make one, and it says nothing."""
    found = {key: value for key in COMPACTION if type(value := fields.get(key)) is str}
    rest = {key: value for key, value in fields.items() if key != "type" and key not in found}
    return Compaction(
        found.get("content"), found.get("encrypted_content"), PROTOCOL, extra={PROTOCOL: rest} if rest else None
    )


def _media(kind: Any) -> Callable[[Fields], _Part]:
    def read(fields: Fields) -> _Part:
        name, extra = optional(fields, "title", str), leftover(fields, _MEDIA, PROTOCOL)

        def read_source(source: Fields) -> _Part:
            source_type = source.get("type")
            known = _SOURCES.get(source_type) if type(source_type) is str else None
            if known is None or not source.keys() <= known or None in source.values():
                return Opaque(PROTOCOL, fields, kind)
            return Media(
                kind,
                media_type=optional(source, "media_type", str) or "",
                data=required(source, "data", str) if source_type == "base64" else None,
                url=required(source, "url", str) if source_type == "url" else None,
                file_id=required(source, "file_id", str) if source_type == "file" else None,
                name=name,
                extra=extra,
            )

        return read_required(fields, "source", read_source)

    return read


_read_other_document: Final = _media("document")


def _document(fields: Fields) -> _Part:
    return _as_text(fields, _MEDIA) or _read_other_document(fields)


def _search_result(fields: Fields) -> _Part:
    return _as_text(fields, _SEARCH_RESULT) or Opaque(PROTOCOL, fields, "search_result")


def _as_text(fields: Fields, known: frozenset[str]) -> Text | None:
    """A document or a search result whose content is text; None for any other."""
    text = _text_of(fields)
    if text is None:
        return None
    block = {key: fields[key] for key in fields if key in known and fields[key] is not None}
    return Text(text, extra=leftover(fields, known, PROTOCOL), form=AnthropicText(block))


def _text_of(fields: Fields) -> str | None:
    """The title, the origin and the text of a document or a search result. None if it has no text."""
    title, source = fields.get("title"), fields.get("source")
    if title is not None and type(title) is not str:
        return None
    if type(source) is dict:
        text, origin = _source_text(source), None
    else:
        text, origin = _content_text(fields.get("content")), source
    if not text or not (origin is None or type(origin) is str):
        return None
    return "\n".join(part for part in (title, origin, text) if part)


def _source_text(source: Fields) -> str | None:
    source_type = source.get("type")
    if source_type == "text":
        data = source.get("data")
        return data if type(data) is str else None
    return _content_text(source.get("content")) if source_type == "content" else None


def _content_text(content: Any) -> str | None:
    """The text of content that is text alone."""
    if type(content) is str:
        return content
    if type(content) is not list:
        return None
    parts = [part for part in content if type(part) is dict and part.get("type") == "text"]
    texts = [part["text"] for part in parts if type(part.get("text")) is str]
    return "\n".join(texts) if len(texts) == len(content) else None


_PART_READERS: Final[dict[str, Callable[[Fields], _Part]]] = {
    "text": _text,
    "image": _media("image"),
    "document": _document,
    "search_result": _search_result,
}
_RESULT_READERS: Final[dict[str, Callable[[Fields], ResultPart]]] = {
    **_PART_READERS,
    "tool_reference": read_reference,
}
READERS: Final[dict[str, Reader]] = {
    **_PART_READERS,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "compaction": _compaction,
}
PROMPT_READERS: Final[dict[str, Reader]] = {**READERS, ADDITION: read_addition, REMOVAL: read_removal}
"""For system messages, which may add and remove tools."""


# --- writing ----------------------------------------------------------------------------------------


def write_blocks(blocks: Iterable[Block]) -> list[Fields]:
    """The blocks that this protocol can express; opaque blocks of other protocols are left out."""
    written: list[Fields] = []
    for block in blocks:
        if type(block) is ToolChange:
            written += write_change(block)
        elif (fields := write_block(block)) is not None:
            written.append(fields)
    return written


def write_block(block: Block) -> Fields | None:
    """A block; None if this protocol has none for it. A change of tools is written with those beside it."""
    return _WRITERS[type(block)](block)


def _write_text(block: Text) -> Fields:
    fields: Fields = {"type": "text", "text": block.text}
    form = block.form
    if type(form) is AnthropicText and _text_of(form.block) == block.text:
        fields = dict(form.block)
    return with_extra(fields, block.extra, PROTOCOL)


def _write_call(call: ToolCall) -> Fields:
    fields = {"type": "tool_use", "id": call.id, "name": call.name, "input": object_of(call)}
    return with_extra(fields, call.extra, PROTOCOL)


def _write_result(result: ToolResult) -> Fields:
    fields: Fields = {"type": "tool_result", "tool_use_id": result.call_id}
    content = result_content(result)
    if isinstance(content, tuple):
        fields["content"] = write_blocks(content)
    elif content is not None:
        fields["content"] = content
    elif result.error:
        fields["content"] = result.error
    if has_failed(result):
        fields["is_error"] = True
    elif type(result.form) is AnthropicResult:
        fields["is_error"] = False
    return with_extra(fields, result.extra, PROTOCOL)


def _write_thinking(block: Thinking) -> Fields:
    """Thinking with text is written as text; only thinking without is written as its encrypted data."""
    if block.redacted is not None and not block.text:
        return with_extra({"type": "redacted_thinking", "data": block.redacted}, block.extra, PROTOCOL)
    fields: Fields = {"type": "thinking", "thinking": block.text}
    if block.signature is not None:
        fields["signature"] = block.signature
    return with_extra(fields, block.extra, PROTOCOL)


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
    return with_extra(fields, block.extra, PROTOCOL)


def _write_compaction(block: Compaction) -> Fields | None:
    if block.protocol != PROTOCOL:
        return None
    fields: Fields = {"type": "compaction"}
    if block.summary is not None:
        fields["content"] = block.summary
    if block.data is not None:
        fields["encrypted_content"] = block.data
    return with_extra(fields, block.extra, PROTOCOL)


def _write_own(block: Block) -> Fields | None:
    return own_value(block, PROTOCOL)


_WRITERS: Final[dict[type, Callable[[Any], Fields | None]]] = {
    Text: _write_text,
    ToolCall: _write_call,
    ToolResult: _write_result,
    Thinking: _write_thinking,
    Media: _write_media,
    Opaque: _write_own,
    ServerTool: _write_own,
    Compaction: _write_compaction,
    ToolReference: write_reference,
    ToolChange: _write_own,
}
