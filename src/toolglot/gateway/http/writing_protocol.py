"""What the connections of HTTP and of WebSockets share: writing waits while the client does not read.

Law: a client that leaves what it got unread for `unread_seconds` loses its connection.
"""

from __future__ import annotations

import asyncio
from typing import Final

UNREAD_SECONDS: Final = 300.0


class WritingProtocol(asyncio.Protocol):
    """A connection that can be written to."""

    __slots__ = ("_unread_timer", "_writable", "loop", "transport")

    unread_seconds = UNREAD_SECONDS

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop: asyncio.AbstractEventLoop = loop
        self.transport: asyncio.Transport
        self._writable: asyncio.Future[None] | None = None
        """While it is set, the client must read before more is written."""
        self._unread_timer: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        if self._writable is None:
            self._writable = self.loop.create_future()
        if self._unread_timer is None:
            self._unread_timer = self.loop.call_later(self.unread_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None

    @property
    def is_full(self) -> bool:
        """Whether the client must read before more is written."""
        return self._writable is not None

    async def wait_writable(self) -> None:
        while self._writable is not None:
            await asyncio.shield(self._writable)
