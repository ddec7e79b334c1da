"""Content parts, tool calls and tool messages of the Chat Completions protocol, both ways.

The forms (`form.py`) keep unknown fields of inner objects, as of `function` in a tool call. Mistral's chunks are parts
too: some have as a plain value what others have in an object. A refusal is a text, so that every client can show it;
its form says what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from toolglot.conversation import Block, Extra, Form, Media, Opaque, Text, Thinking, ToolCall, ToolResult
from toolglot.jsontext import compact
from toolglot.protocols.fields.argument_text import read_arguments
from toolglot.protocols.fields.failed_result import content_with_error
from toolglot.protocols.fields.media import (
    audio_format,
    audio_type,
    audio_type_of,
    data_url,
    image_detail,
    read_data_url,
)
from toolglot.protocols.fields.reading import (
    Fields,
    each_by_type,
    leftover,
    optional,
    read_required,
    required,
    rest_of,
    type_error,
    with_extra,
    with_rest,
)
from toolglot.protocols.openai_chat.form import (
    BARE,
    DOCUMENT_URL,
    PROTOCOL,
    RAW_ARGUMENTS,
    REFUSAL_PART,
    ChatCall,
    ChatMedia,
    ChatOpaque,
    ChatResult,
    ChatText,
    ChatThinking,
    ContentForm,
)

FUNCTION_CALL: Final = "function_call"
"""The field of the one call of a message as it was before there were tools."""

Part = Text | Media | Opaque

_TEXT = frozenset({"type", "text"})
_REFUSAL = frozenset({"type", "refusal"})
_THINKING = frozenset({"type", "thinking", "signature"})
_DOCUMENT = frozenset({"type", "document_url", "document_name"})
_AUDIO = frozenset({"data", "format"})
_FILE = frozenset({"file_id", "file_data", "filename"})
_URL = frozenset({"url"})
_DETAILED_URL = frozenset({"url", "detail"})
_FUNCTION = frozenset({"name", "arguments"})
_CUSTOM = frozenset({"name", "input"})
_CALL: Final = {key: frozenset({"id", "type", key}) for key in ("function", "custom")}
_TOOL_MESSAGE = frozenset({"role", "content", "tool_call_id", "name"})
_UNNAMED_TOOL_MESSAGE = _TOOL_MESSAGE - {"name"}


# --- content ----------------------------------------------------------------------------------------


def read_content(fields: Fields) -> tuple[tuple[Part, ...], ContentForm]:
    """A message's content, and whether it is a string, parts or nothing."""
    return _read_content(fields, _READERS)


def read_assistant_content(fields: Fields) -> tuple[tuple[Part | Thinking, ...], ContentForm]:
    """The content of an assistant message, which may hold parts with thinking."""
    return _read_content(fields, _ASSISTANT_READERS)


def _read_content(fields: Fields, readers: Mapping[str, Callable[[Fields], Any]]) -> tuple[Any, ContentForm]:
    content: Any = fields.get("content")
    if content is None:
        return (), "none"
    if type(content) is str:
        return (Text(content),), "text"
    if type(content) is not list:
        raise type_error("a string or an array of parts", content, ".content")
    return tuple(each_by_type(content, readers, _unknown, ".content")), "parts"


def _unknown(fields: Fields) -> Opaque:
    return Opaque(PROTOCOL, fields, required(fields, "type", str))


def _text(fields: Fields) -> Text:
    return Text(required(fields, "text", str), extra=leftover(fields, _TEXT, PROTOCOL))


def _refusal(fields: Fields) -> Text:
    extra = leftover(fields, _REFUSAL, PROTOCOL)
    return Text(required(fields, "refusal", str), extra=extra, form=REFUSAL_PART, is_refusal=True)


def _thinking(fields: Fields) -> Thinking | Opaque:
    """Mistral's chunk of thinking, which holds parts."""
    parts, signature = fields.get("thinking"), fields.get("signature")
    if type(parts) is not list or not (signature is None or type(signature) is str):
        return _unknown(fields)
    extra = leftover(fields, _THINKING, PROTOCOL)
    return Thinking(_thought(parts), signature, extra=extra, form=ChatThinking(chunk=parts))


