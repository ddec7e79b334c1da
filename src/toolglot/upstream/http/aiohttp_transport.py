"""Requests to providers over HTTP with aiohttp: those through a proxy, and others that `direct_http.py` does not send.

This is the one file that imports aiohttp; `http_transport.py` imports it when it is needed.

Law: that of `transport.py`. A piece costs one await here: no timer and no task of its own.
"""

from __future__ import annotations

import asyncio
import io
import os
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
from yarl import URL

from toolglot.conversation import FailureKind
from toolglot.errors import InputError
from toolglot.protocols.errors.failures import ProviderError
from toolglot.upstream.http.liveness import is_quiet
from toolglot.upstream.http.proxies import Proxies, host_and_port
from toolglot.upstream.http.transport import (
    BROKEN_OFF,
    CHECK_PROXY,
    CLOSED_KEPT,
    LARGE_HEAD,
    NO_RESPONSE,
    NOT_HTTP,
    HttpRequest,
    TimeLimits,
    connection_error,
    join_headers,
    not_connected,
    provider_error,
    read_whole,
    refuse_redirect,
)

_LARGE: Final = 2**20
"""Bodies above this are written in steps: aiohttp would write one bytes object at once."""
_MAX_HEADER_BYTES: Final = 32_768
_MAX_TIMEOUTS: Final = 100
_MAX_SESSIONS: Final = 10
"""Different values of `keep_alive`; further ones use the session with the shortest."""


class AiohttpTransport:
    """Pooled HTTP/1.1 connections with verified TLS.

    proxy: the address of one for every request; empty: none; None: HTTPS_PROXY, NO_PROXY and so on.
    tls: your own context, for a private authority. The default one reads SSL_CERT_FILE too.
    """

    def __init__(
        self, *, proxy: str | None = None, tls: ssl.SSLContext | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        self._proxies = Proxies(proxy, os.environ if environ is None else environ)
        self._tls = tls
        self._sessions: dict[float, aiohttp.ClientSession] = {}
        """By `keep_alive`: aiohttp has one number for a session."""
        self._timeouts: dict[TimeLimits, aiohttp.ClientTimeout] = {}
        self._is_closed = False

    async def send(self, request: HttpRequest, limits: TimeLimits) -> AiohttpResponse:
        """The response, as soon as it begins.

        An idle connection that the server has closed is replaced before anything is sent, and never after that:
        aiohttp itself repeats only what may be sent twice.
        """
        session = self._sessions.get(limits.keep_alive) or self._open_session(limits.keep_alive)
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
        headers = join_headers(response.headers.items())
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
        if len(self._timeouts) < _MAX_TIMEOUTS:
            self._timeouts[limits] = timeout
        return timeout

    def _open_session(self, keep_alive: float) -> aiohttp.ClientSession:
        """A session belongs to the event loop of the first request."""
        if self._is_closed:
            raise InputError("this transport is closed", path="transport")
        if len(self._sessions) >= _MAX_SESSIONS:
            return self._sessions[min(self._sessions)]
        session = aiohttp.ClientSession(
            connector=_Connector(limit=0, keepalive_timeout=keep_alive, ssl=True if self._tls is None else self._tls),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,  # it would also send what a .netrc has for the host
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
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
            raise provider_error(self._request, "timeout", f"was silent for {self._limits.idle:g} s") from None
        except (aiohttp.ClientError, OSError):
            self._response.close()
            raise provider_error(self._request, "server", BROKEN_OFF) from None

    async def whole(self, max_bytes: int) -> bytes:
        return await read_whole(self._request, self, max_bytes)

    async def close(self) -> None:
        self._response.close()


# --- connections ------------------------------------------------------------------------------------


class _Connected:
    """Whether the connection of a request is a reused one."""

    __slots__ = ("is_kept",)

    def __init__(self) -> None:
        self.is_kept = False
        """It had served a request before."""


_CONNECTED: Final[ContextVar[_Connected]] = ContextVar("connected")


class _Connector(aiohttp.TCPConnector):
    """Reuses a connection only if its server has not closed it, and notes whether a connection is a reused one.

    (A trace would show that as well, and take a tenth of the request's time.)
    """

    def __init__(self, *, limit: int, keepalive_timeout: float, ssl: bool | ssl.SSLContext) -> None:
        super().__init__(limit=limit, keepalive_timeout=keepalive_timeout, ssl=ssl)
        self._used: WeakSet[ResponseHandler] = WeakSet()

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        while True:  # each round removes one of the idle connections
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


# --- errors -----------------------------------------------------------------------------------------


def _fail(request: HttpRequest, limits: TimeLimits, proxy: str | None, error: Exception, *, is_kept: bool) -> NoReturn:
    if isinstance(error, InputError):
        raise error
    if isinstance(error, ValueError) and not isinstance(error, OSError):
        raise InputError(
            f"a request to {request.recipient} cannot be sent: its address or a header is not valid HTTP",
            path="request",
        ) from None
    kind, reason = _reason(limits, proxy or "", error)
    if is_kept and reason == NO_RESPONSE:
        reason = CLOSED_KEPT
    raise provider_error(request, kind, reason) from None


def _reason(limits: TimeLimits, proxy: str, error: Exception) -> tuple[FailureKind, str]:
    """Why there is no response, without any part of the address."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "timeout", not_connected(limits)
    if isinstance(error, TimeoutError):
        return "timeout", f"sent nothing within {limits.first_byte:g} s"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        refusal = f"the proxy {host_and_port(proxy)} responded with status {error.status}"
        return "unreachable", f"cannot be reached: {refusal}; check its user, password and rules"
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        return (
            "unreachable",
            f"cannot be reached: there is no connection to the proxy {host_and_port(proxy)}; {CHECK_PROXY}",
        )
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError):
        return "unreachable", f"cannot be reached: {_connection_error(error)}"
    if isinstance(error, aiohttp.ClientResponseError):
        return "server", LARGE_HEAD.format(_MAX_HEADER_BYTES) if _is_large(error) else NOT_HTTP
    return "server", NO_RESPONSE


def _is_large(error: BaseException) -> bool:
    """Whether a line of the head was too long: what aiohttp raises for it is inside what it raises in the end."""
    cause: BaseException | None = error
    for _ in range(5):
        if cause is None or isinstance(cause, LineTooLong):
            return cause is not None
        cause = cause.__cause__ or cause.__context__
    return False


def _connection_error(error: aiohttp.ClientError) -> str:
    """Why there is no connection, and what to check."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return connection_error(error.certificate_error)
    return connection_error(getattr(error, "os_error", None))
