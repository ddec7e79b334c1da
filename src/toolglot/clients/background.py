"""A gateway that runs in a thread of this process, and calls of it from other threads.

    BackgroundGateway   made ─ first call ─▶ running ─ stop ─▶ stopped
    BackgroundCall      made ─ begin ─▶ receiving ─ piece … ─▶ complete, or ended before

The thread has an event loop, in which the gateway and all calls live. The first call starts it, so that a process may
fork before; after that, a child process gets an error: it needs its own client. The caller gets a future, and waits for
it in its own way.

Law: a call that is ended before its response is complete ends its upstream request at once. After `stop` there is no
task and no thread, and callers that were waiting get an error.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, ParamSpec, TypeVar

from toolglot.errors import InputError
from toolglot.gateway.app import Gateway
from toolglot.gateway.http.requests import Receive, Scope, Send
from toolglot.upstream import AsgiTransport, HttpRequest, TimeLimits
from toolglot.upstream.http.asgi_transport import AsgiResponse

P = ParamSpec("P")
T = TypeVar("T")

THREAD: Final = "toolglot gateway"
MAX_STOP_SECONDS: Final = 10.0
"""How long to wait for the end of the thread, which may run a user's middleware."""
CANCEL_SECONDS: Final = 5.0
"""How long calls that were cut off may take to raise an error in their callers."""


class BackgroundGateway:
    """A gateway and its thread."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._transport = AsgiTransport(self._serve_one)
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end = asyncio.Event()
        self._thread: threading.Thread | None = None
        self._process = 0
        """The id of the process that has the thread."""
        self._is_stopped = False
        self._calls: set[asyncio.Task[Any]] = set()
        """Calls from outside that are in progress."""

    def run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Run something in the loop of the gateway."""
        self._check_caller()
        with self._lock:
            if self._is_stopped:
                raise InputError("this client is closed", path="client")
            loop = self._loop or self._start()
            return asyncio.run_coroutine_threadsafe(self._run_counted(work), loop)

    def post(self, act: Callable[[], object]) -> None:
        """Call something in the loop of the gateway, soon; not if it has ended or belongs to another process."""
        if self._loop is not None and self._process == os.getpid():
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(act)

    def stop(self) -> None:
        """Stop it and everything that is open. Returns when that is done."""
        if self._process not in (0, os.getpid()):
            return
        with self._lock:
            self._is_stopped = True
        self.post(self._end.set)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(MAX_STOP_SECONDS)

    async def _run_counted(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - it is scheduled as one
        self._calls.add(task)
        try:
            return await work()
        finally:
            self._calls.discard(task)

    async def _serve_one(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Report a disconnect to the gateway by `receive` only, as a server does, and not by an error of `send`."""

        async def send_unless_gone(message: MutableMapping[str, Any]) -> None:
            with suppress(ConnectionResetError):
                await send(message)

        await self._gateway(scope, receive, send_unless_gone)

    async def send(self, request: HttpRequest, limits: TimeLimits) -> AsgiResponse:
        """In the loop: the gateway's response."""
        await self._gateway.start()
        return await self._transport.send(request, limits)

    def _check_caller(self) -> None:
        """Check the process and the thread, before any lock: in a forked process it may be held for ever."""
        if self._process not in (0, os.getpid()):
            hint = "make one in each process, after the fork"
            raise InputError("this client was used before this process was forked", path="client", hint=hint)
        if self._thread is threading.current_thread():
            hint = "middleware runs in the gateway's event loop, and must not wait for it"
            raise InputError("this client is used by its own gateway", path="client", hint=hint)

    # --- the thread ---------------------------------------------------------------------------------

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = self._loop = asyncio.new_event_loop()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._serve, args=(loop,), name=THREAD, daemon=True)
        self._thread.start()
        return loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        pool = ThreadPool(thread_name_prefix=THREAD)
        loop.set_default_executor(pool)
        try:
            loop.run_until_complete(self._run_until_stopped())
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            pool.shutdown()
            loop.close()

    async def _run_until_stopped(self) -> None:
        await self._end.wait()
        await self._transport.close()
        if self._calls:  # one of them may be starting what is stopped next
            await asyncio.wait(self._calls, timeout=CANCEL_SECONDS)
        await self._gateway.stop()


class ThreadPool(ThreadPoolExecutor):
    """The threads of the loop. While the interpreter ends there are none, and the loop does the work itself."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError:
            done: Future[T] = Future()
            done.set_result(fn(*args, **kwargs))
            return done


class BackgroundCall:
    """One request to the gateway, from outside of its thread."""

    def __init__(self, gateway: BackgroundGateway, request: HttpRequest, limits: TimeLimits) -> None:
        self._gateway = gateway
        self._request = request
        self._limits = limits
        self._response: AsgiResponse | None = None
        self._pieces: AsyncIterator[bytes] | None = None
        self._is_ended = False

    def begin(self) -> Future[AsgiResponse]:
        """The response, as soon as it has a status."""
        return self._gateway.run(self._begin)

    def piece(self) -> Future[bytes]:
        """Its next piece; an empty one after the last."""
        return self._gateway.run(self._piece)

    def end(self) -> None:
        """Stop reading. From any thread, any number of times, and without waiting."""
        if not self._is_ended:
            self._is_ended = True
            self._gateway.post(self._close)

    # --- in the gateway's loop ----------------------------------------------------------------------

    async def _begin(self) -> AsgiResponse:
        self._response = await self._gateway.send(self._request, self._limits)
        self._pieces = self._response.pieces()
        if self._is_ended:
            self._response.end()
        return self._response

    async def _piece(self) -> bytes:
        assert self._pieces is not None  # noqa: S101 - it has begun
        return await anext(self._pieces, b"")

    def _close(self) -> None:
        if self._response is not None:
            self._response.end()
