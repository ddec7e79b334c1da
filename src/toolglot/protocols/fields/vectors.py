"""Vectors of embeddings on the wire: arrays of numbers, or the base64 of 32-bit floats (little-endian)."""

from __future__ import annotations

import binascii
import math
import struct
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import msgspec

from toolglot.conversation.embeddings import EmbeddingInput
from toolglot.errors import InputError
from toolglot.protocols.fields.reading import Fields, type_error

T = TypeVar("T")
_FLOAT_BYTES = 4
NOT_FINITE: Final = "a vector has a number that is not finite"


def base64_of(vector: Sequence[float]) -> str:
    """A vector as base64."""
    try:
        packed = struct.pack(f"<{len(vector)}f", *vector)
    except OverflowError:
        raise InputError("a vector has a number that no 32-bit float can hold") from None
    return binascii.b2a_base64(packed, newline=False).decode()


def vector_of(written: list[float] | str, path: str) -> list[float]:
    """A vector, however it is written."""
    if isinstance(written, list):
        return written
    try:
        packed = binascii.a2b_base64(written, strict_mode=True)
    except (ValueError, binascii.Error):
        raise InputError("expected the base64 of floats", path=path) from None
    if len(packed) % _FLOAT_BYTES:
        raise InputError("expected the base64 of 32-bit floats: the number of bytes is odd", path=path)
    vector = list(struct.unpack(f"<{len(packed) // _FLOAT_BYTES}f", packed))
    if not all(map(math.isfinite, vector)):
        raise InputError(NOT_FINITE, path=path)
    return vector


def read_reply(data: bytes, form: type[T]) -> T:
    """The reply of a provider, checked and decoded in one step."""
    try:
        return msgspec.json.decode(data, type=form)
    except (ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InputError(f"the reply is not one with embeddings: {error}"[:300]) from None


def read_inputs(fields: Fields, key: str) -> tuple[tuple[EmbeddingInput, ...], bool]:
    """The inputs of a request, and whether they are a list: one text, or a list of texts or of lists of token ids."""
    value: Any = fields.get(key)
    if type(value) is str:
        return (value,), False
    if type(value) is not list:
        raise type_error("a string or an array", value, f".{key}")
    if not value:
        raise InputError("expected at least one input", path=f".{key}", hint="send the texts to embed")
    if _is_tokens(value):
        return (tuple(value),), False
    for index, item in enumerate(value):
        if type(item) is not str and not _is_tokens(item):
            raise type_error("a string, or an array of token ids", item, f".{key}[{index}]")
    return tuple([item if type(item) is str else tuple(item) for item in value]), True


def _is_tokens(value: Any) -> bool:
    return type(value) is list and bool(value) and all(type(token) is int for token in value)


def texts_of(inputs: Sequence[EmbeddingInput]) -> list[str]:
    """Inputs for a protocol that has texts only: others were refused before."""
    return [item for item in inputs if isinstance(item, str)]
