"""A POST that may have reached its server is not sent a second time, wherever the server closes; for both transports.

The servers are real sockets that write down what reached them. A kept connection that was closed before anything was
sent on it is replaced, so that no caller notices it.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, get_args

import pytest
import trustme
import uvloop

from support.gateway.http_client import ask, request_of
from support.gateway.served_gateway import gateway
from support.hostile.hostile_upstream import GOOD
from support.upstream.closing_server import Close, ClosingServer, Exchange, closing_server
from support.upstream.raw_server import RawServer, answer, listening
from toolglot import ProviderError
from toolglot.upstream import HttpRequest, HttpTransport, TimeLimits, Transport
from toolglot.upstream.http.aiohttp_transport import AiohttpTransport
from toolglot.upstream.http.direct_http import reuse_seconds

LIMITS = TimeLimits(connect=60.0, first_byte=60.0, idle=60.0, keep_alive=60.0)
TRANSPORTS = [HttpTransport, AiohttpTransport]
LOST: list[Close] = [close for close in get_args(Close) if close not in ("", "after_answer")]
"""Where a server closes after some of the request has reached it."""
LARGE = b"x" * 3_000_000
"""More than the buffers of a connection hold, so that it is sent in steps."""

Made = Callable[..., Transport]


@asynccontextmanager
async def opened(make: Made) -> AsyncIterator[Transport]:
    transport = make(environ={})
    try:
        async with asyncio.timeout(120):
            yield transport
    finally:
        await transport.close()


async def body_of(transport: Transport, server: ClosingServer, method: str = "POST", body: bytes = b"{}") -> bytes:
    answer = await transport.send(HttpRequest(url=f"{server.url}/v1", body=body, method=method, name="it"), LIMITS)
    try:
        return await answer.whole(100_000)
    finally:
        await answer.close()


def posts(server: ClosingServer) -> int:
    return sum(head.startswith(b"POST") for head in server.heads)


@pytest.mark.parametrize("is_reset", [False, True])
@pytest.mark.parametrize("make", TRANSPORTS)
def test_a_kept_connection_that_was_closed_before_the_request_is_replaced(make: Made, is_reset: bool) -> None:
    async def steps(server: ClosingServer) -> None:
        async with opened(make) as transport:
            assert await body_of(transport, server) == b"{}"
            server.wait_closed()  # the loop stands still: it cannot have seen the end of the connection
            assert await body_of(transport, server) == b"{}"

    with closing_server([Exchange("after_answer", is_reset=is_reset), Exchange()]) as server:
        asyncio.run(steps(server))
        assert (posts(server), server.connections) == (2, 2)


@pytest.mark.parametrize("make", TRANSPORTS)
def test_several_kept_connections_that_were_closed_are_all_passed_over(make: Made) -> None:
    async def steps(server: ClosingServer) -> None:
        async with opened(make) as transport:
            await asyncio.gather(*(body_of(transport, server) for _ in range(3)))
            for _ in range(server.connections):
                server.wait_closed()
            assert await body_of(transport, server) == b"{}"

    with closing_server([*[Exchange("after_answer")] * 3, Exchange()]) as server:
        asyncio.run(steps(server))
        assert posts(server) == 4


@pytest.mark.parametrize("is_reset", [False, True])
@pytest.mark.parametrize("size", [2, len(LARGE)])
@pytest.mark.parametrize("close", LOST)
@pytest.mark.parametrize("make", TRANSPORTS)
def test_a_post_on_a_kept_connection_is_not_sent_twice(make: Made, close: Close, size: int, is_reset: bool) -> None:
    async def steps(server: ClosingServer) -> ProviderError:
        async with opened(make) as transport:
            assert await body_of(transport, server) == b"{}"
            with pytest.raises(ProviderError) as raised:
                await body_of(transport, server, body=LARGE[:size])
            return raised.value

    with closing_server([Exchange(), Exchange(close, is_reset=is_reset), Exchange()]) as server:
        error = asyncio.run(steps(server))
        assert (posts(server), server.connections) == (2, 1), "the first request, and the second one once"
    assert (error.failure.kind, error.failure.retryable) == ("server", True)
    if close == "after_body":
        assert "closed an idle connection just as the request was sent" in error.failure.message
        assert "keep_alive_seconds" in error.failure.message


@pytest.mark.parametrize("close", LOST)
@pytest.mark.parametrize("make", TRANSPORTS)
def test_a_post_on_a_new_connection_is_not_sent_twice(make: Made, close: Close) -> None:
    async def steps(server: ClosingServer) -> None:
        async with opened(make) as transport:
            with pytest.raises(ProviderError):
                await body_of(transport, server, body=LARGE)

    with closing_server([Exchange(close), Exchange()]) as server:
        asyncio.run(steps(server))
        assert (posts(server), server.connections) == (1, 1)


@pytest.mark.parametrize("make", TRANSPORTS)
def test_what_may_be_repeated_is_sent_again_when_a_kept_connection_closes(make: Made) -> None:
    async def steps(server: ClosingServer) -> None:
        async with opened(make) as transport:
            assert await body_of(transport, server, "GET", b"") == b"{}"
            assert await body_of(transport, server, "GET", b"") == b"{}"

    with closing_server([Exchange(), Exchange("after_body"), Exchange()]) as server:
        asyncio.run(steps(server))
        assert (len(server.heads), server.connections) == (3, 2)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("make", TRANSPORTS)
def test_a_connection_with_tls_that_is_well_is_used_again(make: Made, run: Callable[..., None]) -> None:
    """What TLS itself sends after its handshake is not taken for the end of the connection."""
    authority = trustme.CA()
    context, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(trusting)

    async def handler(server: RawServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await server.next_request(reader)
            writer.write(answer())
            await writer.drain()

    async def steps() -> None:
        async with listening(handler, context) as server, opened(partial(make, tls=trusting)) as transport:
            for _ in range(3):
                got = await transport.send(HttpRequest(url=f"https://127.0.0.1:{server.port}/", body=b"{}"), LIMITS)
                assert await got.whole(10) == b"{}"
                await got.close()
            assert (len(server.requests), server.connections) == (3, 1)

    run(steps())


# --- how long a connection is kept ------------------------------------------------------------------


@pytest.mark.parametrize("make", TRANSPORTS)
def test_a_connection_that_was_idle_for_longer_than_its_limit_is_not_used_again(make: Made) -> None:
    limits = TimeLimits(connect=60.0, first_byte=60.0, idle=60.0, keep_alive=1e-9)

    async def steps(server: ClosingServer) -> None:
        async with opened(make) as transport:
            for _ in range(2):
                answer = await transport.send(HttpRequest(url=server.url, body=b"{}"), limits)
                await answer.whole(10)
                await answer.close()

    with closing_server([Exchange()]) as server:
        asyncio.run(steps(server))
        assert (posts(server), server.connections) == (2, 2)


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("", 30.0),
        ("timeout=5", 4.0),
        ("timeout=5, max=100", 4.0),
        ("max=100, Timeout=72", 30.0),
        ("timeout=1", 0.0),
        ("timeout=0", -1.0),
        ("timeout=soon", 30.0),
        ("timeout=-5", 30.0),
    ],
)
def test_a_server_that_says_how_long_it_waits_is_believed(message: str, seconds: float) -> None:
    limits = TimeLimits(keep_alive=30.0)
    assert reuse_seconds(limits, {"keep-alive": message} if message else {}) == seconds


def test_a_connection_is_not_kept_where_its_server_closes_it_at_once() -> None:
    answered = b"HTTP/1.1 200 OK\r\nkeep-alive: timeout=1\r\ncontent-length: 2\r\n\r\n{}"

    async def steps(server: ClosingServer) -> None:
        async with opened(HttpTransport) as transport:
            for _ in range(2):
                await body_of(transport, server)

    with closing_server([Exchange(answer=answered)]) as server:
        asyncio.run(steps(server))
        assert server.connections == 2


def test_a_server_that_closes_connections_sooner_than_expected_is_left_sooner() -> None:
    """The first time it may cost a request; from then on its connections are not used for so long."""

    async def steps(server: ClosingServer) -> None:
        async with opened(HttpTransport) as transport:
            await body_of(transport, server)
            with pytest.raises(ProviderError):
                await body_of(transport, server)
            for _ in range(3):
                await body_of(transport, server)

    with closing_server([Exchange(), Exchange("after_body"), Exchange()]) as server:
        asyncio.run(steps(server))
        assert (posts(server), server.connections) == (5, 4), "it was idle for no time at all: none is kept for long"


# --- through the gateway ----------------------------------------------------------------------------

UPSTREAM = '[upstreams.box]\nurl = "{url}/v1"\nkeep_alive_seconds = 60\nretry_seconds = 1\nretries = {retries}\n'
_GOOD = json.dumps(GOOD).encode()
WELL = Exchange(answer=b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(_GOOD), _GOOD))


def served_by(server: ClosingServer, retries: int) -> Any:
    return gateway(None, upstreams=UPSTREAM.format(url=server.url, retries=retries))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("close", ["after_head", "after_body", "half_head"])
def test_the_gateway_sends_a_request_once_where_it_has_no_retries(close: Close, stream: bool) -> None:
    path, body = request_of("anthropic", "box/m", stream=stream)
    with closing_server([WELL, WELL._replace(close=close), WELL]) as server, served_by(server, 0) as served:
        assert ask(served, *request_of("anthropic", "box/m")).status == 200
        got = ask(served, path, body)
        assert (got.status, posts(server)) == (502, 2)
        assert ask(served, path, body).status == 200, "and the next one is sent over a connection of its own"


def test_the_gateway_sends_a_request_again_as_often_as_it_may() -> None:
    path, body = request_of("anthropic", "box/m")
    with closing_server([WELL, WELL._replace(close="after_body"), WELL]) as server, served_by(server, 1) as served:
        assert ask(served, path, body).status == 200
        assert (ask(served, path, body).status, posts(server)) == (200, 3)


def test_a_connection_that_the_provider_closed_meanwhile_costs_no_client_an_error() -> None:
    path, body = request_of("anthropic", "box/m")
    with closing_server([WELL._replace(close="after_answer")]) as server, served_by(server, 0) as served:
        for _ in range(5):
            assert ask(served, path, body).status == 200
            server.wait_closed()
        assert (posts(server), server.connections) == (5, 5)
