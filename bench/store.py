"""What keeping a row costs: 64 keepers at once, whose rows are committed in groups, next to one after the other.

Wall time, for most of it is waiting for another thread and the disk. The floor is SQLite itself, one transaction a
row, in the thread that asks. Rows of 2 kB; every round has a file of its own. Exits with 1 when a limit is broken.
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

from timing import Row, in_turn, quiet_gc, table
from toolglot.store import SqliteStore
from toolglot.store.opening import open_connections
from toolglot.store.sqlite import KEEP

ROUNDS: Final = 11
ROWS: Final = 2048
KEEPERS: Final = 64
VALUE: Final = os.urandom(2048)
FOR_EVER: Final = 1e12

GROUP_LIMIT: Final = 0.75
FLOOR_LIMIT: Final = 1.0

FLOOR: Final = "sqlite3 itself, a transaction a row"
ALONE: Final = "keep, one after the other"
AT_ONCE: Final = f"keep, {KEEPERS} at once"
TOGETHER: Final = f"keep, {KEEPERS} rows a call"
FIND: Final = "find, one after the other"
FIND_AT_ONCE: Final = f"find, {KEEPERS} at once"

KEYS: Final = [f"{number:032x}" for number in range(ROWS)]
Act = Callable[[SqliteStore, int], Awaitable[None]]


async def keep(store: SqliteStore, number: int) -> None:
    await store.keep("vault", "client", {KEYS[number]: VALUE}, until=FOR_EVER)


async def keep_many(store: SqliteStore, number: int) -> None:
    rows = dict.fromkeys(KEYS[number * KEEPERS : (number + 1) * KEEPERS], VALUE)
    await store.keep("vault", "client", rows, until=FOR_EVER)


async def find(store: SqliteStore, number: int) -> None:
    assert await store.find("vault", "client", [KEYS[number]])


@contextmanager
def new_file() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "store.db"


def stored(act: Act, times: int, at_once: int, *, filled: bool = False) -> Callable[[], float]:
    """Nanoseconds for all rows, by this many askers that each wait for their own answer."""

    async def ask(store: SqliteStore, numbers: Iterator[int]) -> None:
        for number in numbers:
            await act(store, number)

    async def run(file: Path) -> float:
        store = SqliteStore(file)
        if filled:
            await store.keep("vault", "client", dict.fromkeys(KEYS, VALUE), until=FOR_EVER)
        numbers = iter(range(times))
        start = perf_counter_ns()
        await asyncio.gather(*(ask(store, numbers) for _ in range(at_once)))
        spent = perf_counter_ns() - start
        await store.close()
        return spent

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


def main() -> int:
    quiet_gc()
    variants = {
        FLOOR: bare,
        ALONE: stored(keep, ROWS, 1),
        AT_ONCE: stored(keep, ROWS, KEEPERS),
        TOGETHER: stored(keep_many, ROWS // KEEPERS, 1),
        FIND: stored(find, ROWS, 1, filled=True),
        FIND_AT_ONCE: stored(find, ROWS, KEEPERS, filled=True),
    }
    times = in_turn(ROUNDS, variants)
    rows = [
        Row(FLOOR, FLOOR),
        Row(ALONE, FLOOR),
        Row(AT_ONCE, FLOOR, most=FLOOR_LIMIT),
        Row(AT_ONCE, ALONE, most=GROUP_LIMIT),
        Row(TOGETHER, ALONE),
        Row(FIND, FLOOR),
        Row(FIND_AT_ONCE, FIND, most=GROUP_LIMIT),
    ]
    return 0 if table(f"store, {len(VALUE)} byte rows", "ns a row", ROWS, rows, times) else 1


if __name__ == "__main__":
    sys.exit(main())
