"""A server did it, and its answer is lost: what is repeated counts once. No request waits for a silent store."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.gateway.request_records import ended_request
from support.hostile.store_faults import SERVERS, url_of
from support.hostile.store_proxy import StoreProxy
from support.store.opened_stores import LATER, NOW
from toolglot.gateway.accounting.client_keys import FRESH_SECONDS, KeyRing, new_key, save
from toolglot.gateway.accounting.metering import USAGE, Meter
from toolglot.gateway.accounting.prices import ConfiguredPrices
from toolglot.gateway.state.bounded_store import PROBE_SECONDS, BoundedStore
from toolglot.store import Row, SqliteStore, Store, StoreError, open_store

COMMITS = {"postgres": b"COMMIT", "redis": b"EVALSHA"}
"""What the server is sent when it is to write for good."""


@pytest.fixture(params=COMMITS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    SERVERS[name]()  # skips where there is none
    return name


def used(kind: str, folder: Path, act: Callable[[Store, StoreProxy], Awaitable[None]]) -> None:
    """With a store behind a proxy."""

    async def run(proxy: StoreProxy) -> None:
        store = open_store(url_of(kind, folder, proxy.port), clock=lambda: NOW)
        try:
            await act(store, proxy)
        finally:
            await store.close()

    with StoreProxy(SERVERS[kind]().port) as proxy:
        asyncio.run(run(proxy))


def test_an_addition_whose_answer_was_lost_is_repeated_and_counts_once(kind: str, tmp_path: Path) -> None:
    async def act(store: Store, proxy: StoreProxy) -> None:
        await store.add("usage", "ann", "day", {"tokens": 1}, until=LATER, once=("w", "1"))
        proxy.lose_answer_to(COMMITS[kind])
        with pytest.raises(StoreError):
            await store.add("usage", "ann", "day", {"tokens": 10}, until=LATER, once=("w", "2"))
        assert proxy.lost == 1
        again = await store.add("usage", "ann", "day", {"tokens": 10}, until=LATER, once=("w", "2"))
        assert again == {"tokens": 11}
        assert await store.add("usage", "ann", "day", {"tokens": 100}, until=LATER, once=("w", "3")) == {"tokens": 111}

    used(kind, tmp_path, act)


def test_usage_is_stored_once_when_the_answer_of_the_store_was_lost(kind: str, tmp_path: Path) -> None:
    async def act(store: Store, proxy: StoreProxy) -> None:
        ring = KeyRing(store, clock=lambda: NOW)
        meter = Meter(store, ring, ConfiguredPrices({}), clock=lambda: NOW)

        async def use() -> None:
            record = ended_request("m", "u", usage={"output_tokens": 7})
            meter.record(await meter.admit("ann", record), record)

        for number in range(4):
            await use()
            if number:
                proxy.lose_answer_to(COMMITS[kind])
            await meter.flush()
            await use()
        await meter.flush()
        rows = await store.scan(USAGE, limit=10)
        assert [(row.amounts["requests"], row.amounts["output"]) for row in rows] == [(8, 56)]

    used(kind, tmp_path, act)


async def test_a_store_that_takes_no_writes_says_so_and_what_to_do(tmp_path: Path) -> None:
    where = url_of("postgres", tmp_path, SERVERS["postgres"]().port)
    writing, reading = open_store(where), open_store(f"{where}&default_transaction_read_only=on")
    await writing.keep("v", "a", {"k": b"1"}, until=1e12)
    assert await reading.find("v", "a", ["k"]) == {"k": b"1"}
    with pytest.raises(StoreError, match=r"accepts no writes .* set `store`"):
        await reading.keep("v", "a", {"k": b"2"}, until=1e12)
    await writing.close()
    await reading.close()


def test_a_store_whose_server_is_silent_is_closed_all_the_same_and_that_is_logged() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()

        async def act() -> None:
            store = open_store(f"redis://127.0.0.1:{silent.getsockname()[1]}/0?socket_timeout=600")
            keeping = asyncio.ensure_future(store.keep("v", "a", {"k": b""}, until=LATER))
            await asyncio.sleep(0)
            with pytest.raises(StoreError, match="closed without a response of the server"):
                await store.close()
            keeping.cancel()

        asyncio.run(act())


# --- a store with a limit ---------------------------------------------------------------------------


class SilentStore(SqliteStore):
    """A store that does not answer while it is silent, and at once otherwise, and counts its calls."""

    is_silent = False
    calls = 0

    def __init__(self) -> None:
        super().__init__(":memory:")
        self._rows: dict[str, bytes] = {}

    async def _answer(self) -> None:
        self.calls += 1
        while self.is_silent:
            await asyncio.sleep(0.001)

    async def find(self, kind: str, client: str, keys: Sequence[str]) -> dict[str, bytes]:  # noqa: ARG002
        await self._answer()
        return {key: self._rows[key] for key in keys if key in self._rows}

    async def scan(self, *values: Any, **named: Any) -> list[Row]:  # noqa: ARG002
        await self._answer()
        return []

    async def keep(self, kind: str, client: str, rows: Mapping[str, bytes], **named: Any) -> None:  # noqa: ARG002
        self._rows.update(rows)
        await self._answer()


def bounded(act: Callable[[SilentStore, BoundedStore, list[float]], Awaitable[None]]) -> None:
    """With a store in memory, one around it that waits a moment, and the clock that it reads."""

    async def run() -> None:
        inner, now = SilentStore(), [0.0]
        try:
            await act(inner, BoundedStore(inner, 0.02, name="postgres://db", monotonic=lambda: now[0]), now)
        finally:
            inner.is_silent = False
            await inner.close()

    asyncio.run(run())


def test_a_silent_store_is_waited_for_once_a_second_and_other_reads_fail_at_once() -> None:
    async def act(inner: SilentStore, store: BoundedStore, now: list[float]) -> None:
        inner.is_silent = True
        for _ in range(5):
            with pytest.raises(
                StoreError, match=r"postgres://db: no response within 0.02 s \(store_seconds\); check that"
            ):
                await store.find("v", "a", ["k"])
        assert inner.calls == 1
        now[0] += PROBE_SECONDS
        for _ in range(5):
            with pytest.raises(StoreError):
                await store.scan("v", limit=1)
        assert inner.calls == 2
        inner.is_silent = False
        now[0] += PROBE_SECONDS
        for _ in range(3):
            assert await store.find("v", "a", ["k"]) == {}
        assert inner.calls == 5

    bounded(act)


def test_what_is_kept_in_a_silent_store_is_there_when_it_speaks_again() -> None:
    async def act(inner: SilentStore, store: BoundedStore, now: list[float]) -> None:
        inner.is_silent = True
        for number in range(3):
            with pytest.raises(StoreError, match="no response"):
                await store.keep("v", "a", {str(number): b"1"}, until=1e12)
        inner.is_silent = False
        now[0] += PROBE_SECONDS
        assert set(await store.find("v", "a", ["0", "1", "2"])) == {"0", "1", "2"}

    bounded(act)


def test_known_keys_are_admitted_while_the_store_is_silent_without_waiting_for_it() -> None:
    async def act(inner: SilentStore, store: BoundedStore, now: list[float]) -> None:
        key, secret = new_key("ci", now=0.0)
        await save(inner, key)
        logged: list[str] = []
        ring = KeyRing(store, monotonic=lambda: now[0], report=logged.append)
        await ring.start()
        inner.is_silent = True
        for _ in range(5):
            now[0] += FRESH_SECONDS
            assert await ring.admit(secret) == key.hashed
        assert len(logged) == 1
        assert "the last known ones stay valid" in logged[0]

    bounded(act)
