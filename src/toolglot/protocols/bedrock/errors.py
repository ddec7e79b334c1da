"""Errors of the Bedrock Converse protocol, both ways.

The body is `{"message"}`; the exception is named by the header `x-amzn-errortype`, or by `__type` in the body,
which AWS clients read as well. In a stream an exception is an event of its name: `{"throttlingException":{…}}`.
"""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Failure
from toolglot.protocols.bedrock.form import PROTOCOL
from toolglot.protocols.errors.failures import ErrorShape, ErrorSpelling
from toolglot.protocols.fields.reading import Fields


def _in_band(body: Fields) -> object:
    if "__type" in body:
        return body
    for name, inner in body.items():
        if isinstance(name, str) and name.endswith("Exception") and isinstance(inner, dict):
            return {**inner, "__type": name[:1].upper() + name[1:]}
    return None


def _write(_failure: Failure, spelling: ErrorSpelling, message: str) -> Fields:
    return {"__type": spelling.type, "message": message}


SHAPE = ErrorShape(
    PROTOCOL,
    _in_band,
    _write,
    {
        "bad_request": ErrorSpelling(400, "ValidationException"),
        "auth": ErrorSpelling(403, "UnrecognizedClientException"),
        "permission": ErrorSpelling(403, "AccessDeniedException"),
        "billing": ErrorSpelling(403, "AccessDeniedException", phrase="A valid payment instrument must be provided"),
        "not_found": ErrorSpelling(404, "ResourceNotFoundException"),
        "too_large": ErrorSpelling(413, "RequestEntityTooLargeException"),
        "context_overflow": ErrorSpelling(400, "ValidationException", phrase="Input is too long for requested model"),
        "rate_limit": ErrorSpelling(429, "ThrottlingException"),
        "overloaded": ErrorSpelling(503, "ServiceUnavailableException"),
        "content_filter": ErrorSpelling(400, "ValidationException"),
        "timeout": ErrorSpelling(408, "ModelTimeoutException"),
        "unreachable": ErrorSpelling(502, "InternalServerException"),
        "server": ErrorSpelling(500, "InternalServerException"),
        "bad_output": ErrorSpelling(424, "ModelErrorException"),
    },
    "x-amzn-requestid",
    names_exception=True,
)

decode: Final = SHAPE.decode
encode: Final = SHAPE.encode
headers_of: Final = SHAPE.headers_of
