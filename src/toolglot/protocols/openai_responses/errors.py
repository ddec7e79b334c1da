"""Errors of the Responses protocol, both ways.

The body of an error status is that of Chat Completions. In an answer of status 200 a response whose status is
`failed` holds it; in a stream, the event `response.failed` holds that response, and an event `error` is it.
"""

from __future__ import annotations

from typing import Final

from toolglot.protocols.errors.bodies import own_error
from toolglot.protocols.errors.failures import ErrorShape, ErrorSpelling
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.openai_chat.errors import SPELLINGS, write
from toolglot.protocols.openai_responses.form import PROTOCOL


def _in_band(body: Fields) -> object:
    response = body.get("response") if body.get("type") == "response.failed" else body
    held = response if isinstance(response, dict) else {}
    error = own_error(held) or own_error(body)
    if error:
        return error
    failed = body.get("type") in ("error", "response.failed") or body.get("status") == "failed"
    return body if failed else None


SHAPE = ErrorShape(
    PROTOCOL,
    _in_band,
    write,
    {
        **SPELLINGS,
        "context_overflow": ErrorSpelling(
            400,
            "invalid_request_error",
            "context_length_exceeded",
            "Your input exceeds the context window of this model",
        ),
    },
)

decode: Final = SHAPE.decode
encode: Final = SHAPE.encode
headers_of: Final = SHAPE.headers_of
