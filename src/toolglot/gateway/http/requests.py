"""A client's HTTP request as the gateway sees it, and the other end of it, which is given an answer.

Law: whatever is read is bounded: headers, body, and what a compressed body becomes.
"""

from __future__ import annotations

import asyncio
import os
import zlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import parse_qsl

from toolglot.conversation import Failure, FailureKind
from toolglot.protocols.errors.failures import ProviderError

if TYPE_CHECKING:
    from toolglot.gateway.http.body_budget import BodyShare

MOST_HEADER_BYTES: Final = 64 * 1024
LONGEST_UPLOAD: Final = 120.0
"""Seconds that a body may take to arrive."""
LONGEST_PAUSE: Final = 30.0
"""Seconds between two pieces of it."""
_FEW_DIGITS: Final = 3
"""Of a content-length that nobody needs to look at."""
_UNPACKED_AT_ONCE: Final = 1024 * 1024
_WINDOWS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""Ways to compress a body, as zlib numbers them."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Hold = Callable[[int], None]
"""Called with the size of what is kept from now on; it may refuse."""
Headers = Mapping[str, str]
"""By names in small letters. What no header may hold is replaced where they are written."""


def uncounted(_: int) -> None:
    """Keep anything."""


class GoneError(Exception):
    """The client went away before it had said everything."""


class GatewayRefusal(ProviderError):  # noqa: N818 - it is what the gateway says, not what went wrong in it
    """What the gateway itself does not do, with a status of its own."""

    headers: Mapping[str, str] = {}


class ResponseChannel(Protocol):
    """The other end of a request: where its body comes from, and where its answer goes.

    An answer is given whole (`answer`), or in pieces: `begin`, `give` …, `end`. To one who has gone nothing is given,
    without an error: whoever waits for that asks to be told (`watch`).
    """

    @property
    def is_gone(self) -> bool: ...

    @property
    def task(self) -> asyncio.Task[None] | None:
        """Which answers it."""
        ...

    def watch(self, left: Callable[[], None]) -> None:
        """Call `left` when the client goes away, once all of its body is here."""
        ...

    def let_go(self) -> None:
        """Nobody watches any more."""
        ...

    async def read(self, most: int, hold: Hold = uncounted) -> bytes:
        """All of the body. `hold` is called with the size of each piece that is kept, and may refuse it."""
        ...

    async def answer(self, status: int, headers: Headers, data: bytes) -> None:
        """A whole answer, which is JSON unless the headers say something else."""
        ...

    async def begin(self, status: int, headers: Headers) -> None: ...

    async def give(self, data: bytes) -> None: ...

    async def end(self) -> None: ...


_chances: list[str] = []
"""Random numbers, drawn many at once."""
os.register_at_fork(after_in_child=_chances.clear)


def _chance() -> str:
    try:
        return _chances.pop()
    except IndexError:
        drawn = os.urandom(12 * 64).hex()
        _chances.extend([drawn[start : start + 24] for start in range(24, len(drawn), 24)])
        return drawn[:24]


class ClientRequest:
    """What a client asks."""

    __slots__ = (
        *("body", "channel", "client", "header_bytes", "headers", "id", "method", "path", "query", "raw_path"),
        *("raw_query", "share", "values"),
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
        self.id: str = f"tg_{_chance()}"
        self.channel = channel
        self.method = method
        self.path = path
        self.raw_path = raw_path
        """As it came, with what is quoted in it."""
        self.raw_query = raw_query
        self.query: dict[str, str] = dict(parse_qsl(raw_query, keep_blank_values=True)) if raw_query else {}
        self.headers = headers
        self.header_bytes = header_bytes
        """How long the headers were, all of them."""
        self.body = b""
        self.client = ""
        """Who asks: a hash of the key that came, never the key."""
        self.values: int = 0
        """How many JSON values the body has at most: how much there is to do with it."""
        self.share: BodyShare | None = None
        """What its bodies hold."""

    @property
    def key(self) -> str:
        """The key that came with the request, wherever its protocol puts it; empty: none did."""
        headers = self.headers
        for name in ("x-api-key", "x-goog-api-key", "api-key"):
            if headers.get(name):
                return headers[name].strip()
        scheme, _, value = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return value.strip()
        return str(self.query.get("key", ""))

    async def read(self, most: int) -> bytes:
        """The whole body, unpacked. One that is announced to be too large is refused before any of it is read."""
        announced, share = self.headers.get("content-length", ""), self.share
        if len(announced) > _FEW_DIGITS and announced.isdecimal():
            refuse_large(int(announced[:20]), most)
            if share is not None:
                share.refuse_announced(int(announced))
        data = await self.channel.read(most, self.hold)
        if "content-encoding" not in self.headers:
            return data
        packed = self.headers["content-encoding"].strip().lower()
        if packed in ("", "identity"):
            return data
        return await asyncio.to_thread(unpacked, data, packed, most, self.hold)

    def hold(self, size: int) -> None:
        """Note that so many bytes more are kept for this request."""
        if self.share is not None:
            self.share.hold(size)


async def read_pieces(
    more: Callable[[], Awaitable[tuple[bytes, bool]]],
    most: int,
    hold: Hold,
    *,
    pause: float = LONGEST_PAUSE,
    upload: float = LONGEST_UPLOAD,
) -> bytes:
    """A body out of its pieces, in time. `more` gives the next one, and whether it is the last."""
    pieces: list[bytes] = []
    size = 0
    clock = asyncio.get_running_loop().time
    end = clock() + upload
    try:
        async with asyncio.timeout(pause) as limit:
            while True:
                piece, is_last = await more()
                size += len(piece)
                refuse_large(size, most)
                hold(len(piece))
                pieces.append(piece)
                if is_last:
                    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
                if piece:
                    limit.reschedule(min(end, clock() + pause))
    except TimeoutError:
        # Whoever is so slow with a body has no use for the connection, and the rest of it is nobody's.
        close = {"connection": "close"}
        raise refusal("timeout", "the request took too long to arrive", 408, headers=close) from None


def refuse_large(size: int, most: int) -> None:
    if size > most:
        raise refusal("too_large", f"the request is larger than {most} bytes (max_body_bytes)", 413)


def unpacked(data: bytes, packed: str, most: int, hold: Hold = uncounted) -> bytes:
    """A compressed body. One that becomes too large is not unpacked further than that."""
    window = _WINDOWS.get(packed)
    if window is None:
        known = ", ".join(_WINDOWS)
        raise refusal(
            "bad_request", f"the content-encoding {packed[:40]!r} is not known here; send {known} or none", 415
        )
    reader = zlib.decompressobj(window)
    pieces: list[bytes] = []
    size, rest = 0, data
    while not reader.eof:
        try:
            piece = reader.decompress(rest, min(most + 1 - size, _UNPACKED_AT_ONCE))
        except zlib.error:
            raise refusal("bad_request", f"the body is not {packed}, as its content-encoding says") from None
        size, rest = size + len(piece), reader.unconsumed_tail
        refuse_large(size, most)
        hold(len(piece))
        pieces.append(piece)
        if not piece:
            break
    if not reader.eof:
        raise refusal("bad_request", f"the {packed} body ends too early")
    if reader.unused_data:
        raise refusal("bad_request", f"something follows the {packed} body: send it in one part")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def refusal(
    kind: FailureKind,
    message: str,
    status: int | None = None,
    code: str = "",
    headers: Mapping[str, str] | None = None,
) -> GatewayRefusal:
    """What the gateway itself refuses."""
    refused = GatewayRefusal(Failure(kind, message, status, code))
    refused.headers = headers or {}
    return refused
