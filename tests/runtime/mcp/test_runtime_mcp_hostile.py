"""MCP servers that do what they must not: each is bounded, and what is reported of it is clear and holds no secret."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator

import pytest

from mcp_servers.serving import PATIENCE, ask, hostile, until
from toolglot.runtime.mcp import http as mcp_http
from toolglot.runtime.mcp.limits import McpLimits, McpServerError, reason_of, server_secrets
from toolglot.runtime.mcp.servers import McpServer
from toolglot.runtime.mcp.stdio import LineSplitter
from toolglot.runtime.tools.toolbox import ToolError

SECRET = "sk-a-key-that-stays-secret"  # noqa: S105
QUICK = McpLimits(start=60, stop=0.2)


def opened(server: McpServer) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE * 2), server:
            pass

    asyncio.run(main())


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("noise", "its standard output is not JSON-RPC"),
        ("many_tools", "it has more than 1000 tools"),
        ("endless_pages", "its list of tools has more than 100 pages"),
        ("no_list", "ValidationError"),
        ("exit", r"it ended|Connection closed"),
    ],
)
def test_a_server_that_cannot_be_used_does_not_open(kind: str, message: str) -> None:
    server = hostile(kind, env={"SECRET": SECRET}, limits=QUICK)
    with pytest.raises(McpServerError, match=rf"the MCP server 'hostile' failed: .*({message})") as raised:
        opened(server)
    assert SECRET not in str(raised.value)
    assert len(str(raised.value)) < 600
    assert not server.is_open


@pytest.mark.parametrize("kind", ["deaf", "slow_start"])
def test_a_server_that_does_not_answer_is_abandoned(kind: str) -> None:
    limits = McpLimits(start=0.5, stop=0.1)
    with pytest.raises(McpServerError, match=r"it did not list its tools within 0\.5 s"):
        opened(hostile(kind, limits=limits))


def test_what_a_server_wrote_last_is_in_the_error_without_secrets() -> None:
    with pytest.raises(McpServerError, match=r"its last error output: no key \*\*\*$"):
        opened(hostile("exit", env={"SECRET": SECRET}, limits=QUICK))


async def test_a_line_without_an_end_ends_the_server_and_the_call() -> None:
    server = hostile("endless_line", limits=McpLimits(max_message=1_000_000, stop=0.2))
    async with server as box:
        with pytest.raises(ToolError, match="it sent a message of more than 1000000 bytes while the call ran"):
            await ask(box, "ask")
        assert not server.is_open


async def test_a_definition_that_is_too_large_or_comes_twice_is_left_out_and_reported() -> None:
    giant = hostile("giant_schema", limits=QUICK)
    async with giant as box:
        assert [tool.name for tool in box] == ["small"]
        assert giant.problems == ("the tool 'giant' is left out: its definition has more than 200000 bytes",)
    twice = hostile("same_names", limits=QUICK)
    async with twice as box:
        assert [tool.name for tool in box] == ["one"]
        assert len(twice.problems) == 2


async def test_noise_before_the_first_message_and_much_of_it_on_the_standard_error_does_no_harm() -> None:
    server = hostile("chatty", limits=QUICK)
    async with server as box:
        assert (await ask(box, "ask")).content == "ok"
        await until(lambda: server.errors.endswith("last\n"))
        assert len(server.errors) == QUICK.max_errors


async def test_a_storm_of_changes_is_weathered() -> None:
    async with asyncio.timeout(PATIENCE), hostile("storm", limits=QUICK) as box:
        for _ in range(3):
            assert (await ask(box, "ask")).content == "ok"


async def test_a_list_that_breaks_later_is_reported_and_the_tools_stay() -> None:
    server = hostile("breaks", limits=QUICK)
    async with server as box:
        assert (await ask(box, "ask")).content == "ok"
        await until(lambda: bool(server.problems))
        assert server.problems[0].startswith("its tools changed, and cannot be listed: ValidationError")
        assert "ask" in box


async def test_a_server_that_no_longer_reads_is_over() -> None:
    async with asyncio.timeout(PATIENCE):
        server = hostile("hangs_up", limits=QUICK)
        async with server as box:
            calls = [asyncio.ensure_future(ask(box, "ask", text="x" * 1_000_000)) for _ in range(5)]
            replies = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(error, ToolError) for error in replies)


async def test_an_answer_that_is_none_is_an_error_and_the_server_stays() -> None:
    server = hostile("no_result", limits=QUICK)
    async with server as box:
        with pytest.raises(ToolError, match="'hostile' failed: its response is not the result of a tool"):
            await ask(box, "ask")
        assert server.is_open


async def test_a_refusal_is_reported_without_secrets() -> None:
    async with hostile("error_with_secret", env={"SECRET": SECRET}, limits=QUICK) as box:
        with pytest.raises(ToolError, match=r"'hostile' failed: it refused the call: bad key \*\*\*$"):
            await ask(box, "ask")


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(McpServerError, match="'/nowhere/at-all' cannot be started: No such file"):
        opened(McpServer.stdio("/nowhere/at-all"))
    with pytest.raises(McpServerError, match="cannot be started: embedded null byte"):
        opened(McpServer.stdio(sys.executable, ["\0"]))


# --- over HTTP --------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def answering(head: str, chunk: bytes, times: int) -> AsyncIterator[str]:
    """A server that answers everything with the same, which may be very long."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 200 OK\r\n{head}\r\nConnection: close\r\n\r\n".encode())
            for _ in range(times):
                writer.write(chunk)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


