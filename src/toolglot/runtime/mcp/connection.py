"""One connection to an MCP server: a task that owns the client, and a queue for calls.

    opening ── tools listed ──▶ open ── server ends, or close() ──▶ over
       └──────── fails, or takes too long ────────────────────────────┘

The cancel scopes of the client must be left by the task that entered them, so only that task uses the client. Callers
wait for a future: any task can call a tool, and cancelling the call makes the server stop that call only.

Law: every call gets a response or an error. None waits for a server that is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
import anyio.to_thread

from toolglot.errors import how_to_install
from toolglot.runtime.mcp.limits import McpLimits, McpServerError, reason_of
from toolglot.runtime.mcp.lists import limit_tool_lists, too_many_tools
from toolglot.runtime.mcp.stdio import Ending

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult
    from mcp.types import Tool as Listed

Handshake = Literal["auto", "legacy"]
"""`auto`: the newest version that the server knows. `legacy`: `initialize` at once, for servers that fail otherwise."""

Transport = contextlib.AbstractAsyncContextManager[tuple[Any, Any]]
Progress = Callable[[str], None]

PROGRESS_CHARACTERS: Final = 500
_LOST: Final = ("session terminated", "session not found")
"""The errors of a restarted server for a session that it no longer has."""


@dataclass(eq=False)
class _PendingCall:
    name: str
    arguments: dict[str, Any]
    progress: Progress
    answer: asyncio.Future[CallToolResult]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class McpConnection:
    """A client that connects once. It is never reopened."""

    def __init__(
        self,
        transport: Callable[[Ending], Transport],
        limits: McpLimits,
        *,
        handshake: Handshake,
        on_tools: Callable[[list[Listed]], None],
        on_problem: Callable[[str], None],
    ) -> None:
        self.ending: Ending = Ending(limits)
        self.instructions: str = ""
        self._transport = transport
        self._limits = limits
        self._handshake = handshake
        self._on_tools = on_tools
        self._on_problem = on_problem
        self._scope = anyio.CancelScope()
        self._tools_changed = anyio.Event()
        self._calls: set[_PendingCall] = set()
        self._send, self._receive = anyio.create_memory_object_stream[_PendingCall](math.inf)
        self._ready: asyncio.Future[list[Listed]] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        return self._task is not None and not self._task.done() and not self.ending.over.is_set()

    async def open(self) -> list[Listed]:
        """Connect, and list the tools."""
        try:
            # The import takes a second. Do not block the event loop.
            await anyio.to_thread.run_sync(importlib.import_module, "mcp")
            self._task = asyncio.create_task(self._run())
            async with asyncio.timeout(self._limits.start):
                return await asyncio.shield(self._ready)
        except ImportError:
            await self.close()
            raise McpServerError(f"the package `mcp` is not installed: {how_to_install('mcp')}") from None
        except TimeoutError:
            await self.close()
            raise McpServerError(f"it did not list its tools within {self._limits.start:g} s") from None
        except asyncio.CancelledError:
            await self.close()
            raise

    async def call(self, name: str, arguments: dict[str, Any], progress: Progress) -> CallToolResult:
        """Run a tool of the server. Cancelling this cancels the call there and nothing else."""
        call = _PendingCall(name, arguments, progress, asyncio.get_running_loop().create_future())
        if not self.is_open:
            raise McpServerError(self.end_reason)
        self._calls.add(call)
        self._send.send_nowait(call)
        try:
            return await call.answer
        finally:
            call.scope.cancel()

    async def close(self) -> None:
        """End the connection and its calls. The server is gone when this returns."""
        self.ending.end("it was closed")
        self._scope.cancel()
        if self._task is None:
            self._end_all()
        else:
            with anyio.CancelScope(shield=True):
                await asyncio.wait([self._task])
        self._ready.exception()  # otherwise asyncio would print an unretrieved error

    @property
    def end_reason(self) -> str:
        return self.ending.reason or "it ended"

    @property
    def _interruption(self) -> str:
        return f"{self.end_reason} while the call ran; whether the tool did its work is not known"

    # --- inside the task ----------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            with self._scope:
                await self._run_client()
        except Exception as error:  # noqa: BLE001 - whatever it was, the calls must end
            self.ending.end(reason_of(error))
        finally:
            self.ending.end("it ended")
            self._end_all()

    def _end_all(self) -> None:
        """End everything that waits for this connection."""
        self._send.close()
        self._receive.close()
        if not self._ready.done():
            self._ready.set_exception(McpServerError(self.end_reason))
        for call in self._calls:
            self._fail(call, self._interruption)
        self._calls.clear()

    async def _run_client(self) -> None:
        from mcp import Client  # noqa: PLC0415 - only when a server is used
        from mcp.types import Implementation  # noqa: PLC0415

        client = Client(
            limit_tool_lists(self._transport(self.ending), self._limits),
            mode=self._handshake,
            cache=None,
            message_handler=self._on_message,
            client_info=Implementation(name="toolglot", version="0"),
        )
        async with client:
            self.instructions = client.instructions or ""
            try:
                listed = await self._list_tools(client)
            except Exception as error:  # closing the client may raise another error, which would hide this one
                self.ending.end(reason_of(error))
                raise
            if not self._ready.done():
                self._ready.set_result(listed)
            async with anyio.create_task_group() as around:
                around.start_soon(self._watch_end)
                around.start_soon(self._relist, client)
                around.start_soon(self._listen, client)
                async with anyio.create_task_group() as calls:
                    async for call in self._receive:
                        calls.start_soon(self._answer, client, call)
                around.cancel_scope.cancel()

    async def _watch_end(self) -> None:
        """Accept no calls once the server is gone. The client ends those that run."""
        await self.ending.over.wait()
        self._send.close()

    async def _answer(self, client: Client, call: _PendingCall) -> None:
        from mcp import MCPError  # noqa: PLC0415
        from mcp.types import CONNECTION_CLOSED  # noqa: PLC0415

        try:
            with call.scope:
                self._deliver(call, await self._send_call(client, call))
        except MCPError as error:
            if error.code == CONNECTION_CLOSED or error.message.lower().startswith(_LOST):
                self.ending.end("it closed the connection")
                self._fail(call, self._interruption)
            else:
                self._fail(call, f"it refused the call: {error.message}")
        except ValueError:  # pydantic's: nothing here imports it
            self._fail(call, "its response is not the result of a tool")
        finally:
            if call.answer.done():  # otherwise the connection is ending, and ends the call
                self._calls.discard(call)

    async def _send_call(self, client: Client, call: _PendingCall) -> CallToolResult:
        from mcp.types import CallToolRequest, CallToolRequestParams, CallToolResult  # noqa: PLC0415

        async def report_progress(progress: float, total: float | None, message: str | None) -> None:
            call.progress(_progress_text(progress, total, message))

        # Not `call_tool`, which validates the response with a schema of the server, whose patterns could run for ever.
        params = CallToolRequestParams(name=call.name, arguments=call.arguments)
        return await client.session.send_request(
            CallToolRequest(params=params), CallToolResult, progress_callback=report_progress
        )

    def _deliver(self, call: _PendingCall, answer: CallToolResult) -> None:
        if not call.answer.done():
            call.answer.set_result(answer)

    def _fail(self, call: _PendingCall, reason: str) -> None:
        if not call.answer.done():
            call.answer.set_exception(McpServerError(reason))

    # --- the list of tools --------------------------------------------------------------------------

    async def _list_tools(self, client: Client) -> list[Listed]:
        """All tools, page by page."""
        found: list[Listed] = []
        async for page in self._pages(client):
            found += page
            if len(found) > self._limits.max_tools:
                raise McpServerError(too_many_tools(self._limits))
        return found

    async def _pages(self, client: Client) -> AsyncIterator[list[Listed]]:
        cursor: str | None = None
        for _ in range(self._limits.max_pages):
            page = await client.list_tools(cursor=cursor)
            yield page.tools
            cursor = page.next_cursor
            if cursor is None:
                return
        raise McpServerError(f"its list of tools has more than {self._limits.max_pages} pages")

    async def _on_message(self, message: object) -> None:
        from mcp.types import ToolListChangedNotification  # noqa: PLC0415

        if isinstance(message, ToolListChangedNotification):
            self._tools_changed.set()

    async def _listen(self, client: Client) -> None:
        """Subscribe to changes, which newer servers do not send otherwise."""
        from mcp import MCPError  # noqa: PLC0415
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost  # noqa: PLC0415

        with contextlib.suppress(MCPError, ListenNotSupportedError, SubscriptionLost, TimeoutError):
            async with client.listen(tools_list_changed=True) as subscription:
                async for _ in subscription:
                    self._tools_changed.set()

    async def _relist(self, client: Client) -> None:
        """List the tools again when they have changed. Many changes at once count as one."""
        from mcp import MCPError  # noqa: PLC0415

        while True:
            await self._tools_changed.wait()
            self._tools_changed = anyio.Event()
            try:
                self._on_tools(await self._list_tools(client))
            except (MCPError, McpServerError, ValueError) as error:
                self._on_problem(f"its tools changed, and cannot be listed: {reason_of(error)}")


def _progress_text(progress: float, total: float | None, message: str | None) -> str:
    text = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
    return f"{text} {message}"[:PROGRESS_CHARACTERS] if message else text
