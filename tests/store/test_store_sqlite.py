"""The store in a SQLite file: groups of writes, and pruning."""

from __future__ import annotations

import asyncio
import sqlite3
import struct
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.store.sqlite_files import LATER, NOW, found, held, query
from support.waiting import HANG_SECONDS
from toolglot.store import SqliteStore, StoreError, StoreLimits
from toolglot.store.sqlite_opening import connect, retry_while_busy
from toolglot.store.worker import Worker


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def commits_in_journal(file: Path) -> int:
    """Transactions in the write-ahead log: frames that tell the size of the database end one."""
    journal = Path(f"{file}-wal").read_bytes()
    page = struct.unpack_from(">I", journal, 8)[0]
    frames = range(32, len(journal), 24 + page)
    return sum(struct.unpack_from(">I", journal, start + 4)[0] > 0 for start in frames)


# --- groups ---------------------------------------------------------------------------------------


async def test_what_is_queued_is_committed_in_one_transaction(file: Path) -> None:
    store = SqliteStore(file, clock=lambda: NOW)
    before = store.commits, commits_in_journal(file)
    with held(file):
        kept = [asyncio.ensure_future(store.keep("v", "a", {str(n): b"x"}, until=LATER)) for n in range(64)]
        await asyncio.sleep(0)
    await asyncio.gather(*kept)
    assert (store.commits, commits_in_journal(file)) == (before[0] + 1, before[1] + 1)
    for number in range(5):
        await store.keep("v", "a", {str(number): b"y"}, until=LATER)
    assert (store.commits, commits_in_journal(file)) == (before[0] + 6, before[1] + 6)
    await store.close()


async def test_while_another_process_writes_the_loop_runs_and_rows_are_found(file: Path) -> None:
    store = SqliteStore(file, clock=lambda: NOW)
    await store.keep("v", "a", {"k": b"1"}, until=LATER)
    with held(file):
        kept = asyncio.ensure_future(store.keep("v", "a", {"k": b"2"}, until=LATER))
        for _ in range(3):
            assert await store.find("v", "a", ["k"]) == {"k": b"1"}
        assert not kept.done()
    await kept
    assert await store.find("v", "a", ["k"]) == {"k": b"2"}
    await store.close()


async def test_who_waits_too_long_for_another_process_is_an_error_all_at_once_and_later_it_works(file: Path) -> None:
    store = SqliteStore(file, clock=lambda: NOW, busy_seconds=1.0)
    with held(file):
        asks = [store.keep("v", "a", {str(n): b"x"}, until=LATER) for n in range(1000)]
        async with asyncio.timeout(HANG_SECONDS):  # one wait for all of them, not one each
            ended = await asyncio.gather(*asks, return_exceptions=True)
    assert {type(one) for one in ended} == {StoreError}
    assert "locked the store for too long" in str(ended[0])
    assert store.commits == 0
    await store.keep("v", "a", {"k": b"1"}, until=LATER)
    assert await store.find("v", "a", ["k", "0"]) == {"k": b"1"}
    await store.close()


async def test_what_waits_is_bounded(file: Path) -> None:
    store = SqliteStore(file, clock=lambda: NOW, limits=StoreLimits(max_waiting_bytes=10_000))
    with held(file):
        first = asyncio.ensure_future(store.keep("v", "a", {"1": b"x" * 20_000}, until=LATER))
        await asyncio.sleep(0)
        with pytest.raises(StoreError, match="too many writes are pending"):
            await store.keep("v", "a", {"2": b"x"}, until=LATER)
    await first
    await store.keep("v", "a", {"3": b"x"}, until=LATER)
    assert list(await store.find("v", "a", ["1", "2", "3"])) == ["1", "3"]
    await store.close()


async def test_a_very_large_group_is_several(file: Path) -> None:
    store = SqliteStore(file, clock=lambda: NOW)
    with held(file):
        value = b"x" * 10 * 1024**2
        kept = [asyncio.ensure_future(store.keep("v", "a", {str(n): value}, until=LATER)) for n in range(4)]
        await asyncio.sleep(0)
    await asyncio.gather(*kept)
    assert store.commits == 2
    await store.close()


