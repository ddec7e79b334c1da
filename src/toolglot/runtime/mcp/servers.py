"""The tools of MCP servers, over stdio or streamable HTTP.

    async with McpServer.stdio("uvx", ["mcp-server-git"]) as tools:
        ...                                           # a ToolBox, kept in step with the server

A server that dies takes no session with it: the calls that were running are errors that say so, and the next call
starts it once more.

Law: whatever a server sends, a call ends with an output or a `ToolError`, and nothing secret is in either.
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
from toolglot.runtime.mcp.naming import Joined, Names, clashing
from toolglot.runtime.mcp.results import output_of
from toolglot.runtime.mcp.stdio import Ending, McpCommand, command_of, stdio_transport
from toolglot.runtime.tools.toolbox import Output, Run, Tool, ToolBox, ToolContext, ToolError

if TYPE_CHECKING:
    from mcp.types import Tool as Listed
    from mcp.types import ToolAnnotations

__all__ = ["McpLimits", "McpServer", "McpServerError", "McpServers", "ServerOptions"]

MOST_PROBLEMS: Final = 100


class ServerOptions(TypedDict, total=False):
    """What every server may be given."""

    timeout: float | None
    """Seconds for a call; None: the scheduler's."""
    names: Names
    """When the names of tools begin with that of the server."""
    approval: bool
    """Whether somebody is asked before each call."""
    trust_hints: bool
    """Whether the server is believed that a tool changes nothing, or may be run again."""
    handshake: Handshake
    limits: McpLimits | None


