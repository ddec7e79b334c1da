"""Requests to providers over HTTP with aiohttp: what `direct_http.py` leaves to a library, proxies above all.

This is the one file that imports aiohttp; `http_transport.py` imports it when it is needed.

Law: that of `transport.py`. What a piece costs here is one await: no timer and no task of its own.
"""

from __future__ import annotations

import asyncio
import io
import os
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from typing import Final, NoReturn
from urllib.parse import urlsplit
from weakref import WeakSet

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_exceptions import LineTooLong
from aiohttp.tracing import Trace
from multidict import CIMultiDictProxy
from yarl import URL

from toolglot.conversation import FailureKind
from toolglot.errors import InputError
from toolglot.protocols.errors.failures import ProviderError
from toolglot.upstream.http.liveness import is_quiet
from toolglot.upstream.http.proxies import Proxies, shown
from toolglot.upstream.http.transport import (
    CHECK_NETWORK,
    CHECK_PROXY,
    CLOSED_KEPT,
    LARGE_HEAD,
    NOT_HTTP,
    REFUSED,
    UNKNOWN_HOST,
    HttpRequest,
    TimeLimits,
    failed,
    not_connected,
    read_whole,
    refuse_redirect,
    tls_failed,
)

_NO_ANSWER: Final = "closed the connection without an answer"
_LARGE: Final = 2**20
"""Bodies above this are written in steps: aiohttp would write one bytes object at once."""
_LONGEST_HEADER: Final = 32_768
_MOST_TIMEOUTS: Final = 100
_MOST_SESSIONS: Final = 10
"""Different times that connections are kept; beyond them, the shortest one is taken for all."""


