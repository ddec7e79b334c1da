"""Reads an Anthropic Messages request for the referee.

The forms follow the provider's own types, but are generous: of blocks and tools that the provider runs itself, only the
type is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

from toolglot.referee.readers.forms import (
    ANYTHING,
    FLAG,
    LIST,
    NUMBER,
    OBJECT,
    TEXT,
    TEXTS,
    WHOLE,
    Also,
    ByKind,
    Each,
    Fields,
    FormFaults,
    JsonForm,
    Typed,
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
    lenient_typed_form as _form,
)
from toolglot.referee.view import ChoiceView, MarkerView, Message, PartView, Role, Section, Setting, ToolView, View

_CACHE: Final = "cache_control"


_MARK: Final = Fields({"type": Values(("ephemeral",)), "ttl": Values(("5m", "1h"))}, ("type",), null_is_absent=True)


def _block(known: dict[str, JsonForm], *required: str) -> Fields:
    return _form({_CACHE: _MARK, **known}, *required)


_SOURCES: Final[dict[str, JsonForm]] = {
    "base64": _form({"data": TEXT, "media_type": TEXT}, "data", "media_type"),
    "url": _form({"url": TEXT}, "url"),
    "file": _form({"file_id": TEXT}, "file_id"),
}
_DOCUMENT_SOURCES: Final[dict[str, JsonForm]] = {
    **_SOURCES,
    "text": _form({"data": TEXT, "media_type": TEXT}, "data", "media_type"),
    "content": _form({"content": ByKind("a string or a list", {str: TEXT, list: LIST})}, "content"),
}
_TEXT: Final = _block({"text": TEXT, "citations": LIST}, "text")
_IMAGE: Final = _block({"source": Typed(_SOURCES), "transformations": ANYTHING}, "source")
_DOCUMENT: Final = _block(
    {"source": Typed(_DOCUMENT_SOURCES), "title": TEXT, "context": TEXT, "citations": OBJECT}, "source"
)
_SEARCH_RESULT: Final = _block(
    {"content": LIST, "source": TEXT, "title": TEXT, "citations": OBJECT}, "content", "source", "title"
)
_IN_RESULTS: Final[dict[str, JsonForm]] = {
    "text": _TEXT,
    "image": _IMAGE,
    "document": _DOCUMENT,
    "search_result": _SEARCH_RESULT,
    "tool_reference": _block({"tool_name": TEXT}, "tool_name"),
    "browser_state": ANYTHING,
}


def _check_content_list(value: dict[str, Any], path: str, found: FormFaults) -> None:
    if value.get("content") == []:
        found.wrong(
            f"{path}.content", "the content of a result must not be an empty list", "anthropic-result-empty-list"
        )


_RESULT: Final = Also(
    _block(
        {
            "tool_use_id": TEXT,
            "content": ByKind("a string or a list of blocks", {str: TEXT, list: Each(Typed(_IN_RESULTS))}),
            "is_error": FLAG,
            "toolset_name": TEXT,
            "name": ANYTHING,
        }
    ),
    _check_content_list,
)
_CALLER: Final = Fields({"type": TEXT, "tool_id": TEXT}, ("type",), null_is_absent=True)
_CALL: Final = _block(
    {"id": TEXT, "name": TEXT, "input": ANYTHING, "caller": _CALLER, "toolset_name": TEXT}, "name", "input"
)
_OWN_CALL: Final = _block(
    {"id": TEXT, "name": TEXT, "input": OBJECT, "caller": _CALLER, "server_name": TEXT}, "id", "name", "input"
)
_OWN_RESULT: Final = _block(
    {"tool_use_id": TEXT, "content": ANYTHING, "caller": _CALLER, "is_error": FLAG}, "tool_use_id", "content"
)
_OWN: Final = (
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "advisor_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "mcp_tool_listing",
    "container_upload",
    "compaction",
    "fallback",
    "tool_reference",
    "tool_addition",
    "tool_removal",
    "browser_state",
)
"""Blocks of the provider's own tools."""

_BLOCKS: Final[dict[str, JsonForm]] = {
    "text": _TEXT,
    "image": _IMAGE,
    "document": _DOCUMENT,
    "search_result": _SEARCH_RESULT,
    "thinking": _form({"thinking": TEXT, "signature": TEXT}, "thinking"),
    "redacted_thinking": _form({"data": TEXT}, "data"),
    "tool_use": _CALL,
    "tool_result": _RESULT,
    **dict.fromkeys(_OWN, ANYTHING),
    **{kind: _OWN_CALL for kind in _OWN if kind.endswith("_tool_use")},
    **{kind: _OWN_RESULT for kind in _OWN if kind.endswith("_tool_result")},
}
_CONTENT: Final = ByKind("a string or a list of blocks", {str: TEXT, list: Each(Typed(_BLOCKS))})


