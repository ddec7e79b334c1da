"""The connections of clients: HTTP/1.1 over httptools, each request handed to the gateway without anything between.

    waiting ── first byte ──▶ head ── all of it ──▶ body ── all of it ──▶ waiting
       │ keep-alive             │ HEAD_SECONDS        │ the gateway reads it (`requests.py`), or, where it has
       ▼                        ▼                     │ answered without, LINGER_SECONDS
     closed                   closed ◀────────────────┘

An answer that its client leaves unread for UNREAD_SECONDS ends the connection, and the upstream's answer with it.
Who still speaks when its connection ends is not heard any more, but not cut off either (`_leave`): a connection that is
closed on what was not read takes the answer away from its client.

Laws: what is no body is never more than MAX_LOOSE bytes and a read. Trailers are no headers: they are dropped. Of a
body that nobody reads, no more than MAX_AHEAD bytes and a read are taken. Requests on one connection are answered in
their order, and what is no request after them. A body is what its request says, whatever else the request would like to
become. Who goes away is noticed by the request that is being answered, also when others wait behind it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, Never, cast
from urllib.parse import unquote

import httptools
from uvicorn import Config
from uvicorn.server import ServerState

from toolglot.gateway.app import Gateway
from toolglot.gateway.http.requests import (
    MAX_PAUSE_SECONDS,
    MAX_UPLOAD_SECONDS,
    ClientRequest,
    GoneError,
    Headers,
    Hold,
    ignore_size,
    read_pieces,
    refuse_large,
)
from toolglot.upstream.http.outbox import outbox_of

HEAD_SECONDS: Final = 30.0
"""That the line and the headers of a request may take, the first of a connection from its beginning on."""
LINGER_SECONDS: Final = 30.0
"""That the rest of a body may take which nobody reads any more."""
UNREAD_SECONDS: Final = 300.0
MAX_LOOSE: Final = 64 * 1024
"""Bytes that come in a row without completing a head, a piece of a body or a message."""
MAX_AHEAD: Final = 64 * 1024
MAX_WAITING: Final = 32
"""Requests behind the one that is being answered, with which nothing more is read."""
MAX_PIPELINED: Final = 256
"""The same where they came at once: the last one ends the connection, and those after it are to be asked again."""
MAX_UNHEARD: Final = 32 * 1024 * 1024
"""Bytes of a body that may still come when its connection has ended."""
MAX_NONSENSE: Final = 1024 * 1024
"""The same of what is no request."""
MAX_ADDRESS: Final = 32 * 1024
MAX_JOINED: Final = 64 * 1024
"""Bytes of an answer that are copied behind its head, to be sent with it."""
MAX_NAMES: Final = 256
MAX_NAME_LENGTH: Final = 40
"""Names of headers that are remembered: how many, and bytes of each."""
MAX_CACHED_LENGTH: Final = 200
"""Bytes of an address that is looked into once."""

_NOT_HTTP: Final = "Invalid HTTP request received."
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_JSON: Final = "content-type: application/json\r\n"
_CLOSE: Final = "connection: close\r\n"
_CHUNKED: Final = "transfer-encoding: chunked\r\n"
_LAST: Final = b"0\r\n\r\n"
_BODILESS: Final = frozenset({204, 304})
_WATCHED: Final = frozenset({"host", "transfer-encoding"})
"""Names of headers that do not count as often as they come."""
_HOST: Final = (b"Host", b"host")


class _WrongError(Exception):
    """A request is not read further."""


class BoundedProtocol(asyncio.Protocol):
    """One connection. uvicorn's server opens it, and closes it at its end (`shutdown`)."""

    __slots__ = (
        *("_again", "_came_last", "_due", "_gateway", "_head_bytes", "_headers", "_is_between", "_is_head_timed"),
        *(
            "_is_in_head",
            "_is_paused",
            "_is_stirred",
            "_loose",
            "_outbox",
            "_parser",
            "_pipeline",
            "_refused",
            "_running",
            "_state",
            "_status",
            "_timer",
            "_unread",
        ),
        *("_url", "_writable", "keep_alive_seconds", "loop", "transport"),
    )

    head_seconds = HEAD_SECONDS
    linger_seconds = LINGER_SECONDS
    unread_seconds = UNREAD_SECONDS
    pause_seconds = MAX_PAUSE_SECONDS
    upload_seconds = MAX_UPLOAD_SECONDS

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],  # noqa: ARG002 - as uvicorn's server calls it
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.loop: asyncio.AbstractEventLoop = _loop or asyncio.get_running_loop()
        self.keep_alive_seconds: float = config.timeout_keep_alive
        self.transport: asyncio.Transport
        self._gateway = cast("Gateway", config.app)
        self._outbox = outbox_of(self.loop)
        self._state = server_state
        self._parser: Any = self._new_parser()
        self._url = b""
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        self._again = b""
        """The head of a request that asks for an upgrade, without that."""
        self._status = 400
        """Of the answer to what cannot be read."""
        self._refused = b""
        """That answer, while others come before it."""
        self._is_in_head = True
        self._is_head_timed = False
        """A head has begun, and its time runs."""
        self._is_stirred = False
        """A head, a piece of a body or a message was completed by what was received last."""
        self._is_between = False
        """A message has ended, and not a byte of another has come."""
        self._loose = 0
        self._running: ConnectionRequest | None = None
        """The request that is being answered."""
        self._came_last: ConnectionRequest | None = None
        """The request whose body comes, or came last."""
        self._pipeline: deque[ConnectionRequest] | None = None
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
        if not self._gateway.connection_limit.takes(len(self._state.connections), transport):
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
        except httptools.HttpParserUpgrade as upgrade:
            if not self._stays_http(data, upgrade.args[0]):
                return
        except httptools.HttpParserError as error:
            # What a method of this class raised is its context: without memory, nothing is wrong with a request.
            self._refuse(503 if isinstance(error.__context__, MemoryError) else self._status)
            return
        if self._is_stirred:
            self._loose = 0
        else:
            self._loose += len(data)
            if self._loose > MAX_LOOSE:
                self._refuse(self._flooded())
                return
        if self._pipeline and self._is_stuffed():
            self.pause_reading()
        if self._is_in_head and not self._is_between and self._running is None and not self._is_head_timed:
            self._is_head_timed = True
            self._end_in(self.head_seconds)

    def _new_parser(self) -> Any:
        parser = httptools.HttpRequestParser(self)
        # What follows a request that ends its connection is not looked at, but the request is answered.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    def _stays_http(self, data: bytes, start: int) -> bool:
        """Read on after the head of a request that would like something else than HTTP to follow.

        The parser takes such a request to have no body. So its head is read once more, without the wish.
        """
        rest = memoryview(data)
        while True:
            rest = rest[start:]
            head, self._again = self._again, b""
            parser = self._parser = self._new_parser()
            try:
                parser.feed_data(head)
                parser.feed_data(rest)
            except httptools.HttpParserUpgrade as another:
                start = another.args[0]
            except httptools.HttpParserError:
                self._refuse(self._status)
                return False
            else:
                return True

    def _flooded(self) -> int:
        if not self._is_in_head or not self._url:
            return 400
        return 431 if self._headers or len(self._url) < MAX_ADDRESS else 414

    def _refuse(self, status: int) -> None:
        """What came is no request, or no body of one. Those before it are answered first."""
        running, broken, self._came_last = self._running, self._came_last, None
        self._parser = NullParser(self, MAX_NONSENSE)
        self._is_in_head = self._is_between = True
        if running is not None and broken is not running:
            if broken is not None and self._pipeline:
                self._pipeline.pop()
            self._refused = _refusal(status)
            return
        if running is not None:
            self._running = None
            running.lose()
            if running.is_begun:
                self.transport.abort()  # in the middle of an answer, there is no place for another
                return
        if broken is None or not broken.is_over:
            self.write(_refusal(status))
        self._leave()

    def unheard(self, is_too_much: bool) -> None:
        """Something came that is not looked at."""
        self._is_stirred = self._is_between = True
        if not is_too_much:
            return
        if self._running is None:
            self.transport.abort()
        else:
            self.pause_reading()

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

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_in_head:
            self._head_bytes += len(name) + len(value)
            known = _names.get(name)
            if known is not None:
                self._headers[known] = value.decode("latin-1")
            elif name in _HOST and "host" not in self._headers:
                self._headers["host"] = value.decode("latin-1")
            else:
                self._add_header(_lower(name), value.decode("latin-1"))

    def _add_header(self, name: str, value: str) -> None:
        """One whose name is not remembered: one that may come once, or any other."""
        if name in _WATCHED and name in self._headers:
            if name == "host":
                self._wrong(400)
            value = f"{self._headers[name]}, {value}"
        self._headers[name] = value

    def _wrong(self, status: int) -> Never:
        self._status = status
        raise _WrongError

    def on_headers_complete(self) -> None:
        parser, url, headers = self._parser, self._url, self._headers
        method = parser.get_method()
        if parser.should_upgrade():
            self._again = self._plain_head(method)
            return
        self._is_in_head = False
        self._is_stirred = True
        self._is_head_timed = False
        self._due = None
        is_short = len(url) <= MAX_CACHED_LENGTH and b"?" not in url  # what is asked for may be a key
        path, raw_path, query = _remembered_address(url) if is_short else self._long_address(url)
        version = parser.get_http_version()
        call = ConnectionRequest(self, method == b"HEAD", version == "1.1")
        if not call.is_modern:
            call.keeps_alive = False
            if version != "1.0":
                self._wrong(505)
        else:
            call.keeps_alive = parser.should_keep_alive()
            if "host" not in headers:
                self._wrong(400)
            if "expect" in headers:
                call.wants_go_ahead = headers["expect"].lower() == "100-continue"
        if "transfer-encoding" in headers and _is_coded(headers["transfer-encoding"]):
            self._wrong(501)
        call.request = ClientRequest(call, method.decode("ascii"), path, raw_path, query, headers, self._head_bytes)
        if self._running is None:
            self._came_last = call
            self._start(call)
        else:
            self._wait(call)

    def _plain_head(self, method: bytes) -> bytes:
        """The head that was read, without the wish for an upgrade."""
        if method == b"CONNECT":
            self._wrong(501)
        lines = [f"{name}: {value}\r\n" for name, value in self._headers.items() if name != "upgrade"]
        if not self._parser.should_keep_alive():
            lines.append(_CLOSE)  # of a header that came twice, the last is known only
        version = self._parser.get_http_version().encode()
        return b"%b %b HTTP/%b\r\n%b\r\n" % (method, self._url, version, "".join(lines).encode("latin-1"))

    def _long_address(self, url: bytes) -> tuple[str, str, str]:
        if len(url) > MAX_ADDRESS:
            self._wrong(414)
        return _address(url)

    def _wait(self, call: ConnectionRequest) -> None:
        if self._pipeline is None:
            self._pipeline = deque()
        if len(self._pipeline) >= MAX_PIPELINED:
            self._pipeline[-1].keeps_alive = False
            raise _WrongError
        self._came_last = call
        self._pipeline.append(call)

    def _is_stuffed(self) -> bool:
        """Whether so much waits to be answered that nothing more is read."""
        waiting = self._pipeline
        if not waiting:
            return False
        return len(waiting) >= MAX_WAITING or sum([call.held for call in waiting]) > MAX_AHEAD

    def on_body(self, body: bytes) -> None:
        self._is_stirred = True
        call = self._came_last
        if call is not None and not call.is_over:
            call.add(body)

    def on_message_complete(self) -> None:
        if self._again:
            return
        self._is_in_head = self._is_stirred = self._is_between = True
        call, self._came_last = self._came_last, None
        if call is not None and not call.is_over:
            call.is_whole = True
            call.wake()
        elif self._running is None:
            self._end_in(self.keep_alive_seconds)

    # --- requests in their order --------------------------------------------------------------------

    def _start(self, call: ConnectionRequest) -> None:
        self._running = call
        assert call.request is not None  # noqa: S101 - it has just come
        task = call.task = self.loop.create_task(call.run(self._gateway, call.request))
        self._state.tasks.add(task)

    def ended(self, call: ConnectionRequest) -> None:
        """All of an answer is written: the request that waits is next."""
        self._state.total_requests += 1
        self._running = None
        if not call.keeps_alive:
            self._leave()
            return
        if self.transport.is_closing():
            return
        if self._pipeline:
            self._start(self._pipeline.popleft())
        elif self._refused:
            self.write(self._refused)
            self._leave()
            return
        elif not self._is_in_head:
            self._end_in(self.linger_seconds)
        elif self._is_between:
            self._end_in(self.keep_alive_seconds)
        else:
            self._is_head_timed = True
            self._end_in(self.head_seconds)
        self.resume_reading()

    def forget(self, task: asyncio.Task[None] | None) -> None:
        if task is not None:
            self._state.tasks.discard(task)

    def pause_reading(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        if self._is_paused and not self._is_stuffed():
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

    def _leave(self) -> None:
        """The end after an answer, for a client that may not have said everything: it is told that this was all, and
        has some time to end what it says. To close at once might reset the connection, and the answer be lost."""
        is_deaf = type(self._parser) is NullParser
        if self.transport.is_closing():
            return
        if not (is_deaf or self._is_paused or not self._is_in_head) or not self.transport.can_write_eof():
            self.close()
            return
        self._outbox.flush()
        self._came_last = self._pipeline = None
        if not is_deaf:
            self._parser = NullParser(self, MAX_UNHEARD)
        self.transport.write_eof()
        self.resume_reading()
        self._end_in(self.linger_seconds)

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


class NullParser:
    """In the place of a parser, where nothing that comes is looked at any more."""

    __slots__ = ("_connection", "_left")

    def __init__(self, connection: BoundedProtocol, most: int) -> None:
        self._connection = connection
        self._left = most

    def feed_data(self, data: bytes) -> None:
        self._left -= len(data)
        self._connection.unheard(self._left < 0)


class ConnectionRequest:
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
        self.is_gone: bool = False
        self.keeps_alive: bool = True
        self.wants_go_ahead: bool = False
        self.is_whole = False
        """All of the body has come."""
        self.is_begun: bool = False
        self.is_over: bool = False
        """All of the answer is written."""
        self.is_chunked: bool = False
        self._pieces: list[bytes] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._left: Callable[[], None] | None = None

    @property
    def held(self) -> int:
        """Bytes of a request that waits."""
        return self._size + (self.request.header_bytes if self.request is not None else 0)

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
        if self._size > MAX_AHEAD:
            self._connection.pause_reading()
        self.wake()

    def wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def read(self, max_bytes: int, hold: Hold = ignore_size) -> bytes:
        if not self.is_whole:
            connection = self._connection
            limits = {"pause": connection.pause_seconds, "upload": connection.upload_seconds}
            return await read_pieces(self._more, max_bytes, hold, **limits)
        if self.is_gone:
            raise GoneError
        refuse_large(self._size, max_bytes)
        hold(self._size)
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
        if self.is_whole:
            connection.resume_reading()  # or nobody would notice that the client goes away
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
        elif len(data) > MAX_JOINED:
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
    if len(_names) < MAX_NAMES and len(name) <= MAX_NAME_LENGTH and lower not in _WATCHED:
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


def _is_coded(codings: str) -> bool:
    """Whether a body is coded before it is cut into chunks. Where it is not in chunks at last, the parser says so."""
    names = [name.strip().lower() for name in codings.split(",")]
    return len(names) > 1 and names[-1] == "chunked"


@lru_cache(maxsize=16)
def _refusal(status: int) -> bytes:
    """The answer to what is no request that can be read."""
    text = _NOT_HTTP if status == HTTPStatus.BAD_REQUEST else f"{HTTPStatus(status).phrase}."
    head = f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(text)}\r\n{_CLOSE}\r\n"
    return _status_line(status) + f"{head}{text}".encode()


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
