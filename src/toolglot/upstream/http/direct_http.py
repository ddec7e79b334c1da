"""HTTP/1.1 to providers without a proxy: a request costs a fifth of what a client library takes.

It does what requests to providers need, and no more: one request at a time on a connection, keep-alive, bodies with a
length, in chunks or up to the end of the connection, compressed with gzip or deflate. httptools parses responses. The
connections are in `connection_pool.py`, request heads in `request_head.py`; unusual requests are left to
`aiohttp_transport.py`.

Law: that of `transport.py`. A connection is reused only if all of its last response came, nothing beyond it, and it was
not idle for longer than `keep_alive` or than its server announced (`Keep-Alive: timeout=…`).
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import httptools

from toolglot.conversation import FailureKind
from toolglot.upstream.http.request_head import RequestTarget
from toolglot.upstream.http.transport import (
    BROKEN_OFF,
    CLOSED_KEPT,
    LARGE_HEAD,
    NO_RESPONSE,
    NOT_HTTP,
    SWITCHED,
    SWITCHING,
    HttpRequest,
    TimeLimits,
    provider_error,
    read_whole,
)

if TYPE_CHECKING:
    from toolglot.upstream.http.connection_pool import ConnectionPool

MAX_HEAD: Final = 64 * 1024
MAX_BUFFERED: Final = 64 * 1024
"""Bytes of a response that are buffered; reading is paused beyond that."""
KEEP_ALIVE_MARGIN: Final = 1.0
"""A connection is not reused in this many seconds before the server's limit, announced or seen."""
MAX_JOINED: Final = 64 * 1024
"""Bytes of a request that are copied behind its head, to be sent with it."""
_STEP: Final = 256 * 1024
"""A compressed piece is decompressed in pieces of this size."""

_SERVER_LIMIT: Final = re.compile(r"timeout=(\d{1,6})", re.IGNORECASE)


class NoResponseError(Exception):
    """Why there is no response, or no end of it."""

    def __init__(self, kind: FailureKind, reason: str, *, is_kept: bool = False) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.is_kept = is_kept
        """The connection had served a request before, and ended before anything came."""


_LARGE_HEAD: Final = LARGE_HEAD.format(MAX_HEAD)


# --- one connection ---------------------------------------------------------------------------------


