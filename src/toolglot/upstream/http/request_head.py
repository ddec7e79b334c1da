"""The address and the head of a request, as `direct_http.py` sends them.

Law: only plain requests, with an address and headers of printable ASCII. For any other the functions return None, and
`aiohttp_transport.py` sends it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from toolglot.upstream.http.transport import HttpRequest

_NAMES: Final = re.compile(r"(?:[A-Za-z0-9!#$%&'*+.^_`|~-]+,)*")
_HOST: Final = re.compile(r"[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]")
_UNUSUAL: Final = frozenset(
    {"content-length", "transfer-encoding", "connection", "expect", "upgrade", "te", "trailer", "host", "keep-alive"}
)
_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})


class RequestTarget(NamedTuple):
    """The server of a request."""

    host: str
    port: int
    is_secure: bool


@lru_cache(maxsize=256)
def plain_target(url: str) -> tuple[RequestTarget, str, str] | None:
    """The server of an address, the `host` header, and the path with the query; None: it is not a plain address."""
    if not (url.isascii() and url.isprintable()) or " " in url or "#" in url:
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return None
    named = parts.netloc.rpartition(":")[0] if port is not None else parts.netloc
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(named) or port == 0:
        return None
    is_secure = parts.scheme == "https"
    usual = 443 if is_secure else 80
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return RequestTarget(host, port or usual, is_secure), named if port in (None, usual) else parts.netloc, target


def head_of(request: HttpRequest, host: str, target: str) -> bytes | None:
    """The head of a request except for its length; None: it is not plain."""
    headers = request.headers
    text = "".join([*headers, *headers.values()])
    is_plain = text.isascii() and text.isprintable() and request.method in _METHODS and _UNUSUAL.isdisjoint(headers)
    if not is_plain or not _NAMES.fullmatch(",".join([*headers, ""])):
        return None
    lines = [f"{request.method} {target} HTTP/1.1", f"host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if "accept" not in headers:
        lines.append("accept: */*")
    if "accept-encoding" not in headers:
        lines.append("accept-encoding: gzip, deflate")
    return ("\r\n".join(lines) + "\r\n").encode()


def with_length(request: HttpRequest, head: bytes) -> bytes:
    """The complete head of a request."""
    if request.body or request.method != "GET":
        return b"%bcontent-length: %d\r\n\r\n" % (head, len(request.body))
    return head + b"\r\n"
