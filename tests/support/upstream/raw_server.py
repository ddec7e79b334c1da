"""A server on loopback that does with each connection what a test says, byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple


class Came(NamedTuple):
    """A request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes


class RawServer:
    """Where it listens, and how many connections came."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.requests: list[Came] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def next_request(self, reader: asyncio.StreamReader) -> Came:
        """Read one request; an `IncompleteReadError` at the end of the connection."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.requests.append(Came(head[0], headers, body))
        return self.requests[-1]


@contextlib.asynccontextmanager
async def listening(
    handler: Callable[[RawServer, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[RawServer]:
    """A server as long as the block lasts; what its handlers run into ends them only."""
    server = RawServer()
    running: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            await handler(server, reader, writer)
        except (asyncio.CancelledError, asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()
            running.discard(task)

    listener = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def answer(body: bytes = b"{}", *headers: bytes, status: bytes = b"200 OK") -> bytes:
    """A whole answer."""
    lines = (b"HTTP/1.1 " + status, b"content-type: application/json", *headers, b"content-length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
