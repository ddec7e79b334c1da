"""Metrics and past requests of all workers: the one that gets such a request queries the others.

Each worker listens on a Unix socket in a folder that only their user can enter. A query is a line of JSON; its reply is
JSON up to the end of the connection.

Laws: a worker that does not reply in time is left out. A client key sees of another worker's requests what it sees of
this one's: the other worker checks the same key.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from toolglot.gateway.observability.record_text import describe, summarize
from toolglot.gateway.observability.request_log import RequestLog

WORKER_SECONDS: Final = 2.0
"""Seconds that another worker has for its reply."""
MAX_REPLY: Final = 64 * 1024 * 1024
MAX_LISTED: Final = 100
_END: Final = ".sock"

Query = dict[str, str | None]
"""`topic`: metrics, requests or request; `client`: whose requests, None: all; `name`: the id of one."""


class WorkerLinks:
    """Queries the other workers, and replies to them."""

    def __init__(self, folder: str, number: int) -> None:
        self._folder = Path(folder)
        self._number = number
        self._request_log: RequestLog | None = None
        self._text: Callable[[], bytes] = bytes
        self._server: asyncio.Server | None = None

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

    async def request(self, name: str, client: str | None) -> Any:
        """Everything about one request; None: no worker has it."""
        query: Query = {"topic": "request", "client": client, "name": name}
        if (own := self._own_reply(query)) is not None:
            return own
        return next((page for page in (await self._query_others(query)).values() if page is not None), None)

    # --- between workers ----------------------------------------------------------------------------

    async def _query_others(self, query: Query) -> dict[int, Any]:
        """The replies of the other workers, by their numbers."""
        sockets = {int(path.stem): path for path in self._folder.glob(f"*{_END}") if path.stem.isdigit()}
        others = {number: path for number, path in sockets.items() if number != self._number}
        replies = await asyncio.gather(*(_query_worker(path, query) for path in others.values()))
        return {number: reply for number, reply in zip(others, replies, strict=True) if reply is not None}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, TimeoutError, msgspec.MsgspecError):
            async with asyncio.timeout(WORKER_SECONDS):
                query = msgspec.json.decode(await reader.readline(), type=Query)
                writer.write(msgspec.json.encode(self._own_reply(query)))
                await writer.drain()
        writer.close()

    def _own_reply(self, query: Query) -> Any:
        """The reply of this worker."""
        topic, client = query.get("topic"), query.get("client")
        if topic == "metrics":
            return self._text().decode()
        if self._request_log is None:
            return None
        if topic == "requests":
            return [summarize(record) for record in self._request_log.latest(client, MAX_LISTED)]
        record = self._request_log.find(query.get("name") or "", client)
        return describe(record) if record is not None else None


async def _query_worker(path: Path, query: Query) -> Any:
    """The reply of one worker; None: it has none, or not in time."""
    try:
        async with asyncio.timeout(WORKER_SECONDS):
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
