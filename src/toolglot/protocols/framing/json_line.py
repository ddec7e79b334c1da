"""Encodes a JSON value for a stream: as UTF-8, or as one line that every reader takes for one line.

Law: the result is valid UTF-8. A lone surrogate becomes U+FFFD, the replacement character.

Many clients, such as the SDKs of Google, Cohere and Ollama, split lines as Unicode does, also at U+2028, and would then
read half a value. So all such characters are escaped.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from toolglot.jsontext import compact, fix_surrogates

_encode: Final = msgspec.json.Encoder().encode

_ESCAPES: Final = ((b"\xc2\x85", b"\\u0085"), (b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))


def json_bytes(value: Any) -> bytes:
    """The value in UTF-8."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return fix_surrogates(compact(value)).encode()


def json_line(value: Any) -> bytes:
    """The value in UTF-8, without line ends of any kind."""
    written = json_bytes(value)
    return written if written.isascii() else _escape_line_ends(written)


def _escape_line_ends(written: bytes) -> bytes:
    for mark, escape in _ESCAPES:
        written = written.replace(mark, escape)
    return written
