"""Errors of the Ollama protocol, both ways: `{"error":"…"}`, in a stream as a line of its own."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Failure
from toolglot.protocols.errors.bodies import own_error
from toolglot.protocols.errors.failures import STATUSES, ErrorShape, ErrorSpelling
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.ollama.form import PROTOCOL


def _write(_failure: Failure, _spelling: ErrorSpelling, message: str) -> Fields:
    return {"error": message}


SHAPE = ErrorShape(
    PROTOCOL,
    own_error,
    _write,
    {**STATUSES, "context_overflow": ErrorSpelling(400, phrase="prompt too long; exceeded max context length")},
)

decode: Final = SHAPE.decode
encode: Final = SHAPE.encode
headers_of: Final = SHAPE.headers_of
