"""WebSockets of clients that mean no good: each ends, or is served, and the others do not notice."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
from collections.abc import Iterator

import pytest
from websockets.exceptions import ConnectionClosed

from support.gateway.http_client import ask
from support.gateway.served_gateway import Served, config_for, gateway
from support.gateway.socket_client import PATH, SocketClient, socket_to
from support.hostile.bounded_gateway import ShortSockets, bounded
from support.hostile.hostile_upstream import EVENTS, chunk, delta, endless, hostile
from support.hostile.raw_sockets import connect
from support.waiting import wait_until
from toolglot.gateway import Gateway
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.simulator import Server, serve

MODEL = "anthropic/claude-haiku-4-5"
HANDSHAKE = (
    b"GET /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
DEFLATE = b"sec-websocket-extensions: permessage-deflate; client_max_window_bits\r\n"


@pytest.fixture(scope="module")
def simulated() -> Iterator[Server]:
    with serve() as server:
        yield server


def app_for(simulated: Server, settings: str = "", upstreams: str = "") -> Gateway:
    config = config_for(simulated, settings=settings, upstreams=upstreams)
    return Gateway(config, request_log=RequestLog(max_remembered=100, form="off"))


def opened(served: Served, more: bytes = b"") -> socket.socket:
    """A socket behind its handshake."""
    sock = connect(served)
    sock.sendall(HANDSHAKE + more + b"\r\n")
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += sock.recv(1)
    assert head.startswith(b"HTTP/1.1 101 "), head
    return sock


def frame(opcode: int, data: bytes, *, fin: bool = True) -> bytes:
    head = struct.pack("!BBQ", opcode | (0x80 if fin else 0), 0xFF, len(data))
    if len(data) < 126:
        head = struct.pack("!BB", opcode | (0x80 if fin else 0), 0x80 | len(data))
    return head + b"\0\0\0\0" + data


def close_code(sock: socket.socket) -> int:
    """The code of the last frame before the connection ends; 0: it just ends."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while piece := sock.recv(65536):
            data += piece
    sock.close()
    at = data.rfind(b"\x88")
    return int(struct.unpack("!H", data[at + 2 : at + 4])[0]) if 0 <= at < len(data) - 3 else 0


def check_alive(served: Served) -> None:
    assert ask(served, PATH, {"model": MODEL, "input": "x"}).status == 200
    wait_until(lambda: served.app.budget.used == 0)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x81\x02{}", 1002),
        (frame(2, b"{}"), 1003),
        (frame(1, b"\xff"), 1007),
        (frame(1, b"x" * 2000), 1009),
        (b"\x81\xff" + struct.pack("!Q", 1 << 62), 1009),
        (frame(1, b"x" * 900, fin=False) + frame(0, b"x" * 900, fin=False), 1009),
        (frame(9, b"") * 100_000, 1008),
        (b"GET / HTTP/1.1\r\n\r\n", 1002),
        (b"\x00" * 100, 1002),
    ],
)
def test_what_is_not_the_protocol_ends_the_socket(simulated: Server, data: bytes, code: int) -> None:
    with gateway(simulated, settings="max_body_bytes = 1024") as served:
        sock = opened(served, DEFLATE)
        with contextlib.suppress(ConnectionError):
            sock.sendall(data)
        assert close_code(sock) in (code, 0)  # 0: the rest of a flood resets the connection
        check_alive(served)


def test_frames_right_behind_the_handshake_open_no_socket(simulated: Server) -> None:
    with gateway(simulated) as served:
        sock = connect(served)
        sock.sendall(HANDSHAKE + b"\r\n" + frame(1, b"{}"))
        data = sock.recv(65536)
        sock.close()
        assert data.startswith(b"HTTP/1.1 400 ")
        check_alive(served)


def test_a_message_that_never_ends_ends_the_socket(simulated: Server) -> None:
    with bounded(app_for(simulated, "ping_seconds = 0.1"), ShortSockets) as served:
        for begin in (frame(1, b"{", fin=False), frame(1, b"x" * 500)[:-1], b"\x81"):
            sock = opened(served)
            sock.sendall(begin)
            assert close_code(sock) == 1008
        check_alive(served)


