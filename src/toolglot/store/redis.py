"""The store in Redis: for gateways and sessions on several machines, where data may be only as durable as Redis is.

Every operation is a script. Writes that wait at the same time are one transaction and, if the server syncs its disk
before it replies, share one sync. One connection writes and one reads; both live in the event loop of a thread of the
store, and are opened when they are needed. The server's settings decide how durable a row is: `warnings` lists where it
is less durable than a file.

Law: every failure of the server or the network is a `StoreError` that says where and why, and never shows the password.
Nothing is sent again unless the server has reported that it did not run it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha1
from typing import Any, Final

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoScriptError, ReadOnlyError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from toolglot.errors import quote
from toolglot.store import redis_scripts as scripts
from toolglot.store.addresses import dead_peer_options, read_address
from toolglot.store.checked import Add, CheckedStore, Claim, Hold, Keep, NamedRows, Scan
from toolglot.store.interface import (
    DEFAULT_STORE_LIMITS,
    Row,
    StoreError,
    StoreLimits,
    check_call_bytes,
    conflict,
    sum_of,
)
from toolglot.store.job_queue import JobQueue, LoopThread
from toolglot.store.jobs import GROUP_BYTES, StoreJob

PREFIX: Final = re.compile(r"[a-z0-9_]{1,63}")
CONNECT_SECONDS: Final = 10.0
RESPONSE_SECONDS: Final = 60.0
WRITING, READING = "writing", "reading"
PRUNED_ROWS: Final = 1000
MAX_VISITED: Final = 1000
"""Names that one script visits at most: the server does nothing else meanwhile."""

FAILURES: Final = (RedisError, OSError, TimeoutError, ValueError)
Script = tuple[str, tuple[bytes | str, ...]]
"""A script and its arguments."""

SHA: Final = {script: sha1(script.encode()).hexdigest() for script in scripts.SCRIPTS}  # noqa: S324 — Redis names them so

NO_DISK: Final = "the server stores nothing on disk: when it stops, all rows are lost (set appendonly yes)"
SNAPSHOTS: Final = "the server writes snapshots only: a crash loses everything after the last one (set appendonly yes)"
SECONDS: Final = (
    "the server writes to disk each second: a crash may lose the rows of the last one (set appendfsync always)"
)
READ_ONLY: Final = (
    "the server is a replica and accepts no writes; set `store` to the address of its master, or promote it"
)
TOO_FEW_REPLICAS: Final = (
    "the server accepts no writes while it has fewer replicas than min-replicas-to-write; start them, or lower that"
)
EVICTS: Final = "the server may evict any row when its memory is full (set maxmemory-policy noeviction)"


class RedisStore(CheckedStore):
    """A `Store` under a prefix of a Redis database."""

    def __init__(
        self,
        url: str,
        durable: bool = False,
        *,
        clock: Callable[[], float] = time.time,
        limits: StoreLimits = DEFAULT_STORE_LIMITS,
    ) -> None:
        super().__init__(clock, limits)
        self._address = read_address(url, kind="redis", parameter="prefix", pattern=PREFIX)
        self._prefix = f"{{{self._address.name}}}"
        self._durable = durable
        self._clients: dict[str, Redis] = {}
        self._warnings: tuple[str, ...] = ()
        self._loop_thread = LoopThread("toolglot store: redis", self._shut)
        queue = partial(
            JobQueue[Script],
            self._loop_thread,
            location=self._address.location,
            max_waiting=limits.max_waiting_bytes,
            width=1,
        )
        self._writer = queue(partial(self._carry_out, WRITING), group_bytes=GROUP_BYTES)
        self._reader = queue(partial(self._carry_out, READING), group_bytes=GROUP_BYTES, skips_cancelled=True)

    def __repr__(self) -> str:
        return f"RedisStore({self._address.location!r})"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where this server is less durable than a file; known once the store has been used."""
        return self._warnings

    @property
    def commits(self) -> int:
        """How many groups this store has written."""
        return self._writer.groups

    async def _keep(self, operation: Keep) -> None:
        arguments: list[bytes | str] = [
            repr(operation.now),
            repr(operation.until),
            operation.kind,
            operation.client,
            str(len(operation.unless)),
            *operation.unless,
        ]
        for key, size, value in operation.rows:
            arguments += (key, str(size), value)
        there = await self._writer.run((scripts.KEEP, tuple(arguments)), operation.size)
        if there is not None:
            raise conflict(there.decode())

    async def _find(self, operation: NamedRows) -> dict[str, bytes]:
        wanted, limit = operation.keys, str(self._limits.max_call_bytes)
        arguments = (repr(operation.now), operation.kind, operation.client, limit, *wanted)
        found = await self._reader.run((scripts.FIND, arguments), sum(map(len, wanted)))
        if isinstance(found, int):
            check_call_bytes(found, self._limits)
        return {key: value for key, value in zip(wanted, found, strict=True) if value is not None}

    async def _remove(self, operation: NamedRows) -> int:
        arguments = (repr(operation.now), operation.kind, operation.client, *operation.keys)
        gone: int = await self._writer.run((scripts.REMOVE, arguments))
        return gone

    async def _add(self, operation: Add) -> dict[str, float]:
        mark = operation.mark
        pairs = (word for name, amount in operation.amounts.items() for word in (name, repr(amount)))
        marked = (
            ("", "", "")
            if mark is None
            else (f"{mark.kind}\0{mark.client}\0{mark.key}", mark.addition, repr(mark.until))
        )
        name = (operation.kind, operation.client, operation.key)
        arguments = (repr(operation.now), repr(operation.until), *name, *marked, *pairs)
        return _totals(await self._writer.run((scripts.ADD, arguments)))

    async def _claim(self, operation: Claim) -> str:
        name = (operation.kind, operation.client, operation.key)
        arguments = (repr(operation.now), repr(operation.until), *name, operation.holder)
        current: bytes = await self._writer.run((scripts.CLAIM, arguments))
        return current.decode()

    async def _hold(self, operation: Hold) -> dict[str, float]:
        name = (operation.kind, operation.client, operation.holder)
        arguments = (repr(operation.now), repr(operation.until), *name, operation.amounts)
        return sum_of(await self._writer.run((scripts.HOLD, arguments)))

    async def _scan(self, operation: Scan) -> list[Row]:
        kind, prefix, limit, now = operation.kind, operation.prefix, operation.limit, operation.now
        first, last = _range(operation.client, prefix, operation.after)
        found, left = list[Row](), self._limits.max_call_bytes
        while first:
            arguments = (repr(now), kind, first, last, prefix, str(limit - len(found)), str(left), str(MAX_VISITED))
            total, *rest = await self._reader.run((scripts.SCAN, arguments))
            if not rest:
                check_call_bytes(self._limits.max_call_bytes - left + total, self._limits)
            left -= total
            seen, rows = rest
            found += [_row(*rows[start : start + 3]) for start in range(0, len(rows), 3)]
            first = b"(" + seen if seen else b""
        return found

    async def _prune(self, now: float) -> int:
        gone = await self._batches(scripts.EXPIRE, repr(now), "row")
        gone += await self._batches(scripts.EXPIRE, repr(now), "sum")
        await self._batches(scripts.EXPIRE, repr(now), "claim")
        return gone + await self._batches(scripts.SHRINK, str(self._limits.max_bytes))

    async def close(self) -> None:
        await self._loop_thread.close()

    async def _batches(self, script: str, *arguments: str) -> int:
        """Run a script in batches of a thousand, so that other clients of the server are served in between."""
        gone = 0
        while batch := await self._writer.run((script, (*arguments, str(PRUNED_ROWS)))):
            gone += batch
            if batch < PRUNED_ROWS:
                break
        return gone

    # --- in the thread's loop -----------------------------------------------------------------------

    async def _carry_out(self, queue: str, jobs: list[StoreJob[Script]]) -> None:
        """Send all jobs in one message; each gets its own reply."""
        try:
            client = await self._client(queue)
            replies = await self._send(client, jobs, together=queue == WRITING)
            unknown = [job for job, reply in zip(jobs, replies, strict=True) if isinstance(reply, NoScriptError)]
            if unknown:  # the server was restarted, and has not run these
                await self._load(client)
                again = iter(await self._send(client, unknown, together=queue == WRITING))
                replies = [next(again) if isinstance(reply, NoScriptError) else reply for reply in replies]
        except (StoreError, *FAILURES) as error:
            replies = [error] * len(jobs)
        if any(map(_is_read_only, replies)):
            await self._disconnect(queue)
        for job, reply in zip(jobs, replies, strict=True):
            if isinstance(reply, Exception):
                job.error = self._store_error(reply)
            else:
                job.result = reply

    async def _send(self, client: Redis, jobs: Sequence[StoreJob[Script]], *, together: bool) -> list[Any]:
        """The replies. `together` sends one transaction, which the server writes to its disk in one go, while it would
        write a long message in parts; a transaction that it refuses has done nothing."""
        pipeline = client.pipeline(transaction=together and len(jobs) > 1)
        for job in jobs:
            script, arguments = job.work
            pipeline.execute_command("EVALSHA", SHA[script], 1, self._prefix, *arguments)
        try:
            return await pipeline.execute(raise_on_error=False)
        except ResponseError as error:
            if len(jobs) == 1:
                return [error]
            return [reply for job in jobs for reply in await self._send(client, [job], together=False)]

    async def _client(self, queue: str) -> Redis:
        """A client with one connection, which it opens again if it was lost."""
        if queue not in self._clients:
            client = Redis.from_url(
                self._address.url,
                max_connections=1,
                retry=Retry(NoBackoff(), 0),  # an addition that was sent twice would count twice
                socket_connect_timeout=CONNECT_SECONDS,
                socket_timeout=RESPONSE_SECONDS,
                socket_keepalive=True,
                socket_keepalive_options=dead_peer_options(),
                decode_responses=False,
            )
            try:
                await self._load(client)
            except BaseException:
                await client.aclose()
                raise
            self._clients[queue] = client
        return self._clients[queue]

    async def _disconnect(self, queue: str) -> None:
        """Open a new connection next time: the server has become a replica, and the address may lead to another now."""
        client = self._clients.pop(queue, None)
        if client is not None:
            await client.aclose()

    async def _load(self, client: Redis) -> None:
        """Check the version and the settings of the server, and load the scripts."""
        await client.setnx(f"{self._prefix}:version", scripts.VERSION)
        version = await client.get(f"{self._prefix}:version")
        if version != b"%d" % scripts.VERSION:
            found = quote(_text(version))
            raise StoreError(
                f"the store has version {found}, and this toolglot supports {scripts.VERSION}; upgrade toolglot"
            )
        self._warnings = await self._find_warnings(client)
        for script in scripts.SCRIPTS:
            await client.script_load(script)

    async def _find_warnings(self, client: Redis) -> tuple[str, ...]:
        found = {**await client.info("persistence"), **await client.info("memory")}
        try:
            settings = {**await client.config_get("save"), **await client.config_get("appendfsync")}
        except ResponseError:  # some hosts do not allow it: then snapshots are assumed
            settings = {"save": "?"}
        warnings = []
        if not found.get("aof_enabled"):
            warnings.append(SNAPSHOTS if settings.get("save") else NO_DISK)
        elif self._durable and settings.get("appendfsync") != "always":
            warnings.append(SECONDS)
        if str(found.get("maxmemory_policy", "")).startswith("allkeys"):
            warnings.append(EVICTS)
        return tuple(warnings)

    async def _shut(self) -> None:
        for client in self._clients.values():
            await client.aclose()

    def _store_error(self, error: Exception) -> StoreError:
        """The error as a `StoreError`, without the password."""
        reason = self._address.hide(_reason(error))
        return StoreError(f"{self._address.location}: {reason}")


