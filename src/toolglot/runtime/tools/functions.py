"""Python functions as tools: the schema from the type hints, the descriptions from the docstring.

A parameter without a hint takes anything. One whose hint is `ToolContext` is given, not shown to the model. Functions
that are not asynchronous run in a thread.

Law: the function is called only with arguments of the hinted types; what does not fit is told to the model, precisely,
and the function is not called.
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
from toolglot.runtime.tools.references import Schema, inlined
from toolglot.runtime.tools.threads import in_thread
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


class Parameter(typing.NamedTuple):
    """A parameter that the model fills."""

    name: str
    hint: Any
    default: Any


class Signature(typing.NamedTuple):
    """What a function takes: from the model, and from the scheduler."""

    shown: tuple[Parameter, ...]
    more: Any
    """The hint of `**kwargs`; `_MISSING` where there is none."""
    given: tuple[str, ...]
    """The parameters that get the context."""


class Decorator(typing.Protocol):
    """What `@tool(…)` is: it makes a tool of a function, and keeps its types."""

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
    """A function as a tool: `tool(function)`, `@tool`, or `@tool(timeout=5)`.

    function: the function; its hints make the schema, its docstring the descriptions.
    name: the name of the tool; without it, the function's.
    description: what the model is told; without it, the docstring's first part.
    side_effects: whether running it changes anything. Such a run is in the log before it starts, and is never
        repeated.
    idempotent: whether it may be tried again after an error or a timeout.
    resources: names what the arguments touch; calls that touch the same run one after another.
    timeout: seconds; without it, the scheduler's.
    on_timeout: `error` if a tool that ran out of time is known to have stopped, `unknown` if it may have run.
    approval: whether somebody is asked before each run.
    strict: whether the provider is to hold the model to the schema, where it can.
    """

    def made(given: Callable[P, R]) -> FunctionTool[P, R]:
        if isinstance(given, Tool):
            raise InputError(f"{quote(given.name)} is a tool already", path="function")
        if not callable(given):
            raise InputError(f"expected a function, got {quote(given)}", path="function")
        called = name if name is not None else _name_of(given)
        signature = _signature_of(given, called)
        documented = _documentation(given)
        schema = _schema_of(signature, documented.parameters)
        told = description if description is not None else documented.summary
        return FunctionTool(
            spec=ToolSpec(called, told, schema, strict=strict),
            run=_runner(given, signature, schema),
            side_effects=side_effects,
            idempotent=idempotent,
            resources=resources,
            timeout=timeout,
            on_timeout=on_timeout,
            approval=approval,
            function=given,
        )

    return made if function is None else made(function)


# --- what a function says of itself -----------------------------------------------------------------


def _name_of(function: Function) -> str:
    plain = _unwrapped(function)
    name = getattr(plain, "__name__", None) or type_name(plain)
    if not str(name).isidentifier():
        raise InputError(f"{quote(name)} is no name for a tool", path="name", hint="tool(function, name=…)")
    return str(name)


def _unwrapped(function: Function) -> Function:
    while isinstance(function, functools.partial):
        function = function.func
    return function


class Documentation(typing.NamedTuple):
    summary: str | None
    parameters: dict[str, str]


def _documentation(function: Function) -> Documentation:
    """The docstring, in any of the usual styles: what the tool does, and what each parameter means."""
    import docstring_parser  # noqa: PLC0415 - only whoever makes tools of functions needs it

    plain = _unwrapped(function)
    is_instance = not inspect.isroutine(plain) and not inspect.isclass(plain)
    source = type(plain).__call__ if is_instance and not inspect.getdoc(plain) else plain
    text = inspect.getdoc(source)
    if not text:
        return Documentation(None, {})
    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return Documentation(text, {})
    described = {
        found.arg_name.lstrip("*"): found.description for found in parsed.params if found.description is not None
    }
    return Documentation((parsed.description or "").strip() or None, described)


def _signature_of(function: Function, name: str) -> Signature:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        why = "the function does not tell its parameters"
        raise InputError(why, path=name, hint="wrap it in a function of your own") from None
    _refuse_unfit(function, signature, name)
    annotations = _annotations(function, name)
    shown: list[Parameter] = []
    given: list[str] = []
    more: Any = _MISSING
    for parameter in signature.parameters.values():
        hint: Any = annotations.get(parameter.name, Any)
        path = f"{name}.{parameter.name}"
        if _is_context(hint):
            given.append(parameter.name)
        elif parameter.kind is parameter.VAR_KEYWORD:
            more = hints.supported(hint, path)
        else:
            if parameter.default is None:
                hint = hint | None if hint is not Any else hint
            shown.append(Parameter(parameter.name, hints.supported(hint, path), parameter.default))
    return Signature(tuple(shown), more, tuple(given))


def _refuse_unfit(function: Function, signature: inspect.Signature, name: str) -> None:
    plain = _unwrapped(function)
    called = plain if inspect.isroutine(plain) or inspect.isclass(plain) else type(plain).__call__
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        hint = "return the whole, and tell progress with ToolContext.progress"
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
    plain = inspect.unwrap(_unwrapped(function))
    if inspect.isclass(plain):
        source: Any = plain.__init__
    else:
        source = plain if inspect.isroutine(plain) else type(plain).__call__
    try:
        found = typing.get_type_hints(source, localns=_enclosed(source), include_extras=True)
    except NameError as error:
        hint = "import it, and define it where the module can see it"
        raise InputError(f"a type hint names what is not there: {error}", path=name, hint=hint) from None
    except (TypeError, SyntaxError) as error:
        raise InputError(f"a type hint cannot be read: {error}", path=name) from None
    return found


def _enclosed(source: Any) -> dict[str, Any]:
    """The names that a function has from the functions around it."""
    try:
        return {**inspect.getclosurevars(inspect.unwrap(source)).nonlocals}
    except (TypeError, ValueError):
        return {}


def _is_context(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return _is_context(get_args(hint)[0])
    return hint is ToolContext or ToolContext in get_args(hint)


# --- the schema -------------------------------------------------------------------------------------


def _schema_of(signature: Signature, described: dict[str, str]) -> Schema:
    """The JSON Schema of all arguments, its definitions written out."""
    asked = [*(parameter.hint for parameter in signature.shown)]
    if signature.more is not _MISSING:
        asked.append(signature.more)
    schemas, definitions = hints.schemas_of(asked)
    properties = {
        parameter.name: _told(schema, parameter, described)
        for parameter, schema in zip(signature.shown, schemas, strict=False)
    }
    schema: Schema = {"type": "object", "properties": properties}
    required = [parameter.name for parameter in signature.shown if parameter.default is _MISSING]
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False if signature.more is _MISSING else (schemas[-1] or True)
    return inlined(schema, definitions)


def _told(schema: Schema, parameter: Parameter, described: dict[str, str]) -> Schema:
    told = dict(schema)
    if "description" not in told and parameter.name in described:
        told["description"] = described[parameter.name]
    if parameter.default is not _MISSING:
        try:
            told["default"] = msgspec.to_builtins(parameter.default, str_keys=True)
        except (TypeError, ValueError):  # the function has it, JSON does not
            told.pop("default", None)
    return told


# --- running ----------------------------------------------------------------------------------------


def _runner(function: Function, signature: Signature, schema: Schema) -> Run:
    plain = _unwrapped(function)
    is_async = inspect.iscoroutinefunction(plain) or inspect.iscoroutinefunction(type(plain).__call__)

    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        filled = {**convert(arguments, signature, schema), **dict.fromkeys(signature.given, context)}
        bound = functools.partial(function, **filled)
        returned = bound() if is_async else await in_thread(bound)
        return await returned if inspect.isawaitable(returned) else returned

    return run


def convert(arguments: dict[str, Any], signature: Signature, schema: Schema) -> dict[str, Any]:
    """The arguments as the hints say; a ToolError tells the model what does not fit."""
    known = {parameter.name: parameter for parameter in signature.shown}
    problems: list[str] = [
        f"$.{parameter.name}: missing, and required"
        for parameter in signature.shown
        if parameter.default is _MISSING and parameter.name not in arguments
    ]
    filled: dict[str, Any] = {}
    is_valid: bool | None = None
    for name, value in arguments.items():
        hint = known[name].hint if name in known else signature.more
        if hint is _MISSING or name in signature.given:
            problems.append(f"$.{name}: no such argument; there are: {', '.join(known) or 'none'}")
            continue
        try:
            filled[name] = hints.read(value, hint, strict=True)
        except msgspec.ValidationError as error:
            is_valid = not validate(arguments, schema) if is_valid is None else is_valid
            try:
                # What the schema allows is meant: 1.0 is a whole number in JSON.
                filled[name] = _leniently(value, hint, error, is_valid=is_valid)
            except msgspec.ValidationError as final:
                problems.append(_problem(name, final))
    if problems:
        raise ToolError(cut("The arguments do not fit: " + "; ".join(problems)))
    return filled


def _leniently(value: Any, hint: Any, strictly: msgspec.ValidationError, *, is_valid: bool) -> Any:
    if not is_valid:
        raise strictly
    try:
        return hints.read(value, hint, strict=False)
    except msgspec.ValidationError:
        raise strictly from None


def _problem(name: str, error: msgspec.ValidationError) -> str:
    message, _, place = str(error).partition(" - at `$")
    return f"$.{name}{place.removesuffix('`')}: {message}"
