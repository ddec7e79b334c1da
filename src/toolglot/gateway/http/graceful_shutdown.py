"""The end of a gateway that answers: nothing new is begun, what is open goes on, and what lasts too long is told so.

    serving ── drain() ──▶ draining ── every answer has ended, or cut() ──▶ over

Law: while it drains, whoever asks for something new is told to come again, in words that clients understand as such,
and on a connection that ends with that answer: the next one reaches who is there then. What is cut off ends as an error
of its protocol, not as a lost connection.
"""

from __future__ import annotations

import asyncio
from typing import Final

from toolglot.conversation import Failure
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.protocols.errors.failures import ProviderError

STOPPING: Final = Failure("overloaded", "the gateway is stopping: ask again", retry_after=1)
"""What who asks is told, and whose answer takes too long."""
STILL_ANSWERED: Final = frozenset({"root", "health", "ready", "metrics", "openapi"})
"""What is asked to learn how the gateway does."""
CLOSE: Final = {"connection": "close"}
LOOK_SECONDS: Final = 0.02


class GracefulShutdown:
    """The requests that are open, and whether there will be more."""

    def __init__(self) -> None:
        self.is_draining: bool = False
        self.is_hurried = False
        """Nobody is waited for any more."""
        self._open: dict[RequestRecord, asyncio.Task[None] | None] = {}

    def begin(self, record: RequestRecord, task: asyncio.Task[None] | None) -> None:
        """A task answers this request."""
        self._open[record] = task

    def end(self, record: RequestRecord) -> None:
        self._open.pop(record, None)

    def refuse_new(self, record: RequestRecord) -> None:
        """What is asked for while the gateway drains."""
        if self.is_draining and record.request.action not in STILL_ANSWERED:
            raise ProviderError(STOPPING)

    async def drained(self, seconds: float) -> int:
        """Begin nothing new, and wait for the end of all that is open, that long at most; how many are left then."""
        self.is_draining = True
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        while self._open and clock() < end and not self.is_hurried:
            await asyncio.sleep(LOOK_SECONDS)
        return len(self._open)

    async def cut(self, seconds: float) -> int:
        """End what is open as an error; how many did not end in that time."""
        for record, task in self._open.items():
            if task is not None and not record.response.is_complete:
                record.response.cut()
                task.cancel()
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        while self._open and clock() < end:
            await asyncio.sleep(LOOK_SECONDS)
        return len(self._open)


def taken_back(record: RequestRecord) -> bool:
    """Whether a request was cancelled because the gateway ends; then its task goes on, to tell the client."""
    task = asyncio.current_task()
    if task is None or not record.response.take_cut():
        return False
    task.uncancel()
    return True
