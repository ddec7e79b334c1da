"""The top level of a JSON body as bytes: fields are removed or replaced, and all others stay what the client wrote.

Law: the provider reads the model that was checked, and no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Raw

from toolglot.errors import InputError
from toolglot.gateway.http.requests import refusal
from toolglot.jsontext import DUPLICATE_KEY, duplicate_keys, parse
from toolglot.limits import Limits

_read_fields: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_encode: Final = msgspec.json.Encoder().encode
_MODEL: Final = "model"
_ESCAPED: Final = re.compile(rb"\\u00[46][45cdfCDF]")
"""An escape of a letter of `model`."""


def refuse_second_model(body: bytes, names: Iterable[str], limits: Limits) -> None:
    """Refuse a body that names its model twice: a provider may read the one that was not checked.

    Some providers ignore the case of names. Only a body whose bytes have the key more than once is parsed again.

    names: the fields of the body.
    """
    is_twice = sum([name.lower() == _MODEL for name in names]) > 1
    if not is_twice and (body.count(b'"model"') > 1 or (b"\\u00" in body and _ESCAPED.search(body) is not None)):
        is_twice = DUPLICATE_KEY in parse(body, limits=limits).repairs and _MODEL in duplicate_keys(
            body, limit=len(body)
        )
    if is_twice:
        message = "the body has the field `model` more than once, or in another case too; send it once"
        raise refusal("bad_request", message, 400)


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
