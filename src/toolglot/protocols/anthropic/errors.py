"""Errors of the Anthropic Messages protocol, both ways.

`{"type":"error","error":{"type","message","details"?},"request_id"}`, also as the data of an `error` event.
"""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Failure
from toolglot.protocols.anthropic.form import PROTOCOL
from toolglot.protocols.errors.bodies import own_error
from toolglot.protocols.errors.failures import ErrorShape, ErrorSpelling
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.fields.stored_history import UNSUPPORTED_THREAD


def _in_band(body: Fields) -> object:
    return own_error(body) or (body if body.get("type") == "error" else None)


def _write(failure: Failure, spelling: ErrorSpelling, message: str) -> Fields:
    body: Fields = {"type": "error", "error": {"type": spelling.type, "message": message}}
    if failure.code == UNSUPPORTED_THREAD:
        body["error"]["details"] = {"error_code": UNSUPPORTED_THREAD, "unsupported": ["thread"]}
    if failure.request_id:
        body["request_id"] = failure.request_id
    return body


SHAPE = ErrorShape(
    PROTOCOL,
    _in_band,
    _write,
    {
        "bad_request": ErrorSpelling(400, "invalid_request_error"),
        "auth": ErrorSpelling(401, "authentication_error"),
        "permission": ErrorSpelling(403, "permission_error"),
        "billing": ErrorSpelling(402, "billing_error", phrase="Your credit balance is too low"),
        "not_found": ErrorSpelling(404, "not_found_error"),
        "too_large": ErrorSpelling(413, "request_too_large"),
        "context_overflow": ErrorSpelling(
            *(400, "invalid_request_error", "", "prompt is too long"),
            "prompt is too long: {tokens} tokens > {window} maximum",
            "input length and `max_tokens` exceed context limit: {input} + {reply} > {window}, decrease input length "
            "or `max_tokens` and try again",
        ),
        "rate_limit": ErrorSpelling(429, "rate_limit_error"),
        "overloaded": ErrorSpelling(529, "overloaded_error"),
        "content_filter": ErrorSpelling(400, "invalid_request_error", phrase="Blocked by content filtering policy"),
        "timeout": ErrorSpelling(504, "timeout_error"),
        "unreachable": ErrorSpelling(502, "api_error"),
        "server": ErrorSpelling(500, "api_error"),
        "bad_output": ErrorSpelling(500, "api_error"),
    },
    "request-id",
)

decode: Final = SHAPE.decode
encode: Final = SHAPE.encode
headers_of: Final = SHAPE.headers_of
