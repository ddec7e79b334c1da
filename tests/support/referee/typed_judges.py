"""The SDKs' typed request definitions as judges of shape, and bodies with one wrong shape for them to judge.

The definitions are TypedDicts; pydantic reads them strictly. Only shape is compared: types, and fields that must be
there. Everything is made in the same order each time.
"""

from __future__ import annotations

import copy
import json
import os
import types
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import typing_extensions
from anthropic.types.message_create_params import MessageCreateParamsBase
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from pydantic import ConfigDict, TypeAdapter, ValidationError

from toolglot.referee import Violation, lint

Body = dict[str, Any]
Steps = tuple[str | int, ...]

DEFINITIONS: dict[str, Any] = {"openai": CompletionCreateParamsBase, "anthropic": MessageCreateParamsBase}
SHAPE_KEYS = {
    "ids.required",
    "calls.arguments",
    "choice.modes",
    "request.max_tokens_required",
    "request.output",
    "tools.parameters_required",
    "reasoning.signed",
    "reasoning.budget_required",
}
"""Keys whose demand the definitions state as a type."""

FREE = {"parameters", "input_schema", "metadata", "schema", "citations", "logit_bias", "json_schema"}
"""Fields whose inside is the caller's own."""

WRONG: tuple[Any, ...] = (7, True, ["x"], {"x": 1}, 1.5, "no_such_value")


class Mutant(NamedTuple):
    what: str
    """`delete messages[*].role`, `type messages[*].content`."""
    body: Body


@cache
def _adapter(target: str) -> TypeAdapter[Any]:
    # In a list: a configuration is not taken for a TypedDict itself.
    listed: Any = list[_solid(DEFINITIONS[target])]  # type: ignore[misc]
    return TypeAdapter(listed, config=ConfigDict(strict=True))


def sdk_refuses(target: str, body: Body) -> bool:
    try:
        _adapter(target).validate_json(json.dumps([body]))
    except ValidationError:
        return True
    return False


@cache
def _solid(kind: Any) -> Any:
    """A type with lists for iterables: those are checked only when they are read, and a text is one too."""
    if typing_extensions.is_typeddict(kind):
        hints = typing_extensions.get_type_hints(kind, include_extras=True)
        return typing_extensions.TypedDict(kind.__name__, {name: _field(hint) for name, hint in hints.items()})  # type: ignore[operator]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _solid(args[0])
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(_solid(arg) for arg in args if _is_json(arg))]  # noqa: UP007 - made from a tuple
    if origin is typing.Literal or kind in (str, int, float, bool, types.NoneType, object):
        return kind
    if origin is dict:
        return dict[str, _solid(args[1])]  # type: ignore[misc]
    return list[_solid(args[0])]  # type: ignore[misc]


def _is_json(kind: Any) -> bool:
    """Beside what can stand in a body the definitions take files, paths and the SDK's own answers."""
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        return _is_json(typing.get_args(kind)[0])
    if origin in (typing.Union, types.UnionType):
        return any(_is_json(arg) for arg in typing.get_args(kind))
    is_class = isinstance(kind, type) and not typing_extensions.is_typeddict(kind)
    plain = (str, int, float, bool, types.NoneType, object)
    return origin not in (typing.IO, os.PathLike) and (not is_class or kind in plain or origin is not None)


def _field(hint: Any) -> Any:
    """Every field of these definitions may be left out, save those that are marked."""
    is_required = typing.get_origin(hint) is typing.Required
    solid = _solid(typing.get_args(hint)[0] if is_required else hint)
    return typing.Required[solid] if is_required else typing.NotRequired[solid]


def shape_faults(target: str, body: Body) -> list[Violation]:
    return [found for found in lint(body, target) if found.rule == "shape" or found.key in SHAPE_KEYS]


def overlaid(bodies: list[Body], count: int) -> list[Body]:
    """The bodies, and pairs of them laid over each other: for shape, each field stands for itself."""
    pairs = [{**first, **second} for first in bodies for second in bodies if first is not second]
    return [*bodies, *pairs[:: max(1, len(pairs) // count)]]


def mutants(bodies: list[Body], count: int) -> list[Mutant]:
    """Bodies with one field deleted or of another type, evenly chosen from all that could be."""
    found = [mutant for body in bodies for mutant in _mutants(body)]
    return found[:: max(1, len(found) // count)]


def _mutants(body: Body) -> Iterator[Mutant]:
    for number, (steps, value) in enumerate(_paths(body, ())):
        where = "".join("[*]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
        if isinstance(steps[-1], str):
            yield Mutant(f"delete {where}", _changed(body, steps, delete=True))
        others = [wrong for wrong in WRONG if _kind(wrong) != _kind(value)]
        yield Mutant(f"type {where}", _changed(body, steps, others[number % len(others)]))


def _kind(value: Any) -> str:
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def _paths(value: Any, steps: Steps) -> Iterator[tuple[Steps, Any]]:
    if steps:
        yield steps, value
    if steps and steps[-1] in FREE:
        return
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, member in members:
        yield from _paths(member, (*steps, step))


def _changed(body: Body, steps: Steps, value: Any = None, *, delete: bool = False) -> Body:
    changed = copy.deepcopy(body)
    parent: Any = changed
    for step in steps[:-1]:
        parent = parent[step]
    if delete:
        del parent[steps[-1]]
    else:
        parent[steps[-1]] = value
    return changed
