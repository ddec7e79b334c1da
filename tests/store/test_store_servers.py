"""Stores on a server: several processes, servers that go away and come back, hostile values, secrets, old and new."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest
from redis.asyncio import Redis
from redis.exceptions import TimeoutError as RedisTimeoutError

from support.gateway.http_client import ask, request_of
from support.gateway.served_gateway import gateway
from support.store.opened_stores import LATER, NOW
from support.store.servers import (
    PASSWORD,
    WRITTEN,
    Server,
    named,
    postgres,
    postgres_url,
    redis,
    redis_url,
    start_redis,
)
from toolglot import InputError
from toolglot.gateway.config.settings import read_config
from toolglot.simulator import serve
from toolglot.store import Store, StoreConflictError, StoreError, StoreLimits, display_location, is_address, open_store
from toolglot.store.job_queue import JobQueue, LoopThread
from toolglot.store.jobs import StoreJob
from toolglot.store.postgres import PostgresStore
from toolglot.store.redis import EVICTS, NO_DISK, SECONDS, SNAPSHOTS, RedisStore

URLS: dict[str, Callable[[Path], str]] = {"postgres": postgres_url, "redis": redis_url}
SERVERS: dict[str, Callable[[], Server]] = {"postgres": postgres, "redis": redis}

RACER = """
import asyncio, sys
from toolglot.store import StoreConflictError, open_store

async def kept(store, name, key):
    try:
        await store.keep("turns", "s", {key: name.encode()}, until=1e12, unless=[key])
    except StoreConflictError:
        return 0
    return 1

async def main(where, name):
    store = open_store(where)
    sys.stdin.readline()
    added = [store.add("usage", "a", str(n % 3), {"n": 1, name: 1}, until=1e12) for n in range(300)]
    kept_rows = [kept(store, name, str(n)) for n in range(200)]
    claimed = [store.claim("s", "", str(n), name, until=1e12) for n in range(50)]
    rows = [{f"{name} {n}": b"x" * 100, "same": name.encode()} for n in range(200)]
    plain = [store.keep("vault", "a", each, until=1e12) for each in rows]
    await asyncio.gather(*added, *plain)
    won = sum(await asyncio.gather(*kept_rows))
    holders = await asyncio.gather(*claimed)
    await store.close()
    print(won, holders.count(name))

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


