"""Bodies hold no more memory than the configuration allows: `max_bytes_in_flight`, and what is refused beyond it."""

from __future__ import annotations

import gzip
import json
import re
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from support.gateway.gateway_process import Process, process, read_until
from support.gateway.http_client import ask, request_of
from support.gateway.served_gateway import Served, gateway
from support.waiting import HANG_SECONDS, wait_until
from toolglot.gateway.http.body_budget import BodyBudget
from toolglot.gateway.http.requests import GatewayRefusal, GoneError
from toolglot.simulator import serve

MB = 1024 * 1024
TEXT = {"rules": [{"reply": {"text": "Hello."}}]}
PATHS = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions", "gemini": "/v1beta/models/m:generateContent"}
SHAPES: dict[str, tuple[str, ...]] = {
    "anthropic": ("error", "type"),
    "openai": ("error", "code"),
    "gemini": ("error", "status"),
}


def request(size: int, model: str = "anthropic/claude-sonnet-4-5") -> bytes:
    """A Messages request of about so many bytes."""
    body = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "x" * size}]}
    return json.dumps(body).encode()


def head(length: int, more: str = "", path: str = "/v1/messages") -> bytes:
    return f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: k\r\ncontent-length: {length}\r\n{more}\r\n".encode()


def connected(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=HANG_SECONDS)


