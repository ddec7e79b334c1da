"""Stores for the gateway and for sessions: opaque rows by kind, client and key, with an expiry time.

    store = open_store("/var/lib/toolglot/store.db")
    await store.keep("vault", client, {"key": b"value"}, until=time.time() + 3600)   # returns when it is committed
    await store.find("vault", client, ["key"])                                       # {"key": b"value"}
    await store.add("usage", client, "2026-11-15", {"requests": 1}, until=math.inf)  # the new totals
    await store.claim("sessions", "", "id", "host:pid", until=time.time() + 30)      # who holds it now
    await store.hold("tokens", client, "gateway 1", {"tokens": 9}, until=time.time() + 20)  # what all hold together
    await store.scan("usage", client=client, prefix="2026-", limit=100)              # rows, in the order of their keys
    await store.close()

`interface.py` says what every store does, and its limits; `checked.py` checks the calls of all of them. `sqlite.py` is
the default, `postgres.py` and `redis.py` are for several machines.

Law: a row is returned only for the kind and client that it was stored for, until it expires.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from toolglot.errors import InputError, how_to_install, quote
from toolglot.store.addresses import SCHEMES, display_location, is_address
from toolglot.store.interface import (
    DEFAULT_STORE_LIMITS,
    Row,
    RowStore,
    Store,
    StoreConflictError,
    StoreError,
    StoreLimits,
)
from toolglot.store.sqlite import SqliteStore

__all__ = [
    "DEFAULT_STORE_LIMITS",
    "Row",
    "RowStore",
    "SqliteStore",
    "Store",
    "StoreConflictError",
    "StoreError",
    "StoreLimits",
    "display_location",
    "is_address",
    "open_store",
]

HINT: Final = 'use the path of a file, ":memory:", postgres://… or redis://…'


def open_store(
    where: str,
    *,
    durable: bool = False,
    limits: StoreLimits = DEFAULT_STORE_LIMITS,
    clock: Callable[[], float] = time.time,
) -> Store:
    """The store at `where`: a file, which is created if it is missing, ":memory:", or the address of a server.

    It reads the disk, so it blocks an event loop. A server is connected to when the store is first used. An address may
    contain a password: messages show only its scheme.
    """
    scheme, mark, _ = where.partition("://")
    if not mark:
        return SqliteStore(where, durable, limits=limits, clock=clock)
    extra = SCHEMES.get(scheme.lower())
    if extra is None:
        raise InputError(f"unknown kind of store {quote(scheme)}", path="$.store", hint=HINT)
    try:
        store_class = _server_store(extra)
    except ImportError as error:
        driver = {"postgres": "asyncpg", "redis": "redis"}[extra]
        raise InputError(
            f"a store at {scheme.lower()}:// needs the package {driver}: {error}",
            path="$.store",
            hint=how_to_install(extra),
        ) from None
    return store_class(where, durable, limits=limits, clock=clock)


def _server_store(extra: str) -> Callable[..., Store]:
    """The class of a store on a server. Its driver is imported here."""
    if extra == "postgres":
        from toolglot.store.postgres import PostgresStore  # noqa: PLC0415

        return PostgresStore
    from toolglot.store.redis import RedisStore  # noqa: PLC0415

    return RedisStore