@pytest.fixture(params=URLS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    SERVERS[name]()  # skips where there is none
    return name


@pytest.fixture
def where(kind: str, tmp_path: Path) -> str:
    return URLS[kind](tmp_path)


@pytest.fixture
def bare_redis() -> Iterator[Callable[..., Server]]:
    """Redis servers of one test's own."""
    started: list[Server] = []

    def start(*settings: str) -> Server:
        started.append(start_redis(*settings))
        return started[-1]

    yield start
    for server in started:
        server.remove()


def used(where: str, act: Callable[[Any], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        store = open_store(where, **{"clock": lambda: NOW, **options})
        try:
            await act(store)
        finally:
            await store.close()

    asyncio.run(run())


# --- several processes ------------------------------------------------------------------------------


def test_processes_that_add_claim_and_keep_at_once_lose_nothing(where: str) -> None:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    racers = [subprocess.Popen([sys.executable, "-c", RACER, where, name], **pipes) for name in ("one", "two")]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    counts = [tuple(map(int, racer.communicate(timeout=120)[0].split())) for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0]
    assert [sum(numbers) for numbers in zip(*counts, strict=True)] == [200, 50]

    async def act(store: Store) -> None:
        totals = await store.scan("usage", limit=9)
        assert [row.amounts for row in totals] == [{"n": 200, "one": 100, "two": 100}] * 3
        rows = await store.scan("turns", limit=1000)
        assert sorted(row.value or b"" for row in rows) == [b"one"] * counts[0][0] + [b"two"] * counts[1][0]
        assert len(await store.scan("vault", limit=1000)) == 401

    used(where, act)


async def test_stores_that_are_made_at_once_make_one(where: str) -> None:
    stores = [open_store(where, clock=lambda: NOW) for _ in range(5)]
    await asyncio.gather(*(store.add("u", "a", "k", {"n": 1}, until=LATER) for store in stores))
    assert await stores[0].add("u", "a", "k", {"n": 1}, until=LATER) == {"n": 6}
    await asyncio.gather(*(store.close() for store in stores))


def test_what_waits_together_is_few_groups_and_a_conflict_or_failure_is_one_s_own(kind: str, where: str) -> None:
    async def act(store: PostgresStore | RedisStore) -> None:
        await store.keep("v", "a", {"there": b""}, until=LATER)
        before = store.commits
        with SERVERS[kind]().halted():  # so that the last of them is queued before the first is written
            writes = [store.keep("v", "a", {str(n): b"x"}, until=LATER, unless=["there"][: n % 2]) for n in range(64)]
            tasks = [asyncio.create_task(write) for write in writes]
            await asyncio.sleep(0)  # each task runs until it waits for its write
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(one) for one in ended] == [type(None), StoreConflictError] * 32
        assert store.commits - before <= 3

    used(where, act)


def test_one_in_a_group_that_the_server_refuses_fails_alone(tmp_path: Path) -> None:
    # Random letters, so that the server cannot make the key short enough for its index.
    long = "".join(chr(0x4E00 + (n * 7919) % 20000) for n in range(6000))

    async def act(store: Store) -> None:
        keys = ["a", long, "b"]
        ended = await asyncio.gather(
            *(store.keep("v", "a", {key: b"x"}, until=LATER) for key in keys), return_exceptions=True
        )
        assert [type(one) for one in ended] == [type(None), StoreError, type(None)]
        assert "index row" in str(ended[1])
        assert list(await store.find("v", "a", ["a", "b"])) == ["a", "b"]
        with pytest.raises(StoreError, match="index row"):
            await store.keep("v", "a", {long: b"x"}, until=LATER)
        await store.keep("v", "a", {"c": b"x"}, until=LATER)

    used(postgres_url(tmp_path), act, limits=StoreLimits(max_name_bytes=100_000))


# --- a server that goes away ------------------------------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_server_that_is_killed_is_reported_and_used_again_when_it_is_back(
    kind: str, where: str, how: signal.Signals
) -> None:
    server = SERVERS[kind]()

    async def act(store: Store) -> None:
        await store.keep("v", "a", {"before": b"1"}, until=LATER)
        await store.add("u", "a", "k", {"n": 1}, until=LATER)
        assert len(await store.find("v", "a", ["before"])) == 1
        await asyncio.to_thread(server.end, how)
        try:
            for _ in range(2):
                for call in (
                    store.keep("v", "a", {"lost": b"1"}, until=LATER),
                    store.find("v", "a", ["before"]),
                    store.prune(NOW),
                ):
                    with pytest.raises(StoreError) as error:
                        await call
                    assert f"{kind}://127.0.0.1:{server.port}/" in str(error.value)
                    assert PASSWORD not in str(error.value)
                    assert WRITTEN not in str(error.value)
        finally:
            await asyncio.to_thread(server.start)
        await store.keep("v", "a", {"after": b"1"}, until=LATER)
        assert list(await store.find("v", "a", ["before", "lost", "after"])) == ["before", "after"]
        assert await store.add("u", "a", "k", {"n": 1}, until=LATER) == {"n": 2}

    used(where, act, durable=True)


def test_a_server_that_is_not_there_or_refuses_to_connect_is_reported(kind: str, where: str) -> None:
    port = str(SERVERS[kind]().port)
    for wrong, secret in ((where.replace(port, "1"), WRITTEN), (where.replace(WRITTEN, "hunter3"), "hunter3")):

        async def act(store: Store, secret: str = secret) -> None:
            for call in (
                store.keep("v", "a", {"k": b""}, until=LATER),
                store.find("v", "a", ["k"]),
                store.prune(NOW),
            ):
                with pytest.raises(StoreError, match=r"^(postgres|redis)://127\.0\.0\.1:\d+/") as error:
                    await call
                assert secret not in str(error.value)
                assert secret not in repr(store)

        used(wrong, act)


def test_a_driver_that_quotes_the_password_is_not_quoted(where: str) -> None:
    async def act(store: Any) -> None:
        error = store._store_error(ValueError(f"cannot parse {where}, that is {PASSWORD}"))
        assert PASSWORD not in str(error)
        assert WRITTEN not in str(error)
        assert "***" in str(error)

    used(where, act)


def test_who_holds_a_lock_too_long_is_reported(tmp_path: Path) -> None:
    where = postgres_url(tmp_path)

    async def act(store: Store) -> None:
        await store.keep("v", "a", {"k": b"1"}, until=LATER)
        other = await asyncpg.connect(where.partition("?")[0])
        async with other.transaction():
            await other.execute(f"LOCK TABLE t_{named(tmp_path)}.kept")
            with pytest.raises(StoreError, match="locked the store for too long"):
                await store.keep("v", "a", {"k": b"2"}, until=LATER)
        await other.close()
        await store.keep("v", "a", {"k": b"3"}, until=LATER)
        assert await store.find("v", "a", ["k"]) == {"k": b"3"}

    used(f"{where}&lock_timeout=100", act)


def test_a_connection_that_is_ended_in_the_middle_is_reported_and_replaced(tmp_path: Path) -> None:
    where = postgres_url(tmp_path)
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = $1"

    async def act(store: Store) -> None:
        await store.keep("v", "a", {"k": b"1"}, until=LATER)
        other = await asyncpg.connect(where.partition("?")[0])
        async with other.transaction():
            await other.execute(f"LOCK TABLE t_{named(tmp_path)}.kept")
            asks = [asyncio.ensure_future(store.keep("v", "a", {"k": b"2"}, until=LATER)) for _ in range(2)]
            while (pid := await other.fetchval(waiting, f"app {named(tmp_path)}")) is None:
                await asyncio.sleep(0)
            await other.execute("SELECT pg_terminate_backend($1)", pid)
            with pytest.raises(StoreError, match="terminating connection"):
                await asks[0]
        await other.close()
        await asyncio.gather(*asks, return_exceptions=True)
        await store.keep("v", "a", {"k": b"3"}, until=LATER)
        assert await store.find("v", "a", ["k"]) == {"k": b"3"}

    used(f"{where}&application_name=app%20{named(tmp_path)}", act)


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress"),
        asyncpg.InterfaceError("cannot perform operation: another operation is in progress"),
        asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"),
        asyncio.IncompleteReadError(b"", 4),
        BrokenPipeError(32, "Broken pipe"),
        RuntimeError("the transport is gone"),
        asyncio.InvalidStateError("invalid state"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_the_driver_raises_is_a_store_error_and_its_connection_is_not_used_again(
    tmp_path: Path, error: Exception
) -> None:
    async def act(store: Any) -> None:
        await store.keep("v", "a", {"k": b"1"}, until=LATER)
        used_by: list[Any] = []

        async def fail(connection: Any) -> None:
            used_by.append(connection)
            raise error

        with pytest.raises(StoreError, match=r"^postgres://127\.0\.0\.1:"):
            await store._reader.run(fail)
        assert used_by[0].is_closed()
        assert await store.find("v", "a", ["k"]) == {"k": b"1"}

    used(postgres_url(tmp_path), act)


def test_a_connection_of_which_the_server_refused_something_is_used_again(tmp_path: Path) -> None:
    async def act(store: Any) -> None:
        used_by: list[Any] = []

        async def refused(connection: Any) -> None:
            used_by.append(connection)
            await connection.execute("BEGIN; SELECT 1 / 0")

        for _ in range(2):
            with pytest.raises(StoreError, match="division by zero"):
                await store._reader.run(refused)
        assert used_by[0] is used_by[1]
        assert not used_by[0].is_in_transaction()

    used(postgres_url(tmp_path), act)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (TimeoutError(), "takes too long to respond"),
        (RedisTimeoutError("Timeout reading"), "takes too long to respond"),
        (ConnectionResetError(104, "reset"), "cannot be reached: "),
        (ValueError(), "the store failed: ValueError"),
    ],
)
def test_failures_of_the_connection_are_store_errors(where: str, error: Exception, message: str) -> None:
    async def act(store: Any) -> None:
        if not (isinstance(error, RedisTimeoutError) and isinstance(store, PostgresStore)):
            assert message in str(store._store_error(error))

    used(where, act)


