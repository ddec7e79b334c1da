"""Where the gateway keeps what a client's protocol cannot carry: opaque rows, by kind, client and key, for a time.

    store = open_store("/var/lib/toolglot/store.db")
    await store.keep("vault", client, {"key": b"value"}, until=time.time() + 3600)   # returns when it is committed
    await store.find("vault", client, ["key"])                                       # {"key": b"value"}
    await store.add("usage", client, "2026-11-15", {"requests": 1}, until=math.inf)  # the new totals
    await store.scan("usage", client=client, prefix="2026-", limit=100)              # rows, in the order of their keys
    await store.close()

`interface.py` says what every store does, and how much it takes; `sqlite.py` is the one there is today.

Law: a row is given to the client and the kind that it was kept for, until its time, and to nobody else.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from toolglot.errors import InputError, quote
from toolglot.store.interface import DEFAULT_STORE_LIMITS, Row, Store, StoreError, StoreLimits
from toolglot.store.sqlite import SqliteStore

__all__ = ["DEFAULT_STORE_LIMITS", "Row", "SqliteStore", "Store", "StoreError", "StoreLimits", "open_store"]

LATER: Final = {"postgres": "Postgres", "postgresql": "Postgres", "redis": "Redis", "rediss": "Redis"}
HINT: Final = 'give the path of a file, or ":memory:"'


def open_store(
    where: str, *, limits: StoreLimits = DEFAULT_STORE_LIMITS, clock: Callable[[], float] = time.time
) -> Store:
    """The store at `where`: a file, made when it is missing, or ":memory:". Reads the disk: not for a running loop's
    busy hours.

    An address may hold a password: no message quotes more of it than its scheme.
    """
    scheme, mark, _ = where.partition("://")
    if not mark:
        return SqliteStore(where, limits=limits, clock=clock)
    if name := LATER.get(scheme.lower()):
        raise InputError(f"a store in {name} is not part of this release", path="$.store", hint=HINT)
    raise InputError(f"there is no store of the kind {quote(scheme)}", path="$.store", hint=HINT)
