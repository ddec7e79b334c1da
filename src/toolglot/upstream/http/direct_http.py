"""HTTP/1.1 to providers, with nothing between here and them: a request costs a fifth of what a client library takes.

It does what requests to providers need, and no more: one request at a time on a connection, connections that are kept,
bodies of a known length, in chunks or up to the end, packed with gzip or deflate. httptools reads what comes. Whatever
is unusual (`plain_place`, `head_of`) it leaves to `aiohttp_transport.py`.

Law: that of `transport.py`. A connection is used again only if all of its last answer came, nothing beyond it, and it
was not idle for longer than `keep_alive` or than its server said (`Keep-Alive: timeout=…`).
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

MOST_HEAD: Final = 64 * 1024
MOST_AHEAD: Final = 64 * 1024
"""Bytes of an answer that wait for who reads it; more stay in the provider's hands."""
SWEEP_SECONDS: Final = 5.0
"""How often connections that nobody has used for too long are closed."""
KEEP_ALIVE_MARGIN: Final = 1.0
"""Seconds before a server's own limit, said (`Keep-Alive: timeout=…`) or seen, at which a connection is not used."""
SEEN_SECONDS: Final = 60.0
"""How long it is remembered after how long a server closed a connection that was idle."""
MOST_SEEN: Final = 1_000
"""Servers of which that is remembered."""
MOST_JOINED: Final = 64 * 1024
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
def plain_place(url: str) -> tuple[RequestTarget, str, str] | None:
    """Where an address leads, the host as the header says it, and the rest; None: it is not a plain one."""
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


