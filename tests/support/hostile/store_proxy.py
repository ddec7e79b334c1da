"""A TCP proxy between a store and its server, which does to their connections what a test says.

    with StoreProxy(server.port) as proxy:
        proxy.delay = 0.2          # each piece comes later by so much
        proxy.hold(); proxy.release()   # nothing passes, without a notice; then it goes on, or `cut` ends it
        proxy.refuse = True        # a connection is closed as soon as it is made
        proxy.switch(other.port)   # to another server: what is connected is cut
        proxy.lose_answer_to(b"COMMIT")  # that much is passed on, its answer is not, and the connection ends
        proxy.lose_answer_to(b"COMMIT", after=3)  # the same with the fourth

It runs in a thread of its own; what is called here may be called from any thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from types import TracebackType

from support.waiting import HANG_SECONDS, wait_until

PIECE = 65536


class StoreProxy:
    """Listens on `port`, and connects to `target`."""

    def __init__(self, target: int, host: str = "127.0.0.1") -> None:
        self.port = 0
        self.target = target
        self.target_host = host
        self.delay = 0.0
        self.refuse = False
        self.connections = 0
        self.messages = 0
        """What its clients have sent so far, in pieces: one for each round trip, as long as they are short."""
        self.lost = 0
        """Answers that were lost on order."""
        self._lose: bytes | None = None
        self._before = 0
        self._passing: asyncio.Event
        self._open: set[asyncio.StreamWriter] = set()
        self._loop: asyncio.AbstractEventLoop
        self._over: asyncio.Event
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="store proxy", daemon=True)

    def __enter__(self) -> StoreProxy:
        self._thread.start()
        assert self._ready.wait(HANG_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(HANG_SECONDS)

    # --- what a test does ---------------------------------------------------------------------------

    def hold(self) -> None:
        """Nothing passes from now on, in either direction; new connections are made and hear nothing."""
        self._call(self._passing.clear)

    def release(self) -> None:
        self._call(self._passing.set)

    def cut(self) -> None:
        """End every connection at once."""
        self._call(self._abort_all)

    def switch(self, target: int) -> None:
        self.target = target
        self.cut()

    def lose_answer_to(self, mark: bytes, *, after: int = 0) -> None:
        """Once: a piece for the server with these bytes gets there, after so many others; its answer is lost."""
        self.lost = 0
        self._lose, self._before = mark, after

    def _call(self, act: object) -> None:
        done = threading.Event()

        def run() -> None:
            assert callable(act)
            act()
            done.set()

        self._loop.call_soon_threadsafe(run)
        wait_until(done.is_set)

    def _abort_all(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    # --- in its thread ------------------------------------------------------------------------------

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over, self._passing = asyncio.Event(), asyncio.Event()
        self._passing.set()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        self._passing.set()
        self._abort_all()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(writer)
        there: asyncio.StreamWriter | None = None
        try:
            await self._passing.wait()
            if self.refuse:
                return
            answers, there = await asyncio.open_connection(self.target_host, self.target)
            self._open.add(there)
            losing = asyncio.Event()
            ways = [
                asyncio.create_task(self._pass_requests(reader, there, losing)),
                asyncio.create_task(self._pass_answers(answers, writer, losing)),
            ]
            _, left = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in left:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        except OSError:
            pass
        finally:
            for end in (writer, there):
                if end is not None:
                    self._open.discard(end)
                    with contextlib.suppress(OSError, RuntimeError):
                        end.transport.abort()

    async def _pass_requests(
        self, reader: asyncio.StreamReader, there: asyncio.StreamWriter, losing: asyncio.Event
    ) -> None:
        while data := await reader.read(PIECE):
            self.messages += 1
            await self._wait()
            if self._lose is not None and self._lose in data:
                if self._before:
                    self._before -= 1
                else:
                    self._lose = None
                    losing.set()
            there.write(data)
            await there.drain()

    async def _pass_answers(
        self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter, losing: asyncio.Event
    ) -> None:
        while data := await answers.read(PIECE):
            if losing.is_set():
                self.lost += 1
                return
            await self._wait()
            writer.write(data)
            await writer.drain()

    async def _wait(self) -> None:
        if self.delay:
            await asyncio.sleep(self.delay)
        await self._passing.wait()