def _check_output_config(value: dict[str, Any], path: str, found: FormFaults) -> None:
    """Only a system message changes the effort in the middle (beta `mid-conversation-output-config-2026-07-01`)."""
    if "output_config" in value and value.get("role") != "system":
        found.wrong(f"{path}.output_config", "Extra inputs are not permitted")


_MESSAGE: Final = Also(
    Fields(
        {
            "role": Values(("user", "assistant", "system")),
            "content": _CONTENT,
            "output_config": Fields({"effort": TEXT}, ("effort",)),
        },
        ("role", "content"),
        null_is_absent=True,
    ),
    _check_output_config,
)


def _object_root(value: dict[str, Any], path: str, found: FormFaults) -> None:
    if value.get("type") != "object":
        found.wrong(f"{path}.type", 'the type of an input_schema must be "object"')


_TOOL: Final = _form(
    {
        "name": TEXT,
        "description": TEXT,
        "input_schema": Also(OBJECT, _object_root),
        "strict": FLAG,
        "defer_loading": FLAG,
        "allowed_callers": LIST,
        "eager_input_streaming": FLAG,
        "input_examples": LIST,
        _CACHE: _MARK,
    },
    "name",
)


class _ToolForm:
    """A tool of the caller has no type, or `custom`; any other is one of the provider's own."""

    def check(self, value: Any, path: str, found: FormFaults) -> None:
        kind = value.get("type") if isinstance(value, dict) else None
        if kind is None or kind == "custom":
            _TOOL.check(value, path, found)
        elif isinstance(kind, str) and "toolset" not in kind:
            if "name" not in value:
                found.wrong(f"{path}.name", "name is missing")
            else:
                TEXT.check(value["name"], f"{path}.name", found)
        else:
            TEXT.check(kind, f"{path}.type", found)


_SIGNATURE_FIELDS: Final = ("extra_content", "thought_signature", "thoughtSignature")
"""Where proxies write the signatures of Gemini."""
_SWITCH: Final[dict[str, JsonForm]] = {"disable_parallel_tool_use": FLAG}
_CHOICE: Final = Typed(
    {
        "auto": _form(_SWITCH),
        "any": _form(_SWITCH),
        "tool": _form({**_SWITCH, "name": TEXT}, "name"),
        "none": _form({}),
    }
)
_THINKING: Final[dict[str, JsonForm]] = {
    "enabled": _form({"budget_tokens": WHOLE, "display": TEXT, "block_binding": OBJECT}),
    "adaptive": _form({"display": TEXT, "block_binding": OBJECT}),
    "disabled": _form({}),
    "between_tools": _form({"block_binding": OBJECT}),
}
_BODY: Final = Fields(
    {
        "model": TEXT,
        "max_tokens": WHOLE,
        "messages": Each(_MESSAGE),
        "system": ByKind("a string or a list of text blocks", {str: TEXT, list: Each(Typed({"text": _TEXT}))}),
        "tools": Each(_ToolForm()),
        "tool_choice": _CHOICE,
        "thinking": Typed(_THINKING),
        "output_config": Fields({"effort": TEXT, "format": OBJECT, "task_budget": OBJECT}, null_is_absent=True),
        "metadata": Fields({"user_id": TEXT}, null_is_absent=True),
        "stop_sequences": TEXTS,
        "temperature": NUMBER,
        "top_p": NUMBER,
        "top_k": WHOLE,
        "stream": FLAG,
        "service_tier": TEXT,
        "inference_geo": TEXT,
        "container": ANYTHING,
        "mcp_servers": LIST,
        "context_management": OBJECT,
        _CACHE: _MARK,
        **dict.fromkeys(
            (
                "anthropic_beta",
                "anthropic_version",
                "betas",
                "compaction",
                "diagnostics",
                "fallback_credit_token",
                "fallbacks",
                "output_format",
                "speed",
                "thread",
                "user_profile_id",
                "workspace_id",
            ),
            ANYTHING,
        ),
    },
    ("model", "messages"),
    null_is_absent=True,
)

_ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant", "system": "system"}
_MODES: Final = {"auto": "auto", "any": "required", "tool": "named", "none": "none"}
_THINKING_MODES: Final = {"enabled": "on", "disabled": "off"}
_SOURCE_WAYS: Final[dict[str, Literal["", "data", "url", "file"]]] = {
    "base64": "data",
    "text": "data",
    "content": "data",
    "url": "url",
    "file": "file",
}
_OF_ASSISTANT: Final = ("tool_use", "thinking", "redacted_thinking", "server_tool_use")


