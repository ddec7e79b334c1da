"""The connections of clients: HTTP/1.1 over httptools. Each request goes straight to the gateway.

    waiting ── first byte ──▶ head ── all of it ──▶ body ── all of it ──▶ waiting
       │ keep-alive             │ HEAD_SECONDS        │ the gateway reads it (`requests.py`), or, if it has
       ▼                        ▼                     │ responded before, LINGER_SECONDS
     closed                   closed ◀────────────────┘

A response that its client leaves unread for UNREAD_SECONDS ends the connection, and the call to the upstream with it.
A client that still sends when its connection ends is ignored, but not cut off (`_half_close`): to close a connection
with unread data can reset it, and the client loses the response.

Laws: outside of bodies no more than MAX_UNPARSED bytes and one read are held. Trailers are dropped. Of a body that is
not read, no more than MAX_AHEAD bytes and one read are held. Requests on one connection are answered in their order,
and garbage after them. The length of a body is what its request says, also if the request asks for an upgrade. A
disconnect reaches the request that is being answered, also when others wait behind it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import Any, Final, Never, cast

import httptools
from uvicorn import Config
from uvicorn.server import ServerState

from toolglot.gateway.app import Gateway
from toolglot.gateway.http.connection_request import MAX_AHEAD, ConnectionRequest
from toolglot.gateway.http.message_heads import (
    CLOSE,
    COUNTED_ONCE,
    is_encoded,
    known_names,
    lower_name,
    parse_url,
    parse_url_cached,
    refusal_bytes,
    response_head,
)
from toolglot.gateway.http.requests import (
    MAX_PAUSE_SECONDS,
    MAX_UPLOAD_SECONDS,
    ClientRequest,
    GoneError,
    Headers,
    refusal,
)
from toolglot.gateway.http.socket_connection import SocketConnection
from toolglot.gateway.http.writing_protocol import WritingProtocol
from toolglot.upstream.http.outbox import outbox_of

HEAD_SECONDS: Final = 30.0
"""For the head of a request; for the first one from the start of the connection."""
LINGER_SECONDS: Final = 30.0
"""For the rest of a body that is not read any more."""
MAX_UNPARSED: Final = 64 * 1024
"""Bytes that come in a row without completing a head, a piece of a body or a message."""
MAX_WAITING: Final = 32
"""Requests behind the one in progress; with so many the connection is not read."""
MAX_PIPELINED: Final = 256
"""The same if they come at once: the last one ends the connection, and the client sends the others again."""
MAX_IGNORED: Final = 32 * 1024 * 1024
"""Bytes of a body that may still come after the connection was half-closed."""
MAX_IGNORED_GARBAGE: Final = 1024 * 1024
"""The same if they are not HTTP."""
MAX_URL: Final = 32 * 1024
MAX_CACHED_LENGTH: Final = 200
"""Bytes of a URL that is parsed once."""

_HOST: Final = (b"Host", b"host")


class _RejectedError(Exception):
    """The rest of a request is not read."""


class BoundedProtocol(WritingProtocol):
    """One connection. uvicorn's server opens it, and closes it at its end (`shutdown`)."""

    __slots__ = (
        *("_deadline", "_gateway", "_has_progress", "_head_again", "_head_bytes", "_headers", "_is_head_timed"),
        *("_is_idle", "_is_in_head", "_is_paused", "_outbox", "_parser", "_pipeline", "_receiving"),
        *("_refused", "_running", "_state", "_status", "_timer", "_unparsed"),
        *("_url", "_wants_socket", "keep_alive_seconds"),
    )

    head_seconds = HEAD_SECONDS
    linger_seconds = LINGER_SECONDS
    pause_seconds = MAX_PAUSE_SECONDS
    upload_seconds = MAX_UPLOAD_SECONDS
    socket_type = SocketConnection
    """What takes its place after the handshake of a WebSocket."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],  # noqa: ARG002 - as uvicorn's server calls it
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(_loop or asyncio.get_running_loop())
        self.keep_alive_seconds: float = config.timeout_keep_alive
        self._gateway = cast("Gateway", config.app)
        self._outbox = outbox_of(self.loop)
        self._state = server_state
        self._parser: Any = self._new_parser()
        self._url = b""
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        self._head_again = b""
        """The head of a request that asks for an upgrade, without that header."""
        self._wants_socket = False
        """That request asks for a WebSocket."""
        self._status = 400
        """The status for what cannot be parsed."""
        self._refused = b""
        """The response to it, while others come first."""
        self._is_in_head = True
        self._is_head_timed = False
        """A head has begun, and its time is running."""
        self._has_progress = False
        """The bytes that came last completed a head, a piece of a body or a message."""
        self._is_idle = False
        """A message has ended, and no byte of another has come."""
        self._unparsed = 0
        self._running: ConnectionRequest | None = None
        """The request in progress."""
        self._receiving: ConnectionRequest | None = None
        """The request whose body comes, or came last."""
        self._pipeline: deque[ConnectionRequest] | None = None
        """Requests that wait behind the one in progress."""
        self._is_paused = False
        """The connection is not read."""
        self._deadline: float | None = None
        """When the connection ends, unless something happens before. The timer checks it, so that most requests set no
        timer."""
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_ending(self) -> bool:
        """Whether the gateway shuts down: then a connection ends with the response."""
        return self._gateway.shutdown.is_draining

    # --- the connection -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not self._gateway.connection_limit.accepts(len(self._state.connections), transport):
            return
        self.transport = cast("asyncio.Transport", transport)
        self._state.connections.add(self)  # type: ignore[arg-type]
        self._is_head_timed = True
        self._end_in(self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._state.connections.discard(self)
        self._deadline = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.resume_writing()
        running, self._running, self._receiving, self._pipeline = self._running, None, None, None
        self._parser = None
        if running is not None:
            running.lose()

    def eof_received(self) -> None:
        """The client has sent everything. What was answered before is still written."""
        self._outbox.flush()

    def data_received(self, data: bytes) -> None:
        self._has_progress = self._is_idle = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if not self._ignore_upgrade(data, upgrade.args[0]):
                return
        except httptools.HttpParserError as error:
            # What a method of this class raised is its context. A lack of memory is not the client's mistake.
            self._refuse(503 if isinstance(error.__context__, MemoryError) else self._status)
            return
        if self._has_progress:
            self._unparsed = 0
        else:
            self._unparsed += len(data)
            if self._unparsed > MAX_UNPARSED:
                self._refuse(self._oversize_status())
                return
        if self._pipeline and self._is_backlogged():
            self.pause_reading()
        if self._is_in_head and not self._is_idle and self._running is None and not self._is_head_timed:
            self._is_head_timed = True
            self._end_in(self.head_seconds)

    def _new_parser(self) -> Any:
        parser = httptools.HttpRequestParser(self)
        # What follows a request with `connection: close` is ignored, and the request is answered.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    def _ignore_upgrade(self, data: bytes, start: int) -> bool:
        """Read on after the head of a request that asks for an upgrade.

        The parser assumes that such a request has no body. So its head is parsed once more, without that header.
        """
        rest = memoryview(data)
        while True:
            rest = rest[start:]
            head, self._head_again = self._head_again, b""
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

    def _oversize_status(self) -> int:
        if not self._is_in_head or not self._url:
            return 400
        return 431 if self._headers or len(self._url) < MAX_URL else 414

    def _refuse(self, status: int) -> None:
        """The bytes are not a request, or not a body. Requests before them are answered first."""
        running, broken, self._receiving = self._running, self._receiving, None
        self._parser = IgnoringParser(self, MAX_IGNORED_GARBAGE)
        self._is_in_head = self._is_idle = True
        if running is not None and broken is not running:
            if broken is not None and self._pipeline:
                self._pipeline.pop()
            self._refused = refusal_bytes(status)
            return
        if running is not None:
            self._running = None
            running.lose()
            if running.is_begun:
                self.transport.abort()  # in the middle of a response there cannot be another one
                return
        if broken is None or not broken.is_over:
            self.write(refusal_bytes(status))
        self._half_close()

    def count_ignored(self, is_too_much: bool) -> None:
        """Bytes came that are ignored."""
        self._has_progress = self._is_idle = True
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

    # --- reading ------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._is_idle = False
        self._url = b""
        self._headers = {}
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_in_head:
            self._head_bytes += len(name) + len(value)
            known = known_names.get(name)
            if known is not None:
                self._headers[known] = value.decode("latin-1")
            elif name in _HOST and "host" not in self._headers:
                self._headers["host"] = value.decode("latin-1")
            else:
                self._add_header(lower_name(name), value.decode("latin-1"))

    def _add_header(self, name: str, value: str) -> None:
        """Add a header whose name is not cached."""
        if name in COUNTED_ONCE and name in self._headers:
            if name == "host":
                self._reject(400)
            value = f"{self._headers[name]}, {value}"
        self._headers[name] = value

    def _reject(self, status: int) -> Never:
        self._status = status
        raise _RejectedError

    def on_headers_complete(self) -> None:
        parser, url, headers = self._parser, self._url, self._headers
        method = parser.get_method()
        if parser.should_upgrade():
            self._head_again = self._plain_head(method)
            self._wants_socket = headers.get("upgrade", "").strip().lower() == "websocket"
            return
        self._is_in_head = False
        self._has_progress = True
        self._is_head_timed = False
        self._deadline = None
        is_short = len(url) <= MAX_CACHED_LENGTH and b"?" not in url  # a query may have a key
        path, raw_path, query = parse_url_cached(url) if is_short else self._parse_long_url(url)
        version = parser.get_http_version()
        call = ConnectionRequest(self, method == b"HEAD", version == "1.1")
        if not call.is_http11:
            call.keeps_alive = False
            if version != "1.0":
                self._reject(505)
        else:
            call.keeps_alive = parser.should_keep_alive()
            if "host" not in headers:
                self._reject(400)
            if "expect" in headers:
                call.expects_continue = headers["expect"].lower() == "100-continue"
        if "transfer-encoding" in headers and is_encoded(headers["transfer-encoding"]):
            self._reject(501)
        request = ClientRequest(call, method.decode("ascii"), path, raw_path, query, headers, self._head_bytes)
        if self._wants_socket:
            self._wants_socket = False
            if call.is_http11 and "sec-websocket-key" in headers:
                request.accept_socket = partial(self._accept_socket, call, request)
        call.request = request
        if self._running is None:
            self._receiving = call
            self._start(call)
        else:
            self._enqueue(call)

    def _plain_head(self, method: bytes) -> bytes:
        """The head that was read, without `upgrade`."""
        if method == b"CONNECT":
            self._reject(501)
        lines = [f"{name}: {value}\r\n" for name, value in self._headers.items() if name != "upgrade"]
        if not self._parser.should_keep_alive():
            lines.append(CLOSE)  # of a header that came twice, only the last is known
        version = self._parser.get_http_version().encode()
        return b"%b %b HTTP/%b\r\n%b\r\n" % (method, self._url, version, "".join(lines).encode("latin-1"))

    async def _accept_socket(
        self, call: ConnectionRequest, request: ClientRequest, headers: Headers, max_bytes: int
    ) -> SocketConnection:
        """Accept the WebSocket of a request: the connection is one from now on."""
        from toolglot.gateway.http.socket_frames import SocketFrames  # noqa: PLC0415 - its library is large

        frames = SocketFrames(max_bytes)
        agreed = frames.accept(request.raw_path, {**request.headers, "upgrade": "websocket"})
        await self.wait_writable()
        if call.is_gone:
            raise GoneError
        if self._pipeline or self._refused or not call.is_body_complete or not self._is_idle:
            raise refusal("bad_request", "a WebSocket handshake has no body, and nothing may follow it at once", 400)
        self.write(self.head(101, "", {**agreed, **headers}))
        self.resume_reading()
        self._running, self._deadline, call.is_over = None, None, True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        gateway, connections = self._gateway, self._state.connections
        connections.discard(self)
        socket = self.socket_type(
            self.transport,
            frames,
            gateway.budget.share(),
            ping_seconds=gateway.config.gateway.ping_seconds,
            on_lost=connections.discard,
        )
        connections.add(socket)  # type: ignore[arg-type]
        self.transport.set_protocol(socket)
        self._state.total_requests += 1
        return socket

    def _parse_long_url(self, url: bytes) -> tuple[str, str, str]:
        if len(url) > MAX_URL:
            self._reject(414)
        return parse_url(url)

    def _enqueue(self, call: ConnectionRequest) -> None:
        if self._pipeline is None:
            self._pipeline = deque()
        if len(self._pipeline) >= MAX_PIPELINED:
            self._pipeline[-1].keeps_alive = False
            raise _RejectedError
        self._receiving = call
        self._pipeline.append(call)

    def _is_backlogged(self) -> bool:
        """Whether so many requests wait that the connection is not read."""
        waiting = self._pipeline
        if not waiting:
            return False
        return len(waiting) >= MAX_WAITING or sum([call.held for call in waiting]) > MAX_AHEAD

    def on_body(self, body: bytes) -> None:
        self._has_progress = True
        call = self._receiving
        if call is not None and not call.is_over:
            call.add(body)

    def on_message_complete(self) -> None:
        if self._head_again:
            return
        self._is_in_head = self._has_progress = self._is_idle = True
        call, self._receiving = self._receiving, None
        if call is not None and not call.is_over:
            call.is_body_complete = True
            call.wake()
        elif self._running is None:
            self._end_in(self.keep_alive_seconds)

    # --- requests in their order --------------------------------------------------------------------

    def _start(self, call: ConnectionRequest) -> None:
        self._running = call
        assert call.request is not None  # noqa: S101 - it has just come
        task = call.task = self.loop.create_task(call.run(self._gateway, call.request))
        self._state.tasks.add(task)

    def response_ended(self, call: ConnectionRequest) -> None:
        """A whole response is written. The next request that waits is started."""
        self._state.total_requests += 1
        self._running = None
        if not call.keeps_alive:
            self._half_close()
            return
        if self.transport.is_closing():
            return
        if self._pipeline:
            self._start(self._pipeline.popleft())
        elif self._refused:
            self.write(self._refused)
            self._half_close()
            return
        elif not self._is_in_head:
            self._end_in(self.linger_seconds)
        elif self._is_idle:
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
        if self._is_paused and not self._is_backlogged():
            self._is_paused = False
            self.transport.resume_reading()

    # --- writing ------------------------------------------------------------------------------------

    def write(self, *pieces: bytes) -> None:
        self._outbox.flush()
        self.transport.writelines(pieces)

    def close(self) -> None:
        """Close, once all responses are written."""
        self._outbox.flush()
        self.transport.close()

    def _half_close(self) -> None:
        """Close after a response, for a client that may still be sending: it sees the end of the response, and has some
        time to finish. To close at once can reset the connection, and the client loses the response."""
        is_ignoring = type(self._parser) is IgnoringParser
        if self.transport.is_closing():
            return
        if not (is_ignoring or self._is_paused or not self._is_in_head) or not self.transport.can_write_eof():
            self.close()
            return
        self._outbox.flush()
        self._receiving = self._pipeline = None
        if not is_ignoring:
            self._parser = IgnoringParser(self, MAX_IGNORED)
        self.transport.write_eof()
        self.resume_reading()
        self._end_in(self.linger_seconds)

    def write_soon(self, data: bytes) -> None:
        """Write a whole response on a connection that stays open, with those that are ready at the same time."""
        self._outbox.send(self.transport, data)

    def head(self, status: int, own: str, headers: Headers) -> bytes:
        """The head of a response."""
        return response_head(status, self._state.default_headers, own, headers)

    # --- time ---------------------------------------------------------------------------------------

    def _end_in(self, seconds: float) -> None:
        deadline = self._deadline = self.loop.time() + seconds
        timer = self._timer
        if timer is not None and timer.when() > deadline:
            timer.cancel()
            timer = None
        if timer is None:
            self._timer = self.loop.call_at(deadline, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._deadline is None:
            return
        if self._deadline > self.loop.time():
            self._timer = self.loop.call_at(self._deadline, self._check_deadline)
        else:
            self.close()


class IgnoringParser:
    """Replaces the parser when everything that comes is ignored."""

    __slots__ = ("_connection", "_left")

    def __init__(self, connection: BoundedProtocol, max_bytes: int) -> None:
        self._connection = connection
        self._left = max_bytes

    def feed_data(self, data: bytes) -> None:
        self._left -= len(data)
        self._connection.count_ignored(self._left < 0)
