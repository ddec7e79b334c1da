"""MCP servers that start anew while calls come, and lists of tools that are too long to be looked at."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCResponse

from mcp_servers.serving import PATIENCE, ask, hostile, over_stdio, until
from support.sessions.scheduled_tools import call
from toolglot.runtime.mcp.lists import limit_tool_lists
from toolglot.runtime.mcp.servers import McpLimits, McpServer
from toolglot.runtime.scheduler.scheduler import Scheduler
from toolglot.runtime.tools.toolbox import ToolBox, ToolError


async def killed(server: McpServer, box: ToolBox) -> Scheduler:
    """The server is gone; what comes back runs its `echo` for a moment only."""
    with pytest.raises(ToolError):
        await ask(box, "die")
    assert not server.is_open
    echo = box.find("echo")
    assert echo is not None
    return Scheduler(ToolBox([replace(echo, timeout=0.01)]))


async def test_a_call_that_runs_out_of_time_while_its_server_starts_was_never_started_and_the_start_goes_on() -> None:
    server = over_stdio()
    async with asyncio.timeout(PATIENCE), server as box:
        running = await killed(server, box)
        for number in range(2):
            (result,) = await running.run([call(f"c{number}", "echo", text="early")])
            assert result.is_error
            assert result.text.startswith("The MCP server 'kinds' was still starting after 0.01 seconds.")
            assert "never started: nothing was done" in result.text
        await until(lambda: server.is_open)
        assert (await ask(box, "echo", text="again")).content == "again"


async def test_a_call_that_is_cancelled_while_its_server_starts_leaves_the_start_alone() -> None:
    server = over_stdio()
    async with asyncio.timeout(PATIENCE), server as box:
        await killed(server, box)
        gone, stays = (asyncio.create_task(ask(box, "echo", text="again")) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        assert (await stays).content == "again"
        assert gone.cancelled()


async def test_a_server_that_is_closed_while_it_starts_fails_its_waiters() -> None:
    server = over_stdio()
    async with asyncio.timeout(PATIENCE), server as box:
        await killed(server, box)
        waiting = asyncio.create_task(ask(box, "echo", text="again"))
        await asyncio.sleep(0)
        await server.close()
        with pytest.raises(ToolError, match=r"was closed while it started\. The tool was never started"):
            await waiting
        assert not server.is_open


async def test_opening_that_is_cancelled_ends_what_was_started() -> None:
    server = hostile("deaf", limits=McpLimits(stop=0.05))
    opening = asyncio.create_task(server.open())
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not server.is_open
    assert len(asyncio.all_tasks()) == 1


@contextlib.asynccontextmanager
async def saying(*messages: Any) -> AsyncIterator[tuple[Any, Any]]:
    send, receive = anyio.create_memory_object_stream[Any](len(messages))
    with send, receive:
        for message in messages:
            send.send_nowait(message)
        send.close()
        yield receive, None


def listed(count: int) -> SessionMessage:
    tools = [{"name": f"t{number}"} for number in range(count)]
    return SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=7, result={"tools": tools}))


async def test_a_list_that_is_too_long_is_an_error_before_anybody_looks_at_the_tools() -> None:
    short, long, other = listed(2), listed(3), ValueError("no message")
    async with limit_tool_lists(saying(long, short, long, other), McpLimits(max_tools=2)) as (incoming, _):
        first = await incoming.receive()
        async with incoming:
            came = [message async for message in incoming]
        await incoming.aclose()
        assert incoming.last_context is None
    assert came[0] is short
    assert came[2] is other
    for refusal in (first, came[1]):
        assert isinstance(refusal.message, JSONRPCError)
        assert (refusal.message.id, refusal.message.error.message) == (7, "it has more than 2 tools")
