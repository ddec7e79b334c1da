"""Errors of the Ollama protocol, both ways: `{"error":"…"}`, in a stream as a line of its own."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Failure
from toolglot.protocols.errors.bodies import own_error
from toolglot.protocols.errors.failures import Shape, Spelling
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.ollama.messages import PROTOCOL


def _write(_failure: Failure, _spelling: Spelling, message: str) -> Fields:
    return {"error": message}


SHAPE = Shape(
    PROTOCOL,
    own_error,
    _write,
    {
        "bad_request": Spelling(400),
        "auth": Spelling(401),
        "permission": Spelling(403),
        "billing": Spelling(402),
        "not_found": Spelling(404),
        "too_large": Spelling(413),
        "context_overflow": Spelling(400, said="the prompt exceeds the context length"),
        "rate_limit": Spelling(429),
        "overloaded": Spelling(503),
        "content_filter": Spelling(400),
        "timeout": Spelling(504),
        "unreachable": Spelling(502),
        "server": Spelling(500),
        "bad_output": Spelling(500),
    },
)

decode: Final = SHAPE.decode
encode: Final = SHAPE.encode
headers_of: Final = SHAPE.headers_of
