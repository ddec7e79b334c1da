"""Chunks of a Chat Completions stream: the typed form of the common ones, and the careful reading of all others.

Law: a chunk that the typed form accepts holds nothing else. Deltas and entries of calls refuse unknown fields, and
chunks refuse a value in fields that are usually null, so that the fast path loses nothing. What it refuses is read with
care.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from toolglot.jsontext import compact
from toolglot.protocols.fields.reading import Fields


class FunctionCall(Struct, gc=False, forbid_unknown_fields=True):
    """The inner object of a function call."""

    name: str | None = None
    arguments: str | None = None


class FreeTextCall(Struct, gc=False, forbid_unknown_fields=True):
    """The inner object of a call with free text."""

    name: str | None = None
    input: str | None = None


class CallEntry(Struct, gc=False, forbid_unknown_fields=True):
    """An entry of `tool_calls`."""

    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: FunctionCall | None = None
    custom: FreeTextCall | None = None


class Delta(Struct, gc=False, forbid_unknown_fields=True):
    content: str | None = None
    role: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[CallEntry] | None = None
    reasoning_details: Any = None


class ChunkChoice(Struct, gc=False):
    """A choice that only continues the first reply. A chunk with a value in another field is not read typed."""

    delta: Delta
    index: Literal[0]
    finish_reason: None = None
    logprobs: None = None
    message: None = None
    usage: None = None
    error: None = None


class Chunk(Struct, gc=False):
    choices: tuple[ChunkChoice]
    object: Literal["chat.completion.chunk"]
    usage: None = None
    error: None = None
    base_resp: None = None


class CallPiece(Struct, gc=False):
    """A piece of a call, in whatever form it came."""

    index: int | None = None
    id: str = ""
    kind: str = ""
    """The type that it names, or that of its inner object."""
    name: str = ""
    text: str = ""
    is_object: bool = False
    """Whether the arguments were an object, not a string."""
    extra: Fields | None = None
    """Other fields."""
    inner: Fields | None = None
    """Other fields of the inner object."""
    problems: tuple[str, ...] = ()
    is_legacy: bool = False
    """Whether it came in the legacy field `function_call`: such a call has no id."""


decode_chunk: Final = msgspec.json.Decoder(Chunk).decode

_ENTRY: Final = frozenset({"index", "id", "type", "function", "custom"})
_INNER: Final = {"function": frozenset({"name", "arguments"}), "custom": frozenset({"name", "input"})}
_NOT_TEXT: Final = "an id or a name of a call is not a string; it was left out"
_NOT_WHOLE: Final = "the index of a call is not a whole number"


def make_piece(entry: CallEntry) -> CallPiece:
    """The piece of an entry that was read typed."""
    function, custom = entry.function, entry.custom
    if function is not None:
        kind, name, text = entry.type or "", function.name, function.arguments
    elif custom is not None:
        kind, name, text = "custom", custom.name, custom.input
    else:
        kind, name, text = entry.type or "", None, None
    problems = ("a call has an empty id or name",) if entry.id == "" or name == "" else ()
    return CallPiece(entry.index, entry.id or "", kind, name or "", text or "", problems=problems)


def read_piece(fields: Fields) -> CallPiece:
    """The piece of any other entry. A value of a wrong type is converted if possible, else left out."""
    key = "custom" if type(fields.get("custom")) is dict and type(fields.get("function")) is not dict else "function"
    inner: Any = fields.get(key)
    inner = inner if type(inner) is dict else {}
    kind: Any = fields.get("type")
    kind = kind if type(kind) is str and kind else "custom" if key == "custom" else ""
    id, name = fields.get("id"), inner.get("name")
    written = inner.get("arguments" if key == "function" else "input")
    text = written if type(written) is str else "" if written is None else compact(written)
    is_malformed = any(value is not None and type(value) is not str for value in (id, name))
    index = fields.get("index")
    problems = (
        *((_NOT_TEXT,) if is_malformed else ()),
        *((_NOT_WHOLE,) if index is not None and type(index) is not int else ()),
    )
    return CallPiece(
        _index(index),
        id if type(id) is str else "",
        kind,
        name if type(name) is str else "",
        text,
        type(written) is dict,
        _others(fields, _ENTRY),
        _others(inner, _INNER[key]),
        problems,
    )


def _index(value: object) -> int | None:
    if type(value) is str and len(value) < 10 and value.isascii() and value.isdigit():
        return int(value)
    if type(value) is float and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _others(fields: Fields, known: frozenset[str]) -> Fields | None:
    return {key: value for key, value in fields.items() if key not in known and value is not None} or None
