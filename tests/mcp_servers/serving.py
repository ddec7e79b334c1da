"""How tests start the servers of this folder, and wait for what they do."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from toolglot.runtime.mcp.servers import McpServer
from toolglot.runtime.tools.toolbox import Output, ToolBox, ToolContext

FOLDER = Path(__file__).parent
EVERY_KIND = str(FOLDER / "every_kind.py")
PATIENCE = 120.0
"""Seconds after which a test that waits has failed."""


def over_stdio(**options: Any) -> McpServer:
    return McpServer.stdio(sys.executable, [EVERY_KIND], name=options.pop("name", "kinds"), **options)


def hostile(kind: str, **options: Any) -> McpServer:
    return McpServer.stdio(sys.executable, [str(FOLDER / "hostile.py"), kind], name="hostile", **options)


@contextlib.contextmanager
def over_http(*flags: str, port: int = 0) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The server as a process on loopback. The socket listens before the process is there, so no test has to wait."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        command = [sys.executable, EVERY_KIND, str(listening.fileno()), *flags]
        process = subprocess.Popen(command, pass_fds=[listening.fileno()])
    try:
        yield address, process
    finally:
        process.kill()
        process.wait()


async def ask(box: ToolBox, name: str, context: ToolContext | None = None, /, **arguments: Any) -> Output:
    """Call a tool of a box as a scheduler does."""
    tool = box.find(name)
    assert tool is not None, f"{name} is not among {[*box]}"
    assert tool.run is not None
    output = await tool.run(arguments, context or ToolContext())
    assert isinstance(output, Output)
    return output


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)
