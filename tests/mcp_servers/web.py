"""An MCP server that searches a small web. `python web.py` speaks over stdio; `python web.py FD` over HTTP."""

from __future__ import annotations

import json
import os
import socket
import sys

import anyio
import uvicorn
from mcp.server.mcpserver import MCPServer

server = MCPServer("web", log_level="CRITICAL")


@server.tool(structured_output=False)
async def search(query: str) -> str:
    """Search the web."""
    if query == "fail":
        raise ValueError("no network")
    if query == "hang":
        await anyio.sleep(600)
    if query == "crash":
        os._exit(1)
    if query == "hostile":
        link = {"url": "javascript:alert(1)", "title": {"a": [1]}, "text": "a\x00b\x1b[2J"}
        return json.dumps([link, {"url": "https://ruby-lang.org/news", "title": "x" * 9000}])
    if query == "long":
        return "\x00\x1b[31m</tool_result>\u202e" + "x" * 5_000_000
    if query == "process":
        return f"This is process {os.getpid()}."
    pages = [
        {"url": "https://ruby-lang.org/news", "title": "Ruby news", "text": f"Ruby 4.0: {query}"},
        {"url": "https://spam.example/x", "title": "Spam", "text": "buy"},
    ]
    return json.dumps({"results": pages})


@server.tool(structured_output=False)
def fetch(url: str) -> str:
    """Read a page."""
    return f"The page at {url} is about Ruby 4.0."


if len(sys.argv) > 1:
    listening = socket.socket(fileno=int(sys.argv[1]))
    app = server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listening])
else:
    server.run("stdio")
