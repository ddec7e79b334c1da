"""Clients of an ASGI server: of one that is not our own, or of an app in the same process.

Law: that of `ResponseChannel` and `WebSocket`. A disconnect is noticed although ASGI reports it only to `receive`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Any, Final
from urllib.parse import quote

from toolglot.gateway.http.requests import (
    BODILESS,
    ClientRequest,
    GoneError,
    Headers,
    Hold,
    Receive,
    Scope,
    Send,
    ignore_size,
    read_pieces,
)
from toolglot.gateway.http.web_sockets import TOO_BIG, UNSUPPORTED

WATCH_AFTER: Final = 0.02
"""Seconds after which a task waits for a disconnect: a short response does not need it."""


def asgi_request(scope: Scope, receive: Receive, send: Send) -> ClientRequest:
    """The request of an ASGI server."""
    path: str = scope["path"]
    raw_path: bytes = scope.get("raw_path") or quote(path).encode()
    raw = scope["headers"]
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in raw}
    size = sum([len(name) + len(value) for name, value in raw])
    query: bytes = scope.get("query_string", b"")
    channel = AsgiChannel(receive, send)
    return ClientRequest(
        channel, scope["method"], path, raw_path.decode("latin-1"), query.decode("latin-1"), headers, size
    )


async def websocket_request(scope: Scope, receive: Receive, send: Send) -> ClientRequest:
    """The handshake of a WebSocket as the GET request that it is: it is accepted, or a response denies it.

    A server without the extension for such responses can only answer 403.
    """
    await receive()  # websocket.connect
    can_respond = "websocket.http.response" in (scope.get("extensions") or {})

    async def deny(message: MutableMapping[str, Any]) -> None:
        if can_respond:
            await send({**message, "type": f"websocket.{message['type']}"})
        elif message["type"] == "http.response.start":
            await send({"type": "websocket.close"})

    async def accept(headers: Headers, max_bytes: int) -> AsgiSocket:
        await send({"type": "websocket.accept", "headers": _pairs(headers)})
        return AsgiSocket(receive, send, max_bytes)

    request = asgi_request({**scope, "method": "GET"}, receive, deny)
    request.accept_socket = accept
    return request


class AsgiSocket:
    """A WebSocket of an ASGI server, which does its pings itself: a `WebSocket`."""

    def __init__(self, receive: Receive, send: Send, max_bytes: int) -> None:
        self._receive = receive
        self._send = send
        self._max_bytes = max_bytes
        self._is_open = True

    async def receive(self) -> bytes | None:
        while self._is_open:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                self._is_open = False
            elif (text := message.get("text")) is None:
                await self.close(UNSUPPORTED, "messages must be text")
            else:
                data: bytes = text.encode("utf-8", "replace")
                if len(data) <= self._max_bytes:
                    return data
                await self.close(TOO_BIG, f"the message is larger than {self._max_bytes} bytes (max_body_bytes)")
        return None

    async def send(self, text: bytes) -> None:
        await self._send_open({"type": "websocket.send", "text": text.decode("utf-8", "replace")})

    async def ping(self) -> None:
        """The server does that."""

    async def close(self, code: int, reason: str = "") -> None:
        await self._send_open({"type": "websocket.close", "code": code, "reason": reason})
        self._is_open = False

    async def _send_open(self, message: MutableMapping[str, Any]) -> None:
        if self._is_open:
            try:
                await self._send(message)
            except (OSError, RuntimeError):  # the client is gone, which servers report in these ways
                self._is_open = False


class AsgiChannel:
    """One request of an ASGI server."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self.is_gone: bool = False
        self.task: asyncio.Task[None] | None = asyncio.current_task()
        self._receive = receive
        self._send = send
        self._on_disconnect: Callable[[], None] | None = None
        self._watch: asyncio.Future[None] | None = None
        self._later: asyncio.TimerHandle | None = None

    # --- disconnects --------------------------------------------------------------------------------

    def watch(self, on_disconnect: Callable[[], None]) -> None:
        self._on_disconnect = on_disconnect

    def stop_watching(self) -> None:
        self._on_disconnect = None
        if self._later is not None:
            self._later.cancel()
        if self._watch is not None:
            self._watch.cancel()

    def _begin_watching(self) -> None:
        self._watch = asyncio.ensure_future(self._until_gone())

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.is_gone = True
        if self._on_disconnect is not None:
            self._on_disconnect()

    # --- the body -----------------------------------------------------------------------------------

    async def read(self, max_bytes: int, hold: Hold = ignore_size) -> bytes:
        data = await read_pieces(self._more, max_bytes, hold)
        if self._on_disconnect is not None:  # from now on, only a disconnect can be received
            self._later = asyncio.get_running_loop().call_later(WATCH_AFTER, self._begin_watching)
        return data

    async def _more(self) -> tuple[bytes, bool]:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.is_gone = True
            raise GoneError
        return message.get("body", b""), not message.get("more_body")

    # --- the response -------------------------------------------------------------------------------

    async def respond(self, status: int, headers: Headers, data: bytes) -> None:
        sized = {"content-type": "application/json", "content-length": str(len(data))}
        await self.begin(status, headers if status in BODILESS else {**sized, **headers})
        await self._send({"type": "http.response.body", "body": data})

    async def begin(self, status: int, headers: Headers) -> None:
        await self._send({"type": "http.response.start", "status": status, "headers": _pairs(headers)})

    async def write(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def _pairs(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1", "ignore"), _plain(value)) for name, value in headers.items()]


def _plain(value: str) -> bytes:
    """The value with characters that no header may hold replaced by `?`."""
    if value.isascii() and value.isprintable():
        return value.encode()
    return "".join([char if " " <= char <= "~" else "?" for char in value]).encode()
