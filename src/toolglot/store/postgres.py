"""The store in Postgres: for gateways and sessions on several machines, which see the same rows.

One connection writes, in groups; up to three read. All of them are in the event loop of a thread of the store, and are
opened when they are needed: a server that was down is used again by the next call. Durability depends on the server; in
a durable store every commit waits for the disk, whatever the server's default is.

Law: every failure of the server or the network is a `StoreError` that says where and why, and never shows the password.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import asyncpg  # type: ignore[import-untyped]

from toolglot.errors import ToolglotError
from toolglot.store.addresses import read_address
from toolglot.store.checked import Add, CheckedStore, Claim, Hold, Keep, NamedRows, Scan
from toolglot.store.interface import (
    DEFAULT_STORE_LIMITS,
    Row,
    StoreError,
    StoreLimits,
    check_call_bytes,
    merge_pages,
)
from toolglot.store.job_queue import JobQueue, LoopThread
from toolglot.store.jobs import GROUP_BYTES, StoreJob
from toolglot.store.postgres_groups import Delete, StatementGroup, Write
from toolglot.store.postgres_schema import Connection, connect, upgrade

READERS: Final = 3
PRUNED_ROWS: Final = 1000
SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")

FIND: Final = (
    "SELECT key, CASE WHEN total <= $5 THEN value END, total FROM ("
    "SELECT key, value, sum(octet_length(value)) OVER () AS total FROM {schema}.kept"
    " WHERE kind = $1 AND client = $2 AND key = ANY($3::text[]) AND until > $4) AS found"
)
"""If the values exceed the limit, the server does not send them."""
SCAN: Final = (
    "SELECT client, key, CASE WHEN total <= $3 THEN value END, total FROM ("
    "SELECT client, key, value, sum(octet_length(value)) OVER () AS total FROM ("
    "SELECT client, key, value FROM {schema}.kept WHERE {conditions}) AS page) AS found ORDER BY client, key"
)
SCAN_COUNTED: Final = "SELECT client, key, amounts FROM {schema}.counted WHERE {conditions}"
OLD: Final = (
    "DELETE FROM {table} WHERE ctid = ANY(ARRAY("
    "SELECT ctid FROM {table} WHERE {bound} LIMIT $2 FOR UPDATE SKIP LOCKED))"
)
"""Skips rows that others are changing: these are being renewed or deleted."""
TOO_OLD: Final = (
    "SELECT min(age) FROM (SELECT age, sum(size) OVER (ORDER BY age) AS upto FROM {schema}.kept"
    " WHERE until < 'infinity') AS kept WHERE upto >= (SELECT sum(size) FROM {schema}.kept) - $1::bigint"
    " AND (SELECT sum(size) FROM {schema}.kept) > $1::bigint"
)
"""The age up to which rows must go so that the rest fits; NULL if that is not enough."""

READ_ONLY: Final = (
    "the server accepts no writes (a standby, or default_transaction_read_only is on); set `store` to the address of "
    "the primary, or end the read-only state"
)

Read = Callable[[Connection], Awaitable[Any]]


class PostgresStore(CheckedStore):
    """A `Store` in a schema of a Postgres database."""

    def __init__(
        self,
        dsn: str,
        durable: bool = False,
        *,
        clock: Callable[[], float] = time.time,
        limits: StoreLimits = DEFAULT_STORE_LIMITS,
    ) -> None:
        super().__init__(clock, limits)
        self._address = read_address(dsn, kind="postgres", parameter="schema", pattern=SCHEMA)
        self._schema = self._address.name
        self._durable = durable
        self._group = StatementGroup(self._schema)
        self._idle: list[Connection] = []
        self._is_upgraded = False
        self._loop_thread = LoopThread("toolglot store: postgres", self._shut)
        location, waiting = self._address.location, limits.max_waiting_bytes
        self._writer: JobQueue[Write] = JobQueue(
            self._loop_thread, self._write, location=location, max_waiting=waiting, width=1, group_bytes=GROUP_BYTES
        )
        self._reader: JobQueue[Read] = JobQueue(
            self._loop_thread,
            self._read,
            location=location,
            max_waiting=waiting,
            width=READERS,
            group_bytes=1,
            skips_cancelled=True,
        )

    def __repr__(self) -> str:
        return f"PostgresStore({self._address.location!r})"

    @property
    def commits(self) -> int:
        """How many groups this store has written."""
        return self._writer.groups

    async def _keep(self, operation: Keep) -> None:
        await self._writer.run(operation, operation.size)

    async def _find(self, operation: NamedRows) -> dict[str, bytes]:
        wanted = operation.keys
        values = (operation.kind, operation.client, wanted, operation.now, self._limits.max_call_bytes)

        async def work(connection: Connection) -> dict[str, bytes]:
            rows = await connection.fetch(FIND.format(schema=self._schema), *values)
            check_call_bytes(rows[0][2] if rows else 0, self._limits)
            found = {key: value for key, value, _ in rows}
            return {key: found[key] for key in wanted if key in found}

        found: dict[str, bytes] = await self._reader.run(work, sum(map(len, wanted)))
        return found

    async def _remove(self, operation: NamedRows) -> int:
        gone: int = await self._writer.run(operation)
        return gone

    async def _add(self, operation: Add) -> dict[str, float]:
        totals: dict[str, float] = await self._writer.run(operation)
        return totals

    async def _claim(self, operation: Claim) -> str:
        current: str = await self._writer.run(operation)
        return current

    async def _hold(self, operation: Hold) -> dict[str, float]:
        sums: dict[str, float] = await self._writer.run(operation)
        return sums

    async def _scan(self, operation: Scan) -> list[Row]:
        client, after, prefix, limit = operation.client, operation.after, operation.prefix, operation.limit
        values: list[object] = [operation.kind, operation.now]

        def conditions(arguments: list[object]) -> str:
            """The conditions of a page; adds the values that they refer to."""
            found = ["kind = $1", "until > $2"]

            def condition(text: str, *more: object) -> None:
                numbers = [f"${len(arguments) + number}" for number in range(1, len(more) + 1)]
                arguments.extend(more)
                found.append(text.format(*numbers))

            if client is not None:
                condition("client = {}", client)
            if after:
                condition("(client, key) > ({}, {})", *after.split("\0", 1))
            if prefix:
                condition("key >= {0} AND starts_with(key, {0})", prefix)
            return f"{' AND '.join(found)} ORDER BY client, key LIMIT {limit}"

        async def work(connection: Connection) -> list[Row]:
            arguments = [*values, self._limits.max_call_bytes]
            statement = SCAN.format(schema=self._schema, conditions=conditions(arguments))
            rows = await connection.fetch(statement, *arguments)
            check_call_bytes(rows[0][3] if rows else 0, self._limits)
            arguments = [*values]
            statement = SCAN_COUNTED.format(schema=self._schema, conditions=conditions(arguments))
            counted = await connection.fetch(statement, *arguments)
            return merge_pages(((row[0], row[1], row[2]) for row in rows), counted, limit, self._limits)

        found: list[Row] = await self._reader.run(work)
        return found

    async def _prune(self, now: float) -> int:
        gone = await self._delete("kept", "until <= $1 ORDER BY until", now)
        gone += await self._delete("counted", "until <= $1 ORDER BY until", now)
        await self._delete("claimed", "until <= $1 ORDER BY until", now)
        statement = TOO_OLD.format(schema=self._schema)
        age = await self._reader.run(lambda connection: connection.fetchval(statement, self._limits.max_bytes))
        if age is not None:
            gone += await self._delete("kept", "age <= $1 AND until < 'infinity' ORDER BY age", age)
        return gone

    async def close(self) -> None:
        await self._loop_thread.close()

    async def _delete(self, table: str, bound: str, value: float) -> int:
        """Delete what is up to the bound, a batch at a time."""
        statement = OLD.format(table=f"{self._schema}.{table}", bound=bound)
        gone = 0
        while batch := await self._writer.run(Delete(statement, (value, PRUNED_ROWS))):
            gone += batch
            if batch < PRUNED_ROWS:
                break
        return gone

    # --- in the thread's loop -----------------------------------------------------------------------

    async def _write(self, jobs: list[StoreJob[Write]]) -> None:
        """Write a group; if the server refuses it, write each of its jobs alone."""
        failure = await self._try(lambda connection: self._group.write(connection, jobs))
        if failure is None:
            return
        is_refusal = isinstance(failure, asyncpg.PostgresError) and not _is_lost(failure)
        if is_refusal and len(jobs) > 1:
            for job in jobs:
                await self._write([job])
            return
        for job in jobs:
            job.error = self._store_error(failure)

    async def _read(self, jobs: list[StoreJob[Read]]) -> None:
        (job,) = jobs

        async def work(connection: Connection) -> None:
            job.result = await job.work(connection)

        failure = await self._try(work)
        job.error = None if failure is None else self._store_error(failure)

    async def _try(self, work: Callable[[Connection], Awaitable[None]]) -> Exception | None:
        """Run work with a connection. Returns its error; the connection is reused if it is intact."""
        connection: Connection = None
        try:
            connection = await self._connection()
            await work(connection)
        except Exception as error:  # noqa: BLE001 - a driver whose server dies may raise anything
            await self._put_back(connection, error)
            return error
        self._idle.append(connection)
        return None

    async def _connection(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        connection = await connect(self._address.url, durable=self._durable)
        try:
            if not self._is_upgraded:
                await upgrade(connection, self._schema)
                self._is_upgraded = True
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _put_back(self, connection: Connection, error: Exception) -> None:
        """After an error, reuse the connection only if the server or the store refused something."""
        if connection is None:
            return
        try:
            if not isinstance(error, ToolglotError | asyncpg.PostgresError) or _is_gone(error):
                connection.terminate()
                return
            if connection.is_in_transaction():
                await connection.execute("ROLLBACK")
            self._idle.append(connection)
        except Exception:  # noqa: BLE001 - as above
            connection.terminate()

    async def _shut(self) -> None:
        for connection in self._idle:
            try:
                await connection.close(timeout=5)
            except Exception:  # noqa: BLE001 - as above
                connection.terminate()

    def _store_error(self, error: Exception) -> Exception:
        """The error as a `StoreError`, without the password."""
        if isinstance(error, ToolglotError) and not isinstance(error, StoreError):
            return error
        reason = _reason(error)
        return StoreError(f"{self._address.location}: {self._address.hide(reason)}")


def _is_lost(error: Exception) -> bool:
    """Whether the connection is lost, or another attempt would only wait again."""
    refusals = asyncpg.LockNotAvailableError | asyncpg.InvalidAuthorizationSpecificationError
    return _is_gone(error) or isinstance(error, refusals)


def _is_gone(error: Exception) -> bool:
    """Whether the connection is lost, or its server accepts no writes: the address may lead to another one later."""
    gone = asyncpg.PostgresConnectionError | asyncpg.OperatorInterventionError | asyncpg.ReadOnlySQLTransactionError
    return isinstance(error, gone) and not isinstance(error, asyncpg.QueryCanceledError)


def _reason(error: Exception) -> str:
    if isinstance(error, asyncpg.LockNotAvailableError):
        return "other processes have locked the store for too long"
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return READ_ONLY
    if isinstance(error, TimeoutError):
        return "the server takes too long to respond; check that it runs, can be reached and is not overloaded"
    if isinstance(error, StoreError):
        return str(error)
    if isinstance(error, OSError):
        return f"the server cannot be reached: {error.strerror or error}; start it, or check the address in `store`"
    return f"the store failed: {str(error) or type(error).__name__}"
