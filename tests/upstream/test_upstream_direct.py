"""What only the client of our own has to get right: connections that are shared, and every way an answer can end."""

from __future__ import annotations

import asyncio
import zlib
from asyncio import StreamReader as Reader
from asyncio import StreamWriter as Writer
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from support.upstream.raw_server import STREAM, RawServer, answer, chunk, listening
from toolglot import ProviderError
from toolglot.upstream import HttpRequest, HttpTransport, TimeLimits
from toolglot.upstream.http import connection_pool, direct_http
from toolglot.upstream.http.direct_http import DirectResponse
from toolglot.upstream.http.request_head import head_of, plain_target, with_length

LIMITS = TimeLimits(connect=60.0, first_byte=60.0, idle=60.0)
Handler = Callable[[RawServer, Reader, Writer], Awaitable[None]]
Script = Callable[[HttpTransport, RawServer], Awaitable[None]]


def play(handler: Handler, script: Script) -> None:
    async def steps() -> None:
        async with asyncio.timeout(120), listening(handler) as server:
            transport = HttpTransport(environ={})
            try:
                await script(transport, server)
            finally:
                await transport.close()

    asyncio.run(steps())


def says(*data: bytes) -> Handler:
    async def handler(server: RawServer, reader: Reader, writer: Writer) -> None:
        while True:
            await server.next_request(reader)
            for piece in data:
                writer.write(piece)
                await writer.drain()

    return handler


async def body_of(transport: HttpTransport, server: RawServer, most: int = 1_000_000) -> bytes:
    reading = await transport.send(HttpRequest(url=server.url, body=b"{}"), LIMITS)
    assert isinstance(reading, DirectResponse)
    try:
        return await reading.whole(most)
    finally:
        await reading.close()


# --- shared connections -----------------------------------------------------------------------------


def test_many_requests_at_once_get_their_own_answers_over_few_connections() -> None:
    async def echoing(server: RawServer, reader: Reader, writer: Writer) -> None:
        while True:
            came = await server.next_request(reader)
            writer.write(answer(came.body))
            await writer.drain()

    async def script(transport: HttpTransport, server: RawServer) -> None:
        async def asking(who: int) -> None:
            for number in range(20):
                payload = b"%d/%d" % (who, number)
                reading = await transport.send(HttpRequest(url=server.url, body=payload), LIMITS)
                assert await reading.whole(100) == payload

        await asyncio.gather(*map(asking, range(16)))
        assert server.connections <= 16

    play(echoing, script)


def test_who_is_cancelled_after_the_answer_came_does_not_end_anothers_connection() -> None:
    async def script(transport: HttpTransport, server: RawServer) -> None:
        async def cancelled(turns: int) -> None:
            before = len(server.requests)
            task = asyncio.create_task(transport.send(HttpRequest(url=server.url), LIMITS))
            while len(server.requests) == before:
                await asyncio.sleep(0)
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        for turns in range(8):
            await asyncio.gather(cancelled(turns), body_of(transport, server), body_of(transport, server))
            assert await body_of(transport, server) == b"{}"

    play(says(answer(b"{}")), script)


def test_a_connection_that_says_more_than_its_answer_is_not_used_again() -> None:
    async def script(transport: HttpTransport, server: RawServer) -> None:
        for _ in range(2):
            assert await body_of(transport, server) == b"{}"
        assert server.connections == 2

    play(says(answer(b"{}") + answer(b'{"of": "another"}')), script)


def test_a_connection_that_speaks_unasked_is_not_used_again() -> None:
    async def handler(server: RawServer, reader: Reader, writer: Writer) -> None:
        await server.next_request(reader)
        writer.write(answer(b"{}"))
        await writer.drain()
        await has_spoken.wait()
        writer.write(answer(b'{"of": "another"}'))
        await writer.drain()
        was_released.set()
        await reader.read(1)

    has_spoken, was_released = asyncio.Event(), asyncio.Event()

    async def script(transport: HttpTransport, server: RawServer) -> None:
        assert await body_of(transport, server) == b"{}"
        has_spoken.set()
        await was_released.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        assert await body_of(transport, server) == b"{}"
        assert server.connections == 2

    play(handler, script)


