"""Tools of the OpenAI Responses protocol, both ways.

A namespace is written as one tool that holds others. Here each of these is a tool of its own that says its
namespace; the form of the first of them keeps what the namespace says itself, and so marks where one begins. A
namespace that holds nothing is carried as it came.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import ToolSpec
from toolglot.protocols.fields.function_tools import as_it_came, no_parameters, provider_tool
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    leftover,
    optional,
    required,
    rest_of,
    with_extra,
    with_rest,
)
from toolglot.protocols.openai_responses.client_tools import SEARCH, read_typed_tool
from toolglot.protocols.openai_responses.form import PLAIN_TOOL, PROTOCOL, ResponsesTool

_FUNCTION = frozenset({"type", "name", "description", "parameters", "strict"})
_CUSTOM = frozenset({"type", "name", "description", "format"})
_DEFERRED_FUNCTION = _FUNCTION | {"defer_loading"}
_DEFERRED_CUSTOM = _CUSTOM | {"defer_loading"}
_NAMESPACE = frozenset({"type", "name", "tools"})
_CALLED: Final = ("function", "custom")
_FUNCTIONS: Final = {
    (False, False): None,
    (True, False): ResponsesTool(has_no_strict=True),
    (False, True): ResponsesTool(has_no_parameters=True),
    (True, True): ResponsesTool(has_no_strict=True, has_no_parameters=True),
}
"""The forms of functions, by whether `strict` and `parameters` are missing."""


def read_tools(body: Fields) -> tuple[ToolSpec, ...]:
    return read_entries(optional(body, "tools", list) or ())


def read_entries(entries: Iterable[Any]) -> tuple[ToolSpec, ...]:
    """The tools of a list, each of a namespace for itself."""
    found = each(entries, _read_entry, ".tools")
    return tuple(tool for tools in found for tool in tools)


def _read_entry(fields: Fields) -> Iterable[ToolSpec]:
    """The tools that an entry of the list stands for: itself, or those of a namespace."""
    if fields.get("type") != "namespace":
        return (_read_tool(fields),)
    name, inner = required(fields, "name", str), optional(fields, "tools", list)
    if not inner:
        carried = provider_tool(fields, PROTOCOL, "namespace", name)
        return (replace(carried, description=optional(fields, "description", str), issuer=None),)
    first, *rest = (replace(tool, namespace=name) for tool in each(inner, _read_tool, ".tools"))
    own = rest_of(fields, _NAMESPACE) or {}
    return (replace(first, form=replace(_form(first), namespace_rest=own)), *rest)


def _form(tool: ToolSpec) -> ResponsesTool:
    return tool.form if type(tool.form) is ResponsesTool else PLAIN_TOOL


def _read_tool(fields: Fields) -> ToolSpec:
    kind = required(fields, "type", str)
    deferred = fields.get("defer_loading") is True
    if kind == "function":
        strict, parameters = optional(fields, "strict", bool), optional(fields, "parameters", dict)
        return ToolSpec(
            required(fields, "name", str),
            optional(fields, "description", str),
            parameters,
            strict=strict,
            extra=leftover(fields, _DEFERRED_FUNCTION if deferred else _FUNCTION, PROTOCOL),
            form=_FUNCTIONS[strict is None, parameters is None],
            deferred=deferred,
        )
    if kind == "custom":
        return ToolSpec(
            required(fields, "name", str),
            optional(fields, "description", str),
            type="custom",
            format=optional(fields, "format", dict),
            extra=leftover(fields, _DEFERRED_CUSTOM if deferred else _CUSTOM, PROTOCOL),
            deferred=deferred,
        )
    return read_typed_tool(fields, kind)


# --- writing ----------------------------------------------------------------------------------------


def write_tools(tools: Iterable[ToolSpec]) -> list[Fields]:
    """The tools; a run of those that have one namespace inside of it."""
    return list(_entries(tools))


def _entries(tools: Iterable[ToolSpec]) -> Iterator[Fields]:
    last: str | None = None
    held: list[Fields] = []
    for tool in tools:
        fields = _write_tool(tool)
        if fields is None:
            continue
        own = _form(tool).namespace_rest
        if tool.namespace is None:
            yield fields
        elif tool.namespace == last and own is None:
            held.append(fields)
        else:
            held = [fields]
            yield _write_namespace(tool.namespace, held, own)
        last = tool.namespace


def _write_namespace(name: str, tools: list[Fields], own: Fields | None) -> Fields:
    """A namespace. The protocol wants a description; one from elsewhere has none but its name."""
    fields: Fields = {"type": "namespace", "name": name, "tools": tools}
    return with_rest(fields, {"description": name} if own is None else own)


def _write_tool(tool: ToolSpec) -> Fields | None:
    verbatim = as_it_came(tool, PROTOCOL)
    if verbatim is None and tool.is_search and tool.issuer is not None and tool.issuer.provider == PROTOCOL:
        return {"type": SEARCH.type}
    if verbatim is not None or tool.type not in _CALLED:
        return verbatim  # None for another provider's own tool
    fields: Fields = {"type": tool.type, "name": tool.name}
    if tool.description is not None:
        fields["description"] = tool.description
    if tool.deferred:
        fields["defer_loading"] = True
    if tool.type == "custom":
        if tool.format is not None:
            fields["format"] = tool.format
        return with_extra(fields, tool.extra, PROTOCOL)
    if tool.parameters is not None:
        fields["parameters"] = tool.parameters
    elif not _form(tool).has_no_parameters:
        fields["parameters"] = no_parameters()
    if tool.strict is not None or not _form(tool).has_no_strict:
        # Left out, it means strict where possible, which a schema from elsewhere does not ask for.
        fields["strict"] = bool(tool.strict)
    return with_extra(fields, tool.extra, PROTOCOL)
