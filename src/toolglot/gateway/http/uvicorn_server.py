"""uvicorn's server with a graceful shutdown: it says that it ends, stops listening, waits for open responses, and ends
the rest.

The first signal drains, the second one ends open requests at once, and the third one kills: only then is usage lost
that is not stored yet.

Laws: it accepts connections for `lame_duck_seconds` after the first signal, and loses none that was made before it
stops. Idle ones stay open meanwhile, and requests on them are served. It has ended within its time and a few seconds.
"""

from __future__ import annotations

import socket
from types import FrameType
from typing import Final

from uvicorn import Config, Server

from toolglot.gateway.app import Gateway
from toolglot.gateway.http.listening_end import accept_the_rest

CUT_SECONDS: Final = 2.0
"""Seconds for clients to read the end of a response that was cut off."""
CLOSE_SECONDS: Final = 1
"""Seconds for connections to close after the last response."""


class UvicornServer(Server):
    """A server for one gateway."""

    def __init__(self, config: Config, gateway: Gateway, seconds: float | None) -> None:
        super().__init__(config)
        self._gateway = gateway
        self._seconds = seconds
        """Seconds that open responses have; None: as configured by then."""
        self._signals = 0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._signals += 1
        self._gateway.shutdown.is_draining = True
        self._gateway.shutdown.is_hurried = self._signals > 1
        self.force_exit = self._signals > 2

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._seconds is None:
            await self._gateway.announce_end(self._gateway.config.gateway.lame_duck_seconds)
        for sock in sockets or ():
            await accept_the_rest(sock, is_shared=self._gateway.worker_links is not None)
        for server in self.servers:
            server.close()
        for sock in sockets or ():
            sock.close()
        seconds = self._seconds if self._seconds is not None else self._gateway.config.gateway.drain_seconds
        await self._gateway.drain(seconds, CUT_SECONDS)
        self.config.timeout_graceful_shutdown = CLOSE_SECONDS
        await super().shutdown(sockets)
