"""Files of SQLite stores, and processes that write to them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from toolglot.store import SqliteStore

NOW = 1_700_000_000.0
LATER = NOW + 60


@contextmanager
def held(file: Path) -> Iterator[None]:
    """As if another process were writing."""
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def query(file: Path, statement: str) -> list[Any]:
    with closing(sqlite3.connect(file, isolation_level=None)) as looking:
        return looking.execute(statement).fetchall()


async def found(file: Path, keys: list[str], client: str = "a") -> dict[str, bytes]:
    store = SqliteStore(file, clock=lambda: NOW)
    try:
        parts = [await store.find("vault", client, keys[start : start + 5000]) for start in range(0, len(keys), 5000)]
    finally:
        await store.close()
    return {key: value for part in parts for key, value in part.items()}
