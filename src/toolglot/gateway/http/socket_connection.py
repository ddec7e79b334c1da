"""The connection of a WebSocket, after its handshake: it takes the place of the HTTP connection.

    open ── either side closes ──▶ closing ── the other one closes, or CLOSE_SECONDS ──▶ closed

Laws: no more is held of what the client sends than MAX_AHEAD bytes, one read and one message, and all of it counts
against `max_bytes_in_flight`. The client is read only while it reads itself. A message has MESSAGE_SECONDS to arrive. A
client that answers no ping for MAX_SILENT intervals, or leaves UNREAD_SECONDS long unread what it got, is gone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from toolglot.gateway.http.body_budget import BodyShare
from toolglot.gateway.http.connection_request import MAX_AHEAD
from toolglot.gateway.http.offloading import in_thread
from toolglot.gateway.http.requests import MAX_UPLOAD_SECONDS, GatewayRefusal, GoneError
from toolglot.gateway.http.web_sockets import GOING_AWAY, POLICY, TRY_LATER
from toolglot.gateway.http.writing_protocol import WritingProtocol

if TYPE_CHECKING:
    from toolglot.gateway.http.socket_frames import SocketFrames

CLOSE_SECONDS: Final = 5.0
CHECK_SECONDS: Final = 15.0
"""Between two checks of a connection that gets no pings."""
MAX_SILENT: Final = 4
SLICE_BYTES: Final = 8 * 1024
"""Bytes that are parsed in one step of the event loop: they can be a thousand frames, or a message that is a thousand
times as long when it is decompressed. What is longer is parsed in a thread, if it may be compressed."""


class SocketConnection(WritingProtocol):
    """One WebSocket: a `WebSocket`."""

    __slots__ = (
        *("_arrived", "_arrived_bytes", "_begun_at", "_frames", "_is_paused", "_is_timed", "_messages"),
        *("_on_lost", "_ping_seconds", "_share", "_silent", "_timer", "_waiter"),
        "is_gone",
    )

    close_seconds = CLOSE_SECONDS
    message_seconds = MAX_UPLOAD_SECONDS

    def __init__(
        self,
        transport: asyncio.Transport,
        frames: SocketFrames,
        share: BodyShare,
        *,
        ping_seconds: float,
        on_lost: Callable[[SocketConnection], None],
    ) -> None:
        super().__init__(asyncio.get_running_loop())
        self.transport = transport
        self.is_gone: bool = False
        self._frames = frames
        self._share = share
        self._ping_seconds = ping_seconds
        self._on_lost = on_lost
        self._arrived: deque[bytes] = deque()
        """What came and is not parsed."""
        self._arrived_bytes = 0
        self._messages: deque[bytes] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._is_paused = False
        self._silent = 0
        """Checks since something came."""
        self._begun_at: float | None = None
        """When the message that is not complete began."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_timed = False
        """It is closing, and its end is set."""
        self._check_later()

    # --- asyncio ------------------------------------------------------------------------------------

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self.is_gone = True
        self._on_lost(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.resume_writing()
        self._arrived.clear()
        self._messages.clear()
        self._share.release()
        self._wake()

    def eof_received(self) -> None:
        self._frames.end()
        self._wake()

    def data_received(self, data: bytes) -> None:
        self._silent = 0
        if not self._frames.is_open:  # only the client's close still counts
            if self._writable is not None:
                self.transport.abort()
            else:
                self._feed(data)
            return
        self._arrived.append(data)
        self._arrived_bytes += len(data)
        if self._arrived_bytes > MAX_AHEAD:
            self._pause()
        self._count()
        self._wake()

    def shutdown(self) -> None:
        """The server ends."""
        self._close(GOING_AWAY, "the gateway is stopping")

    # --- reading ------------------------------------------------------------------------------------

    async def receive(self) -> bytes | None:
        while not self._messages:
            if self.is_gone or not self._frames.is_open:
                return None
            if self._writable is not None:
                await asyncio.shield(self._writable)
            elif self._arrived:
                await self._parse()
            else:
                self._resume()
                self._waiter = self.loop.create_future()
                await self._waiter
        message = self._messages.popleft()
        self._count()
        return message

    async def _parse(self) -> None:
        """Parse some of what came, and let others go on."""
        data = self._arrived.popleft()
        if len(data) > SLICE_BYTES:
            self._arrived.appendleft(data[SLICE_BYTES:])
            data = data[:SLICE_BYTES]
        self._arrived_bytes -= len(data)
        if self._frames.is_compressed and self._frames.held > SLICE_BYTES:
            self._messages.extend(await in_thread(lambda: self._frames.feed(data)))
            self._write()
        else:
            self._messages.extend(self._feed(data))
            await asyncio.sleep(0)
        if not self._frames.held:
            self._begun_at = None
        elif self._begun_at is None or self._messages:
            self._begun_at = self.loop.time()
        self._count()

    def _feed(self, data: bytes) -> list[bytes]:
        messages = self._frames.feed(data)
        self._write()
        return messages

    def _count(self) -> None:
        """Count what is held against the memory for bodies."""
        size = self._arrived_bytes + self._frames.held + sum(map(len, self._messages))
        try:
            if size > self._share.size:
                self._share.hold(size - self._share.size)
            elif size < self._share.size:
                self._share.release(self._share.size - size)
        except GatewayRefusal:
            self._close(TRY_LATER, "the gateway has reached its limit for bytes of requests (max_bytes_in_flight)")
        except GoneError:
            pass

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _pause(self) -> None:
        if not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()

    def _resume(self) -> None:
        if self._is_paused and not self.transport.is_closing():
            self._is_paused = False
            self.transport.resume_reading()

    # --- writing ------------------------------------------------------------------------------------

    async def send(self, text: bytes) -> None:
        await self.wait_writable()
        self._frames.send(text)
        self._write()

    async def ping(self) -> None:
        if self._writable is None:
            self._frames.ping()
            self._write()

    async def close(self, code: int, reason: str = "") -> None:
        self._close(code, reason)

    def _close(self, code: int, reason: str) -> None:
        self._frames.close(code, reason)
        self._write()
        self._wake()

    def _write(self) -> None:
        output, is_last = self._frames.take_output()
        if output and not self.transport.is_closing():
            self.transport.writelines(output)
        if is_last:
            self.transport.close()
        elif not self._frames.is_open and not self._is_timed and not self.is_gone:
            self._is_timed = True
            self._resume()  # for the client's close
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_later(self.close_seconds, self.transport.abort)

    # --- time ---------------------------------------------------------------------------------------

    def _check_later(self) -> None:
        self._timer = self.loop.call_later(self._ping_seconds or CHECK_SECONDS, self._check)

    def _check(self) -> None:
        """Find a client that is gone, or whose message does not end."""
        self._check_later()
        if self._begun_at is not None and self.loop.time() - self._begun_at > self.message_seconds:
            self._close(POLICY, "the message took too long to arrive")
            return
        if not self._ping_seconds or self._is_paused or self._writable is not None:
            return
        self._silent += 1
        if self._silent > MAX_SILENT:
            self.transport.abort()
        else:
            self._frames.ping()
            self._write()
