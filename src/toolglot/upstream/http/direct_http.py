"""HTTP/1.1 to providers without a proxy: a request costs a fifth of what a client library takes.

It does what requests to providers need, and no more: one request at a time on a connection, connections that are kept,
bodies of a known length, in chunks or up to the end, packed with gzip or deflate. httptools reads what comes. Whatever
is unusual (`plain_target`, `head_of`) it leaves to `aiohttp_transport.py`.

Law: that of `transport.py`. A connection is used again only if all of its last answer came, nothing beyond it, and it
was not idle for longer than `keep_alive` or than its server announced (`Keep-Alive: timeout=…`).
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import zlib
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

import aiohappyeyeballs
import httptools

from toolglot.conversation import FailureKind
from toolglot.upstream.http.liveness import is_quiet
from toolglot.upstream.http.outbox import Outbox, outbox_of
from toolglot.upstream.http.transport import (
    CHECK_NETWORK,
    CLOSED_KEPT,
    LARGE_HEAD,
    NOT_HTTP,
    REFUSED,
    SWITCHED,
    SWITCHING,
    UNKNOWN_HOST,
    HttpRequest,
    TimeLimits,
    failed,
    not_connected,
    read_whole,
    refuse_redirect,
    tls_failed,
)
from toolglot.upstream.retry import REPEATABLE

MAX_HEAD: Final = 64 * 1024
MAX_BUFFERED: Final = 64 * 1024
"""Bytes of a response that are buffered; reading is paused beyond that."""
SWEEP_SECONDS: Final = 5.0
"""How often idle connections are closed."""
KEEP_ALIVE_MARGIN: Final = 1.0
"""Seconds before a server's own limit, announced (`Keep-Alive: timeout=…`) or seen, at which it is not used."""
SEEN_SECONDS: Final = 60.0
"""How long it is remembered after how long a server closed a connection that was idle."""
MAX_SEEN: Final = 1_000
"""Servers of which that is remembered."""
MAX_JOINED: Final = 64 * 1024
"""Bytes of a request that are copied behind its head, to be sent with it."""
_STEP: Final = 256 * 1024
"""A packed piece is unpacked in pieces of this size."""

_SERVER_LIMIT: Final = re.compile(r"timeout=(\d{1,6})", re.IGNORECASE)
_NAMES: Final = re.compile(r"(?:[A-Za-z0-9!#$%&'*+.^_`|~-]+,)*")
_HOST: Final = re.compile(r"[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]")
_NOT_OURS: Final = frozenset(
    {"content-length", "transfer-encoding", "connection", "expect", "upgrade", "te", "trailer", "host", "keep-alive"}
)
_METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})


class RequestTarget(NamedTuple):
    """Where a request goes."""

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
    """The head of a request but for its length; None: it has something in it that a library should look at."""
    headers = request.headers
    text = "".join([*headers, *headers.values()])
    is_plain = text.isascii() and text.isprintable() and request.method in _METHODS and _NOT_OURS.isdisjoint(headers)
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
    """All of the head of a request."""
    if request.body or request.method != "GET":
        return b"%bcontent-length: %d\r\n\r\n" % (head, len(request.body))
    return head + b"\r\n"


class LostError(Exception):
    """Why there is no response."""

    def __init__(self, kind: FailureKind, reason: str, *, is_kept: bool = False) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.is_kept = is_kept
        """The connection had served a request before, and ended before anything came."""


_LARGE_HEAD: Final = LARGE_HEAD.format(MAX_HEAD)
_NO_ANSWER: Final = "closed the connection without an answer"
_BROKEN: Final = "broke off in the middle of its answer"


# --- one connection ---------------------------------------------------------------------------------


