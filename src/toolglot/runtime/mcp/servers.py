"""The tools of MCP servers, over stdio or streamable HTTP.

    async with McpServer.stdio("uvx", ["mcp-server-git"]) as tools:
        ...                                           # a ToolBox, kept in sync with the server

If a server dies, its running calls end with an error, and the next call starts it again.

Law: whatever a server sends, a call ends with an output or a `ToolError`, and neither contains a secret.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, Unpack
from urllib.parse import urlsplit

import anyio
import msgspec

from toolglot.conversation import ToolSpec
from toolglot.errors import InputError, cut, quote
from toolglot.runtime.mcp.connection import Handshake, McpConnection, Transport
from toolglot.runtime.mcp.limits import McpLimits, McpServerError, server_secrets
from toolglot.runtime.mcp.naming import Names, SyncedTools, clashing_names
from toolglot.runtime.mcp.results import output_of
from toolglot.runtime.mcp.stdio import Ending, McpCommand, stdio_transport
from toolglot.runtime.tools.toolbox import Output, Run, Tool, ToolBox, ToolContext, ToolError

if TYPE_CHECKING:
    from mcp.types import Tool as Listed
    from mcp.types import ToolAnnotations

__all__ = ["McpLimits", "McpServer", "McpServerError", "McpServers", "ServerOptions"]

MAX_PROBLEMS: Final = 100


class ServerOptions(TypedDict, total=False):
    """The options of every server."""

    timeout: float | None
    """Seconds for a call; None: the scheduler's."""
    names: Names
    """When the names of tools begin with that of the server."""
    approval: bool
    """Whether each call needs an approval."""
    trust_hints: bool
    """Whether to trust the server's hints that a tool is read-only or idempotent."""
    handshake: Handshake
    limits: McpLimits | None


