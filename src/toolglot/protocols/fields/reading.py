"""How codecs read a wire body: typed fields, JSON paths in errors, and unknown fields.

A codec pops nothing and copies little: it reads known fields from a parsed body, keeps sub-trees that it
does not change as they are, and puts every other field into `extra` under its protocol. Fields whose value
is null are left over too, so that they come back as null and not as absent. How something was written (content as
a string or as a list, say) is the form of the value (`form.py` of the protocol).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from toolglot.conversation import Block, Extra, Opaque, ServerTool
from toolglot.errors import InputError, quote

T = TypeVar("T")
Fields = dict[str, Any]

_KINDS = {dict: "an object", list: "an array", str: "a string", bool: "true or false", int: "a whole number"}


def is_number(value: object) -> bool:
    return type(value) is int or type(value) is float


def type_error(what: str, got: object, path: str, hint: str = "") -> InputError:
    """An error of the wrong type, with a path relative to the object being read."""
    kind = "null" if got is None else _KINDS.get(type(got), "a number" if is_number(got) else quote(got))
    return InputError(f"expected {what}, got {kind}", path=path, hint=hint)


def unknown_fragment(what: str, path: str = "") -> InputError:
    """What is no piece of a reply."""
    return InputError(f"expected {what}", path=path, hint="is it an answer of another provider?")


def inside(error: InputError, outer: str) -> InputError:
    """The error as seen from the object that holds the one it happened in."""
    error.path = outer + error.path
    return error


def from_root(read: Callable[[Fields], T]) -> Callable[[Fields], T]:
    """A reader of whole bodies: its errors say where they are from the root on."""

    @functools.wraps(read)
    def rooted(body: Fields) -> T:
        try:
            return read(body)
        except InputError as error:
            raise inside(error, "$") from None

    return rooted


def required(fields: Fields, key: str, kind: type[T]) -> T:
    """A field that must be there and of this type."""
    value = fields.get(key)
    if type(value) is not kind:
        if key not in fields:
            raise InputError(f"expected {_KINDS[kind]}, but the field is missing", path=f".{key}")
        raise type_error(_KINDS[kind], value, f".{key}")
    return value


def require_all(fields: Fields, kinds: Mapping[str, type]) -> InputError:
    """What is wrong with the first of some fields that is missing or of another type.

    For readers that look at fields themselves, since that is faster: only when they saw one do they ask.
    """
    for key, kind in kinds.items():
        try:
            required(fields, key, kind)
        except InputError as error:
            return error
    raise AssertionError("all fields are there and of their types")


def optional(fields: Fields, key: str, kind: type[T]) -> T | None:
    """A field that may be absent or null, and is otherwise of this type."""
    value = fields.get(key)
    if value is not None and type(value) is not kind:
        raise type_error(_KINDS[kind], value, f".{key}")
    return value


def one_of(fields: Fields, key: str, meanings: Mapping[str, T]) -> T:
    """What a field means that has one of a few values."""
    written: Any = fields.get(key)
    meaning = meanings.get(written) if type(written) is str else None
    if meaning is None:
        written = required(fields, key, str)
        raise InputError(f"expected one of {', '.join(meanings)}, got {quote(written)}", path=f".{key}")
    return meaning


def optional_number(fields: Fields, key: str) -> int | float | None:
    value: Any = fields.get(key)
    if value is not None and not is_number(value):
        raise type_error("a number", value, f".{key}")
    return value  # type: ignore[no-any-return]


def optional_texts(fields: Fields, key: str) -> tuple[str, ...]:
    """A list of strings, empty if absent or null."""
    values = optional(fields, key, list) or []
    for index, value in enumerate(values):
        if type(value) is not str:
            raise type_error("a string", value, f".{key}[{index}]")
    return tuple(values)


def each(items: Iterable[Any], read: Callable[[Fields], T], outer: str, first: int = 0) -> list[T]:
    """Every object of a list, read; `first` is the index of the first one."""
    found: list[T] = []
    try:
        for item in items:
            if type(item) is not dict:
                raise type_error("an object", item, "")
            found.append(read(item))
    except InputError as error:
        raise inside(error, f"{outer}[{first + len(found)}]") from None
    return found


def each_by_type(
    items: list[Any], readers: Mapping[str, Callable[[Fields], T]], otherwise: Callable[[Fields], T], outer: str
) -> list[T]:
    """Every object of a list, read by the reader of its type; `otherwise` reads the rest, or refuses."""
    found: list[T] = []
    try:
        for item in items:
            try:
                read = readers[item["type"]]
            except (KeyError, TypeError):
                if type(item) is not dict:
                    raise type_error("an object", item, "") from None
                read = otherwise
            found.append(read(item))
    except InputError as error:
        raise inside(error, f"{outer}[{len(found)}]") from None
    return found


def read_required(fields: Fields, key: str, read: Callable[[Fields], T]) -> T:
    """The object in a field that must be there, read."""
    inner = required(fields, key, dict)
    try:
        return read(inner)
    except InputError as error:
        raise inside(error, f".{key}") from None


def held_or_none(fields: Fields, key: str, read: Callable[[Fields], T]) -> T | None:
    """The object in a field, read; None if the field is absent or null."""
    return None if fields.get(key) is None else read_required(fields, key, read)


def leftover(fields: Fields, known: frozenset[str], protocol: str, read: int = -1) -> Extra | None:
    """The fields that are not known, and those that are null, under the protocol.

    `read` is how many known fields were found that are not null, where the reader counted them: an object
    that has no more fields leaves nothing over.
    """
    if len(fields) == read or (known.issuperset(fields) and None not in fields.values()):
        return None
    rest: Fields = {}
    for key, value in fields.items():  # a comprehension is slower for so few
        if value is None or key not in known:
            rest[key] = value
    return {protocol: rest}


def rest_of(fields: Fields, known: frozenset[str], read: int = -1) -> Fields | None:
    """What is left over of an inner object, for the form of the value that it belongs to; None if nothing is."""
    rest = leftover(fields, known, "", read)
    return rest[""] if rest else None


def without_empty(fields: Fields, known: frozenset[str]) -> frozenset[str]:
    """The known fields except empty ones, where a canonical value does not distinguish these from absent ones."""
    return known - {key for key, value in fields.items() if value == "" or value == []}


def own_value(block: Block, protocol: str) -> Fields | None:
    """What is a protocol's own, as it came; None for anything else, which that protocol cannot read."""
    if isinstance(block, Opaque | ServerTool) and block.protocol == protocol:
        value: Fields = block.value
        return value
    return None


def opaque_value(opaque: Opaque | None, protocol: str) -> Any:
    """A setting of a kind that only its protocol knows, as it came; None for that of another protocol, and for none."""
    return None if opaque is None or opaque.protocol != protocol else opaque.value


def present(fields: Fields) -> Fields:
    """The fields that are set: None means that there is nothing to say."""
    return {key: value for key, value in fields.items() if value is not None}


def with_extra(fields: Fields, extra: Extra | None, protocol: str) -> Fields:
    """The fields of a wire object with those that were left over when it was read."""
    return with_rest(fields, extra.get(protocol)) if extra else fields


def with_rest(fields: Fields, rest: Fields | None) -> Fields:
    """The fields with those that were left over. What the fields say themselves counts."""
    if rest:
        for key, value in rest.items():
            fields.setdefault(key, value)
    return fields
