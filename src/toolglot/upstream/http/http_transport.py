"""Requests to providers over HTTP: pooled connections, verified TLS, proxies, time limits.

Where nothing stands between here and the provider, `direct_http.py` carries them; what goes through a proxy, or is
unusual in any other way, aiohttp does, which is imported only then: it takes longer to load than all the rest.

Law: that of `transport.py`, whoever carries a request.
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
from toolglot.upstream.http.transport import FixedHeaders, HttpRequest, HttpResponse, TimeLimits

if TYPE_CHECKING:
    from toolglot.upstream.http.aiohttp_transport import AiohttpTransport

if find_spec("aiohttp") is None:
    raise ImportError("aiohttp")
try:
    from toolglot.upstream.http.direct_http import ConnectionPool, RequestTarget, head_of, plain_place, with_length

    IS_DIRECT = True
except ImportError:  # httptools is not there: aiohttp does everything
    IS_DIRECT = False


class TransportChoice(NamedTuple):
    """How requests with the same address and headers go."""

    by: HttpTransport
    url: str
    method: str
    place: RequestTarget
    head: bytes


class HttpTransport:
    """Pooled HTTP/1.1 connections with verified TLS.

    proxy: the address of one for every request; empty: none; None: HTTPS_PROXY, NO_PROXY and so on.
    tls: a context of one's own, for a private authority; the default one reads SSL_CERT_FILE too.
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

    def send(self, ask: HttpRequest, limits: TimeLimits) -> Coroutine[Any, Any, HttpResponse]:
        """The answer, as soon as it begins."""
        if self._is_closed:
            raise InputError("this transport is closed", path="transport")
        if self._pool is not None:
            way = self._way(ask)
            if way is not None:
                return self._pool.send(ask, with_length(ask, way.head), way.place, limits)
        return self._with_library().send(ask, limits)

    def _way(self, ask: HttpRequest) -> TransportChoice | None:
        """Where a request goes directly; None: that is not for this file."""
        headers = ask.headers
        known = headers.made if type(headers) is FixedHeaders else None
        if known is not None and known.by is self and known.url == ask.url and known.method == ask.method:
            return cast("TransportChoice", known)
        found = plain_place(ask.url)
        if found is None:
            return None
        place, host, target = found
        scheme = "https" if place.is_secure else "http"
        if self._proxies.between(scheme, place.host, urlsplit(ask.url).port) is not None:
            return None
        head = head_of(ask, host, target)
        if head is None:
            return None
        way = TransportChoice(self, ask.url, ask.method, place, head)
        if type(headers) is FixedHeaders:
            headers.made = way
        return way

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
