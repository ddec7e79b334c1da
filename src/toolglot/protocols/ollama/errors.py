"""Errors of the Ollama protocol, both ways: `{"error":"…"}`, in a stream as a line of its own."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Failure
from toolglot.protocols.errors.bodies import own_error
from toolglot.protocols.errors.failures import ErrorShape, ErrorSpelling
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.ollama.form import PROTOCOL


def _write(_failure: Failure, _spelling: ErrorSpelling, message: str) -> Fields:
    return {"error": message}


SHAPE = ErrorShape(
    PROTOCOL,
    own_error,
    _write,
    {
        "bad_request": ErrorSpelling(400),
        "auth": ErrorSpelling(401),
        "permission": ErrorSpelling(403),
        "billing": ErrorSpelling(402),
        "not_found": ErrorSpelling(404),
        "too_large": ErrorSpelling(413),
        "context_overflow": ErrorSpelling(400, phrase="prompt too long; exceeded max context length"),
        "rate_limit": ErrorSpelling(429),
        "overloaded": ErrorSpelling(503),
        "content_filter": ErrorSpelling(400),
        "timeout": ErrorSpelling(504),
        "unreachable": ErrorSpelling(502),
        "server": ErrorSpelling(500),
        "bad_output": ErrorSpelling(500),
    },
)

decode: Final = SHAPE.decode
encode: Final = SHAPE.encode
headers_of: Final = SHAPE.headers_of
