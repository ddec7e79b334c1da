"""Reads a Bedrock Converse request for the referee.

The forms follow the service's own model: blocks, sources and tools are objects with exactly one field, which says
what they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

from toolglot.referee.readers.forms import (
    ANYTHING,
    FLAG,
    SOME_TEXT,
    TEXT,
    Each,
    Fields,
    FormFaults,
    JsonForm,
    Keyed,
    Only,
    Plain,
    Values,
    fields,
    flag_of,
    look,
    objects,
    setting,
    settings,
    text_of,
)
from toolglot.referee.readers.forms import (
    form_of as _form,
)
from toolglot.referee.view import ChoiceView, MarkerView, Message, PartView, Role, Section, Setting, ToolView, View

_POINT: Final = "cachePoint"


def _source(*names: str) -> Only:
    """The sources of a medium."""
    known: dict[str, JsonForm] = {"bytes": TEXT, "s3Location": _S3, "text": TEXT, "content": Each(Only({"text": TEXT}))}
    return Only({name: known[name] for name in names})


def _media(*formats: str, **more: JsonForm) -> Fields:
    source = _source("bytes", "s3Location")
    return _form({"format": Values(formats), "source": source, **more}, "format", "source")


_FROM_0: Final = Plain("a whole number from 0", (int,), at_least=0)
_S3: Final = _form({"uri": SOME_TEXT, "bucketOwner": TEXT}, "uri")
_ERROR: Final = _form({"message": TEXT})
_CITED: Final = _form({"enabled": FLAG}, "enabled")
_IMAGE: Final = _media("png", "jpeg", "gif", "webp", error=_ERROR)
_VIDEO: Final = _media("mkv", "mov", "mp4", "webm", "flv", "mpeg", "mpg", "wmv", "three_gp")
_SOUNDS: Final = ("mp3", "opus", "wav", "aac", "flac", "mp4", "ogg", "mkv", "mka", "x-aac", "m4a", "mpeg", "mpga")
_AUDIO: Final = _media(*_SOUNDS, "pcm", "webm", error=_ERROR)
_DOCUMENT: Final = _form(
    {
        "format": Values(("pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md")),
        "name": SOME_TEXT,
        "source": _source("bytes", "s3Location", "text", "content"),
        "context": TEXT,
        "citations": _CITED,
    },
    "name",
    "source",
)
_SEARCH_RESULT: Final = _form(
    {"source": TEXT, "title": TEXT, "content": Each(_form({"text": TEXT}, "text")), "citations": _CITED},
    "source",
    "title",
    "content",
)
_CACHE_POINT: Final = _form({"type": Values(("default",)), "ttl": Values(("5m", "1h"))}, "type")
_GUARDED: Final = Only(
    {
        "text": _form(
            {"text": TEXT, "qualifiers": Each(Values(("grounding_source", "query", "guard_content")))}, "text"
        ),
        "image": _form({"format": Values(("png", "jpeg")), "source": _source("bytes")}, "format", "source"),
    }
)
_CITED_RANGE: Final = _form({"documentIndex": _FROM_0, "start": _FROM_0, "end": _FROM_0})
_LOCATION: Final = Only(
    {
        "web": _form({"url": TEXT, "domain": TEXT}),
        "documentChar": _CITED_RANGE,
        "documentPage": _CITED_RANGE,
        "documentChunk": _CITED_RANGE,
        "searchResultLocation": _form({"searchResultIndex": _FROM_0, "start": _FROM_0, "end": _FROM_0}),
    }
)
_CITATIONS: Final = _form(
    {
        "content": Each(Only({"text": TEXT})),
        "citations": Each(
            _form(
                {
                    "title": TEXT,
                    "source": TEXT,
                    "sourceContent": Each(Only({"text": TEXT})),
                    "location": _LOCATION,
                }
            )
        ),
    }
)
_TOOL_CHANGE: Final = _form({"tool": _form({"type": SOME_TEXT, "name": SOME_TEXT, "serverName": SOME_TEXT})}, "tool")
_RESULT_CONTENT: Final[dict[str, JsonForm]] = {
    "json": ANYTHING,
    "text": TEXT,
    "image": _IMAGE,
    "document": _DOCUMENT,
    "video": _VIDEO,
    "searchResult": _SEARCH_RESULT,
}
_BLOCK: Final = Only(
    {
        "text": TEXT,
        "image": _IMAGE,
        "document": _DOCUMENT,
        "video": _VIDEO,
        "audio": _AUDIO,
        "toolUse": _form(
            {"toolUseId": SOME_TEXT, "name": SOME_TEXT, "input": ANYTHING, "type": Values(("server_tool_use",))},
            "toolUseId",
            "name",
            "input",
            rules={"toolUseId": "bedrock-id-required"},
        ),
        "toolResult": _form(
            {
                "toolUseId": SOME_TEXT,
                "content": Each(Only(_RESULT_CONTENT)),
                "status": Values(("success", "error")),
                "type": TEXT,
            },
            "toolUseId",
            "content",
            rules={"toolUseId": "bedrock-id-required"},
        ),
        "guardContent": _GUARDED,
        "cachePoint": _CACHE_POINT,
        "reasoningContent": Only(
            {"reasoningText": _form({"text": TEXT, "signature": TEXT}, "text"), "redactedContent": TEXT}
        ),
        "citationsContent": _CITATIONS,
        "searchResult": _SEARCH_RESULT,
        "toolAddition": _TOOL_CHANGE,
        "toolRemoval": _TOOL_CHANGE,
    }
)
_TOOL_SPEC: Final = _form(
    {"name": SOME_TEXT, "description": SOME_TEXT, "inputSchema": Only({"json": ANYTHING}), "strict": FLAG},
    "name",
    "inputSchema",
    rules={"inputSchema": "bedrock-tools-schema-required"},
)
_TOOL_CONFIG: Final = _form(
    {
        "tools": Each(
            Only({"toolSpec": _TOOL_SPEC, "systemTool": _form({"name": SOME_TEXT}, "name"), "cachePoint": _CACHE_POINT})
        ),
        "toolChoice": Only(
            {"auto": _form({}), "any": _form({}), "tool": _form({"name": SOME_TEXT}, "name")},
            "bedrock-choice-modes",
        ),
    },
    "tools",
)
_STRUCTURE: Final = Only({"jsonSchema": _form({"schema": TEXT, "name": TEXT, "description": TEXT}, "schema")})
_BODY: Final = _form(
    {
        "modelId": SOME_TEXT,
        "messages": Each(
            _form(
                {"role": Values(("user", "assistant", "system")), "content": Each(_BLOCK)},
                "role",
                "content",
            )
        ),
        "system": Each(Only({"text": TEXT, "guardContent": _GUARDED, "cachePoint": _CACHE_POINT})),
        "inferenceConfig": _form(
            {
                "maxTokens": Plain("a whole number from 1", (int,), at_least=1),
                "temperature": Plain("a number from 0", (int, float), at_least=0),
                "topP": Plain("a number from 0", (int, float), at_least=0),
                "stopSequences": Each(SOME_TEXT),
            }
        ),
        "toolConfig": _TOOL_CONFIG,
        "guardrailConfig": _form(
            {
                "guardrailIdentifier": TEXT,
                "guardrailVersion": TEXT,
                "trace": Values(("enabled", "disabled", "enabled_full")),
                "streamProcessingMode": Values(("sync", "async")),
            }
        ),
        "additionalModelRequestFields": ANYTHING,
        "promptVariables": Keyed(Only({"text": TEXT})),
        "additionalModelResponseFieldPaths": Each(SOME_TEXT),
        "requestMetadata": Keyed(TEXT),
        "performanceConfig": _form({"latency": Values(("standard", "optimized"))}),
        "serviceTier": _form({"type": Values(("priority", "default", "flex", "reserved"))}, "type"),
        "outputConfig": _form(
            {
                "textFormat": _form(
                    {"type": Values(("json_schema",)), "structure": _STRUCTURE},
                    "type",
                    "structure",
                ),
                "effort": TEXT,
            }
        ),
    }
)

_SAMPLING: Final = {"temperature": "temperature", "topP": "top_p", "stopSequences": "stop"}
_THINKING: Final = {"enabled": "on", "disabled": "off"}
_ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant", "system": "system"}
_MEDIA: Final = ("image", "document", "video", "audio")
_CHOICES: Final[dict[str, Literal["auto", "required", "named"]]] = {"auto": "auto", "any": "required", "tool": "named"}


def read(body: dict[str, Any]) -> View:
    """The view of a request."""
    found = look(body, _BODY)
    request = fields(body)
    config, tool_config = fields(request.get("inferenceConfig")), fields(request.get("toolConfig"))
    output, own = fields(request.get("outputConfig")), fields(request.get("additionalModelRequestFields"))
    thinking, inner_path = fields(own.get("thinking")), "$.additionalModelRequestFields.thinking"
    markers = list[MarkerView]()
    tools = _tools(tool_config.get("tools"), markers)  # first: tools are the beginning of the prompt
    return View(
        is_continued=request.get("messages") is None,  # a stored prompt has messages of its own
        system=_system(request.get("system"), markers),
        messages=tuple(_messages(request.get("messages"), markers, found)),
        tools=tools,
        tools_path="$.toolConfig.tools",
        choice=_choice(tool_config.get("toolChoice")),
        max_tokens=setting(config, "maxTokens", "$.inferenceConfig"),
        max_tokens_field="maxTokens" if config.get("maxTokens") is not None else "",
        sampling=settings(config, _SAMPLING, "$.inferenceConfig") | _beside_thinking(own),
        thinking_mode=_mode(setting(thinking, "type", inner_path)),
        budget=setting(thinking, "budget_tokens", inner_path),
        effort=setting(output, "effort", "$.outputConfig"),
        output=Setting("$.outputConfig.textFormat", "json_schema") if fields(output.get("textFormat")) else None,
        cache_markers=tuple(markers),
        extra_fields=found.take("$"),
        extra_paths=found.unknown_paths(),
        shapes=tuple(found.shapes),
    )


def _beside_thinking(own: dict[str, Any]) -> dict[str, Setting]:
    """Claude's `top_k`, if it thinks: other models have such a field too."""
    thinks = fields(own.get("thinking")).get("type") in ("enabled", "adaptive")
    return settings(own, {"top_k": "top_k"}, "$.additionalModelRequestFields") if thinks else {}


