"""One request on a connection: its body as it comes, and its response in HTTP/1.1.

    body: pieces come → complete        response: nothing → begun → over

Law: of a body that is not read, no more than MAX_AHEAD bytes and one read are held: then the connection is not read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from toolglot.gateway.http.message_heads import CLOSE
from toolglot.gateway.http.requests import (
    BODILESS,
    ClientRequest,
    GoneError,
    Headers,
    Hold,
    ignore_size,
    read_pieces,
    refuse_large,
)

if TYPE_CHECKING:
    from toolglot.gateway.app import Gateway
    from toolglot.gateway.http.connections import BoundedProtocol

MAX_AHEAD: Final = 64 * 1024
"""Bytes of a body that is not read."""
MAX_JOINED: Final = 64 * 1024
"""Bytes of a response that are copied behind its head, to be sent with it."""

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_JSON: Final = "content-type: application/json\r\n"
_CHUNKED: Final = "transfer-encoding: chunked\r\n"
_LAST: Final = b"0\r\n\r\n"


class ConnectionRequest:
    """One request on a connection: a `ResponseChannel`."""

    __slots__ = (
        *("_connection", "_on_disconnect", "_pieces", "_size", "_waiter", "expects_continue", "is_begun"),
        *("is_body_complete", "is_chunked", "is_gone", "is_head", "is_http11", "is_over", "keeps_alive"),
        *("request", "task"),
    )

    def __init__(self, connection: BoundedProtocol, is_head: bool, is_http11: bool) -> None:
        self._connection = connection
        self.is_head = is_head
        self.is_http11 = is_http11
        """HTTP/1.1, which has chunks."""
        self.request: ClientRequest | None = None
        self.task: asyncio.Task[None] | None = None
        self.is_gone: bool = False
        self.keeps_alive: bool = True
        self.expects_continue: bool = False
        self.is_body_complete = False
        self.is_begun: bool = False
        self.is_over: bool = False
        """The whole response is written."""
        self.is_chunked: bool = False
        self._pieces: list[bytes] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._on_disconnect: Callable[[], None] | None = None

    @property
    def held(self) -> int:
        """Bytes that the request holds while it waits."""
        return self._size + (self.request.header_bytes if self.request is not None else 0)

    async def run(self, gateway: Gateway, request: ClientRequest) -> None:
        self.request = None  # so that it is freed when the gateway is done with it
        try:
            await gateway.serve(request)
        finally:
            connection = self._connection
            if not self.is_over and not self.is_gone:
                connection.close()
            connection.forget(self.task)
            self.task = self._on_disconnect = None

    # --- disconnects --------------------------------------------------------------------------------

    def watch(self, on_disconnect: Callable[[], None]) -> None:
        self._on_disconnect = on_disconnect

    def stop_watching(self) -> None:
        self._on_disconnect = None

    def lose(self) -> None:
        """The connection is lost."""
        self.is_gone = True
        if not self.is_body_complete:
            self.wake()
        elif self._on_disconnect is not None:
            self._on_disconnect()

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
        if not self.is_body_complete:
            connection = self._connection
            limits = {"pause": connection.pause_seconds, "upload": connection.upload_seconds}
            return await read_pieces(self._more, max_bytes, hold, **limits)
        if self.is_gone:
            raise GoneError
        refuse_large(self._size, max_bytes)
        hold(self._size)
        self._connection.resume_reading()
        return self._take_pieces()

    def _take_pieces(self) -> bytes:
        pieces, self._pieces, self._size = self._pieces, [], 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _more(self) -> tuple[bytes, bool]:
        connection = self._connection
        if self.expects_continue and not connection.transport.is_closing():
            self.expects_continue = False
            connection.write(_CONTINUE)
        if not self._pieces and not self.is_body_complete and not self.is_gone:
            connection.resume_reading()
            self._waiter = connection.loop.create_future()
            await self._waiter
        if self.is_gone:
            raise GoneError
        if self.is_body_complete:
            connection.resume_reading()  # or a disconnect would not be noticed
        return self._take_pieces(), self.is_body_complete

    # --- the response -------------------------------------------------------------------------------

    async def respond(self, status: int, headers: Headers, data: bytes) -> None:
        connection = self._connection
        if connection.is_full:
            await connection.wait_writable()
        if self.is_gone:
            return
        own = ""
        if status not in BODILESS:
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
            await connection.wait_writable()
        if self.is_gone:
            return
        self.is_begun = True
        has_body = not self.is_head and status not in BODILESS
        self.is_chunked = has_body and self.is_http11
        own = (_CHUNKED if self.is_chunked else "") + self._closing(headers)
        connection.write(connection.head(status, own, headers))

    def _closing(self, headers: Headers) -> str:
        if headers.get("connection") == "close":
            self.keeps_alive = False
            return ""
        if self._connection.is_ending:
            self.keeps_alive = False
        return "" if self.keeps_alive else CLOSE

    async def write(self, data: bytes) -> None:
        connection = self._connection
        if connection.is_full:
            await connection.wait_writable()
        if self.is_gone or not data:
            return
        if self.is_chunked:
            connection.transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        elif not self.is_head and not self.is_http11:
            connection.transport.write(data)

    async def end(self) -> None:
        connection = self._connection
        if connection.is_full:
            await connection.wait_writable()
        if self.is_gone:
            return
        if self.is_chunked:
            connection.transport.write(_LAST)
        self._end()

    def _end(self) -> None:
        self.is_begun = self.is_over = True
        self._pieces = []
        self._connection.response_ended(self)