def read(body: dict[str, Any]) -> View:
    found = look(body, _BODY)
    messages = tuple(_messages(body, found))
    thinking, config = fields(body.get("thinking")), fields(body.get("output_config"))
    return View(
        system=_system(body, found),
        messages=messages,
        tools=_tools(body, found),
        choice=_choice(fields(body.get("tool_choice"))),
        parallel=_parallel(fields(body.get("tool_choice"))),
        max_tokens=setting(body, "max_tokens"),
        max_tokens_field="max_tokens" if body.get("max_tokens") is not None else "",
        sampling=settings(
            body, {"temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "stop_sequences": "stop"}
        ),
        thinking_mode=_thinking_mode(thinking),
        effort=setting(config, "effort", "$.output_config"),
        budget=setting(thinking, "budget_tokens", "$.thinking"),
        output=_output(body, config),
        output_schema=_output_schema(body, config),
        signature_fields=tuple(_signature_fields(body)),
        user=setting(fields(body.get("metadata")), "user_id", "$.metadata"),
        version=setting(body, "anthropic_version"),
        extra_fields=found.take("$"),
        fields=tuple([name for name, value in body.items() if value not in (None, False)]),
        cache_markers=tuple(_cache_markers(body)),
        shapes=tuple(found.shapes),
    )


def _system(body: dict[str, Any], found: FormFaults) -> Message | None:
    content = body.get("system")
    if content is None:
        return None
    return Message(role="system", path="$.system", items=tuple(_items(content, "$.system", found)))


def _messages(body: dict[str, Any], found: FormFaults) -> Iterator[Message]:
    for path, message in objects(body.get("messages"), "$.messages"):
        role, content = _ROLES.get(text_of(message.get("role")) or "", "user"), message.get("content")
        items = tuple(_items(content, f"{path}.content", found))
        for item in items:
            if (item.type in _OF_ASSISTANT and role != "assistant") or (item.kind == "result" and role != "user"):
                found.wrong(item.path, f"a {item.type} block is not accepted in a message of role {role}")
        yield Message(
            role=role,
            path=path,
            items=items,
            has_content=content is not None,
            is_empty_string=content == "",
            has_settings=bool(message.get("output_config")),
            extra_fields=found.take(path),
        )


def _items(content: Any, path: str, found: FormFaults) -> Iterator[PartView]:
    if isinstance(content, str) and content:
        yield PartView(kind="text", path=path, text=content)
    for inner_path, block in objects(content, path):
        yield _item(block, inner_path, found)


def _item(block: dict[str, Any], path: str, found: FormFaults) -> PartView:
    kind = text_of(block.get("type")) or ""
    make = _MAKERS.get(kind)
    extra = found.take(path)
    if make is None:
        return PartView(kind="server" if kind in _OWN else "other", path=path, type=kind, extra_fields=extra)
    return make(block, path, kind, extra, found)


def _text(block: dict[str, Any], path: str, kind: str, extra: tuple[str, ...], _: FormFaults) -> PartView:
    return PartView(kind="text", path=path, type=kind, text=text_of(block.get("text")), extra_fields=extra)


def _medium(block: dict[str, Any], path: str, kind: str, extra: tuple[str, ...], _: FormFaults) -> PartView:
    way = _SOURCE_WAYS.get(text_of(fields(block.get("source")).get("type")) or "", "")
    return PartView(kind="media", path=path, type=kind, media=kind, source=way, extra_fields=extra)


def _thinking(block: dict[str, Any], path: str, kind: str, extra: tuple[str, ...], _: FormFaults) -> PartView:
    return PartView(
        kind="thinking",
        path=path,
        type=kind,
        text=text_of(block.get("thinking")),
        signature=text_of(block.get("signature")),
        is_redacted=kind == "redacted_thinking",
        extra_fields=extra,
    )


def _call(block: dict[str, Any], path: str, kind: str, extra: tuple[str, ...], _: FormFaults) -> PartView:
    return PartView(
        kind="call",
        path=path,
        type=kind,
        id=text_of(block.get("id")),
        name=text_of(block.get("name")),
        arguments=block.get("input"),
        extra_fields=extra,
    )


def _result(block: dict[str, Any], path: str, kind: str, extra: tuple[str, ...], found: FormFaults) -> PartView:
    content = block.get("content")
    return PartView(
        kind="result",
        path=path,
        type=kind,
        id=text_of(block.get("tool_use_id")),
        name=text_of(block.get("name")),
        content=tuple(_items(content, f"{path}.content", found)),
        has_content=content is not None,
        is_error=flag_of(block.get("is_error")),
        extra_fields=extra,
    )


def _reference(block: dict[str, Any], path: str, kind: str, extra: tuple[str, ...], _: FormFaults) -> PartView:
    name = text_of(block.get("tool_name"))
    return PartView(kind="other", path=path, type=kind, name=name, tool_change="referenced", extra_fields=extra)


def _change(block: dict[str, Any], path: str, kind: str, extra: tuple[str, ...], _: FormFaults) -> PartView:
    tool = fields(block.get("tool"))
    definition = fields(tool.get("definition"))
    name = text_of(definition.get("name") if definition else tool.get("name"))
    is_own = "mcp" in (text_of(tool.get("type")) or "")  # a tool of an MCP server is not among the tools of the request
    return PartView(
        kind="server",
        path=path,
        type=kind,
        name=None if is_own else name,
        tool_change="added" if kind == "tool_addition" else "removed",
        is_definition=bool(definition),
        extra_fields=extra,
    )


_MAKERS: Final = {
    "text": _text,
    "image": _medium,
    "document": _medium,
    "thinking": _thinking,
    "redacted_thinking": _thinking,
    "tool_use": _call,
    "tool_result": _result,
    "tool_reference": _reference,
    "tool_addition": _change,
    "tool_removal": _change,
}


def _tools(body: dict[str, Any], found: FormFaults) -> tuple[ToolView, ...] | None:
    if not isinstance(body.get("tools"), list):
        return None
    return tuple(_tool(tool, path, found) for path, tool in objects(body["tools"], "$.tools"))


def _tool(tool: dict[str, Any], path: str, found: FormFaults) -> ToolView:
    kind = text_of(tool.get("type")) or ""
    return ToolView(
        path=path,
        name=text_of(tool.get("name")),
        kind="function" if kind in ("", "custom") else "server",
        type=kind,
        description=text_of(tool.get("description")),
        schema=tool.get("input_schema"),
        schema_path=f"{path}.input_schema",
        schema_field="input_schema",
        strict=flag_of(tool.get("strict")),
        is_deferred=tool.get("defer_loading") is True,
        extra_fields=found.take(path),
    )


def _choice(choice: dict[str, Any]) -> ChoiceView | None:
    if not choice:
        return None
    mode: Any = _MODES.get(text_of(choice.get("type")) or "", "other")
    name = text_of(choice.get("name"))
    return ChoiceView(path="$.tool_choice", mode=mode, names=(name,) if mode == "named" and name is not None else ())


def _parallel(choice: dict[str, Any]) -> Setting | None:
    return setting(choice, "disable_parallel_tool_use", "$.tool_choice")


def _thinking_mode(thinking: dict[str, Any]) -> Setting | None:
    kind = text_of(thinking.get("type"))
    return None if kind is None else Setting("$.thinking.type", _THINKING_MODES.get(kind, kind))


def _output_schema(body: dict[str, Any], config: dict[str, Any]) -> ToolView | None:
    output = _output(body, config)
    if output is None or output.value != "json_schema":
        return None
    form = config["format"] if output.path == "$.output_config.format" else body["output_format"]
    return ToolView(path=output.path, name=None, schema=form.get("schema"), schema_path=f"{output.path}.schema")


def _output(body: dict[str, Any], config: dict[str, Any]) -> Setting | None:
    for path, wire in (
        ("$.output_config.format", config.get("format")),
        ("$.output_format", body.get("output_format")),
    ):
        if isinstance(wire, dict):
            return Setting(path, wire.get("type"))
    return None


def _signature_fields(body: dict[str, Any]) -> Iterator[str]:
    for path, message in objects(body.get("messages"), "$.messages"):
        for inner_path, holder in ((path, message), *objects(message.get("content"), f"{path}.content")):
            yield from (f"{inner_path}.{field}" for field in _SIGNATURE_FIELDS if holder.get(field) is not None)


def _cache_markers(body: dict[str, Any]) -> Iterator[MarkerView]:
    """The markers of tools, of blocks, and of the request itself, which is one at its end."""
    yield from _markers(body.get("tools"), "$.tools", "tools")
    yield from _markers(body.get("system"), "$.system", "system")
    for path, message in objects(body.get("messages"), "$.messages"):
        section: Section = "system" if message.get("role") == "system" else "messages"
        yield from _markers(message.get("content"), f"{path}.content", section)
    if body.get(_CACHE) is not None:
        yield _marker(body, "$", "messages")


def _markers(marked: Any, path: str, section: Section) -> Iterator[MarkerView]:
    for inner_path, block in objects(marked, path):
        is_result = block.get("type") == "tool_result"
        if is_result:
            yield from _markers(block.get("content"), f"{inner_path}.content", "results")
        if block.get(_CACHE) is not None:
            yield _marker(block, inner_path, "results" if is_result else section)


def _marker(holder: dict[str, Any], path: str, section: Section) -> MarkerView:
    return MarkerView(f"{path}.{_CACHE}", section, text_of(fields(holder[_CACHE]).get("ttl")))
