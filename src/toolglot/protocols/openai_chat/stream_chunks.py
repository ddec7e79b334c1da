"""Chunks of a Chat Completions stream: what the hot path reads typed, and the careful reading of all others.

Law: a chunk that the typed reading takes says nothing beside what its fields hold, and needs no further look. Deltas
and pieces of calls refuse fields that they do not know, and every chunk refuses values where there are none as a rule,
so that nothing is lost on the hot path; what is refused is read carefully.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from toolglot.jsontext import compact
from toolglot.protocols.fields.reading import Fields


class Called(Struct, gc=False, forbid_unknown_fields=True):
    """The inner object of a call of a function."""

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
    function: Called | None = None
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
    """A choice that holds nothing but more of the first reply: what is None here says nothing, or is not read typed."""

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
    """A piece of a call, whatever it was written like."""

    index: int | None = None
    id: str = ""
    kind: str = ""
    """The type that it names, or that its inner object is of."""
    name: str = ""
    text: str = ""
    is_object: bool = False
    """The arguments were an object, not text."""
    extra: Fields | None = None
    """Fields beside those above."""
    inner: Fields | None = None
    """The same of the inner object."""
    oddities: tuple[str, ...] = ()
    is_old: bool = False
    """It came in the field of the one call that a message had before there were tools: it has no id."""


decode_chunk: Final = msgspec.json.Decoder(Chunk).decode

_ENTRY: Final = frozenset({"index", "id", "type", "function", "custom"})
_INNER: Final = {"function": frozenset({"name", "arguments"}), "custom": frozenset({"name", "input"})}
_NOT_TEXT: Final = "an id or a name of a call is not text; it is left out"
_NOT_WHOLE: Final = "the index of a call is not a whole number"


def piece_of(entry: CallEntry) -> CallPiece:
    """An entry that the typed reading took."""
    function, custom = entry.function, entry.custom
    if function is not None:
        kind, name, text = entry.type or "", function.name, function.arguments
    elif custom is not None:
        kind, name, text = "custom", custom.name, custom.input
    else:
        kind, name, text = entry.type or "", None, None
    oddities = ("a call has an empty id or name",) if entry.id == "" or name == "" else ()
    return CallPiece(entry.index, entry.id or "", kind, name or "", text or "", oddities=oddities)


def read_piece(fields: Fields) -> CallPiece:
    """Any other entry. What has another type than it should is what it can be, or nothing."""
    key = "custom" if type(fields.get("custom")) is dict and type(fields.get("function")) is not dict else "function"
    inner: Any = fields.get(key)
    inner = inner if type(inner) is dict else {}
    kind: Any = fields.get("type")
    kind = kind if type(kind) is str and kind else "custom" if key == "custom" else ""
    id, name = fields.get("id"), inner.get("name")
    written = inner.get("arguments" if key == "function" else "input")
    text = written if type(written) is str else "" if written is None else compact(written)
    is_odd = any(value is not None and type(value) is not str for value in (id, name))
    index = fields.get("index")
    oddities = (
        *((_NOT_TEXT,) if is_odd else ()),
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
        oddities,
    )


def _index(value: object) -> int | None:
    if type(value) is str and len(value) < 10 and value.isascii() and value.isdigit():
        return int(value)
    if type(value) is float and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _others(fields: Fields, known: frozenset[str]) -> Fields | None:
    return {key: value for key, value in fields.items() if key not in known and value is not None} or None
