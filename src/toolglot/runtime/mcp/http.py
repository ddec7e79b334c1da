"""An MCP server over streamable HTTP, with a limit on the size of its responses.

Law: no response and no event is read beyond the limit, and the user's headers go to the server's own origin only (the
`mcp` package follows no redirect to another).
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
    """The URL of a server, and the headers of every request."""

    url: str
    headers: dict[str, str] | None = None

    def __repr__(self) -> str:
        return "McpAddress()"  # headers are secrets, and parts of the URL may be


@contextlib.asynccontextmanager
async def http_transport(address: McpAddress, limits: McpLimits) -> AsyncIterator[tuple[Any, Any]]:
    """The two streams for a client of the `mcp` package."""
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - only when a server is used

    async def limit_body(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            # A few compressed bytes may be gigabytes.
            raise McpServerError("it compresses its responses although the request does not allow that")
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _LimitedBody(response.stream, limits.max_message)

    client = httpx2.AsyncClient(
        headers={**(address.headers or {}), "accept-encoding": "identity"},
        # A call may take any time: the caller has its own timeout.
        timeout=httpx2.Timeout(CONNECT_SECONDS, read=None),
        event_hooks={"response": [limit_body]},
    )
    async with (
        client,
        streamable_http_client(address.url, http_client=client, max_sse_event_size=limits.max_message) as streams,
    ):
        yield streams


class _LimitedBody(httpx2.AsyncByteStream):
    """A response body that raises an error when it becomes too long."""

    def __init__(self, inner: Any, max_bytes: int) -> None:
        self._inner = inner
        self._left = self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            self._left -= len(chunk)
            if self._left < 0:
                raise McpServerError(f"it sent a message of more than {self._max_bytes} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
