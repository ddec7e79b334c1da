"""A WebSocket of a client, whichever server it comes through: our own connections, or an ASGI server.

Law: messages are text, whole and valid UTF-8, and none is larger than a request body may be. `send` waits until the
client reads.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from toolglot.gateway.http.requests import Headers

NORMAL: Final = 1000
GOING_AWAY: Final = 1001
UNSUPPORTED: Final = 1003
INVALID_TEXT: Final = 1007
POLICY: Final = 1008
TOO_BIG: Final = 1009
TRY_LATER: Final = 1013
"""Codes of closes, by RFC 6455 and IANA's registry."""


class WebSocket(Protocol):
    """One WebSocket, open until it is closed by either side."""

    async def receive(self) -> bytes | None:
        """The next message; None: there are no more."""
        ...

    async def send(self, text: bytes) -> None:
        """Send a message. After a close nothing is sent, and there is no error."""
        ...

    async def ping(self) -> None:
        """Show the client that the connection is alive."""
        ...

    async def close(self, code: int, reason: str = "") -> None:
        """Close it. `receive` returns None from now on."""
        ...


AcceptSocket = Callable[[Headers, int], Awaitable[WebSocket]]
"""Accepts the WebSocket that a request asks for, with headers of ours, for messages of at most so many bytes."""
