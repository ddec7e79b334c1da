"""The end of a gateway: open streams go on, nothing new is begun, and what lasts too long ends with an error."""

from __future__ import annotations

import asyncio
import errno
import json
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from support.gateway.gateway_process import Process, posted, process, read_all, read_until
from support.gateway.http_client import request_of
from support.gateway.served_gateway import config_for
from support.hostile.hostile_upstream import END, EVENTS, Hostile, chunk, delta, endless, hostile
from support.waiting import HANG_SECONDS, wait_until
from toolglot.gateway import Gateway
from toolglot.gateway.http.listening_end import accept_the_rest
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.simulator import serve
from toolglot.simulator.serving import Server, listen

WORDS = "One two three four five six seven eight nine ten. " * 2
READY = b"GET /ready HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
ENDED_CHUNKS = b"\r\n0\r\n\r\n"
"""How a whole answer in chunks ends; a cut connection lacks it."""


def paced(pace: float, words: str = WORDS) -> dict[str, object]:
    return {"rules": [{"reply": {"text": words}}], "chunk": 10, "pace": pace}


@pytest.fixture(scope="module")
def slower() -> Iterator[Server]:
    """A stream that lasts for half an hour."""
    with serve(paced(0.2, WORDS * 1000)) as simulated:
        yield simulated


def is_refused(gateway: Process) -> bool:
    try:
        gateway.connect()
    except ConnectionRefusedError:
        return True
    return False


def held_gateway(folder: Path, simulated: Server, provider: Hostile) -> AbstractContextManager[Process]:
    """A gateway that gives open answers an hour, with an upstream that a test holds."""
    own = f'drain_seconds = 3600\n[upstreams.held]\nurl = "{provider.url}"'
    return process(folder, simulated, settings=own)


def stream_of(protocol: str, model: str = "openai_chat/gpt-4.1") -> bytes:
    return posted(*request_of(protocol, model, stream=True))


def test_a_stream_that_is_open_at_SIGTERM_goes_on_to_its_end(slower: Server, tmp_path: Path) -> None:
    go_on = threading.Event()

    async def held(_: bytes) -> AsyncIterator[bytes]:
        yield EVENTS + chunk(delta("One"))
        await asyncio.to_thread(go_on.wait, HANG_SECONDS)
        yield chunk(delta(" two.")) + chunk(END) + b"0\r\n\r\n"

    with hostile({"held": held}) as provider, held_gateway(tmp_path, slower, provider) as gateway:
        other, asking = gateway.connect(), gateway.connect()
        for each in (other, asking):
            each.sendall(READY)
            assert b'{"status":"ready"}' in read_until(each, b"}")
        sock = gateway.connect()
        sock.sendall(stream_of("anthropic", "held/held"))
        data = read_until(sock, b"text_delta")
        gateway.signal(signal.SIGTERM)
        wait_until(lambda: bool(gateway.events("drain")))

        # No new connection is accepted; who is connected already is served once more.
        wait_until(lambda: is_refused(gateway))
        asking.sendall(READY)
        ready = read_all(asking)
        assert ready.startswith(b"HTTP/1.1 503")
        assert b'{"status":"draining"}' in ready
        other.sendall(posted(*request_of("anthropic", "anthropic/claude-sonnet-4-5")))
        served = read_all(other)
        assert served.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in served

        go_on.set()
        data = read_all(sock, data)
        assert b"event: message_stop" in data
        assert b"event: error" not in data
        assert data.endswith(ENDED_CHUNKS)
        assert gateway.ended() == 0
    assert [event["open"] for event in gateway.events("stop")] == [0]


CUT = {
    "anthropic": b"event: error",
    "openai": b'data: {"error":',
    "openai_responses": b"event: response.failed",
    "gemini": b'data: {"error":',
    "ollama": b'{"error":',
}
"""How a stream of each protocol says that it failed."""


def test_a_stream_that_outlasts_the_limit_ends_as_an_error_of_its_protocol(slower: Server, tmp_path: Path) -> None:
    with process(tmp_path, slower, settings="drain_seconds = 0.3") as gateway:
        socks = {protocol: gateway.connect() for protocol in CUT}
        for protocol, sock in socks.items():
            sock.sendall(stream_of(protocol))
        seen = {protocol: read_until(sock, b"One two") for protocol, sock in socks.items()}
        gateway.signal(signal.SIGTERM)
        for protocol, sock in socks.items():
            data = read_all(sock, seen[protocol])
            assert CUT[protocol] in data
            assert b"the gateway is stopping" in data
            assert data.endswith(ENDED_CHUNKS)
        assert gateway.ended() == 0
    logged = gateway.events("request")
    assert [event["status"] for event in logged] == [200] * len(CUT)
    assert all("the gateway is stopping" in event["error"] for event in logged)


def test_an_answer_that_has_not_begun_at_the_limit_is_an_error_to_try_again(tmp_path: Path) -> None:
    with serve(paced(0.1)) as silent, process(tmp_path, silent, settings="drain_seconds = 0") as gateway:
        silent.fault("timeout")
        sock = gateway.connect()
        sock.sendall(posted(*request_of("openai", "openai_chat/gpt-4.1")))
        wait_until(lambda: bool(silent.requests))
        gateway.signal(signal.SIGTERM)
        data = read_all(sock)
        head, _, body = data.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503")
        assert b"the gateway is stopping" in json.dumps(json.loads(body)).encode()
        assert gateway.ended() == 0