def test_a_client_that_answers_no_ping_is_gone(simulated: Server) -> None:
    with gateway(simulated, settings="ping_seconds = 0.05") as served:
        sock = opened(served)
        data = b""
        with contextlib.suppress(ConnectionError):
            while piece := sock.recv(100):
                data += piece
        sock.close()
        assert data == b"\x89\x00" * (len(data) // 2)
        assert data
        check_alive(served)


def test_a_client_that_answers_pings_stays(simulated: Server) -> None:
    with gateway(simulated, settings="ping_seconds = 0.02") as served, socket_to(served) as client:
        sock = opened(served)  # it answers none, and is gone long after the other would be
        with contextlib.suppress(ConnectionError):
            while sock.recv(100):
                pass
        sock.close()
        assert client.response(MODEL)["type"] == "response.completed"


def test_a_client_that_does_not_read_ends_its_upstream_call_and_holds_little(simulated: Server) -> None:
    way = endless(EVENTS + chunk(delta("One")), chunk(delta("x" * 10_000)))
    with hostile({"endless": way}) as provider:
        app = app_for(simulated, upstreams=f'[upstreams.hostile]\nurl = "{provider.url}"')
        with bounded(app, ShortSockets) as served:
            sock = opened(served)
            body = {"type": "response.create", "model": "hostile/endless", "input": "x"}
            sock.sendall(frame(1, json.dumps(body).encode()))
            wait_until(lambda: [record.request.method for record in served._records] == ["GET", "POST"])
            assert "disconnected" in served.records[-1].response.error
            sock.close()
            check_alive(served)


def test_pings_of_a_client_that_does_not_read_are_not_collected(simulated: Server) -> None:
    with bounded(app_for(simulated), ShortSockets) as served:
        sock = opened(served)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        flood = frame(9, b"x" * 125) * 100
        sock.settimeout(0.2)
        with contextlib.suppress(OSError):
            while True:
                sock.sendall(flood)
        sock.close()
        check_alive(served)


def test_half_open_closes_and_resets_leave_nothing_behind(simulated: Server) -> None:
    body = json.dumps({"type": "response.create", "model": MODEL, "input": "x"}).encode()
    with gateway(simulated) as served:
        for data in (b"", frame(1, body), frame(1, body)[:20], frame(8, b"\x03\xe8"), frame(1, body) + frame(8, b"")):
            for how in ("shut", "reset", "close"):
                sock = opened(served)
                sock.sendall(data)
                if how == "reset":
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                elif how == "shut":
                    sock.shutdown(socket.SHUT_WR)
                    close_code(sock)
                sock.close()
        wait_until(lambda: served.app._sockets._open == set())
        check_alive(served)


def test_hundreds_of_idle_sockets_hold_nothing_and_are_all_alive(simulated: Server) -> None:
    with gateway(simulated) as served, contextlib.ExitStack() as stack:
        clients: list[SocketClient] = [stack.enter_context(socket_to(served, ping_interval=None)) for _ in range(300)]
        wait_until(lambda: served.app.open == 0)
        assert served.app.budget.used == 0
        for client in clients[::50]:
            assert client.response(MODEL)["type"] == "response.completed"
        assert len(served.app._sockets._open) == 300


def test_connections_beyond_the_limit_are_refused_also_for_sockets(simulated: Server) -> None:
    with gateway(simulated, settings="max_connections = 3") as served:
        held = [opened(served) for _ in range(3)]
        sock = connect(served)
        sock.sendall(HANDSHAKE + b"\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 503 ")
        for each in (*held, sock):
            each.close()
        wait_until(lambda: served.app._sockets._open == set())
        check_alive(served)


def test_messages_count_against_the_memory_for_bodies(simulated: Server) -> None:
    with gateway(simulated, settings="max_bytes_in_flight = 100000") as served:
        held = opened(served)
        held.sendall(frame(1, b"x" * 90_000)[:-1])
        wait_until(lambda: served.app.budget.used > 80_000)
        with socket_to(served) as client:
            client.create(MODEL, "x" * 50_000)
            with pytest.raises(ConnectionClosed, match="1013"):
                client.event()
        held.close()
        check_alive(served)


def test_random_bytes_behind_a_handshake_never_hurt(simulated: Server) -> None:
    chance = random.Random(7)  # noqa: S311 - no secret
    with gateway(simulated) as served:
        for _ in range(60):
            sock = opened(served, DEFLATE)
            data = chance.randbytes(chance.randrange(1, 400))
            with contextlib.suppress(ConnectionError):
                sock.sendall(data)
                sock.shutdown(socket.SHUT_WR)
            close_code(sock)
        wait_until(lambda: served.app._sockets._open == set())
        check_alive(served)