def _text(reply: object) -> str:
    return reply.decode(errors="replace") if isinstance(reply, bytes) else str(reply)


def _is_read_only(reply: object) -> bool:
    """Whether the server accepts no writes. Older servers report it inside the error of a script."""
    return isinstance(reply, ReadOnlyError) or (isinstance(reply, ResponseError) and "READONLY" in str(reply))


def _reason(error: Exception) -> str:
    if isinstance(error, StoreError):
        return str(error)
    if isinstance(error, TimeoutError | RedisTimeoutError):
        return "the server takes too long to respond; check that it runs, can be reached and is not overloaded"
    if _is_read_only(error):
        return READ_ONLY
    if isinstance(error, ResponseError) and "NOREPLICAS" in str(error):
        return TOO_FEW_REPLICAS
    if isinstance(error, OSError | RedisConnectionError) and not isinstance(error, AuthenticationError):
        return f"the server cannot be reached: {error}; start it, or check the address in `store`"
    return f"the store failed: {str(error) or type(error).__name__}"


def _range(client: str | None, prefix: str, after: str) -> tuple[bytes, bytes]:
    """The range of names, in the syntax of Redis: `[` with, `(` without the name itself."""
    past = b"(" + after.encode() if after else b"-"
    if client is None:
        return past, b"+"
    head = f"{client}\0{prefix}".encode()
    return past if after and after.encode() >= head else b"[" + head, b"(" + head + b"\xff"


def _totals(pairs: Sequence[bytes]) -> dict[str, float]:
    """Totals in the order of their names: a large hash has no order of its own."""
    found = {name.decode(): total for name, total in zip(pairs[::2], pairs[1::2], strict=True)}
    return {name[1:]: float(found[name]) for name in sorted(found) if name != "u"}


def _row(name: bytes, value: bytes | None, pairs: Sequence[bytes] | None) -> Row:
    client, _, key = name.decode().partition("\0")
    return Row(client, key, value, _totals(pairs or ()))