def test_a_loop_that_is_gone_stops_no_other_caller(file: Path) -> None:
    store = SqliteStore(file, clock=lambda: NOW)

    async def ask_and_leave() -> None:
        left = asyncio.ensure_future(store.keep("v", "a", {"left": b"x"}, until=LATER))
        await asyncio.sleep(0)
        assert not left.done()

    async def act() -> None:
        await store.keep("v", "a", {"stayed": b"x"}, until=LATER)
        assert list(await store.find("v", "a", ["left", "stayed"])) == ["left", "stayed"]
        await store.close()

    with held(file):
        asyncio.run(ask_and_leave())
    asyncio.run(act())


def test_loops_in_several_threads_share_a_store(file: Path) -> None:
    store = SqliteStore(file, clock=lambda: NOW)

    async def act(name: str) -> None:
        await asyncio.gather(*(store.keep("v", name, {str(n): b"x"}, until=LATER) for n in range(50)))

    threads = [threading.Thread(target=lambda name=name: asyncio.run(act(name))) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in "abcd":
        assert len(asyncio.run(store.find("v", name, [str(n) for n in range(50)]))) == 50
    asyncio.run(store.close())


def worker_in_memory() -> Worker:
    connection = connect(":memory:", 1)
    connection.execute("CREATE TABLE t (a NOT NULL)")
    return Worker(connection, "BEGIN IMMEDIATE", file="here", seconds=1, max_waiting=10**6)


def stumble(connection: sqlite3.Connection) -> None:
    raise KeyError("a mistake of ours")


def insert(value: object) -> Any:
    return lambda connection: connection.execute("INSERT INTO t VALUES (?)", (value,)).rowcount


async def in_one_group(worker: Worker, *jobs: Any) -> list[Any]:
    """Queued while the worker is busy with something else."""
    inside, door = threading.Event(), threading.Event()

    def stay(_: sqlite3.Connection) -> None:
        inside.set()
        door.wait(HANG_SECONDS)

    first = asyncio.ensure_future(worker.run(stay))
    await asyncio.to_thread(inside.wait, HANG_SECONDS)
    rest = [asyncio.ensure_future(worker.run(job)) for job in jobs]
    await asyncio.sleep(0)
    door.set()
    await first
    return await asyncio.gather(*rest, return_exceptions=True)


async def test_the_failure_of_one_in_a_group_is_not_that_of_the_others() -> None:
    worker = worker_in_memory()
    ended = await in_one_group(worker, insert(1), insert(None), stumble, insert(3))
    assert [ended[0], ended[3]] == [1, 1]
    assert isinstance(ended[1], StoreError)
    assert str(ended[1]) == "here: the store failed: NOT NULL constraint failed: t.a"
    assert isinstance(ended[2], KeyError)
    assert await worker.run(lambda c: c.execute("SELECT a FROM t").fetchall()) == [(1,), (3,)]
    worker.end()
    await worker.wait_for_end()


async def test_a_connection_that_is_lost_is_reported_to_every_caller() -> None:
    def lose(connection: sqlite3.Connection) -> None:
        connection.close()
        raise sqlite3.OperationalError("lost")

    worker = worker_in_memory()
    ended = await in_one_group(worker, lose, insert(1))
    assert {type(one) for one in ended} == {StoreError}
    with pytest.raises(StoreError, match="closed database"):
        await worker.run(insert(2))
    worker.end()
    await worker.wait_for_end()


def test_only_being_held_is_waited_for() -> None:
    tries = []

    def act() -> None:
        tries.append(1)
        raise sqlite3.OperationalError("no such table: t")

    with pytest.raises(sqlite3.OperationalError):
        retry_while_busy(act, 10)
    assert len(tries) == 1


def test_what_is_held_is_tried_again_also_where_sqlite_does_not_wait(file: Path) -> None:
    asyncio.run(found(file, []))
    tries = []
    with (
        closing(sqlite3.connect(file, isolation_level=None)) as holder,
        closing(connect(file.as_uri(), 0)) as waiting,
    ):
        holder.execute("BEGIN IMMEDIATE")

        def act() -> None:
            tries.append(1)
            if len(tries) == 3:
                holder.execute("ROLLBACK")
            waiting.execute("BEGIN IMMEDIATE")

        retry_while_busy(act, 10)
    assert len(tries) == 3


# --- prune ----------------------------------------------------------------------------------------


def test_prune_goes_in_batches_and_others_write_in_between(file: Path) -> None:
    order = []

    async def prune(store: SqliteStore) -> None:
        assert await store.prune(NOW) == 5500
        order.append("pruned")

    async def keep(store: SqliteStore) -> None:
        await store.keep("v", "a", {"new": b"x"}, until=LATER)
        order.append("kept")

    async def act() -> None:
        store = SqliteStore(file, clock=lambda: NOW)
        await store.keep("v", "a", {str(n): b"x" for n in range(5500)}, until=NOW - 1)
        await store.keep("v", "a", {"alive": b"x"}, until=LATER)
        before = store.commits
        await asyncio.gather(prune(store), keep(store))
        assert order == ["kept", "pruned"]
        assert store.commits - before >= 6, "a thousand rows at most each"
        assert list(await store.find("v", "a", ["alive", "new", "0"])) == ["alive", "new"]
        await store.close()

    asyncio.run(act())
    assert query(file, "SELECT count(*) FROM kept") == [(2,)]


async def test_prune_says_how_many_were_too_old_or_too_many(file: Path) -> None:
    store = SqliteStore(file, clock=lambda: NOW, limits=StoreLimits(max_bytes=5100))
    await store.keep("v", "a", {"past": b"x" * 100_000}, until=NOW)
    await store.keep("v", "a", {str(n): b"x" * 1000 for n in range(10)}, until=LATER)
    assert await store.prune(NOW) == 1 + 5
    assert await store.prune(NOW) == 0
    await store.close()


async def test_what_is_too_much_goes_in_batches_too(file: Path) -> None:
    store = SqliteStore(file, clock=lambda: NOW, limits=StoreLimits(max_bytes=500))
    await store.keep("v", "a", {f"{n:04}": b"x" * 94 for n in range(3005)}, until=LATER)
    before = store.commits
    assert await store.prune(NOW) == 3000
    assert store.commits - before == 3 + 4, "three that find nothing past its time, three of a thousand, the last"
    await store.close()


def test_an_age_does_not_come_again(file: Path) -> None:
    async def act() -> None:
        store = SqliteStore(file, clock=lambda: NOW)
        await store.keep("v", "a", {"1": b"x", "2": b"x"}, until=LATER)
        assert await store.remove("v", "a", ["1", "2"]) == 2
        await store.keep("v", "a", {"3": b"x"}, until=LATER)
        await store.close()

    asyncio.run(act())
    assert query(file, "SELECT age FROM kept") == [(3,)]


async def test_two_that_prune_at_once_take_no_more_than_one(file: Path) -> None:
    limits = StoreLimits(max_bytes=1_500_000)
    stores = [SqliteStore(file, clock=lambda: NOW, limits=limits) for _ in range(2)]
    await stores[0].keep("v", "a", {f"{n:04}": b"x" * 994 for n in range(3000)}, until=LATER)
    gone = await asyncio.gather(*(store.prune(NOW) for store in stores))
    assert sum(gone) == 1500
    for store in stores:
        await store.close()


def test_the_sum_of_all_rows_and_the_search_for_old_ones_need_only_an_index(file: Path) -> None:
    asyncio.run(found(file, []))
    assert "USING COVERING INDEX kept_by_until" in str(query(file, "EXPLAIN QUERY PLAN SELECT sum(size) FROM kept"))
    old = "EXPLAIN QUERY PLAN SELECT age FROM kept WHERE until <= 1 ORDER BY until LIMIT 9"
    assert "USING COVERING INDEX kept_by_until (until<?)" in str(query(file, old))
    one = "EXPLAIN QUERY PLAN SELECT value FROM kept WHERE kind = 'a' AND client = 'b' AND key = 'c' AND until > 1"
    assert "USING INDEX kept_by_name (kind=? AND client=? AND key=?)" in str(query(file, one))
