"""The connections of `direct_http.py`: opened, reused while their servers keep them, and closed when they are idle.

Law: a connection is reused only if its server has not closed it (`liveness.py`), and if it was idle for less time than
the server was seen to allow.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from functools import cached_property
from typing import Final

import aiohappyeyeballs
from msgspec.structs import replace

from toolglot.upstream.http.direct_http import KEEP_ALIVE_MARGIN, DirectResponse, NoResponseError, UpstreamConnection
from toolglot.upstream.http.liveness import is_quiet
from toolglot.upstream.http.outbox import Outbox, outbox_of
from toolglot.upstream.http.request_head import RequestTarget
from toolglot.upstream.http.transport import (
    HttpRequest,
    TimeLimits,
    connection_error,
    not_connected,
    provider_error,
    refuse_redirect,
)
from toolglot.upstream.retry import REPEATABLE

SWEEP_SECONDS: Final = 5.0
"""How often idle connections are closed."""
SEEN_SECONDS: Final = 60.0
"""How long the pool remembers after which idle time a server closed a connection."""
MAX_SEEN: Final = 1_000
"""Servers of which that is remembered."""


class ConnectionPool:
    """The connections of one event loop."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self._tls = tls
        self._free: dict[RequestTarget, list[UpstreamConnection]] = {}
        self._sweeping: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self.all: set[UpstreamConnection] = set()
        self._seen: dict[RequestTarget, tuple[float, float]] = {}
        """By server that closed an idle connection: how long others are reused, and until when that holds."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """That of the first request. Looking it up each time would cost a system call."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    @cached_property
    def outbox(self) -> Outbox:
        return outbox_of(self.loop)

    async def send(
        self, request: HttpRequest, head: bytes, server: RequestTarget, limits: TimeLimits
    ) -> DirectResponse:
        """Send a request. If a reused connection is closed without a response, a repeatable method is sent again."""
        try:
            connection = self._reuse(server) or await self._open(server, limits)
            try:
                response = await connection.send(head, request.body, limits)
            except NoResponseError as lost:
                if not lost.is_kept or request.method not in REPEATABLE:
                    raise
                response = await (await self._open(server, limits)).send(head, request.body, limits)
        except NoResponseError as lost:
            raise provider_error(request, lost.kind, lost.reason) from None
        response.request = replace(request, body=b"")  # for messages: the response may be a long stream
        if 300 <= response.status < 400:
            await response.close()
            refuse_redirect(request, response.status, response.headers)
        return response

    def give_back(self, connection: UpstreamConnection, seconds: float) -> None:
        """Take back a connection that is free, and may be reused for so long."""
        now = self.loop.time()
        seen = self._seen.get(connection.server)
        if seen is not None and seen[1] > now:
            seconds = min(seconds, seen[0])
        if self._is_closed or seconds <= 0 or connection.transport.is_closing():
            connection.transport.close()
            return
        connection.free_since, connection.free_until, connection.idle = now, now + seconds, None
        self._free.setdefault(connection.server, []).append(connection)
        if self._sweeping is None:
            self._sweeping = self.loop.call_later(SWEEP_SECONDS, self._sweep)

    def note_closed(self, connection: UpstreamConnection) -> None:
        """A server has closed an idle connection, or one that just got a request: the next ones are reused for less
        time."""
        if not connection.free_since:
            return
        now = self.loop.time()
        idle = now - connection.free_since if connection.idle is None else connection.idle
        if len(self._seen) >= MAX_SEEN:
            self._seen.clear()
        self._seen[connection.server] = (idle - KEEP_ALIVE_MARGIN, now + SEEN_SECONDS)

    async def close(self) -> None:
        self._is_closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in list(self.all):
            connection.transport.abort()
        self._free.clear()
        await asyncio.sleep(0)

    def _reuse(self, server: RequestTarget) -> UpstreamConnection | None:
        """The connection that was used last, unless the server has closed it or is about to."""
        free = self._free.get(server)
        now = self.loop.time()
        while free:
            connection = free.pop()
            if connection.free_until > now:
                if is_quiet(connection.transport):
                    return connection
                self.note_closed(connection)
            connection.free_since = 0.0
            connection.transport.close()
        return None

    def _sweep(self) -> None:
        """Close connections that were idle for too long."""
        now = self.loop.time()
        for server, free in list(self._free.items()):
            for connection in free:
                if connection.free_until <= now:
                    connection.free_since = 0.0
                    connection.transport.close()
            self._free[server] = [one for one in free if not one.transport.is_closing()]
            if not self._free[server]:
                del self._free[server]
        self._sweeping = self.loop.call_later(SWEEP_SECONDS, self._sweep) if self._free else None

    async def _open(self, server: RequestTarget, limits: TimeLimits) -> UpstreamConnection:
        try:
            async with asyncio.timeout(limits.connect):
                return await self._connect(server)
        except TimeoutError:
            raise NoResponseError("timeout", not_connected(limits)) from None
        except OSError as error:
            raise NoResponseError("unreachable", f"cannot be reached: {connection_error(error)}") from None

    async def _connect(self, server: RequestTarget) -> UpstreamConnection:
        loop = self.loop
        found = await loop.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
        sock = await aiohappyeyeballs.start_connection(found, happy_eyeballs_delay=0.25, interleave=1, loop=loop)
        try:
            _, connection = await loop.create_connection(
                lambda: UpstreamConnection(self, server),
                sock=sock,
                ssl=self._context() if server.is_secure else None,
                server_hostname=server.host if server.is_secure else None,
            )
        except BaseException:
            sock.close()
            raise
        return connection

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls
