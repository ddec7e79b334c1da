"""A file of a SQLite store: several processes, full disks, other versions, files that are no store."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.store.sqlite_files import LATER, NOW, found, held, query
from toolglot import InputError
from toolglot.errors import VersionError
from toolglot.store import SqliteStore, StoreConflictError, StoreError, StoreLimits
from toolglot.store.schema import MIGRATIONS, upgrade
from toolglot.store.sqlite_opening import connect, open_connections

APPLICATION = 0x746F6F6C
VERSION_1 = """
PRAGMA application_id = 1953460076;
CREATE TABLE kept (
    kind TEXT NOT NULL, client TEXT NOT NULL, key TEXT NOT NULL, until REAL NOT NULL, value BLOB NOT NULL
);
CREATE UNIQUE INDEX kept_by_name ON kept (kind, client, key);
PRAGMA user_version = 1;
"""


KEEPER = """
import asyncio, os, sys
from toolglot.store import SqliteStore

async def main(path, name, tasks, rows):
    store = SqliteStore(path)
    async def keep(task):
        for number in range(rows):
            key = f"{name} {task} {number}"
            await store.keep("vault", "a", {key: key.encode() * 20}, until=1e12)
            os.write(1, key.encode() + b"\\n")
    await asyncio.gather(*map(keep, range(tasks)))
    await store.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
"""


ADDER = """
import asyncio, sys
from toolglot.store import SqliteStore

async def main(path, times):
    store = SqliteStore(path)
    for _ in range(times):
        await asyncio.gather(*(store.add("usage", "a", "day", {"n": 1}, until=1e12) for _ in range(10)))
    await store.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


