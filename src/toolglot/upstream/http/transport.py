"""The interface of a transport: it sends a request to a provider and returns its response.

    response = await transport.send(HttpRequest(url=…, headers=…, body=…), TimeLimits())
    try:
        async for piece in response.pieces(): …
    finally:
        await response.close()

Law: no redirect is followed, no cookie is kept, nothing is read before it is needed. Whatever goes wrong is a
`ProviderError` that names the host and the reason, and never a key, a path or a query. A response that is closed before
its end closes the connection at once, so that the provider stops working; one that was read to its end releases it.
A request that may have reached the server is not sent again, unless its method may be repeated (`upstream/retry.py`).

`http_transport.py` has the one over HTTP, `asgi_transport.py` one for an app in this process; a test can write its own.
"""

from __future__ import annotations

import asyncio
import math
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from toolglot.conversation import Failure, FailureKind
from toolglot.errors import InputError
from toolglot.protocols.errors.failures import REPLY_LIMIT, ProviderError

UNKNOWN_HOST: Final = "its host is not known; check its url and the network's DNS"
REFUSED: Final = "the connection was refused; check that it is running, and its url"
CHECK_NETWORK: Final = "check its url and the network"
CHECK_PROXY: Final = "check the proxy's address and that it is running"
"""Why there is no connection, and what to check, for every transport."""


NO_RESPONSE: Final = "closed the connection without a response"
BROKEN_OFF: Final = "closed the connection in the middle of its response"
NOT_HTTP: Final = "sent a response that is not HTTP"
LARGE_HEAD: Final = "sent headers of more than {} bytes, a fixed limit"
"""Why a response cannot be read, for every transport."""

CLOSED_KEPT: Final = (
    "closed an idle connection just as the request was sent; it may have taken the request, so it was not sent again"
    " (set retries to allow that, or a lower keep_alive_seconds to make it rarer)"
)
"""Why a request on a reused connection got no response, for every transport."""

TRAILING_SECONDS: Final = 1.0
MAX_TRAILING: Final = 64 * 1024
"""Seconds and bytes that a provider has, after the end of its reply, to end the response as well."""


class FixedHeaders(dict[str, str]):
    """Headers that many requests share and nothing changes, so that a transport can cache what it makes of them."""

    __slots__ = ("made",)

    def __init__(self, headers: Mapping[str, str]) -> None:
        super().__init__(headers)
        self.made: Any = None
        """What a transport has cached for them."""


class HttpRequest(Struct, frozen=True, kw_only=True):
    """A request as it is sent. Header names are lowercase."""

    url: str
    headers: dict[str, str] = {}
    body: bytes = b""
    method: str = "POST"
    name: str = ""
    """The name of the upstream, for messages."""

    @property
    def recipient(self) -> str:
        """The upstream, for messages: a name and a host, never more of the address."""
        host = host_of(self.url)
        return f"{self.name} ({host})" if self.name else host

    def __repr__(self) -> str:
        return f"HttpRequest({self.method} {host_of(self.url)}, {len(self.body)} bytes)"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("method", self.method), ("host", host_of(self.url))]


