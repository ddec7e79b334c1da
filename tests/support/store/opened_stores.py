"""The stores that there are, and how a test uses one. What they have in common is in `test_store.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from support.store.servers import postgres_url, redis_url
from toolglot.store import SqliteStore, Store, StoreLimits
from toolglot.store.postgres import PostgresStore
from toolglot.store.redis import RedisStore

Make = Callable[[Path, Callable[[], float], StoreLimits], Store]

STORES: dict[str, Make] = {
    "sqlite file": lambda folder, clock, limits: SqliteStore(folder / "store.db", clock=clock, limits=limits),
    "sqlite durable": lambda folder, clock, limits: SqliteStore(folder / "store.db", True, clock=clock, limits=limits),
    "sqlite memory": lambda _, clock, limits: SqliteStore(":memory:", clock=clock, limits=limits),
    "postgres": lambda folder, clock, limits: PostgresStore(postgres_url(folder), clock=clock, limits=limits),
    "redis": lambda folder, clock, limits: RedisStore(redis_url(folder), clock=clock, limits=limits),
}
LASTING = ["sqlite file", "sqlite durable", "postgres", "redis"]
"""Those whose rows are there when they are opened again."""

NOW = 1_700_000_000.0
LATER = NOW + 60


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


class Use:
    """Runs something with a store, and closes it after."""

    def __init__(self, make: Make, folder: Path) -> None:
        self.make = make
        self.folder = folder
        self.clock = Clock()

    def __call__(self, act: Callable[[Store], Awaitable[None]], limits: StoreLimits | None = None) -> None:
        async def run() -> None:
            store = self.make(self.folder, self.clock, limits or StoreLimits())
            try:
                await act(store)
            finally:
                await store.close()

        asyncio.run(run())
