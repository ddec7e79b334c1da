"""Python functions as tools: the schema from the type hints, the descriptions from the docstring.

A parameter without a hint accepts anything. A parameter of the type `ToolContext` is filled in and not shown to the
model. Functions that are not asynchronous run in a thread.

Law: the function is called only with arguments of the hinted types. Otherwise the model gets an exact error, and the
function is not called.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from typing import Annotated, Any, Final, get_args, get_origin, overload

import msgspec

from toolglot.arguments import validate
from toolglot.conversation import ToolSpec
from toolglot.errors import InputError, cut, quote, type_name
from toolglot.runtime.tools import hints
from toolglot.runtime.tools.references import Schema, inline_definitions
from toolglot.runtime.tools.threads import run_in_thread
from toolglot.runtime.tools.values import (
    FunctionTool,
    OnTimeout,
    P,
    R,
    Resources,
    Run,
    Tool,
    ToolContext,
    ToolError,
)

Function = Callable[..., Any]

_MISSING: Final = inspect.Parameter.empty


class ToolParameter(typing.NamedTuple):
    """A parameter that the model fills."""

    name: str
    hint: Any
    default: Any


class ToolSignature(typing.NamedTuple):
    """The parameters of a function: those that the model fills, and those that the scheduler fills."""

    parameters: tuple[ToolParameter, ...]
    extra_hint: Any
    """The hint of `**kwargs`; `_MISSING` without it."""
    context_names: tuple[str, ...]
    """The parameters that get the context."""


class Decorator(typing.Protocol):
    """What `@tool(…)` returns: it makes a tool from a function and keeps its types."""

    def __call__(self, function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    function: Callable[P, R],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    side_effects: bool = True,
    idempotent: bool = False,
    resources: Resources | None = None,
    timeout: float | None = None,
    on_timeout: OnTimeout = "unknown",
    approval: bool = False,
    strict: bool | None = None,
) -> FunctionTool[P, R]: ...


@overload
def tool(
    function: None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    side_effects: bool = True,
    idempotent: bool = False,
    resources: Resources | None = None,
    timeout: float | None = None,
    on_timeout: OnTimeout = "unknown",
    approval: bool = False,
    strict: bool | None = None,
) -> Decorator: ...


def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    side_effects: bool = True,
    idempotent: bool = False,
    resources: Resources | None = None,
    timeout: float | None = None,
    on_timeout: OnTimeout = "unknown",
    approval: bool = False,
    strict: bool | None = None,
) -> FunctionTool[..., Any] | Decorator:
    """Make a tool from a function: `tool(function)`, `@tool`, or `@tool(timeout=5)`.

    function: the function. Its type hints become the schema, its docstring the descriptions.
    name: the name of the tool; by default that of the function.
    description: what the model reads about the tool; by default the first part of the docstring.
    side_effects: whether running it changes anything. Such a run is logged before it starts, and never repeated.
    idempotent: whether it may be retried after an error or a timeout.
    resources: returns the names of what the arguments use; calls that use the same run one after another.
    timeout: seconds; by default the scheduler's.
    on_timeout: `error` if a tool that ran out of time is known to have stopped, `unknown` if it may have run.
    approval: whether each run needs an approval.
    strict: whether the provider enforces the schema, if it can.
    """

    def make_tool(target: Callable[P, R]) -> FunctionTool[P, R]:
        if isinstance(target, Tool):
            raise InputError(f"{quote(target.name)} is a tool already", path="function")
        if not callable(target):
            raise InputError(f"expected a function, got {quote(target)}", path="function")
        tool_name = name if name is not None else _name_of(target)
        signature = _signature_of(target, tool_name)
        docs = _read_docs(target)
        schema = _schema_of(signature, docs.parameters)
        summary = description if description is not None else docs.summary
        return FunctionTool(
            spec=ToolSpec(tool_name, summary, schema, strict=strict),
            run=_runner(target, signature, schema),
            side_effects=side_effects,
            idempotent=idempotent,
            resources=resources,
            timeout=timeout,
            on_timeout=on_timeout,
            approval=approval,
            function=target,
        )

    return make_tool if function is None else make_tool(function)


# --- name, docstring and signature ------------------------------------------------------------------


def _name_of(function: Function) -> str:
    plain = _unwrap_partial(function)
    name = getattr(plain, "__name__", None) or type_name(plain)
    if not str(name).isidentifier():
        raise InputError(f"{quote(name)} cannot be the name of a tool", path="name", hint="tool(function, name=…)")
    return str(name)


def _unwrap_partial(function: Function) -> Function:
    while isinstance(function, functools.partial):
        function = function.func
    return function


class ToolDocs(typing.NamedTuple):
    summary: str | None
    parameters: dict[str, str]


def _read_docs(function: Function) -> ToolDocs:
    """The docstring, in any of the usual styles: what the tool does, and what each parameter means."""
    import docstring_parser  # noqa: PLC0415 - only needed to make tools from functions

    plain = _unwrap_partial(function)
    is_instance = not inspect.isroutine(plain) and not inspect.isclass(plain)
    source = type(plain).__call__ if is_instance and not inspect.getdoc(plain) else plain
    text = inspect.getdoc(source)
    if not text:
        return ToolDocs(None, {})
    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return ToolDocs(text, {})
    described = {
        found.arg_name.lstrip("*"): found.description for found in parsed.params if found.description is not None
    }
    return ToolDocs((parsed.description or "").strip() or None, described)


def _signature_of(function: Function, name: str) -> ToolSignature:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        why = "the parameters of the function are not known"
        raise InputError(why, path=name, hint="wrap it in a function of your own") from None
    _refuse_unsupported(function, signature, name)
    annotations = _annotations(function, name)
    parameters: list[ToolParameter] = []
    context_names: list[str] = []
    extra_hint: Any = _MISSING
    for parameter in signature.parameters.values():
        hint: Any = annotations.get(parameter.name, Any)
        path = f"{name}.{parameter.name}"
        if _is_context(hint):
            context_names.append(parameter.name)
        elif parameter.kind is parameter.VAR_KEYWORD:
            extra_hint = hints.supported_hint(hint, path)
        else:
            if parameter.default is None:
                hint = hint | None if hint is not Any else hint
            parameters.append(ToolParameter(parameter.name, hints.supported_hint(hint, path), parameter.default))
    return ToolSignature(tuple(parameters), extra_hint, tuple(context_names))


def _refuse_unsupported(function: Function, signature: inspect.Signature, name: str) -> None:
    plain = _unwrap_partial(function)
    called = plain if inspect.isroutine(plain) or inspect.isclass(plain) else type(plain).__call__
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        hint = "return everything at once, and report progress with ToolContext.progress"
        raise InputError("a generator cannot be a tool", path=name, hint=hint)
    for position, parameter in enumerate(signature.parameters.values()):
        path = f"{name}.{parameter.name}"
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise InputError("a positional-only parameter has no name for the model", path=path, hint="remove the `/`")
        if parameter.kind is parameter.VAR_POSITIONAL:
            why = "the model names every argument, so there are none for `*args`"
            raise InputError(why, path=path, hint="take a list as one parameter")
        if position == 0 and parameter.name in ("self", "cls") and parameter.annotation is _MISSING:
            raise InputError("the method is not bound", path=path, hint="make a tool of object.method")


def _annotations(function: Function, name: str) -> dict[str, Any]:
    """The hints of a function, as types."""
    plain = inspect.unwrap(_unwrap_partial(function))
    if inspect.isclass(plain):
        source: Any = plain.__init__
    else:
        source = plain if inspect.isroutine(plain) else type(plain).__call__
    try:
        found = typing.get_type_hints(source, localns=_closure_names(source), include_extras=True)
    except NameError as error:
        hint = "import it, or define it at module level"
        raise InputError(f"a type hint refers to an unknown name: {error}", path=name, hint=hint) from None
    except (TypeError, SyntaxError) as error:
        raise InputError(f"a type hint cannot be read: {error}", path=name) from None
    return found


def _closure_names(source: Any) -> dict[str, Any]:
    """The names that a function has from its enclosing functions."""
    try:
        return {**inspect.getclosurevars(inspect.unwrap(source)).nonlocals}
    except (TypeError, ValueError):
        return {}


def _is_context(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return _is_context(get_args(hint)[0])
    return hint is ToolContext or ToolContext in get_args(hint)


# --- the schema -------------------------------------------------------------------------------------


def _schema_of(signature: ToolSignature, described: dict[str, str]) -> Schema:
    """The JSON Schema of all arguments, with its definitions inlined."""
    all_hints = [parameter.hint for parameter in signature.parameters]
    if signature.extra_hint is not _MISSING:
        all_hints.append(signature.extra_hint)
    schemas, definitions = hints.schemas_of(all_hints)
    properties = {
        parameter.name: _property_schema(schema, parameter, described)
        for parameter, schema in zip(signature.parameters, schemas, strict=False)
    }
    schema: Schema = {"type": "object", "properties": properties}
    required = [parameter.name for parameter in signature.parameters if parameter.default is _MISSING]
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False if signature.extra_hint is _MISSING else (schemas[-1] or True)
    return inline_definitions(schema, definitions)


def _property_schema(schema: Schema, parameter: ToolParameter, described: dict[str, str]) -> Schema:
    written = dict(schema)
    if "description" not in written and parameter.name in described:
        written["description"] = described[parameter.name]
    if parameter.default is not _MISSING:
        try:
            written["default"] = msgspec.to_builtins(parameter.default, str_keys=True)
        except (TypeError, ValueError):  # a default that JSON cannot express
            written.pop("default", None)
    return written


# --- running ----------------------------------------------------------------------------------------


def _runner(function: Function, signature: ToolSignature, schema: Schema) -> Run:
    plain = _unwrap_partial(function)
    is_async = inspect.iscoroutinefunction(plain) or inspect.iscoroutinefunction(type(plain).__call__)

    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        filled = {**convert(arguments, signature, schema), **dict.fromkeys(signature.context_names, context)}
        bound = functools.partial(function, **filled)
        returned = bound() if is_async else await run_in_thread(bound)
        return await returned if inspect.isawaitable(returned) else returned

    return run


def convert(arguments: dict[str, Any], signature: ToolSignature, schema: Schema) -> dict[str, Any]:
    """Convert the arguments to the hinted types; a ToolError tells the model what does not match."""
    known = {parameter.name: parameter for parameter in signature.parameters}
    problems: list[str] = [
        f"$.{parameter.name}: missing, and required"
        for parameter in signature.parameters
        if parameter.default is _MISSING and parameter.name not in arguments
    ]
    filled: dict[str, Any] = {}
    is_valid: bool | None = None
    for name, value in arguments.items():
        hint = known[name].hint if name in known else signature.extra_hint
        if hint is _MISSING or name in signature.context_names:
            problems.append(f"$.{name}: no such argument; there are: {', '.join(known) or 'none'}")
            continue
        try:
            filled[name] = hints.read(value, hint, strict=True)
        except msgspec.ValidationError as error:
            is_valid = not validate(arguments, schema) if is_valid is None else is_valid
            try:
                # What the schema accepts must work: 1.0 is an integer in JSON.
                filled[name] = _read_leniently(value, hint, error, is_valid=is_valid)
            except msgspec.ValidationError as final:
                problems.append(_problem(name, final))
    if problems:
        raise ToolError(cut("The arguments do not fit: " + "; ".join(problems)))
    return filled


def _read_leniently(value: Any, hint: Any, strictly: msgspec.ValidationError, *, is_valid: bool) -> Any:
    if not is_valid:
        raise strictly
    try:
        return hints.read(value, hint, strict=False)
    except msgspec.ValidationError:
        raise strictly from None


def _problem(name: str, error: msgspec.ValidationError) -> str:
    message, _, path = str(error).partition(" - at `$")
    return f"$.{name}{path.removesuffix('`')}: {message}"
