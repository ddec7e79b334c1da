"""The MCP server that the configuration names for web search, and what is taken from its results.

    tool = SearchTool(settings, os.environ)
    run = await tool.run("search", call_id, "latest Ruby", search)      # `run.error` says what failed

`search_work.py` uses it for the requests of clients.

Laws: no page of a domain that the client excludes is in a result. What a server sends is bounded, and is data. A server
that fails is a failed search, and is started again for the next one.
"""

from __future__ import annotations

import asyncio
import ipaddress
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from msgspec import Meta, Struct
from msgspec.structs import replace

from toolglot import jsontext
from toolglot.conversation import Text, ToolSpec
from toolglot.conversation.web_search import FoundPage, SearchRun, WebSearch
from toolglot.errors import InputError, ToolglotError
from toolglot.gateway.http import offloading
from toolglot.gateway.routing.search_filter import filtered_result

if TYPE_CHECKING:
    from toolglot.runtime.mcp.servers import McpServer
    from toolglot.runtime.tools.toolbox import Tool

Kind = Literal["search", "fetch"]

MAX_READ: Final = 2_000_000
"""Characters of a result that are looked at."""
MAX_MESSAGE: Final = 8 * 1024 * 1024
"""Bytes of a message of the server."""
_PRIVATE: Final = ("localhost", "local", "internal", "lan", "home", "corp", "intranet", "home.arpa", "localdomain")
"""Ends of names that are of private networks (RFC 6761, RFC 6762, RFC 8375, ICANN's `internal`, and usual ones)."""
_CONTROLS: Final = {code: None for code in (*range(32), 127) if chr(code) not in "\t\n\r"}
ARGUMENTS: Final[dict[Kind, str]] = {"search": "query", "fetch": "url"}
"""The argument of the functions that models get."""
_LIKELY: Final[dict[Kind, tuple[str, ...]]] = {"search": ("query", "q", "search"), "fetch": ("url", "uri", "link")}


class SearchSettings(Struct, frozen=True, kw_only=True):
    """`[web_search]`: a tool of yours that searches the web, for upstreams that have none."""

    mcp: Annotated[
        dict[str, Any],
        Meta(
            title="a table with a command or a url",
            description='The MCP server, as other MCP clients write it: `{ command = "uvx", args = ["NAME"], env = '
            '{ KEY = "${KEY}" } }`, or `{ url = "http://127.0.0.1:8000/mcp", headers = { … } }`. `${NAME}` is '
            "replaced from the environment.",
        ),
    ] = {}
    search_tool: Annotated[
        str,
        Meta(title="a string", description="Its tool that searches. Default: the one whose name contains `search`."),
    ] = ""
    fetch_tool: Annotated[
        str,
        Meta(title="a string", description="Its tool that reads a page. Default: the one whose name contains `fetch`."),
    ] = ""
    max_uses: Annotated[
        int,
        Meta(
            ge=1,
            le=100,
            title="a whole number from 1",
            description="Searches and fetches for one reply. The `max_uses` of a client may allow fewer.",
        ),
    ] = 8
    timeout: Annotated[float, Meta(gt=0, le=600, title="a number above 0", description="Seconds for one search.")] = 30
    max_result_bytes: Annotated[
        int,
        Meta(
            ge=100,
            le=10_000_000,
            title="a whole number from 100",
            description="Of what one search returns, the model reads at most this.",
        ),
    ] = 50_000


