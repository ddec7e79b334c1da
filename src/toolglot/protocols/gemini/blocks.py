"""Parts of the Gemini generateContent protocol, both ways. Requests and replies share them.

The response of a function is an object, which is text for everyone else: the text that it holds where it is
nothing but `output`, `result` or `error`, otherwise its JSON. Data is read in either alphabet of base64.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Literal

from toolglot.conversation import Block, Extra, Media, Opaque, ServerTool, Text, Thinking, ToolCall, ToolResult, Turn
from toolglot.conversation.completion import CANCELLED
from toolglot.jsontext import compact
from toolglot.protocols.fields.argument_text import object_of
from toolglot.protocols.fields.failed_result import has_failed, text_of
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
from toolglot.protocols.gemini.form import (
    PLAIN_CALL,
    PLAIN_CONTENT,
    PLAIN_MEDIA,
    PLAIN_RESULT,
    PROTOCOL,
    THOUGHT,
    GeminiCall,
    GeminiContent,
    GeminiForm,
    GeminiMedia,
    GeminiResult,
    GeminiText,
    GeminiThought,
    Snake,
)

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


def in_camel(fields: Fields) -> tuple[Fields, Snake | None]:
    """The object with its known fields in camelCase, and those that were not: snake_case → camelCase."""
    if _CAMEL.keys().isdisjoint(fields):
        return fields, None
    snake = {key: _CAMEL[key] for key in fields if key in _CAMEL and _CAMEL[key] not in fields}
    if not snake:
        return fields, None
    return {snake.get(key, key): value for key, value in fields.items()}, snake


def unknown_fields(fields: Fields, known: frozenset[str]) -> Extra | None:
    """The unknown fields of an object, for its canonical value."""
    return leftover(fields, known, PROTOCOL)


def with_unknown_fields(fields: Fields, extra: Extra | None, form: object) -> Fields:
    """An object with its unknown fields, in the original spelling."""
    rest = extra.get(PROTOCOL) if extra else None
    return refill(fields, rest, form.snake if isinstance(form, GeminiForm) else None)


def refill(fields: Fields, rest: Fields | None, snake: Snake | None) -> Fields:
    """The same for an object that has no canonical value of its own."""
    if rest:
        with_rest(fields, rest)
    if snake:
        for written, camel in snake.items():
            if camel in fields:
                fields[written] = fields.pop(camel)
    return fields


# --- reading ----------------------------------------------------------------------------------------


def read_parts(content: Fields) -> tuple[tuple[Block, ...], Literal["absent", "object"] | None]:
    """The parts of a content, and how they were written if not as a list: absent, or one as an object."""
    if type(content.get("parts")) is dict:
        return tuple(each([content["parts"]], read_part, ".parts")), "object"
    parts = optional(content, "parts", list)
    if parts is None:
        return (), "absent"
    return tuple(each(parts, read_part, ".parts")), None


def read_part(part: Fields) -> Block:
    fields, snake = in_camel(part)
    kinds = [key for key, value in fields.items() if value is not None and key in _KINDS]
    if len(kinds) != 1:
        return Opaque(PROTOCOL, part, next(iter(part), ""))
    if kinds[0] in _SERVER_TOOLS:
        return _server_tool(part, kinds[0], fields[kinds[0]])
    return _READERS[kinds[0]](fields, snake)


def _text(fields: Fields, snake: Snake | None) -> Block:
    text, signature = required(fields, "text", str), optional(fields, "thoughtSignature", str)
    if optional(fields, "thought", bool):
        form = GeminiThought(snake) if snake else THOUGHT
        return Thinking(text, signature, extra=unknown_fields(fields, _THOUGHT), form=form)
    return Text(text, signature, unknown_fields(fields, _TEXT), GeminiText(snake) if snake else None)


def _call(fields: Fields, snake: Snake | None) -> Block:
    signature = optional(fields, "thoughtSignature", str)

    def read(call: Fields) -> ToolCall:
        id, name, args = optional(call, "id", str), required(call, "name", str), optional(call, "args", dict)
        rest = rest_of(call, _CALL if id else _CALL - {"id"})
        form = GeminiCall(snake, rest, args is None) if snake or rest or args is None else None
        arguments, extra = {} if args is None else args, unknown_fields(fields, _CALL_PART)
        return ToolCall(id or "", name, arguments, signature=signature, extra=extra, form=form)

    return read_required(fields, "functionCall", read)


def _result(fields: Fields, snake: Snake | None) -> Block:
    return read_required(fields, "functionResponse", lambda result: _read_result(fields, snake, result))


def _read_result(fields: Fields, snake: Snake | None, result: Fields) -> ToolResult:
    id, name = optional(result, "id", str), optional(result, "name", str)
    response = optional(result, "response", dict)
    media = each(optional(result, "parts", list) or (), _read_result_part, ".parts")
    text, is_error = meaning_of(response)
    absent = {key for key, value in (("id", id), ("name", name), ("parts", media)) if not value}
    rest = rest_of(result, _RESULT - absent)
    form = GeminiResult(snake, rest, not name, response is None)
    return ToolResult(
        id or "",
        (*([Text(text)] if text is not None else []), *media) if media else text,
        is_error=is_error,
        name=name or "",
        is_complete=True,
        result=response,
        extra=unknown_fields(fields, _RESULT_PART),
        form=None if form == PLAIN_RESULT else form,
    )


def meaning_of(response: Fields | None) -> tuple[str | None, bool]:
    """The text of a function response (None if there is none), and whether it is an error."""
    if response is None:
        return None, False
    if len(response) != 1:
        return compact(response), False
    ((key, value),) = response.items()
    return value if key in _OUTPUTS and type(value) is str else compact(response), key == "error"


def _read_result_part(fields: Fields) -> Media | Opaque:
    part = read_part(fields)
    return part if isinstance(part, Media) else Opaque(PROTOCOL, fields, next(iter(fields), ""))


def _media(key: str) -> Callable[[Fields, Snake | None], Block]:
    address, known = ("data", _INLINE) if key == "inlineData" else ("fileUri", _FILE)

    def read(fields: Fields, snake: Snake | None, original: Fields) -> Media:
        source, source_snake = in_camel(original)
        media_type, location = optional(source, "mimeType", str), required(source, address, str)
        data, is_url_safe, padding = _standard(location) if key == "inlineData" else (None, False, "")
        rest = rest_of(source, known if media_type else known - {"mimeType"})
        form = GeminiMedia(snake, rest, source_snake, is_url_safe, padding)
        return Media(
            _media_kind(media_type or ""),
            media_type or "",
            data=data,
            url=location if key == "fileData" else None,
            name=optional(source, "displayName", str),
            extra=unknown_fields(fields, frozenset({key})),
            form=None if form == PLAIN_MEDIA else form,
        )

    return lambda fields, snake: read_required(fields, key, lambda source: read(fields, snake, source))


def _standard(data: str) -> tuple[str, bool, str]:
    """Data in the alphabet that every other protocol wants, padded; whether it was in the other, and the padding."""
    is_url_safe = ("-" in data or "_" in data) and "+" not in data and "/" not in data
    missing = -len(data) % 4
    padding = "=" * missing if missing in (1, 2) and not data.endswith("=") else ""
    return (data.translate(_TO_STANDARD) if is_url_safe else data) + padding, is_url_safe, padding


def _original_data(data: str, form: GeminiMedia) -> str:
    """Data as it was before `_standard`."""
    shorter = data.removesuffix(form.padding)
    return shorter.translate(_TO_URL_SAFE) if form.is_url_safe else shorter


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


def _server_tool(part: Fields, kind: str, value: Any) -> ServerTool:
    fields = in_camel(value)[0] if type(value) is dict else {}
    name, id = fields.get("toolType", "code_execution"), fields.get("id", "")
    return ServerTool(
        PROTOCOL,
        _SERVER_TOOLS[kind],
        part,
        name if type(name) is str else "",
        id if type(id) is str else "",
    )


_READERS: Final[dict[str, Callable[[Fields, Snake | None], Block]]] = {
    "text": _text,
    "functionCall": _call,
    "functionResponse": _result,
    "inlineData": _media("inlineData"),
    "fileData": _media("fileData"),
}
_KINDS: Final = _READERS.keys() | _SERVER_TOOLS.keys()


# --- writing ----------------------------------------------------------------------------------------


def content_form(turn: Turn) -> GeminiContent:
    return turn.form if type(turn.form) is GeminiContent else PLAIN_CONTENT


def write_parts(fields: Fields, parts: list[Fields], turn: Turn) -> Fields:
    """The content of a turn with its parts, written as they were."""
    original = content_form(turn).parts
    if original == "object" and len(parts) == 1:
        fields["parts"] = parts[0]
    elif parts or original != "absent":
        fields["parts"] = parts
    return with_extra(fields, turn.extra, PROTOCOL)


def write_part(block: Block, *, for_client: bool = False) -> Fields | None:
    """A block as a part; None for what only another protocol understands.

    A client is shown no signature of another provider's: it would take it for Gemini's. In a request there is
    none that the renderer did not want there.
    """
    if isinstance(block, Text):
        return with_unknown_fields(_signed({"text": block.text}, block.signature), block.extra, block.form)
    if isinstance(block, ToolCall):
        return _write_call(block)
    if isinstance(block, ToolResult):
        return _write_result(block)
    if isinstance(block, Thinking):
        is_own = type(block.form) is GeminiThought
        if not is_own and not block.text:
            return None
        signature = block.signature if is_own or not for_client else None
        return with_unknown_fields(_signed({"text": block.text, "thought": True}, signature), block.extra, block.form)
    if isinstance(block, Media):
        return _write_media(block)
    return own_value(block, PROTOCOL)


def _signed(fields: Fields, signature: str | None) -> Fields:
    if signature is not None:
        fields["thoughtSignature"] = signature
    return fields


def _write_call(call: ToolCall) -> Fields:
    form = call.form if type(call.form) is GeminiCall else PLAIN_CALL
    fields = _id_field(call, call.id)
    fields["name"] = call.name
    arguments = object_of(call)
    if arguments or not form.has_no_args:
        fields["args"] = arguments
    call_fields = _without_refused(with_rest(fields, form.call_rest), call)
    return with_unknown_fields(_signed({"functionCall": call_fields}, call.signature), call.extra, form)


def _id_field(value: ToolCall | ToolResult, id: str) -> Fields:
    """The id of a call or result, unless the renderer says that none is to be written."""
    return {"id": id} if id and value.id_omitted is None else {}


def _without_refused(fields: Fields, value: ToolCall | ToolResult) -> Fields:
    """The fields without an empty id, where any id is refused."""
    if value.id_omitted == "refused":
        fields.pop("id", None)
    return fields


def _write_result(result: ToolResult) -> Fields:
    form = result.form if type(result.form) is GeminiResult else PLAIN_RESULT
    fields = _id_field(result, result.written_id or result.call_id)
    if result.name or not form.has_no_name:
        fields["name"] = result.name
    text, media = _content_of(result)
    if text is not None or result.result is not None or not form.has_no_response:
        fields["response"] = _write_response(result, text)
    if media:
        fields["parts"] = media
    response_fields = _without_refused(with_rest(fields, form.response_rest), result)
    return with_unknown_fields({"functionResponse": response_fields}, result.extra, form)


def _content_of(result: ToolResult) -> tuple[str | None, list[Fields]]:
    """The text of a result, None if it has none, and its other parts."""
    if not isinstance(result.content, tuple):
        return result.content, []
    parts = [write_part(part) for part in result.content if not isinstance(part, Text)]
    text = text_of(result.content) if any(isinstance(part, Text) for part in result.content) else None
    return text, [part for part in parts if part is not None]


def _write_response(result: ToolResult, content: str | None) -> Fields:
    """The response as the tool gave it, or made of the content if that differs."""
    response: Any = result.result
    if type(response) is dict:
        text, is_error = meaning_of(response)
        if is_error == has_failed(result) and content in (None, text):
            return response
    value = content if content is not None else result.result if result.result is not None else result.error or ""
    if result.status == "cancelled" and not value:
        value = CANCELLED
    return {"error" if has_failed(result) else "output": value}


def _write_media(block: Media) -> Fields:
    fields: Fields = {"mimeType": block.media_type} if block.media_type else {}
    form = block.form if type(block.form) is GeminiMedia else PLAIN_MEDIA
    key = "fileData" if block.data is None else "inlineData"
    if block.data is not None:
        fields["data"] = _original_data(block.data, form)
    else:
        fields["fileUri"] = block.url if block.url is not None else block.file_id or ""
    source = refill(fields, form.source_rest, form.source_snake)
    return with_unknown_fields({key: source}, block.extra, form)
