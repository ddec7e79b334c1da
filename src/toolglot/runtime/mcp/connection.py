"""One connection to an MCP server: a task of its own that holds the client, and a queue that calls come through.

    opening ── tools told ──▶ open ── server ends, or close() ──▶ over
       └──────── fails, or takes too long ──────────────────────────┘

The scopes of the client must be left by the task that entered them, so only that task touches the client. Whoever
calls waits for a future: a call can come from any task, and cancelling it tells the server to stop that one call.

Law: every call gets an answer or an error. None waits for a server that is gone.
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
from toolglot.runtime.mcp.lists import too_many, with_short_lists
from toolglot.runtime.mcp.stdio import Ending

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult
    from mcp.types import Tool as Listed

Handshake = Literal["auto", "legacy"]
"""`auto`: the newest that the server knows. `legacy`: `initialize` at once, for servers that choke on being asked."""

Transport = contextlib.AbstractAsyncContextManager[tuple[Any, Any]]
Progress = Callable[[str], None]

PROGRESS_CHARACTERS: Final = 500
_LOST: Final = ("session terminated", "session not found")
"""What a server that was started anew says of the session that it no longer has."""


@dataclass(eq=False)
class _Call:
    name: str
    arguments: dict[str, Any]
    progress: Progress
    answer: asyncio.Future[CallToolResult]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class McpConnection:
    """A client that is connected once. When it is over it stays so."""

    def __init__(
        self,
        transport: Callable[[Ending], Transport],
        limits: McpLimits,
        *,
        handshake: Handshake,
        changed: Callable[[list[Listed]], None],
        problem: Callable[[str], None],
    ) -> None:
        self.ending: Ending = Ending(limits)
        self.instructions: str = ""
        self._transport = transport
        self._limits = limits
        self._handshake = handshake
        self._changed = changed
        self._problem = problem
        self._scope = anyio.CancelScope()
        self._news = anyio.Event()
        self._calls: set[_Call] = set()
        self._send, self._receive = anyio.create_memory_object_stream[_Call](math.inf)
        self._ready: asyncio.Future[list[Listed]] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        return self._task is not None and not self._task.done() and not self.ending.over.is_set()

    async def open(self) -> list[Listed]:
        """Connect, and list the tools."""
        try:
            # It takes a second, in which everything else goes on.
            await anyio.to_thread.run_sync(importlib.import_module, "mcp")
            self._task = asyncio.create_task(self._live())
            async with asyncio.timeout(self._limits.start):
                return await asyncio.shield(self._ready)
        except ImportError:
            await self.close()
            raise McpServerError(f"the package `mcp` is not installed: {how_to_install('mcp')}") from None
        except TimeoutError:
            await self.close()
            raise McpServerError(f"it did not tell its tools within {self._limits.start:g} s") from None
        except asyncio.CancelledError:
            await self.close()
            raise

    async def call(self, name: str, arguments: dict[str, Any], progress: Progress) -> CallToolResult:
        """Run a tool of the server. Cancelling this cancels the call there, and nothing else."""
        call = _Call(name, arguments, progress, asyncio.get_running_loop().create_future())
        if not self.is_open:
            raise McpServerError(self.why)
        self._calls.add(call)
        self._send.send_nowait(call)
        try:
            return await call.answer
        finally:
            call.scope.cancel()

    async def close(self) -> None:
        """End the connection and what runs over it; the server is gone when this returns."""
        self.ending.end("it was closed")
        self._scope.cancel()
        if self._task is None:
            self._settle()
        else:
            with anyio.CancelScope(shield=True):
                await asyncio.wait([self._task])
        self._ready.exception()  # an error that nobody has fetched would be printed

    @property
    def why(self) -> str:
        return self.ending.reason or "it ended"

    @property
    def _interrupted(self) -> str:
        return f"{self.why} while the call ran; whether the tool did its work is not known"

    # --- inside the task ----------------------------------------------------------------------------

    async def _live(self) -> None:
        try:
            with self._scope:
                await self._connected()
        except Exception as error:  # noqa: BLE001 - whatever it was, the calls must be told
            self.ending.end(reason_of(error))
        finally:
            self.ending.end("it ended")
            self._settle()

    def _settle(self) -> None:
        """Tell everybody who waits that it is over."""
        self._send.close()
        self._receive.close()
        if not self._ready.done():
            self._ready.set_exception(McpServerError(self.why))
        for call in self._calls:
            self._fail(call, self._interrupted)
        self._calls.clear()

    async def _connected(self) -> None:
        from mcp import Client  # noqa: PLC0415 - only when a server is used
        from mcp.types import Implementation  # noqa: PLC0415

        client = Client(
            with_short_lists(self._transport(self.ending), self._limits),
            mode=self._handshake,
            cache=None,
            message_handler=self._hear,
            client_info=Implementation(name="toolglot", version="0"),
        )
        async with client:
            self.instructions = client.instructions or ""
            try:
                listed = await self._listed(client)
            except Exception as error:  # what comes of leaving the client would hide it
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
        """No new calls once the server is gone; those that run are told by the client."""
        await self.ending.over.wait()
        self._send.close()

    async def _answer(self, client: Client, call: _Call) -> None:
        from mcp import MCPError  # noqa: PLC0415
        from mcp.types import CONNECTION_CLOSED  # noqa: PLC0415

        try:
            with call.scope:
                self._give(call, await self._asked(client, call))
        except MCPError as error:
            if error.code == CONNECTION_CLOSED or error.message.lower().startswith(_LOST):
                self.ending.end("it closed the connection")
                self._fail(call, self._interrupted)
            else:
                self._fail(call, f"it refused the call: {error.message}")
        except ValueError:  # pydantic's: nothing here imports it
            self._fail(call, "its answer is no result of a tool")
        finally:
            if call.answer.done():  # otherwise the connection itself is ending, and tells it
                self._calls.discard(call)

    async def _asked(self, client: Client, call: _Call) -> CallToolResult:
        from mcp.types import CallToolRequest, CallToolRequestParams, CallToolResult  # noqa: PLC0415

        async def told(progress: float, total: float | None, message: str | None) -> None:
            call.progress(_progress_text(progress, total, message))

        # Not `call_tool`, which holds the answer against a schema of the server's, whose patterns could run for ever.
        params = CallToolRequestParams(name=call.name, arguments=call.arguments)
        return await client.session.send_request(CallToolRequest(params=params), CallToolResult, progress_callback=told)

    def _give(self, call: _Call, answer: CallToolResult) -> None:
        if not call.answer.done():
            call.answer.set_result(answer)

    def _fail(self, call: _Call, reason: str) -> None:
        if not call.answer.done():
            call.answer.set_exception(McpServerError(reason))

    # --- the list of tools --------------------------------------------------------------------------

    async def _listed(self, client: Client) -> list[Listed]:
        """All tools, page by page."""
        found: list[Listed] = []
        async for page in self._pages(client):
            found += page
            if len(found) > self._limits.max_tools:
                raise McpServerError(too_many(self._limits))
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

    async def _hear(self, message: object) -> None:
        from mcp.types import ToolListChangedNotification  # noqa: PLC0415

        if isinstance(message, ToolListChangedNotification):
            self._news.set()

    async def _listen(self, client: Client) -> None:
        """Ask to be told of changes, where the server no longer tells unasked."""
        from mcp import MCPError  # noqa: PLC0415
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost  # noqa: PLC0415

        with contextlib.suppress(MCPError, ListenNotSupportedError, SubscriptionLost, TimeoutError):
            async with client.listen(tools_list_changed=True) as subscription:
                async for _ in subscription:
                    self._news.set()

    async def _relist(self, client: Client) -> None:
        """List the tools anew when they have changed. Many changes at once are one."""
        from mcp import MCPError  # noqa: PLC0415

        while True:
            await self._news.wait()
            self._news = anyio.Event()
            try:
                self._changed(await self._listed(client))
            except (MCPError, McpServerError, ValueError) as error:
                self._problem(f"its tools changed, and cannot be listed: {reason_of(error)}")


def _progress_text(progress: float, total: float | None, message: str | None) -> str:
    text = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
    return f"{text} {message}"[:PROGRESS_CHARACTERS] if message else text