class UpstreamConnection(asyncio.Protocol):
    """A connection, with one request at a time.

    free ── send ──▸ pending ── head ──▸ receiving ── end ──▸ free, or closed if the server says so
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
            self._timer = self.loop.call_at(due, self._check_timeout)
        try:
            if len(body) > MAX_JOINED:
                self.transport.writelines([head, body])
            else:
                self._pool.outbox.send(self.transport, head + body)
            return await pending
        except BaseException:
            self._give_up(pending)
            raise

    def _check_timeout(self) -> None:
        """One timer for many requests: it checks whether one waits too long, and sleeps for the rest."""
        self._timer = None
        if self._pending is None:
            return
        if self._due > self.loop.time():
            self._timer = self.loop.call_at(self._due, self._check_timeout)
        else:
            self._fail(NoResponseError("timeout", f"sent nothing within {self._limits.first_byte:g} s"))

    def _give_up(self, pending: asyncio.Future[DirectResponse]) -> None:
        """The caller was cancelled. The whole response may have come by now, and the next request may be pending."""
        if self._pending is pending:
            self._pending = None
            self.transport.abort()
        elif pending.done() and not pending.cancelled() and pending.exception() is None:
            self.abandon(pending.result())

    def _fail(self, why: NoResponseError) -> None:
        """Raise an error for the caller, and close the connection."""
        pending, response, self._pending, self._response = self._pending, self._response, None, None
        if pending is not None and not pending.done():
            pending.set_exception(why)
        elif response is not None:
            response.break_off(why if why.kind == "timeout" else NoResponseError("server", BROKEN_OFF))
        self.transport.abort()

    def abandon(self, response: DirectResponse) -> None:
        """Close the connection, because the response is not read any further."""
        if self._response is response:
            self._response = None
            self.transport.abort()

    # --- called by the event loop -------------------------------------------------------------------

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
                self._pool.note_closed(self)
            self._fail(NoResponseError("server", CLOSED_KEPT if is_kept else NO_RESPONSE, is_kept=is_kept))

    def eof_received(self) -> None:
        """The server has sent everything, so this side closes too."""

    def data_received(self, data: bytes) -> None:
        if self._pending is None and self._response is None:
            self.transport.abort()  # a response without a request
            return
        self._came += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(NoResponseError("server", NOT_HTTP))
            return
        if self._came > MAX_HEAD and (self._pending is not None or self._response is not None):
            self._fail(NoResponseError("server", _LARGE_HEAD))

    # --- called by the parser -----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._pending is None and self._response is None:
            self.transport.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._response is not None:
            return  # a trailer is not a header
        lower, text = name.decode("latin-1").lower(), value.decode("latin-1")
        known = self._headers.get(lower)
        self._headers[lower] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        pending = self._pending
        if status == SWITCHING:
            self._fail(NoResponseError("server", SWITCHED))
            return
        if status < 200 or pending is None or pending.done():
            return  # an informational status, or the caller is gone
        if self._came > MAX_HEAD and sum(len(name) + len(text) for name, text in self._headers.items()) > MAX_HEAD:
            self._fail(NoResponseError("server", _LARGE_HEAD))
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
            self._pool.give_back(self, reuse_seconds(self._limits, response.headers))
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
        self._why: NoResponseError | None = None

    @property
    def ends_with_connection(self) -> bool:
        """It has no length: it ends with the connection."""
        named = self.headers
        return "content-length" not in named and "chunked" not in named.get("transfer-encoding", "").lower()

    # --- called by the connection -------------------------------------------------------------------

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

    def break_off(self, why: NoResponseError) -> None:
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

    # --- called by the reader -----------------------------------------------------------------------

    def pieces(self) -> AsyncIterator[bytes]:
        encoding = self.headers.get("content-encoding", "").strip().lower()
        return self._raw() if encoding in ("", "identity") else self._decompressed(encoding)

    async def _decompressed(self, encoding: str) -> AsyncIterator[bytes]:
        try:
            decompressor = _Decompressor(encoding)
            async for data in self._raw():
                for piece in decompressor.feed(data):
                    yield piece
            decompressor.finish()
        except (zlib.error, ValueError):
            await self.close()
            raise provider_error(self.request, "server", BROKEN_OFF) from None

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
                    raise provider_error(self.request, self._why.kind, self._why.reason)
                else:
                    await self._wait_for_data()
        finally:
            if self._timer is not None:
                self._timer.cancel()

    async def _wait_for_data(self) -> None:
        waiter = self._waiter = self._loop.create_future()
        if self._timer is None:
            self._last = self._last or self._loop.time()
            self._timer = self._loop.call_at(self._last + self._limits.idle, self._check_idle)
        await waiter

    def _check_idle(self) -> None:
        """One timer for the whole response: it checks how long ago something came, and sleeps for the rest."""
        due = self._last + self._limits.idle
        if due > self._loop.time() or self._waiter is None:
            due = due if self._waiter is not None else self._loop.time() + self._limits.idle
            self._timer = self._loop.call_at(due, self._check_idle)
            return
        self._timer = None
        connection = self._connection
        self.break_off(NoResponseError("timeout", f"was silent for {self._limits.idle:g} s"))
        if connection is not None:
            connection.abandon(self)

    async def whole(self, max_bytes: int) -> bytes:
        if self._is_over and self._size <= max_bytes and "content-encoding" not in self.headers:
            pieces, self._pieces = self._pieces, deque()  # the usual case for a short response
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return await read_whole(self.request, self, max_bytes)

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abandon(self)
            self._why = self._why or NoResponseError("server", BROKEN_OFF)
            self._wake()


class _Decompressor:
    """Decompresses a body in pieces of a bounded size."""

    def __init__(self, encoding: str) -> None:
        if encoding not in ("gzip", "x-gzip", "deflate"):
            raise ValueError(encoding)
        self._is_deflate = encoding == "deflate"
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


def reuse_seconds(limits: TimeLimits, headers: Mapping[str, str]) -> float:
    """How long a connection may be reused: as configured, and shorter than its server announces."""
    limit = headers.get("keep-alive")
    found = _SERVER_LIMIT.search(limit[:200]) if limit else None
    return limits.keep_alive if found is None else min(limits.keep_alive, int(found[1]) - KEEP_ALIVE_MARGIN)
