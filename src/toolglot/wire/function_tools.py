"""Function tools as Chat Completions writes them, for the protocols that copied the plain form."""

from __future__ import annotations

from toolglot.conversation import Issuer, ToolSpec
from toolglot.errors import InputError
from toolglot.wire.reading import Fields, inside, leftover, note, noted, optional, present, required, restored

_TOOL = frozenset({"type", "function"})
_FUNCTION = frozenset({"name", "description", "parameters"})


def read_function_tool(fields: Fields, protocol: str, *, strict: bool | None = None) -> ToolSpec:
    """A tool of the type `function`, which may be left out; any other is carried as it is."""
    kind = optional(fields, "type", str)
    if kind is not None and kind != "function":
        return ToolSpec("", type=kind, issuer=Issuer(protocol), extra={protocol: {"~tool": fields}})
    function = required(fields, "function", dict)
    rest = leftover(function, _FUNCTION, protocol)
    extra = noted(
        leftover(fields, _TOOL, protocol),
        protocol,
        function=rest[protocol] if rest else None,
        untyped=True if kind is None else None,
    )
    try:
        return ToolSpec(
            required(function, "name", str),
            optional(function, "description", str),
            optional(function, "parameters", dict),
            strict=strict,
            extra=extra,
        )
    except InputError as error:
        raise inside(error, ".function") from None


def write_function_tool(tool: ToolSpec, protocol: str) -> Fields | None:
    """The tool; None for one that another provider runs itself."""
    verbatim: Fields | None = note(tool.extra, protocol, "tool")
    if verbatim is not None or tool.issuer is not None:
        return verbatim
    function = {"name": tool.name, **present({"description": tool.description, "parameters": tool.parameters})}
    restored(function, {protocol: note(tool.extra, protocol, "function") or {}}, protocol)
    fields: Fields = {"function": function}
    if not note(tool.extra, protocol, "untyped"):
        fields["type"] = "function"
    return restored(fields, tool.extra, protocol)
