"""Signs of life for clients that wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Pings:
    """Signs of life for a client whose provider is silent. A timer a stream, and nothing to do for a piece of it."""

    def __init__(
        self, ping: Callable[[], bytes], give: Callable[[bytes], Coroutine[Any, Any, None]], seconds: float
    ) -> None:
        self._ping = ping
        self._give = give
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._is_silent = False
        self._sending: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(seconds, self._look) if seconds else None

    def stirred(self) -> None:
        """The client gets something just now."""
        self._is_silent = False

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._sending is not None:
            self._sending.cancel()

    def _look(self) -> None:
        # A client that does not read gets no further ones.
        if self._is_silent and (self._sending is None or self._sending.done()) and (data := self._ping()):
            self._sending = self._loop.create_task(self._give(data))
        self._is_silent = True
        self._timer = self._loop.call_later(self._seconds, self._look)
