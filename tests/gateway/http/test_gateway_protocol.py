"""One HTTP connection of the gateway by itself, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn.server import ServerState

from support.waiting import HANG_SECONDS
from toolglot.gateway.http.connection_request import MAX_AHEAD, MAX_JOINED
from toolglot.gateway.http.connections import (
    MAX_IGNORED,
    MAX_IGNORED_GARBAGE,
    MAX_WAITING,
    BoundedProtocol,
)
from toolglot.gateway.http.graceful_shutdown import GracefulShutdown
from toolglot.gateway.http.requests import ClientRequest, GoneError

HEALTH = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n"


class Wire(asyncio.Transport):
    """A transport that goes nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_aborted = self.is_paused = self.is_ended = False
        self._is_closing = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def close(self) -> None:
        self._is_closing = True

    def abort(self) -> None:
        self._is_closing = self.is_aborted = True

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.is_ended = True

    def get_extra_info(self, name: str, default: Any = None) -> Any:  # noqa: ARG002 - there is none
        return default


class Room:
    def accepts(self, *_: Any) -> bool:
        return True


class Quick(BoundedProtocol):
    head_seconds = 0.01


def played(
    serve: Callable[[ClientRequest], Awaitable[None]],
    script: Callable[[BoundedProtocol, Wire], Awaitable[None]],
    kind: type[BoundedProtocol] = BoundedProtocol,
) -> Wire:
    """What is written on a connection while a script acts on it, and requests are answered by `serve`."""
    wire = Wire()

    async def play() -> None:
        app: Any = SimpleNamespace(serve=serve, connection_limit=Room(), shutdown=GracefulShutdown())
        config: Any = SimpleNamespace(app=app, timeout_keep_alive=75)
        protocol = kind(config, ServerState(), {}, asyncio.get_running_loop())
        protocol.connection_made(wire)
        await script(protocol, wire)
        protocol.connection_lost(None)
        await asyncio.sleep(0)

    asyncio.run(play())
    return wire


async def healthy(request: ClientRequest) -> None:
    await request.channel.respond(200, {}, b"{}")


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_server_that_ends_closes_what_is_idle_and_lets_answers_end() -> None:
    async def idle(protocol: BoundedProtocol, wire: Wire) -> None:
        protocol.shutdown()
        assert wire.is_closing()

    assert played(healthy, idle).written == b""

    async def busy(protocol: BoundedProtocol, wire: Wire) -> None:
        protocol.data_received(HEALTH + b"\r\n")
        protocol.shutdown()
        assert not wire.is_closing()
        await settled()
        assert wire.is_closing()

    assert b"\r\nconnection: close\r\n" in played(healthy, busy).written


def test_an_answer_that_says_so_ends_the_connection() -> None:
    async def serve(request: ClientRequest) -> None:
        await request.channel.respond(299, {"connection": "close", "x": "a\r\nb: c"}, b"x" * (MAX_JOINED + 1))

    async def script(protocol: BoundedProtocol, wire: Wire) -> None:
        protocol.data_received(HEALTH + b"\r\n")
        await settled()
        assert wire.is_closing()

    head, _, body = played(serve, script).written.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 299 \r\n")
    assert head.count(b"connection: close") == 1
    assert b"x: a??b: c" in head
    assert len(body) == MAX_JOINED + 1


def test_a_client_is_listened_to_after_the_last_piece_of_a_large_body() -> None:
    """Who does not read does not notice either that a client goes away while its answer is waited for."""
    body = b"x" * (2 * MAX_AHEAD)
    read: list[int] = []

    async def serve(request: ClientRequest) -> None:
        read.append(len(await request.channel.read(len(body))))
        await asyncio.Event().wait()

    async def script(protocol: BoundedProtocol, wire: Wire) -> None:
        protocol.data_received(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % len(body) + body[:9])
        await settled()
        protocol.data_received(body[9:])
        await settled()
        assert read == [len(body)]
        assert not wire.is_paused
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    played(serve, script)


