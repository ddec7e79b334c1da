"""One response on a WebSocket: the channel of its request.

Law: the messages are the events of the stream that the same request gets over HTTP, one for each, as they are; those of
a named lane have its `stream_id` besides. An error that HTTP has as a status is one event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from toolglot.gateway.endpoints.socket_events import (
    FinalResponse,
    error_event,
    final_response,
    item_of,
    type_of,
    with_lane,
)
from toolglot.gateway.endpoints.steering import SteerEvent
from toolglot.gateway.http.requests import GoneError, Headers, Hold, ignore_size, refuse_large
from toolglot.gateway.http.web_sockets import WebSocket
from toolglot.protocols.framing.text_frames import Frame, SseFramer

_ENDS: Final = ("response.completed", "response.incomplete", "response.failed")
_KEPT_HEADERS: Final = ("retry-after", "x-toolglot-request", "x-toolglot-upstream")


class SocketResponse:
    """The channel of one response: a `ResponseChannel`."""

    def __init__(self, socket: WebSocket, lane: str, body: bytes, *, max_event: int, on_read: Callable[[], None]):
        self.is_gone: bool = False
        self.task: asyncio.Task[None] | None = asyncio.current_task()
        self.error_status = 0
        """The status of the error that the client got; 0: none."""
        self.final: FinalResponse | None = None
        """The response at the end of the stream."""
        self.id = ""
        """The id of the response, once it has begun."""
        self.number = 0
        """Events so far."""
        self.steers: list[SteerEvent] = []
        """User input for its successor."""
        self._socket = socket
        self._lane = lane
        self._body = body
        self._on_read = on_read
        self._framer = SseFramer(max_event)
        self._items: list[bytes] = []
        """The items of the response that are complete."""
        self._on_disconnect: Callable[[], None] | None = None

    # --- disconnects --------------------------------------------------------------------------------

    def watch(self, on_disconnect: Callable[[], None]) -> None:
        self._on_disconnect = on_disconnect

    def stop_watching(self) -> None:
        self._on_disconnect = None

    def lose(self) -> None:
        """The client is gone."""
        self.is_gone = True
        if self._on_disconnect is not None:
            self._on_disconnect()

    # --- the request --------------------------------------------------------------------------------

    async def read(self, max_bytes: int, hold: Hold = ignore_size) -> bytes:
        if self.is_gone:
            raise GoneError
        self._on_read()
        body, self._body = self._body, b""
        refuse_large(len(body), max_bytes)
        hold(len(body))
        return body

    # --- the response -------------------------------------------------------------------------------

    async def respond(self, status: int, headers: Headers, data: bytes) -> None:
        if status < 400:
            for event in whole_reply_events(data):
                await self._send(event)
            return
        self.error_status = status
        shown = {name: value for name, value in headers.items() if name in _KEPT_HEADERS}
        await self._socket.send(error_event(status, error_of_body(data), self._lane, shown))

    async def begin(self, status: int, headers: Headers) -> None:
        """The events are all that the client sees."""

    async def write(self, data: bytes) -> None:
        frames = self._framer.feed(data)
        if not frames or not any(frame.data for frame in frames):
            if data.startswith(b":"):
                await self._socket.ping()
            return
        await self._send_frames(frames)

    async def end(self) -> None:
        await self._send_frames(self._framer.finish())

    async def _send_frames(self, frames: list[Frame]) -> None:
        for frame in frames:
            data = frame.data.strip()
            if data.startswith(b"{"):
                await self._send(data)

    async def _send(self, event: bytes) -> None:
        self.number += 1
        kind = type_of(event)
        if not self.id:
            self.id = _id_of(event)
        if kind == "response.output_item.done":
            self._items.append(item_of(event))
        elif kind in _ENDS:
            self.final = final_response(event)
            if self.final is not None and not self.final.items:  # some backends leave the items out at the end
                self.final = replace(self.final, items=b",".join(filter(None, self._items)))
        elif kind == "error":
            event = _wrapped_error(event)
        await self._socket.send(with_lane(event, self._lane))


def _id_of(event: bytes) -> str:
    """The id of the response that an event shows; empty: it shows none."""
    final = final_response(event) if b'"response"' in event else None
    return final.id if final is not None else ""


def error_of_body(data: bytes) -> dict[str, Any]:
    """The error of a body."""
    try:
        error = msgspec.json.decode(data)["error"]
    except (msgspec.DecodeError, KeyError, TypeError):
        error = None
    if type(error) is dict and type(error.get("message")) is str:
        return {"type": "server_error", "code": None, "param": None, **error}
    message = data[:500].decode("utf-8", "replace")
    return {"type": "server_error", "code": None, "message": message, "param": None}


def _wrapped_error(event: bytes) -> bytes:
    """An error in the middle of a stream in the form that it has on a WebSocket."""
    try:
        fields = msgspec.json.decode(event)
    except msgspec.DecodeError:
        return event
    if type(fields) is not dict or fields.get("type") != "error" or "error" in fields:
        return event
    error = {"type": "server_error", **{name: fields.get(name) for name in ("code", "message", "param")}}
    return msgspec.json.encode(
        {"type": "error", "status": 500, "sequence_number": fields.get("sequence_number"), "error": error}
    )


def whole_reply_events(data: bytes) -> Iterator[bytes]:
    """The events of a reply that is not streamed."""
    response = msgspec.json.decode(data)
    output = response.get("output") or []
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for index, item in enumerate(output):
        events += [
            {"type": f"response.output_item.{step}", "output_index": index, "item": item} for step in ("added", "done")
        ]
    status = response.get("status")
    end = status if status in ("incomplete", "failed") else "completed"
    events.append({"type": f"response.{end}", "response": response})
    for number, event in enumerate(events):
        yield msgspec.json.encode({**event, "sequence_number": number})
