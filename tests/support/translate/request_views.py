"""What a request says, read from its raw JSON.

The reading shares no code with what is judged. One walk reads the messages of all seven protocols, since a client's
history may hold the forms of several.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from support.translate.request_settings import (
    INFERENCE,
    LIMITS,
    SCHEMA_FIELDS,
    Fields,
    Tool,
    camel_case,
    declared_tools,
    field_at,
    read_choice,
    read_options,
    read_tools,
    with_camel_case,
)


class Call(NamedTuple):
    name: str
    arguments: Any
    id: str


class Result(NamedTuple):
    id: str
    name: str
    text: str
    is_error: bool
    media: int


class View(NamedTuple):
    """A request as it is read."""

    texts: list[tuple[str, str]]
    """The speaker (`system`, `user`, `assistant`) and the words."""
    thinking: list[str]
    signatures: list[str]
    calls: list[Call]
    results: list[Result]
    media: list[str]
    """Their data or address."""
    tools: list[Tool]
    choice: tuple[str, tuple[str, ...]]
    options: dict[str, Any]
    unknown: Counter[str]
    """Fields that the reading does not know, by name."""
    fields_of_tools: dict[str, Counter[str]]
    """The same of each tool."""


_SPEAKERS: Final = {"model": "assistant", "developer": "system", "function": "tool", "SYSTEM": "system"}
_TEXTS: Final = ("text", "input_text", "output_text", "refusal", "summary_text", "reasoning_text")
_MEDIA: Final = (
    *("image", "image_url", "input_image", "document", "document_url", "input_file", "file", "input_audio", "audio"),
    *("video", "video_url", "inlineData", "inline_data", "fileData", "file_data"),
)
_KNOWN_PARTS: Final = frozenset(
    {
        *("type", "text", "refusal", "thinking", "signature", "data", "id", "name", "input", "tool_use_id", "content"),
        *("is_error", "functionCall", "functionResponse", "toolUse", "toolResult", "reasoningContent", "inlineData"),
        *("fileData", "thought", "thoughtSignature", "source", "image_url", "input_audio", "file", "document", "image"),
        *("call_id", "arguments", "output", "status", "summary", "encrypted_content", "role", "function", "custom"),
        *(
            "file_id",
            "file_data",
            "file_url",
            "filename",
            "document_name",
            "detail",
            "inline_data",
            "function_call",
            "annotations",
        ),
        *("function_response", "video", "audio", "document_url", "logprobs", "namespace", "index", "thought_signature"),
        *("title", "redacted_thinking", "args", "video_url"),
    }
)
_KNOWN_MESSAGE: Final = frozenset(
    {
        *("role", "content", "parts", "tool_calls", "tool_call_id", "function_call", "reasoning_content", "reasoning"),
        *("thinking", "tool_plan", "images", "refusal", "type", "id", "status", "tool_name", "annotations", "audio"),
    }
)


class _Reader:
    def __init__(self) -> None:
        self.texts: list[tuple[str, str]] = []
        self.thinking: list[str] = []
        self.signatures: list[str] = []
        self.calls: list[Call] = []
        self.results: list[Result] = []
        self.media: list[str] = []
        self.unknown: Counter[str] = Counter()

    def message(self, message: Any, speaker: str = "user") -> None:
        if not isinstance(message, dict):
            return
        kind = message.get("type", "message")
        if kind != "message" and "role" not in message:
            self.part(message, "assistant")
            return
        role = message.get("role", speaker)
        role = _SPEAKERS.get(role, role) if isinstance(role, str) else speaker
        for field in ("reasoning_content", "reasoning", "thinking"):
            if isinstance(message.get(field), str) and message[field]:
                self.thinking.append(message[field])
                break
        if isinstance(message.get("tool_plan"), str):
            self.say(role, message["tool_plan"])
        content = message.get("content", message.get("parts"))
        if role == "tool" and not _has_results(content):
            name = message.get("name") or message.get("tool_name") or ""
            self.result(message.get("tool_call_id") or "", content, is_error=False, name=name)
        else:
            self.parts(content, "user" if role == "tool" else role)
            if isinstance(message.get("refusal"), str):
                self.say(role, message["refusal"])
        self.media += [str(image) for image in message.get("images") or () if isinstance(image, str)]
        for made in message.get("tool_calls") or ():
            self.part(made, role)
        if isinstance(message.get("function_call"), dict):
            self.call(message["function_call"].get("name"), message["function_call"].get("arguments"), "")
        self.unknown.update(_unknown_fields(message, _KNOWN_MESSAGE | {"name"} if role == "tool" else _KNOWN_MESSAGE))

    def parts(self, content: Any, speaker: str) -> None:
        if isinstance(content, str):
            self.say(speaker, content)
        elif isinstance(content, dict):
            self.part(content, speaker)
        elif isinstance(content, list):
            for part in content:
                self.say(speaker, part) if isinstance(part, str) else self.part(part, speaker)

    def part(self, part: Any, speaker: str) -> None:  # noqa: C901 - one branch a form
        if not isinstance(part, dict):
            return
        kind = part.get("type", "")
        if isinstance(field_at(part, ("guardContent", "text")), dict):
            part = part["guardContent"]["text"]
        self.unknown.update(_unknown_fields(part, _KNOWN_PARTS))
        self.unknown.update(_unknown_within(part))
        signature = part.get("signature") or part.get("thoughtSignature") or part.get("thought_signature")
        if isinstance(signature, str) and signature:
            self.signatures.append(signature)
        call = part.get("functionCall") or part.get("function_call")
        answer = part.get("functionResponse") or part.get("function_response")
        if kind in ("tool_use", "function_call", "custom_tool_call", "tool_call"):
            arguments = part.get("input", part.get("arguments", part.get("args")))
            self.call(part.get("name"), arguments, part.get("call_id") or part.get("id"))
        elif isinstance(call, dict):
            self.call(call.get("name"), call.get("args"), call.get("id"))
        elif isinstance(part.get("toolUse"), dict):
            made = part["toolUse"]
            self.call(made.get("name"), made.get("input"), made.get("toolUseId"))
        elif isinstance(part.get("function") or part.get("custom"), dict):
            made = part.get("function") or part.get("custom") or {}
            self.call(made.get("name"), made.get("arguments", made.get("input")), part.get("id"))
        elif kind == "tool_result":
            self.result(part.get("tool_use_id") or "", part.get("content"), is_error=part.get("is_error") is True)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self.result(part.get("call_id") or "", part.get("output"), is_error=part.get("status") == "incomplete")
        elif isinstance(answer, dict):
            response = answer.get("response")
            is_error = isinstance(response, dict) and "error" in response
            name = answer.get("name") or ""
            self.result(answer.get("id") or "", _wrapped(response), is_error=is_error, name=name)
            self.media += [_data_of(part) for part in answer.get("parts") or () if isinstance(part, dict)]
        elif isinstance(part.get("toolResult"), dict):
            made = part["toolResult"]
            self.result(made.get("toolUseId") or "", made.get("content"), is_error=made.get("status") == "error")
        elif kind in ("thinking", "reasoning") or isinstance(part.get("reasoningContent"), dict) or part.get("thought"):
            self.thought(part)
        elif kind == "redacted_thinking":
            self.signatures.append(str(part.get("data")))
        elif kind == "document" and isinstance(part.get("document"), dict):  # Cohere's results
            self.say(speaker, json.dumps(part["document"].get("data", part["document"])))
        elif kind in _MEDIA or any(field in part for field in _MEDIA):
            self.media.append(_data_of(part))
        else:
            text = part.get("text", part.get("refusal"))
            if isinstance(text, str):
                self.say(speaker, text)

    def thought(self, part: Fields) -> None:
        inner = part.get("thinking", part.get("summary", part.get("text")))
        if isinstance(part.get("reasoningContent"), dict):
            held = part["reasoningContent"].get("reasoningText") or {}
            inner = held.get("text")
            if held.get("signature"):
                self.signatures.append(held["signature"])
        text = _text_of(inner) or _text_of(part.get("content"))
        if text:
            self.thinking.append(text)
        if isinstance(part.get("encrypted_content"), str):
            self.signatures.append(part["encrypted_content"])

    def say(self, speaker: str, text: str) -> None:
        if text.strip():
            self.texts.append((speaker, text))

    def call(self, name: Any, arguments: Any, id: Any) -> None:
        self.calls.append(Call(str(name or ""), _arguments(arguments), str(id or "").strip()))

    def result(self, id: Any, content: Any, *, is_error: bool, name: Any = "") -> None:
        inner = _Reader()
        inner.parts(content, "tool")
        text = "".join(text for _, text in inner.texts)
        if not text and isinstance(content, list | dict):
            text = "".join(_leaves(content)) if not inner.media else ""
        self.results.append(Result(str(id), str(name), text, is_error, len(inner.media)))
        self.media += inner.media
        self.unknown += inner.unknown


def _has_results(content: Any) -> bool:
    return isinstance(content, list) and any(
        isinstance(part, dict)
        and (part.get("type") == "tool_result" or "functionResponse" in part or "toolResult" in part)
        for part in content
    )


def _unknown_fields(fields: Fields, known: frozenset[str]) -> list[str]:
    return [name for name, value in fields.items() if name not in known and value not in (None, "", [], {}, False)]


def _unknown_within(part: Fields) -> Iterator[str]:
    """What objects within a part say beside what is read, and how closely to look at a picture."""
    call = part.get("functionCall") or part.get("function_call")
    answer = part.get("functionResponse") or part.get("function_response")
    yield from _unknown_fields(call, frozenset({"id", "name", "args"})) if isinstance(call, dict) else ()
    yield from (
        _unknown_fields(answer, frozenset({"id", "name", "response", "parts"})) if isinstance(answer, dict) else ()
    )
    for held in (part, part.get("image_url")):
        if isinstance(held, dict) and held.get("detail") not in (None, "auto"):
            yield "detail"


def _wrapped(value: Any) -> Any:
    """What a result of Gemini wraps in an object of one field."""
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in ("result", "output", "error", "content"):
        (inner,) = value.values()
        return inner if isinstance(inner, str | list) else json.dumps(inner)
    return json.dumps(value)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _leaves(inner)


_DATA: Final = ("data", "url", "file_data", "file_url", "image_url", "fileUri", "file_uri", "bytes", "uri", "file_id")


def _named(value: Any) -> Iterator[str]:
    for name, inner in value.items() if isinstance(value, dict) else ():
        if name in _DATA and isinstance(inner, str):
            yield inner
        yield from _named(inner)


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_text_of(part.get("text")) if isinstance(part, dict) else _text_of(part) for part in value)
    return ""


def _data_of(part: Fields) -> str:
    """What a medium is: its data or its address."""
    held = [*_named(part)] or [*_leaves(part)]
    longest = max(held, key=len, default="")
    return longest.partition(";base64,")[2] or longest


def _arguments(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return {} if value is None else value


_BODY: Final[dict[str, frozenset[str]]] = {
    "*": frozenset(
        {"model", "modelId", "messages", "input", "contents", "system", "instructions", "systemInstruction", "tools"}
    )
    | frozenset({"tool_choice", "toolConfig", "functions", "function_call", "stream", "temperature", "top_p", "top_k"})
    | frozenset(
        {
            "stop",
            "stop_sequences",
            "seed",
            "random_seed",
            "presence_penalty",
            "frequency_penalty",
            "parallel_tool_calls",
        }
    )
    | frozenset({*LIMITS, "response_format", "reasoning_effort", "reasoning", "thinking", "output_config", "user"})
    | frozenset({"generationConfig", "inferenceConfig", "outputConfig", "format", "options", "think", "k", "p"})
    | frozenset({"additionalModelRequestFields", "output_format", "stream_options"}),
    "openai_responses": frozenset({"text"}),
}


_FLAT: Final = ("type", "name", "namespace", "description", "strict", "function", "custom", "toolSpec", "format")
_INSIDE: Final[tuple[tuple[tuple[str, ...], frozenset[str]], ...]] = (
    (("response_format",), frozenset({"type", "json_schema", "schema"})),
    (("response_format", "json_schema"), frozenset({"name", "schema", "strict"})),
    (("text",), frozenset({"format"})),
    (("text", "format"), frozenset({"type", "name", "schema", "strict"})),
    (("outputConfig", "textFormat", "structure", "jsonSchema"), frozenset({"name", "schema"})),
    (("output_config",), frozenset({"effort", "format"})),
    (("output_config", "format"), frozenset({"type", "schema"})),
    (
        ("tool_choice",),
        frozenset(
            {"type", "name", "function", "custom", "allowed_tools", "mode", "tools", "disable_parallel_tool_use"}
        ),
    ),
    (("tool_choice", "function"), frozenset({"name"})),
    (("tool_choice", "allowed_tools"), frozenset({"mode", "tools"})),
    (("stream_options",), frozenset({"include_usage"})),
    (("thinking",), frozenset({"type", "budget_tokens", "token_budget"})),
    (("reasoning",), frozenset({"effort", "summary", "enabled", "max_tokens"})),
    (("toolConfig",), frozenset({"functionCallingConfig", "tools", "toolChoice"})),
    (("toolConfig", "functionCallingConfig"), frozenset({"mode", "allowedFunctionNames"})),
    (
        ("generationConfig",),
        frozenset({"temperature", "topP", "topK", "seed", "presencePenalty", "frequencyPenalty", "maxOutputTokens"})
        | {"stopSequences", "thinkingConfig", "responseSchema", "responseJsonSchema", "responseMimeType"},
    ),
    (("generationConfig", "thinkingConfig"), frozenset({"thinkingBudget", "thinkingLevel", "includeThoughts"})),
    (("inferenceConfig",), frozenset(INFERENCE.values())),
    (
        ("additionalModelRequestFields",),
        frozenset({"top_k", "thinking", "reasoning_config", "output_config", "reasoning_effort"}),
    ),
    (
        ("options",),
        frozenset({"temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty", "stop"})
        | {"num_predict"},
    ),
)
"""The settings that are read, and which of their fields have a reading of their own."""


_FORMATS: Final = ("response_format", "format")
_FORMAT_TYPES: Final = (None, "text", "json_object", "json_schema")
_WHOLE: Final = ("stream_options", "additionalModelRequestFields")
"""Settings that are left out as a whole, and reported so."""


def _unknown_inside(protocol: str, body: Fields) -> Iterator[str]:
    """Fields within settings and tools that the reading does not know."""
    for path, known in _INSIDE:
        value = field_at(body, path)
        if isinstance(value, dict) and (path[-1] not in _FORMATS or value.get("type") in _FORMAT_TYPES):
            whole = f"{path[0]}." if path[0] in _WHOLE else ""
            yield from (whole + name for name in _unknown_fields(value, known))
    if field_at(body, ("generationConfig", "thinkingConfig", "includeThoughts")) or field_at(
        body, ("reasoning", "summary")
    ):
        yield "summary"
    for entry in field_at(body, ("toolConfig", "tools")) or () if protocol == "bedrock" else ():
        if isinstance(entry, dict) and "cachePoint" in entry:
            yield "cachePoint"
    metadata = body.get("metadata")
    if protocol == "anthropic" and isinstance(metadata, dict):
        yield from _unknown_fields(metadata, frozenset({"user_id"}))


def _fields_of_tools(body: Fields) -> dict[str, Counter[str]]:
    """The fields of each declared tool that the reading does not know, and whether it is strict."""
    fields: dict[str, Counter[str]] = {}
    for tool in declared_tools(body):
        found = Counter(_unknown_fields(tool, frozenset((*_FLAT, *SCHEMA_FIELDS))))
        if tool.get("strict") is True:
            found["strict"] += 1
        fields.setdefault(str(tool["name"]), found)
    return fields


def view_of(protocol: str, body: Fields) -> View:
    """The reading of a request."""
    body = {camel_case(name): with_camel_case(value) for name, value in body.items()} if protocol == "gemini" else body
    reader = _Reader()
    system = body.get("systemInstruction") or body.get("system_instruction") or body.get("system")
    reader.parts(system.get("parts") if isinstance(system, dict) else system, "system")
    if isinstance(body.get("instructions"), str):
        reader.say("system", body["instructions"])
    messages = next((body[name] for name in ("messages", "contents", "input") if name in body), ())
    for message in [{"role": "user", "content": messages}] if isinstance(messages, str) else messages:
        reader.message(message)
    known = _BODY["*"] | _BODY.get(protocol, frozenset())
    if protocol == "anthropic" and isinstance(body.get("metadata"), dict):
        known |= {"metadata"}
    if isinstance(body.get("enable_thinking"), bool):
        known |= {"enable_thinking"}
    if type(body.get("thinking_budget")) is int:
        known |= {"thinking_budget"}
    reader.unknown.update(_unknown_fields(body, known))
    reader.unknown.update(_unknown_inside(protocol, body))
    return View(
        reader.texts,
        reader.thinking,
        reader.signatures,
        reader.calls,
        reader.results,
        reader.media,
        [*read_tools(body)],
        read_choice(body),
        read_options(protocol, body),
        reader.unknown,
        _fields_of_tools(body),
    )
