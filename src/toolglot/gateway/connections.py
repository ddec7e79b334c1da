"""The connections of clients: HTTP/1.1 over httptools, each request handed to the gateway without anything between.

    waiting ── first byte ──▶ head ── all of it ──▶ body ── all of it ──▶ waiting
       │ keep-alive             │ HEAD_SECONDS        │ the gateway reads it (`requests.py`), or, where it has
       ▼                        ▼                     │ answered without, LINGER_SECONDS
     closed                   closed ◀────────────────┘

An answer that its client leaves unread for UNREAD_SECONDS ends the connection, and the upstream's answer with it.

Laws: what is no body is never more than MOST_LOOSE bytes and a read. Trailers are no headers: they are dropped. Of a
body that nobody reads, no more than MOST_AHEAD bytes and a read are taken. Requests on one connection are answered in
their order. Who goes away is noticed by the request that is being answered, also when others wait behind it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, cast
from urllib.parse import unquote

import httptools
from uvicorn import Config
from uvicorn.server import ServerState

from toolglot.gateway.app import Gateway
from toolglot.gateway.requests import ClientRequest, GoneError, Headers, read_pieces, refuse_large
from toolglot.upstream.outbox import outbox_of

HEAD_SECONDS: Final = 30.0
"""That the line and the headers of a request may take, the first of a connection from its beginning on."""
LINGER_SECONDS: Final = 30.0
"""That the rest of a body may take which nobody reads any more."""
UNREAD_SECONDS: Final = 300.0
MOST_LOOSE: Final = 64 * 1024
"""Bytes that come in a row without completing a head, a piece of a body or a message."""
MOST_AHEAD: Final = 64 * 1024
MOST_PIPELINED: Final = 32
MOST_JOINED: Final = 64 * 1024
"""Bytes of an answer that are copied behind its head, to be sent with it."""
MOST_NAMES: Final = 256
LONGEST_NAME: Final = 40
"""Names of headers that are remembered: how many, and bytes of each."""
LONGEST_REMEMBERED: Final = 200
"""Bytes of an address that is looked into once."""

_NOT_HTTP: Final = b"Invalid HTTP request received."
_REFUSED: Final = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n"
    b"connection: close\r\n\r\n%s" % (len(_NOT_HTTP), _NOT_HTTP)
)
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_JSON: Final = "content-type: application/json\r\n"
_CLOSE: Final = "connection: close\r\n"
_CHUNKED: Final = "transfer-encoding: chunked\r\n"
_LAST: Final = b"0\r\n\r\n"
_BODILESS: Final = frozenset({204, 304})


class BoundedProtocol(asyncio.Protocol):
    """One connection. uvicorn's server opens it, and closes it at its end (`shutdown`)."""

    __slots__ = (
        *("_came_last", "_due", "_expects", "_gateway", "_head_bytes", "_headers", "_is_between", "_is_head_timed"),
        *(
            "_is_in_head",
            "_is_paused",
            "_is_stirred",
            "_loose",
            "_outbox",
            "_parser",
            "_pipeline",
            "_running",
            "_state",
            "_timer",
            "_unread",
        ),
        *("_url", "_writable", "keep_alive_seconds", "loop", "transport"),
    )

    head_seconds = HEAD_SECONDS
    linger_seconds = LINGER_SECONDS
    unread_seconds = UNREAD_SECONDS

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],  # noqa: ARG002 - as uvicorn's server calls it
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.loop = _loop or asyncio.get_running_loop()
        self.keep_alive_seconds: float = config.timeout_keep_alive
        self.transport: asyncio.Transport
        self._gateway = cast("Gateway", config.app)
        self._outbox = outbox_of(self.loop)
        self._state = server_state
        self._parser: Any = httptools.HttpRequestParser(self)
        # What follows a request that ends its connection is not looked at, but the request is answered.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._url = b""
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        self._expects = False
        self._is_in_head = True
        self._is_head_timed = False
        """A head has begun, and its time runs."""
        self._is_stirred = False
        """A head, a piece of a body or a message was completed by what was received last."""
        self._is_between = False
        """A message has ended, and not a byte of another has come."""
        self._loose = 0
        self._running: Call | None = None
        """The request that is being answered."""
        self._came_last: Call | None = None
        """The request whose body comes, or came last."""
        self._pipeline: deque[Call] | None = None
        """Those that wait behind the one that is being answered."""
        self._is_paused = False
        """Nothing is read."""
        self._writable: asyncio.Future[None] | None = None
        """While it is there, nothing should be written."""
        self._due: float | None = None
        """When the connection ends, unless something happens before; by a timer that looks at this when it is due, so
        that most requests set none."""
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    # --- the connection -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not self._gateway.room.takes(len(self._state.connections), transport):
            return
        self.transport = cast("asyncio.Transport", transport)
        self._state.connections.add(self)  # type: ignore[arg-type]
        self._is_head_timed = True
        self._end_in(self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - whatever it was
        self._state.connections.discard(self)
        self._due = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.resume_writing()
        running, self._running, self._came_last, self._pipeline = self._running, None, None, None
        self._parser = None
        if running is not None:
            running.lose()

    def eof_received(self) -> None:
        """Who has said everything is not there any more, but for what was answered before."""
        self._outbox.flush()

    def data_received(self, data: bytes) -> None:
        self._is_stirred = self._is_between = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # to nothing: it is answered as what it is besides
        except httptools.HttpParserError:
            self._refuse()
            return
        if self._is_stirred:
            self._loose = 0
        else:
            self._loose += len(data)
            if self._loose > MOST_LOOSE:
                self.transport.abort()
                return
        if self._is_in_head and not self._is_between and not self._is_head_timed:
            self._is_head_timed = True
            self._end_in(self.head_seconds)

    def _refuse(self) -> None:
        running = self._running
        if running is not None and running.is_begun:
            self.transport.abort()  # in the middle of an answer, there is no place for another
            return
        self.write(_REFUSED)
        self.close()

    def shutdown(self) -> None:
        """The server ends."""
        if self._running is None:
            self.close()
        else:
            self._running.keeps_alive = False

    # --- what was read ------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._is_between = False
        self._url = b""
        self._headers = {}
        self._head_bytes = 0
        self._expects = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_in_head:
            self._head_bytes += len(name) + len(value)
            self._headers[_names.get(name) or _lower(name)] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._is_stirred = True
        self._is_head_timed = False
        self._due = None
        parser, url, headers = self._parser, self._url, self._headers
        is_short = len(url) <= LONGEST_REMEMBERED and b"?" not in url  # what is asked for may be a key
        path, raw_path, query = _remembered_address(url) if is_short else _address(url)
        method = parser.get_method()
        call = Call(self, method == b"HEAD", parser.get_http_version() != "1.0")
        call.keeps_alive = call.is_modern and parser.should_keep_alive()
        if "expect" in headers:
            call.wants_go_ahead = headers["expect"].lower() == "100-continue"
        call.request = ClientRequest(call, method.decode("ascii"), path, raw_path, query, headers, self._head_bytes)
        self._came_last = call
        if self._running is None:
            self._start(call)
            return
        self.pause_reading()
        if self._pipeline is None:
            self._pipeline = deque()
        self._pipeline.append(call)
        if len(self._pipeline) > MOST_PIPELINED:
            self.transport.abort()

    def on_body(self, body: bytes) -> None:
        self._is_stirred = True
        call = self._came_last
        if call is not None and not call.is_over:
            call.add(body)

    def on_message_complete(self) -> None:
        self._is_in_head = self._is_stirred = self._is_between = True
        call, self._came_last = self._came_last, None
        if call is not None and not call.is_over:
            call.is_whole = True
            call.wake()
        elif self._running is None:
            self._end_in(self.keep_alive_seconds)

    # --- requests in their order --------------------------------------------------------------------

    def _start(self, call: Call) -> None:
        self._running = call
        assert call.request is not None  # noqa: S101 - it has just come
        task = call.task = self.loop.create_task(call.run(self._gateway, call.request))
        self._state.tasks.add(task)

    def ended(self, call: Call) -> None:
        """All of an answer is written: the request that waits is next."""
        self._state.total_requests += 1
        self._running = None
        if not call.keeps_alive:
            self.close()
        if self.transport.is_closing():
            return
        self.resume_reading()
        if self._pipeline:
            self._start(self._pipeline.popleft())
        elif not self._is_in_head:
            self._end_in(self.linger_seconds)
        elif not self._is_head_timed:
            self._end_in(self.keep_alive_seconds)

    def forget(self, task: asyncio.Task[None] | None) -> None:
        if task is not None:
            self._state.tasks.discard(task)

    def pause_reading(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self.transport.resume_reading()

    # --- what is written ----------------------------------------------------------------------------

    def pause_writing(self) -> None:
        if self._writable is None:
            self._writable = self.loop.create_future()
        if self._unread is None:
            self._unread = self.loop.call_later(self.unread_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def write(self, *pieces: bytes) -> None:
        self._outbox.flush()
        self.transport.writelines(pieces)

    def close(self) -> None:
        """The end, once all that was answered is written."""
        self._outbox.flush()
        self.transport.close()

    def write_soon(self, data: bytes) -> None:
        """Write all of an answer on a connection that is kept, with those that are ready at the same time."""
        self._outbox.send(self.transport, data)

    @property
    def is_full(self) -> bool:
        """Whether the client has to read first."""
        return self._writable is not None

    async def drained(self) -> None:
        while self._writable is not None:
            await asyncio.shield(self._writable)

    def head(self, status: int, own: str, headers: Headers) -> bytes:
        """The head of an answer."""
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        if not (lines.isascii() and lines.count("\r") == len(headers) and lines.replace("\r\n", "").isprintable()):
            lines = "".join([f"{name}: {_plain(value)}\r\n" for name, value in headers.items()])
        return b"%b%b%b\r\n" % (_status_line(status), _written(self._state.default_headers), (own + lines).encode())

    # --- time ---------------------------------------------------------------------------------------

    def _end_in(self, seconds: float) -> None:
        due = self._due = self.loop.time() + seconds
        timer = self._timer
        if timer is not None and timer.when() > due:
            timer.cancel()
            timer = None
        if timer is None:
            self._timer = self.loop.call_at(due, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._due is None:
            return
        if self._due > self.loop.time():
            self._timer = self.loop.call_at(self._due, self._look)
        else:
            self.close()


class Call:
    """One request on a connection, and its answer: a `Caller`."""

    __slots__ = (
        *("_connection", "_left", "_pieces", "_size", "_waiter", "is_begun", "is_chunked", "is_gone", "is_head"),
        *("is_modern", "is_over", "is_whole", "keeps_alive", "request", "task", "wants_go_ahead"),
    )

    def __init__(self, connection: BoundedProtocol, is_head: bool, is_modern: bool) -> None:
        self._connection = connection
        self.is_head = is_head
        self.is_modern = is_modern
        """It is HTTP/1.1: it knows chunks."""
        self.request: ClientRequest | None = None
        self.task: asyncio.Task[None] | None = None
        self.is_gone = False
        self.keeps_alive = True
        self.wants_go_ahead = False
        self.is_whole = False
        """All of the body has come."""
        self.is_begun = False
        self.is_over = False
        """All of the answer is written."""
        self.is_chunked = False
        self._pieces: list[bytes] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._left: Callable[[], None] | None = None

    async def run(self, gateway: Gateway, request: ClientRequest) -> None:
        self.request = None  # it is the gateway's now, and goes with it
        try:
            await gateway.serve(request)
        finally:
            connection = self._connection
            if not self.is_over and not self.is_gone:
                connection.close()
            connection.forget(self.task)
            self.task = self._left = None

    # --- who goes away ------------------------------------------------------------------------------

    def watch(self, left: Callable[[], None]) -> None:
        self._left = left

    def let_go(self) -> None:
        self._left = None

    def lose(self) -> None:
        """The connection is no more."""
        self.is_gone = True
        if not self.is_whole:
            self.wake()
        elif self._left is not None:
            self._left()

    # --- the body -----------------------------------------------------------------------------------

    def add(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > MOST_AHEAD:
            self._connection.pause_reading()
        self.wake()

    def wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def read(self, most: int) -> bytes:
        if not self.is_whole:
            return await read_pieces(self._more, most)
        if self.is_gone:
            raise GoneError
        refuse_large(self._size, most)
        self._connection.resume_reading()
        return self._taken()

    def _taken(self) -> bytes:
        pieces, self._pieces, self._size = self._pieces, [], 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _more(self) -> tuple[bytes, bool]:
        connection = self._connection
        if self.wants_go_ahead and not connection.transport.is_closing():
            self.wants_go_ahead = False
            connection.write(_CONTINUE)
        if not self._pieces and not self.is_whole and not self.is_gone:
            connection.resume_reading()
            self._waiter = connection.loop.create_future()
            await self._waiter
        if self.is_gone:
            raise GoneError
        return self._taken(), self.is_whole

    # --- the answer ---------------------------------------------------------------------------------

    async def answer(self, status: int, headers: Headers, data: bytes) -> None:
        connection = self._connection
        if connection.is_full:
            await connection.drained()
        if self.is_gone:
            return
        own = _JSON if "content-type" not in headers else ""
        if "content-length" not in headers:
            own = f"{own}content-length: {len(data)}\r\n"
        head = connection.head(status, own + self._closing(headers), headers)
        if self.is_head:
            connection.write(head)
        elif len(data) > MOST_JOINED:
            connection.write(head, data)
        elif self.keeps_alive:
            connection.write_soon(head + data)
        else:
            connection.write(head + data)
        self._end()

    async def begin(self, status: int, headers: Headers) -> None:
        connection = self._connection
        if connection.is_full:
            await connection.drained()
        if self.is_gone:
            return
        self.is_begun = True
        has_body = not self.is_head and status not in _BODILESS
        self.is_chunked = has_body and self.is_modern
        own = (_CHUNKED if self.is_chunked else "") + self._closing(headers)
        connection.write(connection.head(status, own, headers))

    def _closing(self, headers: Headers) -> str:
        if headers.get("connection") == "close":
            self.keeps_alive = False
            return ""
        return "" if self.keeps_alive else _CLOSE

    async def give(self, data: bytes) -> None:
        connection = self._connection
        if connection.is_full:
            await connection.drained()
        if self.is_gone or not data:
            return
        if self.is_chunked:
            connection.transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        elif not self.is_head and not self.is_modern:
            connection.transport.write(data)

    async def end(self) -> None:
        connection = self._connection
        if connection.is_full:
            await connection.drained()
        if self.is_gone:
            return
        if self.is_chunked:
            connection.transport.write(_LAST)
        self._end()

    def _end(self) -> None:
        self.is_begun = self.is_over = True
        self._pieces = []
        self._connection.ended(self)


# --- heads ------------------------------------------------------------------------------------------


_names: Final[dict[bytes, str]] = {}
"""Names of headers as they came, and as they are known: few clients have others than most."""


def _lower(name: bytes) -> str:
    lower = name.decode("latin-1").lower()
    if len(_names) < MOST_NAMES and len(name) <= LONGEST_NAME:
        _names[name] = lower
    return lower


def _address(url: bytes) -> tuple[str, str, str]:
    """The path of an address, as it came, and its query."""
    parsed = httptools.parse_url(url)
    raw = parsed.path.decode("ascii")
    return unquote(raw) if "%" in raw else raw, raw, (parsed.query or b"").decode("latin-1")


@lru_cache(maxsize=256)
def _remembered_address(url: bytes) -> tuple[str, str, str]:
    return _address(url)


@lru_cache(maxsize=1000)
def _status_line(status: int) -> bytes:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()


_last_written: tuple[list[tuple[bytes, bytes]], bytes] = ([], b"")


def _written(headers: list[tuple[bytes, bytes]]) -> bytes:
    """What the server puts before every answer: the date. There is a new list of it each second."""
    global _last_written  # noqa: PLW0603 - the one of this second
    known, data = _last_written
    if known is not headers:
        data = b"".join([b"%b: %b\r\n" % pair for pair in headers])
        _last_written = (headers, data)
    return data


def _plain(value: str) -> str:
    """What no header may hold is left out of it."""
    return "".join([char if " " <= char <= "~" else "?" for char in value])