class McpServer:
    """One server. Open it, and `tools` has what it offers; closed, its tools answer with an error."""

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
        """What was left out or went wrong, in words."""
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
        self._joined = [Joined(self.tools, name, names)]

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
        """A server that is started as a process. Of this one's environment it sees only what `mcp` calls safe."""
        how = command_of(command, args, env, cwd)
        limits = options.get("limits") or McpLimits()
        called = name or Path(command).stem or "server"
        return cls(called, _StdioTransport(how, limits), secrets=(env or {}).values(), **options)

    @classmethod
    def http(
        cls,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        name: str | None = None,
        **options: Unpack[ServerOptions],
    ) -> Self:
        """A server at an address, over streamable HTTP."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"expected an address that begins with http:// or https://, got {quote(url)}", path="url")
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
        """What the server says about its use, for a system prompt."""
        return self._connection.instructions if self._connection is not None else ""

    @property
    def errors(self) -> str:
        """The last of what a process wrote to its standard error."""
        return self._secrets.mask(self._connection.ending.errors) if self._connection is not None else ""

    def original(self, name: str) -> str | None:
        """What the server itself calls a tool of `tools`."""
        return self._joined[0].original(name)

    # --- opening and closing ------------------------------------------------------------------------

    async def open(self) -> ToolBox:
        """Start the server, or connect to it, and list its tools; McpServerError says why that is impossible."""
        self._is_wanted = True
        try:
            await self._connected()
        except asyncio.CancelledError:
            await self.close()
            raise
        return self.tools

    async def close(self) -> None:
        """End the connection; a process that was started is gone when this returns."""
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

    async def _connected(self) -> McpConnection:
        """The open connection; a new one where the last is over.

        It is opened in a task of its own: who waits for it may go, and the next one finds it further on.
        """
        if self._opening is None:
            if self._connection is not None and self._connection.is_open:
                return self._connection
            if not self._is_wanted:
                raise McpServerError(f"the MCP server {self.name!r} is not open")
            self._opening = asyncio.create_task(self._opened())
            self._opening.add_done_callback(self._has_opened)
        opening = self._opening
        # Not awaited itself: being cancelled here must not cancel it, and its being cancelled must not look like that.
        await asyncio.wait((opening,))
        if opening.cancelled():
            raise McpServerError(f"the MCP server {self.name!r} was closed while it started")
        return opening.result()

    def _has_opened(self, opening: asyncio.Task[McpConnection]) -> None:
        self._opening = None
        if not opening.cancelled():
            opening.exception()  # an error that nobody has fetched would be printed

    async def _opened(self) -> McpConnection:
        if self._connection is not None:
            await self._connection.close()
        connection = McpConnection(
            self._transport,
            self._limits,
            handshake=self._handshake,
            changed=self._take,
            problem=self._note,
        )
        self._connection = connection
        try:
            listed = await connection.open()
        except McpServerError as error:
            raise self._failed(error) from None
        self._take(listed)
        return connection

    def _failed(self, error: McpServerError) -> McpServerError:
        tail = self.errors.strip().rpartition("\n")[2][:200]
        beside = f"; its last words: {tail}" if tail else ""
        return McpServerError(f"the MCP server {self.name!r} failed: {self._secrets.mask(error.message)}{beside}")

    # --- tools --------------------------------------------------------------------------------------

    def join(self, box: ToolBox, *, names: Names | None = None, clashing: Iterable[str] = ()) -> None:
        """Put the tools into another box, too, and keep them in step there."""
        joined = Joined(box, self.name, names or self._names, frozenset(clashing))
        self._refuse(joined.sync(self._offered))
        self._joined.append(joined)

    def _take(self, listed: list[Listed]) -> None:
        offered: dict[str, Tool] = {}
        for definition in listed:
            objection = self._objection(definition, offered)
            if objection:
                self._note(f"the tool {definition.name[:80]!r} is left out: {objection}")
            else:
                offered[definition.name] = self._tool_of(definition)
        self._offered = [*offered.values()]
        for joined in self._joined:
            self._refuse(joined.sync(self._offered))

    def _objection(self, definition: Listed, offered: Mapping[str, Tool]) -> str:
        if not definition.name:
            return "it has no name"
        if definition.name in offered:
            return "there is another with its name"
        size = len(definition.name) + len(definition.description or "") + _size_of(definition.input_schema)
        if size > self._limits.max_definition:
            return f"its definition has more than {self._limits.max_definition} bytes"
        return ""

    def _refuse(self, names: Iterable[str]) -> None:
        for name in names:
            self._note(f"the tool {name[:80]!r} is left out: its name is taken")

    def _note(self, problem: str) -> None:
        told = dict.fromkeys((*self.problems, cut(self._secrets.mask(problem))))
        self.problems = tuple(told)[-MOST_PROBLEMS:]

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
            connection = await self._connected()
        except McpServerError as error:
            raise ToolError(f"{error.message}. The tool was never started: nothing was done.") from None
        context.waits_for = ""
        try:
            async with asyncio.timeout(self._timeout):
                return output_of(await connection.call(original, arguments, context.progress))
        except McpServerError as error:
            message = f"the MCP server {self.name!r} failed: {error.message}"
        except TimeoutError:
            message = f"the MCP server {self.name!r} did not answer within {self._timeout:g} s, and was told to stop"
        raise ToolError(cut(self._secrets.mask(message)))


class McpServers:
    """Several servers and one box with the tools of all."""

    def __init__(self, servers: Iterable[McpServer], *, names: Names = "auto", all_needed: bool = True) -> None:
        """
        names: `auto`: where servers use the same name for a tool, both are told apart by their servers' names.
        all_needed: whether it is an error if one of them does not open; otherwise `failures` says which and why.
        """
        given = [*servers]
        self._servers = {server.name: server for server in given}
        if len(self._servers) != len(given):
            raise InputError("two servers have the same name", path="servers", hint="McpServer.stdio(…, name=…)")
        self.tools: ToolBox = ToolBox()
        self.failures: dict[str, str] = {}
        self._names: Names = names
        self._all_needed = all_needed
        self._is_joined = False

    def __iter__(self) -> Iterator[McpServer]:
        return iter(self._servers.values())

    def __len__(self) -> int:
        return len(self._servers)

    def __getitem__(self, name: str) -> McpServer:
        return self._servers[name]

    async def open(self) -> ToolBox:
        """Open all, at the same time."""
        try:
            opened = await asyncio.gather(*(_opened(server) for server in self))
        except BaseException:
            await self.close()
            raise
        self.failures = {server.name: why for server, why in zip(self, opened, strict=True) if why}
        if self.failures and self._all_needed:
            await self.close()
            raise McpServerError("; ".join(self.failures.values()))
        if not self._is_joined:
            self._is_joined = True
            twice = clashing([tool.name for tool in server.tools] for server in self)
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


async def _opened(server: McpServer) -> str:
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
    return 2**62  # what cannot be written is too large


class _StdioTransport:
    """Starts a process for each connection. Its representation holds no secret."""

    def __init__(self, command: McpCommand, limits: McpLimits) -> None:
        self._command = command
        self._limits = limits

    def __call__(self, ending: Ending) -> Transport:
        return stdio_transport(self._command, self._limits, ending)


class _HttpTransport:
    """Connects to an address for each connection. Its representation holds no secret."""

    def __init__(self, url: str, headers: dict[str, str], limits: McpLimits) -> None:
        self._url = url
        self._headers = headers
        self._limits = limits

    def __call__(self, ending: Ending) -> Transport:  # noqa: ARG002 - HTTP tells the end by itself
        from toolglot.runtime.mcp.http import McpAddress, http_transport  # noqa: PLC0415 - httpx2 comes with mcp

        return http_transport(McpAddress(self._url, self._headers), self._limits)