def _mode(written: Setting | None) -> Setting | None:
    if written is None or not isinstance(written.value, str):
        return written
    return Setting(written.path, _THINKING.get(written.value, written.value))


def _choice(written: Any) -> ChoiceView | None:
    wire = fields(written)
    kind = next(iter(wire), None)
    mode = _CHOICES.get(kind) if len(wire) == 1 and kind is not None else None
    if mode is None:
        return None
    name = text_of(fields(wire["tool"]).get("name")) if mode == "named" else None
    return ChoiceView(path="$.toolConfig.toolChoice", mode=mode, names=() if name is None else (name,))


def _tools(written: Any, markers: list[MarkerView]) -> tuple[ToolView, ...] | None:
    if not isinstance(written, list):
        return None
    tools = list[ToolView]()
    for path, tool in objects(written, "$.toolConfig.tools"):
        if "toolSpec" in tool:
            tools.append(_function(fields(tool["toolSpec"]), path))
        elif "systemTool" in tool:
            name = text_of(fields(tool["systemTool"]).get("name"))
            tools.append(ToolView(path=path, name=name, kind="server", type="systemTool"))
        elif _POINT in tool:
            markers.append(_marker(tool, path, "tools"))
    return tuple(tools)


def _function(spec: dict[str, Any], path: str) -> ToolView:
    return ToolView(
        path=path,
        name=text_of(spec.get("name")),
        type="toolSpec",
        description=text_of(spec.get("description")),
        schema=fields(spec.get("inputSchema")).get("json"),
        schema_path=f"{path}.toolSpec.inputSchema.json",
        schema_field="inputSchema",
        strict=flag_of(spec.get("strict")),
    )


