"""Errors of the Gemini protocol, both ways.

`{"error":{"code","message","status","details"}}`, sometimes as the one entry of an array. A blocked prompt and a
call that the model wrote wrongly come as answers of status 200 without content: they are failures too.
"""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Failure
from toolglot.protocols.errors.bodies import own_error
from toolglot.protocols.errors.failures import ErrorShape, ErrorSpelling
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.gemini.form import PROTOCOL

_TYPES: Final = "type.googleapis.com/google.rpc."
_UNUSABLE: Final = frozenset(
    {"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"}
)


def _in_band(body: Fields) -> object:
    error = own_error(body)
    if error:
        return error
    candidates = body.get("candidates")
    if isinstance(candidates, list) and candidates:
        return _unusable(candidates[0])
    feedback = body.get("promptFeedback") or body.get("prompt_feedback")
    blocked = (feedback.get("blockReason") or feedback.get("block_reason")) if isinstance(feedback, dict) else None
    if not isinstance(feedback, dict) or not isinstance(blocked, str):
        return None
    reason = feedback.get("blockReasonMessage") or f"The prompt was blocked: {blocked}"
    return {"message": reason, "code": blocked, "reason": "content_filter"}


def _unusable(candidate: object) -> object:
    """A candidate that holds nothing because what the model wrote was no valid call."""
    if not isinstance(candidate, dict):
        return None
    reason = candidate.get("finishReason") or candidate.get("finish_reason")
    content = candidate.get("content")
    if not isinstance(reason, str) or reason not in _UNUSABLE or (isinstance(content, dict) and content.get("parts")):
        return None
    message = candidate.get("finishMessage") or candidate.get("finish_message")
    return {"message": message or f"The model wrote an unusable answer: {reason}", "code": reason}


def _write(failure: Failure, spelling: ErrorSpelling, message: str) -> Fields:
    error: Fields = {"code": spelling.status, "message": message, "status": spelling.type}
    details: list[Fields] = []
    if spelling.code:
        details.append({"@type": f"{_TYPES}ErrorInfo", "reason": spelling.code, "domain": "toolglot"})
    if failure.param:
        violation = {"field": failure.param, "description": message}
        details.append({"@type": f"{_TYPES}BadRequest", "fieldViolations": [violation]})
    if failure.retry_after is not None:
        details.append({"@type": f"{_TYPES}RetryInfo", "retryDelay": f"{round(failure.retry_after, 3):.15g}s"})
    if details:
        error["details"] = details
    return {"error": error}


SHAPE = ErrorShape(
    PROTOCOL,
    _in_band,
    _write,
    {
        "bad_request": ErrorSpelling(400, "INVALID_ARGUMENT"),
        "auth": ErrorSpelling(401, "UNAUTHENTICATED"),
        "permission": ErrorSpelling(403, "PERMISSION_DENIED"),
        "billing": ErrorSpelling(400, "FAILED_PRECONDITION", "BILLING_DISABLED"),
        "not_found": ErrorSpelling(404, "NOT_FOUND"),
        "too_large": ErrorSpelling(413, "INVALID_ARGUMENT", "REQUEST_TOO_LARGE"),
        "context_overflow": ErrorSpelling(
            *(400, "INVALID_ARGUMENT", "CONTEXT_LENGTH_EXCEEDED"),
            "The input token count exceeds the maximum number of tokens allowed",
            "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window}).",
        ),
        "rate_limit": ErrorSpelling(429, "RESOURCE_EXHAUSTED"),
        "overloaded": ErrorSpelling(503, "UNAVAILABLE"),
        "content_filter": ErrorSpelling(400, "INVALID_ARGUMENT", "CONTENT_FILTER"),
        "timeout": ErrorSpelling(504, "DEADLINE_EXCEEDED"),
        "unreachable": ErrorSpelling(502, "INTERNAL", "UPSTREAM_UNREACHABLE"),
        "server": ErrorSpelling(500, "INTERNAL"),
        "bad_output": ErrorSpelling(500, "INTERNAL", "MODEL_OUTPUT_ERROR"),
    },
)

decode: Final = SHAPE.decode
encode: Final = SHAPE.encode
headers_of: Final = SHAPE.headers_of
