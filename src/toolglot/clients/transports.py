"""Transports of httpx2 and httpx that call a gateway in this process.

Both libraries have the same interface, so that one class serves both: it takes the module. It raises the library's own
exceptions, which the SDKs know: a timeout of the client, a response that broke off, a client that is closed.

Law: a piece of a response is fetched when it is read, and not before. A response that is closed, or dropped, ends.
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
"""The address of every request: a gateway without client keys only accepts a loopback name."""
_MIN_SECONDS: Final = 0.001
_MAX_SECONDS: Final = 365 * 24 * 3600.0
"""Seconds, for clients without a timeout."""


class GatewayTransport:
    """What both transports share."""

    def __init__(self, gateway: BackgroundGateway, library: Any) -> None:
        self._gateway = gateway
        self._library = library
        # A client that is dropped, or left open when the interpreter ends, is closed all the same.
        self._finalizer = weakref.finalize(self, gateway.stop)

    def _call(self, request: Any, body: bytes) -> BackgroundCall:
        headers = {name.lower(): value for name, value in request.headers.items() if name.lower() != "host"}
        url = ROOT + request.url.raw_path.decode("ascii")
        sent = HttpRequest(url=url, headers=headers, body=body, method=request.method, name="toolglot")
        return BackgroundCall(self._gateway, sent, _limits(request))

    def _wrap(self, response: AsgiResponse, body: Any) -> Any:
        return self._library.Response(response.status, headers=response.headers, stream=body)

    @contextmanager
    def library_errors(self) -> Iterator[None]:
        """Raise errors as the library's own."""
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
        with self.library_errors():
            response = self.wait(call, call.begin)
        return self._wrap(response, _body_class(ThreadBody, self._library.SyncByteStream)(self, call))

    def wait(self, call: BackgroundCall, part: Callable[[], Future[T]]) -> T:
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
        with self.library_errors():
            response = await self.wait(call, call.begin)
        return self._wrap(response, _body_class(LoopBody, self._library.AsyncByteStream)(self, call))

    async def wait(self, call: BackgroundCall, part: Callable[[], Future[T]]) -> T:
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
    """The body of a response, read in a thread."""

    def __init__(self, transport: ThreadTransport, call: BackgroundCall) -> None:
        self._transport = transport
        self._call = call

    def __iter__(self) -> Iterator[bytes]:
        with self._transport.library_errors():
            while piece := self._transport.wait(self._call, self._call.piece):
                yield piece

    def close(self) -> None:
        self._call.end()

    def __del__(self) -> None:
        self._call.end()


class LoopBody:
    """The body of a response, read in an event loop."""

    def __init__(self, transport: LoopTransport, call: BackgroundCall) -> None:
        self._transport = transport
        self._call = call

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with self._transport.library_errors():
            while piece := await self._transport.wait(self._call, self._call.piece):
                yield piece

    async def aclose(self) -> None:
        self._call.end()

    def __del__(self) -> None:
        self._call.end()


@cache
def _body_class(body: type[Any], stream: type[Any]) -> type[Any]:
    """A body that is a stream to the library, which checks for its own class."""
    return type(body.__name__, (body, stream), {})


def _limits(request: Any) -> TimeLimits:
    """The client's timeouts. There is nothing to connect to and no pool to wait for: only silence counts."""
    read = request.extensions.get("timeout", {}).get("read")
    seconds = _MAX_SECONDS if read is None else min(max(float(read), _MIN_SECONDS), _MAX_SECONDS)
    return TimeLimits(first_byte=seconds, idle=seconds)
