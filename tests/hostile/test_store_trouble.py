"""A store that cannot be written is noticed, logged and survived: a full disk, a refused write, a file that is gone, a
server that is read-only or full. The gateway answers meanwhile, says what it could not keep, and goes on by itself when
the store is back.
"""

from __future__ import annotations

import asyncio
import json
import resource
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.gateway.gateway_process import Process, process
from support.gateway.http_client import Got, ask, request_of
from support.gateway.served_gateway import Served, gateway
from support.hostile.small_disk import small_disk
from support.store import servers
from support.waiting import wait_until
from toolglot.gateway.accounting.client_keys import new_key, save
from toolglot.gateway.state.store_watch import KIND, StoreWatch
from toolglot.simulator import serve
from toolglot.simulator.serving import Server
from toolglot.store import SqliteStore, Store, StoreError, open_store

SCRIPT = {"rules": [{"reply": {"thinking": "hm", "text": "Hello."}}]}
MODEL = "anthropic/claude-sonnet-4-5"
LATER = 4e9


@pytest.fixture(scope="module")
def simulated() -> Iterator[Server]:
    with serve(SCRIPT) as server:
        yield server


# --- what clients see -------------------------------------------------------------------------------


def responded(url: str, *, stream: bool = False) -> Got:
    return ask(url, *request_of("openai_responses", MODEL, stream=stream))


def body_of(got: Got) -> Any:
    """The response: whole, or of the last event."""
    if got.data.startswith(b"{"):
        return got.body
    (last,) = [event for event in got.events if event["type"] == "response.completed"]
    return last["response"]


def check_well(url: str) -> str:
    """A request is answered and stored; its id."""
    assert ask(url, "/ready").status == 200
    assert ask(url, "/health").body == {"status": "ok"}
    for stream in (False, True):
        got = responded(url, stream=stream)
        body = body_of(got)
        assert (got.status, body.get("store", True)) == (200, True)
        assert ask(url, f"/v1/responses/{body['id']}").status == 200
    return str(body["id"])


def check_survived(url: str, words: str) -> None:
    """`/ready` says that the store fails and why, everything is answered, and what was not stored is not promised."""
    wait_until(lambda: ask(url, "/ready").status == 503)
    ready = ask(url, "/ready").body
    assert ready["status"] == "not ready"
    assert words in ready["reason"], ready
    health = ask(url, "/health")
    assert (health.status, health.body) == (200, {"status": "ok", "store": "failing"})
    for protocol in ("anthropic", "openai"):
        assert ask(url, *request_of(protocol, MODEL)).status == 200
    for stream in (False, True):
        got = responded(url, stream=stream)
        body = body_of(got)
        assert (got.status, body["store"]) == (200, False)
        assert body["output"][-1]["content"][0]["text"] == "Hello."
        page = ask(url, f"/toolglot/requests/{got.headers['x-toolglot-request']}").body
        assert "the response was not stored" in json.dumps(page["reply_report"])
        if not stream:
            assert "the response was not stored" in got.headers["x-toolglot-report"]


def check_logged(served: Process, *words: str) -> None:
    """The log tells of the store's trouble, and of its end, once each."""
    wait_until(lambda: len(served.events("store")) >= len(words))
    for event, word in zip(served.events("store"), words, strict=True):
        assert word in event["message"]


FAILS, WELL = "the store cannot be written; requests continue without it", "the store can be written again"


# --- SQLite -----------------------------------------------------------------------------------------


