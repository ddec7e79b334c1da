"""Parts of the Gemini generateContent protocol, both ways. Requests and replies share them.

Clients write known fields in camelCase or in snake_case. An object is read in camelCase; the note `snake`
says which of its fields were not, so that they come back in the spelling they came in. What an object
inside a part has left over is the note `inner` of its block.

The response of a function is an object, which is text for everyone else: the text that it holds where it is
nothing but `output`, `result` or `error`, otherwise its JSON. Data is read in either alphabet of base64.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from toolglot.conversation import Block, Extra, Media, Opaque, ServerTool, Text, Thinking, ToolCall, ToolResult
from toolglot.conversation.completion import CANCELLED
from toolglot.jsontext import compact
from toolglot.protocols.fields.argument_text import object_of
from toolglot.protocols.fields.failed_result import has_failed, text_of
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    held,
    leftover,
    note,
    optional,
    own_value,
    refilled,
    required,
    with_notes,
)

PROTOCOL: Final = "gemini"

_FIELDS: Final = (
    *("systemInstruction", "toolConfig", "generationConfig", "functionCallingConfig", "allowedFunctionNames"),
    *("functionDeclarations", "parametersJsonSchema", "googleSearch", "googleSearchRetrieval", "codeExecution"),
    *("urlContext", "computerUse", "fileSearch", "googleMaps", "enterpriseWebSearch", "mcpServers"),
    *("topP", "topK", "maxOutputTokens", "stopSequences", "presencePenalty", "frequencyPenalty"),
    *("responseMimeType", "responseSchema", "responseJsonSchema"),
    *("thinkingConfig", "thinkingBudget", "thinkingLevel", "includeThoughts"),
    *("thoughtSignature", "functionCall", "functionResponse", "inlineData", "fileData", "mimeType", "fileUri"),
    *("displayName", "executableCode", "codeExecutionResult", "toolCall", "toolResponse", "toolType"),
    *("finishReason", "promptFeedback", "blockReason", "usageMetadata", "modelVersion", "responseId"),
    *("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount"),
    "totalTokenCount",
)
_CAMEL: Final = {re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name): name for name in _FIELDS}

_TEXT = frozenset({"text", "thoughtSignature"})
_THOUGHT = _TEXT | {"thought"}
_CALL_PART = frozenset({"functionCall", "thoughtSignature"})
_CALL = frozenset({"id", "name", "args"})
_RESULT_PART = frozenset({"functionResponse"})
_RESULT = frozenset({"id", "name", "response", "parts"})
_INLINE = frozenset({"mimeType", "data"})
_FILE = frozenset({"mimeType", "fileUri"})
_OUTPUTS: Final = ("output", "result", "error")
_TO_STANDARD: Final = str.maketrans("-_", "+/")
_TO_URL_SAFE: Final = str.maketrans("+/", "-_")


def in_camel(fields: Fields) -> tuple[Fields, Fields | None]:
    """The object with its known fields in camelCase, and which ones were not: snake_case → camelCase."""
    if _CAMEL.keys().isdisjoint(fields):
        return fields, None
    snake = {key: _CAMEL[key] for key in fields if key in _CAMEL and _CAMEL[key] not in fields}
    if not snake:
        return fields, None
    return {snake.get(key, key): value for key, value in fields.items()}, snake


def kept(fields: Fields, known: frozenset[str], **notes: Any) -> Extra | None:
    """What an object has left over, with notes."""
    return with_notes(leftover(fields, known, PROTOCOL), PROTOCOL, notes)


def kept_rest(fields: Fields, known: frozenset[str], **notes: Any) -> Fields | None:
    """The same for an object that has no canonical value of its own: a note of the one that holds it."""
    extra = kept(fields, known, **notes)
    return extra[PROTOCOL] if extra else None


def given_back(fields: Fields, extra: Extra | None) -> Fields:
    """An object with what it had left over, in the spelling it came in."""
    return filled(fields, extra.get(PROTOCOL)) if extra else fields


def filled(fields: Fields, rest: Fields | None) -> Fields:
    """The same for an object that has no canonical value of its own."""
    if not rest:
        return fields
    refilled(fields, rest)
    for snake, camel in rest.get("~snake", {}).items():
        if camel in fields:
            fields[snake] = fields.pop(camel)
    return fields


# --- reading ----------------------------------------------------------------------------------------


def read_parts(content: Fields) -> tuple[tuple[Block, ...], str | None]:
    """The parts of a content, and how they were written where not as a list: absent, or one as an object."""
    if type(content.get("parts")) is dict:
        return tuple(each([content["parts"]], read_part, ".parts")), "object"
    parts = optional(content, "parts", list)
    if parts is None:
        return (), "absent"
    return tuple(each(parts, read_part, ".parts")), None


def read_part(given: Fields) -> Block:
    fields, snake = in_camel(given)
    kinds = [key for key, value in fields.items() if value is not None and key in _KINDS]
    if len(kinds) != 1:
        return Opaque(PROTOCOL, given, next(iter(given), ""))
    if kinds[0] in _SERVER_TOOLS:
        return _server_tool(given, kinds[0], fields[kinds[0]])
    return _READERS[kinds[0]](fields, snake)


def _text(fields: Fields, snake: Fields | None) -> Block:
    text, signature = required(fields, "text", str), optional(fields, "thoughtSignature", str)
    if optional(fields, "thought", bool):
        return Thinking(text, signature, extra=kept(fields, _THOUGHT, snake=snake, thought=True))
    return Text(text, signature, kept(fields, _TEXT, snake=snake))


def _call(fields: Fields, snake: Fields | None) -> Block:
    signature = optional(fields, "thoughtSignature", str)

    def read(call: Fields) -> ToolCall:
        id, name, args = optional(call, "id", str), required(call, "name", str), optional(call, "args", dict)
        inner = kept_rest(call, _CALL if id else _CALL - {"id"}, no_args=True if args is None else None)
        extra = kept(fields, _CALL_PART, snake=snake, inner=inner)
        return ToolCall(id or "", name, {} if args is None else args, signature=signature, extra=extra)

    return held(fields, "functionCall", read)


def _result(fields: Fields, snake: Fields | None) -> Block:
    return held(fields, "functionResponse", lambda result: _read_result(fields, snake, result))


def _read_result(fields: Fields, snake: Fields | None, result: Fields) -> ToolResult:
    id, name = optional(result, "id", str), optional(result, "name", str)
    response = optional(result, "response", dict)
    media = each(optional(result, "parts", list) or (), _read_result_part, ".parts")
    text, is_error = meaning_of(response)
    inner = kept_rest(
        result,
        _RESULT - {key for key, value in (("id", id), ("name", name), ("parts", media)) if not value},
        no_name=None if name else True,
        no_response=True if response is None else None,
    )
    return ToolResult(
        id or "",
        (*([Text(text)] if text is not None else []), *media) if media else text,
        is_error=is_error,
        name=name or "",
        is_complete=True,
        result=response,
        extra=kept(fields, _RESULT_PART, snake=snake, inner=inner),
    )


def meaning_of(response: Fields | None) -> tuple[str | None, bool]:
    """What a response says in words, None if there is none, and whether it tells of an error."""
    if response is None:
        return None, False
    if len(response) != 1:
        return compact(response), False
    ((key, value),) = response.items()
    return value if key in _OUTPUTS and type(value) is str else compact(response), key == "error"


def _read_result_part(fields: Fields) -> Media | Opaque:
    part = read_part(fields)
    return part if isinstance(part, Media) else Opaque(PROTOCOL, fields, next(iter(fields), ""))


def _media(key: str) -> Callable[[Fields, Fields | None], Block]:
    address, known = ("data", _INLINE) if key == "inlineData" else ("fileUri", _FILE)

    def read(fields: Fields, snake: Fields | None, given: Fields) -> Media:
        source, inner_snake = in_camel(given)
        media_type, place = optional(source, "mimeType", str), required(source, address, str)
        data, base64 = _standard(place) if key == "inlineData" else (None, None)
        inner = kept_rest(source, known if media_type else known - {"mimeType"}, snake=inner_snake, base64=base64)
        return Media(
            _media_kind(media_type or ""),
            media_type or "",
            data=data,
            url=place if key == "fileData" else None,
            name=optional(source, "displayName", str),
            extra=kept(fields, frozenset({key}), snake=snake, inner=inner),
        )

    return lambda fields, snake: held(fields, key, lambda given: read(fields, snake, given))


def _standard(data: str) -> tuple[str, Fields | None]:
    """Data in the alphabet that every other protocol wants, padded; and how it was written, where otherwise."""
    is_url_safe = ("-" in data or "_" in data) and "+" not in data and "/" not in data
    missing = -len(data) % 4
    padding = "=" * missing if missing in (1, 2) and not data.endswith("=") else ""
    if not is_url_safe and not padding:
        return data, None
    form: Fields = {"url_safe": is_url_safe, "padding": padding}
    return (data.translate(_TO_STANDARD) if is_url_safe else data) + padding, form


def _as_written(data: str, form: Fields | None) -> str:
    """Data as it was written before it was read so."""
    if form is None:
        return data
    shorter = data.removesuffix(form["padding"])
    return shorter.translate(_TO_URL_SAFE) if form["url_safe"] else shorter


def _media_kind(media_type: str) -> Any:
    kind = media_type.partition("/")[0]
    if kind in ("image", "audio", "video"):
        return kind
    return "document" if kind == "text" or media_type == "application/pdf" else "file"


_SERVER_TOOLS: Final[dict[str, Any]] = {
    "executableCode": "call",
    "codeExecutionResult": "result",
    "toolCall": "call",
    "toolResponse": "result",
}


def _server_tool(given: Fields, kind: str, value: Any) -> ServerTool:
    fields = in_camel(value)[0] if type(value) is dict else {}
    name, id = fields.get("toolType", "code_execution"), fields.get("id", "")
    return ServerTool(
        PROTOCOL,
        _SERVER_TOOLS[kind],
        given,
        name if type(name) is str else "",
        id if type(id) is str else "",
    )


_READERS: Final[dict[str, Callable[[Fields, Fields | None], Block]]] = {
    "text": _text,
    "functionCall": _call,
    "functionResponse": _result,
    "inlineData": _media("inlineData"),
    "fileData": _media("fileData"),
}
_KINDS: Final = _READERS.keys() | _SERVER_TOOLS.keys()


# --- writing ----------------------------------------------------------------------------------------


def write_parts(fields: Fields, parts: list[Fields], extra: Extra | None) -> Fields:
    """A content with its parts, written as they were."""
    form = note(extra, PROTOCOL, "parts")
    if form == "object" and len(parts) == 1:
        fields["parts"] = parts[0]
    elif parts or form != "absent":
        fields["parts"] = parts
    return given_back(fields, extra)


def write_part(block: Block, *, for_client: bool = False) -> Fields | None:
    """A block as a part; None for what only another protocol understands.

    A client is shown no signature of another provider's: it would take it for Gemini's. In a request there is
    none that the renderer did not want there.
    """
    if isinstance(block, Text):
        return given_back(_signed({"text": block.text}, block.signature), block.extra)
    if isinstance(block, ToolCall):
        return _write_call(block)
    if isinstance(block, ToolResult):
        return _write_result(block)
    if isinstance(block, Thinking):
        own = note(block.extra, PROTOCOL, "thought") is not None
        if not own and not block.text:
            return None
        signature = block.signature if own or not for_client else None
        return given_back(_signed({"text": block.text, "thought": True}, signature), block.extra)
    if isinstance(block, Media):
        return _write_media(block)
    return own_value(block, PROTOCOL)


def _signed(fields: Fields, signature: str | None) -> Fields:
    if signature is not None:
        fields["thoughtSignature"] = signature
    return fields


def _write_call(call: ToolCall) -> Fields:
    inner = note(call.extra, PROTOCOL, "inner") or {}
    fields = _id_field(call, call.id)
    fields["name"] = call.name
    arguments = object_of(call)
    if arguments or "~no_args" not in inner:
        fields["args"] = arguments
    call_fields = _without_refused(filled(fields, inner), call)
    return given_back(_signed({"functionCall": call_fields}, call.signature), call.extra)


def _id_field(value: ToolCall | ToolResult, id: str) -> Fields:
    """The id of a call or result, unless the renderer says that none is to be written."""
    return {"id": id} if id and value.id_omitted is None else {}


def _without_refused(fields: Fields, value: ToolCall | ToolResult) -> Fields:
    """The fields without an empty id, where any id is refused."""
    if value.id_omitted == "refused":
        fields.pop("id", None)
    return fields


def _write_result(result: ToolResult) -> Fields:
    inner = note(result.extra, PROTOCOL, "inner") or {}
    fields = _id_field(result, result.written_id or result.call_id)
    if result.name or "~no_name" not in inner:
        fields["name"] = result.name
    said, media = _content_of(result)
    if said is not None or result.result is not None or "~no_response" not in inner:
        fields["response"] = _write_response(result, said)
    if media:
        fields["parts"] = media
    return given_back({"functionResponse": _without_refused(filled(fields, inner), result)}, result.extra)


def _content_of(result: ToolResult) -> tuple[str | None, list[Fields]]:
    """The text of a result, None if it has none, and its other parts."""
    if not isinstance(result.content, tuple):
        return result.content, []
    parts = [write_part(part) for part in result.content if not isinstance(part, Text)]
    said = text_of(result.content) if any(isinstance(part, Text) for part in result.content) else None
    return said, [part for part in parts if part is not None]


def _write_response(result: ToolResult, said: str | None) -> Fields:
    """The response as the tool gave it, or made of the content where that says something else."""
    response: Any = result.result
    if type(response) is dict:
        text, is_error = meaning_of(response)
        if is_error == has_failed(result) and said in (None, text):
            return response
    value = said if said is not None else result.result if result.result is not None else result.error or ""
    if result.status == "cancelled" and not value:
        value = CANCELLED
    return {"error" if has_failed(result) else "output": value}


def _write_media(block: Media) -> Fields:
    fields: Fields = {"mimeType": block.media_type} if block.media_type else {}
    inner = note(block.extra, PROTOCOL, "inner")
    if block.data is not None:
        fields["data"] = _as_written(block.data, inner.get("~base64") if inner else None)
        return given_back({"inlineData": filled(fields, inner)}, block.extra)
    fields["fileUri"] = block.url if block.url is not None else block.file_id or ""
    return given_back({"fileData": filled(fields, inner)}, block.extra)
