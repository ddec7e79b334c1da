"""How many connections a gateway holds, and what it says to those for which there is no room.

    room.takes(count, transport)         # a new connection: whether it is taken; if not, it has been answered

A connection that nobody uses costs memory and a descriptor, and each request that is being answered may take one more,
for its upstream. So there are never more connections than `max_connections`, nor so many that descriptors run out:
without them no upstream can be reached, and nobody would be told why.

Law: whoever is not taken is told so in HTTP, and when to come again. What is held is not touched. Those who are told so
have a descriptor no longer than that takes, but for MAX_LINGERING of them.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any, Final, cast

import msgspec

from toolglot.gateway.config.settings import GatewaySettings

resource: Any
try:
    import resource
except ImportError:  # a system without limits of this kind
    resource = None

SPARE: Final = 128
"""Descriptors besides those of connections: files, the store, pipes."""
MAX_DESCRIPTORS: Final = 1 << 20
"""Asked for where the system names no limit."""
LINGER_SECONDS: Final = 2.0
"""That whoever is not taken has, to say what it will not be heard saying."""
MAX_LINGERING: Final = 64
"""Connections that are not taken and have that time: fewer than SPARE, and than an eighth of all descriptors."""
MAX_UNHEARD: Final = 16 * 1024 * 1024
"""Bytes that each of them may say."""
SAY_SECONDS: Final = 60.0
"""Between two notes that there is no room."""


class ConnectionLimit:
    """Knows how many connections there may be."""

    def __init__(
        self,
        settings: Callable[[], GatewaySettings],
        say: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._say = say
        self._clock = clock
        self._said = -SAY_SECONDS
        self._lingering: set[Refused] = set()
        self.descriptors: int = sys.maxsize
        """That the process may have open."""

    @property
    def most(self) -> int:
        """Connections that are held at the same time."""
        settings = self._settings()
        left = self.descriptors - settings.max_concurrent - SPARE
        return min(settings.max_connections, max(left, self.descriptors // 2))

    def takes(self, count: int, transport: asyncio.BaseTransport) -> bool:
        """Whether there is room for one more beside so many."""
        most = self.most
        if count < most:
            return True
        if self._clock() - self._said >= SAY_SECONDS:
            self._said = self._clock()
            why = "max_connections" if most == self._settings().max_connections else "descriptors: see ulimit -n"
            self._say(f"no room for more than {most} connections ({why}); further ones are told to come again")
        if len(self._lingering) < min(MAX_LINGERING, self.descriptors // 8):
            refused = Refused(self._lingering.discard)
            self._lingering.add(refused)
            refused.connection_made(transport)
        else:
            Refused.tell_off(cast("asyncio.Transport", transport))
        return False


class Refused(asyncio.Protocol):
    """A connection that is answered and closed: after it has spoken, or else it might not hear the answer."""

    def __init__(self, ended: Callable[[Refused], None]) -> None:
        self._ended = ended
        self._left = MAX_UNHEARD

    @staticmethod
    def tell_off(transport: asyncio.Transport) -> None:
        """Answer and close at once: who speaks in that moment may hear nothing."""
        transport.set_protocol(asyncio.Protocol())
        transport.write(ANSWER)
        transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_protocol(self)
        self._transport.write(ANSWER)
        self._end = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._transport.abort)
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def data_received(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - whatever it was
        self._end.cancel()
        self._ended(self)


def overloaded_body(message: str, code: str) -> bytes:
    """An error that the clients of most protocols can read, for when it is not known which one speaks."""
    return msgspec.json.encode(
        {"type": "error", "error": {"type": "overloaded_error", "message": message, "code": code}}
    )


def _answer() -> bytes:
    message = "the gateway holds as many connections as it may (max_connections); come again"
    body = overloaded_body(message, "too_many_connections")
    head = (
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 2\r\nconnection: close\r\n"
    )
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


ANSWER: Final = _answer()


def widened(limits: Any = resource) -> int:
    """Let this process open as many descriptors as it may; how many that are."""
    if limits is None:
        return sys.maxsize
    soft, hard = limits.getrlimit(limits.RLIMIT_NOFILE)
    if soft == limits.RLIM_INFINITY:
        return sys.maxsize
    wanted: int = max(soft, hard if hard != limits.RLIM_INFINITY else MAX_DESCRIPTORS)
    try:
        limits.setrlimit(limits.RLIMIT_NOFILE, (wanted, hard))
    except (ValueError, OSError):  # the system allows less than it says
        return int(soft)
    return wanted