def _system(written: Any, markers: list[MarkerView]) -> Message | None:
    if not isinstance(written, list):
        return None
    items = tuple(_blocks(written, "$.system", markers, "system"))
    return Message(role="system", path="$.system", items=items)


def _messages(written: Any, markers: list[MarkerView], found: FormFaults) -> Iterator[Message]:
    for path, message in objects(written, "$.messages"):
        role = _ROLES.get(message["role"]) if isinstance(message.get("role"), str) else None
        if role is not None:
            yield Message(
                role=role,
                path=path,
                items=tuple(_blocks(message.get("content"), f"{path}.content", markers, "messages")),
                has_content=message.get("content") is not None,
                extra_fields=found.take(path),
            )


def _blocks(content: Any, path: str, markers: list[MarkerView], section: Section) -> Iterator[PartView]:
    """The parts of content. A cache point marks the block before it."""
    before = ""
    for inner_path, block in objects(content, path):
        kind = next(iter(block), "")
        if kind == _POINT:
            markers.append(_marker(block, inner_path, "results" if before == "toolResult" else section))
        elif kind:
            yield _block(kind, block[kind], inner_path)
        before = kind


def _marker(block: dict[str, Any], path: str, section: Section) -> MarkerView:
    return MarkerView(path, section, text_of(fields(block[_POINT]).get("ttl")))


