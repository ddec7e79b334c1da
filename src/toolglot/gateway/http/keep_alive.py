"""Signs of life for clients that wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

LOOKS: Final = 4
"""How often silence is looked for in the time after which there is a ping: it comes later than that by one of them at
most."""


class KeepAlive:
    """Signs of life for a client whose provider is silent. A timer a stream, and nothing to do for a piece of it."""

    def __init__(
        self, ping: Callable[[], bytes], give: Callable[[bytes], Coroutine[Any, Any, None]], seconds: float
    ) -> None:
        self._ping = ping
        self._give = give
        self._seconds = seconds / LOOKS
        self._loop = asyncio.get_running_loop()
        self._silent = 1
        """Looks since the client got something, and that moment if it is one of them."""
        self._sending: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(self._seconds, self._look) if seconds else None

    def stirred(self) -> None:
        """The client gets something just now."""
        self._silent = 0

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._sending is not None:
            self._sending.cancel()

    def _look(self) -> None:
        self._silent += 1
        if self._silent > LOOKS:
            self._silent = 1
            # A client that does not read gets no further ones.
            if (self._sending is None or self._sending.done()) and (data := self._ping()):
                self._sending = self._loop.create_task(self._give(data))
        self._timer = self._loop.call_later(self._seconds, self._look)