@pytest.mark.parametrize(
    ("head", "chunk", "message"),
    [
        ("Content-Type: application/json", b"x" * 65_536, "it sent a message of more than 1000000 bytes"),
        ("Content-Type: application/json\r\nContent-Encoding: gzip", b"\0" * 64, "it compresses its responses"),
        ("Content-Type: text/event-stream", b"data: " + b"x" * 65_536, "."),
        ("Content-Type: application/json", b'{"jsonrpc": "2.0"}', "."),
        ("Content-Type: text/html", b"<html>", "."),
    ],
)
async def test_an_answer_over_http_is_bounded(head: str, chunk: bytes, message: str) -> None:
    async with asyncio.timeout(PATIENCE), answering(head, chunk, 100_000 if len(chunk) > 99 else 1) as url:
        headers = {"Authorization": f"Bearer {SECRET}"}
        limits = McpLimits(max_message=1_000_000, start=10)
        server = McpServer.http(f"{url}?key={SECRET}", headers, limits=limits)
        with pytest.raises(McpServerError, match=f"'127.0.0.1' failed: .*{message}") as raised:
            await server.open()
        assert SECRET not in str(raised.value)
        assert SECRET not in repr(server) + repr(vars(server))


def test_the_body_of_an_answer_is_closed_with_its_bound() -> None:
    closed: list[bool] = []

    class Body:
        async def aclose(self) -> None:
            closed.append(True)

    asyncio.run(mcp_http._LimitedBody(Body(), 10).aclose())
    assert closed == [True]


# --- the pieces -------------------------------------------------------------------------------------


def test_lines_are_the_same_however_the_bytes_are_cut() -> None:
    data = b"one\n\ntwo two\nthree"
    for width in range(1, len(data)):
        splitter = LineSplitter(7)
        lines = [line for start in range(0, len(data), width) for line in splitter.feed(data[start : start + width])]
        assert lines == [b"one", b"", b"two two"]


@pytest.mark.parametrize("chunks", [[b"12345678\n"], [b"1234", b"5678"], [b"1\n12345678"]])
def test_a_line_that_is_too_long_is_refused(chunks: list[bytes]) -> None:
    splitter = LineSplitter(7)
    with pytest.raises(McpServerError, match="more than 7 bytes"):
        [line for chunk in chunks for line in splitter.feed(chunk)]


def test_secrets_are_masked_also_their_parts_and_short_values_are_none() -> None:
    secrets = server_secrets(["Bearer abcdefgh", "1", ""])
    assert secrets.mask("1: Bearer abcdefgh, then abcdefgh") == "1: ***, then ***"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            ExceptionGroup("all", [ExceptionGroup("some", [OSError("first\nsecond"), OSError("other")])]),
            "OSError: first",
        ),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_the_reason_of_a_group_is_its_first_error(error: BaseException, message: str) -> None:
    assert reason_of(error) == message
