"""Function tools as Chat Completions writes them, for the protocols that copied the plain form.

And what holds for the tools of every protocol: one that a provider runs itself is carried as it came.
"""

from __future__ import annotations

from typing import Any, ClassVar

from toolglot.conversation import Issuer, Opaque, ToolSpec
from toolglot.conversation.forms import FormStruct
from toolglot.conversation.version_1 import form_of_notes, opaque_of_notes
from toolglot.protocols.fields.reading import (
    Fields,
    leftover,
    opaque_value,
    optional,
    present,
    read_required,
    required,
    rest_of,
    with_extra,
    with_rest,
)

_TOOL = frozenset({"type", "function"})
_FUNCTION = frozenset({"name", "description", "parameters"})


class FunctionToolForm(FormStruct, frozen=True):
    """How a function tool was written, for the protocols that share the plain form.

    function_rest: unknown fields of `function`.
    is_untyped: whether `type` was not written.
    has_no_parameters: whether `parameters` was not written.
    """

    inner_rests: ClassVar[tuple[str, ...]] = ("function_rest",)

    function_rest: dict[str, Any] | None = None
    is_untyped: bool = False
    has_no_parameters: bool = False

    @classmethod
    def from_notes(cls, notes: dict[str, Any]) -> dict[str, Any]:
        """The fields that notes of version 1 of the serialised form are."""
        names = {"function": "function_rest", "untyped": "is_untyped", "no_parameters": "has_no_parameters"}
        return {**form_of_notes(cls, notes, **names), **opaque_of_notes(cls.protocol, notes, "tool")}


def no_parameters() -> dict[str, Any]:
    """The schema of a tool that takes nothing, where a protocol demands one."""
    return {"type": "object", "properties": {}}


def provider_tool(fields: Fields, protocol: str, kind: str, name: str = "") -> ToolSpec:
    """A tool of a type that only its provider knows."""
    return ToolSpec(name, type=kind, issuer=Issuer(protocol), opaque=Opaque(protocol, fields, kind))


def as_it_came(tool: ToolSpec, protocol: str) -> Fields | None:
    """A tool that was carried as it came; None for any other."""
    verbatim: Fields | None = opaque_value(tool.opaque, protocol)
    return verbatim


def is_foreign(tool: ToolSpec) -> bool:
    """Whether only the protocol of a tool can express it: a provider's own tool, or an empty namespace."""
    return tool.issuer is not None or tool.type == "namespace"


def read_function_tool(fields: Fields, form: type[FunctionToolForm], *, strict: bool | None = None) -> ToolSpec:
    """A tool of the type `function`, which may be left out; any other is carried as it is."""
    kind = optional(fields, "type", str)
    if kind is not None and kind != "function":
        return provider_tool(fields, form.protocol, kind)

    def read(function: Fields) -> ToolSpec:
        parameters = optional(function, "parameters", dict)
        rest, is_untyped = rest_of(function, _FUNCTION), kind is None
        is_plain = rest is None and not is_untyped and parameters is not None
        return ToolSpec(
            required(function, "name", str),
            optional(function, "description", str),
            parameters,
            strict=strict,
            extra=leftover(fields, _TOOL, form.protocol),
            form=None if is_plain else form(rest, is_untyped, parameters is None),
        )

    return read_required(fields, "function", read)


def write_function_tool(
    tool: ToolSpec, form: type[FunctionToolForm], *, needs_parameters: bool = False
) -> Fields | None:
    """The tool; None for one that another provider runs itself."""
    verbatim = as_it_came(tool, form.protocol)
    if verbatim is not None or is_foreign(tool):
        return verbatim
    written = tool.form if isinstance(tool.form, form) else form()
    parameters = tool.parameters
    if parameters is None and needs_parameters and not written.has_no_parameters:
        parameters = no_parameters()
    function = {"name": tool.name, **present({"description": tool.description, "parameters": parameters})}
    fields: Fields = {"function": with_rest(function, written.function_rest)}
    if not written.is_untyped:
        fields["type"] = "function"
    return with_extra(fields, tool.extra, form.protocol)