def test_what_is_no_http_in_the_middle_of_an_answer_is_reported_after_it() -> None:
    async def script(protocol: BoundedProtocol, wire: Wire) -> None:
        go = asyncio.Event()
        script_go.append(go)
        protocol.data_received(HEALTH + b"\r\n")
        await settled()
        protocol.data_received(b"\0")
        protocol.data_received(b"\0" * MAX_IGNORED_GARBAGE)
        assert not wire.is_paused
        protocol.data_received(b"\0")
        assert wire.is_paused
        assert not wire.is_closing()
        go.set()
        await settled()
        assert wire.is_ended
        assert not wire.is_paused
        protocol.data_received(b"\0")
        assert wire.is_aborted

    script_go: list[asyncio.Event] = []

    async def serve(request: ClientRequest) -> None:
        await request.channel.begin(200, {})
        await script_go[0].wait()
        await request.channel.end()

    written = played(serve, script).written
    assert [part[:3] for part in written.split(b"HTTP/1.1 ")[1:]] == [b"200", b"400"]


@pytest.mark.parametrize("is_begun", [True, False])
def test_a_body_that_is_none_ends_its_own_request(is_begun: bool) -> None:
    seen: list[str] = []

    async def serve(request: ClientRequest) -> None:
        if is_begun:
            await request.channel.begin(200, {})
        try:
            await request.channel.read(100)
        except GoneError:
            seen.append("gone")

    async def script(protocol: BoundedProtocol, wire: Wire) -> None:
        protocol.data_received(HEALTH + b"transfer-encoding: chunked\r\n\r\n")
        await settled()
        protocol.data_received(b"zz\r\n")
        await settled()
        assert wire.is_aborted is is_begun
        assert wire.is_ended is not is_begun

    written = played(serve, script).written
    assert written.startswith(b"HTTP/1.1 200" if is_begun else b"HTTP/1.1 400")
    assert written.count(b"HTTP/1.1 ") == 1
    assert seen == ["gone"]


def test_a_body_that_is_none_after_its_answer_is_not_answered_again() -> None:
    async def script(protocol: BoundedProtocol, wire: Wire) -> None:
        protocol.data_received(HEALTH + b"transfer-encoding: chunked\r\n\r\n")
        await settled()
        protocol.data_received(b"zz\r\n")
        assert wire.is_ended

    assert played(healthy, script).written.count(b"HTTP/1.1 ") == 1


