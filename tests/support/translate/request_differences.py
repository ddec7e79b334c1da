"""What a request says, read from its raw JSON, and the differences between two readings.

The reading shares no code with what is judged. One walk reads the messages of all seven protocols, since a client's
history may hold the forms of several; settings are read by a table of paths for each protocol. `differences` compares
what the client wrote with what the target is sent; `unreported` is those that no entry of the report accounts for.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from toolglot.conversation.report import Entry, Report

Fields = dict[str, Any]


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


class Tool(NamedTuple):
    name: str
    description: str
    schema: Any


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


class Difference(NamedTuple):
    kind: str
    what: str
    words: tuple[str, ...]
    """An entry accounts for the difference if one of these is in its path or its reason."""
    id: str = ""
    """The call that it is about, as the client wrote it."""
    actions: frozenset[str] = frozenset()
    """An entry accounts for the difference if it says one of these was done; empty: any."""


# --- reading ----------------------------------------------------------------------------------------

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
        if isinstance(_at(part, ("guardContent", "text")), dict):
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


_PATHS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "temperature": {"*": ("temperature",), "gemini": ("generationConfig", "temperature")},
    "top_p": {"*": ("top_p",), "gemini": ("generationConfig", "topP"), "cohere": ("p",)},
    "top_k": {"*": ("top_k",), "gemini": ("generationConfig", "topK"), "cohere": ("k",)},
    "seed": {"*": ("seed",), "gemini": ("generationConfig", "seed")},
    "presence_penalty": {"*": ("presence_penalty",), "gemini": ("generationConfig", "presencePenalty")},
    "frequency_penalty": {"*": ("frequency_penalty",), "gemini": ("generationConfig", "frequencyPenalty")},
    "parallel": {"*": ("parallel_tool_calls",)},
    "user": {"*": ("user",), "anthropic": ("metadata", "user_id")},
}
_INFERENCE: Final = {"temperature": "temperature", "top_p": "topP", "max_tokens": "maxTokens", "stop": "stopSequences"}
_LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def _at(body: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body


def _options(protocol: str, body: Fields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    config = body.get("generationConfig") or {}
    if protocol == "bedrock":
        inference = body.get("inferenceConfig") or {}
        found = {name: inference.get(field) for name, field in _INFERENCE.items()}
        more = body.get("additionalModelRequestFields") or {}
        found |= {"top_k": more.get("top_k")}
    elif protocol == "ollama":
        own = body.get("options") or {}
        names = ("temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty", "stop")
        found = {name: own.get(name) for name in names} | {"max_tokens": own.get("num_predict")}
    else:
        for name, paths in _PATHS.items():
            found[name] = _at(body, paths.get(protocol, paths["*"]))
        found["seed"] = body.get("random_seed") if found["seed"] is None else found["seed"]  # Mistral's name
        found["max_tokens"] = next((body[field] for field in _LIMITS if body.get(field) is not None), None)
        found["stop"] = body.get("stop") or body.get("stop_sequences")
    if protocol == "gemini":
        found |= {"max_tokens": config.get("maxOutputTokens"), "stop": config.get("stopSequences")}
    if isinstance(found.get("stop"), str):
        found["stop"] = [found["stop"]]
    if protocol == "anthropic" and (body.get("tool_choice") or {}).get("disable_parallel_tool_use"):
        found["parallel"] = False
    found["parallel"] = False if found.get("parallel") is False else None
    found["output"] = _output(protocol, body)
    found["thinking"] = _requested_thinking(protocol, body)
    return {name: value for name, value in found.items() if value is not None and value != []}


class ThinkingRequest(NamedTuple):
    """What is requested of thinking: whether (`off`, `on`, an unknown word), how hard, with how many tokens."""

    state: str | None = None
    effort: str | None = None
    budget: int | None = None


_STATES: Final = {"enabled": "on", "disabled": "off", "adaptive": "on", True: "on", False: "off"}


def _requested_thinking(protocol: str, body: Fields) -> ThinkingRequest | None:
    """What a request says of thinking, in whichever of the forms that hosts have for it."""
    if protocol == "bedrock":
        body = body.get("additionalModelRequestFields") or {}
    config = _at(body, ("generationConfig", "thinkingConfig")) if protocol == "gemini" else None
    config = {_camel(name): value for name, value in config.items()} if isinstance(config, dict) else {}
    thinking: Fields = next(
        (body[name] for name in ("thinking", "reasoning_config") if isinstance(body.get(name), dict)),
        {},
    )
    reasoning: Any = body.get("reasoning")
    reasoning = reasoning if isinstance(reasoning, dict) else {}
    think = body.get("think")
    efforts = (
        *(_at(body, ("output_config", "effort")), body.get("reasoning_effort"), reasoning.get("effort")),
        *(config.get("thinkingLevel"), think, thinking.get("maxReasoningEffort")),
    )
    budgets = (
        *(thinking.get("budget_tokens"), thinking.get("token_budget"), body.get("thinking_budget")),
        *(reasoning.get("max_tokens"), config.get("thinkingBudget")),
    )
    switches = (thinking.get("type"), body.get("enable_thinking"), reasoning.get("enabled"), bool(think) or think)
    effort = next((one.lower() for one in efforts if isinstance(one, str)), None)
    budget = next((int(one) for one in budgets if isinstance(one, int | float) and type(one) is not bool), None)
    state = next((_STATES.get(one, str(one)) for one in switches if isinstance(one, str | bool)), None)
    if effort == "none" or budget == 0 or state == "off":
        state, effort, budget = "off", None, None
    elif state is None and (effort is not None or budget is not None):
        state = "on"
    budget = None if budget is not None and budget < 0 else budget  # as much as the model likes
    requested = ThinkingRequest(state, effort, budget)
    return None if requested == ThinkingRequest() else requested


def _output(protocol: str, body: Fields) -> str | None:
    """The kind of output that is requested."""
    if protocol == "gemini":
        config = body.get("generationConfig") or {}
        if _plain(config.get("responseSchema") or config.get("responseJsonSchema")):
            return "json_schema"
        return "json" if config.get("responseMimeType") == "application/json" else None
    if protocol == "ollama":
        form = body.get("format")
        return "json" if form == "json" or not _plain(form or {"a": 1}) else "json_schema" if form else None
    form = {
        "openai_chat": body.get("response_format"),
        "cohere": body.get("response_format"),
        "openai_responses": _at(body, ("text", "format")),
        "anthropic": _at(body, ("output_config", "format")) or body.get("output_format"),
        "bedrock": _at(body, ("outputConfig", "textFormat")),
    }[protocol]
    kind = form.get("type") if isinstance(form, dict) else None
    schema = _at(form, ("json_schema", "schema")) or _at(form, ("structure", "jsonSchema", "schema"))
    schema = json.loads(schema) if isinstance(schema, str) else schema or form.get("schema") if kind else None
    if kind == "json_schema" and not _plain(schema):
        return "json"
    if kind == "json_object":
        return "json_schema" if _plain(form.get("json_schema") or form.get("schema")) else "json"
    return kind if kind != "text" else None


_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema")


def _declared(body: Fields) -> Iterator[Fields]:
    """Each declared function as the object that names it, with what stands around that."""
    declared = body.get("tools") or body.get("functions") or _at(body, ("toolConfig", "tools")) or ()
    if isinstance(declared, dict):
        declared = [declared]
    for tool in declared if isinstance(declared, list) else ():
        if not isinstance(tool, dict):
            continue
        inner = tool.get("functionDeclarations") or tool.get("function_declarations") or [tool]
        for one in inner:
            held = one.get("function") or one.get("custom") or one.get("toolSpec") or one
            if isinstance(held, dict) and "name" in held:
                yield {**one, **held}


def _tools(body: Fields) -> Iterator[Tool]:
    for tool in _declared(body):
        schema = next((tool[name] for name in _SCHEMAS if name in tool), None)
        if isinstance(schema, dict) and set(schema) == {"json"}:
            schema = schema["json"]
        yield Tool(str(tool["name"]), str(tool.get("description") or ""), schema)


_MODES: Final = {"any": "required", "ANY": "required", "AUTO": "auto", "NONE": "none", "REQUIRED": "required"}
_MODES_KNOWN: Final = ("auto", "none", "required", "named", "allowed", "validated", "VALIDATED")


def _choice(body: Fields) -> tuple[str, tuple[str, ...]]:
    config = body.get("toolConfig") or {}
    calling = config.get("functionCallingConfig") or {}
    choice = body.get("tool_choice", body.get("function_call", config.get("toolChoice")))
    if calling:
        names = tuple(calling.get("allowedFunctionNames") or ())
        mode = _MODES.get(str(calling.get("mode")).upper(), "auto")
        return ("named" if len(names) == 1 and mode == "required" else mode, names)
    if isinstance(choice, str):
        return _MODES.get(choice, choice), ()
    if not isinstance(choice, dict):
        return "auto", ()
    for mode in ("auto", "any", "tool"):
        if mode in choice:
            return ("named", (str(choice["tool"].get("name")),)) if mode == "tool" else (_MODES.get(mode, mode), ())
    kind = str(choice.get("type", "function"))
    allowed = choice.get("allowed_tools", choice)
    if kind == "allowed_tools":
        names = tuple((tool.get("function") or tool).get("name") for tool in allowed.get("tools") or ())
        mode = allowed.get("mode", "auto")
        return ("named" if mode == "required" and len(names) == 1 else mode, names)
    name = choice.get("name") or (choice.get("function") or choice.get("custom") or {}).get("name")
    return ("named", (name,)) if name else (_MODES.get(kind, kind), ())


_CAMEL: Final = ("generationConfig", "toolConfig", "functionCallingConfig", "systemInstruction")


def _camel(name: str) -> str:
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)


def _camelised(value: Any) -> Any:
    """Settings of Gemini in the one of its two spellings that is read here; the texts are left as they are."""
    if not isinstance(value, dict):
        return value
    return {_camel(name): _camelised(inner) if _camel(name) in _CAMEL else inner for name, inner in value.items()}


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
    | frozenset({*_LIMITS, "response_format", "reasoning_effort", "reasoning", "thinking", "output_config", "user"})
    | frozenset({"generationConfig", "inferenceConfig", "outputConfig", "format", "options", "think", "k", "p"})
    | frozenset({"additionalModelRequestFields", "output_format", "stream_options"}),
    "openai_responses": frozenset({"text"}),
}


_FLAT: Final = ("type", "name", "description", "strict", "function", "custom", "toolSpec", "format")
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
    (("inferenceConfig",), frozenset(_INFERENCE.values())),
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
        value = _at(body, path)
        if isinstance(value, dict) and (path[-1] not in _FORMATS or value.get("type") in _FORMAT_TYPES):
            whole = f"{path[0]}." if path[0] in _WHOLE else ""
            yield from (whole + name for name in _unknown_fields(value, known))
    if _at(body, ("generationConfig", "thinkingConfig", "includeThoughts")) or _at(body, ("reasoning", "summary")):
        yield "summary"
    metadata = body.get("metadata")
    if protocol == "anthropic" and isinstance(metadata, dict):
        yield from _unknown_fields(metadata, frozenset({"user_id"}))
    for tool in {str(tool["name"]): tool for tool in reversed([*_declared(body)])}.values():
        yield from _unknown_fields(tool, frozenset((*_FLAT, *_SCHEMAS)))
        if tool.get("strict") is True:
            yield "strict"


def view_of(protocol: str, body: Fields) -> View:
    """The reading of a request."""
    body = {_camel(name): _camelised(value) for name, value in body.items()} if protocol == "gemini" else body
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
        [*_tools(body)],
        _choice(body),
        _options(protocol, body),
        reader.unknown,
    )


# --- comparing --------------------------------------------------------------------------------------


def differences(source: View, target: View) -> Iterator[Difference]:
    """Everything that the target reads otherwise than the client wrote it."""
    yield from _text_differences(source, target)
    yield from _call_differences(source, target)
    yield from _result_differences(source, target)
    yield from _hidden_differences(source, target)
    yield from _tool_differences(source, target)
    yield from _setting_differences(source, target)
    for field, count in source.unknown.items():
        if target.unknown[field] < count:
            marker: tuple[str, ...] = (
                ("cache marker",) if "cache" in field else ("line of text",) if field == "detail" else ()
            )
            if field == "strict" and len(target.tools) < len(source.tools):
                marker = ("with only the named tools", "tools were dropped")  # and with them their switch
            yield Difference("unknown field", field, (*field.split("."), *marker))


def _text_differences(source: View, target: View) -> Iterator[Difference]:
    by_speaker: dict[str, str] = {}
    for speaker, text in target.texts:
        by_speaker[speaker] = by_speaker.get(speaker, "") + "\n" + text
    everywhere = "\n".join([*by_speaker.values(), *(result.text for result in target.results)])
    for speaker, text in source.texts:
        if text.strip() in by_speaker.get(speaker, ""):
            continue
        if text.strip() in everywhere:
            words = ("speaker", "system", "prompt", "result", "text", "role", "message", "moved")
            yield Difference("text of another speaker", text[:60], words)
        else:
            yield Difference("text", text[:60], ("text", "result", "turn", "content", "message", "system"))
    known = sorted({text for _, text in source.texts} | set(source.thinking), key=len, reverse=True)
    results = "\n".join(result.text for result in source.results)
    for _, text in target.texts:
        rest = text.replace("<think>", "").replace("</think>", "")
        for piece in known:
            rest = rest.replace(piece, "").replace(piece.strip(), "") if piece.strip() in rest else rest
        if rest.strip() and rest.strip() not in results:
            yield _added_text(rest.strip())


_ADDED: Final[tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]] = (
    ("OK.", ("added", "moved"), ("bridge",)),
    ("Continue.", ("added", "moved"), ("bridge",)),
    ("<system>", ("converted",), ("tagged text",)),
    ("[Result of a tool call", ("converted",), ("kept as text",)),
    ("[Another result]", ("converted",), ("kept as text",)),
    ("[From the tool results:]", ("moved",), ("behind the results",)),
)
"""How words that are put in begin, and what the report says of each."""
_ADDING: Final = frozenset({"added", "converted", "moved", "replaced"})
_ADDED_WORDS: Final = ("text", "bridge", "placeholder", "result", "synthetic", "empty", "prompt")


def _added_text(text: str) -> Difference:
    """Added words: accounted for by an entry that something was put in or became text."""
    for beginning, actions, words in _ADDED:
        if text.startswith(beginning):
            return Difference("invented text", text[:60], words, actions=frozenset(actions))
    return Difference("invented text", text[:60], _ADDED_WORDS, actions=_ADDING)


def _call_differences(source: View, target: View) -> Iterator[Difference]:
    names = Counter(call.name for call in target.calls)
    if len(source.calls) != len(target.calls):
        yield Difference(
            "number of calls", f"{len(source.calls)} → {len(target.calls)}", ("call", "text", "result", "turn")
        )
        return
    for before, after in zip(source.calls, target.calls, strict=True):
        if before.name != after.name and before.name not in names:
            yield Difference("name of a call", before.name, (before.name, "name"))
        if before.arguments != after.arguments and before.name == after.name:
            yield Difference("arguments", str(before.arguments)[:60], ("argument", "free-text", "null"), before.id)
        if before.id and after.id and before.id != after.id:
            yield Difference("id of a call", f"{before.id} → {after.id}", (" id", "ids"))


def _result_differences(source: View, target: View) -> Iterator[Difference]:
    result_texts = [result.text for result in target.results]
    all_text = "\n".join(text for _, text in target.texts)
    for result in source.results:
        text = result.text.strip()
        is_there = text in all_text or any(_dense(text) in _dense(other) for other in result_texts)
        if text and not is_there and not _same_json(text, result_texts):
            yield Difference("text of a result", text[:60], ("result", "tool", "text"), result.id)
    called = {call.id: call.name for call in source.calls if call.id}
    names = {tool.name for tool in target.tools} | {call.name for call in target.calls}
    for result in source.results:
        if result.name and called.get(result.id, result.name) != result.name and result.name not in names:
            yield Difference("name of a result", result.name, (result.name, "result"), result.id)
    lost = sum(result.is_error for result in source.results) - sum(result.is_error for result in target.results)
    if lost > 0:
        yield Difference("error of a result", str(lost), ("error", "fail", "result"))


def _dense(text: str) -> str:
    """Parts of a result are joined in more than one way."""
    return "".join(text.split())


def _same_json(text: str, others: list[str]) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    for other in others:
        try:
            if json.loads(other) == value:
                return True
        except ValueError:
            continue
    return False


def _hidden_differences(source: View, target: View) -> Iterator[Difference]:
    kept = "\n".join([*target.thinking, *(text for _, text in target.texts)])
    for text in source.thinking:
        if text.strip() and text.strip() not in kept:
            yield Difference("thinking", text[:60], ("thinking", "signature", "turn"))
    words = ("signature", "thinking", "cipher", "redacted", "encrypted", "without content")
    for signature, count in Counter(source.signatures).items():
        if Counter(target.signatures)[signature] < count:
            yield Difference("signature", signature[:30], words)
    for data, count in Counter(source.media).items():
        if Counter(target.media)[data] < count and data.strip() not in kept:
            kinds = ("image", "document", "audio", "video", "file", "media", "medium", "base64")
            yield Difference("media", data[:30], kinds)


def _tool_differences(source: View, target: View) -> Iterator[Difference]:
    after = {tool.name: tool for tool in target.tools}
    for tool in {tool.name: tool for tool in reversed(source.tools)}.values():
        if tool.name not in after:
            yield Difference("tool", tool.name, (tool.name, "tools"))
            continue
        other = after[tool.name]
        if tool.description.strip() not in other.description:
            yield Difference("description of a tool", tool.name, (tool.name, "description"))
        if (_plain(tool.schema) or None) != (_plain(other.schema) or None):
            yield Difference("schema of a tool", tool.name, (f"'{tool.name}'",))
    if len(after) > len({tool.name for tool in source.tools}):
        yield Difference("an undeclared tool", str([*after])[:60], ("stub", "tool", "renamed"))


def _plain(schema: Any) -> Any:
    """A schema without what says nothing: an empty object in any of its forms; types in small letters."""
    if isinstance(schema, dict):
        kept = {name: _plain(value) for name, value in schema.items()}
        if isinstance(kept.get("type"), str):
            kept["type"] = kept["type"].lower()
        kept = {name: value for name, value in kept.items() if value not in ({}, [], None)}
        return kept if kept != {"type": "object"} else None
    if isinstance(schema, list):
        return [_plain(value) for value in schema]
    return schema


def _setting_differences(source: View, target: View) -> Iterator[Difference]:
    if source.choice != target.choice and (source.tools or source.choice[0] not in ("auto", "none")):
        is_subset = source.choice[1] and {tool.name for tool in target.tools} <= set(source.choice[1])
        is_kept = is_subset and target.choice[0] in (source.choice[0], "required") and source.choice[0] != "auto"
        if not is_kept or len(target.tools) != len(source.tools):
            yield Difference("tool choice", f"{source.choice} → {target.choice}", ("choice", "$.tools", "tool"))
    for name in source.options.keys() | target.options.keys():
        before, after = source.options.get(name), target.options.get(name)
        if name == "thinking":
            yield from _thinking_differences(before or ThinkingRequest(), after or ThinkingRequest())
        elif before != after:
            words = {"output": ("output",), "parallel": ("parallel", "no tools"), "max_tokens": ("max_tokens", "limit")}
            yield Difference(f"option {name}", f"{before} → {after}", words.get(name, (name,)))


def _thinking_differences(before: ThinkingRequest, after: ThinkingRequest) -> Iterator[Difference]:
    for name, old, new in zip(ThinkingRequest._fields, before, after, strict=True):
        if old != new:
            words = ("$.reasoning", "$.thinking")
            yield Difference(f"{name} of thinking", f"{before} → {after}", words)


# --- accounting -------------------------------------------------------------------------------------


def unreported(source: str, body: Fields, target: str, sent: Fields, report: Report) -> list[Difference]:
    """The differences that no entry of the report accounts for."""
    found = differences(view_of(source, body), view_of(target, sent))
    entries = report.entries
    return [difference for difference in found if not any(_accounts(entry, difference) for entry in entries)]


def _accounts(entry: Entry, difference: Difference) -> bool:
    entry_text = f"{entry.path} {entry.reason}".lower()
    if not any(word.lower() in entry_text for word in difference.words):
        return False
    if difference.actions and entry.action not in difference.actions:
        return False
    return not difference.id or not entry.native_ids or difference.id in entry.native_ids


def listed(found: Iterable[Difference], report: Report) -> str:
    """For a failing test."""
    return "\n".join([*(f"{one.kind}: {one.what}" for one in itertools.islice(found, 9)), f"report: {report}"])
