"""Clients of an ASGI server: of one that is not our own, or of an app in the same process.

Law: that of `Caller`. A client that goes away is noticed although ASGI tells of it only who asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

from toolglot.gateway.http.requests import (
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

WATCH_AFTER: Final = 0.02
"""Seconds after which somebody looks whether the client is still there: a task that a short answer does not need."""


def asgi_request(scope: Scope, receive: Receive, send: Send) -> ClientRequest:
    """A request as an ASGI server tells it."""
    path: str = scope["path"]
    raw_path: bytes = scope.get("raw_path") or quote(path).encode()
    given = scope["headers"]
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in given}
    size = sum([len(name) + len(value) for name, value in given])
    query: bytes = scope.get("query_string", b"")
    channel = AsgiChannel(receive, send)
    return ClientRequest(
        channel, scope["method"], path, raw_path.decode("latin-1"), query.decode("latin-1"), headers, size
    )


class AsgiChannel:
    """One request of an ASGI server."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self.is_gone: bool = False
        self.task: asyncio.Task[None] | None = asyncio.current_task()
        self._receive = receive
        self._send = send
        self._left: Callable[[], None] | None = None
        self._watch: asyncio.Future[None] | None = None
        self._later: asyncio.TimerHandle | None = None

    # --- who goes away ------------------------------------------------------------------------------

    def watch(self, left: Callable[[], None]) -> None:
        self._left = left

    def let_go(self) -> None:
        self._left = None
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
        if self._left is not None:
            self._left()

    # --- the body -----------------------------------------------------------------------------------

    async def read(self, max_bytes: int, hold: Hold = ignore_size) -> bytes:
        data = await read_pieces(self._more, max_bytes, hold)
        if self._left is not None:  # from now on, what is received is that the client went away
            self._later = asyncio.get_running_loop().call_later(WATCH_AFTER, self._begin_watching)
        return data

    async def _more(self) -> tuple[bytes, bool]:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.is_gone = True
            raise GoneError
        return message.get("body", b""), not message.get("more_body")

    # --- the answer ---------------------------------------------------------------------------------

    async def answer(self, status: int, headers: Headers, data: bytes) -> None:
        sized = {"content-type": "application/json", "content-length": str(len(data)), **headers}
        await self.begin(status, sized)
        await self._send({"type": "http.response.body", "body": data})

    async def begin(self, status: int, headers: Headers) -> None:
        pairs = [(name.encode("latin-1", "ignore"), _plain(value)) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def give(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def _plain(value: str) -> bytes:
    """What no header may hold is left out of it."""
    if value.isascii() and value.isprintable():
        return value.encode()
    return "".join([char if " " <= char <= "~" else "?" for char in value]).encode()
