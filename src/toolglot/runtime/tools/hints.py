"""JSON Schema from type hints, and arguments converted to the hinted types.

msgspec reads the hints. What it does not support is replaced first by a substitute class that has its own schema and
reads its own values: ambiguous unions, enums of mixed values, paths, and pydantic models, which are recognised by
their methods (nothing here imports pydantic).

Law: a value that the schema accepts, `format`s included, can be converted to the hinted type.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import enum
import functools
import pathlib
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, ClassVar, Final, Union, get_args, get_origin

import msgspec

from toolglot.errors import InputError, cut
from toolglot.runtime.tools.references import Schema, references_in, rename_definitions

_LISTS: Final = (collections.abc.Iterable, collections.abc.Iterator, collections.abc.Container)
_MAX_DEPTH: Final = 50


class _SubstituteMeta(type):
    """msgspec checks that a value is an instance of the hinted class; the values of a substitute never are."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


class SubstituteType(metaclass=_SubstituteMeta):
    """Replaces in a hint what msgspec does not support."""

    schema: ClassVar[Callable[[Definitions], Schema]]
    read: ClassVar[Callable[[Any], Any]]


class Definitions:
    """The definitions of all models, each under a unique name."""

    def __init__(self) -> None:
        self.found: dict[str, Schema] = {}

    def collect(self, schema: Schema) -> Schema:
        """Collect the definitions of a model's schema, and return the schema without them."""
        own = schema.get("$defs", {})
        names = {name: self._unused_name(name) for name in own}
        self.found |= {names[name]: rename_definitions(held, names) for name, held in own.items()}
        rest: Schema = rename_definitions({key: held for key, held in schema.items() if key != "$defs"}, names)
        return rest

    def _unused_name(self, name: str) -> str:
        taken, count = f"model.{name}", 1
        while taken in self.found:
            count += 1
            taken = f"model.{name}.{count}"
        return taken


# --- schemas ----------------------------------------------------------------------------------------


def schemas_of(hints: Sequence[Any]) -> tuple[tuple[Schema, ...], dict[str, Schema]]:
    """The schemas of hints that `supported_hint` returned, and the definitions that they refer to."""
    definitions = Definitions()
    hook = functools.partial(_schema_of, definitions=definitions)
    schemas, components = msgspec.json.schema_components(hints, schema_hook=hook)
    described = _descriptions(hints)
    held = {name: _with_descriptions(part, described) for name, part in components.items()}
    return tuple(_plain(schema) for schema in schemas), {**held, **definitions.found}


def _schema_of(kind: type, *, definitions: Definitions) -> Schema:
    if issubclass(kind, SubstituteType):
        return kind.schema(definitions)
    if _is_model(kind):
        return definitions.collect(kind.model_json_schema())  # type: ignore[attr-defined]
    if issubclass(kind, pathlib.PurePath):
        return {"type": "string", "format": "path"}
    raise NotImplementedError


def _plain(schema: Schema) -> Schema:
    """The schema without a union that has a member for any value."""
    members = schema.get("anyOf")
    if isinstance(members, list) and {} in members:
        return {key: held for key, held in schema.items() if key != "anyOf"}
    return schema


def _is_model(kind: object) -> bool:
    """Whether a class is a pydantic model, or works like one."""
    return isinstance(kind, type) and all(
        callable(getattr(kind, method, None)) for method in ("model_json_schema", "model_validate")
    )


# --- reading ----------------------------------------------------------------------------------------


def read(value: Any, hint: Any, *, strict: bool) -> Any:
    """Convert a JSON value to a hinted type; a msgspec.ValidationError says where and why that failed."""
    return msgspec.convert(value, hint, strict=strict, dec_hook=_read_custom, str_keys=True)


def _read_custom(kind: Any, value: Any) -> Any:
    if issubclass(kind, SubstituteType):
        return kind.read(value)
    if _is_model(kind):
        return _read_model(kind, value)
    if not isinstance(value, str):
        raise msgspec.ValidationError(f"Expected `str`, got `{type(value).__name__}`")
    return kind(value)


def _read_model(kind: Any, value: Any) -> Any:
    try:
        return kind.model_validate(value)
    except ValueError as error:
        raise msgspec.ValidationError(_problems(error)) from None


def _problems(error: Any) -> str:
    """The validation errors of a model, in few words."""
    listed = getattr(error, "errors", None)
    if not callable(listed):
        return cut(str(error))
    found = [f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}".removeprefix(": ") for problem in listed()]
    return cut("; ".join(found))


# --- hints that msgspec supports --------------------------------------------------------------------


def supported_hint(hint: Any, path: str, depth: int = 0) -> Any:
    """An equivalent hint that msgspec supports."""
    if depth > _MAX_DEPTH:
        raise InputError("the hint is nested too deeply", path=path)
    made = _rebuild(hint, lambda inner: supported_hint(inner, path, depth + 1))
    try:
        msgspec.json.schema_components([made], schema_hook=functools.partial(_schema_of, definitions=Definitions()))
    except (TypeError, NotImplementedError, ValueError, NameError) as error:
        if _is_union(made):
            return _union_of(get_args(made))
        why = str(error).splitlines()[-1] if "requires either" in str(error) else str(error).splitlines()[0]
        hint_text = "use types that JSON supports, or write the schema yourself: toolglot.runtime.define"
        raise InputError(f"this type hint is not supported: {why}", path=path, hint=hint_text) from None
    return made


