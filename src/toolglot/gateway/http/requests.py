"""A client's HTTP request, and the channel for its response.

Law: everything that is read is bounded: headers and body; the decompressed body is in `compressed_bodies.py`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import parse_qsl

from toolglot.conversation import Failure, FailureKind
from toolglot.protocols.errors.failures import ProviderError
from toolglot.translate.request_memory import ClientRequests

if TYPE_CHECKING:
    from toolglot.gateway.http.body_budget import BodyShare
    from toolglot.gateway.http.web_sockets import AcceptSocket, WebSocket

MAX_HEADER_BYTES: Final = 64 * 1024
MAX_UPLOAD_SECONDS: Final = 120.0
"""Seconds that a body may take to arrive."""
MAX_PAUSE_SECONDS: Final = 30.0
"""Seconds between two pieces of it."""
BODILESS: Final = frozenset({204, 304})
"""Statuses of responses that have no body."""
_FEW_DIGITS: Final = 3
"""Digits of a content-length that is never too large."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Hold = Callable[[int], None]
"""Called with the number of bytes that are held from now on; it may refuse."""
Headers = Mapping[str, str]
"""By lowercase names. Characters that no header may have are replaced when they are written."""


def ignore_size(_: int) -> None:
    """Hold any number of bytes."""


class GoneError(Exception):
    """The client disconnected before it had sent everything."""


class GatewayRefusal(ProviderError):  # noqa: N818 - a response, not a fault of the gateway
    """A refusal by the gateway itself, with its own status."""

    headers: Mapping[str, str] = {}


class ResponseChannel(Protocol):
    """Where the body of a request comes from, and where its response goes.

    A response is sent whole (`respond`), or in pieces: `begin`, `write` …, `end`. After a disconnect nothing is sent,
    and there is no error; `watch` reports the disconnect.
    """

    @property
    def is_gone(self) -> bool: ...

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The task that answers the request."""
        ...

    def watch(self, on_disconnect: Callable[[], None]) -> None:
        """Call `on_disconnect` when the client disconnects, once all of its body is here."""
        ...

    def stop_watching(self) -> None:
        """Stop watching."""
        ...

    async def read(self, max_bytes: int, hold: Hold = ignore_size) -> bytes:
        """The whole body. `hold` is called with the size of each piece, and may refuse it."""
        ...

    async def respond(self, status: int, headers: Headers, data: bytes) -> None:
        """Send a whole response, which is JSON unless the headers say something else."""
        ...

    async def begin(self, status: int, headers: Headers) -> None: ...

    async def write(self, data: bytes) -> None: ...

    async def end(self) -> None: ...


_random_ids: list[str] = []
"""Random ids, made in batches."""
os.register_at_fork(after_in_child=_random_ids.clear)


def _random_id() -> str:
    try:
        return _random_ids.pop()
    except IndexError:
        drawn = os.urandom(12 * 64).hex()
        _random_ids.extend([drawn[start : start + 24] for start in range(24, len(drawn), 24)])
        return drawn[:24]


class ClientRequest:
    """A request of a client."""

    __slots__ = (
        *("accept_socket", "body", "body_bytes", "channel", "client", "header_bytes", "headers", "id", "is_background"),
        *(
            "is_on_socket",
            "is_warm_up",
            "memory",
            "method",
            "path",
            "query",
            "raw_path",
            "raw_query",
            "replay_of",
            "share",
            "socket",
        ),
        "values",
    )

    def __init__(
        self,
        channel: ResponseChannel,
        method: str,
        path: str,
        raw_path: str,
        raw_query: str,
        headers: dict[str, str],
        header_bytes: int,
    ) -> None:
        self.id: str = f"tg_{_random_id()}"
        self.channel = channel
        self.method = method
        self.path = path
        self.raw_path = raw_path
        """The path as it came, with its escapes."""
        self.raw_query = raw_query
        self.query: dict[str, str] = dict(parse_qsl(raw_query, keep_blank_values=True)) if raw_query else {}
        self.headers = headers
        self.header_bytes = header_bytes
        """The size of all headers."""
        self.body = b""
        self.body_bytes: int = 0
        """The size of a body that was dropped."""
        self.client = ""
        """The client: a hash of its key, never the key."""
        self.memory: ClientRequests | None = None
        """What is remembered of the client's last requests, if it is a request for a model."""
        self.values: int = 0
        """An upper bound for the number of JSON values in the body, which shows how much work it is."""
        self.share: BodyShare | None = None
        """The memory that its bodies hold."""
        self.accept_socket: AcceptSocket | None = None
        """Accepts the WebSocket that it asks for; None: it asks for none."""
        self.socket: WebSocket | None = None
        """The WebSocket that was accepted, which is served after the request."""
        self.replay_of: str = ""
        """The request of the past that it repeats, by its id."""
        self.is_on_socket: bool = False
        """It came over a WebSocket that goes on after it."""
        self.is_background: bool = False
        """It is the request of a response that runs in the background."""
        self.is_warm_up: bool = False
        """The model is not called: the client prepares a conversation that it continues."""

    @property
    def key(self) -> str:
        """The key of the request, wherever its protocol puts it; empty: there is none."""
        headers = self.headers
        for name in ("x-api-key", "x-goog-api-key", "api-key"):
            if headers.get(name):
                return headers[name].strip()
        scheme, _, value = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return value.strip()
        return str(self.query.get("key", ""))

    async def read(self, max_bytes: int) -> bytes:
        """The whole body, as it came. One whose content-length is too large is refused before it is read."""
        announced, share = self.headers.get("content-length", ""), self.share
        if len(announced) > _FEW_DIGITS and announced.isdecimal():
            refuse_large(int(announced[:20]), max_bytes)
            if share is not None:
                share.refuse_announced(int(announced))
        return await self.channel.read(max_bytes, self.hold)

    def drop_body(self) -> None:
        """Forget the body: it is not read any more, and a stream may go on for an hour."""
        self.body_bytes, self.body = self.body_bytes or len(self.body), b""
        self.memory = None

    def hold(self, size: int) -> None:
        """Count bytes that are held for this request."""
        if self.share is not None:
            self.share.hold(size)


async def read_pieces(
    more: Callable[[], Awaitable[tuple[bytes, bool]]],
    max_bytes: int,
    hold: Hold,
    *,
    pause: float = MAX_PAUSE_SECONDS,
    upload: float = MAX_UPLOAD_SECONDS,
) -> bytes:
    """Read a body in time. `more` returns the next piece, and whether it is the last."""
    pieces: list[bytes] = []
    size = 0
    clock = asyncio.get_running_loop().time
    end = clock() + upload
    try:
        async with asyncio.timeout(pause) as limit:
            while True:
                piece, is_last = await more()
                size += len(piece)
                refuse_large(size, max_bytes)
                hold(len(piece))
                pieces.append(piece)
                if is_last:
                    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
                if piece:
                    limit.reschedule(min(end, clock() + pause))
    except TimeoutError:
        # So slow a client does not need the connection, and the rest of the body is not read.
        close = {"connection": "close"}
        raise refusal("timeout", "the request took too long to arrive", 408, headers=close) from None


def refuse_large(size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise refusal("too_large", f"the request is larger than {max_bytes} bytes (max_body_bytes)", 413)


def refusal(
    kind: FailureKind,
    message: str,
    status: int | None = None,
    code: str = "",
    headers: Mapping[str, str] | None = None,
) -> GatewayRefusal:
    """The error for what the gateway itself refuses."""
    refused = GatewayRefusal(Failure(kind, message, status, code))
    refused.headers = headers or {}
    return refused
