"""A provider in a thread that closes its connections where a test says, and writes down everything that reached it.

with closing_server([Exchange(), Exchange("after_body")]) as server: …     # an upstream at server.url

It uses blocking sockets: what it has done is done, whether or not the event loop of the test has come to see it.
"""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from support.waiting import HANG_SECONDS

Close = Literal["", "after_answer", "after_head", "in_body", "after_body", "half_head", "half_body"]
"""Where a connection ends: nowhere; after a whole answer; after the request's head, some of its body, or all of it;
after half of the answer's head or of its body."""


class Exchange(NamedTuple):
    """What becomes of one request."""

    close: Close = ""
    answer: bytes = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    is_reset: bool = False
    """The connection ends as that of a process that was killed: with a reset."""


class ClosingServer:
    """Serves the exchanges one after the other, over however many connections; the last one is for all that follow."""

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._exchanges = list(exchanges)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(HANG_SECONDS)
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self.heads: list[bytes] = []
        """Of each request that came, also in part."""
        self.closed = threading.Semaphore(0)
        """Counts the connections that this side has ended."""
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def wait_closed(self) -> None:
        """Returns when one more connection has been ended; blocks the thread, and with it the event loop in it."""
        assert self.closed.acquire(timeout=HANG_SECONDS)

    def end(self) -> None:
        # Closing alone would not wake the thread that waits for a connection.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in self._open:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(HANG_SECONDS)

    def _serve(self) -> None:
        threads = []
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                break
            self.connections += 1
            self._open.append(sock)
            thread = threading.Thread(target=self._converse, args=(sock,), daemon=True)
            thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join(HANG_SECONDS)

    def _converse(self, sock: socket.socket) -> None:
        exchange = Exchange()
        try:
            while (head := _head(sock)) is not None:
                self.heads.append(head[0])
                exchange = self._exchanges.pop(0) if len(self._exchanges) > 1 else self._exchanges[0]
                if not self._answer(sock, exchange, *head):
                    break
        except OSError:
            pass
        if exchange.is_reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
        self.closed.release()

    def _answer(self, sock: socket.socket, exchange: Exchange, head: bytes, begun: bytes) -> bool:
        """Whether the connection goes on."""
        if exchange.close == "after_head":
            return False
        sized = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        size = int(sized[1]) if sized else 0
        if exchange.close == "in_body":
            _read(sock, begun, min(size, len(begun) + 1))
            return False
        _read(sock, begun, size)
        if exchange.close == "after_body":
            return False
        answer_head, _, body = exchange.answer.partition(b"\r\n\r\n")
        if exchange.close == "half_head":
            sock.sendall(answer_head[: len(answer_head) // 2])
            return False
        if exchange.close == "half_body":
            sock.sendall(answer_head + b"\r\n\r\n" + body[: len(body) // 2])
            return False
        sock.sendall(exchange.answer)
        return exchange.close != "after_answer"


def _head(sock: socket.socket) -> tuple[bytes, bytes] | None:
    """The head of the next request, and what came of its body; None at the end of the connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(65_536)
        if not piece:
            return None
        data += piece
    head, _, begun = data.partition(b"\r\n\r\n")
    return head, begun


def _read(sock: socket.socket, data: bytes, size: int) -> bytes:
    while len(data) < size:
        piece = sock.recv(65_536)
        if not piece:
            break
        data += piece
    return data


@contextlib.contextmanager
def closing_server(exchanges: Sequence[Exchange]) -> Iterator[ClosingServer]:
    """The server as long as the block lasts."""
    server = ClosingServer(exchanges)
    try:
        yield server
    finally:
        server.end()
