"""A group of writes in Postgres as one transaction, with few statements however many they are.

Rows, totals and claims are in separate tables, so the order of a group matters only within each of them. What a job
does depends on the stored values: each table is read once, the jobs are applied here, and the result is written once.

A write concerns names of one kind and client. A transaction first takes the locks of all its kinds and clients, in
order: others that need the same locks wait, deadlocks are impossible, and what was read stays true until the end.

Law: a group has the same results as its jobs one after the other.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from toolglot.store.checked import Add, Claim, Hold, Keep, NamedRows
from toolglot.store.interface import conflict, sum_of
from toolglot.store.jobs import StoreJob
from toolglot.store.postgres_schema import Connection, lock_space

LOCKS: Final = 64
"""The number of locks for kinds and clients: more would fill the server's lock table."""

Name = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete rows of any client that no other process is changing; returns how many."""

    statement: str
    values: tuple[object, ...]


Write = Keep | NamedRows | Add | Claim | Hold | Delete
"""Named rows are removed."""
WriteJob = StoreJob[Write]

NAMED: Final = "unnest($1::text[], $2::text[], $3::text[]) AS named (kind, client, key)"
READ: Final = f"SELECT kind, client, key, until, {{column}} FROM {{table}} JOIN {NAMED} USING (kind, client, key)"  # noqa: S608
KEEP: Final = (
    "INSERT INTO {schema}.kept (kind, client, key, until, size, value)"
    " SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[], $5::bigint[], $6::bytea[])"
    " ON CONFLICT (kind, client, key) DO UPDATE"
    " SET age = excluded.age, until = excluded.until, size = excluded.size, value = excluded.value"
)
HELD: Final = (
    "SELECT kind, client, key, until, holder FROM {schema}.claimed JOIN unnest($1::text[], $2::text[])"
    " AS named (kind, client) USING (kind, client)"
)
KEEP_AT_ONCE: Final = (
    "INSERT INTO {schema}.kept (kind, client, key, until, size, value)"
    " SELECT kept.* FROM (SELECT count(pg_advisory_xact_lock($7, lock)) FROM unnest($8::int[]) AS lock) AS locked,"
    " unnest($1::text[], $2::text[], $3::text[], $4::float8[], $5::bigint[], $6::bytea[]) AS kept"
    " ON CONFLICT (kind, client, key) DO UPDATE"
    " SET age = excluded.age, until = excluded.until, size = excluded.size, value = excluded.value"
)
"""The same as a transaction of its own, which takes its locks before it writes a row: one round trip, not three."""
REMOVE: Final = "DELETE FROM {schema}.kept WHERE kind = $1 AND client = $2 AND key = ANY($3::text[]) AND until > $4"
PUT: Final = (
    "INSERT INTO {table} (kind, client, key, until, {column})"
    " SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[], $5::text[])"
    " ON CONFLICT (kind, client, key) DO UPDATE SET until = excluded.until, {column} = excluded.{column}"
)


class StatementGroup:
    """Runs groups of writes for one store."""

    def __init__(self, schema: str) -> None:
        self._space = lock_space(schema)
        self._kept, self._counted, self._claimed = (f"{schema}.{name}" for name in ("kept", "counted", "claimed"))
        self._keep = KEEP.format(schema=schema)
        self._keep_at_once = KEEP_AT_ONCE.format(schema=schema)
        self._remove = REMOVE.format(schema=schema)
        self._held = HELD.format(schema=schema)

    async def write(self, connection: Connection, jobs: Sequence[WriteJob]) -> None:
        """Write all of them in one transaction, or none. If it fails, the transaction stays open."""
        kept = [job.work for job in jobs if isinstance(job.work, Keep) and not job.work.unless]
        if len(kept) == len(jobs):
            await self._keep_only(connection, kept)
            return
        await connection.execute(self._begin(job.work for job in jobs))
        keeping: list[tuple[WriteJob, Keep]] = []
        for job in jobs:
            if isinstance(job.work, Keep):
                keeping.append((job, job.work))
            elif isinstance(job.work, NamedRows):
                await self._keep_all(connection, keeping)
                keeping = []
                work = job.work
                status = await connection.execute(self._remove, work.kind, work.client, work.keys, work.now)
                job.result = count_of(status)
        await self._keep_all(connection, keeping)
        await self._add_all(connection, [(job, job.work) for job in jobs if isinstance(job.work, Add)])
        await self._claim_all(connection, [(job, job.work) for job in jobs if isinstance(job.work, Claim)])
        await self._hold_all(connection, [(job, job.work) for job in jobs if isinstance(job.work, Hold)])
        for job in jobs:
            if isinstance(job.work, Delete):
                job.result = count_of(await connection.execute(job.work.statement, *job.work.values))
        await connection.execute("COMMIT")

    def _begin(self, works: Iterable[Write]) -> str:
        """The statements that begin a transaction and take its locks."""
        taken = (f"SELECT pg_advisory_xact_lock({self._space}, {lock})" for lock in _locks(works))
        return "; ".join(["BEGIN", *taken])

    async def _keep_only(self, connection: Connection, works: Sequence[Keep]) -> None:
        """Write rows that depend on nothing."""
        rows: dict[Name, tuple[object, ...]] = {}
        for work in works:
            for key, size, value in work.rows:
                name = (work.kind, work.client, key)
                rows.pop(name, None)  # the later one comes later, for its age
                rows[name] = (work.until, size, value)
        if rows:
            await connection.execute(self._keep_at_once, *_columns(rows), self._space, _locks(works))

    async def _keep_all(self, connection: Connection, jobs: Sequence[tuple[WriteJob, Keep]]) -> None:
        wanted = [(work.kind, work.client, key) for _, work in jobs for key in work.unless]
        there = {name: until for name, until, _ in await self._read(connection, self._kept, "size", wanted)}
        rows: dict[Name, tuple[object, ...]] = {}
        for job, work in jobs:
            taken = [key for key in work.unless if there.get((work.kind, work.client, key), work.now) > work.now]
            job.error = conflict(taken[0]) if taken else None
            for key, size, value in work.rows if not taken else ():
                name = (work.kind, work.client, key)
                rows.pop(name, None)  # the later one comes later, for its age
                rows[name] = (work.until, size, value)
                there[name] = work.until
        if rows:
            await connection.execute(self._keep, *_columns(rows))

    async def _add_all(self, connection: Connection, jobs: Sequence[tuple[WriteJob, Add]]) -> None:
        read = await self._read(connection, self._counted, "amounts", [_name(work) for _, work in jobs])
        totals = {name: (until, _amounts(text)) for name, until, text in read}
        marked = [work.mark[:3] for _, work in jobs if work.mark is not None]
        last = {
            name: (until, addition)
            for name, until, addition in await self._read(connection, self._claimed, "holder", marked)
        }
        for job, work in jobs:
            end, amounts = totals.get(_name(work), (work.now, {}))
            amounts = dict(amounts) if end > work.now else {}
            if work.mark is not None:
                known_until, addition = last.get(work.mark[:3], (work.now, ""))
                if known_until > work.now and addition == work.mark.addition:
                    job.result = amounts
                    continue
                last[work.mark[:3]] = (work.mark.until, work.mark.addition)
            for each, amount in work.amounts.items():
                amounts[each] = amounts.get(each, 0.0) + amount
            totals[_name(work)] = (max(end, work.until) if end > work.now else work.until, amounts)
            job.result = dict(amounts)
        written = {name: (until, msgspec.json.encode(amounts).decode()) for name, (until, amounts) in totals.items()}
        await self._put(connection, self._counted, "amounts", written)
        await self._put(connection, self._claimed, "holder", last)

    async def _claim_all(self, connection: Connection, jobs: Sequence[tuple[WriteJob, Claim]]) -> None:
        read = await self._read(connection, self._claimed, "holder", [_name(work) for _, work in jobs])
        held = {name: (until, holder) for name, until, holder in read}
        for job, work in jobs:
            end, holder = held.get(_name(work), (work.now, ""))
            if end > work.now and holder != work.holder:
                job.result = holder
            else:
                # A released claim has expired: it counts as free, and the next prune removes it.
                held[_name(work)] = (work.until, work.holder)
                job.result = work.holder if work.until > work.now else ""
        await self._put(connection, self._claimed, "holder", held)

    async def _hold_all(self, connection: Connection, jobs: Sequence[tuple[WriteJob, Hold]]) -> None:
        if not jobs:
            return
        names = dict.fromkeys((work.kind, work.client) for _, work in jobs)
        held: dict[tuple[str, str], dict[str, tuple[float, str]]] = {name: {} for name in names}
        for kind, client, holder, until, amounts in await connection.fetch(self._held, *zip(*names, strict=True)):
            held[kind, client][holder] = (until, amounts)
        changed: dict[Name, tuple[float, str]] = {}
        for job, work in jobs:
            holds = held[work.kind, work.client]
            # One that was released has expired: the next prune removes it.
            holds[work.holder] = (work.until if work.amounts else 0.0, work.amounts or "{}")
            changed[work.kind, work.client, work.holder] = holds[work.holder]
            job.result = sum_of(amounts for until, amounts in holds.values() if until > work.now)
        await self._put(connection, self._claimed, "holder", changed)

    async def _read(
        self, connection: Connection, table: str, column: str, names: Sequence[Name]
    ) -> list[tuple[Name, float, Any]]:
        """The rows with these names, expired or not."""
        if not names:
            return []
        statement = READ.format(table=table, column=column)
        found = await connection.fetch(statement, *zip(*dict.fromkeys(names), strict=True))
        return [((kind, client, key), until, value) for kind, client, key, until, value in found]

    async def _put(self, connection: Connection, table: str, column: str, rows: dict[Name, tuple[float, str]]) -> None:
        if rows:
            await connection.execute(PUT.format(table=table, column=column), *_columns(rows))


def _locks(works: Iterable[Write]) -> list[int]:
    """The locks of all kinds and clients, in their order."""
    named = {(work.kind, work.client) for work in works if not isinstance(work, Delete)}
    return sorted({zlib.crc32(f"{kind}\0{client}".encode()) % LOCKS for kind, client in named})


def _name(work: Add | Claim) -> Name:
    return work.kind, work.client, work.key


def _columns(rows: dict[Name, Any]) -> list[tuple[object, ...]]:
    return list(zip(*((*name, *values) for name, values in rows.items()), strict=True))


def _amounts(text: str) -> dict[str, float]:
    return msgspec.json.decode(text, type=dict[str, float])


def count_of(status: str) -> int:
    """The count in the status of a command, such as `DELETE 3`."""
    return int(status.rpartition(" ")[2])
