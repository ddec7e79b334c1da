"""Errors of the Chat Completions protocol and of the many servers that speak it, both ways.

OpenAI's own is `{"error":{"message","type","param","code"}}`; in a stream a chunk has it. Others write a flat
object (Mistral, vLLM), put it beside or into the choices of an answer of status 200 (OpenRouter), or have a status
of their own inside (`base_resp` of MiniMax, `success` of GLM).
"""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Failure, FailureKind
from toolglot.protocols.errors.bodies import own_error
from toolglot.protocols.errors.failures import ErrorShape, ErrorSpelling
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.openai_chat.form import PROTOCOL

_MINIMAX: Final = {
    1001: "timeout",
    1002: "rate_limit_exceeded",
    1004: "invalid_api_key",
    1008: "insufficient_balance",
    1026: "content_filter",
    1027: "content_filter",
    1039: "context_length_exceeded",
    1041: "rate_limit_exceeded",
    2013: "invalid_request_error",
    2045: "rate_limit_exceeded",
    2049: "invalid_api_key",
    2056: "usage_limit_reached",
}
"""The numbers of `base_resp.status_code`, which mean other things elsewhere."""


def _in_band(body: Fields) -> object:
    error = own_error(body) or _in_choice(body)
    if error:
        return error
    if body.get("object") == "error" or body.get("success") is False:
        return body
    inner = body.get("base_resp")
    number = inner.get("status_code") if isinstance(inner, dict) else 0
    if not isinstance(inner, dict) or number in (0, None):
        return None
    return {**inner, "code": str(number), "type": _MINIMAX.get(number, "")} if type(number) is int else inner


def _in_choice(body: Fields) -> object:
    """The error of a choice that says that it ended in one."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first.get("error") if isinstance(first, dict) else None


_OWN_CODES: Final = frozenset({"model_not_found"})
"""Codes of OpenAI's own that say more than the kind of a failure does: clients read them."""


def write(failure: Failure, spelling: ErrorSpelling, message: str) -> Fields:
    return {
        "error": {
            "message": message,
            "type": spelling.type,
            "param": failure.param or None,
            "code": spelling.code or (failure.code if failure.code in _OWN_CODES else None),
        }
    }


SPELLINGS: Final[dict[FailureKind, ErrorSpelling]] = {
    "bad_request": ErrorSpelling(400, "invalid_request_error"),
    "auth": ErrorSpelling(401, "invalid_request_error", "invalid_api_key"),
    "permission": ErrorSpelling(403, "permission_error", "permission_denied"),
    "billing": ErrorSpelling(429, "insufficient_quota", "insufficient_quota"),
    "not_found": ErrorSpelling(404, "invalid_request_error"),
    "too_large": ErrorSpelling(413, "invalid_request_error", "request_too_large"),
    "context_overflow": ErrorSpelling(
        *(400, "invalid_request_error", "context_length_exceeded", "This exceeds the model's maximum context length"),
        "This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. "
        "Please reduce the length of the messages.",
    ),
    "rate_limit": ErrorSpelling(429, "rate_limit_error", "rate_limit_exceeded"),
    "overloaded": ErrorSpelling(503, "server_error", "server_is_overloaded"),
    "content_filter": ErrorSpelling(400, "invalid_request_error", "content_filter"),
    "timeout": ErrorSpelling(504, "server_error", "timeout"),
    "unreachable": ErrorSpelling(502, "server_error", "upstream_unreachable"),
    "server": ErrorSpelling(500, "server_error"),
    "bad_output": ErrorSpelling(500, "server_error", "model_output_error"),
}

SHAPE = ErrorShape(PROTOCOL, _in_band, write, SPELLINGS)

decode: Final = SHAPE.decode
encode: Final = SHAPE.encode
headers_of: Final = SHAPE.headers_of
