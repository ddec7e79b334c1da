"""HTTP as servers really speak it, from one that does with each connection what the test says."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import re
import socket
import ssl
import subprocess
import sys
from asyncio import StreamReader as Reader
from asyncio import StreamWriter as Writer
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import trustme

import toolglot.upstream
from support.upstream.raw_server import STREAM, Came, RawServer, answer, chunk, listening
from toolglot import InputError, ProviderError
from toolglot.upstream import HttpRequest, HttpTransport, TimeLimits
from toolglot.upstream.http.transport import REFUSED, UNKNOWN_HOST

LIMITS = TimeLimits(connect=60.0, first_byte=60.0, idle=60.0)
BOUND = 120.0
Handler = Callable[[RawServer, Reader, Writer], Awaitable[None]]
Script = Callable[[HttpTransport, RawServer], Awaitable[None]]


@contextlib.asynccontextmanager
async def opened(**options: Any) -> AsyncIterator[HttpTransport]:
    transport = HttpTransport(**{"environ": {}, **options})
    try:
        async with asyncio.timeout(120):
            yield transport
    finally:
        await transport.close()


def play(handler: Handler, script: Script) -> None:
    async def steps() -> None:
        async with listening(handler) as server, opened() as transport:
            await script(transport, server)

    asyncio.run(steps())


async def failure_of(reading: Awaitable[Any]) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        await reading
    return raised.value


def says(*data: bytes) -> Handler:
    """A server that answers every request on a connection with the same bytes."""

    async def handler(server: RawServer, reader: Reader, writer: Writer) -> None:
        while True:
            await server.next_request(reader)
            for piece in data:
                writer.write(piece)
                await writer.drain()

    return handler


# --- connecting -------------------------------------------------------------------------------------


def test_a_refused_connection_is_a_provider_that_cannot_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]

    async def steps() -> None:
        async with opened() as transport:
            ask = HttpRequest(
                url=f"http://127.0.0.1:{port}/v1?key=sk-secret", headers={"x-api-key": "sk-secret"}, name="work"
            )
            error = await failure_of(transport.send(ask, LIMITS))
            assert error.failure.kind == "unreachable"
            message = f"work (127.0.0.1:{port}) cannot be reached: {REFUSED}"
            assert error.failure.message == message
            assert error.__cause__ is None
            assert "secret" not in repr(error)

    asyncio.run(steps())


def test_a_host_that_is_not_known_is_reported_as_such() -> None:
    async def steps() -> None:
        async with opened() as transport:
            error = await failure_of(transport.send(HttpRequest(url="http://no-such-host.invalid/"), LIMITS))
            assert error.failure.kind == "unreachable"
            assert error.failure.message == f"no-such-host.invalid cannot be reached: {UNKNOWN_HOST}"

    asyncio.run(steps())


def test_a_connection_that_does_not_come_about_is_a_timeout() -> None:
    """A listener whose queue is full takes no more connections and refuses none."""

    async def steps() -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen(0)
            address = listener.getsockname()
            waiting = [socket.socket() for _ in range(4)]
            for queued in waiting:
                queued.setblocking(False)
                queued.connect_ex(address)
            async with opened() as transport:
                url = f"http://127.0.0.1:{address[1]}/"
                error = await failure_of(transport.send(HttpRequest(url=url), TimeLimits(0.2, 60.0, 60.0)))
                assert error.failure.kind == "timeout"
                assert "could not be connected to within 0.2 s; check its url" in error.failure.message
            for queued in waiting:
                queued.close()

    asyncio.run(steps())


def test_a_server_that_takes_no_bytes_is_a_timeout() -> None:
    async def handler(server: RawServer, reader: Reader, writer: Writer) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.Event().wait()

    async def script(transport: HttpTransport, server: RawServer) -> None:
        ask = HttpRequest(url=server.url, body=b"x" * 30_000_000)
        error = await failure_of(transport.send(ask, TimeLimits(0.1, 0.1, 60.0)))
        assert error.failure.kind == "timeout"

    play(handler, script)


# --- answers ----------------------------------------------------------------------------------------


def test_a_connection_that_ends_without_an_answer_is_reported_as_such() -> None:
    async def handler(server: RawServer, reader: Reader, writer: Writer) -> None:
        await server.next_request(reader)

    async def script(transport: HttpTransport, server: RawServer) -> None:
        error = await failure_of(transport.send(HttpRequest(url=server.url), LIMITS))
        assert error.failure.kind == "server"
        assert "closed the connection without a response" in error.failure.message
        assert server.connections == 1

    play(handler, script)


def test_a_reset_in_the_middle_is_reported_as_such() -> None:
    async def aborting(server: RawServer, reader: Reader, writer: Writer) -> None:
        await server.next_request(reader)
        writer.write(STREAM + chunk(b"first"))
        await writer.drain()
        go_on = going[0]
        await go_on.wait()
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        writer.transport.abort()

    going: list[asyncio.Event] = []

    async def script(transport: HttpTransport, server: RawServer) -> None:
        going.append(asyncio.Event())
        reading = await transport.send(HttpRequest(url=server.url), LIMITS)
        pieces = reading.pieces()
        assert await anext(pieces) == b"first"
        going[0].set()
        error = await failure_of(anext(pieces))
        assert error.failure.kind == "server"
        assert "closed the connection in the middle of its response" in error.failure.message

    play(aborting, script)


@pytest.mark.parametrize(
    "body", [STREAM + b"zz\r\nfirst", STREAM + b"5\r\nfirst"[:-2], answer(b"x" * 10).removesuffix(b"x")]
)
def test_a_damaged_body_is_an_answer_that_broke_off(body: bytes) -> None:
    async def handler(server: RawServer, reader: Reader, writer: Writer) -> None:
        await server.next_request(reader)
        writer.write(body)
        await writer.drain()

    async def script(transport: HttpTransport, server: RawServer) -> None:
        async def read() -> None:
            await (await transport.send(HttpRequest(url=server.url), LIMITS)).whole(100)

        assert (await failure_of(read())).failure.kind == "server"

    play(handler, script)


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nx-large: " + b"x" * 200_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
    ],
)
def test_what_is_not_http_or_too_large_is_reported_without_its_words(data: bytes) -> None:
    async def script(transport: HttpTransport, server: RawServer) -> None:
        error = await failure_of(transport.send(HttpRequest(url=server.url), LIMITS))
        assert error.failure.kind == "server"
        is_large = len(data) > 100_000
        assert ("sent headers of more than" in error.failure.message) == is_large
        assert error.failure.message.endswith("sent a response that is not HTTP") != is_large
        assert "x" * 9 not in error.failure.message

    play(says(data), script)


def test_large_headers_are_taken_up_to_a_bound() -> None:
    async def script(transport: HttpTransport, server: RawServer) -> None:
        reading = await transport.send(HttpRequest(url=server.url), LIMITS)
        assert len(reading.headers["x-large"]) == 20_000
        await reading.close()

    play(says(answer(b"{}", b"X-Large: " + b"x" * 20_000)), script)


def test_a_compressed_body_is_decompressed() -> None:
    body = b'{"a": 1}' * 1000
    packed = gzip.compress(body)

    async def script(transport: HttpTransport, server: RawServer) -> None:
        reading = await transport.send(HttpRequest(url=server.url), LIMITS)
        assert await reading.whole(len(body)) == body
        assert "gzip" in server.requests[0].headers["accept-encoding"]
        bomb = await transport.send(HttpRequest(url=server.url), LIMITS)
        assert "more than 7000 bytes" in str(await failure_of(bomb.whole(7000)))

    play(says(answer(packed, b"content-encoding: gzip")), script)


def test_what_only_claims_to_be_compressed_is_an_answer_that_broke_off() -> None:
    async def script(transport: HttpTransport, server: RawServer) -> None:
        reading = await transport.send(HttpRequest(url=server.url), LIMITS)
        assert (await failure_of(reading.whole(100))).failure.kind == "server"

    play(says(answer(b"not gzip at all", b"content-encoding: gzip")), script)


def test_a_page_of_a_balancer_is_an_answer_like_any_other() -> None:
    page = b"<html><body><h1>502 Bad Gateway</h1></body></html>"

    async def script(transport: HttpTransport, server: RawServer) -> None:
        reading = await transport.send(HttpRequest(url=server.url), LIMITS)
        assert reading.status == 502
        assert await reading.whole(1000) == page

    play(says(answer(page, b"retry-after: 3", status=b"502 Bad Gateway")), script)


def test_cookies_are_not_kept() -> None:
    async def script(transport: HttpTransport, server: RawServer) -> None:
        for _ in range(2):
            reading = await transport.send(HttpRequest(url=server.url), LIMITS)
            await reading.whole(100)
        assert "cookie" not in server.requests[1].headers

    play(says(answer(b"{}", b"set-cookie: session=1; path=/")), script)


def test_an_address_goes_out_as_it_was_written() -> None:
    path = "/model/arn%3Aaws%3Abedrock%2Fx/converse?a=%20b&c=%2F"

    async def script(transport: HttpTransport, server: RawServer) -> None:
        await (await transport.send(HttpRequest(url=server.url + path, method="GET"), LIMITS)).whole(100)
        assert server.requests[0].line == f"GET {path} HTTP/1.1"

    play(says(answer()), script)


@pytest.mark.parametrize(
    "ask",
    [
        HttpRequest(url="http://127.0.0.1:1/", headers={"x-api-key": "sk-secret\r\nx-other: 1"}),
        HttpRequest(url="http:///nowhere?key=sk-secret"),
        HttpRequest(url="http://127.0.0.1:99999/?key=sk-secret"),
    ],
)
def test_what_cannot_be_sent_is_the_callers_mistake_and_quotes_no_key(ask: HttpRequest) -> None:
    async def script(transport: HttpTransport, server: RawServer) -> None:
        with pytest.raises(InputError) as refused:
            await transport.send(HttpRequest(url=server.url, headers=ask.headers) if ask.headers else ask, LIMITS)
        assert "secret" not in str(refused.value)

    play(says(answer()), script)


@pytest.mark.parametrize(
    "limits", [(0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, float("inf")), (1.0, 1.0, float("nan"))]
)
def test_a_time_limit_is_some_seconds(limits: tuple[float, float, float]) -> None:
    with pytest.raises(InputError, match="seconds"):
        TimeLimits(*limits)


def test_a_proxy_of_the_environment_that_is_none_is_the_callers_mistake() -> None:
    async def steps() -> None:
        async with opened(environ={"HTTPS_PROXY": "socks5://host"}) as transport:
            with pytest.raises(InputError) as refused:
                await transport.send(HttpRequest(url="https://provider.test/"), LIMITS)
            assert refused.value.path == "HTTPS_PROXY"

    asyncio.run(steps())


def test_a_request_shows_neither_its_headers_nor_its_query() -> None:
    ask = HttpRequest(
        url="https://host:1/v1?key=sk-secret", headers={"authorization": "Bearer sk-secret"}, body=b"sk-secret"
    )
    assert repr(ask) == "HttpRequest(POST host:1, 9 bytes)"
    assert "secret" not in str(ask) + str(ask.__rich_repr__()) + ask.recipient


# --- connections ------------------------------------------------------------------------------------


def test_two_requests_use_one_connection() -> None:
    async def script(transport: HttpTransport, server: RawServer) -> None:
        for _ in range(2):
            reading = await transport.send(HttpRequest(url=server.url), LIMITS)
            assert b"".join([piece async for piece in reading.pieces()]) == b"firstsecond"
            await reading.close()
        assert (server.connections, len(server.requests)) == (1, 2)

    play(says(STREAM, chunk(b"first"), chunk(b"second") + b"0\r\n\r\n"), script)


def test_closing_an_unread_stream_ends_the_connection_at_once() -> None:
    ended: list[asyncio.Event] = []

    async def handler(server: RawServer, reader: Reader, writer: Writer) -> None:
        await server.next_request(reader)
        writer.write(STREAM + chunk(b"first"))
        assert await reader.read(1) == b""
        ended[0].set()

    async def script(transport: HttpTransport, server: RawServer) -> None:
        ended.append(asyncio.Event())
        reading = await transport.send(HttpRequest(url=server.url), LIMITS)
        assert await anext(reading.pieces()) == b"first"
        await reading.close()
        await asyncio.wait_for(ended[0].wait(), BOUND)

    play(handler, script)


def test_closing_an_unread_stream_ends_a_tls_connection_at_once() -> None:
    authority = trustme.CA()
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def steps() -> None:
        ended = asyncio.Event()

        async def handler(server: RawServer, reader: Reader, writer: Writer) -> None:
            await server.next_request(reader)
            writer.write(STREAM + chunk(b"first"))
            try:
                assert await reader.read(1) == b""
            finally:
                ended.set()

        async with listening(handler, tls_of(authority, "127.0.0.1")) as server, opened(tls=trusting) as transport:
            reading = await transport.send(HttpRequest(url=f"https://127.0.0.1:{server.port}/"), LIMITS)
            assert await anext(reading.pieces()) == b"first"
            await reading.close()
            await asyncio.wait_for(ended.wait(), BOUND)

    asyncio.run(steps())


# --- TLS --------------------------------------------------------------------------------------------


def tls_of(authority: trustme.CA, host: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    return context


async def greets(server: RawServer, reader: Reader, writer: Writer) -> None:
    await server.next_request(reader)
    writer.write(answer(b"hello"))
    await writer.drain()


@pytest.mark.parametrize(("host", "words"), [("127.0.0.1", "self-signed|issuer"), ("other.example", "mismatch")])
def test_a_certificate_that_is_not_trusted_is_reported_with_its_reason(host: str, words: str) -> None:
    authority = trustme.CA()
    trusting = ssl.create_default_context()
    if host != "127.0.0.1":
        authority.configure_trust(trusting)

    async def steps() -> None:
        async with listening(greets, tls_of(authority, host)) as server, opened(tls=trusting) as transport:
            error = await failure_of(transport.send(HttpRequest(url=f"https://127.0.0.1:{server.port}/"), LIMITS))
            assert error.failure.kind == "unreachable"
            assert "its TLS certificate is not trusted" in error.failure.message
            assert re.search(words, error.failure.message)

    asyncio.run(steps())


def test_a_server_without_tls_is_reported_as_such() -> None:
    async def script(transport: HttpTransport, server: RawServer) -> None:
        url = server.url.replace("http", "https")
        error = await failure_of(transport.send(HttpRequest(url=url), LIMITS))
        assert error.failure.kind == "unreachable"
        assert "cannot be reached: TLS failed: " in error.failure.message

    async def handler(server: RawServer, reader: Reader, writer: Writer) -> None:
        await reader.readexactly(1)
        writer.write(answer())
        await writer.drain()

    play(handler, script)


# --- proxies ----------------------------------------------------------------------------------------


class Proxy:
    """A proxy that knows one host, whatever its name, and wants a password if it has one."""

    def __init__(self, password: str = "") -> None:
        self.upstream = 0
        self.password = password
        self.seen: list[Came] = []

    async def __call__(self, server: RawServer, reader: Reader, writer: Writer) -> None:
        came = await server.next_request(reader)
        self.seen.append(came)
        if self.password and self.password not in came.headers.get("proxy-authorization", ""):
            writer.write(answer(b"", status=b"407 Proxy Authentication Required"))
            await writer.drain()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self.upstream)
        if came.line.startswith("CONNECT"):
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            method, address, version = came.line.split(" ")
            path = address.removeprefix(f"http://{came.headers['host']}") or "/"
            back.write(f"{method} {path} {version}\r\nhost: {came.headers['host']}\r\n\r\n".encode() + came.body)
        await asyncio.gather(self.carry(reader, back), self.carry(there, writer))

    @staticmethod
    async def carry(reader: Reader, writer: Writer) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


BASIC = "dXNlcjpwYXNz"
"""user:pass"""


def test_a_proxy_of_the_environment_carries_http_and_https() -> None:
    authority = trustme.CA()
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def steps() -> None:
        proxy = Proxy(BASIC)
        secured = tls_of(authority, "provider.test")
        async with asyncio.timeout(120), listening(proxy) as relay:
            through = f"http://user:pass@127.0.0.1:{relay.port}"
            environ = {"https_proxy": through, "HTTP_PROXY": through, "NO_PROXY": "other.test"}
            for scheme, tls in (("http", None), ("https", secured)):
                async with listening(greets, tls) as server:
                    proxy.upstream = server.port
                    async with opened(environ=environ, tls=trusting) as transport:
                        reading = await transport.send(
                            HttpRequest(url=f"{scheme}://provider.test/v1", body=b"{}"), LIMITS
                        )
                        assert await reading.whole(100) == b"hello"
            plain, tunnel = proxy.seen
            assert plain.line == "POST http://provider.test/v1 HTTP/1.1"
            assert tunnel.line.startswith("CONNECT provider.test:443 ")
            assert BASIC in plain.headers["proxy-authorization"]

    asyncio.run(steps())


def test_no_proxy_and_loopback_go_there_directly() -> None:
    async def steps() -> None:
        proxy = Proxy()
        async with asyncio.timeout(120), listening(proxy) as relay, listening(greets) as server:
            through = f"http://127.0.0.1:{relay.port}"
            proxy.upstream = server.port
            async with opened(environ={"ALL_PROXY": through, "NO_PROXY": ".invalid"}) as transport:
                assert await (await transport.send(HttpRequest(url=server.url), LIMITS)).whole(100) == b"hello"
                error = await failure_of(transport.send(HttpRequest(url="http://provider.invalid/"), LIMITS))
                assert "its host is not known" in error.failure.message
                assert proxy.seen == []
            async with opened(proxy=through, environ={"NO_PROXY": "*"}) as named:
                assert await (await named.send(HttpRequest(url=server.url), LIMITS)).whole(100) == b"hello"
                assert len(proxy.seen) == 1

    asyncio.run(steps())


def test_a_proxy_that_refuses_or_is_not_there_is_reported_without_its_password() -> None:
    async def refused(port: int) -> str:
        async with opened(proxy=f"http://user:s3cret@127.0.0.1:{port}") as transport:
            error = await failure_of(transport.send(HttpRequest(url="https://provider.test/"), LIMITS))
            assert error.failure.kind == "unreachable"
            return error.failure.message

    async def steps() -> None:
        async with listening(Proxy("never")) as relay:
            assert f"the proxy 127.0.0.1:{relay.port} responded with status 407; check its" in await refused(relay.port)
        assert f"no connection to the proxy 127.0.0.1:{relay.port}; check the" in await refused(relay.port)

    asyncio.run(steps())


# --- the extra --------------------------------------------------------------------------------------


def test_without_aiohttp_the_rest_works_and_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['aiohttp'] = None\n"
        "import toolglot.upstream as upstream\n"
        "upstream.AsgiTransport(None)\n"
        "try: upstream.HttpTransport\n"
        "except upstream.InputError as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "pip install '.[gateway]' in a clone of toolglot" in ran.stdout


def test_the_http_transport_is_imported_when_it_is_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(vars(toolglot.upstream), "HttpTransport", raising=False)
    assert toolglot.upstream.HttpTransport is HttpTransport
    monkeypatch.delitem(vars(toolglot.upstream), "HttpTransport")
    monkeypatch.setitem(sys.modules, "toolglot.upstream.http.http_transport", None)
    with pytest.raises(InputError, match="aiohttp"):
        _ = toolglot.upstream.HttpTransport


def test_the_package_has_no_other_names() -> None:
    assert all(getattr(toolglot.upstream, name) is not None for name in toolglot.upstream.__all__)
    assert not hasattr(toolglot.upstream, "nonsense")
