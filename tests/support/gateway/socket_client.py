"""A plain WebSocket client of the Responses protocol: `websockets`, and the events that it gets."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from websockets.sync.client import ClientConnection, connect

from support.gateway.http_client import KEY
from support.hostile.raw_sockets import HasUrl
from support.waiting import HANG_SECONDS

PATH: Final = "/v1/responses"
LAST: Final = ("response.completed", "response.incomplete", "response.failed", "error")
Event = dict[str, Any]


class SocketClient:
    """One WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    def send(self, event: Any) -> None:
        self.socket.send(event if isinstance(event, str | bytes) else json.dumps(event))

    def create(self, model: str, words: Any = "Hello.", **more: Any) -> None:
        self.send({"type": "response.create", "model": model, "input": words, **more})

    def event(self) -> Event:
        data = self.socket.recv(timeout=HANG_SECONDS)
        assert isinstance(data, str)
        event = json.loads(data)
        assert isinstance(event, dict)
        return event

    def until_end(self, lane: str | None = None) -> list[Event]:
        """The events of one lane, up to its last; those of others are dropped."""
        found: list[Event] = []
        while not found or found[-1]["type"] not in LAST:
            event = self.event()
            if event.get("stream_id") == lane:
                found.append(event)
        return found

    def response(self, model: str, words: Any = "Hello.", **more: Any) -> Event:
        """The last event of one response."""
        self.create(model, words, **more)
        return self.until_end(more.get("stream_id"))[-1]


@contextlib.contextmanager
def socket_to(
    served: HasUrl, *, path: str = PATH, key: str = KEY, headers: Mapping[str, str] | None = None, **more: Any
) -> Iterator[SocketClient]:
    url = served.url.replace("http://", "ws://") + path
    sent = {"authorization": f"Bearer {key}", **(headers or {})}
    with connect(url, additional_headers=sent, open_timeout=HANG_SECONDS, **more) as socket:
        yield SocketClient(socket)


def without_ids(events: list[Event]) -> list[Event]:
    """Events without what differs between two equal requests: the ids that the gateway makes, and the time."""
    ids = [event["response"]["id"] for event in events if "response" in event]
    text = json.dumps(events).replace(ids[0].removeprefix("resp_"), "ID") if ids else json.dumps(events)
    plain: list[Event] = json.loads(re.sub(r'"(created_at|completed_at)": \d+', r'"\1": 0', text))
    return plain