def test_a_server_that_says_nothing_is_not_waited_for_for_ever() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()

        async def act(store: Store) -> None:
            with pytest.raises(StoreError, match="takes too long to respond"):
                await store.find("v", "a", ["k"])

        used(f"redis://127.0.0.1:{silent.getsockname()[1]}/0?socket_timeout=0.1", act)


async def test_an_unexpected_error_is_reported_and_the_queue_goes_on() -> None:
    async def carry_out(jobs: list[StoreJob[int]]) -> None:
        for job in jobs:
            job.result = 10 // job.work

    async def shut() -> None: ...

    thread = LoopThread("a thread", shut)
    queue: JobQueue[int] = JobQueue(thread, carry_out, location="here", max_waiting=10**6, width=2, group_bytes=1)
    ended = await asyncio.gather(queue.run(2), queue.run(0), queue.run(5), return_exceptions=True)
    assert [ended[0], type(ended[1]), ended[2]] == [5, ZeroDivisionError, 2]
    assert queue.groups == 2
    await thread.close()


# --- in a gateway -----------------------------------------------------------------------------------


def test_a_gateway_keeps_its_stored_answers_on_a_server(where: str) -> None:
    settings = f'store = "{where}"'
    with serve({"rules": [{"reply": {"text": "I say."}}]}) as simulated:
        with gateway(simulated, settings=settings) as served:
            stored = ask(served, *request_of("openai_responses", "mistral/mistral-large-latest", "Hello")).body["id"]
        with gateway(simulated, settings=settings) as served:
            assert ask(served, f"/v1/responses/{stored}").body["id"] == stored


