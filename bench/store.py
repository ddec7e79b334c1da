"""What keeping a row costs: 64 keepers at once, whose rows are committed in groups, next to one after the other.

Wall time, because most of it is waiting for another thread and the disk. The floor is SQLite itself, one transaction a
row, in the calling thread. Rows of 2 kB; every round has a file of its own. Durable rows wait for the disk at each
commit: there a group must be worth it. Postgres and Redis are measured where they are installed, and have no limit.
Exits with 1 when a limit is broken.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter_ns
from typing import Final

import pytest

from timing import Row, in_turn, quiet_gc, table
from toolglot.store import SqliteStore, Store, open_store
from toolglot.store.sqlite import KEEP
from toolglot.store.sqlite_opening import open_connections

# Where the servers of the tests are started.
sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support.store.servers import postgres_url, redis_url

ROUNDS: Final = 11
ROWS: Final = 2048
KEEPERS: Final = 64
PART: Final = 4
"""Of the rows, one of so many where each waits for the disk."""
VALUE: Final = os.urandom(2048)
FOR_EVER: Final = 1e12

GROUP_LIMIT: Final = 0.75
DURABLE_LIMIT: Final = 0.25
"""Of the time that single rows take: a group is at least four times faster."""
FLOOR_LIMIT: Final = 1.0

FLOOR: Final = "sqlite3 itself, a transaction a row"
ALONE: Final = "keep, one after the other"
AT_ONCE: Final = f"keep, {KEEPERS} at once"
TOGETHER: Final = f"keep, {KEEPERS} rows a call"
FIND: Final = "find, one after the other"
FIND_AT_ONCE: Final = f"find, {KEEPERS} at once"

DURABLE: Final = "durable keep, one after the other"
DURABLE_AT_ONCE: Final = f"durable keep, {KEEPERS} at once"
SERVERS: Final = {"Postgres": postgres_url, "Redis": redis_url}

KEYS: Final = [f"{number:032x}" for number in range(ROWS)]
Act = Callable[[Store, int], Awaitable[None]]
Open = Callable[[Path], Store]


async def keep(store: Store, number: int) -> None:
    await store.keep("vault", "client", {KEYS[number]: VALUE}, until=FOR_EVER)


async def keep_many(store: Store, number: int) -> None:
    rows = dict.fromkeys(KEYS[number * KEEPERS : (number + 1) * KEEPERS], VALUE)
    await store.keep("vault", "client", rows, until=FOR_EVER)


async def find(store: Store, number: int) -> None:
    assert await store.find("vault", "client", [KEYS[number]])


@contextmanager
def new_file() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "store.db"


def store_round(
    act: Act, times: int, at_once: int, *, filled: bool = False, open_at: Open = SqliteStore, part: int = 1
) -> Callable[[], float]:
    """Nanoseconds for all rows, by this many concurrent callers; measured on a part of them."""

    async def call_all(store: Store, numbers: Iterator[int]) -> None:
        for number in numbers:
            await act(store, number)

    async def run(file: Path) -> float:
        store = open_at(file)
        await store.find("vault", "client", [])  # connects to a server
        if filled:
            await store.keep("vault", "client", dict.fromkeys(KEYS, VALUE), until=FOR_EVER)
        numbers = iter(range(times // part))
        start = perf_counter_ns()
        await asyncio.gather(*(call_all(store, numbers) for _ in range(at_once)))
        spent = perf_counter_ns() - start
        await store.close()
        return spent * part

    def one_round() -> float:
        with new_file() as file:
            return asyncio.run(run(file))

    return one_round


def bare() -> float:
    with new_file() as file:
        writing, reading = open_connections(str(file), 1.0)
        start = perf_counter_ns()
        for key in KEYS:
            writing.execute("BEGIN IMMEDIATE")
            writing.execute(KEEP, ("vault", "client", key, FOR_EVER, len(VALUE), VALUE))
            writing.execute("COMMIT")
        spent = perf_counter_ns() - start
        writing.close()
        if reading is not None:
            reading.close()
        return spent


def durable(file: Path) -> Store:
    return SqliteStore(file, durable=True)


def server_variants(name: str) -> tuple[dict[str, Callable[[], float]], list[Row]]:
    """The same on a server that waits for its disk, if it is installed."""
    alone, at_once = f"{name}, one after the other", f"{name}, {KEEPERS} at once"

    def open_at(file: Path) -> Store:
        return open_store(SERVERS[name](file), durable=True)

    try:
        SERVERS[name](Path())
    except pytest.skip.Exception as error:
        return {}, [Row(at_once, alone, missing=str(error), excused=True)]
    variants = {
        alone: store_round(keep, ROWS, 1, open_at=open_at, part=PART),
        at_once: store_round(keep, ROWS, KEEPERS, open_at=open_at, part=PART),
    }
    return variants, [Row(alone, DURABLE), Row(at_once, alone)]


def main() -> int:
    quiet_gc()
    variants = {
        FLOOR: bare,
        ALONE: store_round(keep, ROWS, 1),
        AT_ONCE: store_round(keep, ROWS, KEEPERS),
        TOGETHER: store_round(keep_many, ROWS // KEEPERS, 1),
        FIND: store_round(find, ROWS, 1, filled=True),
        FIND_AT_ONCE: store_round(find, ROWS, KEEPERS, filled=True),
        DURABLE: store_round(keep, ROWS, 1, open_at=durable, part=PART),
        DURABLE_AT_ONCE: store_round(keep, ROWS, KEEPERS, open_at=durable, part=PART),
    }
    servers = [server_variants(name) for name in SERVERS]
    for more, _ in servers:
        variants |= more
    times = in_turn(ROUNDS, variants)
    rows = [
        Row(FLOOR, FLOOR),
        Row(ALONE, FLOOR),
        Row(AT_ONCE, FLOOR, max_ratio=FLOOR_LIMIT),
        Row(AT_ONCE, ALONE, max_ratio=GROUP_LIMIT),
        Row(TOGETHER, ALONE),
        Row(FIND, FLOOR),
        Row(FIND_AT_ONCE, FIND, max_ratio=GROUP_LIMIT),
        Row(DURABLE, ALONE),
        Row(DURABLE_AT_ONCE, DURABLE, max_ratio=DURABLE_LIMIT),
        *(row for _, found in servers for row in found),
    ]
    return 0 if table(f"store, {len(VALUE)} byte rows", "ns a row", ROWS, rows, times) else 1


if __name__ == "__main__":
    sys.exit(main())
