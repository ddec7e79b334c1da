"""Tools from plain definitions: a `ToolSpec`, or a definition in the format of any protocol.

    {"type": "function", "function": {"name", "parameters"}}    OpenAI Chat Completions, Mistral, Cohere, Ollama
    {"type": "function", "name", "parameters"}                  OpenAI Responses; also without `type`
    {"name", "input_schema"}                                    Anthropic, and its own typed tools
    {"functionDeclarations": [{"name", "parameters"}]}          Gemini: one entry may declare many
    {"toolSpec": {"name", "inputSchema": {"json"}}}             Bedrock
    {"name", "inputSchema", "annotations"}                      MCP

Law: the request codecs read them. So a definition means the same here as in a request, and returns unchanged to its
own provider.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from toolglot import jsontext
from toolglot.conversation import ToolSpec
from toolglot.errors import InputError, quote
from toolglot.protocols.base import codec, get
from toolglot.runtime.tools.threads import run_in_thread
from toolglot.runtime.tools.values import OnTimeout, Resources, Run, Tool, ToolContext

Definition = ToolSpec | Mapping[str, Any]
Handler = Callable[[dict[str, Any]], object] | Callable[[dict[str, Any], ToolContext], object]
"""`run(arguments)` or `run(arguments, context)`, synchronous or not."""

_HINT: Final = "a ToolSpec, or a definition in the format of OpenAI, Anthropic, Gemini, Bedrock or MCP"
_DECLARED: Final = ("functionDeclarations", "function_declarations")


def define(
    definition: Definition,
    run: Handler | None = None,
    *,
    side_effects: bool = True,
    idempotent: bool = False,
    resources: Resources | None = None,
    timeout: float | None = None,
    on_timeout: OnTimeout = "unknown",
    approval: bool = False,
) -> Tool:
    """Make a tool from a definition. Without `run` it is only shown to the model, and the caller runs it."""
    specs = specs_of(definition)
    if len(specs) != 1:
        raise InputError(f"expected one tool, got {len(specs)}", hint="define each of them on its own")
    return Tool(
        spec=specs[0],
        run=None if run is None else wrap_handler(run),
        side_effects=side_effects,
        idempotent=idempotent,
        resources=resources,
        timeout=timeout,
        on_timeout=on_timeout,
        approval=approval,
    )


def specs_of(definition: Definition, *, path: str = "$") -> tuple[ToolSpec, ...]:
    """The tools of one definition: usually one; a Gemini entry may declare several."""
    if isinstance(definition, ToolSpec):
        return (definition,)
    if not isinstance(definition, Mapping):
        raise InputError(f"expected a tool definition, got {quote(definition)}", path=path, hint=_HINT)
    fields = jsontext.clone(dict(definition), path=path).value
    protocol, entry = _detect_form(fields)
    if protocol == "mcp":
        return (_read_mcp(entry, path),)
    try:
        found = codec(protocol).request.decode(get(protocol).request_with_tools([entry])).tools
    except InputError as error:
        raise InputError(error.message, path=f"{path} ({error.path})", hint=error.hint or _HINT) from None
    if not found or any(not spec.name for spec in found):
        raise InputError(f"expected a tool with a name, got {quote(definition)}", path=path, hint=_HINT)
    return found


def _detect_form(fields: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The protocol of a definition, and the definition as it appears in a request of that protocol."""
    if "toolSpec" in fields:
        return "bedrock", fields
    if any(key in fields for key in _DECLARED):
        return "gemini", fields
    if "function" in fields or "custom" in fields:
        return "openai_chat", fields
    if "inputSchema" in fields:
        return "mcp", fields
    if "parametersJsonSchema" in fields or _has_gemini_types(fields.get("parameters")):
        return "gemini", {"functionDeclarations": [fields]}
    return _flat_form(fields)


def _flat_form(fields: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if "input_schema" in fields:
        return "anthropic", fields
    if fields.get("type") in ("function", "custom", "namespace") or "name" not in fields:
        return "openai_responses", fields
    if "type" in fields:
        return "anthropic", fields  # typed tools such as `bash_20250124` have a name and no schema
    return "openai_responses", {"type": "function", **fields}


def _has_gemini_types(schema: object) -> bool:
    """Whether a schema uses Gemini's type names: OBJECT, STRING."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    return isinstance(kind, str) and kind.isupper()


def _read_mcp(fields: dict[str, Any], path: str) -> ToolSpec:
    name, schema, text = fields.get("name"), fields["inputSchema"], fields.get("description")
    if not isinstance(name, str) or not name:
        raise InputError(f"expected a string, got {quote(name)}", path=f"{path}.name", hint=_HINT)
    if not isinstance(schema, dict):
        raise InputError(f"expected a JSON schema, got {quote(schema)}", path=f"{path}.inputSchema")
    if text is not None and not isinstance(text, str):
        raise InputError(f"expected a string, got {quote(text)}", path=f"{path}.description")
    return ToolSpec(name, text, schema)


# --- handlers ---------------------------------------------------------------------------------------


def wrap_handler(handler: Handler) -> Run:
    """Wrap a handler for the scheduler: in a thread if it is not asynchronous, with the context if it takes one."""
    if not callable(handler):
        raise InputError(f"expected a function, got {quote(handler)}", path="run")
    wants_context = _takes_two(handler)
    is_async = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(type(handler).__call__)

    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        args = (arguments, context) if wants_context else (arguments,)
        returned = handler(*args) if is_async else await run_in_thread(handler, *args)
        return await returned if inspect.isawaitable(returned) else returned

    return run


def _takes_two(handler: Handler) -> bool:
    try:
        inspect.signature(handler).bind({}, ToolContext())
    except TypeError:
        return False
    except ValueError:  # a C function without a signature
        return False
    return True
