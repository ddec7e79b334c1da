"""The store in a SQLite file: the default, good for one machine and any number of processes on it.

One thread writes, in groups; another one reads. The journal is a write-ahead log, synchronised at checkpoints: what is
committed survives the end of the process, however it ends; a power cut may lose the last moments, and never corrupts
the file. A durable store synchronises each group, so that commits survive a power cut too.
`max_bytes` counts rows, not the file: space that `prune` frees is used again, and not returned to the disk.

Law: the event loop never waits for the disk, except when a store is opened.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from toolglot.store.checked import Add, CheckedStore, Claim, Hold, Keep, NamedRows, Scan
from toolglot.store.interface import (
    DEFAULT_STORE_LIMITS,
    Row,
    StoreLimits,
    check_call_bytes,
    conflict,
    merge_pages,
    sum_of,
)
from toolglot.store.sqlite_opening import open_connections, reopen, resolve_path
from toolglot.store.worker import Worker

BUSY_SECONDS: Final = 10.0
PRUNED_ROWS: Final = 1000
"""Rows that one transaction removes at most: others write in between."""

KEEP: Final = "INSERT OR REPLACE INTO kept (kind, client, key, until, size, value) VALUES (?, ?, ?, ?, ?, ?)"
FIND: Final = "SELECT value FROM kept WHERE kind = ? AND client = ? AND key = ? AND until > ?"
REMOVE: Final = "DELETE FROM kept WHERE kind = ? AND client = ? AND key = ? AND until > ?"
EXPIRE: Final = "DELETE FROM kept WHERE age IN (SELECT age FROM kept WHERE until <= ? ORDER BY until LIMIT ?)"
TOTAL: Final = "SELECT coalesce(sum(size), 0) FROM kept"
OLDEST: Final = "SELECT age, size FROM kept WHERE until < 9e999 ORDER BY age"
DROP: Final = (
    "DELETE FROM kept WHERE age IN (SELECT age FROM kept WHERE age <= ? AND until < 9e999 ORDER BY age LIMIT ?)"
)
"""9e999 is infinity: rows that never expire are not removed."""
COUNTED: Final = "SELECT until, amounts FROM counted WHERE kind = ? AND client = ? AND key = ?"
COUNT: Final = "INSERT OR REPLACE INTO counted (kind, client, key, until, amounts) VALUES (?, ?, ?, ?, ?)"
CLAIMED: Final = "SELECT holder FROM claimed WHERE kind = ? AND client = ? AND key = ? AND until > ?"
CLAIM: Final = "INSERT OR REPLACE INTO claimed (kind, client, key, until, holder) VALUES (?, ?, ?, ?, ?)"
HELD: Final = "SELECT holder FROM claimed WHERE kind = ? AND client = ? AND until > ?"
RELEASE: Final = "DELETE FROM claimed WHERE kind = ? AND client = ? AND key = ?"
EXPIRE_CLAIMED: Final = (
    "DELETE FROM claimed WHERE (kind, client, key) IN"
    " (SELECT kind, client, key FROM claimed WHERE until <= ? ORDER BY until LIMIT ?)"
)
EXPIRE_COUNTED: Final = (
    "DELETE FROM counted WHERE (kind, client, key) IN"
    " (SELECT kind, client, key FROM counted WHERE until <= ? ORDER BY until LIMIT ?)"
)
SCAN: Final = "SELECT client, key, {column} FROM {table} WHERE kind = :kind AND until > :now{more}"
SCANNED: Final = {
    "own": " AND client = :own",
    "head": " AND (client, key) > (:head, :tail)",
    "prefix": " AND key >= :prefix AND substr(key, 1, :length) = :prefix",
}
"""The conditions of a scan, by parameter."""
IN_ORDER: Final = " ORDER BY client, key LIMIT :limit"


class SqliteStore(CheckedStore):
    """A `Store` in a file, or in memory for tests."""

    def __init__(
        self,
        path: str | Path,
        durable: bool = False,
        *,
        clock: Callable[[], float] = time.time,
        limits: StoreLimits = DEFAULT_STORE_LIMITS,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        file = resolve_path(path)
        super().__init__(clock, limits)
        writing, reading = open_connections(file, busy_seconds, durable=durable)
        waiting = limits.max_waiting_bytes

        def worker(connection: sqlite3.Connection, begin: str, *, is_reader: bool) -> Worker:
            again = partial(reopen, file, busy_seconds, durable=durable, is_reader=is_reader)
            return Worker(
                connection,
                begin,
                file=file,
                seconds=busy_seconds,
                max_waiting=waiting,
                reopen=None if reading is None else again,
            )

        self._writer = worker(writing, "BEGIN IMMEDIATE", is_reader=False)
        self._reader = self._writer if reading is None else worker(reading, "BEGIN", is_reader=True)

    @property
    def commits(self) -> int:
        """How many transactions this store has written."""
        return self._writer.groups

    async def _keep(self, operation: Keep) -> None:
        kind, client = operation.kind, operation.client
        rows = [(kind, client, key, operation.until, size, value) for key, size, value in operation.rows]

        def work(connection: sqlite3.Connection) -> str | None:
            """The key of `unless` that exists; then nothing was written, and the rest of the group is not affected."""
            for key in operation.unless:
                if connection.execute(FIND, (kind, client, key, operation.now)).fetchone() is not None:
                    return key
            connection.executemany(KEEP, rows)
            return None

        there = await self._writer.run(work, operation.size)
        if there is not None:
            raise conflict(there)

    async def _find(self, operation: NamedRows) -> dict[str, bytes]:
        def work(connection: sqlite3.Connection) -> dict[str, bytes]:
            found: dict[str, bytes] = {}
            total = 0
            for key in operation.keys:
                name = (operation.kind, operation.client, key)
                row = connection.execute(FIND, (*name, operation.now)).fetchone()
                if row is not None:
                    found[key] = row[0]
                    total += len(row[0])
                    check_call_bytes(total, self._limits)
            return found

        return await self._reader.run(work, sum(map(len, operation.keys)))

    async def _remove(self, operation: NamedRows) -> int:
        named = [(operation.kind, operation.client, key, operation.now) for key in operation.keys]

        def work(connection: sqlite3.Connection) -> int:
            return connection.executemany(REMOVE, named).rowcount

        return max(await self._writer.run(work), 0)

    async def _add(self, operation: Add) -> dict[str, float]:
        name, now, mark = (operation.kind, operation.client, operation.key), operation.now, operation.mark

        def work(connection: sqlite3.Connection) -> dict[str, float]:
            row = connection.execute(COUNTED, name).fetchone()
            is_live = row is not None and row[0] > now
            totals: dict[str, float] = msgspec.json.decode(row[1], type=dict[str, float]) if is_live else {}
            if mark is not None:
                last = connection.execute(CLAIMED, (mark.kind, mark.client, mark.key, now)).fetchone()
                if last is not None and last[0] == mark.addition:
                    return totals
                connection.execute(CLAIM, (mark.kind, mark.client, mark.key, mark.until, mark.addition))
            for each, amount in operation.amounts.items():
                totals[each] = totals.get(each, 0.0) + amount
            until = max(operation.until, row[0]) if is_live else operation.until
            connection.execute(COUNT, (*name, until, msgspec.json.encode(totals).decode()))
            return totals

        return await self._writer.run(work)

    async def _claim(self, operation: Claim) -> str:
        name, now, holder = (operation.kind, operation.client, operation.key), operation.now, operation.holder

        def work(connection: sqlite3.Connection) -> str:
            row = connection.execute(CLAIMED, (*name, now)).fetchone()
            if row is not None and row[0] != holder:
                return str(row[0])
            if operation.until <= now:
                connection.execute(RELEASE, name)
                return ""
            connection.execute(CLAIM, (*name, operation.until, holder))
            return holder

        return await self._writer.run(work)

    async def _hold(self, operation: Hold) -> dict[str, float]:
        name = (operation.kind, operation.client, operation.holder)

        def work(connection: sqlite3.Connection) -> dict[str, float]:
            if operation.amounts:
                connection.execute(CLAIM, (*name, operation.until, operation.amounts))
            else:
                connection.execute(RELEASE, name)
            rows = connection.execute(HELD, (operation.kind, operation.client, operation.now))
            return sum_of(row[0] for row in rows)

        return await self._writer.run(work)

    async def _scan(self, operation: Scan) -> list[Row]:
        client, prefix, after, limit = operation.client, operation.prefix, operation.after, operation.limit
        parameters: dict[str, Any] = {"kind": operation.kind, "now": operation.now, "limit": limit}
        parameters |= {"own": client} if client is not None else {}
        parameters |= dict(zip(("head", "tail"), after.split("\0", 1), strict=True)) if after else {}
        parameters |= {"prefix": prefix, "length": len(prefix)} if prefix else {}
        more = "".join(condition for name, condition in SCANNED.items() if name in parameters) + IN_ORDER

        def work(connection: sqlite3.Connection) -> list[Row]:
            rows = connection.execute(SCAN.format(column="value", table="kept", more=more), parameters)
            counted = connection.execute(SCAN.format(column="amounts", table="counted", more=more), parameters)
            return merge_pages(rows, counted, limit, self._limits)

        return await self._reader.run(work)

    async def _prune(self, now: float) -> int:
        gone = await self._delete(EXPIRE, now)
        gone += await self._delete(EXPIRE_COUNTED, now)
        await self._delete(EXPIRE_CLAIMED, now)
        age = await self._reader.run(self._too_old)
        if age is not None:
            gone += await self._delete(DROP, age)
        return gone

    async def close(self) -> None:
        self._reader.end()
        self._writer.end()
        await self._reader.wait_for_end()
        await self._writer.wait_for_end()

    async def _delete(self, statement: str, bound: float) -> int:
        """Delete what is up to the bound, a batch at a time."""

        def work(connection: sqlite3.Connection) -> int:
            return connection.execute(statement, (bound, PRUNED_ROWS)).rowcount

        gone = batch = await self._writer.run(work)
        while batch == PRUNED_ROWS:
            batch = await self._writer.run(work)
            gone += batch
        return gone

    def _too_old(self, connection: sqlite3.Connection) -> int | None:
        """The age up to which rows are removed, so that the rest is within the limit. Ages are not reused, so that two
        processes that prune at the same time do not remove more."""
        excess = connection.execute(TOTAL).fetchone()[0] - self._limits.max_bytes
        for age, size in connection.execute(OLDEST) if excess > 0 else ():
            excess -= size
            if excess <= 0:
                return int(age)
        return None
