"""Errors of the Cohere v2 protocol, both ways.

`{"message","id"}`. A reply has an object as its `message`, an error a string. A stream ends in error with a
`message-end` event that has an `error`.
"""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Failure
from toolglot.protocols.cohere.form import PROTOCOL
from toolglot.protocols.errors.bodies import own_error
from toolglot.protocols.errors.failures import STATUSES, ErrorShape, ErrorSpelling
from toolglot.protocols.fields.reading import Fields


def _in_band(body: Fields) -> object:
    delta = body.get("delta")
    error = own_error(body) or (own_error(delta) if isinstance(delta, dict) else None)
    return error or (_with_id(body) if isinstance(body.get("message"), str) else None)


def _with_id(body: Fields) -> Fields:
    return {**body, "request_id": body.get("id")}


def _write(failure: Failure, _spelling: ErrorSpelling, message: str) -> Fields:
    return {"message": message, "id": failure.request_id} if failure.request_id else {"message": message}


_COUNTED: Final = "too many tokens: total number of tokens in the prompt cannot exceed {window} - received {tokens}."

SHAPE = ErrorShape(
    PROTOCOL,
    _in_band,
    _write,
    {**STATUSES, "context_overflow": ErrorSpelling(400, phrase="too many tokens", counted=_COUNTED)},
)

decode: Final = SHAPE.decode
encode: Final = SHAPE.encode
headers_of: Final = SHAPE.headers_of
