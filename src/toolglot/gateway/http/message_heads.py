"""The heads of HTTP/1.1 messages: reading that of a request, and writing that of a response.

Law: no header of a response has a character that a header cannot have.
"""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

import httptools

from toolglot.gateway.http.requests import Headers

MAX_NAMES: Final = 256
MAX_NAME_LENGTH: Final = 40
"""Names of headers that are cached: how many, and bytes of each."""
CLOSE: Final = "connection: close\r\n"
COUNTED_ONCE: Final = frozenset({"host", "transfer-encoding"})
"""Headers that must not be repeated."""
_NOT_HTTP: Final = "Invalid HTTP request received."

known_names: Final[dict[bytes, str]] = {}
"""Names of headers as they came, and in lowercase. Most clients send the same ones."""


def lower_name(name: bytes) -> str:
    lower = name.decode("latin-1").lower()
    if len(known_names) < MAX_NAMES and len(name) <= MAX_NAME_LENGTH and lower not in COUNTED_ONCE:
        known_names[name] = lower
    return lower


def parse_url(url: bytes) -> tuple[str, str, str]:
    """The path of a URL, the same as it came, and the query."""
    parsed = httptools.parse_url(url)
    raw = parsed.path.decode("ascii")
    return unquote(raw) if "%" in raw else raw, raw, (parsed.query or b"").decode("latin-1")


@lru_cache(maxsize=256)
def parse_url_cached(url: bytes) -> tuple[str, str, str]:
    return parse_url(url)


def is_encoded(codings: str) -> bool:
    """Whether a body has an encoding besides `chunked`. That `chunked` is the last one is checked by the parser."""
    names = [name.strip().lower() for name in codings.split(",")]
    return len(names) > 1 and names[-1] == "chunked"


@lru_cache(maxsize=16)
def refusal_bytes(status: int) -> bytes:
    """The response to a request that cannot be read."""
    text = _NOT_HTTP if status == HTTPStatus.BAD_REQUEST else f"{HTTPStatus(status).phrase}."
    head = f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(text)}\r\n{CLOSE}\r\n"
    return _status_line(status) + f"{head}{text}".encode()


@lru_cache(maxsize=1000)
def _status_line(status: int) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()


_last_default: tuple[list[tuple[bytes, bytes]], bytes] = ([], b"")


def _default_headers(headers: list[tuple[bytes, bytes]]) -> bytes:
    """The headers that the server adds to every response: the date. There is a new list each second."""
    global _last_default  # noqa: PLW0603 - that of this second
    known, data = _last_default
    if known is not headers:
        data = b"".join([b"%b: %b\r\n" % pair for pair in headers])
        _last_default = (headers, data)
    return data


def _printable(value: str) -> str:
    """The value without characters that a header cannot have."""
    return "".join([char if " " <= char <= "~" else "?" for char in value])


def response_head(status: int, default: list[tuple[bytes, bytes]], own: str, headers: Headers) -> bytes:
    """The head of a response. `own` are lines of the connection itself."""
    lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
    if not (lines.isascii() and lines.count("\r") == len(headers) and lines.replace("\r\n", "").isprintable()):
        lines = "".join([f"{name}: {_printable(value)}\r\n" for name, value in headers.items()])
    return b"%b%b%b\r\n" % (_status_line(status), _default_headers(default), (own + lines).encode())
