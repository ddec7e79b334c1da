"""The top level of a JSON body as bytes: fields are removed or replaced, and all others stay what the client wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw

from toolglot.errors import InputError

_read_fields: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_encode: Final = msgspec.json.Encoder().encode


def join_fields(fields: Mapping[str, bytes]) -> bytes:
    """An object of fields that are JSON already."""
    return b"{%b}" % b",".join([b"%b:%b" % (_encode(name), value) for name, value in fields.items()])


def replace_fields(body: bytes, fields: Mapping[str, bytes | None]) -> bytes:
    """A body, which is a valid object, with other fields; None: without that field."""
    try:
        read = _read_fields(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        message = "the body is not UTF-8 without a byte order mark, or has half of a surrogate pair"
        raise InputError(message, hint="write it as plain UTF-8") from None
    values = {name: bytes(value) for name, value in read.items() if name not in fields}
    return join_fields({**values, **{name: value for name, value in fields.items() if value is not None}})
