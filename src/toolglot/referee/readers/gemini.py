"""Reads a Gemini `generateContent` request for the referee.

The API reads its messages as protocol buffers do: each field in camelCase or snake_case, null as missing, numbers
also as strings, the values of enumerations by their names in any case or by their numbers, one object as a list of one.
Paths name the fields as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, Literal

from toolglot.referee.readers.forms import (
    ANYTHING,
    FLAG,
    OBJECT,
    TEXT,
    TEXTS,
    Also,
    Bytes,
    Each,
    Fields,
    FormFaults,
    JsonForm,
    Keyed,
    Numeric,
    OneOrEach,
    Values,
    fields,
    look,
    objects,
    one_or_objects,
    text_of,
)
from toolglot.referee.view import ChoiceView, Message, PartView, Role, Setting, ToolView, View


@cache
def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda upper: "_" + upper[0].lower(), name)


def _form(known: dict[str, JsonForm]) -> Fields:
    """A message: every field is optional, in both spellings."""
    return Fields(known | {_snake(name): form for name, form in known.items()}, null_is_absent=True)


def _names(*allowed: str) -> Values:
    return Values(allowed, any_case=True, numbers=True)


_NUMBER: Final = Numeric()
_WHOLE: Final = Numeric("a whole number", r"-?\d{1,20}", whole=True)
_ROLES: Final[dict[str, Role]] = {"user": "user", "model": "assistant", "function": "user"}
_SERVER_PARTS: Final = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")
_DATA: Final = ("text", "functionCall", "functionResponse", "inlineData", "fileData", *_SERVER_PARTS)
_KINDS_OF_TOOL: Final = (
    *("TOOL_TYPE_UNSPECIFIED", "GOOGLE_SEARCH_WEB", "GOOGLE_SEARCH_IMAGE", "URL_CONTEXT", "GOOGLE_MAPS"),
    *("FILE_SEARCH", "MEDIA_PROCESSING"),
)
_RESOLUTIONS: Final = tuple(f"MEDIA_RESOLUTION_{level}" for level in ("UNSPECIFIED", "LOW", "MEDIUM", "HIGH"))
_PROCESSING: Final = _names("MEDIA_PROCESSING_UNSPECIFIED", "STATIC", "AGENTIC")
_TRUST: Final = _names(
    "PHISH_BLOCK_THRESHOLD_UNSPECIFIED",
    *(f"BLOCK_{level}_AND_ABOVE" for level in ("LOW", "MEDIUM", "HIGH", "HIGHER", "VERY_HIGH")),
    "BLOCK_ONLY_EXTREMELY_HIGH",
)

# --- parts ------------------------------------------------------------------------------------------

_BLOB: Final = _form({"data": Bytes(), "displayName": TEXT, "mimeType": TEXT})
_FILE: Final = _form({"fileUri": TEXT, "displayName": TEXT, "mimeType": TEXT})
_PARTIAL: Final = _form(
    {
        "boolValue": FLAG,
        "jsonPath": TEXT,
        "nullValue": _names("NULL_VALUE"),
        "numberValue": _NUMBER,
        "stringValue": TEXT,
        "willContinue": FLAG,
    }
)
_CALL: Final = _form(
    {"id": TEXT, "args": OBJECT, "name": TEXT, "partialArgs": Each(_PARTIAL), "willContinue": FLAG},
)
_RESPONSE: Final = _form(
    {
        "id": TEXT,
        "name": TEXT,
        "response": OBJECT,
        "willContinue": FLAG,
        "scheduling": _names("SCHEDULING_UNSPECIFIED", "SILENT", "WHEN_IDLE", "INTERRUPT"),
        "parts": Each(_form({"inlineData": _BLOB, "fileData": _FILE, "mediaProcessing": _PROCESSING})),
    }
)
_WORD: Final = _form({"word": TEXT, "startOffset": TEXT, "endOffset": TEXT})
_TRANSCRIPTION: Final = _form(
    {
        "text": TEXT,
        "finished": FLAG,
        "languageCode": TEXT,
        "speakerLabel": TEXT,
        "words": Each(_WORD),
        "startOffset": TEXT,
        "endOffset": TEXT,
    }
)


def _one_datum(part: dict[str, Any], path: str, found: FormFaults) -> None:
    """A part is a union: one datum, or none beside a signature that arrived alone."""
    present = [name for name in _DATA if _get(part, name)[1] is not None]
    if len(present) > 1:
        found.wrong(path, f"a part holds one of {present[0]} and {present[1]}, not both")
    elif not present and not any(_get(part, name)[1] is not None for name in ("thought", "thoughtSignature")):
        found.wrong(path, f"expected one of {', '.join(_DATA)}")


_PART: Final = Also(
    _form(
        {
            "text": TEXT,
            "functionCall": _CALL,
            "functionResponse": _RESPONSE,
            "inlineData": _BLOB,
            "fileData": _FILE,
            "executableCode": _form({"code": TEXT, "id": TEXT, "language": _names("LANGUAGE_UNSPECIFIED", "PYTHON")}),
            "codeExecutionResult": _form(
                {
                    "outcome": _names(
                        "OUTCOME_UNSPECIFIED", "OUTCOME_OK", "OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED"
                    ),
                    "output": TEXT,
                    "id": TEXT,
                }
            ),
            "toolCall": _form({"id": TEXT, "toolType": _names(*_KINDS_OF_TOOL), "args": OBJECT}),
            "toolResponse": _form({"id": TEXT, "toolType": _names(*_KINDS_OF_TOOL), "response": OBJECT}),
            "thought": FLAG,
            "thoughtSignature": Bytes("gemini-thought-foreign"),
            "videoMetadata": _form({"endOffset": TEXT, "startOffset": TEXT, "fps": _NUMBER}),
            "mediaResolution": _form(
                {"level": _names(*_RESOLUTIONS, "MEDIA_RESOLUTION_ULTRA_HIGH"), "numTokens": _WHOLE}
            ),
            "partMetadata": OBJECT,
            "audioTranscription": _TRANSCRIPTION,
            "mediaProcessing": _PROCESSING,
            "speechMetadata": _form({"speaker": TEXT, "style": TEXT}),
        }
    ),
    _one_datum,
)
_CONTENT: Final = _form({"parts": OneOrEach(_PART), "role": Values(tuple(_ROLES))})
_INSTRUCTION: Final = _form({"parts": OneOrEach(_PART), "role": TEXT})

# --- tools ------------------------------------------------------------------------------------------

_FUNCTION: Final = _form(
    {
        "name": TEXT,
        "description": TEXT,
        "parameters": OBJECT,
        "parametersJsonSchema": ANYTHING,
        "response": OBJECT,
        "responseJsonSchema": ANYTHING,
        "behavior": _names("UNSPECIFIED", "BLOCKING", "NON_BLOCKING"),
    }
)
_SERVER_TOOLS: Final[dict[str, JsonForm]] = {
    "googleSearch": _form(
        {
            "searchTypes": _form({"webSearch": _form({}), "imageSearch": _form({})}),
            "blockingConfidence": _TRUST,
            "excludeDomains": TEXTS,
            "timeRangeFilter": _form({"startTime": TEXT, "endTime": TEXT}),
        }
    ),
    "googleSearchRetrieval": _form(
        {
            "dynamicRetrievalConfig": _form(
                {"dynamicThreshold": _NUMBER, "mode": _names("MODE_UNSPECIFIED", "MODE_DYNAMIC")}
            )
        }
    ),
    "enterpriseWebSearch": _form({"blockingConfidence": _TRUST, "excludeDomains": TEXTS}),
    "googleMaps": _form({"authConfig": OBJECT, "enableWidget": FLAG, "groundingTypes": OBJECT}),
    "codeExecution": _form({}),
    "urlContext": _form({}),
    "fileSearch": _form({"fileSearchStoreNames": TEXTS, "topK": _WHOLE, "metadataFilter": TEXT}),
    "computerUse": _form(
        {
            "environment": _names(
                *(f"ENVIRONMENT_{inner_path}" for inner_path in ("UNSPECIFIED", "BROWSER", "MOBILE", "DESKTOP")),
            ),
            "excludedPredefinedFunctions": TEXTS,
            "enablePromptInjectionDetection": FLAG,
            "disabledSafetyPolicies": TEXTS,
        }
    ),
    "retrieval": OBJECT,
    "parallelAiSearch": OBJECT,
    "exaAiSearch": OBJECT,
    "mcpServers": Each(OBJECT),
}
_TOOL: Final = _form({"functionDeclarations": OneOrEach(_FUNCTION), **_SERVER_TOOLS})
_MODES: Final = dict(enumerate(("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")))
_TOOL_CONFIG: Final = _form(
    {
        "functionCallingConfig": _form(
            {
                "allowedFunctionNames": TEXTS,
                "mode": _names(*_MODES.values()),
                "streamFunctionCallArguments": FLAG,
            }
        ),
        "retrievalConfig": _form({"latLng": _form({"latitude": _NUMBER, "longitude": _NUMBER}), "languageCode": TEXT}),
        "includeServerSideToolInvocations": FLAG,
    }
)

# --- the rest ---------------------------------------------------------------------------------------

_GENERATION: Final = _form(
    dict.fromkeys(("temperature", "topP", "topK", "presencePenalty", "frequencyPenalty"), _NUMBER)
    | dict.fromkeys(("candidateCount", "logprobs", "maxOutputTokens", "seed"), _WHOLE)
    | dict.fromkeys(("audioTimestamp", "responseLogprobs", "enableAffectiveDialog", "enableEnhancedCivicAnswers"), FLAG)
    | dict.fromkeys(("speechConfig", "routingConfig", "modelSelectionConfig", "translationConfig"), OBJECT)
    | dict.fromkeys(("audioTranscriptionConfig", "imageConfig", "responseSchema"), OBJECT)
    | {
        "responseJsonSchema": ANYTHING,
        "responseMimeType": TEXT,
        "responseFormat": Each(OBJECT),
        "stopSequences": TEXTS,
        "mediaResolution": _names(*_RESOLUTIONS),
        "responseModalities": Each(_names("MODALITY_UNSPECIFIED", "TEXT", "IMAGE", "AUDIO", "VIDEO")),
        "thinkingConfig": _form(
            {
                "includeThoughts": FLAG,
                "thinkingBudget": _WHOLE,
                "thinkingLevel": _names("THINKING_LEVEL_UNSPECIFIED", "MINIMAL", "LOW", "MEDIUM", "HIGH"),
            }
        ),
    }
)
_HARMS: Final = (
    *("UNSPECIFIED", "HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT", "CIVIC_INTEGRITY"),
    *("JAILBREAK", "IMAGE_HATE", "IMAGE_DANGEROUS_CONTENT", "IMAGE_HARASSMENT", "IMAGE_SEXUALLY_EXPLICIT"),
)
_SAFETY: Final = _form(
    {
        "category": _names(*(f"HARM_CATEGORY_{harm}" for harm in _HARMS)),
        "method": _names("HARM_BLOCK_METHOD_UNSPECIFIED", "SEVERITY", "PROBABILITY"),
        "threshold": _names(
            *("HARM_BLOCK_THRESHOLD_UNSPECIFIED", "BLOCK_LOW_AND_ABOVE", "BLOCK_MEDIUM_AND_ABOVE"),
            *("BLOCK_ONLY_HIGH", "BLOCK_NONE", "OFF"),
        ),
    }
)


def _has_contents(body: dict[str, Any], path: str, found: FormFaults) -> None:
    if body.get("contents") is None:
        found.wrong(f"{path}.contents", "contents is missing")


_BODY: Final = Also(
    _form(
        {
            "model": TEXT,
            "contents": OneOrEach(_CONTENT),
            "systemInstruction": _INSTRUCTION,
            "tools": OneOrEach(_TOOL),
            "toolConfig": _TOOL_CONFIG,
            "safetySettings": OneOrEach(_SAFETY),
            "generationConfig": _GENERATION,
            "cachedContent": TEXT,
            "labels": Keyed(TEXT),
            "store": FLAG,
            "serviceTier": TEXT,
            "modelArmorConfig": OBJECT,
        }
    ),
    _has_contents,
)

_SAMPLING: Final = {
    "temperature": "temperature",
    "topP": "top_p",
    "topK": "top_k",
    "stopSequences": "stop",
    "seed": "seed",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
}
_KEYWORDS: Final = {
    _snake(word): word
    for word in (
        *("anyOf", "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"),
        *("propertyOrdering", "additionalProperties"),
    )
}
_MAX_SCHEMA_DEPTH: Final = 200
_DOCUMENTS: Final = ("application/pdf", "text/")


def _get(wire: dict[str, Any], name: str) -> tuple[str, Any]:
    """A field and its name as it is written."""
    if wire.get(name) is not None:
        return name, wire[name]
    snake = _snake(name)
    return (snake, wire[snake]) if wire.get(snake) is not None else (name, None)


def _inside(wire: dict[str, Any], path: str, name: str) -> tuple[str, dict[str, Any]]:
    """The path and the fields of an object inside."""
    written, value = _get(wire, name)
    return f"{path}.{written}", fields(value)


def _setting(wire: dict[str, Any], path: str, name: str) -> Setting | None:
    written, value = _get(wire, name)
    return None if value is None else Setting(f"{path}.{written}", value)


def read(body: dict[str, Any]) -> View:
    """The view of a request."""
    found = look(body, _BODY)
    request = fields(body)
    inner_path, config = _inside(request, "$", "generationConfig")
    thinking_path, thinking = _inside(config, inner_path, "thinkingConfig")
    sampling = {name: _setting(config, inner_path, field) for field, name in _SAMPLING.items()}
    max_tokens = _setting(config, inner_path, "maxOutputTokens")
    budget = _setting(thinking, thinking_path, "thinkingBudget")
    return View(
        system=_system(request, found),
        messages=tuple(_messages(request.get("contents"), found)),
        messages_path="$.contents",
        tools=tuple(_tools(request["tools"], found)) if isinstance(request.get("tools"), list | dict) else None,
        choice=_choice(request),
        max_tokens=max_tokens,
        max_tokens_field="" if max_tokens is None else "maxOutputTokens",
        sampling={name: setting for name, setting in sampling.items() if setting is not None},
        thinking_mode=_mode(budget),
        effort=_effort(_setting(thinking, thinking_path, "thinkingLevel")),
        budget=budget,
        output=_output(config, inner_path),
        extra_fields=found.take("$"),
        extra_paths=found.unknown_paths(),
        shapes=tuple(found.shapes),
    )


def _mode(budget: Setting | None) -> Setting | None:
    """A budget of 0 is off, -1 leaves it to the model."""
    if budget is None or isinstance(budget.value, bool) or not isinstance(budget.value, int):
        return None
    return Setting(budget.path, {0: "off", -1: "adaptive"}.get(budget.value, "on"))


def _effort(level: Setting | None) -> Setting | None:
    if level is None or not isinstance(level.value, str):
        return None
    return Setting(level.path, level.value.lower())


def _output(config: dict[str, Any], path: str) -> Setting | None:
    kind = _setting(config, path, "responseMimeType")
    if kind is None or kind.value != "application/json":
        return None
    has_schema = any(_get(config, name)[1] is not None for name in ("responseSchema", "responseJsonSchema"))
    return Setting(kind.path, "json_schema" if has_schema else "json")


def _choice(request: dict[str, Any]) -> ChoiceView | None:
    inner_path, config = _inside(request, "$", "toolConfig")
    path, calling = _inside(config, inner_path, "functionCallingConfig")
    mode = _MODES.get(calling["mode"]) if type(calling.get("mode")) is int else text_of(calling.get("mode"))
    listed = _get(calling, "allowedFunctionNames")[1]
    names = tuple(name for name in listed if isinstance(name, str)) if isinstance(listed, list) else ()
    match mode.upper() if mode is not None else None:
        case "AUTO" | "VALIDATED" if not names:
            return ChoiceView(path=path, mode="auto")
        case "NONE":
            return ChoiceView(path=path, mode="none")
        case "ANY" if not names:
            return ChoiceView(path=path, mode="required")
        case "ANY" if len(names) == 1:
            return ChoiceView(path=path, mode="named", names=names)
        case "ANY" | "AUTO" | "VALIDATED":
            return ChoiceView(path=path, mode="allowed", names=names)
        case _:
            return None


def _tools(written: Any, found: FormFaults) -> Iterator[ToolView]:
    for path, tool in one_or_objects(written, "$.tools"):
        field, functions = _get(tool, "functionDeclarations")
        for inner_path, function in one_or_objects(functions, f"{path}.{field}"):
            yield _function(function, inner_path, found)
        for kind in _SERVER_TOOLS:
            if _get(tool, kind)[1] is not None:
                yield ToolView(path=f"{path}.{_get(tool, kind)[0]}", name=None, kind="server", type=kind)


def _function(function: dict[str, Any], path: str, found: FormFaults) -> ToolView:
    kind = "parameters" if function.get("parameters") is not None else "parametersJsonSchema"
    written, schema = _get(function, kind)
    return ToolView(
        path=path,
        name=text_of(function.get("name")),
        type="function",
        description=text_of(function.get("description")),
        schema=_camel_case(schema) if kind == "parameters" else schema,
        schema_path="" if schema is None else f"{path}.{written}",
        schema_field="" if schema is None else kind,
        extra_fields=found.take(path),
    )


def _camel_case(schema: Any, depth: int = 0) -> Any:
    """A schema with its keywords in camelCase, as rules name them; names of properties stay."""
    if not isinstance(schema, dict) or depth > _MAX_SCHEMA_DEPTH:
        return schema
    return {_KEYWORDS.get(word, word): _camel_case_inside(word, value, depth + 1) for word, value in schema.items()}


def _camel_case_inside(word: str, value: Any, depth: int) -> Any:
    if word in ("any_of", "anyOf") and isinstance(value, list):
        return [_camel_case(member, depth) for member in value]
    if word == "properties" and isinstance(value, dict):
        return {name: _camel_case(member, depth) for name, member in value.items()}
    return _camel_case(value, depth) if word == "items" else value


def _system(request: dict[str, Any], found: FormFaults) -> Message | None:
    path, content = _inside(request, "$", "systemInstruction")
    if not content:
        return None
    return _content(content, "system", path, found, extra=())


def _messages(written: Any, found: FormFaults) -> Iterator[Message]:
    for path, content in one_or_objects(written, "$.contents"):
        role_name = content.get("role")
        role = "user" if role_name is None else _ROLES.get(role_name) if isinstance(role_name, str) else None
        if role is not None:
            yield _content(content, role, path, found, extra=found.take(path))


def _content(content: dict[str, Any], role: Role, path: str, found: FormFaults, extra: tuple[str, ...]) -> Message:
    parts = content.get("parts")
    return Message(
        role=role,
        path=path,
        items=tuple(_part(part, inner_path, found) for inner_path, part in one_or_objects(parts, f"{path}.parts")),
        has_content=parts is not None,
        extra_fields=extra,
    )


def _part(part: dict[str, Any], path: str, found: FormFaults) -> PartView:
    extra, signature = found.take(path), text_of(_get(part, "thoughtSignature")[1])
    kind = next((name for name in _DATA if _get(part, name)[1] is not None), "")
    value = fields(_get(part, kind)[1])
    if kind == "functionCall":
        return PartView(
            kind="call",
            path=path,
            type=kind,
            id=text_of(value.get("id")) or None,  # an empty field is an absent one here
            has_empty_id=value.get("id") == "",
            name=text_of(value.get("name")),
            arguments={} if value.get("args") is None else value["args"],
            signature=signature,
            extra_fields=extra,
        )
    if kind == "functionResponse":
        return _result(value, f"{path}.{_get(part, kind)[0]}", path, extra)
    if kind in ("inlineData", "fileData"):
        return _media(kind, value, path, extra)
    if kind in _SERVER_PARTS:
        return PartView(kind="server", path=path, type=kind, signature=signature, extra_fields=extra)
    is_thought = part.get("thought") is True
    return PartView(
        kind="thinking" if is_thought else "text" if kind == "text" else "other",
        path=path,
        type="thought" if is_thought else kind,
        text=text_of(part.get("text")),
        signature=signature,
        extra_fields=extra,
    )


def _result(value: dict[str, Any], inner: str, path: str, extra: tuple[str, ...]) -> PartView:
    response = value.get("response")
    content = [PartView(kind="other", path=f"{inner}.response", type="response")] if response is not None else []
    for inner_path, part in objects(value.get("parts"), f"{inner}.parts"):
        kind = "inlineData" if _get(part, "inlineData")[1] is not None else "fileData"
        content.append(_media(kind, fields(_get(part, kind)[1]), inner_path, ()))
    return PartView(
        kind="result",
        path=path,
        type="functionResponse",
        id=text_of(value.get("id")) or None,  # an empty field is an absent one here
        has_empty_id=value.get("id") == "",
        name=text_of(value.get("name")),
        content=tuple(content),
        has_content=response is not None,
        extra_fields=extra,
    )


def _media(kind: str, value: dict[str, Any], path: str, extra: tuple[str, ...]) -> PartView:
    mime = text_of(_get(value, "mimeType")[1]) or ""
    family = mime.partition("/")[0]
    media = family if family in ("image", "audio", "video") else "document" if mime.startswith(_DOCUMENTS) else "file"
    source: Literal["data", "url"] = "data" if kind == "inlineData" else "url"
    return PartView(kind="media", path=path, type=kind, media=media, source=source, extra_fields=extra)
