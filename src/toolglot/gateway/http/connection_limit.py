"""The limit on connections, and the response to those beyond it.

    connection_limit.accepts(count, transport)    # whether a new connection is accepted; if not, it has got a response

An idle connection costs memory and a descriptor, and each request in progress may need one more, for its upstream. So
there are never more connections than `max_connections`, nor so many that descriptors run out: without them no upstream
can be reached.

Law: a refused connection gets an HTTP response with `retry-after`. Open connections are not touched. The
refused ones hold a descriptor no longer than the response takes, except for MAX_LINGERING of them.
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
"""The limit that is set where the system has none."""
LINGER_SECONDS: Final = 2.0
"""That a refused client has to finish sending."""
MAX_LINGERING: Final = 64
"""Refused connections that have this time: fewer than SPARE, and than an eighth of all descriptors."""
MAX_IGNORED: Final = 16 * 1024 * 1024
"""Bytes that each of them may send."""
NOTICE_SECONDS: Final = 60.0
"""Between two notices that the limit is reached."""


class ConnectionLimit:
    """The number of connections that there may be."""

    def __init__(
        self,
        settings: Callable[[], GatewaySettings],
        notice: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._notice = notice
        self._clock = clock
        self._noticed_at = -NOTICE_SECONDS
        self._lingering: set[RefusedConnection] = set()
        self.descriptors: int = sys.maxsize
        """The number that the process may have open."""

    @property
    def limit(self) -> int:
        """Connections that may be open at the same time."""
        settings = self._settings()
        left = self.descriptors - settings.max_concurrent - SPARE
        return min(settings.max_connections, max(left, self.descriptors // 2))

    def accepts(self, count: int, transport: asyncio.BaseTransport) -> bool:
        """Whether one more connection is accepted beside so many."""
        limit = self.limit
        if count < limit:
            return True
        if self._clock() - self._noticed_at >= NOTICE_SECONDS:
            self._noticed_at = self._clock()
            why = "max_connections" if limit == self._settings().max_connections else "descriptors: see ulimit -n"
            self._notice(
                f"the limit of {limit} connections is reached ({why}); further ones are refused with status 503"
            )
        if len(self._lingering) < min(MAX_LINGERING, self.descriptors // 8):
            refused = RefusedConnection(self._lingering.discard)
            self._lingering.add(refused)
            refused.connection_made(transport)
        else:
            RefusedConnection.refuse_at_once(cast("asyncio.Transport", transport))
        return False


class RefusedConnection(asyncio.Protocol):
    """Responds, and closes when the client has sent everything: otherwise it might lose the response."""

    def __init__(self, ended: Callable[[RefusedConnection], None]) -> None:
        self._ended = ended
        self._left = MAX_IGNORED

    @staticmethod
    def refuse_at_once(transport: asyncio.Transport) -> None:
        """Respond and close at once: a client that is sending may lose the response."""
        transport.set_protocol(asyncio.Protocol())
        transport.write(REFUSAL)
        transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_protocol(self)
        self._transport.write(REFUSAL)
        self._end = asyncio.get_running_loop().call_later(LINGER_SECONDS, self._transport.abort)
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def data_received(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._end.cancel()
        self._ended(self)


def overloaded_body(message: str, code: str) -> bytes:
    """An error that clients of almost all protocols can read, for when the protocol is not known."""
    return msgspec.json.encode(
        {"type": "error", "error": {"type": "overloaded_error", "message": message, "code": code}}
    )


def _refusal_response() -> bytes:
    message = "the gateway has reached its limit of connections (max_connections); try again"
    body = overloaded_body(message, "too_many_connections")
    head = (
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 2\r\nconnection: close\r\n"
    )
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


REFUSAL: Final = _refusal_response()


def raise_descriptor_limit(limits: Any = resource) -> int:
    """Let this process open as many descriptors as it may. Returns the number."""
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