def test_a_gateway_in_an_app_of_its_own_drains_too(slower: Server) -> None:
    config = config_for(slower)
    sent: list[dict[str, Any]] = []

    async def one(app: Gateway, path: str, body: Any, *, begins: bool) -> asyncio.Task[None]:
        """A request whose client stays; returns when its answer has begun, or when it waits."""
        data = [json.dumps(body).encode()]
        begun = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if data:
                return {"type": "http.request", "body": data.pop(), "more_body": False}
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Any) -> None:
            sent.append({**message, "path": path})
            if message["type"] == "http.response.body":
                begun.set()

        scope = {"type": "http", "method": "POST", "path": path, "headers": [(b"host", b"127.0.0.1")]}
        task = asyncio.ensure_future(app(scope, receive, send))
        before = len(slower.requests)
        while not (begun.is_set() if begins else len(slower.requests) > before):
            await asyncio.sleep(0.01)
        return task

    async def act() -> None:
        async with Gateway(config, request_log=RequestLog(max_remembered=9, form="off")) as app:
            path, body = request_of("anthropic", "openai_chat/gpt-4.1", stream=True)
            stream = await one(app, path, body, begins=True)
            slower.fault("timeout")
            silent = await one(app, *request_of("openai", "openai_chat/gpt-4.1"), begins=False)
            begun = time.monotonic()
            await app.drain(0.2)
            assert time.monotonic() - begun >= 0.2  # a clock does not run faster on a busy machine
            await asyncio.gather(stream, silent)
            assert app.open == 0
            late = await one(app, path, body, begins=True)
            await late

    asyncio.run(act())
    starts = [(message["path"], message["status"]) for message in sent if message["type"] == "http.response.start"]
    chat = "/v1/chat/completions"
    assert starts == [("/v1/messages", 200), (chat, 503), ("/v1/messages", 529)]
    streamed = [message for message in sent if message["path"] == "/v1/messages" and "body" in message]
    assert b"event: error" in b"".join(message["body"] for message in streamed)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_does_not_wait(slower: Server, tmp_path: Path, number: signal.Signals) -> None:
    with process(tmp_path, slower, settings="drain_seconds = 3600") as gateway:
        sock = gateway.connect()
        sock.sendall(stream_of("anthropic"))
        data = read_until(sock, b"text_delta")
        gateway.signal(number)
        wait_until(lambda: bool(gateway.events("drain")))
        assert gateway.popen.poll() is None
        gateway.signal(number)
        data = read_all(sock, data)
        assert b"event: error" in data
        assert gateway.ended() == 0  # long before the hour is over


def test_who_does_not_read_does_not_hold_the_end(slower: Server, tmp_path: Path) -> None:
    flood = endless(EVENTS, chunk(delta("word " * 2000)))
    with hostile({"flood": flood}) as provider:
        own = f'drain_seconds = 0\n[upstreams.flood]\nurl = "{provider.url}"'
        with process(tmp_path, slower, settings=own) as gateway:
            sock = gateway.connect()
            sock.sendall(stream_of("anthropic", "flood/flood"))
            read_until(sock, b"text_delta")
            gateway.signal(signal.SIGTERM)
            assert gateway.ended() == 0


def test_a_lame_duck_accepts_and_serves_and_says_that_it_ends(slower: Server, tmp_path: Path) -> None:
    with process(tmp_path, slower, settings="lame_duck_seconds = 3600") as gateway:
        kept = gateway.connect()
        kept.sendall(READY)
        read_until(kept, b"}")
        gateway.signal(signal.SIGTERM)
        wait_until(lambda: bool(gateway.events("lame_duck")))
        assert b'{"status":"draining"}' in read_all(sent(gateway.connect(), READY))
        for sock in (kept, gateway.connect()):
            served = read_all(sent(sock, b"GET /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: any\r\n\r\n"))
            assert served.startswith(b"HTTP/1.1 200")
            assert b"connection: close" in served
        gateway.signal(signal.SIGTERM)  # it does not wait
        assert gateway.ended() == 0
        wait_until(lambda: is_refused(gateway))


def sent(sock: socket.socket, data: bytes) -> socket.socket:
    sock.sendall(data)
    return sock


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
async def test_connections_that_are_made_when_it_stops_listening_are_accepted_and_later_ones_refused() -> None:
    accepted: list[asyncio.StreamWriter] = []
    with listen() as sock:
        address = sock.getsockname()
        clients = [socket.create_connection(address) for _ in range(50)]  # nobody accepts yet
        server = await asyncio.start_server(lambda _, writer: accepted.append(writer), sock=sock)
        await accept_the_rest(sock)
        late = socket.socket()
        late.setblocking(False)
        assert late.connect_ex(address) == errno.EINPROGRESS, "its first packet is dropped"
        server.close()
    assert len(accepted) == 50
    await asyncio.to_thread(select.select, [], [late], [], HANG_SECONDS)
    assert late.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED
    for each in (*clients, late):
        each.close()
    for writer in accepted:
        writer.close()
