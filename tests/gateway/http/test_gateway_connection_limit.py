"""Idle connections: thousands cost little and delay no one, and who is over the limit is refused."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from toolglot.gateway.config.settings import GatewaySettings
from toolglot.gateway.http.connection_limit import (
    MAX_IGNORED,
    MAX_LINGERING,
    NOTICE_SECONDS,
    REFUSAL,
    SPARE,
    ConnectionLimit,
    raise_descriptor_limit,
)

SCRIPTS = Path(__file__).parents[3] / "scripts"
sys.path.append(str(SCRIPTS))

from hold_connections import MAX_BYTES, REQUESTS, Holders, measure, possible_count, serving  # noqa: E402 - scripts are no package

WANTED = 10_000


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_ten_thousand_idle_connections_cost_little_and_delay_no_one() -> None:
    count = possible_count(WANTED)
    if count < 1_000:
        pytest.skip("a process here may not have so many descriptors")
    found = measure(count)
    assert found["still_open"] == count
    assert found["bytes_each"] < MAX_BYTES
    assert found["answers_beside"] == REQUESTS  # how fast they came is a matter of `make soak`


def test_who_is_over_the_limit_is_refused_and_who_is_connected_goes_on() -> None:
    with serving("max_connections = 6") as gateway:
        held = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=120)
        held.request("GET", "/health")
        assert held.getresponse().read()
        holders = Holders(gateway.port, 5, processes=1)
        try:
            holders.wait()
            status, data, _ = gateway.send("/v1/messages", {"model": "claude-opus-5", "messages": []})
            assert status == 503
            assert json.loads(data)["error"]["code"] == "too_many_connections"
            with socket.create_connection(("127.0.0.1", gateway.port), timeout=120) as silent:
                refusal = silent.makefile("rb").read()  # until it is closed, although nothing was sent
            assert refusal == REFUSAL
            held.request("GET", "/health")
            answer = held.getresponse()
            assert (answer.status, bool(answer.read())) == (200, True)
            assert holders.end() == 5
        finally:
            holders.kill()
            held.close()
        assert gateway.time_request() > 0


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Transport:
    """What a connection that is not taken does."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def set_protocol(self, protocol: asyncio.Protocol) -> None:
        self.protocol = protocol

    def write(self, data: bytes) -> None:
        self.done.append(data)

    def close(self) -> None:
        self.done.append("closed")

    def abort(self) -> None:
        self.done.append("aborted")

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.done.append("ended")


def connection_limit(settings: GatewaySettings, logged: list[str], clock: Clock) -> ConnectionLimit:
    return ConnectionLimit(lambda: settings, logged.append, clock=clock)


@pytest.mark.parametrize(
    ("descriptors", "concurrent", "connections", "most"),
    [
        (sys.maxsize, 1000, 500, 500),
        (20_000, 1000, 20_000, 20_000 - 1000 - SPARE),
        (1024, 1000, 20_000, 512),
        (65_536, 1000, 20_000, 20_000),
    ],
)
def test_descriptors_are_left_for_upstreams(descriptors: int, concurrent: int, connections: int, most: int) -> None:
    settings = GatewaySettings(max_concurrent=concurrent, max_connections=connections)
    found = connection_limit(settings, [], Clock())
    found.descriptors = descriptors
    assert found.limit == most


def test_that_the_limit_is_reached_is_logged_once_a_minute_and_why() -> None:
    logged: list[str] = []
    clock = Clock()

    async def run() -> None:
        full = connection_limit(GatewaySettings(max_connections=2), logged, clock)
        for _ in range(3):
            transport: Any = Transport()
            assert full.accepts(1, transport)
            assert not transport.done
            assert not full.accepts(2, transport)
            transport.protocol.data_received(b"GET")
            assert transport.done == [REFUSAL, "ended"]
            transport.protocol.connection_lost(None)
        assert len(logged) == 1
        clock.now += NOTICE_SECONDS
        full.descriptors = 2
        assert not full.accepts(2, Transport())  # type: ignore[arg-type]

    asyncio.run(run())
    assert ["max_connections" in line for line in logged] == [True, False]
    assert "ulimit" in logged[1]


async def test_who_is_refused_may_finish_sending_but_not_for_ever_and_not_all_at_once() -> None:
    full = connection_limit(GatewaySettings(max_connections=2), [], Clock())
    transports: list[Any] = [Transport() for _ in range(MAX_LINGERING + 2)]
    for transport in transports[:-1]:
        assert not full.accepts(2, transport)
    assert all(transport.done == [REFUSAL, "ended"] for transport in transports[:MAX_LINGERING])
    assert transports[-2].done == [REFUSAL, "closed"]
    first = transports[0]
    first.protocol.data_received(bytes(MAX_IGNORED))
    assert first.done == [REFUSAL, "ended"]
    first.protocol.data_received(b"x")
    assert first.done == [REFUSAL, "ended", "aborted"]
    first.protocol.connection_lost(None)
    assert not full.accepts(2, transports[-1])
    assert transports[-1].done == [REFUSAL, "ended"]
    for transport in transports[1:MAX_LINGERING]:
        transport.protocol.connection_lost(None)
    transports[-1].protocol.connection_lost(None)


def test_who_finds_no_room_hears_so_after_a_large_body() -> None:
    with serving("max_connections = 1") as gateway:
        held = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=120)
        held.request("GET", "/health")
        assert held.getresponse().read()
        for _ in range(3):
            other = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=120)
            other.request("POST", "/v1/messages", b"x" * 5_000_000)
            assert other.getresponse().status == 503
            other.close()
        held.close()


def test_the_answer_is_json_that_clients_read() -> None:
    head, _, body = REFUSAL.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert f"content-length: {len(body)}".encode() in head
    found = msgspec.json.decode(body)
    assert (found["type"], found["error"]["type"]) == ("error", "overloaded_error")


def test_a_process_may_have_as_many_descriptors_as_it_is_allowed() -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[1], 200), before[1]))
        found = raise_descriptor_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == found > 200
        assert raise_descriptor_limit() == found
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


class Limits:
    """A system with limits of its own."""

    RLIM_INFINITY = -1
    RLIMIT_NOFILE = 7

    def __init__(self, soft: int, hard: int, allowed: int) -> None:
        self.now = (soft, hard)
        self._allowed = allowed

    def getrlimit(self, _: int) -> tuple[int, int]:
        return self.now

    def setrlimit(self, _: int, pair: tuple[int, int]) -> None:
        if pair[0] > self._allowed:
            raise OSError
        self.now = pair


@pytest.mark.parametrize(
    ("limits", "found"),
    [
        (None, sys.maxsize),
        (Limits(-1, -1, 0), sys.maxsize),
        (Limits(256, -1, 1 << 20), 1 << 20),
        (Limits(256, -1, 4096), 256),
        (Limits(4096, 1024, 1 << 20), 4096),
    ],
)
def test_whatever_a_system_says_of_descriptors_it_is_not_more_than_there_are(limits: Any, found: int) -> None:
    assert raise_descriptor_limit(limits) == found