class TimeLimits(Struct, frozen=True):
    """Timeouts, in seconds."""

    connect: float = 10.0
    """For a connection, including TLS and proxy."""
    first_byte: float = 600.0
    """From there until the response begins."""
    idle: float = 300.0
    """Between two pieces of the response."""
    keep_alive: float = 4.0
    """How long an idle connection is used again. Shorter than servers wait: many close after 5."""

    def __post_init__(self) -> None:
        for name in ("connect", "first_byte", "idle", "keep_alive"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError("expected a number of seconds above 0", path=name)


DEFAULT_LIMITS: Final = TimeLimits()


class HttpResponse(Protocol):
    """A response. Read it once, with `pieces` or `whole`, and close it in every case."""

    status: int
    headers: Mapping[str, str]
    """By lowercase name; the values of a repeated header are joined by commas."""

    def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes: decompressed, none of it held back."""
        ...

    async def whole(self, max_bytes: int) -> bytes:
        """The body. If it is longer than `max_bytes`, that is an error and the connection is closed."""
        ...

    async def close(self) -> None:
        """Release the connection; close it if the response has not ended."""
        ...


class Transport(Protocol):
    """Sends requests to providers."""

    def send(self, request: HttpRequest, limits: TimeLimits) -> Coroutine[Any, Any, HttpResponse]:
        """The response, as soon as it begins. Usually an `async def`."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


def host_of(url: str) -> str:
    """The host of an address, with its port if it names one."""
    return urlsplit(url).netloc.rpartition("@")[2]


def provider_error(request: HttpRequest, kind: FailureKind, reason: str) -> ProviderError:
    """An error with the upstream and the reason."""
    return ProviderError(Failure(kind, f"{request.recipient} {reason}"))


def not_connected(limits: TimeLimits) -> str:
    """The reason if there is no connection in time."""
    return f"could not be connected to within {limits.connect:g} s; {CHECK_NETWORK}"


def connection_error(error: BaseException | None) -> str:
    """Why there is no connection and what to check, without any part of the address."""
    if isinstance(error, ssl.CertificateError):
        why = error.verify_message or "it cannot be verified"
        return f"its TLS certificate is not trusted: {why} (SSL_CERT_FILE names a private authority's certificate)"
    if isinstance(error, socket.gaierror):
        return UNKNOWN_HOST
    if isinstance(error, ssl.SSLError):
        return tls_failed(error)
    # With several addresses of a host, the errors of all of them are in one message.
    if isinstance(error, ConnectionRefusedError) or "Connect call failed" in str(error):
        return REFUSED
    return f"{getattr(error, 'strerror', None) or 'there is no connection'}; {CHECK_NETWORK}"


def join_headers(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers by lowercase name; the values of a repeated one are joined by commas."""
    headers: dict[str, str] = {}
    for name, value in pairs:
        lower = name.lower()
        headers[lower] = f"{headers[lower]}, {value}" if lower in headers else value
    return headers


def tls_failed(error: ssl.SSLError) -> str:
    """The reason if TLS fails."""
    return f"TLS failed: {error.reason or 'no handshake'}; check that its url begins with the right http:// or https://"


SWITCHING: Final = 101
SWITCHED: Final = "responded with status 101, a change of protocol that was not requested; check its url"


def refuse_redirect(request: HttpRequest, status: int, headers: Mapping[str, str]) -> None:
    """A 3xx is an error: a key is sent to its own host, and to no other. So is a change of protocol."""
    if status == SWITCHING:
        raise provider_error(request, "server", SWITCHED)
    if 300 <= status < 400:
        try:
            host = host_of(headers.get("location", ""))
        except ValueError:
            host = ""
        where = f" to {host[:100]}" if host else ""
        reason = f"responded with a redirect{where} (status {status}), which is not followed; check its url"
        raise provider_error(request, "server", reason)


async def read_whole(request: HttpRequest, response: HttpResponse, max_bytes: int) -> bytes:
    """The body of a response, for `HttpResponse.whole`."""
    size = 0
    pieces: list[bytes] = []
    async for piece in response.pieces():
        size += len(piece)
        if size > max_bytes:
            await response.close()
            reason = f"sent a response of more than {max_bytes} bytes"
            raise ProviderError(Failure("server", f"{request.recipient} {reason}", code=REPLY_LIMIT))
        pieces.append(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def trailing_pieces(pieces: AsyncIterator[bytes], read: Callable[[bytes], bytes] = bytes) -> AsyncIterator[bytes]:
    """Read on from the end of a reply to the end of the response, so that the connection can be used again.

    Yields what `read` makes of each piece, unless that is empty.
    It ends early, and without an error, if that takes too long, is too much or fails: the reply is complete.
    """
    end = asyncio.get_running_loop().time() + TRAILING_SECONDS
    size = 0
    while size < MAX_TRAILING:
        try:
            async with asyncio.timeout_at(end):
                piece = await anext(pieces, b"")
        except (TimeoutError, ProviderError):
            return
        if not piece:
            return
        size += len(piece)
        if data := read(piece):
            yield data
