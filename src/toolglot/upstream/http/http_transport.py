"""Requests to providers over HTTP: pooled connections, verified TLS, proxies, time limits.

`direct_http.py` sends them if there is no proxy. A request that uses a proxy, or is unusual in any other way, is sent
by aiohttp, which is imported only then because it takes long to load.

Law: that of `transport.py`, whichever sends a request.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Coroutine, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

from toolglot.errors import InputError
from toolglot.upstream.http.proxies import Proxies
from toolglot.upstream.http.request_head import RequestTarget, head_of, plain_target, with_length
from toolglot.upstream.http.transport import FixedHeaders, HttpRequest, HttpResponse, TimeLimits

if TYPE_CHECKING:
    from toolglot.upstream.http.aiohttp_transport import AiohttpTransport

if find_spec("aiohttp") is None:
    raise ImportError("aiohttp")
try:
    from toolglot.upstream.http.connection_pool import ConnectionPool

    IS_DIRECT = True
except ImportError:  # without httptools, aiohttp sends everything
    IS_DIRECT = False


class TransportChoice(NamedTuple):
    """How requests with the same address and headers are sent."""

    by: HttpTransport
    url: str
    method: str
    server: RequestTarget
    head: bytes


class HttpTransport:
    """Pooled HTTP/1.1 connections with verified TLS.

    proxy: the address of one for every request; empty: none; None: HTTPS_PROXY, NO_PROXY and so on.
    tls: your own context, for a private authority. The default one reads SSL_CERT_FILE too.
    """

    def __init__(
        self, *, proxy: str | None = None, tls: ssl.SSLContext | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        self._proxy = proxy
        self._tls = tls
        self._environ = os.environ if environ is None else environ
        self._proxies = Proxies(proxy, self._environ)
        self._pool = ConnectionPool(tls) if IS_DIRECT else None
        self._library: AiohttpTransport | None = None
        self._is_closed = False

    def send(self, request: HttpRequest, limits: TimeLimits) -> Coroutine[Any, Any, HttpResponse]:
        """The response, as soon as it begins."""
        if self._is_closed:
            raise InputError("this transport is closed", path="transport")
        if self._pool is not None:
            choice = self._choose(request)
            if choice is not None:
                return self._pool.send(request, with_length(request, choice.head), choice.server, limits)
        return self._with_library().send(request, limits)

    def _choose(self, request: HttpRequest) -> TransportChoice | None:
        """How a request is sent directly; None: aiohttp sends it."""
        headers = request.headers
        known = headers.made if type(headers) is FixedHeaders else None
        if known is not None and known.by is self and known.url == request.url and known.method == request.method:
            return cast("TransportChoice", known)
        found = plain_target(request.url)
        if found is None:
            return None
        server, host, target = found
        scheme = "https" if server.is_secure else "http"
        if self._proxies.between(scheme, server.host, urlsplit(request.url).port) is not None:
            return None
        head = head_of(request, host, target)
        if head is None:
            return None
        choice = TransportChoice(self, request.url, request.method, server, head)
        if type(headers) is FixedHeaders:
            headers.made = choice
        return choice

    async def close(self) -> None:
        self._is_closed = True
        if self._pool is not None:
            await self._pool.close()
        if self._library is not None:
            await self._library.close()

    def _with_library(self) -> AiohttpTransport:
        if self._library is None:
            from toolglot.upstream.http.aiohttp_transport import AiohttpTransport  # noqa: PLC0415 - it is large

            self._library = AiohttpTransport(proxy=self._proxy, tls=self._tls, environ=self._environ)
        return self._library
