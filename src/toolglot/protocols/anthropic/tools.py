"""Tools of the Anthropic Messages protocol, both ways: those of a request, and those that its messages load.

A tool with `defer_loading` is hidden from the model until a `tool_reference` in a result names it, or a `tool_addition`
in a system message. Such a message may also define a tool, or remove one.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import Block, Opaque, ToolChange, ToolReference, ToolSpec
from toolglot.protocols.anthropic.form import PROTOCOL, AnthropicTool
from toolglot.protocols.fields.function_tools import as_it_came, is_foreign, no_parameters, provider_tool
from toolglot.protocols.fields.reading import Fields, leftover, optional, required, with_extra

_TOOL = frozenset({"name", "description", "input_schema", "type", "strict", "defer_loading"})
_REFERENCE = frozenset({"type", "tool_name"})
_CHANGE = frozenset({"type", "tool"})
_NAMED: Final = {"type", "name"}
_DEFINED: Final = {"type", "definition"}

ADDITION: Final = "tool_addition"
REMOVAL: Final = "tool_removal"
_SEARCH: Final = "tool_search_tool"
_SEARCH_TYPES: Final = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
"""The search that is declared for a request of another protocol: its queries are plain words."""


def read_tool(fields: Fields) -> ToolSpec:
    name, description, schema = fields.get("name"), fields.get("description"), fields.get("input_schema")
    if len(fields) == 3 and type(name) is str and type(description) is str and type(schema) is dict:
        return ToolSpec(name, description, schema)  # as nearly all are written
    kind = optional(fields, "type", str)
    if kind is not None and kind != "custom":
        tool = provider_tool(fields, PROTOCOL, kind, optional(fields, "name", str) or "")
        return replace(tool, is_search=True) if kind.startswith(_SEARCH) else tool
    description, schema = optional(fields, "description", str), optional(fields, "input_schema", dict)
    strict, deferred = optional(fields, "strict", bool), optional(fields, "defer_loading", bool)
    values = (kind, description, schema, strict, deferred)
    extra = leftover(fields, _TOOL, PROTOCOL, 1 + sum([value is not None for value in values]))
    form = AnthropicTool(kind, schema is None, deferred is False)
    return ToolSpec(
        required(fields, "name", str),
        description,
        schema,
        strict=strict,
        extra=extra,
        form=None if form == _PLAIN else form,
        deferred=bool(deferred),
    )


_PLAIN: Final = AnthropicTool()


def read_reference(fields: Fields) -> ToolReference:
    """A tool that a search found, in the content of a result."""
    return ToolReference(required(fields, "tool_name", str), extra=leftover(fields, _REFERENCE, PROTOCOL))


def read_addition(fields: Fields) -> Block:
    tool = _read_changed(fields.get("tool"))
    if tool is None:
        return Opaque(PROTOCOL, fields, ADDITION)
    return ToolChange(added=(tool,), extra=leftover(fields, _CHANGE, PROTOCOL))


def read_removal(fields: Fields) -> Block:
    tool = _read_changed(fields.get("tool"))
    if tool is None or tool.definition is not None:
        return Opaque(PROTOCOL, fields, REMOVAL)
    return ToolChange(removed=(tool,), extra=leftover(fields, _CHANGE, PROTOCOL))


def _read_changed(tool: Any) -> ToolReference | None:
    """A tool that is added or removed: by its name, or by its definition; None for one of an MCP server."""
    if type(tool) is not dict:
        return None
    if tool.keys() == _NAMED and tool["type"] == "tool_reference" and type(tool["name"]) is str:
        return ToolReference(tool["name"])
    definition = tool.get("definition")
    if tool.keys() != _DEFINED or tool["type"] != "tool_definition" or type(definition) is not dict:
        return None
    defined = read_tool(definition) if type(definition.get("name")) is str else None
    return None if defined is None else ToolReference(defined.name, definition=defined)


def read_found(content: Any) -> tuple[ToolReference, ...]:
    """The tools that the provider's own search found."""
    found = content.get("tool_references") if type(content) is dict else None
    names = [part.get("tool_name") for part in found if type(part) is dict] if type(found) is list else []
    return tuple([ToolReference(name) for name in names if type(name) is str])


# --- writing ----------------------------------------------------------------------------------------


def write_tools(tools: tuple[ToolSpec, ...]) -> list[Fields]:
    return [written for tool in tools if (written := write_tool(tool)) is not None]


def write_tool(tool: ToolSpec) -> Fields | None:
    verbatim = as_it_came(tool, PROTOCOL)
    if verbatim is not None:
        return verbatim
    if tool.is_search and tool.issuer is not None and tool.issuer.provider == PROTOCOL:
        return dict(_SEARCH_TYPES)
    if is_foreign(tool):
        return None  # a tool that another provider runs cannot be written here
    fields: Fields = {"name": tool.name}
    form = tool.form if type(tool.form) is AnthropicTool else _PLAIN
    if form.type is not None:
        fields["type"] = form.type
    if tool.description is not None:
        fields["description"] = tool.description
    if tool.parameters is not None:
        fields["input_schema"] = tool.parameters
    elif not form.has_no_parameters:
        fields["input_schema"] = no_parameters()
    if tool.strict is not None:
        fields["strict"] = tool.strict
    if tool.deferred or form.is_not_deferred:
        fields["defer_loading"] = tool.deferred
    return with_extra(fields, tool.extra, PROTOCOL)


def write_reference(reference: ToolReference) -> Fields:
    return with_extra({"type": "tool_reference", "tool_name": reference.name}, reference.extra, PROTOCOL)


def write_change(change: ToolChange) -> list[Fields]:
    """A block for each tool that is added or removed."""
    blocks: list[Fields] = []
    for kind, tools in ((ADDITION, change.added), (REMOVAL, change.removed)):
        for tool in tools:
            definition = None if tool.definition is None else write_tool(tool.definition)
            named: Fields = {"type": "tool_reference", "name": tool.name}
            written = named if definition is None else {"type": "tool_definition", "definition": definition}
            blocks.append(with_extra({"type": kind, "tool": written}, change.extra, PROTOCOL))
    return blocks