def head_of(ask: HttpRequest, host: str, target: str) -> bytes | None:
    """The head of a request but for its length; None: it has something in it that a library should look at."""
    headers = ask.headers
    said = "".join([*headers, *headers.values()])
    is_plain = said.isascii() and said.isprintable() and ask.method in _METHODS and _NOT_OURS.isdisjoint(headers)
    if not is_plain or not _NAMES.fullmatch(",".join([*headers, ""])):
        return None
    lines = [f"{ask.method} {target} HTTP/1.1", f"host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if "accept" not in headers:
        lines.append("accept: */*")
    if "accept-encoding" not in headers:
        lines.append("accept-encoding: gzip, deflate")
    return ("\r\n".join(lines) + "\r\n").encode()


def with_length(ask: HttpRequest, head: bytes) -> bytes:
    """All of the head of a request."""
    if ask.body or ask.method != "GET":
        return b"%bcontent-length: %d\r\n\r\n" % (head, len(ask.body))
    return head + b"\r\n"


class LostError(Exception):
    """There is no answer, and why."""

    def __init__(self, kind: FailureKind, reason: str, *, is_kept: bool = False) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.is_kept = is_kept
        """The connection had served a request before, and ended before anything came."""


_LARGE_HEAD: Final = LARGE_HEAD.format(MOST_HEAD)
_NO_ANSWER: Final = "closed the connection without an answer"
_BROKEN: Final = "broke off in the middle of its answer"


# --- one connection ---------------------------------------------------------------------------------


class UpstreamConnection(asyncio.Protocol):
    """A connection, and who is answered on it.

    free ── ask ──▸ asked ── head ──▸ answering ── end ──▸ free, or closed if the server says so
                      └── anything wrong ───┴──▸ closed
    """

    __slots__ = (
        "_answer",
        "_asked",
        "_came",
        "_due",
        "_headers",
        "_limits",
        "_parser",
        "_pool",
        "_timer",
        "free_since",
        "free_until",
        "idle",
        "is_used",
        "loop",
        "place",
        "transport",
    )  # fmt: skip

    def __init__(self, pool: ConnectionPool, place: RequestTarget) -> None:
        self._pool = pool
        self.loop: asyncio.AbstractEventLoop = pool.loop
        self._asked: asyncio.Future[DirectResponse] | None = None
        self._answer: DirectResponse | None = None
        self._parser: Any = None
        self._headers: dict[str, str] = {}
        self._came = 0
        """Bytes that came since the last piece of a body: a head, sizes of chunks, a trailer."""
        self.place: RequestTarget = place
        self.is_used: bool = False
        """It has served a request before."""
        self.free_since: float = 0.0
        """When its last answer ended; 0: it has had none, or is closed by this side."""
        self.free_until: float = 0.0
        """When it is too old to be used again, if it is free."""
        self.idle: float | None = None
        """Seconds between its last answer and the request after it."""
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    async def ask(self, head: bytes, body: bytes, limits: TimeLimits) -> DirectResponse:
        """The answer, as soon as it begins."""
        asked: asyncio.Future[DirectResponse] = self.loop.create_future()
        self._asked = asked
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
            if len(body) > MOST_JOINED:
                self.transport.writelines([head, body])
            else:
                self._pool.outbox.send(self.transport, head + body)
            return await asked
        except BaseException:
            self._give_up(asked)
            raise

    def _look(self) -> None:
        """One timer for many requests: it looks whether one waits too long, and sleeps for the rest."""
        self._timer = None
        if self._asked is None:
            return
        if self._due > self.loop.time():
            self._timer = self.loop.call_at(self._due, self._look)
        else:
            self._lose(LostError("timeout", f"sent nothing within {self._limits.first_byte:g} s"))

    def _give_up(self, asked: asyncio.Future[DirectResponse]) -> None:
        """Who asked does not wait any more. The whole answer may have come by then, and another be asked for."""
        if self._asked is asked:
            self._asked = None
            self.transport.abort()
        elif asked.done() and not asked.cancelled() and asked.exception() is None:
            self.let_go(asked.result())

    def _lose(self, why: LostError) -> None:
        """Whoever waits is told; the connection is of no use any more."""
        asked, answer, self._asked, self._answer = self._asked, self._answer, None, None
        if asked is not None and not asked.done():
            asked.set_exception(why)
        elif answer is not None:
            answer.break_off(why if why.kind == "timeout" else LostError("server", _BROKEN))
        self.transport.abort()

    def let_go(self, answer: DirectResponse) -> None:
        """Nobody reads the answer any more."""
        if self._answer is answer:
            self._answer = None
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
        answer = self._answer
        if exc is None and answer is not None and answer.ends_with_connection:
            self._answer = None
            answer.end()
        else:
            is_kept = self.is_used and not self._came
            if is_kept or self._asked is None:
                self._pool.see_closed(self)
            self._lose(LostError("server", CLOSED_KEPT if is_kept else _NO_ANSWER, is_kept=is_kept))

    def eof_received(self) -> None:
        """The server has said everything; then so have we."""

    def data_received(self, data: bytes) -> None:
        if self._asked is None and self._answer is None:
            self.transport.abort()  # an answer to nothing
            return
        self._came += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._lose(LostError("server", NOT_HTTP))
            return
        if self._came > MOST_HEAD and (self._asked is not None or self._answer is not None):
            self._lose(LostError("server", _LARGE_HEAD))

    # --- of the parser ------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._asked is None and self._answer is None:
            self.transport.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._answer is not None:
            return  # a trailer is no header
        lower, text = name.decode("latin-1").lower(), value.decode("latin-1")
        known = self._headers.get(lower)
        self._headers[lower] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        asked = self._asked
        if status == SWITCHING:
            self._lose(LostError("server", SWITCHED))
            return
        if status < 200 or asked is None or asked.done():
            return  # news of an answer to come, or nobody waits
        if self._came > MOST_HEAD and sum(len(name) + len(text) for name, text in self._headers.items()) > MOST_HEAD:
            self._lose(LostError("server", _LARGE_HEAD))
            return
        self._asked = None
        self._answer = DirectResponse(self, status, self._headers, self._limits)
        asked.set_result(self._answer)

    def on_body(self, data: bytes) -> None:
        self._came = 0
        if self._answer is not None:
            self._answer.add(data)

    def on_message_complete(self) -> None:
        answer = self._answer
        if answer is None:
            self._headers = {}
            return
        self._answer = None
        keeps = self._parser.should_keep_alive()
        answer.end()
        if keeps:
            self.is_used = True
            self._pool.give_back(self, kept_seconds(self._limits, answer.headers))
        else:
            self.transport.close()


class DirectResponse:
    """An answer as it comes."""

    __slots__ = (
        "_connection", "_is_over", "_is_paused", "_last", "_limits", "_loop", "_pieces", "_size", "_timer",
        "_waiter", "_why", "ask", "headers", "status",
    )  # fmt: skip

    def __init__(
        self, connection: UpstreamConnection, status: int, headers: dict[str, str], limits: TimeLimits
    ) -> None:
        self.ask: HttpRequest
        """What it answers."""
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
        if self._size > MOST_AHEAD and not self._is_paused and self._connection is not None:
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
            raise failed(self.ask, "server", _BROKEN) from None

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
                    raise failed(self.ask, self._why.kind, self._why.reason)
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
        """One timer for the whole answer: it looks how long ago something came, and sleeps for the rest."""
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

    async def whole(self, most: int) -> bytes:
        if self._is_over and self._size <= most and "content-encoding" not in self.headers:
            pieces, self._pieces = self._pieces, deque()  # as most short answers are by now
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return await read_whole(self.ask, self, most)

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
            # Some servers leave out the envelope of deflate; its first byte tells.
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
        """Of servers that closed an idle connection: how long theirs are kept, and until when that is believed."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """That of the first request. Asking Python for it each time would cost a system call."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    @cached_property
    def outbox(self) -> Outbox:
        return outbox_of(self.loop)

    async def send(self, ask: HttpRequest, head: bytes, place: RequestTarget, limits: TimeLimits) -> DirectResponse:
        """The answer to a request. Where a kept connection ends before the answer, only who may be asked twice is."""
        try:
            connection = self._kept(place) or await self._opened(place, limits)
            try:
                answer = await connection.ask(head, ask.body, limits)
            except LostError as lost:
                if not lost.is_kept or ask.method not in REPEATABLE:
                    raise
                answer = await (await self._opened(place, limits)).ask(head, ask.body, limits)
        except LostError as lost:
            raise failed(ask, lost.kind, lost.reason) from None
        answer.ask = ask
        if 300 <= answer.status < 400:
            await answer.close()
            refuse_redirect(ask, answer.status, answer.headers)
        return answer

    def give_back(self, connection: UpstreamConnection, seconds: float) -> None:
        """A connection that is free, and how long it may be used again."""
        now = self.loop.time()
        seen = self._seen.get(connection.place)
        if seen is not None and seen[1] > now:
            seconds = min(seconds, seen[0])
        if self._is_closed or seconds <= 0 or connection.transport.is_closing():
            connection.transport.close()
            return
        connection.free_since, connection.free_until, connection.idle = now, now + seconds, None
        self._free.setdefault(connection.place, []).append(connection)
        if self._sweeping is None:
            self._sweeping = self.loop.call_later(SWEEP_SECONDS, self._sweep)

    def see_closed(self, connection: UpstreamConnection) -> None:
        """A server has closed a connection that waited for a request, or just when one came: it keeps them no longer
        than that, and the next ones are left before it closes them."""
        if not connection.free_since:
            return
        now = self.loop.time()
        idle = now - connection.free_since if connection.idle is None else connection.idle
        if len(self._seen) >= MOST_SEEN:
            self._seen.clear()
        self._seen[connection.place] = (idle - KEEP_ALIVE_MARGIN, now + SEEN_SECONDS)

    async def close(self) -> None:
        self._is_closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        for connection in list(self.all):
            connection.transport.abort()
        self._free.clear()
        await asyncio.sleep(0)

    def _kept(self, place: RequestTarget) -> UpstreamConnection | None:
        """The connection that was used last, if the server has neither closed it nor is about to."""
        free = self._free.get(place)
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
        """Close what nobody has used for long."""
        now = self.loop.time()
        for place, free in list(self._free.items()):
            for connection in free:
                if connection.free_until <= now:
                    connection.free_since = 0.0
                    connection.transport.close()
            self._free[place] = [one for one in free if not one.transport.is_closing()]
            if not self._free[place]:
                del self._free[place]
        self._sweeping = self.loop.call_later(SWEEP_SECONDS, self._sweep) if self._free else None

    async def _opened(self, place: RequestTarget, limits: TimeLimits) -> UpstreamConnection:
        try:
            async with asyncio.timeout(limits.connect):
                return await self._connected(place)
        except TimeoutError:
            raise LostError("timeout", not_connected(limits)) from None
        except OSError as error:
            raise LostError("unreachable", f"cannot be reached: {why_not(error)}") from None

    async def _connected(self, place: RequestTarget) -> UpstreamConnection:
        loop = self.loop
        found = await loop.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
        sock = await aiohappyeyeballs.start_connection(found, happy_eyeballs_delay=0.25, interleave=1, loop=loop)
        try:
            _, connection = await loop.create_connection(
                lambda: UpstreamConnection(self, place),
                sock=sock,
                ssl=self._context() if place.is_secure else None,
                server_hostname=place.host if place.is_secure else None,
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
    """How long a connection may be used again: as configured, and shorter than its server says it waits."""
    said = headers.get("keep-alive")
    found = _SERVER_LIMIT.search(said[:200]) if said else None
    return limits.keep_alive if found is None else min(limits.keep_alive, int(found[1]) - KEEP_ALIVE_MARGIN)


def why_not(error: OSError) -> str:
    """Why there is no connection and what to check, in words that quote nothing of the address."""
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