class UpstreamConnection(asyncio.Protocol):
    """A connection, with one request at a time.

    free ── send ──▸ pending ── head ──▸ answering ── end ──▸ free, or closed if the server says so
                      └── anything wrong ───┴──▸ closed
    """

    __slots__ = (
        "_came",
        "_due",
        "_headers",
        "_limits",
        "_parser",
        "_pending",
        "_pool",
        "_response",
        "_timer",
        "free_since",
        "free_until",
        "idle",
        "is_used",
        "loop",
        "server",
        "transport",
    )  # fmt: skip

    def __init__(self, pool: ConnectionPool, server: RequestTarget) -> None:
        self._pool = pool
        self.loop: asyncio.AbstractEventLoop = pool.loop
        self._pending: asyncio.Future[DirectResponse] | None = None
        self._response: DirectResponse | None = None
        self._parser: Any = None
        self._headers: dict[str, str] = {}
        self._came = 0
        """Bytes that came since the last piece of a body: a head, sizes of chunks, a trailer."""
        self.server: RequestTarget = server
        self.is_used: bool = False
        """It has served a request before."""
        self.free_since: float = 0.0
        """When its last response ended; 0: it has had none, or is closed by this side."""
        self.free_until: float = 0.0
        """When it is too old to be used again, if it is free."""
        self.idle: float | None = None
        """Seconds between its last response and the request after it."""
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def send(self, head: bytes, body: bytes, limits: TimeLimits) -> DirectResponse:
        """The response, as soon as it begins."""
        pending: asyncio.Future[DirectResponse] = self.loop.create_future()
        self._pending = pending
        self._limits = limits
        self._parser = httptools.HttpResponseParser(self)
        self._headers, self._came = {}, 0
        now = self.loop.time()
        if self.free_since:
            self.idle = now - self.free_since
        due = self._due = now + limits.first_byte
        timer = self._timer
        if timer is not None and timer.when() > due:
            timer.cancel()
            timer = None
        if timer is None:
            self._timer = self.loop.call_at(due, self._look)
        try:
            if len(body) > MAX_JOINED:
                self.transport.writelines([head, body])
            else:
                self._pool.outbox.send(self.transport, head + body)
            return await pending
        except BaseException:
            self._give_up(pending)
            raise

    def _look(self) -> None:
        """One timer for many requests: it looks whether one waits too long, and sleeps for the rest."""
        self._timer = None
        if self._pending is None:
            return
        if self._due > self.loop.time():
            self._timer = self.loop.call_at(self._due, self._look)
        else:
            self._lose(LostError("timeout", f"sent nothing within {self._limits.first_byte:g} s"))

    def _give_up(self, pending: asyncio.Future[DirectResponse]) -> None:
        """The caller was cancelled. By then the whole response may have come, and the next request may be pending."""
        if self._pending is pending:
            self._pending = None
            self.transport.abort()
        elif pending.done() and not pending.cancelled() and pending.exception() is None:
            self.let_go(pending.result())

    def _lose(self, why: LostError) -> None:
        """The caller gets an error; the connection cannot be used any more."""
        pending, response, self._pending, self._response = self._pending, self._response, None, None
        if pending is not None and not pending.done():
            pending.set_exception(why)
        elif response is not None:
            response.break_off(why if why.kind == "timeout" else LostError("server", _BROKEN))
        self.transport.abort()

    def let_go(self, response: DirectResponse) -> None:
        """The response is not read any further."""
        if self._response is response:
            self._response = None
            self.transport.abort()

    # --- of the event loop --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = cast("asyncio.Transport", transport)
        self._pool.all.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._pool.all.discard(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        response = self._response
        if exc is None and response is not None and response.ends_with_connection:
            self._response = None
            response.end()
        else:
            is_kept = self.is_used and not self._came
            if is_kept or self._pending is None:
                self._pool.see_closed(self)
            self._lose(LostError("server", CLOSED_KEPT if is_kept else _NO_ANSWER, is_kept=is_kept))

    def eof_received(self) -> None:
        """The server has sent everything, so we close too."""

    def data_received(self, data: bytes) -> None:
        if self._pending is None and self._response is None:
            self.transport.abort()  # an answer to nothing
            return
        self._came += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._lose(LostError("server", NOT_HTTP))
            return
        if self._came > MAX_HEAD and (self._pending is not None or self._response is not None):
            self._lose(LostError("server", _LARGE_HEAD))

    # --- of the parser ------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._pending is None and self._response is None:
            self.transport.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._response is not None:
            return  # a trailer is no header
        lower, text = name.decode("latin-1").lower(), value.decode("latin-1")
        known = self._headers.get(lower)
        self._headers[lower] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        pending = self._pending
        if status == SWITCHING:
            self._lose(LostError("server", SWITCHED))
            return
        if status < 200 or pending is None or pending.done():
            return  # an informational status, or the caller is gone
        if self._came > MAX_HEAD and sum(len(name) + len(text) for name, text in self._headers.items()) > MAX_HEAD:
            self._lose(LostError("server", _LARGE_HEAD))
            return
        self._pending = None
        self._response = DirectResponse(self, status, self._headers, self._limits)
        pending.set_result(self._response)

    def on_body(self, data: bytes) -> None:
        self._came = 0
        if self._response is not None:
            self._response.add(data)

    def on_message_complete(self) -> None:
        response = self._response
        if response is None:
            self._headers = {}
            return
        self._response = None
        keeps = self._parser.should_keep_alive()
        response.end()
        if keeps:
            self.is_used = True
            self._pool.give_back(self, kept_seconds(self._limits, response.headers))
        else:
            self.transport.close()


class DirectResponse:
    """A response as it arrives."""

    __slots__ = (
        "_connection",
        "_is_over",
        "_is_paused",
        "_last",
        "_limits",
        "_loop",
        "_pieces",
        "_size",
        "_timer",
        "_waiter",
        "_why",
        "headers",
        "request",
        "status",
    )  # fmt: skip

    def __init__(
        self, connection: UpstreamConnection, status: int, headers: dict[str, str], limits: TimeLimits
    ) -> None:
        self.request: HttpRequest
        """The request that it answers."""
        self.status: int = status
        self.headers: Mapping[str, str] = headers
        self._connection: UpstreamConnection | None = connection
        self._limits = limits
        self._loop = connection.loop
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._last = 0.0
        """When something came last."""
        self._is_over = False
        self._is_paused = False
        self._why: LostError | None = None

    @property
    def ends_with_connection(self) -> bool:
        """It has no length: what ends it is the end of the connection."""
        named = self.headers
        return "content-length" not in named and "chunked" not in named.get("transfer-encoding", "").lower()

    # --- of the connection --------------------------------------------------------------------------

    def add(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        self._last = self._loop.time()
        if self._size > MAX_BUFFERED and not self._is_paused and self._connection is not None:
            self._is_paused = True
            self._connection.transport.pause_reading()
        self._wake()

    def end(self) -> None:
        self._is_over = True
        self._resume()
        self._connection = None
        self._wake()

    def break_off(self, why: LostError) -> None:
        self._why = why
        self._connection = None
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _resume(self) -> None:
        if self._is_paused and self._connection is not None:
            self._is_paused = False
            self._last = self._loop.time()
            if not self._connection.transport.is_closing():
                self._connection.transport.resume_reading()

    # --- of the reader ------------------------------------------------------------------------------

    def pieces(self) -> AsyncIterator[bytes]:
        packed = self.headers.get("content-encoding", "").strip().lower()
        return self._raw() if packed in ("", "identity") else self._unpacked(packed)

    async def _unpacked(self, packed: str) -> AsyncIterator[bytes]:
        try:
            unpacker = _Unpacker(packed)
            async for data in self._raw():
                for piece in unpacker.feed(data):
                    yield piece
            unpacker.finish()
        except (zlib.error, ValueError):
            await self.close()
            raise failed(self.request, "server", _BROKEN) from None

    async def _raw(self) -> AsyncIterator[bytes]:
        pieces = self._pieces
        try:
            while True:
                if pieces:
                    data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
                    pieces.clear()
                    self._size = 0
                    self._resume()
                    yield data
                elif self._is_over:
                    return
                elif self._why is not None:
                    raise failed(self.request, self._why.kind, self._why.reason)
                else:
                    await self._more()
        finally:
            if self._timer is not None:
                self._timer.cancel()

    async def _more(self) -> None:
        waiter = self._waiter = self._loop.create_future()
        if self._timer is None:
            self._last = self._last or self._loop.time()
            self._timer = self._loop.call_at(self._last + self._limits.idle, self._look)
        await waiter

    def _look(self) -> None:
        """One timer for the whole response: it checks how long ago something came, and sleeps for the rest."""
        due = self._last + self._limits.idle
        if due > self._loop.time() or self._waiter is None:
            due = due if self._waiter is not None else self._loop.time() + self._limits.idle
            self._timer = self._loop.call_at(due, self._look)
            return
        self._timer = None
        connection = self._connection
        self.break_off(LostError("timeout", f"was silent for {self._limits.idle:g} s"))
        if connection is not None:
            connection.let_go(self)

    async def whole(self, max_bytes: int) -> bytes:
        if self._is_over and self._size <= max_bytes and "content-encoding" not in self.headers:
            pieces, self._pieces = self._pieces, deque()  # as most short answers are by now
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return await read_whole(self.request, self, max_bytes)

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.let_go(self)
            self._why = self._why or LostError("server", _BROKEN)
            self._wake()


class _Unpacker:
    """A packed body, in pieces that are not much larger than what came."""

    def __init__(self, packed: str) -> None:
        if packed not in ("gzip", "x-gzip", "deflate"):
            raise ValueError(packed)
        self._is_deflate = packed == "deflate"
        self._reader: Any = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self._reader is None:
            # Some servers leave out the envelope of deflate; its first byte shows it.
            window = (15 if data[0] & 0x0F == 8 else -15) if self._is_deflate else 31
            self._reader = zlib.decompressobj(window)
        reader = self._reader
        while data and not reader.eof:
            yield reader.decompress(data, _STEP)
            data = reader.unconsumed_tail

    def finish(self) -> None:
        if self._reader is not None and not self._reader.eof:
            raise ValueError("it ends too early")


# --- all connections --------------------------------------------------------------------------------


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
        """By server that closed an idle connection: how long connections to it are kept, and until when that holds."""

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
        """The response to a request. If a kept connection ends without one, repeatable methods are sent again."""
        try:
            connection = self._kept(server) or await self._opened(server, limits)
            try:
                response = await connection.send(head, request.body, limits)
            except LostError as lost:
                if not lost.is_kept or request.method not in REPEATABLE:
                    raise
                response = await (await self._opened(server, limits)).send(head, request.body, limits)
        except LostError as lost:
            raise failed(request, lost.kind, lost.reason) from None
        response.request = request
        if 300 <= response.status < 400:
            await response.close()
            refuse_redirect(request, response.status, response.headers)
        return response

    def give_back(self, connection: UpstreamConnection, seconds: float) -> None:
        """A connection that is free, and how long it may be used again."""
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

    def see_closed(self, connection: UpstreamConnection) -> None:
        """A server has closed a connection that waited for a request, or just when one came: it keeps them no longer
        than that, and the next ones are left before it closes them."""
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

    def _kept(self, server: RequestTarget) -> UpstreamConnection | None:
        """The connection that was used last, if the server has neither closed it nor is about to."""
        free = self._free.get(server)
        now = self.loop.time()
        while free:
            connection = free.pop()
            if connection.free_until > now:
                if is_quiet(connection.transport):
                    return connection
                self.see_closed(connection)
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

    async def _opened(self, server: RequestTarget, limits: TimeLimits) -> UpstreamConnection:
        try:
            async with asyncio.timeout(limits.connect):
                return await self._connected(server)
        except TimeoutError:
            raise LostError("timeout", not_connected(limits)) from None
        except OSError as error:
            raise LostError("unreachable", f"cannot be reached: {why_not(error)}") from None

    async def _connected(self, server: RequestTarget) -> UpstreamConnection:
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


def kept_seconds(limits: TimeLimits, headers: Mapping[str, str]) -> float:
    """How long a connection may be used again: as configured, and shorter than its server announces."""
    limit = headers.get("keep-alive")
    found = _SERVER_LIMIT.search(limit[:200]) if limit else None
    return limits.keep_alive if found is None else min(limits.keep_alive, int(found[1]) - KEEP_ALIVE_MARGIN)


def why_not(error: OSError) -> str:
    """Why there is no connection and what to check, without any part of the address."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message or "it cannot be verified"
        return f"its TLS certificate is not trusted: {why} (SSL_CERT_FILE names a private authority's certificate)"
    if isinstance(error, socket.gaierror):
        return UNKNOWN_HOST
    if isinstance(error, ssl.SSLError):
        return tls_failed(error)
    # With several addresses of a host, the errors of all of them are in one message.
    if isinstance(error, ConnectionRefusedError) or "Connect call failed" in str(error):
        return REFUSED
    return f"{error.strerror or 'there is no connection'}; {CHECK_NETWORK}"
