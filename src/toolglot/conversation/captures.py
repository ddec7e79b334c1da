"""Captures: requests with what became of them, one to a line of JSONL.

    {"toolglot_capture": 1, "id": "tg_…", "protocol": "anthropic", "request": "{\\"model\\": …", "rendered": "{…", …}

docs/captures.md describes the fields. The gateway writes captures, and the command line reads the requests in them.

Law: pure. A line that is not a capture is returned as it is.
"""

from __future__ import annotations

from typing import Final

import msgspec

from toolglot.errors import InputError

FIELD: Final = "toolglot_capture"
VERSION: Final = 1
_START: Final = f'{{"{FIELD}":'.encode()


class _CapturedRequest(msgspec.Struct):
    """The fields of a capture that hold its request."""

    toolglot_capture: int
    request: str | None = None
    protocol: str = ""


def captured_request(line: bytes, where: str = "") -> bytes:
    """The client's request in a capture; a line that is not a capture as it is.

    where: the file and line, for errors.
    """
    return read_captured(line, where)[0]


def read_captured(line: bytes, where: str = "") -> tuple[bytes, str]:
    """The same, and the protocol of the request; empty: it is not known.

    where: the file and line, for errors.
    """
    if not line.startswith(_START):
        return line, ""
    try:
        found = msgspec.json.decode(line, type=_CapturedRequest)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not a capture: {error}", path=where, hint="docs/captures.md describes the form") from None
    if found.toolglot_capture != VERSION:
        message = f"a capture of version {found.toolglot_capture}, expected {VERSION}"
        raise InputError(message, path=where, hint="use the version of toolglot that wrote it")
    if not found.request:
        hint = 'set keep = "bodies" in [inspector] of the gateway that writes it'
        raise InputError("the capture has no bodies", path=where, hint=hint)
    return found.request.encode() + b"\n", found.protocol
