"""Limits the length of a list of tools, before the `mcp` package validates each of them.

Its models are slow: a hundred thousand tools would block everything else for seconds. So a message with a list that is
too long is replaced by an error.

Law: whatever a server lists, no more tools than the limit are validated.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextvars import Context
from types import TracebackType
from typing import Any, Self

from toolglot.runtime.mcp.limits import McpLimits


def too_many_tools(limits: McpLimits) -> str:
    return f"it has more than {limits.max_tools} tools"


@contextlib.asynccontextmanager
async def limit_tool_lists(
    transport: contextlib.AbstractAsyncContextManager[tuple[Any, Any]], limits: McpLimits
) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a transport, with the limit applied to incoming lists."""
    async with transport as (incoming, outgoing):
        yield _Incoming(incoming, limits), outgoing


class _Incoming:
    """A stream of messages for a client of the `mcp` package."""

    def __init__(self, inner: Any, limits: McpLimits) -> None:
        self._inner = inner
        self._limits = limits

    @property
    def last_context(self) -> Context | None:
        """An attribute that the package reads."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        return _check_length(await self._inner.receive(), self._limits)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return _check_length(await self._inner.__anext__(), self._limits)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        left: bool | None = await self._inner.__aexit__(kind, error, trace)
        return left


def _check_length(received: Any, limits: McpLimits) -> Any:
    message = getattr(received, "message", None)
    result = getattr(message, "result", None)
    tools = result.get("tools") if isinstance(result, dict) else None
    if not isinstance(tools, list) or len(tools) <= limits.max_tools:
        return received
    from mcp.shared.message import SessionMessage  # noqa: PLC0415 - only when a server is used
    from mcp.types import INTERNAL_ERROR, ErrorData, JSONRPCError  # noqa: PLC0415

    error = ErrorData(code=INTERNAL_ERROR, message=too_many_tools(limits))
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=getattr(message, "id", None), error=error))