class AiohttpTransport:
    """Pooled HTTP/1.1 connections with verified TLS.

    proxy: the address of one for every request; empty: none; None: HTTPS_PROXY, NO_PROXY and so on.
    tls: a context of one's own, for a private authority; the default one reads SSL_CERT_FILE too.
    """

    def __init__(
        self, *, proxy: str | None = None, tls: ssl.SSLContext | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        self._proxies = Proxies(proxy, os.environ if environ is None else environ)
        self._tls = tls
        self._sessions: dict[float, aiohttp.ClientSession] = {}
        """By the seconds that their connections are kept: aiohttp knows one number for all."""
        self._timeouts: dict[TimeLimits, aiohttp.ClientTimeout] = {}
        self._is_closed = False

    async def send(self, request: HttpRequest, limits: TimeLimits) -> AiohttpResponse:
        """The response, as soon as it begins.

        A kept connection that the server has closed by now is replaced before anything is sent, and never after that:
        the library itself repeats only what may be sent twice.
        """
        session = self._sessions.get(limits.keep_alive) or self._begin(limits.keep_alive)
        connected = _Connected()
        _CONNECTED.set(connected)
        proxy = None
        try:
            parts = urlsplit(request.url)
            proxy = self._proxies.between(parts.scheme, parts.hostname or "", parts.port)
            async with asyncio.timeout(limits.connect + limits.first_byte):
                response = await self._send_request(session, request, limits, proxy)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            _fail(request, limits, proxy, error, is_kept=connected.is_kept)
        return self._wrap(request, limits, response)

    async def close(self) -> None:
        self._is_closed = True
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()

    async def _send_request(
        self, session: aiohttp.ClientSession, request: HttpRequest, limits: TimeLimits, proxy: str | None
    ) -> aiohttp.ClientResponse:
        return await session.request(
            request.method,
            URL(request.url, encoded=True),
            data=(io.BytesIO(request.body) if len(request.body) > _LARGE else request.body) or None,
            headers=request.headers,
            allow_redirects=False,
            timeout=self._timeouts.get(limits) or self._timeout(limits),
            proxy=proxy,
        )

    def _wrap(self, request: HttpRequest, limits: TimeLimits, response: aiohttp.ClientResponse) -> AiohttpResponse:
        headers = _lowered(response.headers)
        try:
            refuse_redirect(request, response.status, headers)
        except ProviderError:
            response.close()
            raise
        connection = response.connection
        if connection is not None and connection.protocol is not None:
            connection.protocol.read_timeout = limits.idle
            connection.protocol.start_timeout()  # the timer that runs has the limit for the first byte
        return AiohttpResponse(request, limits, response, headers)

    def _timeout(self, limits: TimeLimits) -> aiohttp.ClientTimeout:
        timeout = aiohttp.ClientTimeout(
            total=None, connect=limits.connect, sock_connect=limits.connect, sock_read=limits.first_byte
        )
        if len(self._timeouts) < _MOST_TIMEOUTS:
            self._timeouts[limits] = timeout
        return timeout

    def _begin(self, keep_alive: float) -> aiohttp.ClientSession:
        """A session belongs to the event loop of the first request."""
        if self._is_closed:
            raise InputError("this transport is closed", path="transport")
        if len(self._sessions) >= _MOST_SESSIONS:
            return self._sessions[min(self._sessions)]
        session = aiohttp.ClientSession(
            connector=_Connector(limit=0, keepalive_timeout=keep_alive, ssl=True if self._tls is None else self._tls),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,  # it would also send what a .netrc has for the host
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
        )
        self._sessions[keep_alive] = session
        return session


class AiohttpResponse:
    """A response of aiohttp."""

    __slots__ = ("_limits", "_request", "_response", "headers", "status")

    def __init__(
        self, request: HttpRequest, limits: TimeLimits, response: aiohttp.ClientResponse, headers: dict[str, str]
    ) -> None:
        self.status: int = response.status
        self.headers: Mapping[str, str] = headers
        self._request = request
        self._limits = limits
        self._response = response

    async def pieces(self) -> AsyncIterator[bytes]:
        read = self._response.content.readany
        try:
            while piece := await read():
                yield piece
        except TimeoutError:
            self._response.close()
            raise failed(self._request, "timeout", f"was silent for {self._limits.idle:g} s") from None
        except (aiohttp.ClientError, OSError):
            self._response.close()
            raise failed(self._request, "server", "broke off in the middle of its answer") from None

    async def whole(self, max_bytes: int) -> bytes:
        return await read_whole(self._request, self, max_bytes)

    async def close(self) -> None:
        self._response.close()


# --- connections ------------------------------------------------------------------------------------


class _Connected:
    """What became of one request's connection."""

    __slots__ = ("is_kept",)

    def __init__(self) -> None:
        self.is_kept = False
        """It had served a request before."""


_CONNECTED: Final[ContextVar[_Connected]] = ContextVar("connected")


class _Connector(aiohttp.TCPConnector):
    """Hands out a kept connection only if its server has not closed it, and knows whether a connection is a kept one.

    (A trace would show it as well, at the cost of a tenth of the request's time.)
    """

    def __init__(self, *, limit: int, keepalive_timeout: float, ssl: bool | ssl.SSLContext) -> None:
        super().__init__(limit=limit, keepalive_timeout=keepalive_timeout, ssl=ssl)
        self._used: WeakSet[ResponseHandler] = WeakSet()

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        while True:  # each round takes one of the kept connections away
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            is_kept = protocol is not None and protocol in self._used
            if not is_kept or (connection.transport is not None and is_quiet(connection.transport)):
                break
            connection.close()
        if protocol is not None:
            _CONNECTED.get().is_kept = is_kept
            self._used.add(protocol)
        return connection


# --- what goes wrong --------------------------------------------------------------------------------


def _fail(request: HttpRequest, limits: TimeLimits, proxy: str | None, error: Exception, *, is_kept: bool) -> NoReturn:
    if isinstance(error, InputError):
        raise error
    if isinstance(error, ValueError) and not isinstance(error, OSError):
        raise InputError(
            f"a request to {request.recipient} cannot be sent: its address or one of its headers is not one",
            path="request",
        ) from None
    kind, reason = _reason(limits, proxy or "", error)
    if is_kept and reason == _NO_ANSWER:
        reason = CLOSED_KEPT
    raise failed(request, kind, reason) from None


def _reason(limits: TimeLimits, proxy: str, error: Exception) -> tuple[FailureKind, str]:
    """Why there is no response, without any part of the address."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "timeout", not_connected(limits)
    if isinstance(error, TimeoutError):
        return "timeout", f"sent nothing within {limits.first_byte:g} s"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return (
            "unreachable",
            f"cannot be reached: the proxy {shown(proxy)} answered {error.status}; check its user, password and rules",
        )
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return "unreachable", f"cannot be reached: there is no connection to the proxy {shown(proxy)}; {CHECK_PROXY}"
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError):
        return "unreachable", f"cannot be reached: {_why_not(error)}"
    if isinstance(error, aiohttp.ClientResponseError):
        return "server", LARGE_HEAD.format(_LONGEST_HEADER) if _is_large(error) else NOT_HTTP
    return "server", _NO_ANSWER


def _is_large(error: BaseException) -> bool:
    """Whether a line of the head was too long: what aiohttp raises for it is inside what it raises in the end."""
    cause: BaseException | None = error
    for _ in range(5):
        if cause is None or isinstance(cause, LineTooLong):
            return cause is not None
        cause = cause.__cause__ or cause.__context__
    return False


def _why_not(error: aiohttp.ClientError) -> str:
    """Why there is no connection, and what to check."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "") or "it cannot be verified"
        return f"its TLS certificate is not trusted: {why} (SSL_CERT_FILE names a private authority's certificate)"
    cause = getattr(error, "os_error", None)
    if isinstance(cause, socket.gaierror):
        return UNKNOWN_HOST
    if isinstance(cause, ssl.SSLError):
        return tls_failed(cause)
    # With several addresses of a host, the errors of all of them are in one message.
    if isinstance(cause, ConnectionRefusedError) or "Connect call failed" in str(cause):
        return REFUSED
    return f"{getattr(cause, 'strerror', None) or 'there is no connection'}; {CHECK_NETWORK}"


def _lowered(pairs: CIMultiDictProxy[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in pairs.items():
        lower = name.lower()
        headers[lower] = f"{headers[lower]}, {value}" if lower in headers else value
    return headers