def _rebuild(hint: Any, inner: Callable[[Any], Any]) -> Any:
    """The hint with `inner` applied to its parts, and special types replaced."""
    if hint is object:
        return Any
    if hint is datetime.datetime:
        return Annotated[datetime.datetime, msgspec.Meta(extra_json_schema={"format": "date-time"})]
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _enum_of(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotate(inner(args[0]), hint.__metadata__)
    if _is_union(hint):
        return Union[tuple(inner(part) for part in args)]  # noqa: UP007 - the members are not known before
    if hint in _LISTS or origin in _LISTS:
        return list[inner(args[0])] if args else list[Any]  # type: ignore[misc]
    if origin in (list, set, frozenset, tuple, dict) or getattr(origin, "__module__", "") == "collections.abc":
        return _generic(hint, origin, args, inner)
    return hint


def _generic(hint: Any, origin: Any, args: tuple[Any, ...], inner: Callable[[Any], Any]) -> Any:
    if origin is collections.abc.Callable:
        return hint
    made = tuple(part if part is Ellipsis else inner(part) for part in args)
    return origin[made]


def _annotate(inner: Any, metadata: Iterable[Any]) -> Any:
    """A hint with the annotations that msgspec knows; a plain string is a description."""
    kept = [part for part in metadata if isinstance(part, msgspec.Meta)]
    if not any(part.description for part in kept):
        texts = [part for part in metadata if isinstance(part, str)]
        kept += [msgspec.Meta(description=text) for text in texts[:1]]
    for part in kept:
        inner = Annotated[inner, part]
    return inner


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)


def _union_of(members: tuple[Any, ...]) -> Any:
    """A union that msgspec cannot distinguish: the first member that accepts a value wins."""

    def schema(definitions: Definitions) -> Schema:
        hook = functools.partial(_schema_of, definitions=definitions)
        schemas, components = msgspec.json.schema_components(members, schema_hook=hook)
        return {
            "anyOf": [definitions.collect({**part, "$defs": _used_components(part, components)}) for part in schemas]
        }

    def read_any(value: Any) -> Any:
        problems: list[str] = []
        for strict in (True, False):
            for member in members:
                try:
                    return read(value, member, strict=strict)
                except msgspec.ValidationError as error:
                    problems.append(str(error))
        raise msgspec.ValidationError(" or ".join(dict.fromkeys(problems[: len(members)])))

    return _SubstituteMeta("Union", (SubstituteType,), {"schema": staticmethod(schema), "read": staticmethod(read_any)})


def _used_components(schema: Schema, components: dict[str, Schema]) -> dict[str, Schema]:
    return components if any(True for _ in references_in(schema)) else {}


def _enum_of(kind: type[enum.Enum]) -> Any:
    """An enum. msgspec supports those whose values are all strings or all integers."""
    values = [member.value for member in kind]
    if all(type(value) is str for value in values) or all(type(value) is int for value in values):
        return kind

    def read_member(value: Any) -> Any:
        for member in kind:
            # `==` alone would accept 1 as True.
            if member.value == value and isinstance(member.value, bool) is isinstance(value, bool):
                return member
        raise msgspec.ValidationError("Expected one of the listed values")

    def schema(_: Definitions) -> Schema:
        return {"enum": [msgspec.to_builtins(value) for value in values], "title": kind.__name__}

    return _SubstituteMeta(
        kind.__name__, (SubstituteType,), {"schema": staticmethod(schema), "read": staticmethod(read_member)}
    )


# --- descriptions inside classes --------------------------------------------------------------------


def _descriptions(hints: Iterable[Any]) -> dict[str, dict[str, str]]:
    """The descriptions of fields by `Annotated[…, "text"]`: class name → field → text."""
    found: dict[str, dict[str, str]] = {}
    seen: set[int] = set()
    stack = [*hints]
    while stack:
        hint = stack.pop()
        if id(hint) in seen:
            continue
        seen.add(id(hint))
        stack += [part for part in get_args(hint) if not isinstance(part, str | msgspec.Meta)]
        if isinstance(hint, type) and _has_fields(hint):
            fields = _fields(hint)
            stack += fields.values()
            found[hint.__name__] = {name: text for name, part in fields.items() if (text := description_in(part))}
    return found


def _has_fields(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) or typing.is_typeddict(kind) or issubclass(kind, msgspec.Struct | tuple)


def _fields(kind: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except (NameError, TypeError):
        return {}


def description_in(hint: Any) -> str:
    """The plain string in an annotated hint; empty without one."""
    metadata = getattr(hint, "__metadata__", ()) if get_origin(hint) is Annotated else ()
    return next((part for part in metadata if isinstance(part, str)), "")


def _with_descriptions(schema: Schema, described: dict[str, dict[str, str]]) -> Schema:
    texts = described.get(schema.get("title", ""))
    if not texts or "properties" not in schema:
        return schema
    fields = {
        name: {"description": texts[name], **part} if name in texts else part
        for name, part in schema["properties"].items()
    }
    return {**schema, "properties": fields}
