"""A client's HTTP request as the gateway sees it, and the answers that it can be given.

Law: whatever is read is bounded: headers, body, and what a compressed body becomes.
"""

from __future__ import annotations

import asyncio
import secrets
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote

from toolglot.conversation import Failure, FailureKind
from toolglot.wire.failures import ProviderError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

MOST_HEADER_BYTES: Final = 64 * 1024
LONGEST_UPLOAD: Final = 120.0
"""Seconds that a body may take to arrive."""
LONGEST_PAUSE: Final = 30.0
"""Seconds between two pieces of it."""
_WINDOWS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""Ways to compress a body, as zlib numbers them."""
_JSON: Final = (b"content-type", b"application/json")


class GoneError(Exception):
    """The client went away before it had said everything."""


class GatewayRefusal(ProviderError):  # noqa: N818 - it is what the gateway says, not what went wrong in it
    """What the gateway itself does not do, with a status of its own."""

    headers: Mapping[str, str] = {}


class ClientRequest:
    """What a client asks."""

    __slots__ = (
        *("_receive", "body", "client", "headers", "id", "method", "path", "query", "raw_path", "raw_query"),
        "when_read",
    )

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.id = "tg_" + secrets.token_hex(12)
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.raw_path: str = (scope.get("raw_path") or quote(self.path).encode()).decode("latin-1")
        """As it came, with what is quoted in it."""
        self.raw_query: str = scope.get("query_string", b"").decode("latin-1")
        self.query = dict(parse_qsl(self.raw_query, keep_blank_values=True)) if self.raw_query else {}
        self.headers: dict[str, str] = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        self.body = b""
        self.client = ""
        """Who asks: a hash of the key that came, never the key."""
        self.when_read: Callable[[], None] | None = None
        """Called when all of the body is here: from then on, what is received is that the client went away."""
        self._receive = receive

    @property
    def key(self) -> str:
        """The key that came with the request, wherever its protocol puts it; empty: none did."""
        for name in ("x-api-key", "x-goog-api-key", "api-key"):
            if self.headers.get(name):
                return self.headers[name].strip()
        scheme, _, value = self.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return value.strip()
        return str(self.query.get("key", ""))

    async def read(self, most: int) -> bytes:
        """The whole body, unpacked."""
        try:
            async with asyncio.timeout(LONGEST_PAUSE) as limit:
                data = await self._received(most, limit)
        except TimeoutError:
            raise refusal("timeout", "the request took too long to arrive", 408) from None
        packed = self.headers.get("content-encoding", "").strip().lower()
        if packed in ("", "identity"):
            return data
        return await asyncio.to_thread(unpacked, data, packed, most)

    async def _received(self, most: int, limit: asyncio.Timeout) -> bytes:
        pieces: list[bytes] = []
        size = 0
        clock = asyncio.get_running_loop().time
        end = clock() + LONGEST_UPLOAD
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise GoneError
            piece = message.get("body", b"")
            size += len(piece)
            if size > most:
                raise refusal("too_large", f"the request is larger than {most} bytes (max_body_bytes)", 413)
            pieces.append(piece)
            if not message.get("more_body"):
                if self.when_read is not None:
                    self.when_read()
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)
            if piece:
                limit.reschedule(min(end, clock() + LONGEST_PAUSE))


def unpacked(data: bytes, packed: str, most: int) -> bytes:
    """A compressed body. One that becomes too large is not unpacked further than that."""
    window = _WINDOWS.get(packed)
    if window is None:
        known = ", ".join(_WINDOWS)
        raise refusal(
            "bad_request", f"the content-encoding {packed[:40]!r} is not known here; send {known} or none", 415
        )
    reader = zlib.decompressobj(window)
    try:
        plain = reader.decompress(data, most + 1)
    except zlib.error:
        raise refusal("bad_request", f"the body is not {packed}, as its content-encoding says") from None
    if len(plain) > most:
        raise refusal("too_large", f"the request is larger than {most} bytes (max_body_bytes)", 413)
    if not reader.eof:
        raise refusal("bad_request", f"the {packed} body ends too early")
    if reader.unused_data:
        raise refusal("bad_request", f"something follows the {packed} body: send it in one part")
    return plain


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


# --- answers ----------------------------------------------------------------------------------------


def header_pairs(headers: Mapping[str, str]) -> Headers:
    """Headers as they are sent. What no header may hold is left out of it."""
    return [(name.lower().encode("latin-1", "ignore"), _plain(value)) for name, value in headers.items()]


def _plain(value: str) -> bytes:
    if value.isascii() and value.isprintable():
        return value.encode()
    return "".join([char if " " <= char <= "~" else "?" for char in value]).encode()


async def send_json(send: Send, status: int, data: bytes, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    sized = [_JSON, (b"content-length", b"%d" % len(data)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": sized})
    await send({"type": "http.response.body", "body": data})


async def send_start(send: Send, content_type: str, headers: Iterable[tuple[bytes, bytes]]) -> None:
    kind = (b"content-type", content_type.encode())
    unbuffered = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))
    await send({"type": "http.response.start", "status": 200, "headers": [kind, *unbuffered, *headers]})


async def send_piece(send: Send, data: bytes, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": more})


async def until_gone(receive: Receive) -> None:
    """Returns when the client has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass
