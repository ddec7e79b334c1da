"""A provider that does not keep to HTTP or to its protocol: each model is a way to misbehave, written as bytes.

with hostile({"endless": endless}) as provider: …      # an upstream at provider.url
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

from support.waiting import HANG_SECONDS

Way = Callable[[bytes], AsyncIterator[bytes]]
"""What is sent for a request with this head."""

EVENTS = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
)
GOOD = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
}
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def delta(words: str) -> bytes:
    piece = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": words}}]}
    return b"data: " + json.dumps(piece).encode() + b"\n\n"


def whole(data: bytes, status: int = 200, headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}connection: close\r\n"
    return f"{head}content-length: {len(data)}\r\n\r\n".encode() + data


def once(data: bytes) -> Way:
    async def way(_: bytes) -> AsyncIterator[bytes]:
        yield data

    return way


def endless(begin: bytes, piece: bytes, pause: float = 0.0) -> Way:
    async def way(_: bytes) -> AsyncIterator[bytes]:
        yield begin
        while True:
            yield piece
            await asyncio.sleep(pause)

    return way


class Hostile:
    """A provider that runs."""

    def __init__(self, ways: Mapping[str, Way], *, keeps_connections: bool = False) -> None:
        self._ways = ways
        self._keeps_connections = keeps_connections
        self.url = ""
        self.open = 0
        """Connections that are open."""
        self.heads: list[bytes] = []
        self.models: list[str] = []
        """The requested paths, in the order in which it came."""
        self.sent = 0
        """Bytes that the peer took, or that lie in buffers of the system."""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            while await self._answer_one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection is kept for another request."""
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        sized = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        body = await reader.readexactly(int(sized[1])) if sized else b""
        named = re.search(rb'"model":\s*"([^"]*)"', body)
        self.models.append(named[1].decode() if named else "passed")
        way = self._ways[self.models[-1]]
        if self._keeps_connections:
            await self._send(way(head), writer)
            return True
        sending = asyncio.ensure_future(self._send(way(head), writer))
        leaving = asyncio.ensure_future(reader.read())
        await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        for task in (sending, leaving):
            task.cancel()
        await asyncio.gather(sending, leaving, return_exceptions=True)
        return False

    async def _send(self, pieces: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
        async for piece in pieces:
            writer.write(piece)
            await writer.drain()
            self.sent += len(piece)


def upstream_at(provider: Hostile, *settings: str, name: str = "h", target: str = "openai") -> str:
    """An upstream of a configuration: this provider, with patience, and called however often it fails."""
    lines = [f"[upstreams.{name}]", 'provider = "openai"', f'target = "{target}"', f'url = "{provider.url}"']
    lines += ['key_env = "HOSTILE_KEY"', "breaker_failures = 10000"]
    names = {line.split(" = ")[0] for line in settings}
    lines += [
        line for line in ("first_byte_seconds = 3600", "idle_seconds = 3600") if line.split(" = ")[0] not in names
    ]
    return "\n".join([*lines, *settings])


@contextlib.contextmanager
def hostile(ways: Mapping[str, Way], *, keeps_connections: bool = False) -> Iterator[Hostile]:
    """The provider, in a thread, as long as the block lasts."""
    provider = Hostile(ways, keeps_connections=keeps_connections)
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(provider.answer, "127.0.0.1", 0))
    provider.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        asyncio.run_coroutine_threadsafe(_ended(server), loop).result(HANG_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _ended(server: asyncio.Server) -> None:
    server.close()
    own = asyncio.current_task()
    tasks = [task for task in asyncio.all_tasks() if task is not own]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
