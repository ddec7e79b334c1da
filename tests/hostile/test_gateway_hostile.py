"""Clients and providers that mean harm, or are broken: bounded, answered clearly, without harm to other clients."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import random
import socket
import sqlite3
import threading
import time
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from backports import zstd

from support.gateway.http_client import PROTOCOLS, Got, ask, request_of
from support.gateway.served_gateway import Served, config_for, gateway
from support.hostile.bounded_gateway import bounded
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
from support.hostile.raw_sockets import connect, exchange, post, read_to_end
from support.waiting import wait_until
from toolglot.gateway import Gateway
from toolglot.gateway.http.compressed_bodies import decompress_body
from toolglot.gateway.http.connections import MAX_UNPARSED
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.protocols.errors.failures import ProviderError
from toolglot.simulator import serve
from toolglot.simulator.serving import Server

SECRET = "7f3c9a1b5d2e4f60718293a4b5c6d7e8"  # noqa: S105 - made up
"""A key that looks like nothing."""
KEYS = {"CLIENT_A": "key-of-client-a-0123456789", "CLIENT_B": "key-of-client-b-0123456789"}
KEYED = 'client_keys = ["env:CLIENT_A", "env:CLIENT_B"]'
A, B = KEYS["CLIENT_A"], KEYS["CLIENT_B"]


@pytest.fixture(scope="module")
def simulated() -> Iterator[Server]:
    with serve({"rules": [{"reply": {"text": "Hello."}}]}) as server:
        yield server


@pytest.fixture(scope="module")
def short(simulated: Server) -> Iterator[Served]:
    with bounded(Gateway(config_for(simulated), request_log=RequestLog(max_remembered=10, form="off"))) as served:
        yield served


REQUEST = request_of("openai", "openai_chat/gpt-4.1")[1]


# --- connections ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "begun",
    [b"", b"GET /health HTT", b"GET /health HTTP/1.1\r\nx-slow: a", b"\r\n", post(REQUEST, "x: y\r\n")[:60]],
    ids=["nothing", "line", "header", "empty line", "post"],
)
def test_a_head_that_does_not_come_to_its_end_ends_the_connection(short: Served, begun: bytes) -> None:
    assert exchange(short, begun) == b""


def test_a_second_request_that_does_not_come_to_its_end_ends_the_connection(short: Served) -> None:
    got = exchange(short, b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\nGET /hea")
    assert got.count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"GET / HTTP/1.1\r\nx: ", b"a" * 16384),
        (b"GET / HTTP/1.1\r\n", b"x-a: b\r\n" * 2048),
        (b"GET /", b"a" * 16384),
        (b"\r\n", b"\r\n" * 8192),
        (b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: ", b"a" * 16384),
        (b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"x-a: b\r\n" * 2048),
        (b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n5;", b"a" * 16384),
    ],
    ids=["header", "headers", "path", "empty lines", "trailer", "trailers", "extension"],
)
def test_a_flood_that_is_no_body_ends_the_connection(short: Served, begin: bytes, piece: bytes) -> None:
    sock = connect(short)
    sock.sendall(begin)
    with pytest.raises(ConnectionError):
        _flood(sock, piece)
    sock.close()


def _flood(sock: socket.socket, piece: bytes) -> None:
    sent = 0
    while sent < 1000 * MAX_UNPARSED:
        sock.sendall(piece)
        sent += len(piece)


def test_trailers_are_no_headers(simulated: Server) -> None:
    config = config_for(simulated, settings=KEYED, environ=KEYS)
    body = b"%x\r\n%s\r\n0\r\n" % (len(json.dumps(REQUEST)), json.dumps(REQUEST).encode())
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ntransfer-encoding: chunked\r\n"
    )
    with bounded(Gateway(config, request_log=RequestLog(max_remembered=1, form="off"))) as served:
        late = f"authorization: Bearer {A}\r\n\r\n".encode()
        assert exchange(served, head.encode() + b"\r\n" + body + late).startswith(b"HTTP/1.1 401")
        early = f"{head}authorization: Bearer {A}\r\n\r\n".encode()
        assert exchange(served, early + body + b"authorization: x\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_a_refused_body_is_not_waited_for_for_ever(short: Served) -> None:
    head = b"POST /v1/nothing HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 1000000\r\n\r\n"
    got = exchange(short, head + b"{")
    assert got.startswith(b"HTTP/1.1 403")


def test_a_refused_body_that_comes_later_leaves_the_connection_in_order(short: Served) -> None:
    sock = connect(short)
    sock.sendall(b"POST /v1/nothing HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 5\r\n\r\n{")
    assert sock.recv(65536).startswith(b"HTTP/1.1 403")
    sock.sendall(b"12345"[1:])
    sock.sendall(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")
    assert read_to_end(sock).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "PURGE"])
def test_methods_that_no_door_has_are_refused(short: Served, method: str) -> None:
    got = ask(short, "/v1/messages", method=method)
    assert got.status == 405
    assert "access-control-allow-origin" not in got.headers


def test_idle_connections_block_no_one_else(short: Served) -> None:
    idle = [connect(short) for _ in range(300)]
    assert ask(short, "/v1/chat/completions", REQUEST).status == 200
    for sock in idle:
        sock.close()


def test_a_compressed_body_is_one_body() -> None:
    for encoding, compress in (("gzip", gzip.compress), ("deflate", zlib.compress), ("zstd", _zstd_with_checksum)):
        packed = compress(b"{}")
        assert decompress_body(packed, encoding, 100) == b"{}"
        for data in (packed + b"more", packed + packed, packed[:-1], b"", packed[:-4] + bytes(4)):
            with pytest.raises(ProviderError):
                decompress_body(data, encoding, 100)


def _zstd_with_checksum(data: bytes) -> bytes:
    return zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})


def test_a_zstd_body_may_not_ask_for_a_large_window() -> None:
    options: dict[int, int] = {
        zstd.CompressionParameter.window_log: 27,
        zstd.CompressionParameter.compression_level: 19,
    }
    compressor = zstd.ZstdCompressor(options=options)
    packed = compressor.compress(b"x" * 20_000_000) + compressor.flush()
    with pytest.raises(ProviderError, match="not zstd"):
        decompress_body(packed, "zstd", 64_000_000)


# --- providers --------------------------------------------------------------------------------------


async def _leaking(head: bytes) -> AsyncIterator[bytes]:
    key = _key_in(head)
    error = {"error": {"message": f"who is {key}?", "code": key, "param": key}, "echo": key}
    yield whole(json.dumps(error).encode(), 401, f"x-request-id: {key}\r\nretry-after: 1\r\n")


async def _leaking_header(head: bytes) -> AsyncIterator[bytes]:
    key = _key_in(head)
    yield whole(json.dumps(GOOD).encode(), headers=f"x-request-id: {key}\r\nx-ratelimit-for: {key}\r\n")


async def _leaking_stream(head: bytes) -> AsyncIterator[bytes]:
    error = {"error": {"message": f"who is {_key_in(head)}?", "code": "x"}}
    yield EVENTS + chunk(delta("a")) + chunk(b"data: " + json.dumps(error).encode() + b"\n\n") + b"0\r\n\r\n"


def _key_in(head: bytes) -> str:
    return head.lower().partition(b"authorization: bearer ")[2].partition(b"\r\n")[0].decode()


_BOMB = gzip.compress(b"data: " + b"x" * 200_000_000, 1)
_CALLS = [
    {"id": f"call_{n}", "type": "function", "function": {"name": "read_file", "arguments": "{}"}} for n in range(20_000)
]
_MANY = {**GOOD, "choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": _CALLS}}]}

WAYS: dict[str, Way] = {
    "good": once(whole(json.dumps(GOOD).encode())),
    "good-stream": once(EVENTS + chunk(delta("hi")) + chunk(END) + b"0\r\n\r\n"),
    "never-ends": endless(EVENTS + chunk(delta("hi")) + chunk(END), b"", 0.05),
    "line": endless(EVENTS + chunk(b"data: "), chunk(b"x" * 65536)),
    "lines": endless(EVENTS, chunk(b"data: xxxxxxxxxxxxxxxx\n" * 4000)),
    "drip": endless(EVENTS, chunk(delta("word ")), 0.01),
    "flood": endless(EVENTS, chunk(delta("word " * 5_000) * 4)),
    "headers": endless(b"HTTP/1.1 200 OK\r\n", b"x-a: b\r\n" * 4000),
    "header": endless(b"HTTP/1.1 200 OK\r\nx: ", b"a" * 65536),
    "body": endless(b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{"\r\n', chunk(b"x" * 65536)),
    "bomb": once(whole(_BOMB, headers="content-encoding: gzip\r\n")),
    "calls": once(whole(json.dumps(_MANY).encode())),
    "999": once(whole(json.dumps({"error": {"message": "no"}}).encode(), 999)),
    "600": once(whole(json.dumps({"error": {"message": "no"}}).encode(), 600)),
    "101": once(b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nzzz"),
    "204": once(b"HTTP/1.1 204 No\r\n\r\n"),
    "304": once(b"HTTP/1.1 304 No\r\n\r\n"),
    "injected": once(whole(json.dumps(GOOD).encode(), headers="x-request-id: a\rx-evil: 1\r\n")),
    "not-http": once(b"\0\1\2\3"),
    "closed": once(b""),
    "not-utf8": once(whole(json.dumps(GOOD).encode().replace(b"hi", b"\xff\xfe"))),
    "leak": _leaking,
    "leak-header": _leaking_header,
    "leak-stream": _leaking_stream,
    "passed": _leaking,
}


@pytest.fixture(scope="module")
def provider() -> Iterator[Hostile]:
    with hostile(WAYS) as running:
        yield running


@pytest.fixture(scope="module")
def exposed(provider: Hostile) -> Iterator[Served]:
    with gateway(None, upstreams=upstream_at(provider), environ={"HOSTILE_KEY": SECRET}) as running:
        yield running


def _ask(served: Served, protocol: str, model: str, *, stream: bool) -> tuple[Got, float]:
    """An answer, and the most processor time that was used while anybody else waited for one."""
    path, body = request_of(protocol, f"h/{model}", stream=stream)
    worst, is_over = 0.0, threading.Event()

    def others() -> None:
        nonlocal worst
        while not is_over.is_set():
            began = time.process_time()
            assert ask(served, "/health").status == 200
            worst = max(worst, time.process_time() - began)
            is_over.wait(0.01)

    thread = threading.Thread(target=others)
    thread.start()
    try:
        return ask(served, path, body), worst
    finally:
        is_over.set()
        thread.join()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("model", ["line", "lines", "headers", "header", "body", "bomb", "not-http", "closed"])
def test_an_answer_without_end_or_sense_ends_in_an_error(exposed: Served, model: str, stream: bool) -> None:
    for protocol in ("anthropic", "openai"):
        got, waited = _ask(exposed, protocol, model, stream=stream)
        assert got.status >= 500 or b'"error"' in got.data, got
        assert b"internal error of the gateway" not in got.data
        assert waited < 2.5
    wait_until(lambda: exposed.app.open == 0)


def test_a_stream_without_end_is_ended(exposed: Served, provider: Hostile) -> None:
    path, body = request_of("anthropic", "h/flood", stream=True)
    got = ask(exposed, path, body)
    assert "longer than" in got.events[-1]["error"]["message"]
    wait_until(lambda: exposed.app.open == 0 and provider.open == 0)


@pytest.mark.parametrize("protocol", ["openai", "gemini"])
def test_a_provider_that_stays_after_its_last_word_blocks_no_one_else(
    exposed: Served, provider: Hostile, protocol: str
) -> None:
    path, body = request_of(protocol, "h/never-ends", stream=True)
    got = ask(exposed, path, body)
    assert got.status == 200
    assert b"hi" in got.data
    assert b'"error":{' not in got.data
    wait_until(lambda: provider.open == 0)


def test_many_calls_block_no_one_else(exposed: Served) -> None:
    got, waited = _ask(exposed, "anthropic", "calls", stream=False)
    assert got.status == 200
    assert len(got.body["content"]) == 20_000
    assert waited < 2.5


@pytest.mark.parametrize("model", ["999", "600", "101", "204", "304", "injected", "not-utf8"])
@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_a_status_or_header_that_cannot_be_is_a_clear_error(exposed: Served, protocol: str, model: str) -> None:
    got, _ = _ask(exposed, protocol, model, stream=False)
    assert 500 <= got.status <= 599
    assert got.body["error"]["message"]
    assert "x-evil" not in got.headers


# --- secrets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("model", "stream"), [("leak", False), ("leak", True), ("leak-header", False)])
def test_a_key_that_a_provider_repeats_is_not_shown(exposed: Served, protocol: str, model: str, stream: bool) -> None:
    got, _ = _ask(exposed, protocol, model, stream=stream)
    assert SECRET not in f"{got.headers}{got.data!r}"
    assert got.status == (200 if model == "leak-header" else 401)
    page = ask(exposed, f"/toolglot/requests/{got.headers['x-toolglot-request']}")
    assert page.status == 200
    assert SECRET.encode() not in page.data


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_key_in_an_error_inside_a_stream_is_not_shown(exposed: Served, protocol: str) -> None:
    got, _ = _ask(exposed, protocol, "leak-stream", stream=True)
    assert b"who is ***?" in got.data
    assert SECRET.encode() not in got.data


def test_no_key_is_in_the_log_or_the_store(
    provider: Hostile, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for log in ("text", "json"):
        lines = [KEYED, f'store = "{tmp_path}/{log}.db"']
        config = config_for(
            None, settings="\n".join(lines), upstreams=upstream_at(provider), environ={"HOSTILE_KEY": SECRET, **KEYS}
        )
        app = Gateway(config, request_log=RequestLog(max_remembered=10, form=log))
        with bounded(app) as served:
            for protocol in PROTOCOLS:
                for model in ("good", "leak", "leak-header"):
                    path, body = request_of(protocol, f"h/{model}")
                    ask(served, path, body, key=A)
                    ask(served, f"{path}?key={A}", body, key=None)
            ask(served, f"/v1/nothing?key={A}", {}, key=None)
        assert SECRET not in repr(app.config)
    printed = "".join(capfd.readouterr())
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert "who is ***" in printed
    assert b"responses" in kept
    for key in (SECRET, A):
        assert key not in printed
        assert key.encode() not in kept


# --- what is passed on ------------------------------------------------------------------------------


def test_a_clients_key_in_the_query_is_not_passed_on(exposed: Served, provider: Hostile) -> None:
    ask(exposed, "/v1/files?limit=2&key=secret-of-a-client&%6Bey=again&order=a%26b", key=None)
    line = provider.heads[-1].split(b"\r\n")[0]
    assert line == b"GET /v1/files?limit=2&order=a%26b HTTP/1.1"


def test_an_error_that_is_passed_on_does_not_show_the_key(exposed: Served) -> None:
    got = ask(exposed, "/v1/files")
    assert got.status == 401
    assert "who is ***?" in got.body["error"]["message"]
    assert SECRET not in f"{got.headers}{got.data!r}"


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/../admin", "/v1/%2e%2e/admin", "/v1/%252e%252e/admin", "/v1/%25252e./x", "/v1/files/..", "/v1/./x"),
        *("/v1/..%5cadmin", "/v1/%2e%2e;/admin", "/v1/files/a%0d%0ax-evil:%201", "/v1/files/%00", "/v1/a%250ab"),
    ],
)
def test_a_path_that_leads_elsewhere_is_not_passed_on(exposed: Served, provider: Hostile, path: str) -> None:
    count = len(provider.heads)
    assert ask(exposed, path).status == 404
    assert len(provider.heads) == count


def test_a_path_is_passed_on_as_it_came(exposed: Served, provider: Hostile) -> None:
    ask(exposed, "/v1/files/a%2Fb%3Fc%23d/content")
    assert provider.heads[-1].startswith(b"GET /v1/files/a%2Fb%3Fc%23d/content HTTP/1.1\r\n")


# --- apart ------------------------------------------------------------------------------------------


def test_what_a_provider_keeps_is_not_passed_on_to_several_clients(provider: Hostile) -> None:
    environ = {"HOSTILE_KEY": SECRET, **KEYS}
    with gateway(None, settings=KEYED, upstreams=upstream_at(provider), environ=environ) as served:
        count = len(provider.heads)
        for method, path in (
            *(("GET", "/v1/threads"), ("GET", "/v1/organization/users"), ("DELETE", "/v1/models/m")),
            *(("GET", "/v1/files/"), ("POST", "/v1/threads/t/messages"), ("GET", "/v1//vector_stores/v/files")),
            *(("GET", "/v1/files/a%2Fcontent"), ("DELETE", "/v1/files")),
        ):
            got = ask(served, path, b"{}" if method == "POST" else None, method=method, key=A)
            assert got.status == 404
            assert "not separated by client key" in got.body["error"]["message"]
        for method, path in (
            *(("GET", "/v1/files/file-1/content"), ("DELETE", "/v1/files/file-1"), ("GET", "/v1/batches/b")),
            *(("GET", "/v1/vector_stores/v/files"), ("GET", "/v1/files?after=file-1")),
        ):
            got = ask(served, path, method=method, key=A)
            assert got.status == 404
            assert "No object found" in got.body["error"]["message"]
        assert len(provider.heads) == count
        ask(served, "/v1/moderations", {"input": "x"}, key=A)
        assert len(provider.heads) == count + 1


KEYED_BODIES = f'{KEYED}\n[inspector]\nkeep = "bodies"\n'
"""Bodies are kept too, so that there is something to read."""


def test_one_client_reads_nothing_of_another(simulated: Server) -> None:
    for model in ("openai_responses/gpt-5", "mistral/mistral-large-latest"):
        with gateway(simulated, settings=KEYED_BODIES, environ=KEYS) as served:
            path, body = request_of("openai_responses", model, "a word that only one client knows: xyzzy")
            made = ask(served, path, body, key=A)
            id, item = made.body["id"], made.body["output"][0]["id"]
            named = made.headers["x-toolglot-request"]
            assert ask(served, f"{path}/{id}", key=A).status == 200
            tried = [
                *(ask(served, f"{path}/{id}{more}", key=B) for more in ("", "/input_items")),
                ask(served, f"{path}/{id}", method="DELETE", key=B),
                ask(served, f"{path}/{id}/cancel", b"", key=B),
                ask(served, path, {"model": model, "input": "go on", "previous_response_id": id}, key=B),
                ask(served, path, {"model": model, "input": [{"type": "item_reference", "id": item}]}, key=B),
                ask(served, path, {"model": model, "input": "go on", "conversation": "conv_of_another"}, key=B),
                ask(served, f"/toolglot/requests/{named}", key=B),
            ]
            assert [got.status for got in tried if got.status not in (400, 404)] == []
            assert all(b"xyzzy" not in got.data for got in tried)
            assert ask(served, "/toolglot/requests", key=B).data.count(b"xyzzy") == 0
            assert ask(served, f"{path}/{id}/input_items", key=A).data.count(b"xyzzy") == 1


def test_thinking_goes_back_to_the_client_that_it_came_from_only() -> None:
    script = {"rules": [{"reply": {"thinking": "a thought of A", "calls": [{"name": "read_file", "arguments": {}}]}}]}
    with serve(script) as simulated, gateway(simulated, settings=KEYED_BODIES, environ=KEYS) as served:
        path, body = request_of("openai", "anthropic/claude-sonnet-4-5", reasoning_effort="low")
        message = ask(served, path, body, key=A).body["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "x"}
        again = {**body, "messages": [*body["messages"], message, result]}
        for key, is_own in ((B, False), (A, True)):
            got = ask(served, path, again, key=key)
            page = ask(served, f"/toolglot/requests/{got.headers['x-toolglot-request']}", key=key).body
            assert ("a thought of A" in json.dumps(page["rendered"])) is is_own


# --- races ------------------------------------------------------------------------------------------


def test_clients_that_leave_at_any_moment_leave_nothing_behind(
    exposed: Served, provider: Hostile, capfd: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(7)  # noqa: S311 - the same moments each time

    async def one(number: int) -> None:
        protocol = PROTOCOLS[number % len(PROTOCOLS)]
        path, body = request_of(protocol, f"h/{('good-stream', 'drip', 'good')[number % 3]}", stream=number % 3 < 2)
        data = post(body, path=path)
        parts = urlsplit(exposed.url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        with contextlib.suppress(ConnectionError):
            writer.write(data[: chance.choice((10, len(data) - 5, len(data), len(data)))])
            await writer.drain()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(chance.random() * 0.3):
                    while await reader.read(chance.choice((1, 100, 65536))):
                        pass
        writer.transport.abort() if chance.random() < 0.5 else writer.close()

    async def everybody() -> None:
        await asyncio.gather(*(one(number) for number in range(200)))

    asyncio.run(everybody())
    wait_until(lambda: exposed.app.open == 0 and provider.open == 0)
    assert ask(exposed, *request_of("openai", "h/good")).status == 200
    assert "".join(capfd.readouterr()) == ""


def test_a_client_that_asks_twice_at_once_and_leaves_is_noticed(provider: Hostile) -> None:
    config = config_for(None, upstreams=upstream_at(provider), environ={"HOSTILE_KEY": SECRET})
    with bounded(Gateway(config, request_log=RequestLog(max_remembered=1, form="off"))) as served:
        path, body = request_of("openai", "h/drip", stream=True)
        sock = connect(served)
        sock.sendall(post(body, path=path) * 2)
        assert sock.recv(1000).startswith(b"HTTP/1.1 200")
        sock.close()
        wait_until(lambda: served.app.open == 0 and provider.open == 0)


def test_a_client_that_does_not_read_its_answer_loses_it(provider: Hostile) -> None:
    config = config_for(
        None, settings="ping_seconds = 0.05", upstreams=upstream_at(provider), environ={"HOSTILE_KEY": SECRET}
    )
    with bounded(Gateway(config, request_log=RequestLog(max_remembered=1, form="off"))) as served:
        path, body = request_of("anthropic", "h/flood", stream=True)
        sock = connect(served)
        sock.sendall(post(body, path=path))
        wait_until(lambda: served.app.open == 1)
        wait_until(lambda: served.app.open == 0 and provider.open == 0)
        sock.close()
    assert "disconnected" in served.records[-1].response.error


# --- the store --------------------------------------------------------------------------------------

THINKS = {"rules": [{"reply": {"thinking": "hm", "text": "Hello."}}]}


def test_a_store_that_others_hold_costs_no_answer(tmp_path: Path) -> None:
    with serve(THINKS) as simulated, gateway(simulated, settings=f'store = "{tmp_path}/kept.db"') as served:
        path, body = request_of("openai_responses", "anthropic/claude-sonnet-4-5")
        with contextlib.closing(sqlite3.connect(f"{tmp_path}/kept.db", isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            assert ask(served, path, body).status == 200
            wait_until(lambda: any("nothing was stored" in record.response.error for record in served.records))
            other.execute("ROLLBACK")
        wait_until(lambda: ask(served, "/ready").status == 200)
        id = ask(served, path, body).body["id"]
        assert ask(served, f"{path}/{id}").status == 200


def test_a_corrupt_store_costs_no_answer_and_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "kept.db"
    with serve(THINKS) as simulated, gateway(simulated, settings=f'store = "{file}"') as served:
        path, body = request_of("openai_responses", "anthropic/claude-sonnet-4-5")
        id = ask(served, path, body).body["id"]
        with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("ALTER TABLE kept RENAME TO gone")
        assert ask(served, path, body).status == 200
        wait_until(lambda: len(served.records) == 2)
        assert "the store" in served.records[-1].response.error
        for got in (
            ask(served, f"{path}/{id}"),
            ask(served, path, {**body, "previous_response_id": id}),
        ):
            assert got.status == 503
            assert str(tmp_path) not in got.data.decode()
            assert "the gateway's store" in got.body["error"]["message"]
        wait_until(lambda: ask(served, "/ready").status == 503)  # what it saw last holds for a second


def test_a_store_whose_file_is_removed_costs_no_answer(tmp_path: Path) -> None:
    with serve(THINKS) as simulated, gateway(simulated, settings=f'store = "{tmp_path}/kept.db"') as served:
        path, body = request_of("openai_responses", "anthropic/claude-sonnet-4-5")
        assert ask(served, path, body).status == 200
        for file in tmp_path.iterdir():
            file.unlink()
        assert ask(served, path, body).status == 200