def test_of_what_comes_after_the_end_no_more_is_taken_than_may_be() -> None:
    async def script(protocol: BoundedProtocol, wire: Wire) -> None:
        protocol.data_received(HEALTH + b"connection: close\r\ncontent-length: 100000000\r\n\r\n")
        await settled()
        assert wire.is_ended
        assert not wire.is_closing()
        piece = bytes(1024 * 1024)
        for _ in range(MAX_IGNORED // len(piece)):
            protocol.data_received(piece)
        assert not wire.is_aborted
        protocol.data_received(b"x")
        assert wire.is_aborted

    assert played(healthy, script).written.count(b"HTTP/1.1 ") == 1


def test_a_server_that_ends_does_not_wait_for_who_still_speaks() -> None:
    async def script(protocol: BoundedProtocol, wire: Wire) -> None:
        protocol.data_received(HEALTH + b"connection: close\r\ncontent-length: 100\r\n\r\n")
        await settled()
        assert not wire.is_closing()
        protocol.shutdown()
        assert wire.is_closing()

    played(healthy, script)


def test_an_upgrade_is_ignored_wherever_its_head_is_cut() -> None:
    head = b"POST /a?b=%20 HTTP/1.1\r\nHost: x\r\nX: \xe9\r\nconnection: upgrade\r\nUpgrade: h2c\r\n"
    data = head + b"content-length: 9\r\n\r\nUpgrade: "
    seen: list[Any] = []

    async def serve(request: ClientRequest) -> None:
        seen.append((request.method, request.path, request.raw_query, request.headers, await request.channel.read(100)))
        await healthy(request)

    async def script(protocol: BoundedProtocol, wire: Wire) -> None:
        for cut in range(len(data)):
            protocol.data_received(data[:cut])
            protocol.data_received(data[cut:])
            await settled()
        assert not wire.is_closing()

    assert played(serve, script).written.count(b"HTTP/1.1 200") == len(data)
    headers = {"host": "x", "x": "\xe9", "connection": "upgrade", "content-length": "9"}
    assert seen == [("POST", "/a", "b=%20", headers, b"Upgrade: ")] * len(data)


def test_what_is_no_http_after_an_upgrade_gets_an_error() -> None:
    async def script(protocol: BoundedProtocol, wire: Wire) -> None:
        head_and_body = HEALTH + b"connection: upgrade\r\nupgrade: h2c\r\n\r\n"
        protocol.data_received(head_and_body + head_and_body + b"\0")
        await settled()
        assert wire.is_ended

    written = played(healthy, script).written
    assert [part[:3] for part in written.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"400"]


@pytest.mark.parametrize("early", [b"\r\n", b"GET /hea"])
def test_what_comes_during_an_answer_does_not_end_it(early: bytes) -> None:
    async def serve(request: ClientRequest) -> None:
        await request.channel.begin(200, {})
        await asyncio.sleep(Quick.head_seconds * 5)
        await request.channel.end()

    async def script(protocol: BoundedProtocol, wire: Wire) -> None:
        protocol.data_received(HEALTH + b"\r\n")
        await settled()
        protocol.data_received(early)
        async with asyncio.timeout(HANG_SECONDS):
            while not wire.is_closing():
                await asyncio.sleep(0.005)

    assert played(serve, script, Quick).written.endswith(b"0\r\n\r\n")


def test_who_leaves_is_noticed_unless_too_much_waits() -> None:
    async def serve(request: ClientRequest) -> None:
        await asyncio.sleep(60)

    async def few(protocol: BoundedProtocol, wire: Wire) -> None:
        for _ in range(MAX_WAITING):
            protocol.data_received(HEALTH + b"\r\n")
            assert not wire.is_paused
        protocol.data_received(HEALTH + b"\r\n")
        assert wire.is_paused

    async def large(protocol: BoundedProtocol, wire: Wire) -> None:
        protocol.data_received(HEALTH + b"\r\n")
        size = MAX_AHEAD // 2
        head_and_body = HEALTH + b"content-length: %d\r\n\r\n" % size + bytes(size)
        protocol.data_received(head_and_body)
        assert not wire.is_paused
        protocol.data_received(head_and_body)
        assert wire.is_paused

    played(serve, few)
    played(serve, large)


def test_nothing_is_written_while_the_client_does_not_read_or_once_it_is_gone() -> None:
    ended: list[str] = []

    async def serve(request: ClientRequest) -> None:
        channel = request.channel
        await channel.begin(200, {})
        await channel.write(b"a")
        await channel.end()
        ended.append(f"{channel.is_gone}")

    async def read_late(protocol: BoundedProtocol, wire: Wire) -> None:
        protocol.pause_writing()
        protocol.pause_writing()
        protocol.data_received(HEALTH + b"\r\n")
        await settled()
        assert wire.written == b""
        protocol.resume_writing()
        await settled()
        assert wire.written.endswith(b"\r\n\r\n1\r\na\r\n0\r\n\r\n")

    played(serve, read_late)

    async def never_read(protocol: BoundedProtocol, wire: Wire) -> None:
        protocol.pause_writing()
        protocol.data_received(HEALTH + b"\r\n")
        await settled()
        protocol.connection_lost(None)
        await settled()

    assert played(serve, never_read).written == b""

    async def whole(request: ClientRequest) -> None:
        await healthy(request)
        ended.append("whole")

    assert played(whole, never_read).written == b""
    assert ended == ["False", "True", "whole"]


def test_a_request_that_is_not_answered_ends_its_connection() -> None:
    async def serve(request: ClientRequest) -> None:
        pass

    async def script(protocol: BoundedProtocol, wire: Wire) -> None:
        protocol.data_received(HEALTH + b"\r\n")
        await settled()
        assert wire.is_closing()

    assert played(serve, script).written == b""


def test_a_client_that_left_before_its_body_was_read_has_gone() -> None:
    found: list[str] = []

    async def serve(request: ClientRequest) -> None:
        await asyncio.sleep(0)
        try:
            await request.channel.read(100)
        except GoneError:
            found.append("gone")

    async def script(protocol: BoundedProtocol, wire: Wire) -> None:
        protocol.data_received(HEALTH + b"\r\n")
        await asyncio.sleep(0)
        protocol.connection_lost(None)
        await settled()

    played(serve, script)
    assert found == ["gone"]


def test_a_head_that_begins_late_has_its_own_time() -> None:
    async def script(protocol: BoundedProtocol, wire: Wire) -> None:
        protocol.data_received(HEALTH + b"\r\n")
        await settled()
        protocol.data_received(b"GET /")
        assert not wire.is_closing()
        async with asyncio.timeout(HANG_SECONDS):
            while not wire.is_closing():
                await asyncio.sleep(0.005)

    played(healthy, script, Quick)