def _thought(parts: list[Any]) -> str:
    texts = [part.get("text") for part in parts if type(part) is dict]
    return "".join(text for text in texts if type(text) is str)


def _by_address(kind: Literal["image", "video"], key: str) -> Callable[[Fields], Part]:
    outer = frozenset({"type", key})

    def media(fields: Fields, url: str, form: Form | None, detail: str | None = None) -> Media:
        extra, inline = leftover(fields, outer, PROTOCOL), read_data_url(url)
        if inline is None:
            return Media(kind, url=url, extra=extra, form=form, detail=detail)
        return Media(kind, inline[0], data=inline[1], extra=extra, form=form, detail=detail)

    def read(fields: Fields) -> Part:
        if type(fields.get(key)) is str:
            return media(fields, fields[key], BARE)

        def read_object(inner: Fields) -> Media:
            detail = image_detail(inner) if kind == "image" else None
            rest = rest_of(inner, _URL if detail is None else _DETAILED_URL)
            return media(fields, required(inner, "url", str), ChatMedia(url_rest=rest) if rest else None, detail)

        return read_required(fields, key, read_object)

    return read


def _audio(fields: Fields) -> Part:
    outer = leftover(fields, frozenset({"type", "input_audio"}), PROTOCOL)

    def read(inner: Fields) -> Part:
        data, format = required(inner, "data", str), required(inner, "format", str)
        if ":" in data:  # an address, which some hosts take
            return Opaque(PROTOCOL, fields, "input_audio")
        media_type = audio_type(format)
        rest, own_format = rest_of(inner, _AUDIO), None if audio_format(media_type) == format else format
        form = ChatMedia(audio_format=own_format, object_rest=rest) if rest or own_format is not None else None
        return Media("audio", media_type, data=data, extra=outer, form=form)

    written = fields.get("input_audio")
    if type(written) is str:
        if ":" in written:
            return Media("audio", url=written, extra=outer, form=BARE)
        return Media("audio", audio_type_of(written), data=written, extra=outer, form=BARE)
    return read_required(fields, "input_audio", read)


def _file(fields: Fields) -> Part:
    def read(inner: Fields) -> Part:
        written = optional(inner, "file_data", str)
        inline = read_data_url(written) if written is not None else None
        is_address = inline is None and written is not None and ":" in written
        rest = rest_of(inner, _FILE)
        return Media(
            "file",
            inline[0] if inline else "",
            data=inline[1] if inline else None if is_address else written,
            url=written if is_address else None,
            file_id=optional(inner, "file_id", str),
            name=optional(inner, "filename", str),
            extra=leftover(fields, frozenset({"type", "file"}), PROTOCOL),
            form=ChatMedia(object_rest=rest) if rest else None,
        )

    bare = fields.get("file_id")
    if type(bare) is str and fields.get("file") is None:
        rest = leftover(fields, frozenset({"type", "file_id"}), PROTOCOL)
        return Media("file", file_id=bare, extra=rest, form=BARE)
    return read_required(fields, "file", read)


def _document(fields: Fields) -> Part:
    """Mistral's document by its address."""
    address, name = fields.get("document_url"), fields.get("document_name")
    if type(address) is not str or not (name is None or type(name) is str):
        return _unknown(fields)
    inline = read_data_url(address)
    return Media(
        "document",
        inline[0] if inline else "",
        data=inline[1] if inline else None,
        url=None if inline else address,
        name=name,
        extra=leftover(fields, _DOCUMENT, PROTOCOL),
        form=DOCUMENT_URL,
    )