@pytest.mark.parametrize("address", ["postgres://me:hunter2@db/x", "REDISS://:hunter2@cache"])
def test_a_configuration_may_leave_the_address_to_a_variable(tmp_path: Path, address: str) -> None:
    file = tmp_path / "toolglot.toml"
    for value in (address, "env:TOOLGLOT_TEST_STORE"):
        file.write_text(f'[gateway]\nstore = "{value}"\n')
        assert read_config(file, {"TOOLGLOT_TEST_STORE": address}).gateway.store == address


@pytest.mark.parametrize("value", ["", "hunter2", "mysql://me:hunter2@db"])
def test_a_variable_that_holds_no_address_is_refused_unseen(tmp_path: Path, value: str) -> None:
    file = tmp_path / "toolglot.toml"
    file.write_text('[gateway]\nstore = "env:TOOLGLOT_TEST_STORE"\n')
    with pytest.raises(InputError, match="'TOOLGLOT_TEST_STORE' is not set to the address of a store") as refused:
        read_config(file, {"TOOLGLOT_TEST_STORE": value, "HOME": str(tmp_path)})
    assert "hunter2" not in str(refused.value)


# --- values -----------------------------------------------------------------------------------------


def test_hostile_names_and_values_come_back_as_they_were(where: str) -> None:
    names = [
        "'; DROP TABLE kept; --",
        "{}:row:",
        "\\0",
        "\\x00",
        "\x01\x7f\x80",
        "\ufffe\uffff",
        "😀" * 100,
        "%s$1{0}",
        "u",
    ]
    value = bytes(range(256)) * 20_000

    async def act(store: Store) -> None:
        for name in names:
            await store.keep(name, name, {name: value[: 3000 + len(name)]}, until=LATER, unless=[name])
            assert await store.add(name, name, name, {name: 0.1, "": 1e15}, until=LATER) == {name: 0.1, "": 1e15}
            assert await store.add(name, name, name, {name: 0.2}, until=LATER) == {name: 0.1 + 0.2, "": 1e15}
            assert await store.claim(name, name, name, name, until=LATER) == name
            (row,) = await store.scan(name, client=name, prefix=name[:1], limit=5)
            assert (row.client, row.key, row.value) == (name, name, value[: 3000 + len(name)])
        await store.keep("v", "a", {"large": value}, until=LATER)
        assert await store.find("v", "a", ["large"]) == {"large": value}
        for bad in ("a\0b", "\ud800"):
            with pytest.raises(InputError):
                await store.keep("v", bad, {"k": b""}, until=LATER)
            with pytest.raises(InputError):
                await store.scan("v", client=bad, limit=1)

    used(where, act)


