"""The fields of a `multipart/form-data` body, read strictly.

Law: what is read here is what every server reads. A body that two servers could read differently (a name that is
written twice, or in an extended form; lines that end in LF; something before the first boundary) is an error. Files are
not copied.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from toolglot.gateway.http.requests import GatewayRefusal, refusal

MAX_PARTS: Final = 1000
MAX_HEAD_BYTES: Final = 8 * 1024
MAX_VALUE_BYTES: Final = 64 * 1024
"""Of a field that is not a file."""

_BOUNDARY: Final = re.compile(
    r"""multipart/form-data\s{0,8};\s{0,8}boundary=(?:"([^"\\]{1,70})"|([^\s;"\\]{1,70}))\s{0,8}""", re.IGNORECASE
)
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9-]{1,100}")
_DISPOSITION: Final = re.compile(
    r"""form-data\s{0,8};\s{0,8}name="?(?P<name>[^"\\;\s=]{1,200})"?"""
    r"""(?P<file>\s{0,8};\s{0,8}filename="[^"]*")?(?:\s{0,8};\s{0,8}filename\*=[^;"]*)?""",
    re.IGNORECASE,
)
_PLAIN: Final = frozenset({"", "7bit", "8bit", "binary"})


class FormField(NamedTuple):
    """A part of a form."""

    name: str
    value: memoryview
    is_file: bool


def is_form(content_type: str) -> bool:
    return content_type.strip().lower().startswith("multipart/")


def read_form(content_type: str, body: bytes) -> list[FormField]:
    """All parts of a form, in order."""
    found = _BOUNDARY.fullmatch(content_type.strip())
    if found is None:
        raise _malformed("its content-type is not multipart/form-data with one boundary")
    mark = b"--" + (found[1] or found[2]).encode("latin-1", "replace")
    if not body.startswith(mark):
        raise _malformed("it does not begin with its boundary")
    view = memoryview(body)
    fields: list[FormField] = []
    start = len(mark)
    while not body.startswith(b"--", start):
        if not body.startswith(b"\r\n", start):
            raise _malformed("a boundary is not followed by CRLF")
        if len(fields) >= MAX_PARTS:
            raise _malformed(f"it has more than {MAX_PARTS} parts")
        head_end = body.find(b"\r\n\r\n", start, start + MAX_HEAD_BYTES)
        if head_end < 0:
            raise _malformed("the head of a part does not end, or is too long")
        end = body.find(b"\r\n" + mark, head_end + 2)
        if end < 0:
            raise _malformed("its last boundary is missing")
        value = view[head_end + 4 : end] if end > head_end + 4 else view[:0]
        fields.append(_read_part(body[start + 2 : head_end], value))
        start = end + 2 + len(mark)
    if body[start + 2 :].strip(b"\r\n"):
        raise _malformed("something follows its last boundary")
    return fields


def _read_part(head: bytes, value: memoryview) -> FormField:
    headers: dict[str, str] = {}
    for line in head.decode("utf-8", "replace").split("\r\n"):
        name, colon, words = line.partition(":")
        is_malformed = not colon or "\x00" in words or _HEADER_NAME.fullmatch(name) is None
        if is_malformed or name.lower() in headers:
            raise _malformed("a header of a part is malformed, or there twice")
        headers[name.lower()] = words.strip(" \t")
    named = _DISPOSITION.fullmatch(headers.get("content-disposition", ""))
    if named is None:
        raise _malformed("the content-disposition of a part is malformed")
    if headers.get("content-transfer-encoding", "").lower() not in _PLAIN:
        raise _malformed("a part has a content-transfer-encoding")
    is_file = "filename" in headers["content-disposition"].lower()
    if not is_file and len(value) > MAX_VALUE_BYTES:
        raise _malformed(f"a field is longer than {MAX_VALUE_BYTES} bytes")
    return FormField(named["name"], value, is_file)


def _malformed(why: str) -> GatewayRefusal:
    return refusal("bad_request", f"cannot read the form data of the request: {why}", 400)