class McpServer:
    """An MCP server. Once it is open, `tools` has its tools; after it is closed, calling them is an error."""

    def __init__(
        self,
        name: str,
        transport: Callable[[Ending], Transport],
        *,
        secrets: Iterable[str] = (),
        timeout: float | None = None,
        names: Names = "auto",
        approval: bool = False,
        trust_hints: bool = True,
        handshake: Handshake = "auto",
        limits: McpLimits | None = None,
    ) -> None:
        """See `stdio` and `http`, and `ServerOptions`."""
        if not isinstance(name, str) or not name:
            raise InputError(f"expected a name, got {quote(name)}", path="name")
        if timeout is not None and not timeout > 0:
            raise InputError("expected seconds, more than 0", path="timeout")
        self.name = name
        self.tools: ToolBox = ToolBox()
        self.problems: tuple[str, ...] = ()
        """What was left out or went wrong."""
        self._transport = transport
        self._secrets = server_secrets(secrets)
        self._timeout = timeout
        self._names: Names = names
        self._approval = approval
        self._trust_hints = trust_hints
        self._handshake: Handshake = handshake
        self._limits = limits or McpLimits()
        self._connection: McpConnection | None = None
        self._opening: asyncio.Task[McpConnection] | None = None
        self._is_wanted = False
        self._offered: list[Tool] = []
        self._synced = [SyncedTools(self.tools, name, names)]

    @classmethod
    def stdio(
        cls,
        command: str,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        *,
        name: str | None = None,
        **options: Unpack[ServerOptions],
    ) -> Self:
        """A server that runs as a child process. Of this environment it inherits only what `mcp` considers safe."""
        started_by = McpCommand(command, tuple(args), dict(env) if env else None, None if cwd is None else str(cwd))
        limits = options.get("limits") or McpLimits()
        server_name = name or Path(command).stem or "server"
        return cls(server_name, _StdioTransport(started_by, limits), secrets=(env or {}).values(), **options)

    @classmethod
    def http(
        cls,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        name: str | None = None,
        **options: Unpack[ServerOptions],
    ) -> Self:
        """A server at a URL, over streamable HTTP."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"expected a URL that begins with http:// or https://, got {quote(url)}", path="url")
        limits = options.get("limits") or McpLimits()
        secrets = [*(headers or {}).values(), parts.password or "", parts.query]
        return cls(name or parts.hostname, _HttpTransport(url, dict(headers or {}), limits), secrets=secrets, **options)

    def __repr__(self) -> str:
        return f"McpServer({self.name!r}, {'open' if self.is_open else 'closed'}, {len(self.tools)} tools)"

    @property
    def is_open(self) -> bool:
        return self._connection is not None and self._connection.is_open

    @property
    def instructions(self) -> str:
        """The server's instructions, for a system prompt."""
        return self._connection.instructions if self._connection is not None else ""

    @property
    def errors(self) -> str:
        """The end of the server's standard error."""
        return self._secrets.mask(self._connection.ending.errors) if self._connection is not None else ""

    def original(self, name: str) -> str | None:
        """The name that the server uses for a tool of `tools`."""
        return self._synced[0].original(name)

    # --- opening and closing ------------------------------------------------------------------------

    async def open(self) -> ToolBox:
        """Start the server, or connect to it, and list its tools. Raises `McpServerError` if that fails."""
        self._is_wanted = True
        try:
            await self._get_connection()
        except asyncio.CancelledError:
            await self.close()
            raise
        return self.tools

    async def close(self) -> None:
        """End the connection. A server process is gone when this returns."""
        self._is_wanted = False
        with anyio.CancelScope(shield=True):
            if self._opening is not None:
                self._opening.cancel()
                await asyncio.wait((self._opening,))
            if self._connection is not None:
                await self._connection.close()

    async def __aenter__(self) -> ToolBox:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _get_connection(self) -> McpConnection:
        """The open connection; a new one if the last has ended.

        It opens in its own task: a caller may stop waiting, and the next one continues to wait for the same task.
        """
        if self._opening is None:
            if self._connection is not None and self._connection.is_open:
                return self._connection
            if not self._is_wanted:
                raise McpServerError(f"the MCP server {self.name!r} is not open")
            self._opening = asyncio.create_task(self._open_connection())
            self._opening.add_done_callback(self._on_opened)
        opening = self._opening
        # Not awaited directly: a cancellation here must not cancel the task, and the other way round.
        await asyncio.wait((opening,))
        if opening.cancelled():
            raise McpServerError(f"the MCP server {self.name!r} was closed while it started")
        return opening.result()

    def _on_opened(self, opening: asyncio.Task[McpConnection]) -> None:
        self._opening = None
        if not opening.cancelled():
            opening.exception()  # otherwise asyncio would print an unretrieved error

    async def _open_connection(self) -> McpConnection:
        if self._connection is not None:
            await self._connection.close()
        connection = McpConnection(
            self._transport,
            self._limits,
            handshake=self._handshake,
            on_tools=self._update_tools,
            on_problem=self._note,
        )
        self._connection = connection
        try:
            listed = await connection.open()
        except McpServerError as error:
            raise self._startup_error(error) from None
        self._update_tools(listed)
        return connection

    def _startup_error(self, error: McpServerError) -> McpServerError:
        tail = self.errors.strip().rpartition("\n")[2][:200]
        output = f"; its last error output: {tail}" if tail else ""
        return McpServerError(f"the MCP server {self.name!r} failed: {self._secrets.mask(error.message)}{output}")

    # --- tools --------------------------------------------------------------------------------------

    def join(self, box: ToolBox, *, names: Names | None = None, clashing: Iterable[str] = ()) -> None:
        """Also put the tools into another box, and keep them in sync there."""
        synced = SyncedTools(box, self.name, names or self._names, frozenset(clashing))
        self._note_name_conflicts(synced.sync(self._offered))
        self._synced.append(synced)

    def _update_tools(self, listed: list[Listed]) -> None:
        offered: dict[str, Tool] = {}
        for definition in listed:
            objection = self._objection_to(definition, offered)
            if objection:
                self._note(f"the tool {definition.name[:80]!r} is left out: {objection}")
            else:
                offered[definition.name] = self._tool_of(definition)
        self._offered = [*offered.values()]
        for synced in self._synced:
            self._note_name_conflicts(synced.sync(self._offered))

    def _objection_to(self, definition: Listed, offered: Mapping[str, Tool]) -> str:
        if not definition.name:
            return "it has no name"
        if definition.name in offered:
            return "another tool has the same name"
        size = len(definition.name) + len(definition.description or "") + _size_of(definition.input_schema)
        if size > self._limits.max_definition:
            return f"its definition has more than {self._limits.max_definition} bytes"
        return ""

    def _note_name_conflicts(self, names: Iterable[str]) -> None:
        for name in names:
            self._note(f"the tool {name[:80]!r} is left out: its name is taken")

    def _note(self, problem: str) -> None:
        unique = dict.fromkeys((*self.problems, cut(self._secrets.mask(problem))))
        self.problems = tuple(unique)[-MAX_PROBLEMS:]

    def _tool_of(self, definition: Listed) -> Tool:
        hints = definition.annotations if self._trust_hints else None
        reads_only = _hint(hints, "read_only_hint")
        return Tool(
            spec=ToolSpec(definition.name, definition.description, definition.input_schema),
            run=self._runner(definition.name),
            side_effects=not reads_only,
            idempotent=reads_only or _hint(hints, "idempotent_hint"),
            timeout=self._timeout,
            approval=self._approval,
        )

    # --- calls --------------------------------------------------------------------------------------

    def _runner(self, original: str) -> Run:
        async def run(arguments: dict[str, Any], context: ToolContext) -> Output:
            return await self._call(original, arguments, context)

        return run

    async def _call(self, original: str, arguments: dict[str, Any], context: ToolContext) -> Output:
        if not self.is_open or self._opening is not None:
            context.waits_for = f"The MCP server {self.name!r} was still starting"
        try:
            connection = await self._get_connection()
        except McpServerError as error:
            raise ToolError(f"{error.message}. The tool was never started: nothing was done.") from None
        context.waits_for = ""
        try:
            async with asyncio.timeout(self._timeout):
                return output_of(await connection.call(original, arguments, context.progress))
        except McpServerError as error:
            message = f"the MCP server {self.name!r} failed: {error.message}"
        except TimeoutError:
            message = (
                f"the MCP server {self.name!r} did not respond within {self._timeout:g} s, and the call was cancelled"
            )
        raise ToolError(cut(self._secrets.mask(message)))