def _block(kind: str, value: Any, path: str) -> PartView:
    if kind == "text":
        return PartView(kind="text", path=path, type=kind, text=text_of(value))
    wire = fields(value)
    if kind in ("toolUse", "toolResult") and wire.get("type") is not None:
        return PartView(kind="server", path=path, type=kind, name=text_of(wire.get("name")))
    if kind == "toolUse":
        return PartView(
            kind="call",
            path=path,
            type=kind,
            id=text_of(wire.get("toolUseId")),
            name=text_of(wire.get("name")),
            arguments=wire.get("input"),
        )
    if kind == "toolResult":
        return _result(wire, path)
    if kind == "reasoningContent":
        return _thinking(wire, path)
    if kind in _MEDIA:
        source: Literal["data", "file"] = "file" if "s3Location" in fields(wire.get("source")) else "data"
        name = text_of(wire.get("name")) if kind == "document" else None
        return PartView(kind="media", path=path, type=kind, media=kind, source=source, name=name)
    return PartView(kind="other", path=path, type=kind)


def _result(wire: dict[str, Any], path: str) -> PartView:
    content, status = wire.get("content"), wire.get("status")
    return PartView(
        kind="result",
        path=path,
        type="toolResult",
        id=text_of(wire.get("toolUseId")),
        content=tuple(_flat_blocks(content, f"{path}.toolResult.content")),
        has_content=content is not None,
        is_error=status == "error" if isinstance(status, str) else None,
    )


def _flat_blocks(content: Any, path: str) -> Iterator[PartView]:
    """The parts of a result. They hold no results themselves, so that a wrong body nests no deeper."""
    for inner_path, block in objects(content, path):
        kind = next(iter(block), "")
        if kind in _RESULT_CONTENT:
            yield _block(kind, block[kind], inner_path)
        elif kind:
            yield PartView(kind="other", path=inner_path, type=kind)


def _thinking(wire: dict[str, Any], path: str) -> PartView:
    reasoning_text = fields(wire.get("reasoningText"))
    return PartView(
        kind="thinking",
        path=path,
        type="reasoningContent",
        text=text_of(reasoning_text.get("text")),
        signature=text_of(reasoning_text.get("signature")),
        is_redacted="redactedContent" in wire,
    )
