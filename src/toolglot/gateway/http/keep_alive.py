"""Keep-alive pings for clients that wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

CHECKS: Final = 4
"""How often silence is checked before a ping, which comes late by one of these intervals at most."""


class KeepAlive:
    """Pings for a client whose provider is silent. One timer for a stream, and next to no work for a piece of it."""

    def __init__(
        self, ping: Callable[[], bytes], write: Callable[[bytes], Coroutine[Any, Any, None]], seconds: float
    ) -> None:
        self._ping = ping
        self._write = write
        self._seconds = seconds / CHECKS
        self._loop = asyncio.get_running_loop()
        self._silent = 1
        """Checks since the client got something."""
        self._sending: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(self._seconds, self._check) if seconds else None

    def reset(self) -> None:
        """The client gets something now."""
        self._silent = 0

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._sending is not None:
            self._sending.cancel()

    def _check(self) -> None:
        self._silent += 1
        if self._silent > CHECKS:
            self._silent = 1
            # A client that does not read gets no further ones.
            if (self._sending is None or self._sending.done()) and (data := self._ping()):
                self._sending = self._loop.create_task(self._write(data))
        self._timer = self._loop.call_later(self._seconds, self._check)
