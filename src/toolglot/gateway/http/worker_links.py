"""Metrics and past requests of all workers: the one that gets such a request queries the others.

Each worker listens on a Unix socket in a folder that only their user can enter. A query is a line of JSON; its reply is
JSON up to the end of the connection.

Events of the inspector are one long reply: a line of JSON for each, until one of the two workers ends.

Laws: a worker that does not reply in time is left out. A client key sees of another worker's requests what it sees of
this one's: the other worker checks the same key.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from toolglot.gateway.inspector.live_feed import Event, LiveFeed
from toolglot.gateway.observability.record_text import capture, describe, summarize
from toolglot.gateway.observability.request_log import RequestLog

WORKER_SECONDS: Final = 2.0
"""Seconds that another worker has for its reply."""
MAX_REPLY: Final = 64 * 1024 * 1024
MAX_LISTED: Final = 100
MAX_CAPTURED: Final = 1_000_000
INSPECTOR_SECONDS: Final = 15.0
"""The same for the inspector, which masks large bodies first."""
LOOK_SECONDS: Final = 1.0
"""Between two looks for workers that were started."""
PING_SECONDS: Final = 5.0
MAX_EVENT: Final = 1024 * 1024
_END: Final = ".sock"
_INSPECTOR: Final = frozenset({"rows", "capture", "conversation", "original", "fleet"})
"""Topics of the inspector."""

Query = dict[str, str | None]
"""`topic`: metrics, requests, request, captures, purge, events, or one of the inspector; `client`: whose requests; None
is all; `name`: the id of one."""


class WorkerLinks:
    """Queries the other workers, and replies to them."""

    def __init__(self, folder: str, number: int) -> None:
        self._folder = Path(folder)
        self._number = number
        self._request_log: RequestLog | None = None
        self._text: Callable[[], bytes] = bytes
        self._server: asyncio.Server | None = None
        self.answer: Callable[[Query], Awaitable[Any]] | None = None
        """Answers queries of the inspector."""
        self.feed: LiveFeed | None = None
        """What happens to the requests of this worker."""

    async def start(self, request_log: RequestLog, text: Callable[[], bytes]) -> None:
        """Reply to queries, with the requests that `request_log` remembers, and the metrics of `text`."""
        self._request_log, self._text = request_log, text
        own = self._folder / f"{self._number}{_END}"
        try:
            own.unlink(missing_ok=True)  # left by a worker that was killed
            self._server = await asyncio.start_unix_server(self._serve, own)
        except OSError as error:  # such as a path that is too long: the worker serves all the same
            request_log.notice(f"this worker does not share its metrics and requests: {error.strerror or error}")

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            (self._folder / f"{self._number}{_END}").unlink(missing_ok=True)
            self._server = None

    # --- for clients --------------------------------------------------------------------------------

    async def metrics(self) -> bytes:
        """The metrics of all workers, each series with the number of its worker."""
        found = {self._number: self._text().decode(), **await self._query_others({"topic": "metrics"})}
        return merge_metrics({number: text for number, text in sorted(found.items()) if isinstance(text, str)})

    async def requests(self, client: str | None) -> list[Any]:
        """The last requests of a client, or of all, of all workers, the latest first."""
        query: Query = {"topic": "requests", "client": client}
        lists = [self._own_reply(query), *(await self._query_others(query)).values()]
        every = [summary for summaries in lists if isinstance(summaries, list) for summary in summaries]
        return sorted(every, key=lambda summary: -float(summary["time"]))[:MAX_LISTED]

    async def captures(self, client: str | None) -> list[Any]:
        """The captures of a client, or of all, of all workers, the oldest first."""
        query: Query = {"topic": "captures", "client": client}
        lists = [self._own_reply(query), *(await self._query_others(query)).values()]
        every = [captured for found in lists if isinstance(found, list) for captured in found]
        return sorted(every, key=lambda captured: float(captured["time"]))

    async def purge(self, client: str | None) -> int:
        """Forget the requests of a client, or of all, in all workers. Returns how many there were."""
        query: Query = {"topic": "purge", "client": client}
        counts = [self._own_reply(query), *(await self._query_others(query)).values()]
        return sum(count for count in counts if isinstance(count, int))

    async def request(self, name: str, client: str | None) -> Any:
        """Everything about one request; None: no worker has it."""
        query: Query = {"topic": "request", "client": client, "name": name}
        if (own := self._own_reply(query)) is not None:
            return own
        return next((page for page in (await self._query_others(query)).values() if page is not None), None)

    async def inspect(self, query: Query) -> list[Any]:
        """What the other workers answer to a query of the inspector."""
        return [*(await self._query_others(query, INSPECTOR_SECONDS)).values()]

    async def follow(self, client: str | None, put: Callable[[Event], None], is_followed: asyncio.Event) -> None:
        """Pass on what happens to the requests of the other workers, until cancelled.

        is_followed: set when nothing more that happens in a worker that is there now can be missed.
        """
        following: dict[Path, asyncio.Task[None]] = {}
        try:
            while True:
                begun: list[asyncio.Event] = []
                for path in self._others().values():
                    task = following.get(path)
                    if task is None or task.done():
                        begun.append(asyncio.Event())
                        following[path] = asyncio.create_task(_follow_worker(path, client, put, begun[-1]))
                if not is_followed.is_set():
                    for each in begun:
                        await each.wait()
                    is_followed.set()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            for task in following.values():
                task.cancel()

    # --- between workers ----------------------------------------------------------------------------

    def _others(self) -> dict[int, Path]:
        """The sockets of the other workers, by their numbers."""
        sockets = {int(path.stem): path for path in self._folder.glob(f"*{_END}") if path.stem.isdigit()}
        return {number: path for number, path in sockets.items() if number != self._number}

    async def _query_others(self, query: Query, seconds: float = WORKER_SECONDS) -> dict[int, Any]:
        """The replies of the other workers, by their numbers."""
        others = self._others()
        replies = await asyncio.gather(*(_query_worker(path, query, seconds) for path in others.values()))
        return {number: reply for number, reply in zip(others, replies, strict=True) if reply is not None}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, TimeoutError, msgspec.MsgspecError):
            async with asyncio.timeout(WORKER_SECONDS):
                query = msgspec.json.decode(await reader.readline(), type=Query)
            if query.get("topic") == "events":
                await self._send_events(query.get("client"), writer)
            else:
                async with asyncio.timeout(INSPECTOR_SECONDS):
                    writer.write(msgspec.json.encode(await self._reply(query)))
                    await writer.drain()
        writer.close()

    async def _reply(self, query: Query) -> Any:
        if query.get("topic") in _INSPECTOR:
            return await self.answer(query) if self.answer is not None else None
        return self._own_reply(query)

    async def _send_events(self, client: str | None, writer: asyncio.StreamWriter) -> None:
        """Send what happens here, until the other worker leaves."""
        watcher = self.feed.watch(client) if self.feed is not None else None
        if watcher is None or self.feed is None:
            return
        try:
            writer.write(b"\n")  # from here on, nothing is missed
            while (events := await watcher.events(PING_SECONDS)) is not None:
                writer.write(b"".join([msgspec.json.encode(event) + b"\n" for event in events]) or b"\n")
                async with asyncio.timeout(WORKER_SECONDS):
                    await writer.drain()
        finally:
            self.feed.leave(watcher)

    def _own_reply(self, query: Query) -> Any:
        """The reply of this worker."""
        topic, client = query.get("topic"), query.get("client")
        if topic == "metrics":
            return self._text().decode()
        if self._request_log is None:
            return None
        if topic == "requests":
            return [summarize(record) for record in self._request_log.latest(client, MAX_LISTED)]
        if topic == "captures":
            return [capture(record) for record in self._request_log.latest(client, MAX_CAPTURED)[::-1]]
        if topic == "purge":
            return self._request_log.purge(client)
        record = self._request_log.find(query.get("name") or "", client)
        return describe(record) if record is not None else None


async def _follow_worker(
    path: Path, client: str | None, put: Callable[[Event], None], is_followed: asyncio.Event
) -> None:
    """Pass on the events of one worker until it ends.

    is_followed: set when it sends its events, and when it does not do so in time.
    """
    try:
        async with asyncio.timeout(WORKER_SECONDS):
            reader, writer = await asyncio.open_unix_connection(path, limit=MAX_EVENT)
        try:
            writer.write(msgspec.json.encode({"topic": "events", "client": client}) + b"\n")
            async with asyncio.timeout(WORKER_SECONDS):
                line = await reader.readline()
            is_followed.set()
            while line:
                if line.strip():
                    name, data = msgspec.json.decode(line, type=tuple[str, Any])
                    put((name, data))
                line = await reader.readline()
        finally:
            writer.close()
    except (OSError, ValueError, TimeoutError):
        return
    finally:
        is_followed.set()


async def _query_worker(path: Path, query: Query, seconds: float = WORKER_SECONDS) -> Any:
    """The reply of one worker; None: it has none, or not in time."""
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                writer.write(msgspec.json.encode(query) + b"\n")
                pieces, size = [], 0
                while (piece := await reader.read(1 << 20)) and size <= MAX_REPLY:
                    pieces.append(piece)
                    size += len(piece)
            finally:
                writer.close()
        return msgspec.json.decode(b"".join(pieces))
    except (OSError, TimeoutError, ValueError, RecursionError):
        return None


def merge_metrics(texts: dict[int, str]) -> bytes:
    """The metrics of several workers as one document: each family once, a series for each worker."""
    families: dict[str, list[str]] = {}
    heads: dict[str, list[str]] = {}
    for number, text in texts.items():
        name = ""
        for line in text.splitlines():
            if line.startswith("#"):
                name = line.split(" ", 3)[2]
                if number == next(iter(texts)) or name not in families:
                    heads.setdefault(name, []).append(line)
                continue
            families.setdefault(name, []).append(_with_worker(line, number))
    lines = [line for name, series in families.items() for line in (*dict.fromkeys(heads[name]), *series)]
    return ("\n".join(lines) + "\n").encode()


def _with_worker(line: str, number: int) -> str:
    before, brace, after = line.partition("{")
    if brace:
        return f'{before}{{worker="{number}",{after}'
    name, _, value = line.partition(" ")
    return f'{name}{{worker="{number}"}} {value}'
