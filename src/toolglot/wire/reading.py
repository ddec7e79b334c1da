"""How codecs read a wire body: typed fields, JSON paths in errors, and a place for what is left over.

A codec pops nothing and copies little: it reads known fields from a parsed body, keeps sub-trees that it
does not change as they are, and puts every other field into `extra` under its protocol. Fields whose value
is null are left over too, so that they come back as null and not as absent.

Keys of `extra` that start with `~` are the codec's own notes on how something was written (content as a
string or as a list, say). A wire field that starts with it gets a second one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from toolglot.conversation import Block, Extra, Opaque, ServerTool
from toolglot.errors import InputError, quote

ERROR_PREFIX: Final = "Error: "
"""What marks a failed result where a protocol has no field for it."""

T = TypeVar("T")
Fields = dict[str, Any]

_KINDS = {dict: "an object", list: "an array", str: "a string", bool: "true or false", int: "a whole number"}


def is_number(value: object) -> bool:
    return type(value) is int or type(value) is float


def expected(what: str, got: object, path: str, hint: str = "") -> InputError:
    """An error of the wrong type, with a path relative to the object being read."""
    kind = "null" if got is None else _KINDS.get(type(got), "a number" if is_number(got) else quote(got))
    return InputError(f"expected {what}, got {kind}", path=path, hint=hint)


def inside(error: InputError, outer: str) -> InputError:
    """The error as seen from the object that holds the one it happened in."""
    error.path = outer + error.path
    return error


def required(fields: Fields, key: str, kind: type[T]) -> T:
    """A field that must be there and of this type."""
    value = fields.get(key)
    if type(value) is not kind:
        if key not in fields:
            raise InputError(f"expected {_KINDS[kind]}, but the field is missing", path=f".{key}")
        raise expected(_KINDS[kind], value, f".{key}")
    return value


def optional(fields: Fields, key: str, kind: type[T]) -> T | None:
    """A field that may be absent or null, and is otherwise of this type."""
    value = fields.get(key)
    if value is not None and type(value) is not kind:
        raise expected(_KINDS[kind], value, f".{key}")
    return value


def one_of(fields: Fields, key: str, meanings: Mapping[str, T]) -> T:
    """What a field means that has one of a few values."""
    written = required(fields, key, str)
    meaning = meanings.get(written)
    if meaning is None:
        raise InputError(f"expected one of {', '.join(meanings)}, got {quote(written)}", path=f".{key}")
    return meaning


def optional_number(fields: Fields, key: str) -> int | float | None:
    value: Any = fields.get(key)
    if value is not None and not is_number(value):
        raise expected("a number", value, f".{key}")
    return value  # type: ignore[no-any-return]


def optional_texts(fields: Fields, key: str) -> tuple[str, ...]:
    """A list of strings, empty if absent or null."""
    values = optional(fields, key, list) or []
    for index, value in enumerate(values):
        if type(value) is not str:
            raise expected("a string", value, f".{key}[{index}]")
    return tuple(values)


def each(items: Iterable[Any], read: Callable[[Fields], T], outer: str) -> list[T]:
    """Every object of a list, read."""
    found: list[T] = []
    try:
        for item in items:
            if type(item) is not dict:
                raise expected("an object", item, "")
            found.append(read(item))
    except InputError as error:
        raise inside(error, f"{outer}[{len(found)}]") from None
    return found


def leftover(fields: Fields, known: frozenset[str], protocol: str, read: int = -1) -> Extra | None:
    """The fields that are not known, and those that are null, under the protocol.

    `read` is how many known fields were found that are not null, where the reader counted them: an object
    that has no more fields leaves nothing over.
    """
    if len(fields) == read or (known.issuperset(fields) and None not in fields.values()):
        return None
    rest = {
        f"~{key}" if key.startswith("~") else key: value
        for key, value in fields.items()
        if value is None or key not in known
    }
    return {protocol: rest}


def is_at_home(block: Block, protocol: str) -> bool:
    """Whether a block can be written in a protocol: what is another protocol's own cannot."""
    return not isinstance(block, Opaque | ServerTool) or block.protocol == protocol


def noted(extra: Extra | None, protocol: str, **notes: Any) -> Extra | None:
    """The extra fields with the codec's own notes; a note of None is not written."""
    kept = {f"~{key}": value for key, value in notes.items() if value is not None}
    if not kept:
        return extra
    return {protocol: {**(extra[protocol] if extra else {}), **kept}}


def note(extra: Extra | None, protocol: str, key: str) -> Any:
    """A note of the codec; None if there is none."""
    fields = extra.get(protocol) if extra else None
    return fields.get(f"~{key}") if fields else None


def present(fields: Fields) -> Fields:
    """The fields that are set: None means that there is nothing to say."""
    return {key: value for key, value in fields.items() if value is not None}


def restored(fields: Fields, extra: Extra | None, protocol: str) -> Fields:
    """The fields of a wire object with those that were left over when it was read."""
    rest = extra.get(protocol) if extra else None
    if rest:
        for key, value in rest.items():
            if not key.startswith("~"):
                fields.setdefault(key, value)
            elif key.startswith("~~"):
                fields.setdefault(key[1:], value)
    return fields