def test_what_waits_is_bounded(where: str) -> None:
    async def act(store: Store) -> None:
        asks = [store.keep("v", "a", {str(n): b"x" * 5000}, until=LATER) for n in range(20)]
        ended = await asyncio.gather(*asks, return_exceptions=True)
        assert {type(one) for one in ended} == {type(None), StoreError}
        assert "too many writes are pending" in str(next(one for one in ended if one))
        await store.keep("v", "a", {"later": b"x" * 5000}, until=LATER)

    used(where, act, limits=StoreLimits(max_waiting_bytes=20_000))


def test_a_scan_for_a_rare_key_goes_through_many_names(where: str) -> None:
    async def act(store: Store) -> None:
        for client in range(5):
            await store.keep("k", f"{client}", {f"{n:04}": b"x" for n in range(700)} | {"rare": b"r"}, until=LATER)
        rows = await store.scan("k", prefix="ra", limit=4)
        assert [(row.client, row.key) for row in rows] == [(str(n), "rare") for n in range(4)]
        assert [row.client for row in await store.scan("k", prefix="ra", after=rows[-1].cursor, limit=4)] == ["4"]
        assert await store.scan("k", prefix="none", limit=4) == []
        assert len(await store.scan("k", limit=3000)) == 3000

    used(where, act)


def test_prune_goes_in_batches_and_says_how_many(where: str) -> None:
    async def act(store: Store) -> None:
        await store.keep("v", "a", {f"{n:04}": b"x" * 94 for n in range(2500)}, until=NOW)
        await store.keep("w", "a", {f"{n:04}": b"x" * 94 for n in range(2005)}, until=LATER)
        await store.add("w", "a", "total", {"n": 1}, until=LATER)
        await store.add("w", "a", "past", {"n": 1}, until=NOW)
        assert await store.prune(NOW) == 2500 + 1 + 2000
        assert [row.key for row in await store.scan("w", limit=100)] == [f"{n}" for n in range(2000, 2005)] + ["total"]
        assert await store.prune(NOW) == 0

    used(where, act, limits=StoreLimits(max_bytes=500))


# --- versions and settings --------------------------------------------------------------------------


def test_a_store_of_a_newer_version_is_left_as_it_is(kind: str, where: str, tmp_path: Path) -> None:
    async def spoil() -> None:
        if kind == "postgres":
            other = await asyncpg.connect(where.partition("?")[0])
            await other.execute(f"INSERT INTO t_{named(tmp_path)}.version VALUES (99)")  # noqa: S608
            await other.close()
        else:
            client = Redis.from_url(where.partition("?")[0])
            await client.set(f"{{t_{named(tmp_path)}}}:version", 99)
            await client.aclose()

    async def keep(store: Store) -> None:
        await store.keep("v", "a", {"k": b"1"}, until=LATER)

    async def refused(store: Store) -> None:
        for _ in range(2):
            with pytest.raises(StoreError, match=r"has version '?99'?, and this toolglot supports"):
                await store.keep("v", "a", {"k": b"2"}, until=LATER)

    used(where, keep)
    asyncio.run(spoil())
    used(where, refused)