def _file_address(fields: Fields) -> Part:
    """A file by its address, or by its data instead of one (GLM, Perplexity)."""

    def read(inner: Fields) -> Part:
        address = required(inner, "url", str)
        inline = read_data_url(address)
        is_plain = inline is None and ":" not in address
        return Media(
            "file",
            inline[0] if inline else "",
            data=inline[1] if inline else address if is_plain else None,
            url=None if inline or is_plain else address,
            extra=leftover(fields, frozenset({"type", "file_url"}), PROTOCOL),
            form=ChatMedia("file_url", is_plain_data=is_plain, object_rest=rest_of(inner, _URL)),
        )

    return read_required(fields, "file_url", read) if type(fields.get("file_url")) is dict else _unknown(fields)


_READERS: Final[dict[str, Callable[[Fields], Part]]] = {
    "text": _text,
    "refusal": _refusal,
    "image_url": _by_address("image", "image_url"),
    "video_url": _by_address("video", "video_url"),
    "input_audio": _audio,
    "file": _file,
    "document_url": _document,
    "file_url": _file_address,
}
_ASSISTANT_READERS: Final[dict[str, Callable[[Fields], Part | Thinking]]] = {**_READERS, "thinking": _thinking}


# --- tool calls and tool messages -------------------------------------------------------------------


def read_call(fields: Fields) -> ToolCall | Opaque:
    """A call as an assistant message lists it. Some hosts leave out its type or its id."""
    id, inner = fields.get("id"), fields.get("function")
    if len(fields) == 3 and fields.get("type") == "function" and type(id) is str and type(inner) is dict:
        name, written = inner.get("name"), inner.get("arguments")
        if len(inner) == 2 and type(name) is str and type(written) is str:  # as nearly all are written
            parsed, raw, done = read_arguments(written)
            form = None if raw is None else RAW_ARGUMENTS
            return ToolCall(id, name, parsed, raw_input=raw, form=form, argument_fixes=done)
    kind = optional(fields, "type", str)
    if kind == "custom":
        return _custom_call(fields)
    if kind == "function" or (kind is None and "function" in fields):
        return _function_call(fields)
    return Opaque(PROTOCOL, fields, required(fields, "type", str), form=ChatOpaque("tool_calls"))


def _call_form(
    fields: Fields, rest: Fields | None, arguments: Literal["raw", "object", "none"] | None = None
) -> ChatCall | None:
    is_untyped, has_no_id = fields.get("type") is None, fields.get("id") is None
    if rest is None and arguments is None and not is_untyped and not has_no_id:
        return None
    return ChatCall(arguments, has_no_id, is_untyped, rest)


def _call_extra(fields: Fields, key: str) -> Extra | None:
    is_untyped, has_no_id = fields.get("type") is None, fields.get("id") is None
    return leftover(fields, _CALL[key], PROTOCOL, 3 - is_untyped - has_no_id)


def _custom_call(fields: Fields) -> ToolCall:
    id = optional(fields, "id", str) or ""

    def read(inner: Fields) -> ToolCall:
        return ToolCall(
            id,
            required(inner, "name", str),
            type="custom",
            raw_input=required(inner, "input", str),
            extra=_call_extra(fields, "custom"),
            form=_call_form(fields, rest_of(inner, _CUSTOM)),
        )

    return read_required(fields, "custom", read)


def _function_call(fields: Fields) -> ToolCall:
    id = optional(fields, "id", str) or ""

    def read(inner: Fields) -> ToolCall:
        parsed, raw, written, done = _read_arguments(inner)
        form = _call_form(fields, rest_of(inner, _FUNCTION, 1 + (written != "none")), written)
        extra, name = _call_extra(fields, "function"), required(inner, "name", str)
        return ToolCall(id, name, parsed, raw_input=raw, extra=extra, form=form, argument_fixes=done)

    return read_required(fields, "function", read)


_Arguments = tuple[Fields | None, str | None, Literal["raw", "object", "none"] | None, tuple[str, ...]]
"""The object, the text if the object does not say it all, how they were written, and what was done to read them."""


def _read_arguments(fields: Fields) -> _Arguments:
    """The object, the text where the object does not say it all, how they were written, what was done to read them."""
    written: Any = fields.get("arguments")
    if written is None:
        return None, None, "none", ()
    if type(written) is dict:
        return written, None, "object", ()
    if type(written) is not str:
        raise type_error("a string", written, ".arguments")
    parsed, raw, done = read_arguments(written)
    return parsed, raw, None if raw is None else "raw", done


