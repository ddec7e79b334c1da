"""Transports of httpx2 and httpx that ask a gateway in this process.

Both libraries have the same interface, so that one class serves both: it is given the module. What it raises are the
library's own exceptions, which the SDKs know: a time-out of the client, an answer that broke off, a client that is
closed.

Law: a piece of an answer is asked for when it is read, and not before. An answer that is closed, or dropped, ends.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, Self, TypeVar

from toolglot.clients.background import BackgroundCall, BackgroundGateway
from toolglot.errors import InputError
from toolglot.protocols.errors.failures import ProviderError
from toolglot.store import StoreError
from toolglot.upstream import HttpRequest, TimeLimits
from toolglot.upstream.http.asgi_transport import AsgiResponse

T = TypeVar("T")

ROOT: Final = "http://127.0.0.1"
"""Where every request goes: a gateway without client keys answers to a loopback name only."""
_SHORTEST: Final = 0.001
_LONGEST: Final = 365 * 24 * 3600.0
"""Seconds, for clients that wait for ever."""


class GatewayTransport:
    """What both transports do alike."""

    def __init__(self, gateway: BackgroundGateway, library: Any) -> None:
        self._gateway = gateway
        self._library = library
        # A client that is dropped, or left open when the interpreter ends, is closed all the same.
        self._finalizer = weakref.finalize(self, gateway.stop)

    def _call(self, request: Any, body: bytes) -> BackgroundCall:
        headers = {name.lower(): value for name, value in request.headers.items() if name.lower() != "host"}
        url = ROOT + request.url.raw_path.decode("ascii")
        ask = HttpRequest(url=url, headers=headers, body=body, method=request.method, name="toolglot")
        return BackgroundCall(self._gateway, ask, _limits(request))

    def _response(self, answer: AsgiResponse, body: Any) -> Any:
        return self._library.Response(answer.status, headers=answer.headers, stream=body)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Errors as the library's own."""
        try:
            yield
        except ProviderError as error:
            kinds = self._library
            kind = kinds.ReadTimeout if error.failure.kind == "timeout" else kinds.RemoteProtocolError
            raise kind(error.failure.message) from error
        except (InputError, StoreError) as error:
            raise self._library.ConnectError(str(error)) from error


class ThreadTransport(GatewayTransport):
    """For clients that wait in their thread, any number of them at once."""

    def handle_request(self, request: Any) -> Any:
        call = self._call(request, request.read())
        with self.told():
            answer = self.waited(call, call.begin)
        return self._response(answer, _made(ThreadBody, self._library.SyncByteStream)(self, call))

    def waited(self, call: BackgroundCall, part: Callable[[], Future[T]]) -> T:
        future: Future[T] | None = None
        try:
            future = part()
            return future.result()
        except BaseException:  # Ctrl-C among them
            if future is not None:
                future.cancel()
            call.end()
            raise

    def close(self) -> None:
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LoopTransport(GatewayTransport):
    """For clients that wait in an event loop of asyncio, whichever it is."""

    async def handle_async_request(self, request: Any) -> Any:
        call = self._call(request, await request.aread())
        with self.told():
            answer = await self.waited(call, call.begin)
        return self._response(answer, _made(LoopBody, self._library.AsyncByteStream)(self, call))

    async def waited(self, call: BackgroundCall, part: Callable[[], Future[T]]) -> T:
        try:
            return await asyncio.wrap_future(part())  # cancelling the one cancels the other
        except BaseException:
            call.end()
            raise

    async def aclose(self) -> None:
        await asyncio.to_thread(self._finalizer)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


# --- bodies -----------------------------------------------------------------------------------------


class ThreadBody:
    """The body of an answer, read in a thread."""

    def __init__(self, transport: ThreadTransport, call: BackgroundCall) -> None:
        self._transport = transport
        self._call = call

    def __iter__(self) -> Iterator[bytes]:
        with self._transport.told():
            while piece := self._transport.waited(self._call, self._call.piece):
                yield piece

    def close(self) -> None:
        self._call.end()

    def __del__(self) -> None:
        self._call.end()


class LoopBody:
    """The body of an answer, read in an event loop."""

    def __init__(self, transport: LoopTransport, call: BackgroundCall) -> None:
        self._transport = transport
        self._call = call

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with self._transport.told():
            while piece := await self._transport.waited(self._call, self._call.piece):
                yield piece

    async def aclose(self) -> None:
        self._call.end()

    def __del__(self) -> None:
        self._call.end()


@cache
def _made(body: type[Any], stream: type[Any]) -> type[Any]:
    """A body that is a stream to the library, which looks for its own class."""
    return type(body.__name__, (body, stream), {})


def _limits(request: Any) -> TimeLimits:
    """The client's time-outs. There is nothing to connect to, and no pool to wait for: what counts is silence."""
    read = request.extensions.get("timeout", {}).get("read")
    seconds = _LONGEST if read is None else min(max(float(read), _SHORTEST), _LONGEST)
    return TimeLimits(first_byte=seconds, idle=seconds)