def test_a_full_disk_is_noticed_logged_and_survived(simulated: Server, tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    with (
        small_disk(folder, megabytes=8) as disk,
        process(tmp_path, simulated, store=str(folder / "store.db"), command=disk.enter) as served,
    ):
        before = check_well(served.url)
        disk.fill()
        assert disk.free < 4096
        check_survived(served.url, "full")
        assert ask(served.url, f"/v1/responses/{before}").status == 200, "what is there can be read"
        disk.empty()
        wait_until(lambda: ask(served.url, "/ready").status == 200)
        check_well(served.url)
        assert ask(served.url, f"/v1/responses/{before}").status == 200
        check_logged(served, FAILS, WELL)


def test_a_file_that_takes_no_writes_is_noticed_logged_and_survived(simulated: Server, tmp_path: Path) -> None:
    """As when the system makes a failing disk read-only: every write is refused, and what was opened stays open."""
    with process(tmp_path, simulated) as served:
        check_well(served.url)
        pid = served.popen.pid
        usual = resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        wait_until(lambda: bool(served.events("store")))  # it looks by itself, also without requests
        check_survived(served.url, "store.db: the store failed")
        resource.prlimit(pid, resource.RLIMIT_FSIZE, usual)
        wait_until(lambda: ask(served.url, "/ready").status == 200)
        check_well(served.url)
        check_logged(served, FAILS, WELL)


def test_a_file_that_is_gone_is_noticed_logged_and_survived_and_used_when_it_is_back(
    simulated: Server, tmp_path: Path
) -> None:
    away = tmp_path / "away"
    away.mkdir()
    with process(tmp_path, simulated) as served:
        before = check_well(served.url)
        files = [file for file in tmp_path.iterdir() if file.name.startswith("store.db")]
        for file in files:
            file.rename(away / file.name)
        check_survived(served.url, "the store's file was removed")
        assert not (tmp_path / "store.db").exists(), "no empty store is made: it would know no client keys"
        for file in files:
            (away / file.name).rename(file)
        wait_until(lambda: ask(served.url, "/ready").status == 200)
        assert ask(served.url, f"/v1/responses/{before}").status == 200
        check_well(served.url)
        check_logged(served, FAILS, WELL)


def test_a_file_that_is_gone_admits_no_client(simulated: Server, tmp_path: Path) -> None:
    async def made() -> str:
        store = open_store(str(tmp_path / "store.db"))
        key, secret = new_key("ada", now=1.0)
        await save(store, key)
        await store.close()
        return secret

    secret = asyncio.run(made())
    with process(tmp_path, simulated) as served:
        path, body = request_of("anthropic", MODEL)
        assert [ask(served.url, path, body, key=key).status for key in (secret, "wrong")] == [200, 401]
        for file in tmp_path.glob("store.db*"):
            file.unlink()
        wait_until(lambda: ask(served.url, "/ready").status == 503)
        wait_until(lambda: any("cannot read the client keys" in line for line in served.log))
        assert [ask(served.url, path, body, key=key).status for key in (secret, "wrong")] == [200, 401]


def test_a_file_that_replaced_another_is_opened_and_the_old_one_left_alone(tmp_path: Path) -> None:
    file, other = tmp_path / "store.db", tmp_path / "other.db"

    async def steps() -> None:
        async with kept(SqliteStore(other)) as store:
            await store.keep("k", "c", {"who": b"other"}, until=LATER)
        async with kept(SqliteStore(file)) as store:
            await store.keep("k", "c", {"who": b"first"}, until=LATER)
            assert await store.find("k", "c", ["who"]) == {"who": b"first"}
            for old in tmp_path.glob("store.db*"):
                old.rename(tmp_path / f"old-{old.name}")
            with pytest.raises(StoreError, match="the store's file was removed"):
                await store.find("k", "c", ["who"])
            with pytest.raises(StoreError, match="the store's file was removed"):
                await store.keep("k", "c", {"more": b"lost"}, until=LATER)
            shutil.copy(other, file)
            assert await store.find("k", "c", ["who"]) == {"who": b"other"}
            await store.keep("k", "c", {"more": b"row"}, until=LATER)
            assert await store.find("k", "c", ["who", "more"]) == {"who": b"other", "more": b"row"}
        async with kept(SqliteStore(file)) as store:
            assert await store.find("k", "c", ["who", "more"]) == {"who": b"other", "more": b"row"}

    asyncio.run(steps())
    with closing(sqlite3.connect(tmp_path / "old-store.db")) as old:
        assert old.execute("SELECT key, value FROM kept").fetchall() == [("who", b"first")]


async def test_what_is_no_store_at_the_path_of_the_file_is_an_error_and_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    async with kept(SqliteStore(file)) as store:
        await store.keep("k", "c", {"who": b"first"}, until=LATER)
        file.rename(tmp_path / "old.db")
        file.write_bytes(b"a text that is no database, and long enough to be looked at " * 10)
        before = file.read_bytes()
        for _ in range(2):
            with pytest.raises(StoreError, match="not an SQLite database"):
                await store.keep("k", "c", {"more": b"lost"}, until=LATER)
        assert file.read_bytes() == before


class kept:  # noqa: N801 - used as a function
    """A store that is closed at the end of a block."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def __aenter__(self) -> SqliteStore:
        return self._store

    async def __aexit__(self, *_: object) -> None:
        await self._store.close()


# --- servers ----------------------------------------------------------------------------------------


@contextmanager
def at(simulated: Server, url: str) -> Iterator[Served]:
    with gateway(simulated, settings='store = "env:STORE_URL"', environ={"STORE_URL": url}) as served:
        yield served


def statements(url: str, *texts: str) -> None:
    """Done at the server by a user who may write."""
    import asyncpg  # type: ignore[import-untyped]  # noqa: PLC0415

    async def steps() -> None:
        connection = await asyncpg.connect(url.partition("?")[0])
        for text in ("SET default_transaction_read_only = off", *texts, "SELECT pg_reload_conf()"):
            await connection.execute(text)
        await connection.close()

    asyncio.run(steps())


def test_a_postgres_that_is_read_only_is_noticed_and_survived(simulated: Server, tmp_path: Path) -> None:
    url = servers.postgres_url(tmp_path)
    with at(simulated, url) as served:
        check_well(served.url)
        statements(url, "ALTER SYSTEM SET default_transaction_read_only = on")
        try:
            check_survived(served.url, "read-only")
            assert servers.PASSWORD not in ask(served.url, "/ready").data.decode()
        finally:
            statements(url, "ALTER SYSTEM RESET default_transaction_read_only")
        wait_until(lambda: ask(served.url, "/ready").status == 200)
        check_well(served.url)


def test_a_redis_that_is_full_is_noticed_and_survived(simulated: Server, tmp_path: Path) -> None:
    import redis  # noqa: PLC0415

    server = servers.start_redis("--save", "")
    try:
        url = f"redis://:{servers.WRITTEN}@127.0.0.1:{server.port}/0"
        with at(simulated, url) as served, redis.Redis.from_url(url) as other:
            check_well(served.url)
            other.config_set("maxmemory", 1)
            check_survived(served.url, "maxmemory")
            other.config_set("maxmemory", 0)
            wait_until(lambda: ask(served.url, "/ready").status == 200)
            check_well(served.url)
    finally:
        server.remove()


# --- how often it is written ------------------------------------------------------------------------


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Refusing:
    """A store whose writes a test can refuse, and which counts them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.writes = 0
        self.is_failing = False

    async def keep(self, kind: str, client: str, rows: Any, *, until: float, unless: Any = ()) -> None:
        self.writes += 1
        if self.is_failing:
            raise StoreError("no room")
        await self._store.keep(kind, client, rows, until=until, unless=unless)


Steps = Callable[[StoreWatch, Refusing, Clock, list[str]], Any]


def watching(steps: Steps) -> None:
    async def run() -> None:
        async with kept(SqliteStore(":memory:")) as store:
            refusing, clock = Refusing(store), Clock()
            logged: list[str] = []
            watch = StoreWatch(refusing, notice=logged.append, monotonic=clock)  # type: ignore[arg-type]
            await steps(watch, refusing, clock, logged)
            await watch.close()

    asyncio.run(run())


def test_a_store_is_written_at_most_once_a_second_however_many_callers() -> None:
    async def steps(watch: StoreWatch, store: Refusing, clock: Clock, logged: list[str]) -> None:
        assert await asyncio.gather(*(watch.problem() for _ in range(100))) == [""] * 100
        assert store.writes == 1
        clock.now += 0.999
        assert await watch.problem() == ""
        assert store.writes == 1
        clock.now += 0.001
        await asyncio.gather(*(watch.problem() for _ in range(100)))
        assert store.writes == 2
        assert logged == []

    watching(steps)


def test_trouble_and_its_end_are_logged_once_each_and_not_before_a_write_has_shown_them() -> None:
    async def steps(watch: StoreWatch, store: Refusing, clock: Clock, logged: list[str]) -> None:
        store.is_failing = True
        for _ in range(3):
            assert await watch.problem() == "no room"
            clock.now += 1
        store.is_failing = False
        clock.now -= 0.5
        assert await watch.problem() == "no room", "the last look holds for a second"
        clock.now += 1
        assert await watch.problem() == ""
        assert [text.partition(":")[0] for text in logged] == [FAILS, WELL]

    watching(steps)


def test_who_goes_away_leaves_the_others_their_answer() -> None:
    async def steps(watch: StoreWatch, store: Refusing, clock: Clock, logged: list[str]) -> None:
        first = asyncio.create_task(watch.problem())
        second = asyncio.create_task(watch.problem())
        await asyncio.sleep(0)
        first.cancel()
        assert await second == ""
        assert store.writes == 1

    watching(steps)


async def test_the_clock_of_the_machine_decides_nothing(simulated: Server) -> None:
    """The row that is written ends by it; whether it is written does not."""
    async with kept(SqliteStore(":memory:")) as store:
        wall = Clock()
        refusing, clock = Refusing(store), Clock()
        watch = StoreWatch(refusing, clock=wall, monotonic=clock)  # type: ignore[arg-type]
        await watch.problem()
        wall.now -= 900.0
        await watch.problem()
        assert refusing.writes == 1
        clock.now += 1
        await watch.problem()
        assert refusing.writes == 2


def test_ready_leaves_one_row(simulated: Server, tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    with gateway(simulated, settings=f'store = "{file}"') as served:
        for _ in range(3):
            assert ask(served, "/ready").status == 200
    with closing(sqlite3.connect(file)) as other:
        assert other.execute("SELECT count(*) FROM kept WHERE kind = ?", (KIND,)).fetchone() == (1,)


# --- no store at all --------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_without_a_store_no_response_is_promised_to_be_stored(simulated: Server, stream: bool) -> None:
    with gateway(simulated, settings='store = "off"') as served:
        assert ask(served, "/ready").status == 200
        assert body_of(responded(served.url, stream=stream))["store"] is False
        path, body = request_of("openai_responses", MODEL, stream=stream, store=False)
        got = ask(served, path, body)
        assert body_of(got).get("store") is not True
        page = ask(served, f"/toolglot/requests/{got.headers['x-toolglot-request']}").body
        assert "not stored" not in json.dumps(page["reply_report"]), "no client requested it"
