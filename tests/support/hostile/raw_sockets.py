"""Bytes over a socket to a gateway, as a test writes them, and what comes back; nothing corrects either.

data = exchange(served, post(BODY, "transfer-encoding: chunked\r\n"))    # up to the end of the connection
[answer] = answers_in(data)                                             # h11 reads them: it is not our parser
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import h11

from support.waiting import HANG_SECONDS

CHAT_PATH = "/v1/chat/completions"


class HasUrl(Protocol):
    """A gateway of this process, or of another."""

    @property
    def url(self) -> str: ...


class RawAnswer(NamedTuple):
    """One HTTP response out of the bytes of a connection."""

    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.data)


def connect(served: HasUrl) -> socket.socket:
    parts = urlsplit(served.url)
    return socket.create_connection((parts.hostname, parts.port), timeout=HANG_SECONDS)


def read_to_end(sock: socket.socket) -> bytes:
    """Everything up to the end of the connection; an error where that does not come."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while piece := sock.recv(65536):
            data += piece
    sock.close()
    return data


def exchange(served: HasUrl, data: bytes) -> bytes:
    """Send, and read to the end of the connection, which the gateway has to close."""
    sock = connect(served)
    sock.sendall(data)
    return read_to_end(sock)


def read_answer(sock: socket.socket) -> tuple[bytes, bytes]:
    """The head and the body of one response that has a content-length."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _some(sock)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += _some(sock)
    return head, body


def _some(sock: socket.socket) -> bytes:
    data = sock.recv(65536)
    assert data, "the connection ended early"
    return data


def post(body: Any, headers: str = "", path: str = CHAT_PATH, version: str = "1.1") -> bytes:
    """A request with a content-length. A body that is not bytes is written as JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"POST {path} HTTP/{version}\r\nhost: 127.0.0.1\r\n{headers}content-length: {len(data)}\r\n\r\n"
    return head.encode("latin-1") + data


def chunked(data: bytes) -> bytes:
    """A whole body in one chunk."""
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data)


def answers_in(data: bytes, methods: Sequence[str] = ()) -> list[RawAnswer]:
    """All responses of a connection that has ended. What is no HTTP, or more than the last one, is an error."""
    found: list[RawAnswer] = []
    client = h11.Connection(h11.CLIENT)
    client.receive_data(data)
    client.receive_data(b"")
    while client.trailing_data[0]:
        method = methods[len(found)] if len(found) < len(methods) else "POST"
        client.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
        client.send(h11.EndOfMessage())
        found.append(_next_answer(client))
        if client.their_state is h11.MUST_CLOSE or client.our_state is h11.MUST_CLOSE:
            assert not client.trailing_data[0], client.trailing_data
            break
        client.start_next_cycle()
    return found


def _next_answer(client: h11.Connection) -> RawAnswer:
    status, headers, body = 0, {}, b""
    while True:
        event = client.next_event()
        if isinstance(event, h11.Response):
            status = event.status_code
            headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            return RawAnswer(status, headers, body)
        else:
            assert isinstance(event, h11.InformationalResponse), event
