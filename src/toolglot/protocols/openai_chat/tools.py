"""Tools of the Chat Completions protocol, both ways.

The grammar of a custom tool is nested here (`{"type":"grammar","grammar":{"syntax","definition"}}`); its canonical
form is the flat one of Responses (`{"type":"grammar","syntax","definition"}`).
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Conversation, ToolSpec
from toolglot.protocols.fields.function_tools import as_it_came, is_foreign, no_parameters, provider_tool
from toolglot.protocols.fields.reading import (
    Fields,
    leftover,
    optional,
    read_required,
    required,
    rest_of,
    with_extra,
    with_rest,
)
from toolglot.protocols.openai_chat.form import PROTOCOL, ChatRequest, ChatTool

_PLAIN: Final = ChatTool()
_FUNCTION_TOOL = frozenset({"type", "function"})
_CUSTOM_TOOL = frozenset({"type", "custom"})
_FUNCTION = frozenset({"name", "description", "parameters", "strict"})
_CUSTOM = frozenset({"name", "description", "format"})


def read_tool(fields: Fields) -> ToolSpec:
    kind = optional(fields, "type", str)
    if kind == "custom":
        return read_required(fields, "custom", lambda inner: _custom_tool(fields, inner))
    if kind == "function" or (kind is None and "function" in fields):
        return read_required(fields, "function", lambda inner: _function_tool(fields, inner))
    return provider_tool(fields, PROTOCOL, required(fields, "type", str), optional(fields, "name", str) or "")


def _function_tool(fields: Fields, inner: Fields) -> ToolSpec:
    parameters = optional(inner, "parameters", dict)
    rest, is_untyped = rest_of(inner, _FUNCTION), fields.get("type") is None
    is_plain = rest is None and not is_untyped and parameters is not None
    return ToolSpec(
        required(inner, "name", str),
        optional(inner, "description", str),
        parameters,
        strict=optional(inner, "strict", bool),
        extra=leftover(fields, _FUNCTION_TOOL, PROTOCOL),
        form=None if is_plain else ChatTool(rest, is_untyped, parameters is None),
    )


def _custom_tool(fields: Fields, inner: Fields) -> ToolSpec:
    written = optional(inner, "format", dict)
    format = None if written is None else _flat(written)
    rest, has_own_format = rest_of(inner, _CUSTOM), format is not None and _nested(format) != written
    return ToolSpec(
        required(inner, "name", str),
        optional(inner, "description", str),
        type="custom",
        format=format,
        extra=leftover(fields, _CUSTOM_TOOL, PROTOCOL),
        form=ChatTool(rest, has_own_format=has_own_format) if rest or has_own_format else None,
    )


def _flat(format: Fields) -> Fields:
    """A format in its canonical form, where it is written as this protocol writes it."""
    grammar = format.get("grammar")
    is_nested = format.keys() == {"type", "grammar"} and format["type"] == "grammar"
    if is_nested and type(grammar) is dict and "type" not in grammar:
        return {"type": "grammar", **grammar}
    return format


def _nested(format: Fields) -> Fields:
    if format.get("type") != "grammar":
        return format
    return {"type": "grammar", "grammar": {key: value for key, value in format.items() if key != "type"}}


def without_empty_tools(conversation: Conversation) -> Conversation:
    """A request without an empty list of tools, which many hosts refuse."""
    form = conversation.form
    if conversation.tools or type(form) is not ChatRequest or not form.has_empty_tools:
        return conversation
    return replace(conversation, form=replace(form, has_empty_tools=False))


# --- writing ----------------------------------------------------------------------------------------


def write_tool(tool: ToolSpec) -> Fields | None:
    """The tool; None for one that another provider runs."""
    if tool.opaque is not None or is_foreign(tool):
        return as_it_came(tool, PROTOCOL)
    form = tool.form if type(tool.form) is ChatTool else _PLAIN
    inner: Fields = {"name": tool.name}
    if tool.description is not None:
        inner["description"] = tool.description
    key = "custom" if tool.type == "custom" else "function"
    if key == "function":
        _write_parameters(inner, tool, form)
    elif tool.format is not None:
        inner["format"] = tool.format if form.has_own_format else _nested(tool.format)
    fields: Fields = {} if form.is_untyped else {"type": key}
    fields[key] = with_rest(inner, form.inner_rest)
    return with_extra(fields, tool.extra, PROTOCOL)


def _write_parameters(inner: Fields, tool: ToolSpec, form: ChatTool) -> None:
    if tool.parameters is not None:
        inner["parameters"] = tool.parameters
    elif not form.has_no_parameters:
        inner["parameters"] = no_parameters()
    if tool.strict is not None:
        inner["strict"] = tool.strict