def test_a_connection_that_the_server_closes_is_not_used_again() -> None:
    async def script(transport: HttpTransport, server: RawServer) -> None:
        for _ in range(2):
            assert await body_of(transport, server) == b"{}"
        assert server.connections == 2

    play(says(answer(b"{}", b"connection: close")), script)


def test_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_pool, "SWEEP_SECONDS", 0.02)
    monkeypatch.setattr(direct_http, "reuse_seconds", lambda *_: 0.02)

    async def script(transport: HttpTransport, server: RawServer) -> None:
        assert await body_of(transport, server) == b"{}"
        pool: Any = transport._pool
        while pool.all or pool._sweeping:
            await asyncio.sleep(0.005)
        assert not pool._free
        await body_of(transport, server)
        assert server.connections == 2

    play(says(answer(b"{}")), script)


# --- answers ----------------------------------------------------------------------------------------


def test_news_of_an_answer_to_come_are_no_answer() -> None:
    async def script(transport: HttpTransport, server: RawServer) -> None:
        assert [await body_of(transport, server) for _ in range(2)] == [b"{}", b"{}"]

    early = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
    play(says(b"HTTP/1.1 100 Continue\r\n\r\n" + early, answer(b"{}")), script)


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    async def handler(server: RawServer, reader: Reader, writer: Writer) -> None:
        await server.next_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nall ")
        await writer.drain()
        writer.write(b"of it")
        await writer.drain()

    async def script(transport: HttpTransport, server: RawServer) -> None:
        assert await body_of(transport, server) == b"all of it"

    play(handler, script)


def test_a_trailer_is_no_header() -> None:
    async def script(transport: HttpTransport, server: RawServer) -> None:
        reading = await transport.send(HttpRequest(url=server.url), LIMITS)
        assert await reading.whole(100) == b"first"
        assert "x-late" not in reading.headers

    play(says(STREAM, chunk(b"first"), b"0\r\nx-late: 1\r\n\r\n"), script)


@pytest.mark.parametrize("start", [STREAM + chunk(b"first") + b"0\r\nx-late: ", STREAM + b"5;"])
def test_what_is_no_body_is_bounded(start: bytes) -> None:
    async def handler(server: RawServer, reader: Reader, writer: Writer) -> None:
        await server.next_request(reader)
        writer.write(start)
        while True:
            writer.write(b"x" * 10_000)
            await writer.drain()

    async def script(transport: HttpTransport, server: RawServer) -> None:
        with pytest.raises(ProviderError, match="in the middle of its response"):
            await body_of(transport, server)

    play(handler, script)


@pytest.mark.parametrize("window", [15, -15])
def test_deflate_is_unpacked_with_and_without_its_envelope(window: int) -> None:
    body = b'{"a": 1}' * 100_000
    packer = zlib.compressobj(wbits=window)
    packed = packer.compress(body) + packer.flush()

    async def script(transport: HttpTransport, server: RawServer) -> None:
        assert await body_of(transport, server) == body

    play(says(answer(packed, b"content-encoding: deflate")), script)


@pytest.mark.parametrize("packed", [b"br", b"gzip"])
def test_what_cannot_be_unpacked_is_an_answer_that_broke_off(packed: bytes) -> None:
    packer = zlib.compressobj(wbits=31)
    half = packer.compress(b"x" * 100) + packer.flush(zlib.Z_SYNC_FLUSH)

    async def script(transport: HttpTransport, server: RawServer) -> None:
        with pytest.raises(ProviderError, match="in the middle of its response"):
            await body_of(transport, server)

    play(says(answer(half, b"content-encoding: " + packed)), script)


def test_an_empty_packed_answer_is_empty() -> None:
    async def script(transport: HttpTransport, server: RawServer) -> None:
        assert await body_of(transport, server) == b""

    play(says(answer(b"", b"content-encoding: gzip")), script)


