"""Clients that cost next to nothing: many connections, each with one request at a time.

python bench/gateway_load.py        reads one order a line (JSON) and prints its outcome (JSON)

{"do": "fire", "port": …, "kind": "whole" | "stream", "requests": …, "connections": …}
{"do": "fire", …, "kind": "session", "size": …}             each connection sends the turns of a session of its own
{"do": "hold", "port": …, "streams": …, "seconds": …}       opens streams, prints their delays, waits for a line
                                                            and closes them
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable
from typing import Any, Final, cast

from gateway_traffic import SESSION, SLOW_MODEL, SLOWER_MODEL, question, request, session

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED: Final = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_CLOSES: Final = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_STAMP: Final = re.compile(rb'"(?:text|content)": ?"(\d{10,})"')
_LAST: Final = b"\r\n0\r\n\r\n"
PATIENCE: Final = 240.0
OPENING_SECONDS: Final = 60.0
OPEN_AT_ONCE: Final = 20
"""Streams that are opened before a short pause, so that their events are spread."""


def http_request(body: bytes) -> bytes:
    head = (
        "POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: any\r\nanthropic-version: 2023-06-01\r\n"
        f"content-type: application/json\r\naccept: application/json\r\nuser-agent: bench\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Reader:
    """Finds the end of a response."""

    def __init__(self) -> None:
        self.status = 0
        self.closes = False
        self.size = 0
        self.error_text = bytearray()
        """The beginning of a response that is an error."""
        self._head = bytearray()
        self._left: int | None = None
        self._tail = b""

    def feed(self, data: bytes) -> bool:
        """Whether the response is complete."""
        if not self.status:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0:
                return False
            head, data = bytes(self._head[:end]), bytes(self._head[end + 4 :])
            self.status = int(head[9:12])
            self.closes = _CLOSES.search(head) is not None
            length = _LENGTH.search(head)
            is_chunked = _CHUNKED.search(head) is not None
            self._left = None if is_chunked or length is None else int(length[1])
            self._tail = b"\r\n"
        self.size += len(data)
        if self.status >= 300 and len(self.error_text) < 1000:
            self.error_text += data
        if self._left is not None:
            self._left -= len(data)
            return self._left <= 0
        self._tail = (self._tail + data)[-len(_LAST) :]
        return self._tail == _LAST


class Firing:
    """A number of requests, over a number of connections."""

    def __init__(self, port: int, bodies: list[bytes], requests: int) -> None:
        self.port = port
        self.bodies = bodies
        """What each connection sends, in turn; `SESSION` in it is replaced by the name of the connection."""
        self.clients = 0
        self.left = requests
        self.open = 0
        self.answered = 0
        self.failed = 0
        self.size = 0
        self.why = ""
        self.done = asyncio.get_running_loop().create_future()
        self._connecting: set[asyncio.Task[Any]] = set()

    def connect(self) -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(loop.create_connection(lambda: Client(self), "127.0.0.1", self.port))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    def finish_request(self, reader: Reader, why: str = "") -> None:
        self.answered += 1
        self.size += reader.size
        self.open -= 1
        if why or reader.status != 200:
            self.failed += 1
            self.why = (
                self.why or why or f"{reader.status}: {bytes(reader.error_text[:300]).decode('utf-8', 'replace')}"
            )
        if not self.left and not self.open and not self.done.done():
            self.done.set_result(None)


class Client(asyncio.Protocol):
    """One connection of a `Firing`."""

    def __init__(self, firing: Firing) -> None:
        self._firing = firing
        self._reader: Reader | None = None
        name = b"session-%06d" % firing.clients
        self._bodies = [http_request(body.replace(SESSION, name, 1)) for body in firing.bodies]
        self._sent = 0
        firing.clients += 1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._send_next()

    def _send_next(self) -> None:
        if not self._firing.left:
            self._transport.close()
            return
        self._firing.left -= 1
        self._firing.open += 1
        self._reader = Reader()
        self._transport.write(self._bodies[self._sent % len(self._bodies)])
        self._sent += 1

    def data_received(self, data: bytes) -> None:
        reader = self._reader
        if reader is None or not reader.feed(data):
            return
        self._reader = None
        self._firing.finish_request(reader)
        if reader.closes:
            self._transport.close()
            if self._firing.left:
                self._firing.connect()
        else:
            self._send_next()

    def connection_lost(self, exc: Exception | None) -> None:
        reader, self._reader = self._reader, None
        if reader is None:
            return
        # A response without a length ends with its connection.
        self._firing.finish_request(reader, "" if exc is None and reader.status == 200 else f"broken off: {exc}")
        if self._firing.left:
            self._firing.connect()


class Holder(asyncio.Protocol):
    """One slow stream, and how late each of its events came."""

    def __init__(self, body: bytes, delays: list[int], opened: list[int]) -> None:
        self._body = body
        self._delays = delays
        self._opened = opened
        self._is_open = False
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.write(self._body)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        data = self._rest + data
        end = 0
        for found in _STAMP.finditer(data):
            self._delays.append(now - int(found[1]))
            end = found.end()
        self._rest = data[max(end, len(data) - 60) :]
        if end and not self._is_open:
            self._is_open = True
            self._opened.append(1)


async def fire(order: dict[str, Any]) -> dict[str, Any]:
    kind = order["kind"]
    bodies = session(order["size"]) if kind == "session" else [request(stream=kind == "stream")]
    firing = Firing(order["port"], bodies, order["requests"])
    for _ in range(min(order["connections"], order["requests"])):
        firing.connect()
    try:
        async with asyncio.timeout(PATIENCE):
            await firing.done
    except TimeoutError:
        firing.failed, firing.why = firing.failed + 1, firing.why or f"not done after {PATIENCE:g} s"
    return {"answered": firing.answered, "failed": firing.failed, "why": firing.why, "size": firing.size}


_BODIES: Final[dict[str, Callable[[], bytes]]] = {
    "question": question,
    "agent": lambda: request(stream=True, model=SLOW_MODEL),
    "slower": lambda: request(stream=True, model=SLOWER_MODEL),
}


async def hold(order: dict[str, Any]) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    body = http_request(_BODIES[order["kind"]]())
    delays: list[int] = []
    opened: list[int] = []
    holders = []
    for number in range(order["streams"]):
        _, holder = await loop.create_connection(lambda: Holder(body, delays, opened), "127.0.0.1", order["port"])
        holders.append(holder)
        if number % OPEN_AT_ONCE == 0:
            await asyncio.sleep(0.037)
    before = time.monotonic()
    while len(opened) < len(holders) and time.monotonic() < before + OPENING_SECONDS:
        await asyncio.sleep(0.05)
    await asyncio.sleep(1)
    delays.clear()
    await asyncio.sleep(order["seconds"])
    seen = sorted(delays)
    print_line({"open": len(opened), "events": len(seen), "p50": _at(seen, 0.5), "p99": _at(seen, 0.99)})
    await loop.run_in_executor(None, sys.stdin.readline)
    for holder in holders:
        holder.transport.abort()
    return {"open": 0}


def _at(seen: list[int], part: float) -> float:
    """Milliseconds."""
    return seen[min(len(seen) - 1, int(len(seen) * part))] / 1e6 if seen else float("inf")


def print_line(fields: dict[str, Any]) -> None:
    print(json.dumps(fields), flush=True)


async def work() -> None:
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order = json.loads(line)
        print_line(await (fire if order["do"] == "fire" else hold)(order))


if __name__ == "__main__":
    try:
        import uvloop
    except ImportError:
        asyncio.run(work())
    else:
        uvloop.run(work())
