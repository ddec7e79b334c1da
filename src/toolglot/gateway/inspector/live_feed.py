"""What happens to requests now, for those who watch.

    feed.publish(record)                          # a request began, was routed, got its first byte, or ended
    async with feed.watch(client) as watcher:
        async for event in watcher: …             # ("row", {…}), ("drop", {"ids": […]})

Laws: while nobody watches, an event costs one look at an empty list. Otherwise its work is the same for each watcher,
however many requests there are. What waits for a watcher is bounded: events of one request are joined, and a watcher
that does not read is cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from toolglot.gateway.inspector.rows import SHOWN, Row, row_of
from toolglot.gateway.observability.request_record import RequestRecord

MAX_WAITING: Final = 1_000
"""Requests whose events wait for one watcher."""
MAX_DROPPED: Final = 10_000
"""Ids of dropped requests that wait for one watcher."""
MAX_WATCHERS: Final = 32

Event = tuple[str, Any]
"""Its name, and its data."""


class Watcher:
    """One who watches."""

    def __init__(self, client: str | None, name_of: Callable[[str], str]) -> None:
        self._client = client
        self._name_of = name_of
        self._waiting: dict[str, RequestRecord | Row] = {}
        self._dropped: list[str] = []
        self._changed = asyncio.Event()
        self.is_cut: bool = False
        """It did not read, and gets nothing any more."""

    def sees(self, client: str) -> bool:
        return self._client in (None, client)

    def put(self, id: str, what: RequestRecord | Row) -> None:
        """Something happened to a request. A later event takes the place of one that waits."""
        if self.is_cut:
            return
        if id not in self._waiting and len(self._waiting) >= MAX_WAITING:
            self.cut()
            return
        self._waiting[id] = what
        self._changed.set()

    def drop(self, ids: Iterable[str]) -> None:
        """Requests are no longer remembered."""
        if self.is_cut:
            return
        if len(self._dropped) > MAX_DROPPED:
            self.cut()
            return
        self._dropped.extend(ids)
        self._changed.set()

    def take(self, event: Event) -> None:
        """Something happened to a request of another worker."""
        name, data = event
        if name == "row":
            self.put(data["id"], data)
        elif name == "drop":
            self.drop(data["ids"])

    def cut(self) -> None:
        """Send nothing any more."""
        self.is_cut = True
        self._waiting, self._dropped = {}, []
        self._changed.set()

    async def events(self, seconds: float) -> list[Event] | None:
        """What happened, after at most so many seconds; None: it was cut off."""
        if not self._changed.is_set():
            try:
                async with asyncio.timeout(seconds):
                    await self._changed.wait()
            except TimeoutError:
                return []
        self._changed.clear()
        if self.is_cut:
            return None
        waiting, self._waiting = self._waiting, {}
        dropped, self._dropped = self._dropped, []
        found: list[Event] = [("row", self._row(what)) for what in waiting.values()]
        return [*found, ("drop", {"ids": dropped})] if dropped else found

    def _row(self, what: RequestRecord | Row) -> Row:
        return row_of(what, self._name_of) if isinstance(what, RequestRecord) else what


class LiveFeed:
    """Passes on what happens."""

    def __init__(self) -> None:
        self.watchers: list[Watcher] = []
        self.name_of: Callable[[str], str] = str
        self.on_end: Callable[[RequestRecord], None] = lambda _: None
        """Called when a request ended that somebody watches."""

    def watch(self, client: str | None) -> Watcher | None:
        """Watch the requests of a client, or of all; None: too many watch already."""
        if len(self.watchers) >= MAX_WATCHERS:
            return None
        watcher = Watcher(client, self.name_of)
        self.watchers.append(watcher)
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """A watcher left."""
        if watcher in self.watchers:
            self.watchers.remove(watcher)

    def publish(self, record: RequestRecord) -> None:
        """Something happened to a request."""
        if record.request.action not in SHOWN:
            return
        client = record.request.client
        for watcher in self.watchers:
            if watcher.sees(client):
                watcher.put(record.id, record)

    def end(self, record: RequestRecord) -> None:
        """A request is over: its row is made now, so that nothing holds its bodies."""
        record.stop_watching()
        if record.request.action not in SHOWN:
            return
        if record.is_purged:
            self.drop([record.id], record.request.client)
        else:
            self.show(row_of(record, self.name_of), record.request.client)
            self.on_end(record)

    def show(self, row: Row, client: str) -> None:
        """Pass on a row."""
        for watcher in self.watchers:
            if watcher.sees(client):
                watcher.put(row["id"], row)

    def drop(self, ids: list[str], client: str | None) -> None:
        """Requests of a client, or of all, are no longer remembered."""
        for watcher in self.watchers:
            if client is None or watcher.sees(client):
                watcher.drop(ids)

    def close(self) -> None:
        """Cut all watchers off."""
        for watcher in self.watchers:
            watcher.cut()


def sse(event: Event, encode: Callable[[Any], bytes]) -> bytes:
    """An event as a server-sent event."""
    name, data = event
    return b"event: %b\ndata: %b\n\n" % (name.encode(), encode(data))
