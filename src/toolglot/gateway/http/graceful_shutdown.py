"""Graceful shutdown: requests are served to the end, on connections that end with them; what takes too long is cut off.

    serving ── a signal ──▶ draining: still accepting (`lame_duck_seconds`) ──▶ draining: no new connections
            ── every response has ended, or cut() ──▶ over

Laws: while it drains, `/ready` fails, and a response says that its connection ends: the next request reaches another
process. Only when responses are cut off, a new request is refused, with an error that clients retry. What is cut off
ends with an error of its protocol, not with a lost connection.
"""

from __future__ import annotations

import asyncio
from typing import Final

from toolglot.conversation import Failure
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.protocols.errors.failures import ProviderError

STOPPING: Final = Failure("overloaded", "the gateway is stopping: send the request again", retry_after=1)
"""The error for new requests, and for responses that take too long."""
STILL_ANSWERED: Final = frozenset({"root", "health", "ready", "metrics", "openapi"})
"""Actions that show the state of the gateway."""
CLOSE: Final = {"connection": "close"}
CHECK_SECONDS: Final = 0.02


class GracefulShutdown:
    """The requests that are open, and whether there will be more."""

    def __init__(self) -> None:
        self.is_draining: bool = False
        self.is_hurried = False
        """Open requests are not waited for any more."""
        self._is_over = False
        """New requests are refused."""
        self._open: dict[RequestRecord, asyncio.Task[None] | None] = {}

    def begin(self, record: RequestRecord, task: asyncio.Task[None] | None) -> None:
        """A task answers this request."""
        self._open[record] = task

    def end(self, record: RequestRecord) -> None:
        self._open.pop(record, None)

    def open_requests(self) -> frozenset[RequestRecord]:
        return frozenset(self._open)

    def refuse_new(self, record: RequestRecord, *, on_socket: bool = False) -> None:
        """Refuse a request when open ones are cut off; on a WebSocket at once: it cannot end with the response."""
        is_refused = self._is_over or self.is_hurried or (on_socket and self.is_draining)
        if is_refused and record.request.action not in STILL_ANSWERED:
            raise ProviderError(STOPPING)

    async def wait(self, seconds: float) -> None:
        """Go on for so long, unless it is hurried."""
        self.is_draining = True
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        while clock() < end and not self.is_hurried:
            await asyncio.sleep(CHECK_SECONDS)

    async def wait_for_end(self, seconds: float) -> int:
        """Wait at most that long for the end of open requests. Returns how many are left."""
        self.is_draining = True
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        while self._open and clock() < end and not self.is_hurried:
            await asyncio.sleep(CHECK_SECONDS)
        return len(self._open)

    async def cut(self, seconds: float) -> int:
        """Refuse new requests, and end open ones with an error. Returns how many did not end in that time."""
        self._is_over = True
        for record, task in self._open.items():
            if task is not None and not record.response.is_complete:
                record.response.cut()
                task.cancel()
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        while self._open and clock() < end:
            await asyncio.sleep(CHECK_SECONDS)
        return len(self._open)


def resume_if_cut(record: RequestRecord) -> bool:
    """Whether a request was cancelled because the gateway stops; then its task goes on, to answer the client."""
    task = asyncio.current_task()
    if task is None or not record.response.take_cut():
        return False
    task.uncancel()
    return True