def read_result(fields: Fields) -> ToolResult:
    """A tool message. Its unknown fields are the result's, which is all that it holds."""
    parts, form = read_content(fields)
    name, id = optional(fields, "name", str), optional(fields, "tool_call_id", str)
    known = _TOOL_MESSAGE if name else _UNNAMED_TOOL_MESSAGE
    read = 1 + bool(name) + (id is not None) + (form != "none")
    content: Any = fields["content"] if form == "text" else parts if form == "parts" else None
    own_form = ChatResult(None if form == "text" else form, id is None) if form != "text" or id is None else None
    return ToolResult(
        id or "",
        content,
        name=name or "",
        is_complete=True,
        extra=leftover(fields, known, PROTOCOL, read),
        form=own_form,
    )


# --- writing ----------------------------------------------------------------------------------------


def write_part(block: Block, documents: Literal["file", "document_url"] = "file") -> str | Fields | None:
    """A block as a part, plain text as a string; None if the protocol has no part for it.

    documents: the part for a document from elsewhere.
    """
    if type(block) is Text:
        own = block.extra.get(PROTOCOL) if block.extra else None
        is_refusal = type(block.form) is ChatText and block.form.position == "part"
        if not own and not is_refusal:
            return block.text
        kind = "refusal" if is_refusal else "text"
        return with_rest({"type": kind, kind: block.text}, own)
    if type(block) is Media:
        return _write_media(block, documents)
    if type(block) is Opaque and block.protocol == PROTOCOL and type(block.form) is not ChatOpaque:
        value: Fields = block.value
        return value
    return None


def write_chunk(block: Thinking) -> Fields:
    """Thinking as a chunk: what it held, as long as that is its text."""
    parts = block.form.chunk if type(block.form) is ChatThinking else None
    if parts is None or _thought(parts) != block.text:
        parts = [{"type": "text", "text": block.text}]
    fields: Fields = {"type": "thinking", "thinking": parts}
    if block.signature is not None:
        fields["signature"] = block.signature
    return with_extra(fields, block.extra, PROTOCOL)


def _write_media(block: Media, documents: Literal["file", "document_url"]) -> Fields | None:
    form = block.form if type(block.form) is ChatMedia else _PLAIN_MEDIA
    address = data_url(block.media_type, block.data) if block.data is not None else block.url
    if block.kind == "audio":
        fields = _write_audio(block, form)
    elif block.kind in ("image", "video") and address is not None:
        key = f"{block.kind}_url"
        fields = {"type": key, key: address if form.is_bare else _write_address(block, address, form)}
    elif form.is_bare and block.file_id is not None:
        fields = {"type": "file", "file_id": block.file_id}
    elif address is not None and "document_url" in (form.part, documents if form.part is None else ""):
        fields = {"type": "document_url", "document_url": address}
        if block.name is not None:
            fields["document_name"] = block.name
    elif form.part == "file_url" and address is not None:
        written = block.data if form.is_plain_data and block.data is not None else address
        fields = {"type": "file_url", "file_url": with_rest({"url": written}, form.object_rest)}
    else:
        fields = _write_file(block, address, form)
    return None if fields is None else with_extra(fields, block.extra, PROTOCOL)


_PLAIN_MEDIA: Final = ChatMedia()


def _write_address(block: Media, address: str, form: ChatMedia) -> Fields:
    inner: Fields = {"url": address} if block.detail is None else {"url": address, "detail": block.detail}
    return with_rest(inner, form.url_rest)


def _write_file(block: Media, address: str | None, form: ChatMedia) -> Fields:
    inner: Fields = {"file_id": block.file_id} if block.file_id is not None else {}
    if address is not None:
        inner["file_data"] = address if block.media_type or block.data is None else block.data
    if block.name is not None:
        inner["filename"] = block.name
    return {"type": "file", "file": with_rest(inner, form.object_rest)}


