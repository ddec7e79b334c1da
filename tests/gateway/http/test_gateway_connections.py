"""Connections of clients as HTTP has them: kept, ended, pipelined, old, and more than the limit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from support.gateway.http_client import request_of
from support.gateway.served_gateway import Served
from support.hostile.raw_sockets import connect, exchange, post, read_answer, read_to_end
from support.waiting import HANG_SECONDS
from toolglot.gateway import Gateway
from toolglot.gateway.config.settings import Config, GatewaySettings
from toolglot.gateway.http.asgi_client import asgi_request
from toolglot.gateway.http.connections import (
    MAX_PIPELINED,
)
from toolglot.gateway.http.requests import ClientRequest, GoneError

HEALTH = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n"
CHAT = request_of("openai", "openai_chat/gpt-4.1")[1]


SCRIPT = {"rules": [{"reply": {"text": "Hello."}}]}


def test_a_connection_is_kept_for_the_next_request(served: Served) -> None:
    sock = connect(served)
    for _ in range(3):
        sock.sendall(HEALTH + b"\r\n")
        head, body = read_answer(sock)
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"\r\ndate: " in head
        assert b"connection:" not in head
        assert json.loads(body) == {"status": "ok"}
    sock.close()


def test_a_connection_ends_when_its_client_says_so(served: Served) -> None:
    got = exchange(served, HEALTH + b"connection: close\r\n\r\n")
    assert b"\r\nconnection: close\r\n" in got
    assert got.endswith(b'{"status":"ok"}')


def test_what_follows_a_request_that_ends_the_connection_is_not_answered(served: Served) -> None:
    got = exchange(served, HEALTH + b"connection: close\r\n\r\n" + HEALTH + b"\r\n")
    assert got.count(b"HTTP/1.1 ") == 1


def test_an_old_client_gets_its_answer_up_to_the_end_of_the_connection(served: Served) -> None:
    got = exchange(served, b"GET /health HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 200")
    assert b"\r\nconnection: close\r\n" in got


def test_a_stream_for_an_old_client_has_no_chunks(served: Served) -> None:
    head, _, body = exchange(served, post({**CHAT, "stream": True}, version="1.0")).partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert body.startswith(b"data: {")
    assert body.endswith(b"data: [DONE]\n\n")


def test_a_stream_comes_in_chunks_and_leaves_the_connection_in_order(served: Served) -> None:
    got = exchange(served, post({**CHAT, "stream": True}) + HEALTH + b"connection: close\r\n\r\n")
    head, _, rest = got.partition(b"\r\n\r\n")
    assert b"\r\ntransfer-encoding: chunked" in head
    body, last, after = rest.partition(b"\r\n0\r\n\r\n")
    assert last
    assert b"data: [DONE]" in body
    assert after.startswith(b"HTTP/1.1 200")


def test_requests_at_once_are_answered_in_their_order(served: Served) -> None:
    paths = ["/health", "/v1/models", "/nothing", "/health", "/"]
    requests = [f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode() for path in paths]
    got = exchange(served, b"".join(requests) + HEALTH + b"connection: close\r\n\r\n")
    assert [part[:3] for part in got.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"404", b"200", b"200", b"200"]
    assert got.index(b'"object":"list"') < got.index(b'"name":"toolglot"')


def test_many_requests_at_once_are_all_answered(served: Served) -> None:
    got = exchange(served, post(CHAT) * 100 + HEALTH + b"connection: close\r\n\r\n")
    assert got.count(b"HTTP/1.1 200") == 101


def test_more_requests_at_once_than_may_wait_end_the_connection_after_those_that_may(served: Served) -> None:
    got = exchange(served, b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n" * (MAX_PIPELINED + 100))
    assert MAX_PIPELINED < got.count(b"HTTP/1.1 200") == got.count(b"HTTP/1.1 ") < MAX_PIPELINED + 100
    assert b"\r\nconnection: close\r\n" in got[got.rindex(b"HTTP/1.1 ") :]


def test_who_expects_a_100_gets_one_before_sending_the_body(served: Served) -> None:
    sock = connect(served)
    whole = post(CHAT, "expect: 100-continue\r\n")
    head, _, body = whole.partition(b"\r\n\r\n")
    sock.sendall(head + b"\r\n\r\n")
    assert sock.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
    sock.sendall(body)
    head, _ = read_answer(sock)
    assert head.startswith(b"HTTP/1.1 200")
    sock.close()


def test_who_is_refused_gets_no_100(served: Served) -> None:
    head = b"POST /v1/messages HTTP/1.1\r\nhost: evil.example\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n"
    sock = connect(served)
    sock.sendall(head)
    got, _ = read_answer(sock)
    assert got.startswith(b"HTTP/1.1 403")
    sock.close()


def test_a_body_in_pieces_is_read_as_one(served: Served) -> None:
    sock = connect(served)
    long = {**CHAT, "messages": [{"role": "user", "content": "x" * 300_000}]}
    data = post(long)
    for start in range(0, len(data), 50_000):
        sock.sendall(data[start : start + 50_000])
    head, _ = read_answer(sock)
    assert head.startswith(b"HTTP/1.1 200")
    sock.close()


def test_a_body_in_chunks_is_read_as_one(served: Served) -> None:
    data = json.dumps(CHAT).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n"
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(data[at : at + 7]), data[at : at + 7]) for at in range(0, len(data), 7))
    got = exchange(served, head + b"connection: close\r\n\r\n" + chunks + b"0\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 200")


def test_a_head_without_a_body_is_answered_without_one(served: Served) -> None:
    head, _, body = exchange(served, HEALTH.replace(b"GET", b"HEAD") + b"connection: close\r\n\r\n").partition(
        b"\r\n\r\n"
    )
    assert head.startswith(b"HTTP/1.1 200")
    assert b"content-length: 15" in head
    assert body == b""


def test_an_upgrade_to_something_else_is_answered_as_what_it_is_besides(served: Served) -> None:
    got = exchange(served, HEALTH + b"connection: upgrade, close\r\nupgrade: websocket\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 200")


WEBSOCKET = b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAA\r\n\r\n"


@pytest.mark.parametrize("path", [b"/v1/chat/completions", b"/v1/realtime"])
def test_a_websocket_is_refused_with_the_status_that_sends_codex_to_http(served: Served, path: bytes) -> None:
    sock = connect(served)
    for _ in range(2):  # the connection is kept
        sock.sendall(b"GET " + path + b" HTTP/1.1\r\nhost: 127.0.0.1\r\n" + WEBSOCKET)
        head, body = read_answer(sock)
        assert head.startswith(b"HTTP/1.1 426 Upgrade Required\r\n")
        assert b"\r\nupgrade: HTTP/1.1\r\n" in head
        assert json.loads(body)["error"]["message"] == f"{path.decode()} is not served over WebSocket; use HTTP"
    sock.close()


@pytest.mark.parametrize("extensions", [{"websocket.http.response": {}}, None])
def test_a_websocket_of_an_asgi_server_is_refused(extensions: dict[str, Any] | None) -> None:
    sent: list[Any] = []
    headers = [(b"host", b"127.0.0.1"), (b"sec-websocket-key", b"AAAA")]
    scope = {"type": "websocket", "path": "/v1/realtime", "headers": headers, "extensions": extensions}

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    async def handshake() -> None:
        app = Gateway(Config(gateway=GatewaySettings(store=":memory:", log="off")))
        await app(scope, receive, send)
        await app.stop()

    asyncio.run(handshake())
    if extensions is None:
        assert sent == [{"type": "websocket.close"}]
    else:
        assert [message["type"] for message in sent] == [
            "websocket.http.response.start",
            "websocket.http.response.body",
        ]
        assert sent[0]["status"] == 426


UPGRADE = "Connection: Upgrade, HTTP2-Settings\r\nUPGRADE: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"


def test_the_body_of_a_request_that_asks_for_an_upgrade_is_its_body(served: Served) -> None:
    for request in (post(CHAT, UPGRADE), post({**CHAT, "user": "Upgrade: h2c\r\n\r\n"}, UPGRADE)):
        got = exchange(served, request + request + HEALTH + b"connection: upgrade, close\r\nupgrade: h2c\r\n\r\n")
        assert got.count(b"HTTP/1.1 200") == got.count(b"HTTP/1.1 ") == 3
        assert got.count(b"Hello.") == 2
    data = json.dumps(CHAT).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n{UPGRADE}transfer-encoding: chunked\r\n\r\n"
    chunked = head.encode() + b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data)
    got = exchange(served, chunked + HEALTH + b"connection: close\r\n\r\n")
    assert (got.count(b"HTTP/1.1 200"), got.count(b"Hello.")) == (2, 1)


def test_a_request_that_asks_for_an_upgrade_and_for_the_end_is_the_last(served: Served) -> None:
    got = exchange(served, post(CHAT, f"connection: close\r\n{UPGRADE}") + HEALTH + b"\r\n")
    assert (got.count(b"HTTP/1.1 "), got.count(b"Hello.")) == (1, 1)
    assert b"\r\nconnection: close\r\n" in got


@pytest.mark.parametrize("more", ["transfer-encoding: chunked\r\n", "content-length: 3\r\n"])
def test_an_upgrade_does_not_hide_two_lengths(served: Served, more: str) -> None:
    got = exchange(served, post(CHAT, UPGRADE + more))
    assert got.startswith(b"HTTP/1.1 400")
    assert got.count(b"HTTP/1.1 ") == 1


def test_an_upgrade_does_not_make_two_requests_of_one(served: Served) -> None:
    inner = HEALTH + b"\r\n"
    head = f"POST /nothing HTTP/1.1\r\nhost: 127.0.0.1\r\n{UPGRADE}content-length: {len(inner)}\r\n\r\n".encode()
    sock = connect(served)
    sock.sendall(head)
    one = read_answer(sock)[0]
    sock.sendall(inner + HEALTH + b"connection: close\r\n\r\n")
    assert one.startswith(b"HTTP/1.1 404")
    assert read_to_end(sock).count(b"HTTP/1.1 ") == 1


REFUSED = {
    "no host": (b"GET /health HTTP/1.1\r\n\r\n", 400),
    "no host, upgrade": (b"GET /health HTTP/1.1\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", 400),
    "two hosts": (HEALTH + b"Host: localhost\r\n\r\n", 400),
    "0.9": (HEALTH.replace(b"/1.1", b"/0.9") + b"\r\n", 505),
    "2.0": (HEALTH.replace(b"/1.1", b"/2.0") + b"\r\n", 505),
    "coded": (HEALTH + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    "coded in two lines": (HEALTH + b"transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 501),
    "tunnel": (b"CONNECT http://a/health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n", 501),
    "long path": (HEALTH.replace(b"/health", b"/" + b"a" * 200_000) + b"\r\n", 414),
    "path without end": (b"GET /" + b"a" * 800_000, 414),
    "query": (HEALTH.replace(b"/health", b"/?" + b"a" * 40_000) + b"\r\n", 414),
    "long header": (HEALTH + b"x: " + b"a" * 800_000 + b"\r\n\r\n", 431),
    "many headers": (HEALTH + b"x-a: b\r\n" * 100_000 + b"\r\n", 431),
    "empty lines": (b"\r\n" * 300_000, 400),
}


@pytest.mark.parametrize(("data", "status"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_served_gets_an_error_and_ends_the_connection(served: Served, data: bytes, status: int) -> None:
    got = exchange(served, data)
    assert got.startswith(b"HTTP/1.1 %d " % status)
    assert b"\r\nconnection: close\r\n" in got
    assert got.count(b"HTTP/1.1 ") == 1


def test_an_old_client_gets_no_100(served: Served) -> None:
    got = exchange(served, post(CHAT, "expect: 100-continue\r\n", version="1.0"))
    assert got.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("more", ["connection: close\r\n", ""])
def test_an_answer_reaches_who_sends_everything_first(served: Served, more: str) -> None:
    head = f"POST /v1/messages HTTP/1.1\r\nhost: evil.example\r\n{more}content-length: 9000000\r\n\r\n"
    sock = connect(served)
    sock.sendall(head.encode() + b"x" * 9_000_000)
    assert read_answer(sock)[0].startswith(b"HTTP/1.1 403")
    sock.close()


@pytest.mark.parametrize("data", [b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"GET http:// HTTP/1.1\r\n\r\n"])
def test_what_is_no_request_gets_an_error(served: Served, data: bytes) -> None:
    got = exchange(served, data)
    assert got.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert got.endswith(b"Invalid HTTP request received.")


@pytest.mark.parametrize("nonsense", [b"\0\0\0", post(CHAT, "transfer-encoding: xchunked\r\n")])
def test_nonsense_after_requests_gets_an_error_after_their_answers(served: Served, nonsense: bytes) -> None:
    got = exchange(served, post({**CHAT, "stream": True}) + post(CHAT) + nonsense)
    assert [part[:3] for part in got.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"400"]
    assert b"data: [DONE]" in got


def test_headers_that_are_too_long_are_refused_in_words(served: Served) -> None:
    got = exchange(served, HEALTH + b"x-long: " + b"a" * 65_600 + b"\r\nconnection: close\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 431")


def test_a_name_that_no_header_may_hold_does_not_get_into_one(served: Served) -> None:
    body = {**CHAT, "model": "openai_chat/gpt-4.1é\r\nx-evil: 1"}
    got = exchange(served, post(body, "connection: close\r\n"))
    assert b"\r\nx-evil" not in got
    body = {**CHAT, "model": "openai_chat/gpt-é"}
    assert b"\r\nx-toolglot-upstream: openai_chat/gpt-?\r\n" in exchange(served, post(body, "connection: close\r\n"))


def asgi(messages: list[dict[str, Any]], use: Callable[[ClientRequest], Awaitable[None]]) -> list[Any]:
    """What an ASGI server is sent by a use of a request for which it has these messages."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        if not messages:
            await asyncio.sleep(60)
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    async def play() -> None:
        headers = [(b"host", b"127.0.0.1")]
        scope = {"type": "http", "method": "POST", "path": "/a b", "query_string": b"x=1", "headers": headers}
        request = asgi_request(scope, receive, send)
        assert (request.raw_path, request.query, request.header_bytes) == ("/a%20b", {"x": "1"}, 13)
        await use(request)

    asyncio.run(play())
    return sent