def answer(sock: socket.socket) -> tuple[int, dict[str, str], Any]:
    """The answer that comes next on a connection."""
    data = read_until(sock, b"\r\n\r\n")
    start, _, body = data.partition(b"\r\n\r\n")
    line, *lines = start.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (each.split(": ", 1) for each in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        piece = sock.recv(65536)
        assert piece
        body += piece
    return int(line.split()[1]), headers, json.loads(body) if body else None


def metric(url: str, name: str) -> int:
    sock = connected(url)
    sock.sendall(b"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
    data = b""
    while piece := sock.recv(65536):
        data += piece
    sock.close()
    found = re.search(rf"^{name} (\d+)$", data.decode(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def in_flight(url: str) -> int:
    return metric(url, "toolglot_body_bytes_in_flight")


# --- the count ----------------------------------------------------------------------------------------


def test_what_is_held_comes_back_whatever_happens() -> None:
    budget = BodyBudget(lambda: 100)
    one, other = budget.share(), budget.share()
    one.hold(60)
    other.hold(40)
    with pytest.raises(GatewayRefusal, match="max_bytes_in_flight"):
        other.hold(1)
    assert (budget.used, budget.refused) == (100, 1)
    one.release(10)
    other.hold(10)
    one.release()
    other.release()
    assert budget.used == 0


def test_one_body_alone_is_taken_in_whatever_it_counts() -> None:
    budget = BodyBudget(lambda: 100)
    share = budget.share()
    share.hold(60)
    share.hold(600)
    with pytest.raises(GatewayRefusal):
        budget.share().hold(1)
    share.release()
    assert budget.used == 0


def test_a_thread_that_outlives_its_request_holds_nothing() -> None:
    budget = BodyBudget(lambda: 100)
    share = budget.share()
    share.hold(1)
    share.release()
    with pytest.raises(GoneError):
        share.hold(1)
    assert budget.used == 0


# --- requests -----------------------------------------------------------------------------------------


class Held:
    """Uploads that have begun and do not end."""

    def __init__(self, served: Served | Process, body: bytes, count: int = 1) -> None:
        self.url = served.url
        self.body = body
        self.socks = [connected(served.url) for _ in range(count)]
        for sock in self.socks:
            sock.sendall(head(len(body)) + body[:-1])
        wait_until(lambda: in_flight(self.url) >= count * (len(body) - 1))

    def finish(self) -> list[int]:
        """Send the rest, and read the answers; their statuses."""
        for sock in self.socks:
            sock.sendall(self.body[-1:])
        statuses = [answer(sock)[0] for sock in self.socks]
        self.close()
        return statuses

    def close(self) -> None:
        for sock in self.socks:
            sock.close()


@pytest.mark.parametrize("protocol", PATHS)
def test_what_has_no_room_is_answered_with_a_retry_time_in_its_own_protocol(protocol: str) -> None:
    with serve(TEXT) as simulated, gateway(simulated, settings="max_bytes_in_flight = 100_000") as served:
        held = Held(served, request(90_000))
        sock = connected(served.url)
        sock.sendall(head(50_000, path=PATHS[protocol]))
        status, headers, body = answer(sock)
        sock.close()
        assert (status, headers["retry-after"]) == (503, "2")
        assert "max_bytes_in_flight" in body["error"]["message"]
        outer, inner = SHAPES[protocol]
        assert body[outer][inner]
        assert held.finish() == [200]
        assert ask(served, *request_of(protocol, "anthropic/claude-sonnet-4-5")).status == 200
        wait_until(lambda: in_flight(served.url) == 0)
        assert metric(served.url, "toolglot_body_refusals_total") == 1


def test_a_body_in_chunks_is_counted_as_it_comes() -> None:
    with serve(TEXT) as simulated, gateway(simulated, settings="max_bytes_in_flight = 300_000") as served:
        held = Held(served, request(200_000))
        sock = connected(served.url)
        chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
        start = head(0).replace(b"content-length: 0", b"transfer-encoding: chunked")
        sock.sendall(start + chunk * 3)
        assert answer(sock)[0] == 503
        sock.close()
        held.close()
        wait_until(lambda: in_flight(served.url) == 0)


def test_a_small_compressed_body_does_not_unpack_past_the_limit() -> None:
    packed = gzip.compress(request(3 * MB))
    with serve(TEXT) as simulated, gateway(simulated, settings=f"max_bytes_in_flight = {MB}") as served:
        held = Held(served, request(500_000))
        sock = connected(served.url)
        sock.sendall(head(len(packed), "content-encoding: gzip\r\n") + packed)
        assert answer(sock)[0] == 503
        assert held.finish() == [200]
        sock.sendall(head(len(packed), "content-encoding: gzip\r\n") + packed)  # alone, it has room
        assert answer(sock)[0] == 200
        sock.close()
        wait_until(lambda: in_flight(served.url) == 0)


def test_many_small_values_count_for_more_than_their_bytes() -> None:
    body = json.loads(request(1))
    body["messages"][0]["content"] = [{"type": "text", "text": ""}] * 2000
    dense = json.dumps(body).encode()
    with serve(TEXT) as simulated, gateway(simulated, settings="max_bytes_in_flight = 200_000") as served:
        held = Held(served, request(1000))
        assert len(dense) < 100_000
        sock = connected(served.url)
        sock.sendall(head(len(dense)) + dense)
        assert answer(sock)[0] == 503
        sock.close()
        held.close()


def test_counts_return_to_nothing_after_disconnects_aborts_and_errors() -> None:
    settings = f"max_bytes_in_flight = {4 * MB}\nmax_body_bytes = {2 * MB}"
    slow = {"rules": [{"when": {"model": "slow"}, "fault": "timeout"}, {"reply": {"text": "Hello."}}]}
    with serve(slow) as simulated, gateway(simulated, settings=settings) as served:
        Held(served, request(MB)).close()  # in the middle of the body
        wait_until(lambda: in_flight(served.url) == 0)
        sock = connected(served.url)
        waits = request(MB, "anthropic/slow")
        sock.sendall(head(len(waits)) + waits)  # while the upstream is waited for
        wait_until(lambda: in_flight(served.url) >= len(waits))
        sock.close()
        wait_until(lambda: in_flight(served.url) == 0)
        for bad in (b"{" * 1000, request(10, "nobody/none"), b'{"messages": 7}'):
            sock = connected(served.url)
            sock.sendall(head(len(bad)) + bad)
            assert answer(sock)[0] >= 400
            sock.close()
        sock = connected(served.url)
        sock.sendall(head(0).replace(b"content-length: 0", b"transfer-encoding: chunked") + b"100\r\nzzz")
        sock.close()
        wait_until(lambda: in_flight(served.url) == 0)
        assert metric(served.url, "toolglot_body_refusals_total") == 0


# --- what is announced --------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [4097, 10**15, 10**18])
def test_a_body_that_is_announced_too_large_is_refused_before_100_continue(length: int) -> None:
    with serve(TEXT) as simulated, gateway(simulated, settings="max_body_bytes = 4096") as served:
        sock = connected(served.url)
        sock.sendall(head(length, "expect: 100-continue\r\n"))
        status, _, body = answer(sock)
        sock.close()
        assert status == 413
        assert "max_body_bytes" in body["error"]["message"]


def test_a_body_that_is_announced_and_has_no_room_is_refused_before_100_continue() -> None:
    with serve(TEXT) as simulated, gateway(simulated, settings="max_bytes_in_flight = 100_000") as served:
        held = Held(served, request(90_000))
        sock = connected(served.url)
        sock.sendall(head(20_000, "expect: 100-continue\r\n"))
        assert answer(sock)[0] == 503
        sock.close()
        body = request(2000)
        sock = connected(served.url)
        sock.sendall(head(len(body), "expect: 100-continue\r\n"))
        read_until(sock, b"HTTP/1.1 100 Continue\r\n\r\n")
        sock.sendall(body)
        assert answer(sock)[0] == 200
        sock.close()
        assert held.finish() == [200]


# --- answers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["anthropic", "openai_chat"])
def test_an_answer_that_has_no_room_is_not_its_providers_failure(target: str) -> None:
    long = {"rules": [{"reply": {"text": "x" * 200_000}}]}
    with serve(long) as simulated, gateway(simulated, settings="max_bytes_in_flight = 100_000") as served:
        held = Held(served, request(50_000))
        path, body = request_of("anthropic", f"{target}/any")
        got = ask(served, path, body)
        assert (got.status, got.headers["retry-after"]) == (503, "2")
        held.close()
        wait_until(lambda: in_flight(served.url) == 0)
        assert ask(served, path, body).status == 200
        refused = next(each for each in served.records if each.response.status == 503)
        assert refused.calls.failures == []
        assert "toolglot_upstream_errors_total{" not in served.app.metrics.text().decode()


# --- memory -------------------------------------------------------------------------------------------


def peak_memory(pid: int) -> int:
    """The most that a process ever had resident, in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_six_bodies_of_50_MB_stay_within_the_memory_that_the_configuration_implies(tmp_path: Path) -> None:
    limit, size = 110 * MB, 50 * MB
    with (
        serve(TEXT) as simulated,
        process(tmp_path, simulated, settings=f'metrics = "open"\nmax_bytes_in_flight = {limit}') as served,
    ):
        before = peak_memory(served.popen.pid)
        held = Held(served, request(size), 2)
        refused = []
        for _ in range(4):
            sock = connected(served.url)
            sock.sendall(head(size) + b"{" * 1000)
            status, headers, _ = answer(sock)
            refused.append((status, headers["retry-after"]))
            sock.close()
        assert refused == [(503, "2")] * 4
        assert held.finish() == [200, 200]
        held.close()
        wait_until(lambda: in_flight(served.url) == 0)
        assert metric(served.url, "toolglot_body_refusals_total") == 4
        assert before < 150 * MB
        assert peak_memory(served.popen.pid) < 150 * MB + 8 * limit
        small = request(10)
        sock = connected(served.url)
        sock.sendall(head(len(small)) + small)
        assert answer(sock)[0] == 200
        sock.close()
