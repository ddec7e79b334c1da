"""A provider in this process: requests that call an ASGI app, without a socket between.

The app runs as a task of its own. It can be one piece ahead of its reader and no more. If the response is closed before
its end, the app gets `http.disconnect`, further sends raise `OSError`, and if it continues nevertheless, it is
cancelled after a while.

Law: the interface of `transport.py`, with the same errors for the same things.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from toolglot.errors import InputError
from toolglot.upstream.http.transport import (
    BROKEN_OFF,
    NO_RESPONSE,
    HttpRequest,
    TimeLimits,
    host_of,
    join_headers,
    provider_error,
    read_whole,
    refuse_redirect,
)

Message = MutableMapping[str, Any]
App = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]

GRACE: Final = 1.0
"""Seconds that an app has to end after it got `http.disconnect`."""


class AsgiTransport:
    """Requests to an ASGI app in this process."""

    def __init__(self, app: App, *, grace: float = GRACE) -> None:
        self._app = app
        self._grace = grace
        self._running: set[asyncio.Task[None]] = set()
        self.is_closed = False

    async def send(self, request: HttpRequest, limits: TimeLimits) -> AsgiResponse:
        if self.is_closed:
            raise InputError("this transport is closed", path="transport")
        response = AsgiResponse(request, limits, self._grace)
        task = asyncio.ensure_future(response.run(self._app))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        response.task = task
        try:
            await response.begin()
            refuse_redirect(request, response.status, response.headers)
        except BaseException:
            await response.close()
            raise
        return response

    async def close(self) -> None:
        """End all calls that still run."""
        self.is_closed = True
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


class AsgiResponse:
    """One call of the app: what it sends, and what it is sent."""

    task: asyncio.Task[None]

    def __init__(self, request: HttpRequest, limits: TimeLimits, grace: float) -> None:
        self.status: Any = 0
        self.headers: Mapping[str, str] = {}
        self._request = request
        self._limits = limits
        self._grace = grace
        self._piece = b""
        self._is_sent = False
        """The request was handed to the app."""
        self._is_whole = False
        """The app sent its last piece."""
        self._is_over = False
        """The app will send nothing more, whether it sent all or not."""
        self._fault = ""
        self._gone = asyncio.Event()
        self._came = asyncio.Event()
        self._taken = asyncio.Event()

    # --- the app's side -----------------------------------------------------------------------------

    async def run(self, app: App) -> None:
        try:
            await app(_scope(self._request), self._receive, self._send)
        except Exception as error:  # noqa: BLE001  whatever breaks in a provider, here the response breaks off
            self._fault = f" ({type(error).__name__})"
        finally:
            self._is_over = True
            self._came.set()

    async def _receive(self) -> Message:
        if not self._is_sent:
            self._is_sent = True
            return {"type": "http.request", "body": self._request.body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.headers = _headers(message.get("headers", ()))
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            await self._send_piece(bytes(message.get("body", b"")))
            if not message.get("more_body", False):
                self._is_whole = True
        self._came.set()

    async def _send_piece(self, piece: bytes) -> None:
        while self._piece and piece and not self._gone.is_set():
            self._taken.clear()
            await self._taken.wait()
        if self._gone.is_set():
            raise ConnectionResetError("the response was closed")
        self._piece = self._piece or piece

    # --- the reader's side --------------------------------------------------------------------------

    async def begin(self) -> None:
        """Wait for the status."""
        limit = self._limits.first_byte
        try:
            async with asyncio.timeout(limit):
                while not self.status and not self._is_over:
                    await self._wait()
        except TimeoutError:
            raise provider_error(self._request, "timeout", f"sent nothing within {limit:g} s") from None
        if not self.status:
            raise provider_error(self._request, "server", f"{NO_RESPONSE}{self._fault}")

    async def _wait(self) -> None:
        self._came.clear()
        await self._came.wait()

    async def pieces(self) -> AsyncIterator[bytes]:
        while True:
            if self._piece:
                piece, self._piece = self._piece, b""
                self._taken.set()
                yield piece
            elif self._is_whole:
                return
            elif self._is_over or self._gone.is_set():
                raise provider_error(self._request, "server", f"{BROKEN_OFF}{self._fault}")
            else:
                await self._wait_for_piece()

    async def _wait_for_piece(self) -> None:
        limit = self._limits.idle
        try:
            async with asyncio.timeout(limit):
                await self._wait()
        except TimeoutError:
            await self.close()
            raise provider_error(self._request, "timeout", f"was silent for {limit:g} s") from None

    async def whole(self, max_bytes: int) -> bytes:
        return await read_whole(self._request, self, max_bytes)

    async def close(self) -> None:
        self.end()

    def end(self) -> None:
        """Disconnect at once, before the app continues."""
        if self._gone.is_set():
            return
        self._gone.set()
        self._taken.set()
        self._came.set()
        if not self._is_whole and not self.task.done():
            timer = asyncio.get_running_loop().call_later(self._grace, self.task.cancel)
            self.task.add_done_callback(lambda _: timer.cancel())


def _scope(request: HttpRequest) -> dict[str, Any]:
    parts = urlsplit(request.url)
    headers = {"host": host_of(request.url), "content-length": str(len(request.body)), **request.headers}
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": parts.scheme,
        "path": unquote(parts.path),
        "raw_path": parts.path.encode("ascii", "ignore"),
        "query_string": parts.query.encode("ascii", "ignore"),
        "root_path": "",
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
        "client": ("127.0.0.1", 0),
        "server": (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)),
    }


def _headers(pairs: Any) -> dict[str, str]:
    return join_headers((bytes(name).decode("latin-1"), bytes(value).decode("latin-1")) for name, value in pairs)
