"""Function tools as Chat Completions writes them, for the protocols that copied the plain form.

And what holds for the tools of every protocol: one that a provider runs itself is carried as it came.
"""

from __future__ import annotations

from typing import Any

from toolglot.conversation import Issuer, ToolSpec
from toolglot.protocols.fields.reading import (
    Fields,
    held,
    leftover,
    note,
    noted,
    optional,
    present,
    required,
    rest_of,
    restored,
    with_rest,
)

_TOOL = frozenset({"type", "function"})
_FUNCTION = frozenset({"name", "description", "parameters"})


def no_parameters() -> dict[str, Any]:
    """The schema of a tool that takes nothing, where a protocol demands one."""
    return {"type": "object", "properties": {}}


def provider_tool(fields: Fields, protocol: str, kind: str, name: str = "") -> ToolSpec:
    """A tool of a type that only its provider knows."""
    return ToolSpec(name, type=kind, issuer=Issuer(protocol), extra={protocol: {"~tool": fields}})


def as_it_came(tool: ToolSpec, protocol: str) -> Fields | None:
    """A tool that was carried as it came; None for any other."""
    verbatim: Fields | None = note(tool.extra, protocol, "tool")
    return verbatim


def is_foreign(tool: ToolSpec) -> bool:
    """Whether nobody but the protocol that a tool came from can say it: its provider's own, an empty namespace."""
    return tool.issuer is not None or tool.type == "namespace"


def read_function_tool(fields: Fields, protocol: str, *, strict: bool | None = None) -> ToolSpec:
    """A tool of the type `function`, which may be left out; any other is carried as it is."""
    kind = optional(fields, "type", str)
    if kind is not None and kind != "function":
        return provider_tool(fields, protocol, kind)

    def read(function: Fields) -> ToolSpec:
        parameters = optional(function, "parameters", dict)
        return ToolSpec(
            required(function, "name", str),
            optional(function, "description", str),
            parameters,
            strict=strict,
            extra=noted(
                leftover(fields, _TOOL, protocol),
                protocol,
                function=rest_of(function, _FUNCTION),
                untyped=True if kind is None else None,
                no_parameters=True if parameters is None else None,
            ),
        )

    return held(fields, "function", read)


def write_function_tool(tool: ToolSpec, protocol: str, *, needs_parameters: bool = False) -> Fields | None:
    """The tool; None for one that another provider runs itself."""
    verbatim = as_it_came(tool, protocol)
    if verbatim is not None or is_foreign(tool):
        return verbatim
    parameters = tool.parameters
    if parameters is None and needs_parameters and not note(tool.extra, protocol, "no_parameters"):
        parameters = no_parameters()
    function = {"name": tool.name, **present({"description": tool.description, "parameters": parameters})}
    fields: Fields = {"function": with_rest(function, tool.extra, protocol, "function")}
    if not note(tool.extra, protocol, "untyped"):
        fields["type"] = "function"
    return restored(fields, tool.extra, protocol)