FULL_DISK = """
import asyncio, resource, signal, sys
from toolglot.store import SqliteStore, StoreError

async def main(path):
    store = SqliteStore(path)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
    kept = []
    try:
        for number in range(100):
            await store.keep("vault", "a", {str(number): b"x" * 50_000}, until=1e12)
            kept.append(str(number))
    except StoreError as error:
        print(error)
    assert 1 < len(kept) < 100
    assert list(await store.find("vault", "a", [*kept, str(len(kept))])) == kept
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await store.keep("vault", "a", {"again": b"x"}, until=1e12)
    assert len(await store.find("vault", "a", [*kept, "again"])) == len(kept) + 1
    await store.close()

asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def start_keeper(file: Path, name: str, tasks: int, rows: int) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", KEEPER, str(file), name, str(tasks), str(rows)]
    return subprocess.Popen(words, stdout=subprocess.PIPE)


def version_1(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as made:
        made.executescript(VERSION_1)
        for number in range(10):
            row = ("vault", "ä", str(number), LATER + number, b"x" * 1000)
            made.execute("INSERT INTO kept VALUES (?, ?, ?, ?, ?)", row)


# --- processes ------------------------------------------------------------------------------------


def test_what_was_committed_is_there_after_the_process_was_killed_twenty_times(file: Path) -> None:
    keys: list[str] = []
    for number in range(20):
        child = start_keeper(file, f"life {number}", 8, 10**6)
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(1 + 37 * number % 400)]
        child.send_signal(signal.SIGKILL)
        rest, _ = child.communicate()
        assert child.returncode == -signal.SIGKILL
        keys += b"".join([*lines, rest]).decode().splitlines()
    assert len(keys) > 2000
    assert asyncio.run(found(file, keys)) == {key: key.encode() * 20 for key in keys}


def test_two_processes_write_at_once_and_no_row_is_lost(file: Path) -> None:
    children = [start_keeper(file, name, 20, 100) for name in ("one", "two")]
    keys = b"".join(child.communicate()[0] for child in children).decode().splitlines()
    assert [child.returncode for child in children] == [0, 0]
    assert len(set(keys)) == 4000
    assert asyncio.run(found(file, keys)) == {key: key.encode() * 20 for key in keys}
    assert query(file, "SELECT count(*) FROM kept") == [(4000,)]


async def test_two_processes_add_at_once_and_nothing_is_lost(file: Path) -> None:
    words = [sys.executable, "-c", ADDER, str(file), "30"]
    adders = [subprocess.Popen(words) for _ in range(2)]
    assert [adder.wait(120) for adder in adders] == [0, 0]
    store = SqliteStore(file, clock=lambda: NOW)
    assert await store.add("usage", "a", "day", {"n": 0}, until=LATER) == {"n": 600}
    await store.close()


async def test_additions_that_wait_are_one_transaction(file: Path) -> None:
    store = SqliteStore(file, clock=lambda: NOW)
    with held(file):
        adding = [asyncio.ensure_future(store.add("usage", "a", str(n % 3), {"n": 1}, until=LATER)) for n in range(300)]
        await asyncio.sleep(0)
    await asyncio.gather(*adding)
    assert store.commits <= 2
    assert (await store.scan("usage", limit=9))[0].amounts == {"n": 100}
    await store.close()


def version_2(file: Path) -> None:
    version_1(file)
    with closing(connect(file.as_uri(), 1)) as connection:
        upgrade(connection, str(file), MIGRATIONS[:2])


@pytest.mark.parametrize("make", [version_1, version_2])
def test_a_store_of_any_version_before_keeps_its_rows_and_counts_from_then_on(file: Path, make: Any) -> None:
    make(file)

    async def act() -> None:
        store = SqliteStore(file, clock=lambda: NOW)
        assert len(await store.find("vault", "ä", list("0123456789"))) == 10
        assert [row.key for row in await store.scan("vault", client="ä", limit=100)] == list("0123456789")
        assert await store.add("usage", "ä", "day", {"n": 2}, until=LATER) == {"n": 2}
        await store.close()

    asyncio.run(act())
    assert query(file, "PRAGMA user_version") == [(len(MIGRATIONS),)]


def test_a_scan_and_the_search_for_old_totals_need_only_an_index(file: Path) -> None:
    asyncio.run(found(file, []))
    page = (
        "SELECT client, key FROM {} WHERE kind = 'a' AND until > 1 AND (client, key) > ('b', 'c') ORDER BY client, key"
    )
    for table in ("kept", "counted"):
        plan = str(query(file, f"EXPLAIN QUERY PLAN {page.format(table)}"))
        assert "(kind=? AND (client,key)>(?,?))" in plan
        assert "TEMP B-TREE" not in plan
    old = "EXPLAIN QUERY PLAN SELECT kind, client, key FROM counted WHERE until <= 1 ORDER BY until LIMIT 9"
    assert "USING COVERING INDEX counted_by_until (until<?)" in str(query(file, old))


async def test_what_is_kept_for_ever_and_totals_are_never_too_much(file: Path) -> None:
    store = SqliteStore(file, clock=lambda: NOW, limits=StoreLimits(max_bytes=2000))
    await store.keep("keys", "", {"k": b"x" * 1500}, until=math.inf)
    await store.add("usage", "a", "day", {"n": 1}, until=LATER)
    for number in range(5):
        await store.keep("vault", "a", {str(number): b"x" * 1000}, until=LATER)
    assert await store.prune(NOW) == 5
    assert await store.find("keys", "", ["k"]) == {"k": b"x" * 1500}
    assert await store.add("usage", "a", "day", {"n": 1}, until=LATER) == {"n": 2}
    await store.close()


def test_a_full_disk_is_reported_loses_nothing_and_may_pass(file: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", FULL_DISK, str(file)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "the store failed: " in ran.stdout


# --- files ----------------------------------------------------------------------------------------


def test_a_new_file_and_its_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        file = tmp_path / "one" / "two" / "store.db"
        store = SqliteStore(file)
        asyncio.run(store.keep("v", "a", {"k": b"x"}, until=LATER))
        names = [file.parent.parent, file.parent, file, Path(f"{file}-wal"), Path(f"{file}-shm")]
        assert [oct(name.stat().st_mode & 0o777) for name in names] == ["0o700"] * 2 + ["0o600"] * 3
        asyncio.run(store.close())
        file.chmod(0o644)
        asyncio.run(SqliteStore(file).close())
        assert file.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


@pytest.mark.parametrize("name", ["a?b#c%20d.db", "ü 😀.db", "a'b\".db"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    asyncio.run(found(tmp_path / name, []))
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_an_empty_file_and_an_empty_database_become_a_store(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    query(tmp_path / "database", "PRAGMA journal_mode = WAL")
    assert (tmp_path / "database").stat().st_size
    for name in ("empty", "database"):
        asyncio.run(found(tmp_path / name, []))
        assert query(tmp_path / name, "PRAGMA user_version") == [(len(MIGRATIONS),)]


def test_a_store_of_version_1_is_brought_to_the_newest(file: Path, tmp_path: Path) -> None:
    version_1(file)

    async def act() -> None:
        store = SqliteStore(file, clock=lambda: NOW, limits=StoreLimits(max_bytes=5100))
        assert await store.find("vault", "ä", list("0123456789")) == {str(n): b"x" * 1000 for n in range(10)}
        await store.keep("vault", "ä", {"0": b"y" * 1000}, until=LATER)
        assert await store.prune(NOW) == 5
        assert list(await store.find("vault", "ä", list("0123456789"))) == list("06789")
        assert await store.prune(LATER + 7) == 3
        await store.close()

    asyncio.run(act())
    assert query(file, "PRAGMA user_version") == [(len(MIGRATIONS),)]
    assert query(file, "SELECT key, size FROM kept ORDER BY age") == [("8", 1008), ("9", 1008)]
    asyncio.run(found(tmp_path / "new.db", []))
    layout = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
    assert query(file, layout) == query(tmp_path / "new.db", layout)


def test_a_step_that_fails_leaves_the_file_at_the_version_before(file: Path) -> None:
    version_1(file)
    broken = (MIGRATIONS[0], ("CREATE TABLE half (a)", "INSERT INTO nowhere VALUES (1)"))
    with closing(connect(file.as_uri(), 1)) as connection:
        with pytest.raises(sqlite3.OperationalError, match="nowhere"):
            upgrade(connection, str(file), broken)
        assert not connection.in_transaction
    assert query(file, "PRAGMA user_version") == [(1,)]
    assert query(file, "SELECT name FROM sqlite_master WHERE type = 'table'") == [("kept",)]
    assert len(asyncio.run(found(file, list("0123456789"), "ä"))) == 10


def test_a_journal_left_by_a_crash_is_rolled_back_first(file: Path, tmp_path: Path) -> None:
    version_1(file)
    crashed = tmp_path / "crashed.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as writing:
        writing.execute("PRAGMA cache_size = 1")
        writing.execute("BEGIN")
        writing.execute("UPDATE kept SET value = 'spoilt'")
        writing.executemany("INSERT INTO kept VALUES ('a', 'b', ?, 1, zeroblob(5000))", [(n,) for n in range(100)])
        shutil.copy(file, crashed)
        shutil.copy(f"{file}-journal", f"{crashed}-journal")
        writing.execute("ROLLBACK")
    assert b"spoilt" in crashed.read_bytes()
    assert asyncio.run(found(crashed, ["0", "9"], "ä")) == {"0": b"x" * 1000, "9": b"x" * 1000}


def newer(file: Path) -> None:
    asyncio.run(found(file, []))
    query(file, "PRAGMA user_version = 99")


def another_program(file: Path) -> None:
    query(file, "CREATE TABLE bookmarks (url)")


def another_program_with_an_id(file: Path) -> None:
    another_program(file)
    query(file, "PRAGMA application_id = 7")


def another_program_with_a_version(file: Path) -> None:
    query(file, "PRAGMA user_version = 7")


def short_text(file: Path) -> None:
    file.write_bytes(b"x")


def long_text(file: Path) -> None:
    file.write_bytes(b"no database\n" * 1000)


def only_a_head(file: Path) -> None:
    file.write_bytes(b"SQLite format 3\0" + bytes(200))


def cut_off(file: Path) -> None:
    version_1(file)
    file.write_bytes(file.read_bytes()[:-4096])


def overwritten(file: Path) -> None:
    version_1(file)
    content = bytearray(file.read_bytes())
    content[4096 : 3 * 4096] = b"\xff" * 8192
    file.write_bytes(content)


def overwritten_tables(file: Path) -> None:
    version_1(file)
    content = bytearray(file.read_bytes())
    content[100:4096] = b"\xff" * 3996
    file.write_bytes(content)


def half_a_store(file: Path) -> None:
    query(file, f"PRAGMA application_id = {APPLICATION}")
    query(file, "PRAGMA user_version = 1")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (newer, r"version 99, and this toolglot supports up to 4 \(upgrade toolglot"),
        (another_program, "a database of another program"),
        (another_program_with_an_id, "a database of another program"),
        (another_program_with_a_version, "a database of another program"),
        (short_text, "not an SQLite database"),
        (long_text, "not an SQLite database"),
        (only_a_head, "corrupt"),
        (cut_off, "corrupt: its end is missing"),
        (overwritten, "corrupt"),
        (overwritten_tables, "corrupt"),
    ],
)
def test_a_file_that_is_no_store_of_ours_is_refused_and_left_untouched(file: Path, make: Any, message: str) -> None:
    make(file)
    file.chmod(0o640)
    before = file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_mode
    with pytest.raises(InputError, match=message) as refused:
        SqliteStore(file)
    assert refused.value.path == str(file)
    assert (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_mode) == before
    assert isinstance(refused.value, VersionError) == (make is newer)


def test_a_newer_store_is_refused_also_when_only_its_journal_says_so(file: Path) -> None:
    asyncio.run(found(file, []))
    with closing(sqlite3.connect(file, isolation_level=None)) as running:
        running.execute("PRAGMA user_version = 5")
        before = file.read_bytes()
        assert before[60:64] == b"\0\0\0\4", "the head still tells the old version"
        with pytest.raises(VersionError):
            SqliteStore(file)
        assert file.read_bytes() == before


def test_a_store_without_its_tables_is_refused(file: Path) -> None:
    half_a_store(file)
    with pytest.raises(InputError, match="no such table"):
        SqliteStore(file)


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x")
    for path in (tmp_path, tmp_path / "text" / "store.db", tmp_path / ("n" * 300)):
        with pytest.raises(InputError):
            SqliteStore(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a file"):
        SqliteStore(tmp_path / "pipe")


def test_a_file_that_others_hold_for_too_long_is_not_waited_for_for_ever(file: Path) -> None:
    version_1(file)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="cannot be opened: database is locked"):
            SqliteStore(file, busy_seconds=0.05)
    asyncio.run(found(file, []))


async def test_a_file_that_is_corrupted_while_it_is_used_is_reported(file: Path) -> None:
    store = SqliteStore(file, clock=lambda: NOW)
    await store.keep("v", "a", {str(n): b"x" * 1000 for n in range(1000)}, until=LATER)
    await store.close()
    store = SqliteStore(file, clock=lambda: NOW)
    with file.open("r+b") as content:
        content.seek(4096)
        content.write(b"\xff" * (file.stat().st_size - 4096))
    with pytest.raises(StoreError, match="the file is corrupt"):
        await store.find("v", "a", ["1"])
    await store.close()


def test_both_connections_are_as_the_store_says(file: Path) -> None:
    writing, reading = open_connections(str(file), 1.5)
    assert reading is not None
    for pragma, value in {"journal_mode": "wal", "synchronous": 1, "busy_timeout": 1500, "query_only": 0}.items():
        assert writing.execute(f"PRAGMA {pragma}").fetchone() == (value,)
    assert reading.execute("PRAGMA query_only").fetchone() == (1,)
    reading.close()
    writing.close()


def test_a_durable_store_synchronises_every_commit(file: Path) -> None:
    writing, reading = open_connections(str(file), 1.5, durable=True)
    assert reading is not None
    assert writing.execute("PRAGMA synchronous").fetchone() == (2,)
    reading.close()
    writing.close()


async def test_a_conflict_in_a_group_is_one_transaction_all_the_same(file: Path) -> None:
    store = SqliteStore(file, clock=lambda: NOW)
    with held(file):
        asks = [store.keep("v", "a", {str(n): b"x"}, until=LATER, unless=[str(n // 2 * 2)]) for n in range(20)]
        kept = [asyncio.ensure_future(ask) for ask in asks]
        await asyncio.sleep(0)
    ended = await asyncio.gather(*kept, return_exceptions=True)
    assert [type(one) for one in ended[:4]] == [type(None), StoreConflictError, type(None), StoreConflictError]
    assert store.commits == 1
    await store.close()
