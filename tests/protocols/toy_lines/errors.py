"""Errors of the toy protocol: `{"error": "…"}`, every kind with a status of its own."""

from __future__ import annotations

from typing import Final, get_args

from toolglot.conversation import Failure, FailureKind
from toolglot.protocols.errors.bodies import own_error
from toolglot.protocols.errors.failures import ErrorShape, ErrorSpelling
from toolglot.protocols.fields.reading import Fields

_STATUS: Final[dict[str, int]] = {"rate_limit": 429, "auth": 401, "server": 500}


def _write(_failure: Failure, _spelling: ErrorSpelling, message: str) -> Fields:
    return {"error": message}


_SPELLINGS: Final[dict[FailureKind, ErrorSpelling]] = {
    kind: ErrorSpelling(_STATUS.get(kind, 400)) for kind in get_args(FailureKind)
}
SHAPE: Final = ErrorShape("toy_lines", own_error, _write, _SPELLINGS)

decode: Final = SHAPE.decode
encode: Final = SHAPE.encode
headers_of: Final = SHAPE.headers_of
