"""An MCP server, written with the `mcp` package, that answers in every way there is.

`python every_kind.py` speaks over stdio; `python every_kind.py FD` over streamable HTTP, at a socket that it inherits.
"""

from __future__ import annotations

import base64
import os
import socket
import sys
from pathlib import Path
from typing import Annotated, Any

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()

server = MCPServer("every kind", instructions="Ask it anything.", log_level="CRITICAL")


@server.tool()
def echo(text: Annotated[str, "What to say."], times: int = 1) -> CallToolResult:
    """Says it again."""
    return CallToolResult(content=[TextContent(text=text * times)])


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> dict[str, int]:
    """Adds."""
    return {"sum": a + b}


@server.tool(annotations=ToolAnnotations(idempotent_hint=True, destructive_hint=True))
def everything() -> CallToolResult:
    """Every kind of content in one answer."""
    blob = base64.b64encode(b"%PDF").decode()
    return CallToolResult(
        content=[
            TextContent(text="words"),
            ImageContent(data=PIXEL, mime_type="image/png"),
            AudioContent(data=PIXEL, mime_type="audio/wav"),
            EmbeddedResource(resource=TextResourceContents(uri="file:///a.txt", text="inside")),
            EmbeddedResource(
                resource=BlobResourceContents(uri="file:///b.pdf", blob=blob, mime_type="application/pdf")
            ),
            ResourceLink(uri="db://rows/1", name="row", description="The first.", mime_type="text/csv"),
            ImageContent(data="not base64!", mime_type="image/png"),
        ],
        structured_content={"n": 1},
    )


@server.tool()
def nothing() -> CallToolResult:
    """Only a value, and no content."""
    return CallToolResult(content=[], structured_content={"rows": [1, 2]})


@server.tool()
def fail(reason: str) -> CallToolResult:
    """Does not work."""
    return CallToolResult(content=[TextContent(text=reason)], is_error=True)


@server.tool()
def crash() -> str:
    """Raises."""
    raise RuntimeError("boom")


@server.tool()
async def wait(note: str) -> str:
    """Waits until it is cancelled, and notes that it was."""
    Path(f"{note}.started").touch()
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        Path(note).touch()
        raise
    return "never"


@server.tool()
async def steps(count: int, ctx: Context[Any, Any]) -> str:
    """Tells how far it is."""
    for number in range(count):
        await ctx.report_progress(number + 1, count, "going")
    await ctx.report_progress(count)
    return "done"


@server.tool()
async def grow(name: str, ctx: Context[Any, Any]) -> str:
    """Gets another tool."""
    server.add_tool(lambda: "new", name=name, description="New.")
    await _tell(ctx)
    return name


@server.tool()
async def shrink(name: str, ctx: Context[Any, Any]) -> str:
    """Loses a tool."""
    server.remove_tool(name)
    await _tell(ctx)
    return name


async def _tell(ctx: Context[Any, Any]) -> None:
    """To those who listen, and to those of older versions of the protocol, who are notified without a subscription."""
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()


@server.tool()
def die() -> str:
    """Ends the server in the middle of the call."""
    sys.stderr.write("killed, key " + os.environ.get("SECRET", "none") + "\n")
    sys.stderr.flush()
    os._exit(3)


@server.tool()
def environment() -> str:
    """The names of the variables that it sees."""
    return " ".join(sorted(os.environ))


@server.tool()
def big(size: int) -> str:
    """Many words."""
    return "x" * size


@server.tool(name="a.b/c")
def oddly_named() -> str:
    """A name that few providers take."""
    return "odd"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        app = server.streamable_http_app(json_response="json" in sys.argv[2:])
        uvicorn.Server(uvicorn.Config(app, log_level="critical")).run([socket.socket(fileno=int(sys.argv[1]))])
    else:
        server.run("stdio")