def test_time_in_which_the_caller_does_not_read_is_not_the_providers() -> None:
    """The limit between two pieces runs while a caller waits for one."""

    async def handler(server: RawServer, reader: Reader, writer: Writer) -> None:
        await server.next_request(reader)
        writer.write(STREAM + chunk(b"first"))
        await writer.drain()
        await going.wait()
        writer.write(chunk(b"second") + b"0\r\n\r\n")
        await writer.drain()
        await reader.read(1)

    going = asyncio.Event()

    async def script(transport: HttpTransport, server: RawServer) -> None:
        reading = await transport.send(HttpRequest(url=server.url), TimeLimits(60.0, 60.0, 1.0))
        pieces = reading.pieces()
        assert await anext(pieces) == b"first"
        waiting = asyncio.ensure_future(anext(pieces))
        await asyncio.sleep(0)
        going.set()
        assert await waiting == b"second"
        await asyncio.sleep(1.1)  # the time in which the caller does not read
        with pytest.raises(StopAsyncIteration):
            await anext(pieces)

    play(handler, script)


def test_a_long_answer_is_read_to_its_end_although_it_was_paused() -> None:
    body = b"x" * 3_000_000

    async def script(transport: HttpTransport, server: RawServer) -> None:
        reading = await transport.send(HttpRequest(url=server.url), LIMITS)
        for _ in range(1000):  # as much comes as is taken
            await asyncio.sleep(0)
        assert await reading.whole(len(body)) == body
        assert await body_of(transport, server, len(body)) == body
        assert server.connections == 1

    play(says(answer(body)), script)


# --- what is left to the library --------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        *("http://user:pass@host/", "http://höst/", "http://host/a b", "http://host/#part", "ftp://host/", "http:///x"),
        *("http://host:99999/", "http://ho_st/", "http://host:0/", "http://[::1/"),
    ],
)
def test_unusual_addresses_are_not_plain(url: str) -> None:
    assert plain_target(url) is None


def test_plain_addresses_are_taken_apart() -> None:
    assert plain_target("https://host") == (("host", 443, True), "host", "/")
    assert plain_target("https://host:443/a?b=c") == (("host", 443, True), "host", "/a?b=c")
    assert plain_target("http://[::1]:8080/a") == (("::1", 8080, False), "[::1]:8080", "/a")


@pytest.mark.parametrize(
    "ask",
    [
        HttpRequest(url="http://host/", headers={"x-a": "b\r\nx-c: d"}),
        HttpRequest(url="http://host/", headers={"x a": "b"}),
        HttpRequest(url="http://host/", headers={"": "b"}),
        HttpRequest(url="http://host/", headers={"x-a": "é"}),
        HttpRequest(url="http://host/", headers={"transfer-encoding": "chunked"}),
        HttpRequest(url="http://host/", method="HEAD"),
    ],
)
def test_unusual_requests_are_left_to_the_library(ask: HttpRequest) -> None:
    assert head_of(ask, "host", "/") is None


def test_a_head_says_what_is_needed_and_nothing_twice() -> None:
    ask = HttpRequest(
        url="http://host/a", headers={"accept": "text/plain", "accept-encoding": "identity"}, method="GET"
    )
    head = head_of(ask, "host", "/a")
    assert head is not None
    assert (
        with_length(ask, head)
        == b"GET /a HTTP/1.1\r\nhost: host\r\naccept: text/plain\r\naccept-encoding: identity\r\n\r\n"
    )
    posted = HttpRequest(url="http://host/a")
    head = head_of(posted, "host", "/a")
    assert head is not None
    assert with_length(posted, head).endswith(b"content-length: 0\r\n\r\n")


def test_the_library_serves_what_is_not_plain() -> None:
    async def script(transport: HttpTransport, server: RawServer) -> None:
        reading = await transport.send(HttpRequest(url=f"{server.url}#part"), LIMITS)
        assert not isinstance(reading, DirectResponse)
        assert await reading.whole(10) == b"{}"
        await reading.close()

    play(says(answer(b"{}")), script)
