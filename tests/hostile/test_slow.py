"""Clients and upstreams that are slow on purpose: they lose their connection in time, and block no one else."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.gateway.http_client import PROTOCOLS, ask, request_of
from support.gateway.served_gateway import Served, config_for, gateway
from support.hostile.bounded_gateway import ShortBody, bounded
from support.hostile.hostile_upstream import (
    END,
    EVENTS,
    GOOD,
    Hostile,
    Way,
    chunk,
    delta,
    endless,
    hostile,
    once,
    upstream_at,
    whole,
)
from support.hostile.raw_sockets import answers_in, connect, post, read_to_end
from support.waiting import wait_until
from toolglot.gateway import Gateway
from toolglot.gateway.observability.request_log import RequestLog

ENVIRON = {"HOSTILE_KEY": "a-key-of-the-gateway"}
GOOD_ANSWER = whole(json.dumps(GOOD).encode())
GOOD_STREAM = EVENTS + chunk(delta("hi")) + chunk(END) + b"0\r\n\r\n"


def _bytewise(data: bytes) -> Way:
    async def way(_: bytes) -> AsyncIterator[bytes]:
        for byte in data:
            yield bytes([byte])

    return way


WAYS: dict[str, Way] = {
    "good": once(GOOD_ANSWER),
    "bytewise": _bytewise(GOOD_ANSWER),
    "bytewise-stream": _bytewise(GOOD_STREAM),
    "silent": endless(b"", b"", 0.05),
    "half-head": endless(b"HTTP/1.1 200 OK\r\ncontent-ty", b"", 0.05),
    "half": endless(GOOD_ANSWER[:-20], b"", 0.05),
    "half-stream": endless(EVENTS + chunk(delta("hi")) + b"40\r\ndata: {", b"", 0.05),
    "flood": endless(EVENTS, chunk(delta("word " * 5_000) * 4)),
}


@pytest.fixture(scope="module")
def provider() -> Iterator[Hostile]:
    with hostile(WAYS) as running:
        yield running


@pytest.fixture(scope="module")
def served(provider: Hostile) -> Iterator[Served]:
    hasty = upstream_at(provider, "first_byte_seconds = 0.5", "idle_seconds = 0.5", name="hasty")
    with gateway(None, upstreams=f"{hasty}\n{upstream_at(provider)}", environ=ENVIRON) as running:
        yield running


@pytest.fixture(scope="module")
def hurried(provider: Hostile) -> Iterator[Served]:
    config = config_for(None, upstreams=upstream_at(provider), environ=ENVIRON)
    with bounded(Gateway(config, request_log=RequestLog(max_remembered=10, form="off")), ShortBody) as running:
        yield running


# --- clients ----------------------------------------------------------------------------------------

BODY = request_of("openai", "h/good")[1]


def test_a_body_that_does_not_come_is_not_waited_for_and_others_are_served(hurried: Served, provider: Hostile) -> None:
    before = len(provider.models)
    slow = [connect(hurried) for _ in range(50)]
    for sock in slow:
        sock.sendall(post(BODY)[:-10])
    assert ask(hurried, *request_of("anthropic", "h/good")).status == 200
    for sock in slow:
        (answer,) = answers_in(read_to_end(sock))
        assert answer.status == 408
        assert answer.headers["connection"] == "close"
    wait_until(lambda: hurried.app.open == 0)
    assert provider.models[before:] == ["good"]


def test_a_body_that_comes_byte_by_byte_has_a_time_in_which_it_must_be_here(hurried: Served) -> None:
    sock = connect(hurried)
    sock.sendall(post(b" " * 1_000_000)[:-1_000_000])
    pace, answer = threading.Event(), b""
    sock.setblocking(False)
    while not answer:
        with contextlib.suppress(BlockingIOError):
            answer = sock.recv(65536)
        if not answer:
            sock.send(b" ")
        pace.wait(0.02)
    sock.close()
    assert answer.startswith(b"HTTP/1.1 408")
    wait_until(lambda: hurried.app.open == 0)


def test_a_client_that_never_reads_takes_no_more_than_buffers_hold(provider: Hostile) -> None:
    config = config_for(None, upstreams=upstream_at(provider), environ=ENVIRON)
    with bounded(Gateway(config, request_log=RequestLog(max_remembered=1, form="off"))) as served:
        before = provider.sent
        sock = connect(served)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        path, body = request_of("openai", "h/flood", stream=True)
        sock.sendall(post(body, path=path))
        wait_until(lambda: served.app.open == 1)
        assert ask(served, *request_of("anthropic", "h/good")).status == 200
        wait_until(lambda: served.app.open == 0 and provider.open == 0)
        sock.close()
    assert provider.sent - before < 32 * 1024 * 1024


# --- upstreams --------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_that_comes_byte_by_byte_is_the_answer(served: Served, protocol: str, stream: bool) -> None:
    name = "bytewise-stream" if stream else "bytewise"
    got = ask(served, *request_of(protocol, f"h/{name}", stream=stream))
    assert got.status == 200
    assert b'"hi"' in got.data


@pytest.mark.parametrize("model", ["silent", "half-head", "half", "half-stream"])
def test_an_upstream_that_stops_half_way_is_an_error_in_time_for_all_clients(
    served: Served, provider: Hostile, model: str
) -> None:
    requests = [request_of(protocol, f"hasty/{model}", stream=model == "half-stream") for protocol in PROTOCOLS]
    with ThreadPoolExecutor(len(PROTOCOLS)) as clients:
        answers = [*clients.map(lambda request: ask(served, *request), requests)]
    for got in answers:
        if model == "half-stream":
            assert got.status == 200
            assert b'"error":' in got.data.replace(b'"error":null', b"")
            assert not any(end in got.data for end in (b"message_stop", b"[DONE]", b'"finishReason"', b'"done":true'))
        else:
            assert got.status in (503, 504, 529)
            assert "error" in got.body
    wait_until(lambda: served.app.open == 0 and provider.open == 0)


def test_many_slow_upstreams_block_no_one_else_and_end_with_their_clients(served: Served, provider: Hostile) -> None:
    path, body = request_of("openai", "h/silent")
    waiting = [connect(served) for _ in range(100)]
    for sock in waiting:
        sock.sendall(post(body, path=path))
    wait_until(lambda: served.app.open == 100)
    assert ask(served, *request_of("anthropic", "h/good")).status == 200
    for sock in waiting:
        sock.close()
    wait_until(lambda: served.app.open == 0 and provider.open == 0 and not served.app.upstreams.running)
    metrics = ask(served, "/metrics").data.decode()
    assert "\ntoolglot_open_requests 1\n" in metrics  # the one that asks
    assert "\ntoolglot_open_streams 0\n" in metrics
