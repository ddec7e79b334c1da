"""Reads a Cohere v2 chat request for the referee."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

from toolglot.referee.readers.forms import (
    ANYTHING,
    FLAG,
    NUMBER,
    OBJECT,
    TEXT,
    TEXTS,
    WHOLE,
    ByKind,
    Each,
    FormFaults,
    JsonForm,
    Typed,
    Values,
    fields,
    look,
    objects,
    setting,
    settings,
    text_of,
)
from toolglot.referee.readers.forms import (
    lenient_form as _form,
)
from toolglot.referee.view import ChoiceView, Message, PartView, Role, Setting, ToolView, View


def _content(table: dict[str, JsonForm]) -> ByKind:
    return ByKind("a string or a list of parts", {str: TEXT, list: Each(Typed(table))})


_TYPE: Final[dict[str, JsonForm]] = {"type": ANYTHING}
_TEXT_PART: Final = _form({**_TYPE, "text": TEXT}, "text")
_DOCUMENT: Final = _form({"data": OBJECT, "id": TEXT}, "data")
_IMAGE: Final = _form({"url": TEXT, "detail": Values(("auto", "low", "high"))}, "url")
_IMAGE_PART: Final = _form({**_TYPE, "image_url": _IMAGE}, "image_url")
_CALL: Final = _form(
    {"id": TEXT, "type": Values(("function",)), "function": _form({"name": TEXT, "arguments": TEXT})},
    "id",
    rules={"id": "cohere-id-required"},
)
_SOURCE: Final = Typed(
    {
        "tool": _form({**_TYPE, "id": TEXT, "tool_output": OBJECT}),
        "document": _form({**_TYPE, "id": TEXT, "document": OBJECT}),
    }
)
_CITATION: Final = _form(
    {
        "start": WHOLE,
        "end": WHOLE,
        "text": TEXT,
        "sources": Each(_SOURCE),
        "content_index": WHOLE,
        "type": Values(("TEXT_CONTENT", "THINKING_CONTENT", "PLAN")),
    }
)
_ROLE: Final[dict[str, JsonForm]] = {"role": ANYTHING}
_MESSAGE: Final = Typed(
    {
        "user": _form(
            {**_ROLE, "content": _content({"text": _TEXT_PART, "image_url": _IMAGE_PART})},
            "content",
        ),
        "assistant": _form(
            {
                **_ROLE,
                "content": _content({"text": _TEXT_PART, "thinking": _form({**_TYPE, "thinking": TEXT}, "thinking")}),
                "tool_calls": Each(_CALL),
                "tool_plan": TEXT,
                "citations": Each(_CITATION),
            }
        ),
        "system": _form({**_ROLE, "content": _content({"text": _TEXT_PART})}, "content"),
        "tool": _form(
            {
                **_ROLE,
                "tool_call_id": TEXT,
                "content": _content(
                    {"text": _TEXT_PART, "document": _form({**_TYPE, "document": _DOCUMENT}, "document")}
                ),
            },
            "tool_call_id",
            "content",
            rules={"tool_call_id": "cohere-id-required"},
        ),
    },
    key="role",
)
_TOOL: Final = _form(
    {
        "type": Values(("function",), "cohere-tools-server"),
        "function": _form(
            {"name": TEXT, "description": TEXT, "parameters": OBJECT},
            "name",
            "parameters",
            rules={"parameters": "cohere-tools-schema-required"},
        ),
    }
)
_BODY: Final = _form(
    {
        "model": TEXT,
        "messages": Each(_MESSAGE),
        "tools": Each(_TOOL),
        "strict_tools": FLAG,
        "documents": Each(ByKind("a string or an object", {str: TEXT, dict: _DOCUMENT})),
        "citation_options": _form({"mode": Values(("ENABLED", "DISABLED", "FAST", "ACCURATE", "OFF"))}),
        "response_format": Typed(
            {
                "text": _form(_TYPE),
                "json_object": _form({**_TYPE, "json_schema": OBJECT, "schema": OBJECT}),
            }
        ),
        "safety_mode": Values(("CONTEXTUAL", "STRICT", "OFF")),
        "max_tokens": WHOLE,
        "stop_sequences": TEXTS,
        "temperature": NUMBER,
        "seed": WHOLE,
        "frequency_penalty": NUMBER,
        "presence_penalty": NUMBER,
        "k": WHOLE,
        "p": NUMBER,
        "logprobs": FLAG,
        "tool_choice": Values(("REQUIRED", "NONE"), "cohere-choice-modes"),
        "thinking": _form({"type": Values(("enabled", "disabled")), "token_budget": WHOLE}, "type"),
        "priority": WHOLE,
        "stream": FLAG,
        "raw_prompting": FLAG,
        "return_prompt": FLAG,
    },
    "model",
    "messages",
)

_SAMPLING: Final = {
    "temperature": "temperature",
    "p": "top_p",
    "k": "top_k",
    "stop_sequences": "stop",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
_MODES: Final[dict[str, Literal["none", "required"]]] = {"NONE": "none", "REQUIRED": "required"}
_THINKING: Final = {"enabled": "on", "disabled": "off"}
_ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant", "system": "system", "tool": "tool"}


def read(body: dict[str, Any]) -> View:
    """The view of a request."""
    found = look(body, _BODY)
    request = fields(body)
    thinking = fields(request.get("thinking"))
    return View(
        messages=tuple(_messages(request.get("messages"), found)),
        tools=tuple(_tools(request["tools"], found)) if isinstance(request.get("tools"), list) else None,
        choice=_choice(request.get("tool_choice")),
        max_tokens=setting(request, "max_tokens"),
        max_tokens_field="max_tokens" if request.get("max_tokens") is not None else "",
        sampling=settings(request, _SAMPLING),
        thinking_mode=_mode(thinking.get("type")),
        budget=setting(thinking, "token_budget", "$.thinking"),
        output=_output(fields(request.get("response_format"))),
        extra_fields=found.take("$"),
        extra_paths=found.unknown_paths(),
        shapes=tuple(found.shapes),
    )


def _mode(written: Any) -> Setting | None:
    if written is None:
        return None
    return Setting("$.thinking.type", _THINKING.get(written, written) if isinstance(written, str) else written)


def _output(format: dict[str, Any]) -> Setting | None:
    if format.get("type") != "json_object":
        return None
    has_schema = any(format.get(name) is not None for name in ("json_schema", "schema"))
    return Setting("$.response_format", "json_schema" if has_schema else "json")


def _choice(written: Any) -> ChoiceView | None:
    mode = _MODES.get(written) if isinstance(written, str) else None
    return None if mode is None else ChoiceView(path="$.tool_choice", mode=mode)


def _tools(written: Any, found: FormFaults) -> Iterator[ToolView]:
    for path, tool in objects(written, "$.tools"):
        function = fields(tool.get("function"))
        yield ToolView(
            path=path,
            name=text_of(function.get("name")),
            type="function",
            description=text_of(function.get("description")),
            schema=function.get("parameters"),
            schema_path=f"{path}.function.parameters",
            schema_field="parameters",
            extra_fields=found.take(path),
        )


def _messages(written: Any, found: FormFaults) -> Iterator[Message]:
    for path, message in objects(written, "$.messages"):
        role = _ROLES.get(message["role"]) if isinstance(message.get("role"), str) else None
        if role is not None:
            content = message.get("content")
            yield Message(
                role=role,
                path=path,
                extra_fields=found.take(path),
                items=(_result(message, path),) if role == "tool" else tuple(_items(message, path, found)),
                has_content=content is not None,
                is_empty_string=content == "",
            )


def _result(message: dict[str, Any], path: str) -> PartView:
    content, inner_path = message.get("content"), f"{path}.content"
    whole = (PartView(kind="text", path=inner_path, text=content),) if isinstance(content, str) else ()
    return PartView(
        kind="result",
        path=path,
        type="tool",
        id=text_of(message.get("tool_call_id")),
        content=whole or tuple(_parts(content, inner_path, FormFaults())),
        has_content=content is not None,
    )


def _items(message: dict[str, Any], path: str, found: FormFaults) -> Iterator[PartView]:
    content, inner_path = message.get("content"), f"{path}.content"
    if isinstance(content, str) and content:
        yield PartView(kind="text", path=inner_path, text=content)
    yield from _parts(content, inner_path, found)
    plan = text_of(message.get("tool_plan"))
    if plan is not None:
        yield PartView(kind="other", path=f"{path}.tool_plan", type="tool_plan", text=plan)
    for inner_path, call in objects(message.get("tool_calls"), f"{path}.tool_calls"):
        function = fields(call.get("function"))
        yield PartView(
            kind="call",
            path=inner_path,
            type="function",
            id=text_of(call.get("id")),
            name=text_of(function.get("name")),
            arguments=function.get("arguments"),
            extra_fields=found.take(inner_path),
        )


def _parts(content: Any, path: str, found: FormFaults) -> Iterator[PartView]:
    for inner_path, part in objects(content, path):
        kind, extra = text_of(part.get("type")) or "", found.take(inner_path)
        if kind == "text":
            yield PartView(kind="text", path=inner_path, type=kind, text=text_of(part.get("text")), extra_fields=extra)
        elif kind == "thinking":
            yield PartView(
                kind="thinking", path=inner_path, type=kind, text=text_of(part.get("thinking")), extra_fields=extra
            )
        elif kind == "image_url":
            url = text_of(fields(part.get("image_url")).get("url")) or ""
            source: Literal["data", "url"] = "data" if url.startswith("data:") else "url"
            yield PartView(kind="media", path=inner_path, type=kind, media="image", source=source, extra_fields=extra)
        else:
            yield PartView(kind="other", path=inner_path, type=kind, extra_fields=extra)