def test_a_database_that_cannot_hold_every_text_is_refused(tmp_path: Path) -> None:
    where = postgres_url(tmp_path)
    latin = f"latin_{named(tmp_path)}"

    async def make() -> None:
        other = await asyncpg.connect(where.partition("?")[0])
        await other.execute(f"CREATE DATABASE {latin} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        await other.close()

    async def act(store: Store) -> None:
        with pytest.raises(StoreError, match="the encoding of the database is LATIN1; create one with UTF8"):
            await store.keep("v", "a", {"k": b"1"}, until=LATER)

    asyncio.run(make())
    used(where.replace("/postgres?", f"/{latin}?"), act)


def test_the_order_is_that_of_code_points_whatever_the_database_s_is(tmp_path: Path) -> None:
    async def act(store: Store) -> None:
        keys = sorted(["b", "B", "a", "A", "ä", "_", "-", "1", "10", "2", "é", "😀", "\uffff", "Z", "z"])
        await store.keep("k", "c", dict.fromkeys(reversed(keys), b""), until=LATER)
        assert [row.key for row in await store.scan("k", limit=99)] == keys

    used(postgres_url(tmp_path), act)


@pytest.mark.parametrize(
    ("settings", "durable", "warnings"),
    [
        (["--save", ""], False, (NO_DISK,)),
        (["--save", "3600 1"], False, (SNAPSHOTS,)),
        (["--appendonly", "yes"], False, ()),
        (["--appendonly", "yes"], True, (SECONDS,)),
        (["--appendonly", "yes", "--appendfsync", "always"], True, ()),
        (["--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"], False, (EVICTS,)),
        (["--save", "", "--rename-command", "CONFIG", ""], False, (SNAPSHOTS,)),
    ],
)
def test_what_redis_does_less_than_a_file_is_a_warning_once_it_is_known(
    bare_redis: Callable[..., Server], settings: list[str], durable: bool, warnings: tuple[str, ...]
) -> None:
    server = bare_redis(*settings)

    async def act(store: RedisStore) -> None:
        assert store.warnings == ()
        await store.keep("v", "a", {"k": b""}, until=LATER)
        assert store.warnings == warnings
        await store.find("v", "a", ["k"])
        assert store.warnings == warnings

    used(f"redis://:{WRITTEN}@127.0.0.1:{server.port}/0", act, durable=durable)


def test_a_full_redis_is_reported_and_nothing_is_half_stored(bare_redis: Callable[..., Server]) -> None:
    server = bare_redis("--appendonly", "yes", "--maxmemory", "4mb")

    async def act(store: Store) -> None:
        rows = [{f"{number} {part}": b"x" * 50_000 for part in "ab"} for number in range(100)]
        asks = [store.keep("v", "a", each, until=LATER) for each in rows]
        ended = await asyncio.gather(*asks, return_exceptions=True)
        assert {type(one) for one in ended} == {type(None), StoreError}
        assert "maxmemory" in str(ended[-1])
        assert len(await store.scan("v", limit=1000)) == 2 * ended.count(None)

    used(f"redis://:{WRITTEN}@127.0.0.1:{server.port}/0", act)


def test_a_server_has_nothing_to_warn_of_where_it_is_postgres(tmp_path: Path) -> None:
    async def act(store: Store) -> None:
        await store.keep("v", "a", {"k": b""}, until=LATER)
        assert store.warnings == ()

    used(postgres_url(tmp_path), act, durable=True)


# --- addresses --------------------------------------------------------------------------------------


def test_an_address_is_shown_without_what_is_secret_in_it() -> None:
    assert display_location("postgres://me:hun@ter2@db:5432/x?password=y") == "postgres://db:5432/x"
    assert display_location("redis://cache") == "redis://cache"
    assert display_location("/var/lib/store.db") == "/var/lib/store.db"
    assert [is_address(text) for text in ("REDISS://h", "postgres:/x", "file://x", "x.db")] == [
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("where", "driver", "extra"),
    [("postgres://a:hunter2@db/x", "asyncpg", "postgres"), ("redis://:hunter2@cache", "redis", "redis")],
)
def test_a_driver_that_is_not_installed_is_named_with_what_brings_it(
    where: str, driver: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"toolglot.store.{extra}")
    for name in [name for name in sys.modules if name.partition(".")[0] == driver]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=f"needs the package {driver}") as refused:
        open_store(where)
    assert refused.value.hint == f"pip install '.[{extra}]' in a clone of toolglot"
    assert "hunter2" not in str(refused.value)


def test_no_driver_is_loaded_before_it_is_requested() -> None:
    asking = "import sys, toolglot.store; print([name for name in ('asyncpg', 'redis') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", asking], capture_output=True, text=True).stdout == "[]\n"
