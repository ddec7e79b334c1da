"""The offered tools, in any form: `ToolSpec`s, definitions of any protocol, or names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from toolglot.conversation import ToolSpec
from toolglot.errors import InputError, quote

Tools = Iterable[ToolSpec | Mapping[str, Any] | str]

_WRAPPERS: Final = ("function", "toolSpec")
_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")
_DECLARED: Final = ("functionDeclarations", "function_declarations")
_HINT: Final = "a list of tools in any provider's form, or of names"


def tool_list(tools: Tools) -> list[ToolSpec | Mapping[str, Any] | str]:
    """The tools as a list. One tool alone is none: its letters, or its keys, would be taken for tools."""
    if isinstance(tools, str | bytes | Mapping | ToolSpec) or not isinstance(tools, Iterable):
        raise InputError(f"expected a list of tools, got {quote(tools)}", path="tools", hint=_HINT)
    return [*tools]


def tool_schemas(tools: Tools) -> dict[str, dict[str, Any] | None]:
    """The names of the tools, and the schemas of their arguments."""
    found: dict[str, dict[str, Any] | None] = {}
    for index, entry in enumerate(tool_list(tools)):
        for tool in _declarations(entry):
            name, schema = _one(tool, f"tools[{index}]")
            found[name] = schema
    return found


def _one(tool: Any, path: str) -> tuple[str, dict[str, Any] | None]:
    if isinstance(tool, str):
        return tool, None
    if isinstance(tool, ToolSpec):
        return tool.name, tool.parameters
    if not isinstance(tool, Mapping):
        raise InputError(f"expected a tool, got {quote(tool)}", path=path, hint=_HINT)
    inner = next((tool[key] for key in _WRAPPERS if isinstance(tool.get(key), Mapping)), tool)
    name = inner.get("name")
    if not isinstance(name, str):
        raise InputError(f"expected a tool with a name, got {quote(tool)}", path=path, hint=_HINT)
    return name, _schema_of(inner, path)


def _declarations(tool: Any) -> list[Any]:
    """The tools of a Gemini tool, which is a list of them; any other as it is."""
    declarations = next((tool[key] for key in _DECLARED if key in tool), None) if isinstance(tool, Mapping) else None
    return declarations if isinstance(declarations, list) else [tool]


def _schema_of(tool: Mapping[str, Any], path: str) -> dict[str, Any] | None:
    key = next((key for key in _SCHEMAS if tool.get(key) is not None), None)
    schema = tool[key] if key is not None else None
    if schema is not None and not isinstance(schema, dict):
        raise InputError(f"expected a schema, got {quote(schema)}", path=f"{path}.{key}", hint="a JSON object")
    inner = schema.get("json") if schema is not None and len(schema) == 1 else None
    return inner if isinstance(inner, dict) else schema  # Bedrock wraps it once more
