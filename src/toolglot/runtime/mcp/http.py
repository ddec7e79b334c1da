"""An MCP server over streamable HTTP, with a bound on what it may answer.

Law: no answer and no event is read beyond the limit, and the headers that the user gave go to the server's own origin
only (the `mcp` package follows no redirect to another).
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from msgspec import Struct

from toolglot.runtime.mcp.limits import McpLimits, McpServerError

CONNECT_SECONDS = 30.0


class McpAddress(Struct, frozen=True):
    """Where a server is, and what it is told with every request."""

    url: str
    headers: dict[str, str] | None = None

    def __repr__(self) -> str:
        return "Address()"  # headers are secrets, and so may be parts of the address


@contextlib.asynccontextmanager
async def http_transport(address: McpAddress, limits: McpLimits) -> AsyncIterator[tuple[Any, Any]]:
    """The two streams that a client of the `mcp` package speaks through."""
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - only when a server is used

    async def bound(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            # A few bytes may be packed gigabytes.
            raise McpServerError("it packs its answers, which it was asked not to")
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _Bounded(response.stream, limits.max_message)

    client = httpx2.AsyncClient(
        headers={**(address.headers or {}), "accept-encoding": "identity"},
        # A call may take as long as it likes: whoever calls has a clock of their own.
        timeout=httpx2.Timeout(CONNECT_SECONDS, read=None),
        event_hooks={"response": [bound]},
    )
    async with (
        client,
        streamable_http_client(address.url, http_client=client, max_sse_event_size=limits.max_message) as streams,
    ):
        yield streams


class _Bounded(httpx2.AsyncByteStream):
    """A body that is cut off, with an error, where it becomes too long."""

    def __init__(self, inner: Any, most: int) -> None:
        self._inner = inner
        self._left = self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._left -= len(chunk)
            if self._left < 0:
                raise McpServerError(f"it sent a message of more than {self._most} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
