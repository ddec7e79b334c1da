"""One response that runs in the background: the client of its own request, which collects what comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from toolglot.gateway.endpoints.socket_response import error_of_body, whole_reply_events
from toolglot.gateway.http.requests import GoneError, Headers, Hold, ignore_size
from toolglot.gateway.state.background_store import ENDED
from toolglot.gateway.state.response_items import complete_response, input_of
from toolglot.protocols.framing.text_frames import Frame, SseFramer

Fields = dict[str, Any]

MAX_EVENT_BYTES: Final = 256 * 1024 * 1024
"""The stream writer has its own, lower limits."""
_ENDED_EARLY: Final = "the response ended before it was complete"


class NumberedEvent(Struct, frozen=True):
    """One event of a stream."""

    number: int
    kind: str
    data: bytes


class _Head(Struct):
    type: str = ""
    sequence_number: int = 0


_read_head: Final = msgspec.json.Decoder(_Head).decode


def read_number(data: bytes) -> NumberedEvent | None:
    """An event; None: it is not one."""
    try:
        head = _read_head(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    return NumberedEvent(head.sequence_number, head.type, data)


class BackgroundRun:
    """One response: the `ResponseChannel` of its request."""

    def __init__(self, client: str, fields: Fields, first: Fields, body: bytes) -> None:
        self.client = client
        self.body: Fields = first
        """The response as it is now."""
        self.first: Fields = first
        """The response as it was when it began."""
        self.events: list[NumberedEvent] = []
        self.items: list[Any] = input_of(fields) or []
        self.task: asyncio.Task[None] | None = None
        self.is_gone: bool = False
        self.is_accepted: bool = False
        """Clients can find it."""
        self.error: tuple[int, Headers, bytes] | None = None
        """The error with which its request ended, before the response began."""
        self._fields = fields
        self._request_body = body
        self._framer = SseFramer(MAX_EVENT_BYTES)
        self._hold: Hold = ignore_size
        self._is_closed = False
        self._changed = asyncio.Event()
        self._on_disconnect: Callable[[], None] | None = None

    @property
    def id(self) -> str:
        return str(self.body["id"])

    @property
    def is_over(self) -> bool:
        return self.body.get("status") in ENDED

    # --- followers ----------------------------------------------------------------------------------

    async def has_begun(self) -> None:
        """Wait for the first event, or for the end."""
        while not self.events and self.error is None and not self._is_closed:
            await self._changed.wait()

    async def wait(self) -> None:
        """Wait for the end."""
        if self.task is not None:
            await asyncio.wait([self.task])

    async def follow(self, ping_seconds: float | None) -> AsyncIterator[NumberedEvent | None]:
        """All events, those of the past first; None: there was none for some seconds."""
        index = 0
        while True:
            changed = self._changed
            while index < len(self.events):
                yield self.events[index]
                index += 1
            if self._is_closed:
                return
            try:
                async with asyncio.timeout(ping_seconds):
                    await changed.wait()
            except TimeoutError:
                yield None

    def _notify(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    # --- its end ------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Cancel it, unless it is over."""
        if not self.is_over:
            self.is_gone = True
            self.body = {**self.body, "status": "cancelled"}
            if self._on_disconnect is not None:
                self._on_disconnect()

    def close(self) -> None:
        """Its request is over."""
        self._is_closed = True
        if not self.is_over:
            error = {"code": "server_error", "message": _ENDED_EARLY}
            if self.error is not None:
                own = error_of_body(self.error[2])
                error = {"code": own.get("code") or "server_error", "message": own["message"]}
            self._fail(error)
        self._notify()

    def _fail(self, error: Fields) -> None:
        self.body = {**self.body, "status": "failed", "error": error}
        number = self.events[-1].number + 1 if self.events else 0
        event = {"type": "response.failed", "sequence_number": number, "response": self.body}
        self.events.append(NumberedEvent(number, "response.failed", msgspec.json.encode(event)))

    # --- the channel of its request -----------------------------------------------------------------

    def watch(self, on_disconnect: Callable[[], None]) -> None:
        self._on_disconnect = on_disconnect

    def stop_watching(self) -> None:
        self._on_disconnect = None

    async def read(self, max_bytes: int, hold: Hold = ignore_size) -> bytes:  # noqa: ARG002 - it was read before
        if self.is_gone:
            raise GoneError
        body, self._request_body, self._hold = self._request_body, b"", hold
        hold(len(body))
        return body

    async def respond(self, status: int, headers: Headers, data: bytes) -> None:
        if status < 400:
            for event in whole_reply_events(data):
                self._add(event)
        else:
            self.error = (status, headers, data)
        self._notify()

    async def begin(self, status: int, headers: Headers) -> None:
        """Events follow."""

    async def write(self, data: bytes) -> None:
        self._add_frames(self._framer.feed(data))

    async def end(self) -> None:
        self._add_frames(self._framer.finish())

    def _add_frames(self, frames: list[Frame]) -> None:
        for frame in frames:
            if frame.data.startswith(b"{") and not self.is_gone:
                self._add(frame.data.replace(b"\n", b" "))
        self._notify()

    def _add(self, data: bytes) -> None:
        event = read_number(data)
        if event is None:
            return
        if b'"response":' in data:
            fields = msgspec.json.decode(data)
            response = fields.get("response")
            if type(response) is dict:
                self.body = {**complete_response(self._fields, response), "background": True}
                data = msgspec.json.encode({**fields, "response": self.body})
                event = NumberedEvent(event.number, event.kind, data)
                if not self.events and not self.is_accepted:
                    self.first = self.body
        self._hold(len(data))
        self.events.append(event)
