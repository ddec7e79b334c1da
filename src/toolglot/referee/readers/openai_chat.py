"""Reads a Chat Completions request for the referee: OpenAI's, and that of compatible hosts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

from toolglot.referee.readers.chat_fields import BODY, MEDIA_PARTS
from toolglot.referee.readers.forms import (
    FormFaults,
    fields,
    flag_of,
    look,
    named_schema,
    objects,
    setting,
    settings,
    text_of,
)
from toolglot.referee.view import ChoiceView, MarkerView, Message, PartView, Role, Section, Setting, ToolView, View

_ROLES: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_SAMPLING: Final = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "stop": "stop",
    "seed": "seed",
    "random_seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
_MEDIA: Final = {
    "image_url": "image",
    "image_embeds": "image",
    "input_audio": "audio",
    "audio_url": "audio",
    "video_url": "video",
    "file": "document",
    "file_url": "document",
    "document_url": "document",
}
_THINKING_FIELDS: Final = ("reasoning_content", "reasoning", "reasoning_details")
_SIGNATURE_FIELDS: Final = ("extra_content", "thinking_blocks")
"""Where Gemini and LiteLLM write signatures."""
_MODES: Final = {"auto": "auto", "none": "none", "required": "required", "any": "required"}
_SWITCH: Final = {"enabled": "on", "disabled": "off", True: "on", False: "off"}
_OUTPUTS: Final = {"json_object": "json", "json_schema": "json_schema"}


def read(body: dict[str, Any]) -> View:
    found = look(body, BODY)
    messages, thinking = tuple(_messages(body, found)), _thinking_mode(body)
    field = next((name for name in ("max_completion_tokens", "max_tokens") if body.get(name) is not None), "")
    return View(
        messages=messages,
        tools=_tools(body, found),
        choice=_choice(body.get("tool_choice")),
        parallel=setting(body, "parallel_tool_calls"),
        max_tokens=setting(body, field),
        max_tokens_field=field,
        seed_field=next((name for name in ("seed", "random_seed") if body.get(name) is not None), ""),
        sampling=settings(body, _SAMPLING),
        thinking_mode=thinking,
        thinking_switch=thinking.path.split(".")[1] if thinking is not None else "",
        effort=setting(body, "reasoning_effort") or setting(fields(body.get("reasoning")), "effort", "$.reasoning"),
        budget=_budget(body),
        output=_output(fields(body.get("response_format"))),
        output_schema=_output_schema(fields(body.get("response_format"))),
        user=setting(body, "user"),
        cache_key=setting(body, "prompt_cache_key"),
        extra_fields=found.take("$"),
        fields=tuple(name for name, value in body.items() if value not in (None, False)),
        named_fields=tuple(body),
        signature_fields=tuple(_signature_fields(body)),
        cache_markers=tuple(_cache_markers(body)),
        shapes=tuple(found.shapes),
    )


_MARKED: Final[dict[str, Section]] = {"system": "system", "developer": "system", "tool": "results"}


def _messages(body: dict[str, Any], found: FormFaults) -> Iterator[Message]:
    for path, message in objects(body.get("messages"), "$.messages"):
        role_name = text_of(message.get("role")) or ""
        content = message.get("content")
        if role_name == "tool":
            items: tuple[PartView, ...] = (_result(message, path, found),)
        elif role_name == "assistant":
            items = (*_thinking(message, path), *_parts(content, f"{path}.content", found), *_other(message, path))
            items += tuple(_calls(message, path, found))
        else:
            items = tuple(_parts(content, f"{path}.content", found))
        if role_name == "function":
            items += (PartView(kind="other", path=path, type=role_name),)
        yield Message(
            role=_ROLES.get(role_name, "user"),
            path=path,
            items=items,
            has_content=content is not None,
            is_empty_string=content == "",
            name=text_of(message.get("name")),
            is_prefill=message.get("prefix") is True or message.get("partial") is True,
            fields=tuple(message),
            extra_fields=found.take(path),
        )


def _signature_fields(body: dict[str, Any]) -> Iterator[str]:
    for path, message in objects(body.get("messages"), "$.messages"):
        for inner_path, holder in ((path, message), *objects(message.get("tool_calls"), f"{path}.tool_calls")):
            yield from (f"{inner_path}.{field}" for field in _SIGNATURE_FIELDS if holder.get(field) is not None)


def _signature(details: Any) -> str | None:
    """The signature of a list of details (OpenRouter): that of a text, or encrypted data."""
    listed = [fields(detail) for detail in details] if isinstance(details, list) else []
    signed = (text_of(detail.get(key)) for detail in listed for key in ("signature", "data"))
    return next((signature for signature in signed if signature), None)


def _thinking(message: dict[str, Any], path: str) -> Iterator[PartView]:
    for field in _THINKING_FIELDS:
        if message.get(field) is not None:
            yield PartView(
                kind="thinking",
                path=f"{path}.{field}",
                type=field,
                text=text_of(message[field]),
                signature=_signature(message[field]),
            )


def _parts(content: Any, path: str, found: FormFaults) -> Iterator[PartView]:
    if isinstance(content, str) and content:
        yield PartView(kind="text", path=path, text=content)
    for inner_path, part in objects(content, path):
        yield _part(part, inner_path, found.take(inner_path))


def _part(part: dict[str, Any], path: str, extra: tuple[str, ...]) -> PartView:
    kind = text_of(part.get("type")) or ""
    if kind == "text":
        return PartView(kind="text", path=path, type=kind, text=text_of(part.get("text")), extra_fields=extra)
    if kind == "thinking":
        signature = text_of(part.get("signature"))
        return PartView(kind="thinking", path=path, type=kind, signature=signature, extra_fields=extra)
    if kind in MEDIA_PARTS:
        return PartView(
            kind="media", path=path, type=kind, media=_MEDIA[kind], source=_source(part, kind), extra_fields=extra
        )
    return PartView(kind="other", path=path, type=kind, extra_fields=extra)


def _source(part: dict[str, Any], kind: str) -> Literal["", "data", "url", "file"]:
    value = part.get(kind)
    held = fields(value)
    if part.get("file_id") is not None or held.get("file_id") is not None:
        return "file"
    url = text_of(value) or text_of(held.get("url")) or text_of(held.get("file_data")) or ""
    if url.startswith(("http://", "https://")):
        return "url"
    return "data" if url or "data" in held else ""


def _other(message: dict[str, Any], path: str) -> Iterator[PartView]:
    """What an assistant may write instead of text. Calls in the old form have no id, and are not paired."""
    for field in ("refusal", "audio", "function_call"):
        if message.get(field):
            yield PartView(kind="other", path=f"{path}.{field}", type=field)


def _calls(message: dict[str, Any], path: str, found: FormFaults) -> Iterator[PartView]:
    for inner_path, call in objects(message.get("tool_calls"), f"{path}.tool_calls"):
        is_custom = call.get("type") == "custom"
        form = "custom" if is_custom else "function"
        named = fields(call.get(form))
        if form not in call:
            found.wrong(f"{inner_path}.{form}", f"{form} is missing")
        yield PartView(
            kind="call",
            path=inner_path,
            type=form,
            id=text_of(call.get("id")),
            name=text_of(named.get("name")),
            arguments=named.get("input" if is_custom else "arguments"),
            is_custom=is_custom,
            extra_fields=found.take(inner_path) + found.take(f"{inner_path}.{form}"),
        )


def _result(message: dict[str, Any], path: str, found: FormFaults) -> PartView:
    content = message.get("content")
    return PartView(
        kind="result",
        path=path,
        type="tool",
        id=text_of(message.get("tool_call_id")),
        name=text_of(message.get("name")),
        content=tuple(_parts(content, f"{path}.content", found)),
        has_content=content is not None,
    )


def _tools(body: dict[str, Any], found: FormFaults) -> tuple[ToolView, ...] | None:
    if not isinstance(body.get("tools"), list):
        return None
    return tuple(_tool(tool, path, found) for path, tool in objects(body["tools"], "$.tools"))


_KINDS: Final[dict[str, Literal["function", "custom", "namespace"]]] = {
    "function": "function",
    "custom": "custom",
    "namespace": "namespace",
}


def _tool(tool: dict[str, Any], path: str, found: FormFaults) -> ToolView:
    type_ = text_of(tool.get("type", "function")) or ""
    named = fields(tool.get(type_))
    return ToolView(
        path=path,
        name=text_of(named.get("name")),
        kind=_KINDS.get(type_, "server"),
        type=type_,
        description=text_of(named.get("description")),
        schema=named.get("parameters"),
        schema_path=f"{path}.function.parameters",
        schema_field="parameters",
        strict=flag_of(named.get("strict")),
        extra_fields=found.take(path) + found.take(f"{path}.{type_}"),
    )


def _choice(choice: Any) -> ChoiceView | None:
    path = "$.tool_choice"
    if isinstance(choice, str):
        mode: Any = _MODES.get(choice, "other")
        return ChoiceView(path=path, mode=mode)
    if not isinstance(choice, dict):
        return None
    kind = text_of(choice.get("type")) or ""
    if kind == "allowed_tools":
        listed = objects(fields(choice.get(kind)).get("tools"), path)
        return ChoiceView(path=path, mode="allowed", names=tuple(_names([tool for _, tool in listed])))
    return ChoiceView(path=path, mode="named" if kind in _KINDS else "other", names=tuple(_names([choice])))


def _names(tools: list[dict[str, Any]]) -> Iterator[str]:
    """The names in a choice: a tool is written there as it is in the list of tools."""
    for tool in tools:
        name = text_of(fields(tool.get(text_of(tool.get("type")) or "")).get("name"))
        if name is not None:
            yield name


def _thinking_mode(body: dict[str, Any]) -> Setting | None:
    """Each host has a switch of its own."""
    kind = fields(body.get("thinking")).get("type")
    switches = (
        ("$.thinking.type", kind),
        ("$.enable_thinking", body.get("enable_thinking")),
        ("$.reasoning.enabled", fields(body.get("reasoning")).get("enabled")),
    )
    for path, value in switches:
        if isinstance(value, str | bool):
            return Setting(path, _SWITCH.get(value, value))
    return None


def _budget(body: dict[str, Any]) -> Setting | None:
    return (
        setting(body, "thinking_budget")
        or setting(fields(body.get("thinking")), "budget_tokens", "$.thinking")
        or setting(fields(body.get("reasoning")), "max_tokens", "$.reasoning")
    )


def _output(response_format: dict[str, Any]) -> Setting | None:
    kind = text_of(response_format.get("type"))
    return None if kind in (None, "text") else Setting("$.response_format", _OUTPUTS.get(kind or "", kind))


def _output_schema(response_format: dict[str, Any]) -> ToolView | None:
    if response_format.get("type") != "json_schema":
        return None
    return named_schema(fields(response_format.get("json_schema")), "$.response_format.json_schema")


def _cache_markers(body: dict[str, Any]) -> Iterator[MarkerView]:
    """The markers of tools, messages and parts, and of the request itself, which is one at its end."""
    for path, tool in objects(body.get("tools"), "$.tools"):
        yield from _marker(tool, path, "tools")
        yield from _marker(fields(tool.get("function")), f"{path}.function", "tools")
    for path, message in objects(body.get("messages"), "$.messages"):
        section = _MARKED.get(text_of(message.get("role")) or "", "messages")
        for inner_path, part in objects(message.get("content"), f"{path}.content"):
            yield from _marker(part, inner_path, section)
        yield from _marker(message, path, section)
    yield from _marker(body, "$", "messages")


def _marker(holder: dict[str, Any], path: str, section: Section) -> Iterator[MarkerView]:
    if holder.get("cache_control") is not None:
        yield MarkerView(f"{path}.cache_control", section, text_of(fields(holder["cache_control"]).get("ttl")))