def _write_audio(block: Media, form: ChatMedia) -> Fields | None:
    if form.is_bare:
        return {"type": "input_audio", "input_audio": block.data if block.data is not None else block.url}
    if block.data is None:
        return None
    inner: Fields = {"data": block.data, "format": form.audio_format or audio_format(block.media_type)}
    return {"type": "input_audio", "input_audio": with_rest(inner, form.object_rest)}


def write_content(parts: list[str | Fields], form: ContentForm | None, *, joined: bool = False) -> str | list[Fields]:
    """Parts as they were written before; as a string where that says the same."""
    if form != "parts":
        if len(parts) == 1 and type(parts[0]) is str:
            return parts[0]
        texts = [part for part in parts if type(part) is str] if joined or not parts else None
        if texts is not None and len(texts) == len(parts):
            return "".join(texts)
    return [{"type": "text", "text": part} if type(part) is str else part for part in parts]  # type: ignore[misc]


def write_call(call: ToolCall) -> Fields:
    if call.type == "custom":
        return _write_custom_call(call)
    form = call.form if type(call.form) is ChatCall else _PLAIN_CALL
    if form is _PLAIN_CALL and call.raw_input is None and (call.extra is None or PROTOCOL not in call.extra):
        function = {"name": call.name, "arguments": compact(call.arguments or {})}
        return {"id": call.id, "type": "function", "function": function}
    inner: Fields = {"name": call.name}
    arguments = _written_arguments(call, form)
    if arguments is not None:
        inner["arguments"] = arguments
    return _around("function", inner, call, form)


_PLAIN_CALL: Final = ChatCall()


def write_function_call(call: ToolCall) -> Fields | None:
    """A call that was read from the old field, as it was; None for any other, and for one that has an id."""
    form = call.form
    if call.id or type(form) is not ChatCall or form.function_call_rest is None:
        return None
    return with_rest({"name": call.name, "arguments": _written_arguments(call, form)}, form.function_call_rest)


def _write_custom_call(call: ToolCall) -> Fields:
    text = call.raw_input if call.raw_input is not None else compact(call.arguments or {})
    form = call.form if type(call.form) is ChatCall else _PLAIN_CALL
    return _around("custom", {"name": call.name, "input": text}, call, form)


def _around(key: str, inner: Fields, call: ToolCall, form: ChatCall) -> Fields:
    """A call around what it holds."""
    fields: Fields = {"id": call.id} if call.id or not form.has_no_id else {}
    if not form.is_untyped:
        fields["type"] = key
    fields[key] = with_rest(inner, form.inner_rest)
    return with_extra(fields, call.extra, PROTOCOL)


def _written_arguments(call: ToolCall, form: ChatCall) -> Any:
    """Arguments as this protocol's model wrote them; those of another as the object that they mean."""
    if form.arguments == "object" and call.arguments is not None:
        return call.arguments
    if call.raw_input is not None and (form.arguments == "raw" or call.arguments is None):
        return call.raw_input
    return None if call.arguments is None and form.arguments == "none" else compact(call.arguments or {})


def write_result(result: ToolResult) -> Fields:
    """A result as a tool message."""
    form = result.form if type(result.form) is ChatResult else None
    own = result.extra.get(PROTOCOL) if result.extra else None
    content: Any = result.content
    if result.is_error or result.status is not None or type(content) is not str:
        content = content_with_error(result)
    if own is None and form is None and type(content) is str and not result.name:
        return {"role": "tool", "tool_call_id": result.call_id, "content": content}
    missing = form.content if form is not None else None
    fields: Fields = {"role": "tool"}
    if result.call_id or form is None or not form.has_no_id:
        fields["tool_call_id"] = result.call_id
    if result.name:
        fields["name"] = result.name
    if type(content) is tuple:
        parts = [part for block in content if (part := write_part(block)) is not None]
        fields["content"] = write_content(parts, missing)
    elif content is not None or missing != "none":
        fields["content"] = content or ""
    return with_rest(fields, own)
