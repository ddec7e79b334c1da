"""A provider that costs next to nothing: it responds to every request with the same bytes, whole, in events, or slowly.

    python bench/gateway_upstream.py        prints its port, serves until its standard input ends

A request for a model whose name ends in `-slow` gets an event each 100 ms, for ever, and one in `-slower` each 500 ms;
the text of each is the time at which it was sent, by the monotonic clock that all processes of a machine share.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from typing import Final, cast

from gateway_traffic import SECONDS_A_SLOWER_EVENT, SECONDS_AN_EVENT, chunk, events, reply

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_STREAM: Final = re.compile(rb'"stream": ?true')
_SLOW: Final = re.compile(rb'"model": ?"[^"]*-slow(er)?"')
_PATHS: Final = (b"/chat/completions", b"/v1/messages")


def _http_chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


_BODY: Final = reply()
WHOLE: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: req_1\r\ncontent-length: %d\r\n\r\n%b"
    % (len(_BODY), _BODY)
)
START: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
BURST: Final = START + b"".join(map(_http_chunk, events())) + b"0\r\n\r\n"
NOT_FOUND: Final = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
_STAMP: Final = b"@"
_BEFORE, _AFTER = chunk(content="@").split(_STAMP)


class Provider(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._data = bytearray()
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            found = _LENGTH.search(self._data, 0, end)
            size = end + 4 + (int(found[1]) if found is not None else 0)
            if len(self._data) < size:
                return
            request = bytes(self._data[:size])
            del self._data[:size]
            self._respond(request)

    def _respond(self, request: bytes) -> None:
        path = request[: request.find(b"\r\n")].split(b" ")[1].partition(b"?")[0]
        if not path.endswith(_PATHS):
            self._transport.write(NOT_FOUND)
        elif not _STREAM.search(request):
            self._transport.write(WHOLE)
        elif (slow := _SLOW.search(request)) is None:
            self._transport.write(BURST)
        else:
            self._transport.write(START)
            self._seconds = SECONDS_A_SLOWER_EVENT if slow[1] else SECONDS_AN_EVENT
            self._send_event(self._loop.time())

    def _send_event(self, due: float) -> None:
        self._timer = self._loop.call_at(due + self._seconds, self._send_event, due + self._seconds)
        self._transport.write(_http_chunk(_BEFORE + b"%d" % time.monotonic_ns() + _AFTER))


async def serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Provider, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve())
    else:
        uvloop.run(serve())
