"""A JSON value as bytes of a stream, and as one line of it for readers of every kind.

Law: it is UTF-8 always. Half a surrogate pair is not text, and becomes U+FFFD, which stands for such.

Many clients break text into lines as Unicode does it, at U+2028 too, and then find half a value: Google's, Cohere's and
Ollama's SDKs among them. So what they would take for the end of a line is written as an escape.
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
    """The value in UTF-8, without a line end of any kind."""
    written = json_bytes(value)
    return written if written.isascii() else _escaped(written)


def _escaped(written: bytes) -> bytes:
    for mark, escape in _ESCAPES:
        written = written.replace(mark, escape)
    return written
