"""Requests that two servers could read differently: nothing in them becomes a request of its own.

Every attack carries a second request, `SMUGGLED`, where only a wrong reading finds it. Whatever the gateway says to the
first one, the upstream never sees the second, each request has one answer, and a connection whose framing is in doubt
is closed after it.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from support.gateway.http_client import ask, request_of
from support.gateway.served_gateway import Served, gateway
from support.hostile.hostile_upstream import GOOD, Hostile, hostile, once, upstream_at, whole
from support.hostile.raw_sockets import CHAT_PATH, answers_in, chunked, connect, exchange, post, read_to_end
from support.waiting import wait_until


@pytest.fixture(scope="module")
def provider() -> Iterator[Hostile]:
    good = once(whole(json.dumps(GOOD).encode()))
    with hostile({"first": good, "smuggled": good, "next": good}, keeps_connections=True) as running:
        yield running


@pytest.fixture(scope="module")
def served(provider: Hostile) -> Iterator[Served]:
    with gateway(None, upstreams=upstream_at(provider), environ={"HOSTILE_KEY": "a-key-of-the-gateway"}) as running:
        yield running


def _body(model: str) -> bytes:
    return json.dumps(request_of("openai", f"h/{model}")[1]).encode()


FIRST, NEXT = _body("first"), _body("next")
SMUGGLED = post(_body("smuggled"), "connection: close\r\n")


def _head(*headers: str | bytes, line: str = f"POST {CHAT_PATH} HTTP/1.1") -> bytes:
    lines = [line.encode(), b"host: 127.0.0.1", *(h if isinstance(h, bytes) else h.encode("latin-1") for h in headers)]
    return b"\r\n".join(lines) + b"\r\n\r\n"


LENGTH = f"content-length: {len(FIRST)}"
IN_CHUNKS = "transfer-encoding: chunked"
LATE = _body("smuggled")


class Attack(NamedTuple):
    data: bytes
    statuses: tuple[int, ...] = (400,)
    """Of the answers, in their order; the connection is closed after the last."""
    reached: int = 0
    """How many requests the upstream gets, all of them `first`."""


def _length(value: str) -> Attack:
    return Attack(_head(f"content-length: {value}") + FIRST + SMUGGLED)


def _coding(value: str | bytes, status: int = 400) -> Attack:
    """A coding that one server takes for chunks and another does not, beside a length."""
    line = b"transfer-encoding: " + (value if isinstance(value, bytes) else value.encode("latin-1"))
    return Attack(_head(line) + chunked(FIRST) + SMUGGLED, (status,))


def _header(line: str | bytes) -> Attack:
    return Attack(_head(line, LENGTH) + FIRST + SMUGGLED)


def _chunks(data: bytes) -> Attack:
    return Attack(_head(IN_CHUNKS) + data + SMUGGLED)


SIZE = b"%x" % len(FIRST)
ATTACKS: dict[str, Attack] = {
    # two framings at once
    "length, then chunks": Attack(_head(LENGTH, IN_CHUNKS) + b"0\r\n\r\n" + SMUGGLED),
    "chunks, then length": Attack(_head(IN_CHUNKS, "content-length: 4") + chunked(SMUGGLED)),
    "chunks, then length 0": Attack(_head(IN_CHUNKS, "content-length: 0") + chunked(FIRST) + SMUGGLED),
    "two lengths": Attack(_head("content-length: 0", LENGTH) + FIRST + SMUGGLED),
    "two lengths that agree": Attack(_head(LENGTH, LENGTH) + FIRST + SMUGGLED),
    "length in another case": Attack(_head("Content-Length: 0", LENGTH) + FIRST + SMUGGLED),
    # lengths that are none
    "length +n": _length(f"+{len(FIRST)}"),
    "length -1": _length("-1"),
    "length in hexadecimal": _length(f"0x{len(FIRST):x}"),
    "length in a list": _length(f"{len(FIRST)}, {len(FIRST)}"),
    "length in a list of two": _length(f"0, {len(FIRST)}"),
    "length with a space": _length("1 0"),
    "length with a dot": _length(f"{len(FIRST)}.0"),
    "length with an exponent": _length("1e2"),
    "length with a separator": _length("1_0"),
    "length empty": _length(""),
    "length of 2**64": _length(str(2**64)),
    "length of 2**64 and n": _length(str(2**64 + len(FIRST))),
    "length in digits of another script": _length("\xb2\xb3"),
    # codings
    "chunks in a list": _coding("chunked, identity"),
    "chunks after another": _coding("gzip, chunked", 501),
    "chunks twice": _coding("chunked, chunked"),
    "chunks behind identity": _coding("identity, chunked", 501),
    "chunks in quotes": _coding('"chunked"'),
    "chunks with a parameter": _coding("chunked;x=1"),
    "chunks with a vertical tab": _coding(b"\x0bchunked"),
    "chunks with a NUL": _coding(b"chunked\0"),
    "chunks with more letters": _coding("xchunked"),
    "chunks with a prefix": _coding("chunkedx"),
    "identity": _coding("identity"),
    "two codings": Attack(_head(IN_CHUNKS, "transfer-encoding: identity") + chunked(FIRST) + SMUGGLED),
    "two codings, the other order": Attack(
        _head("transfer-encoding: identity", IN_CHUNKS) + chunked(FIRST) + SMUGGLED, (501,)
    ),
    # headers
    "space before the colon": _header("transfer-encoding : chunked"),
    "tab before the colon": _header("transfer-encoding\t: chunked"),
    "space before the name": _header(" transfer-encoding: chunked"),
    "folded": _header("x-a: b\r\n transfer-encoding: chunked"),
    "folded by a tab": _header("x-a:\r\n\ttransfer-encoding: chunked"),
    "NUL in a value": _header("x-a: b\0c"),
    "NUL in a name": _header("x\0a: b"),
    "CR in a value": _header("x-a: b\rtransfer-encoding: chunked"),
    "LF in a value": _header("x-a: b\ntransfer-encoding: chunked"),
    "LF twice in a value": _header("x-a: b\n\nPOST / HTTP/1.1"),
    "no colon": _header("x-a"),
    "no name": _header(": b"),
    "a name with brackets": _header("x(a): b"),
    "a name with a colon of another width": _header(b"transfer-encoding\xef\xbc\x9achunked"),
    "two hosts": _header("host: evil.example"),
    "no host": Attack(post(FIRST).replace(b"host: 127.0.0.1\r\n", b"") + SMUGGLED),
    # lines
    "lines that end in LF": Attack(post(FIRST).replace(b"\r\n", b"\n") + SMUGGLED),
    "lines that end in CR": Attack(post(FIRST).replace(b"\r\n", b"\r") + SMUGGLED),
    "a head that ends in LF LF": Attack(post(FIRST).replace(b"\r\n\r\n", b"\n\n") + SMUGGLED),
    "a tab in the first line": Attack(_head(LENGTH, line=f"POST\t{CHAT_PATH} HTTP/1.1") + FIRST + SMUGGLED),
    "a space in the path": Attack(_head(LENGTH, line="POST /v1/chat /completions HTTP/1.1") + FIRST + SMUGGLED),
    "no version": Attack(_head(LENGTH, line=f"POST {CHAT_PATH}") + FIRST + SMUGGLED, (505,)),
    "a version that is none": Attack(_head(LENGTH, line=f"POST {CHAT_PATH} HTTP/1.1x") + FIRST + SMUGGLED),
    "a method that is none": Attack(_head(LENGTH, line=f"PO ST {CHAT_PATH} HTTP/1.1") + FIRST + SMUGGLED),
    "HTTP/2 from the start": Attack(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SMUGGLED),
    "TLS": Attack(bytes.fromhex("16030100c8010000c40303") + SMUGGLED),
    # chunks
    "a chunk of -1": _chunks(b"-1\r\n" + FIRST + b"\r\n0\r\n\r\n"),
    "a chunk of +n": _chunks(b"+" + SIZE + b"\r\n" + FIRST + b"\r\n0\r\n\r\n"),
    "a chunk of 0x": _chunks(b"0x" + SIZE + b"\r\n" + FIRST + b"\r\n0\r\n\r\n"),
    "a chunk of 2**64": _chunks(b"10000000000000000\r\n" + FIRST + b"\r\n0\r\n\r\n"),
    "a chunk of 2**64 and n": _chunks(b"10000000000000" + SIZE.zfill(3) + b"\r\n" + FIRST + b"\r\n0\r\n\r\n"),
    "a chunk without a size": _chunks(b"\r\n" + FIRST + b"\r\n0\r\n\r\n"),
    "a chunk with a separator": _chunks(b"1_0\r\n" + FIRST + b"\r\n0\r\n\r\n"),
    "a space before the size": _chunks(b" " + SIZE + b"\r\n" + FIRST + b"\r\n0\r\n\r\n"),
    "a size that ends in LF": _chunks(SIZE + b"\n" + FIRST + b"\r\n0\r\n\r\n"),
    "an extension with LF": _chunks(SIZE + b";x=\n" + FIRST + b"\r\n0\r\n\r\n"),
    "an extension with CR": _chunks(SIZE + b";x=\r" + FIRST + b"\r\n0\r\n\r\n"),
    "an extension with NUL": _chunks(SIZE + b";x=\0\r\n" + FIRST + b"\r\n0\r\n\r\n"),
    "a chunk that is longer than its size": _chunks(b"5\r\n" + FIRST + b"\r\n0\r\n\r\n"),
    "a chunk that ends in LF": _chunks(SIZE + b"\r\n" + FIRST + b"\n0\r\n\r\n"),
    "a chunk that has no end": _chunks(SIZE + b"\r\n" + FIRST + b"0\r\n\r\n"),
    "a last chunk that ends in LF": _chunks(SIZE + b"\r\n" + FIRST + b"\r\n0\n\n"),
    "a trailer without a colon": _chunks(SIZE + b"\r\n" + FIRST + b"\r\n0\r\nx\r\n\r\n"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_request_that_two_servers_could_read_differently_is_refused_and_ends_its_connection(
    served: Served, provider: Hostile, name: str
) -> None:
    attack, before = ATTACKS[name], len(provider.models)
    answers = answers_in(exchange(served, attack.data))
    assert tuple(answer.status for answer in answers) == attack.statuses
    assert answers[-1].headers["connection"] == "close"
    wait_until(lambda: served.app.open == 0)
    assert provider.models[before:] == []


LEGAL: dict[str, Attack] = {
    "in the body": Attack(post(FIRST[:-1] + b', "x": ' + json.dumps(SMUGGLED.decode()).encode() + b"}"), (200,), 1),
    "in an extension": Attack(
        _head(IN_CHUNKS, "connection: close") + SIZE + b';x="POST / HTTP/1.1"\r\n' + FIRST + b"\r\n0\r\n\r\n", (200,), 1
    ),
    "in a trailer": Attack(
        _head(IN_CHUNKS, "connection: close") + SIZE + b"\r\n" + FIRST + b"\r\n0\r\nx-a: POST / HTTP/1.1\r\n\r\n",
        *((200,), 1),
    ),
    "behind two spaces": Attack(
        _head("connection: close", LENGTH, line=f"POST  {CHAT_PATH} HTTP/1.1") + FIRST + SMUGGLED, (200,), 1
    ),
    "in another header": Attack(_head("transfer_encoding: chunked", "connection: close", LENGTH) + FIRST, (200,), 1),
    "in a body that a GET has": Attack(
        _head(f"content-length: {len(SMUGGLED)}", line="GET /health HTTP/1.1") + SMUGGLED, (200,)
    ),
    "in a body that a HEAD has": Attack(
        _head(f"content-length: {len(SMUGGLED)}", line="HEAD /health HTTP/1.1") + SMUGGLED, (200,)
    ),
    "in a body that is not read": Attack(
        _head(f"content-length: {len(SMUGGLED)}", line="POST /v1/nothing%00 HTTP/1.1") + SMUGGLED, (404,)
    ),
    "in a body that was not requested": Attack(
        _head("expect: 100-continue", f"content-length: {len(SMUGGLED)}", line="POST /a%00 HTTP/1.1") + SMUGGLED, (404,)
    ),
    "behind the end": Attack(_head("connection: close", LENGTH) + FIRST + SMUGGLED, (200,), 1),
    "after an upgrade": Attack(
        _head("connection: upgrade, close", "upgrade: h2c", f"content-length: {len(FIRST)}") + FIRST + SMUGGLED,
        *((200,), 1),
    ),
}


@pytest.mark.parametrize("name", LEGAL)
def test_what_looks_like_a_request_inside_another_is_no_request(served: Served, provider: Hostile, name: str) -> None:
    attack, before = LEGAL[name], len(provider.models)
    last = (
        b""
        if b"close" in attack.data.partition(b"\r\n\r\n")[0]
        else _head("connection: close", line="GET /health HTTP/1.1")
    )
    methods = (attack.data.split(b" ")[0].decode(), "GET")
    answers = answers_in(exchange(served, attack.data + last), methods)
    assert tuple(answer.status for answer in answers) == (*attack.statuses, *((200,) if last else ()))
    assert provider.models[before:] == ["first"] * attack.reached


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_request_that_ends_early_at_any_byte_reaches_no_upstream(
    served: Served, provider: Hostile, is_chunked: bool
) -> None:
    data = _head(IN_CHUNKS) + chunked(FIRST) if is_chunked else post(FIRST)
    before = len(provider.models)
    for end in range(len(data)):
        sock = connect(served)
        sock.sendall(data[:end])
        if end % 2:
            sock.shutdown(socket.SHUT_WR)
            assert read_to_end(sock) == b""
        else:
            sock.close()
    wait_until(lambda: served.app.open == 0)
    assert provider.models[before:] == []
    assert ask(served, CHAT_PATH, json.loads(NEXT)).status == 200


def test_a_request_in_pieces_of_one_byte_is_one_request(served: Served, provider: Hostile) -> None:
    before = len(provider.models)
    sock = connect(served)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in post(FIRST, "connection: close\r\n"):
        sock.sendall(bytes([byte]))
    (answer,) = answers_in(read_to_end(sock))
    assert answer.status == 200
    assert provider.models[before:] == ["first"]


def test_pipelined_requests_have_one_answer_each_in_their_order(served: Served, provider: Hostile) -> None:
    before = len(provider.models)
    data = b"".join(post(_body(model)) for model in ("first", "next") * 8)
    answers = answers_in(exchange(served, data + ATTACKS["two lengths"].data))
    assert [answer.status for answer in answers] == [200] * 16 + [400]
    assert provider.models[before:] == ["first", "next"] * 8


def test_a_client_that_leaves_in_the_middle_of_a_pipeline_holds_nothing(served: Served, provider: Hostile) -> None:
    before = len(provider.models)
    for _ in range(20):
        sock = connect(served)
        with contextlib.suppress(ConnectionError):
            sock.sendall(post(FIRST) * 5 + post(FIRST)[:40])
        sock.close()
    wait_until(lambda: served.app.open == 0)
    assert set(provider.models[before:]) <= {"first"}