class McpServers:
    """Several servers, and one box with the tools of all."""

    def __init__(self, servers: Iterable[McpServer], *, names: Names = "auto", all_needed: bool = True) -> None:
        """
        names: with `auto`, tools with the same name on several servers get their server's name as a prefix.
        all_needed: whether it is an error if one of them does not open; otherwise `failures` says which and why.
        """
        listed_servers = [*servers]
        self._servers = {server.name: server for server in listed_servers}
        if len(self._servers) != len(listed_servers):
            raise InputError("two servers have the same name", path="servers", hint="McpServer.stdio(…, name=…)")
        self.tools: ToolBox = ToolBox()
        self.failures: dict[str, str] = {}
        self._names: Names = names
        self._all_needed = all_needed
        self._is_synced = False

    def __iter__(self) -> Iterator[McpServer]:
        return iter(self._servers.values())

    def __len__(self) -> int:
        return len(self._servers)

    def __getitem__(self, name: str) -> McpServer:
        return self._servers[name]

    async def open(self) -> ToolBox:
        """Open all servers at the same time."""
        try:
            opened = await asyncio.gather(*(_open_error(server) for server in self))
        except BaseException:
            await self.close()
            raise
        self.failures = {server.name: why for server, why in zip(self, opened, strict=True) if why}
        if self.failures and self._all_needed:
            await self.close()
            raise McpServerError("; ".join(self.failures.values()))
        if not self._is_synced:
            self._is_synced = True
            twice = clashing_names([tool.name for tool in server.tools] for server in self)
            for server in self:
                server.join(self.tools, names=self._names, clashing=twice)
        return self.tools

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            await asyncio.gather(*(server.close() for server in self))

    async def __aenter__(self) -> ToolBox:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def _open_error(server: McpServer) -> str:
    """Open a server; why that failed, or an empty string."""
    try:
        await server.open()
    except McpServerError as error:
        return error.message
    return ""


def _hint(hints: ToolAnnotations | None, name: str) -> bool:
    return hints is not None and getattr(hints, name) is True


def _size_of(schema: dict[str, Any]) -> int:
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        return len(msgspec.json.encode(schema))
    return 2**62  # what cannot be encoded counts as too large


class _StdioTransport:
    """Starts a process for each connection. Its repr contains no secret."""

    def __init__(self, command: McpCommand, limits: McpLimits) -> None:
        self._command = command
        self._limits = limits

    def __call__(self, ending: Ending) -> Transport:
        return stdio_transport(self._command, self._limits, ending)


class _HttpTransport:
    """Connects to a URL for each connection. Its repr contains no secret."""

    def __init__(self, url: str, headers: dict[str, str], limits: McpLimits) -> None:
        self._url = url
        self._headers = headers
        self._limits = limits

    def __call__(self, ending: Ending) -> Transport:  # noqa: ARG002 - HTTP signals the end by itself
        from toolglot.runtime.mcp.http import McpAddress, http_transport  # noqa: PLC0415 - httpx2 comes with mcp

        return http_transport(McpAddress(self._url, self._headers), self._limits)