def test_a_request_of_an_asgi_server_is_read_and_answered() -> None:
    async def use(request: ClientRequest) -> None:
        assert await request.read(100) == b"abcd"
        await request.channel.respond(200, {"x": "é\n"}, b"{}")
        request.channel.stop_watching()

    last = {"type": "http.request", "body": b"cd"}
    pieces: list[dict[str, Any]] = [{"type": "http.request", "body": b"ab", "more_body": True}, last]
    start, body = asgi(pieces, use)
    assert (b"x", b"??") in start["headers"]
    assert (b"content-length", b"2") in start["headers"]
    assert body == {"type": "http.response.body", "body": b"{}"}


def test_a_client_of_an_asgi_server_that_leaves_in_its_body_has_gone() -> None:
    async def use(request: ClientRequest) -> None:
        with pytest.raises(GoneError):
            await request.read(100)
        assert request.channel.is_gone

    assert asgi([{"type": "http.request", "body": b"a", "more_body": True}, {"type": "http.disconnect"}], use) == []


def test_a_client_of_an_asgi_server_that_leaves_later_is_noticed() -> None:
    async def use(request: ClientRequest) -> None:
        left = asyncio.Event()
        request.channel.watch(left.set)
        await request.read(100)
        async with asyncio.timeout(HANG_SECONDS):
            await left.wait()
        assert request.channel.is_gone
        request.channel.stop_watching()

    more: dict[str, Any] = {"type": "http.request", "body": b"", "more_body": False}
    assert asgi([more, {**more}, {"type": "http.disconnect"}], use) == []
