"""The connections of clients, bounded where uvicorn does not bound them: in time, and in bytes that are no body.

    waiting ── first byte ──▶ head ── all of it ──▶ body ── all of it ──▶ waiting
       │ KEEP_ALIVE             │ HEAD_SECONDS        │ the app reads it (`requests.py`), or, where it has
       ▼                        ▼                     │ answered without, LINGER_SECONDS
     closed                   closed ◀────────────────┘

An answer that its client leaves unread for UNREAD_SECONDS ends the connection, and the upstream's answer with it.

Laws: what is no body is never more than MOST_LOOSE bytes and a read. Trailers are no headers: they are dropped. Who
goes away is noticed by the request that is being answered, also when others wait behind it. A request that comes in one
piece costs a few attributes more than uvicorn's own.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_SECONDS: Final = 30.0
"""That the line and the headers of a request may take, the first of a connection from its beginning on."""
LINGER_SECONDS: Final = 30.0
"""That the rest of a body may take which nobody reads any more."""
UNREAD_SECONDS: Final = 300.0
MOST_LOOSE: Final = 64 * 1024
"""Bytes that come in a row without completing a head, a piece of a body or a message."""
MOST_PIPELINED: Final = 32


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 over httptools, with an end to everything."""

    head_seconds = HEAD_SECONDS
    linger_seconds = LINGER_SECONDS
    unread_seconds = UNREAD_SECONDS

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._is_in_head = True
        self._is_stirred = False
        """A head, a piece of a body or a message was completed by what was received last."""
        self._is_between = False
        """A message has ended, and not a byte of another has come."""
        self._loose = 0
        self._running: RequestResponseCycle | None = None
        """The request that is being answered. uvicorn's own `cycle` is the one that came last."""
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    # --- the connection -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._end_in(self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._end_never()
        self._stop_counting()
        running = self._running
        if running is not None and not running.response_complete:
            running.disconnected = True
            running.message_event.set()

    def data_received(self, data: bytes) -> None:
        self._is_stirred = self._is_between = False
        super().data_received(data)
        if self._is_stirred:
            self._loose = 0
        else:
            self._loose += len(data)
            if self._loose > MOST_LOOSE:
                self.transport.abort()
                return
        if self._is_in_head and not self._is_between and self._deadline is None:
            self._end_in(self.head_seconds)

    # --- what was read ------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._is_between = False
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._is_stirred = True
        self._end_never()
        before = self._running
        super().on_headers_complete()
        if before is None or before.response_complete:
            self._running = self.cycle
        elif len(self.pipeline) > MOST_PIPELINED:
            self.transport.abort()

    def on_body(self, body: bytes) -> None:
        self._is_stirred = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_in_head = self._is_stirred = self._is_between = True
        self._end_never()
        super().on_message_complete()
        if self.cycle.response_complete:  # uvicorn's own timer has been stopped by the rest of the body
            self._end_in(self.timeout_keep_alive)

    def on_response_complete(self) -> None:
        """The answer is sent; the one before it that waits is next."""
        waiting = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()
        if waiting is not None:
            self._running = waiting
        elif not self._is_in_head and not self.transport.is_closing():
            self._end_in(self.linger_seconds)

    # --- what is written ----------------------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(self.unread_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_counting()

    def _stop_counting(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    # --- time ---------------------------------------------------------------------------------------

    def _end_in(self, seconds: float) -> None:
        self._end_never()
        self._deadline = self.loop.call_later(seconds, self.transport.close)

    def _end_never(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
