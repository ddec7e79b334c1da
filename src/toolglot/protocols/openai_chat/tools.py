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
    held,
    leftover,
    noted,
    optional,
    refilled,
    required,
    rest_of,
)
from toolglot.protocols.openai_chat.blocks import PROTOCOL

_NO_TOOLS: Final = "~tools"
"""The note that a request has an empty list of tools."""
_FUNCTION_TOOL = frozenset({"type", "function"})
_CUSTOM_TOOL = frozenset({"type", "custom"})
_FUNCTION = frozenset({"name", "description", "parameters", "strict"})
_CUSTOM = frozenset({"name", "description", "format"})


def read_tool(fields: Fields) -> ToolSpec:
    kind = optional(fields, "type", str)
    if kind == "custom":
        return held(fields, "custom", lambda inner: _custom_tool(fields, inner))
    if kind == "function" or (kind is None and "function" in fields):
        return held(fields, "function", lambda inner: _function_tool(fields, inner))
    return provider_tool(fields, PROTOCOL, required(fields, "type", str), optional(fields, "name", str) or "")


def _function_tool(fields: Fields, inner: Fields) -> ToolSpec:
    parameters = optional(inner, "parameters", dict)
    return ToolSpec(
        required(inner, "name", str),
        optional(inner, "description", str),
        parameters,
        strict=optional(inner, "strict", bool),
        extra=noted(
            leftover(fields, _FUNCTION_TOOL, PROTOCOL),
            PROTOCOL,
            function=rest_of(inner, _FUNCTION),
            untyped=True if fields.get("type") is None else None,
            no_parameters=True if parameters is None else None,
        ),
    )


def _custom_tool(fields: Fields, inner: Fields) -> ToolSpec:
    written = optional(inner, "format", dict)
    format = None if written is None else _flat(written)
    as_is = True if format is not None and _nested(format) != written else None
    return ToolSpec(
        required(inner, "name", str),
        optional(inner, "description", str),
        type="custom",
        format=format,
        extra=noted(
            leftover(fields, _CUSTOM_TOOL, PROTOCOL), PROTOCOL, custom=rest_of(inner, _CUSTOM), format_as_is=as_is
        ),
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
    """A request that says nothing of tools where it had an empty list of them, which many hosts refuse."""
    extra = conversation.extra
    if extra is None or conversation.tools or _NO_TOOLS not in extra.get(PROTOCOL, {}):
        return conversation
    own = {key: value for key, value in extra[PROTOCOL].items() if key != _NO_TOOLS}
    return replace(conversation, extra={**extra, PROTOCOL: own})


# --- writing ----------------------------------------------------------------------------------------


def write_tool(tool: ToolSpec) -> Fields | None:
    """The tool; None for one that another provider runs."""
    own: Fields = tool.extra.get(PROTOCOL, {}) if tool.extra else {}
    if "~tool" in own or is_foreign(tool):
        return as_it_came(tool, PROTOCOL)
    inner: Fields = {"name": tool.name}
    if tool.description is not None:
        inner["description"] = tool.description
    key = "custom" if tool.type == "custom" else "function"
    if key == "function":
        _write_parameters(inner, tool, own)
    elif tool.format is not None:
        inner["format"] = tool.format if "~format_as_is" in own else _nested(tool.format)
    if not own:
        return {"type": key, key: inner}
    fields: Fields = {} if "~untyped" in own else {"type": key}
    fields[key] = refilled(inner, own.get(f"~{key}"))
    return refilled(fields, own)


def _write_parameters(inner: Fields, tool: ToolSpec, own: Fields) -> None:
    if tool.parameters is not None:
        inner["parameters"] = tool.parameters
    elif "~no_parameters" not in own:
        inner["parameters"] = no_parameters()
    if tool.strict is not None:
        inner["strict"] = tool.strict
