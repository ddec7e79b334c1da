"""What both transports do alike: one app, behind a socket and without one."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

import pytest
import uvicorn

from toolglot import InputError, ProviderError
from toolglot.upstream import AsgiTransport, HttpRequest, HttpTransport, TimeLimits, Transport

LIMITS = TimeLimits(connect=60.0, first_byte=60.0, idle=60.0)
QUICK = TimeLimits(connect=60.0, first_byte=1.0, idle=1.0)
BOUND = 120.0
"""Seconds after which something that should happen at once has not happened."""


class Call(NamedTuple):
    body: bytes
    receive: Any
    send: Any


class Stage:
    """An ASGI app with a path for each behaviour, and what a test and the app tell each other."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.disconnected = asyncio.Event()
        self.refused = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.sent = 0
        self.scope: dict[str, Any] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scope = dict(scope)
        body = b""
        more = True
        while more:
            message = await receive()
            body += message["body"]
            more = message["more_body"]
        await getattr(self, scope["path"].strip("/"))(Call(body, receive, send))

    async def start(self, send: Any, status: int = 200, *headers: tuple[bytes, bytes]) -> None:
        await send({"type": "http.response.start", "status": status, "headers": headers})

    async def piece(self, send: Any, data: bytes, *, more: bool = True) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": more})
        self.sent += 1

    async def gone(self, receive: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.disconnected.set()

    async def echo(self, call: Call) -> None:
        await self.start(call.send, 418, (b"X-One", b"1"), (b"x-two", b"a"), (b"X-Two", b"b"))
        await self.piece(call.send, call.body, more=False)

    async def empty(self, call: Call) -> None:
        await self.start(call.send)
        await self.piece(call.send, b"", more=False)

    async def steps(self, call: Call) -> None:
        await self.start(call.send)
        for data in (b"first", b"second"):
            await self.piece(call.send, data)
            await self.go_on.wait()
        await self.piece(call.send, b"", more=False)

    async def silent(self, call: Call) -> None:
        await self.gone(call.receive)

    async def stalls(self, call: Call) -> None:
        await self.start(call.send)
        await self.piece(call.send, b"first")
        await self.gone(call.receive)

    async def dies(self, call: Call) -> None:
        raise RuntimeError(f"on order, after {len(call.body)} bytes")

    async def quits(self, call: Call) -> None:
        await call.send({"type": "http.response.debug", "info": {}})

    async def breaks(self, call: Call) -> None:
        await self.start(call.send)
        await self.piece(call.send, b"first")
        await self.go_on.wait()
        raise RuntimeError("on order")

    async def stops(self, call: Call) -> None:
        await self.start(call.send, 200, (b"content-length", b"100"))
        await self.piece(call.send, b"first")

    async def moved(self, call: Call) -> None:
        where = b"https://elsewhere.example/path?key=sk-secret-1234567890"
        await self.start(call.send, 307, (b"location", where))
        await self.piece(call.send, b"", more=False)

    async def unmoved(self, call: Call) -> None:
        await self.start(call.send, 304, (b"location", b"http://[broken"))
        await self.piece(call.send, b"", more=False)

    async def endless(self, call: Call) -> None:
        await self.start(call.send)
        watching = asyncio.ensure_future(self.gone(call.receive))
        try:
            while not self.disconnected.is_set():
                await self.piece(call.send, b"x" * 65_536)
                await asyncio.sleep(0)
        except OSError:
            self.refused.set()
            await watching

    async def deaf(self, call: Call) -> None:
        await self.start(call.send)
        await self.piece(call.send, b"first")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@contextlib.asynccontextmanager
async def served(stage: Stage) -> AsyncIterator[tuple[Transport, str]]:
    config = uvicorn.Config(
        stage, lifespan="off", ws="none", http="h11", log_config=None, log_level="critical", access_log=False
    )
    config.timeout_graceful_shutdown = 1
    server = uvicorn.Server(config)
    transport = HttpTransport(environ={})
    with socket.create_server(("127.0.0.1", 0)) as sock:
        task = asyncio.ensure_future(server.serve(sockets=[sock]))
        try:
            yield transport, f"http://127.0.0.1:{sock.getsockname()[1]}"
        finally:
            await transport.close()
            server.should_exit = True
            await task


@contextlib.asynccontextmanager
async def called(stage: Stage) -> AsyncIterator[tuple[Transport, str]]:
    transport = AsgiTransport(stage, grace=0.05)
    try:
        yield transport, "http://simulator"
    finally:
        await transport.close()


Script = Callable[[Transport, str, Stage], Awaitable[None]]


@pytest.fixture(params=[served, called], ids=["http", "asgi"])
def play(request: pytest.FixtureRequest) -> Callable[[Script], None]:
    """Run a test's own steps against either transport."""

    def run(script: Script) -> None:
        async def steps() -> None:
            stage = Stage()
            async with asyncio.timeout(120), request.param(stage) as (transport, root):
                await script(transport, root, stage)

        asyncio.run(steps())

    return run


Play = Callable[[Script], None]


async def failure_of(reading: Awaitable[Any]) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        await reading
    return raised.value


def test_an_answer_has_its_status_headers_and_body_whatever_the_status(play: Play) -> None:
    async def script(transport: Transport, root: str, stage: Stage) -> None:
        ask = HttpRequest(url=f"{root}/echo?a=1&b=%2F", headers={"x-mine": "yes"}, body=b'{"a":1}')
        answer = await transport.send(ask, LIMITS)
        assert (answer.status, await answer.whole(100)) == (418, b'{"a":1}')
        assert answer.headers["x-one"] == "1"
        assert answer.headers["x-two"] == "a, b"
        await answer.close()
        assert stage.scope["query_string"] == b"a=1&b=%2F"
        assert stage.scope["method"] == "POST"
        headers = dict(stage.scope["headers"])
        assert headers[b"x-mine"] == b"yes"
        assert headers[b"content-length"] == b"7"
        assert headers[b"host"].decode() == root.removeprefix("http://")

    play(script)


def test_a_body_of_many_megabytes_goes_there_and_back(play: Play) -> None:
    async def script(transport: Transport, root: str, stage: Stage) -> None:
        body = bytes(range(256)) * 20_000
        answer = await transport.send(HttpRequest(url=f"{root}/echo", body=body), LIMITS)
        assert await answer.whole(len(body)) == body
        await answer.close()

    play(script)


def test_an_empty_answer_has_no_pieces(play: Play) -> None:
    async def script(transport: Transport, root: str, stage: Stage) -> None:
        answer = await transport.send(HttpRequest(url=f"{root}/empty", method="GET"), LIMITS)
        assert [piece async for piece in answer.pieces()] == []
        assert stage.scope["method"] == "GET"
        await answer.close()
        await answer.close()

    play(script)


def test_a_piece_arrives_before_the_next_one_is_sent(play: Play) -> None:
    async def script(transport: Transport, root: str, stage: Stage) -> None:
        answer = await transport.send(HttpRequest(url=f"{root}/steps"), LIMITS)
        pieces = answer.pieces()
        assert await anext(pieces) == b"first"
        stage.go_on.set()
        assert [piece async for piece in pieces] == [b"second"]
        await answer.close()

    play(script)


def test_silence_before_the_answer_is_a_timeout(play: Play) -> None:
    async def script(transport: Transport, root: str, stage: Stage) -> None:
        error = await failure_of(transport.send(HttpRequest(url=f"{root}/silent?key=sk-1", name="work"), QUICK))
        assert error.failure.kind == "timeout"
        assert error.failure.message == f"work ({root.removeprefix('http://')}) sent nothing within 1 s"
        await asyncio.wait_for(stage.disconnected.wait(), BOUND)

    play(script)


def test_silence_in_the_middle_is_a_timeout_and_the_end(play: Play) -> None:
    async def script(transport: Transport, root: str, stage: Stage) -> None:
        answer = await transport.send(HttpRequest(url=f"{root}/stalls"), TimeLimits(60.0, 60.0, 1.0))
        pieces = answer.pieces()
        assert await anext(pieces) == b"first"
        error = await failure_of(anext(pieces))
        assert error.failure.kind == "timeout"
        assert "was silent for 1 s" in error.failure.message
        await asyncio.wait_for(stage.disconnected.wait(), BOUND)

    play(script)


def test_a_provider_that_breaks_off_is_reported_as_such(play: Play) -> None:
    async def script(transport: Transport, root: str, stage: Stage) -> None:
        for path in ("breaks", "stops"):
            answer = await transport.send(HttpRequest(url=f"{root}/{path}"), LIMITS)
            pieces = answer.pieces()
            assert await anext(pieces) == b"first"
            stage.go_on.set()
            error = await failure_of(anext(pieces))
            assert error.failure.kind == "server"
            assert "closed the connection in the middle of its response" in error.failure.message
            await answer.close()

    play(script)


def test_redirects_are_not_followed_and_their_address_is_not_shown(play: Play) -> None:
    async def script(transport: Transport, root: str, stage: Stage) -> None:
        error = await failure_of(transport.send(HttpRequest(url=f"{root}/moved"), LIMITS))
        assert error.failure.kind == "server"
        assert "redirect to elsewhere.example (status 307), which is not followed" in error.failure.message
        assert "secret" not in str(error)
        error = await failure_of(transport.send(HttpRequest(url=f"{root}/unmoved"), LIMITS))
        assert "responded with a redirect (status 304)" in error.failure.message

    play(script)


def test_an_answer_that_is_too_long_is_broken_off(play: Play) -> None:
    async def script(transport: Transport, root: str, stage: Stage) -> None:
        answer = await transport.send(HttpRequest(url=f"{root}/endless"), LIMITS)
        error = await failure_of(answer.whole(1_000_000))
        assert error.failure.kind == "server"
        assert "more than 1000000 bytes" in error.failure.message
        await asyncio.wait_for(stage.disconnected.wait(), BOUND)

    play(script)


def test_an_answer_that_is_not_read_does_not_run_ahead(play: Play) -> None:
    async def script(transport: Transport, root: str, stage: Stage) -> None:
        answer = await transport.send(HttpRequest(url=f"{root}/endless"), LIMITS)
        sent = -1
        while sent != stage.sent:
            sent = stage.sent
            for _ in range(1000):
                await asyncio.sleep(0)
        assert stage.sent * 65_536 < 64 * 1024 * 1024
        await answer.close()

    play(script)


def test_closing_an_unread_answer_is_learned_by_the_provider_at_once(play: Play) -> None:
    async def script(transport: Transport, root: str, stage: Stage) -> None:
        answer = await transport.send(HttpRequest(url=f"{root}/stalls"), LIMITS)
        assert await anext(answer.pieces()) == b"first"
        await answer.close()
        await asyncio.wait_for(stage.disconnected.wait(), BOUND)
        error = await failure_of(anext(answer.pieces()))
        assert error.failure.kind == "server"

    play(script)


def test_a_cancelled_request_is_learned_by_the_provider_at_once(play: Play) -> None:
    async def script(transport: Transport, root: str, stage: Stage) -> None:
        waiting = asyncio.ensure_future(transport.send(HttpRequest(url=f"{root}/silent"), LIMITS))
        while not stage.scope:
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(stage.disconnected.wait(), BOUND)

    play(script)


def test_a_closed_transport_sends_nothing(play: Play) -> None:
    async def script(transport: Transport, root: str, stage: Stage) -> None:
        await transport.close()
        with pytest.raises(InputError, match="closed"):
            await transport.send(HttpRequest(url=f"{root}/echo"), LIMITS)
        await transport.close()

    play(script)


# --- without a socket -------------------------------------------------------------------------------


async def test_an_app_that_dies_or_says_nothing_gives_an_error_and_no_traceback() -> None:
    async with called(Stage()) as (transport, root):
        error = await failure_of(transport.send(HttpRequest(url=f"{root}/dies"), LIMITS))
        assert error.failure.kind == "server"
        assert error.failure.message == "simulator closed the connection without a response (RuntimeError)"
        error = await failure_of(transport.send(HttpRequest(url=f"{root}/quits"), LIMITS))
        assert error.failure.message == "simulator closed the connection without a response"


async def test_an_app_can_be_one_piece_ahead_and_no_more() -> None:
    stage = Stage()
    async with called(stage) as (transport, root):
        answer = await transport.send(HttpRequest(url=f"{root}/endless"), LIMITS)
        for expected in (1, 2, 3):
            for _ in range(10):
                await asyncio.sleep(0)
            assert stage.sent == expected
            await anext(answer.pieces())
        await answer.close()
        await asyncio.wait_for(stage.refused.wait(), BOUND)


async def test_an_app_that_does_not_listen_is_cancelled_after_a_while() -> None:
    stage = Stage()
    async with called(stage) as (transport, root):
        answer = await transport.send(HttpRequest(url=f"{root}/deaf"), LIMITS)
        await answer.close()
        assert not stage.cancelled.is_set()
        await asyncio.wait_for(stage.cancelled.wait(), BOUND)


async def test_closing_the_transport_ends_what_still_runs() -> None:
    stage = Stage()
    transport = AsgiTransport(stage)
    answer = await transport.send(HttpRequest(url="http://app/deaf"), LIMITS)
    await transport.close()
    assert stage.cancelled.is_set()
    await answer.close()


async def test_an_app_may_go_on_after_its_last_piece() -> None:
    over = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"all"})
        assert (await receive())["type"] == "http.request"
        assert (await receive())["type"] == "http.disconnect"
        over.set()

    transport = AsgiTransport(app, grace=0.0)
    answer = await transport.send(HttpRequest(url="http://app/"), LIMITS)
    assert await answer.whole(10) == b"all"
    await answer.close()
    await asyncio.wait_for(over.wait(), BOUND)
    await transport.close()
