"""The requests that a gateway remembers, and those in progress, as the inspector shows them.

    kept = KeptRequests(request_log, open_requests)
    page = await kept.rows(client, limit=100)
    captured = await kept.capture("tg_…", client)

Laws: a client sees its own requests only; None is whoever may see all. Conversations are found when somebody looks, in
a thread, and never on the way of a request.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from toolglot.gateway.http import offloading
from toolglot.gateway.inspector.conversation_index import (
    NOWHERE,
    ConversationIndex,
    Place,
    RequestFacts,
    facts_of,
    placed,
)
from toolglot.gateway.inspector.rows import SHOWN, Row, row_of
from toolglot.gateway.observability.record_text import capture
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.profiles import Overrides

Captured = dict[str, Any]

MAX_ROWS: Final = 1_000
CACHED: Final = 4
MAX_CACHED: Final = 32 * 1024 * 1024
"""Bytes of a request whose capture is cached."""


def no_overrides() -> Overrides | None:
    """There are no profiles of the user's own."""
    return None


class KeptRequests:
    """The requests of this process."""

    def __init__(
        self,
        request_log: RequestLog,
        open_requests: Callable[[], Iterable[RequestRecord]],
        overrides: Callable[[], Overrides | None] = no_overrides,
    ) -> None:
        self._log = request_log
        self._open = open_requests
        self._overrides = overrides
        self.index: ConversationIndex = ConversationIndex()
        self.name_of: Callable[[str], str] = lambda _: ""
        """The name of a client's key; empty: it has none."""
        self._indexing = asyncio.Lock()
        self._captures: dict[str, Captured] = {}
        """The captures that were looked at last: to mask them takes longest."""

    async def rows(self, client: str | None, limit: int, before: str = "") -> list[Row]:
        """The requests before a cursor, the latest first. The cursor of a row is `cursor_of`."""
        running = [each for each in self._open() if is_shown(each, client)]
        found = {record.id: record for record in (*running, *self._log.latest(client, MAX_ROWS))}
        last = _read_cursor(before)
        rows = sorted(found.values(), key=_order, reverse=True)
        chosen = [record for record in rows if last is None or _order(record) < last][:limit]
        await self._add(record for record in rows[::-1] if record.times.seconds)
        return [self.row(record) for record in chosen]

    def row(self, record: RequestRecord) -> Row:
        """The row of a request, with its place if it is known."""
        return placed(row_of(record, self.name_of), self.index.place(record.id))

    async def placed_row(self, record: RequestRecord) -> Row:
        """The row of a request that is over, with its place."""
        await self._add([record])
        return self.row(record)

    async def capture(self, id: str, client: str | None) -> Captured | None:
        """Everything about a request, with its place; None: it is not remembered, or is not this client's."""
        record = self.find(id, client)
        if record is None:
            return None
        if record.times.seconds:
            await self._add(reversed(self._log.latest(client, MAX_ROWS)))
        return await self._capture(record)

    async def conversation(self, name: str, client: str | None) -> list[Captured]:
        """The requests of a conversation, the oldest first."""
        records = self._log.latest(client, MAX_ROWS)[::-1]
        await self._add(records)
        ids = self.index.requests(name)
        return [await self._capture(record) for record in records if record.id in ids]

    def find(self, id: str, client: str | None) -> RequestRecord | None:
        """A request, over or in progress."""
        found = self._log.find(id, client)
        if found is not None:
            return found
        return next((each for each in self._open() if each.id == id and is_shown(each, client)), None)

    async def _capture(self, record: RequestRecord) -> Captured:
        place = self.index.place(record.id) or NOWHERE
        found = self._captures.get(record.id)
        if found is None:
            found = await offloading.run(0, 4 * record.size, lambda: capture(record))
            if record.times.seconds and record.size <= MAX_CACHED:
                self._captures[record.id] = found
                if len(self._captures) > CACHED:
                    del self._captures[next(iter(self._captures))]
        own: Captured = {"conversation": place.conversation, "parent": place.parent, "compared": place.compared}
        return {**found, **own, "row": self.row(record)}

    async def _add(self, records: Iterable[RequestRecord]) -> None:
        """Find the conversations of requests, in their order."""
        async with self._indexing:
            new = [record for record in records if self.index.place(record.id) is None]
            if len(self.index) > 2 * MAX_ROWS:
                self.index.keep_only({record.id for record in self._log.latest(None, MAX_ROWS)})
            if not new:
                return
            size = sum(len(record.request.body) for record in new)
            facts = await offloading.run(0, size, lambda: [self._facts(record) for record in new])
            for record, found in zip(new, facts, strict=True):
                self.index.add(record.id, record.request.client, found)

    def _facts(self, record: RequestRecord) -> RequestFacts:
        request = record.request
        if not request.body:
            return RequestFacts(request.session)
        return facts_of(request.body, source=request.source, session=request.session, overrides=self._overrides())

    async def answer(self, query: Mapping[str, str | None]) -> Any:
        """What this worker answers another one."""
        client, name = query.get("client"), query.get("name") or ""
        if query.get("topic") == "rows":
            return await self.rows(client, int(query.get("limit") or 0), query.get("before") or "")
        if query.get("topic") == "capture":
            return await self.capture(name, client)
        if query.get("topic") == "original":
            record = self.find(name, client)
            return None if record is None else (record.request.path, base64.b64encode(record.request.body).decode())
        return await self.conversation(name, client)

    def place(self, id: str) -> Place | None:
        return self.index.place(id)

    def forget(self, ids: Iterable[str]) -> None:
        """Requests are no longer remembered."""
        gone = frozenset(ids)
        for id in gone:
            self._captures.pop(id, None)
        self.index.keep_only({record.id for record in self._log.latest(None, MAX_ROWS)} - gone)


def is_shown(record: RequestRecord, client: str | None) -> bool:
    """Whether a request in progress is shown to a client."""
    return record.request.action in SHOWN and client in (None, record.request.client)


def _order(record: RequestRecord) -> tuple[float, str]:
    return round(record.times.started_at, 3), record.id


def row_order(row: Row) -> tuple[float, str]:
    """Rows by time."""
    return row["time"], row["id"]


def cursor_of(row: Row) -> str:
    """The cursor of a row: `before=` it is what comes after it in the list."""
    return f"{row['time']}_{row['id']}"


def _read_cursor(text: str) -> tuple[float, str] | None:
    time, _, id = text.partition("_")
    try:
        return float(time), id
    except ValueError:
        return None