class SearchTool:
    """The MCP server that searches, for all requests. It starts with the first search."""

    def __init__(self, settings: SearchSettings, environ: Mapping[str, str]) -> None:
        self.settings = settings
        self._environ = environ
        self._server: McpServer | None = None
        self._opening: asyncio.Task[Any] | None = None
        self._is_closed = False

    def make_server(self) -> McpServer:
        """The server, not open yet. Raises `InputError` for a table that describes none."""
        try:
            import mcp  # noqa: F401, PLC0415 - an extra
        except ImportError:
            hint = "pip install 'toolglot[mcp]'"
            raise InputError("[web_search] needs the package mcp", path="web_search.mcp", hint=hint) from None
        from toolglot.runtime.mcp.config import servers_from  # noqa: PLC0415 - only when there is a server
        from toolglot.runtime.mcp.limits import McpLimits  # noqa: PLC0415

        table = {"mcpServers": {"web_search": self.settings.mcp}}
        limits = McpLimits(max_message=max(MAX_MESSAGE, 2 * self.settings.max_result_bytes))
        (server,) = servers_from(
            table, environ=self._environ, timeout=self.settings.timeout, names="never", limits=limits
        )
        return server

    async def close(self) -> None:
        """End the server. It is not started again: nobody would end it."""
        self._is_closed = True
        if self._server is not None:
            await self._server.close()
            self._server = None

    async def _open(self) -> McpServer:
        """The open server. It opens in its own task: a client that disconnects must not close it for the others."""
        if self._is_closed:
            raise InputError("the gateway is stopping", path="web_search")
        if self._server is None:
            self._server = self.make_server()
        if self._opening is None and not self._server.is_open:
            self._opening = asyncio.create_task(self._server.open())
            self._opening.add_done_callback(self._on_opened)
        opening = self._opening
        if opening is not None:  # a server is open before its tools are listed
            await asyncio.wait((opening,))
            opening.result()
        return self._server

    def _on_opened(self, opening: asyncio.Task[Any]) -> None:
        self._opening = None
        if not opening.cancelled():
            opening.exception()  # otherwise asyncio would print an unretrieved error

    async def find(self, kind: Kind) -> Tool:
        """The server's tool for a search or a fetch."""
        server = await self._open()
        tools = {tool.name: tool for tool in server.tools}
        named = self.settings.search_tool if kind == "search" else self.settings.fetch_tool
        fitting = [named] if named else [name for name in tools if kind in name.lower()]
        found = tools.get(fitting[0]) if len(fitting) == 1 else None
        if found is None:
            what = f"no tool named {named!r}" if named else f"{len(fitting)} tools whose name contains {kind!r}"
            hint = f"set {kind}_tool to one of: {', '.join(tools)[:400]}"
            raise InputError(f"the MCP server has {what}", path=f"web_search.{kind}_tool", hint=hint)
        return found

    async def run(self, kind: Kind, id: str, wanted: str, search: WebSearch) -> SearchRun:
        """Search, or read a page. Whatever goes wrong is the error of the run."""
        from toolglot.runtime.tools.toolbox import ToolContext  # noqa: PLC0415 - only when there is a server

        run = SearchRun(id, wanted, kind=kind)
        try:
            async with asyncio.timeout(self.settings.timeout):
                tool = await self.find(kind)
                if tool.run is None:
                    return replace(run, error="unavailable")
                output: Any = await tool.run({argument_of(tool.spec, kind): wanted}, ToolContext())
        except (ToolglotError, TimeoutError, OSError):
            return replace(run, error="unavailable")
        if output.is_error:
            return replace(run, error="unavailable")
        content = output.content
        text = (
            content
            if isinstance(content, str)
            else "\n".join([part.text for part in content or () if isinstance(part, Text)])
        )
        limit = self.settings.max_result_bytes
        text = text[: max(MAX_READ, limit)]

        def read() -> SearchRun:
            plain = _clean(text)
            found, pages = filtered_result(plain, search) if kind == "search" else (plain, (FoundPage(wanted),))
            return replace(run, text=found.encode()[:limit].decode(errors="ignore"), pages=pages)

        return await offloading.run(0, len(text), read)


def argument_of(spec: ToolSpec, kind: Kind) -> str:
    """The parameter that takes the query, or the URL."""
    properties = (spec.parameters or {}).get("properties")
    names = [*properties] if isinstance(properties, dict) else []
    listed = (spec.parameters or {}).get("required")
    required = [name for name in (listed if isinstance(listed, list) else ()) if name in names]
    return next((name for name in _LIKELY[kind] if name in names), (required or names or [ARGUMENTS[kind]])[0])


def _clean(text: str) -> str:
    """A text without control characters and halves of surrogate pairs, which not every provider takes."""
    return jsontext.fix_surrogates(text).translate(_CONTROLS)


def is_private(url: str) -> bool:
    """Whether a URL names this machine or an address of a private network. Other names are left to the server, which
    resolves them."""
    try:
        host = unicodedata.normalize("NFKC", urlsplit(url).hostname or "").replace("\u3002", ".").rstrip(".").lower()
    except ValueError:
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        pass
    if host.rpartition(".")[2][:1].isdigit():  # what is written as a number (127.1, 0x7f000001) is an address too
        return True
    return "." not in host or "%" in host or any(host.endswith(f".{end}") for end in _PRIVATE)
