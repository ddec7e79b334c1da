"""Limits and usage of client keys in several processes, and what is counted."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.gateway.metered_gateway import DAY, NOW, PRICES, Clock, FailingStore, Worker, added, refused, with_store
from support.waiting import HANG_SECONDS
from toolglot.gateway.accounting.client_keys import (
    ClientKey,
    keys_named,
    new_key,
)
from toolglot.gateway.accounting.metering import (
    ANYONE,
    BATCH_SECONDS,
    IDLE,
    MAX_MODELS,
    OTHERS,
    READ_SECONDS,
    SLOT,
    STALE,
    Meter,
)
from toolglot.gateway.accounting.usage import Amounts, group_usage, read_usage
from toolglot.store import SqliteStore

# --- several processes ----------------------------------------------------------------------------


def test_workers_know_of_each_others_use_after_a_batch() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, tokens_per_day=150, requests_per_minute=11)
        workers = [Worker(store, clock) for _ in range(3)]
        for worker in workers:
            await worker.ring.admit(secret)
        for worker in workers:
            for _ in range(3):
                await worker.use(client)
        for worker in workers:
            await worker.meter.flush()
        clock.now += READ_SECONDS
        for worker in workers:
            await worker.meter.flush()
        await workers[0].use(client)
        await workers[0].meter.flush()
        clock.now += READ_SECONDS
        for worker in workers:
            await worker.meter.flush()
        for worker in workers:
            await refused(worker.use(client), "billing", "150 of 150 tokens a day")
        clock.now += DAY
        for _ in range(11):
            await workers[1].use(client, usage=None)
        await workers[1].meter.flush()
        clock.now += READ_SECONDS
        await workers[2].meter.flush()
        await refused(workers[2].use(client), "rate_limit", "11 requests per minute")

    with_store(act)


def test_no_use_is_lost_or_counted_twice_between_workers() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, tokens_total=10**9)
        workers = [Worker(store, clock) for _ in range(4)]
        for worker in workers:
            await worker.ring.admit(secret)

        async def busy(worker: Worker) -> None:
            for number in range(50):
                await worker.use(client)
                if number % 7 == 0:
                    await worker.meter.flush()
            await worker.meter.close()

        await asyncio.gather(*map(busy, workers))
        clock.now += READ_SECONDS
        assert group_usage(await read_usage(store), "key") == {
            client: Amounts(requests=200, input=2000, output=1000, cost=4_000_000)
        }
        for worker in workers:
            await worker.meter.flush()
            total = worker.meter._totals["spent", client, "total"]
            assert total.of("tokens") == 3000

    with_store(act)


def test_a_request_reads_no_disk_but_the_first_of_a_client(tmp_path: Path) -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, tokens_per_day=10**6, requests_per_minute=10**6)
        worker = Worker(store, clock)
        await worker.ring.admit(secret)
        before = store.scans
        await asyncio.gather(*(worker.use(client) for _ in range(50)))
        assert store.scans == before + 2
        assert store.additions == 0
        await worker.meter.flush()
        assert store.max_open_additions == store.additions > 0, "one batch"

    with_store(act, tmp_path / "store.db")


def test_a_client_that_was_elsewhere_for_long_is_looked_up_again() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, tokens_total=20)
        one, two = Worker(store, clock), Worker(store, clock)
        for worker in (one, two):
            await worker.ring.admit(secret)
        await one.use(client)
        await two.use(client)
        await two.meter.flush()
        clock.now += STALE
        await one.ring.start()
        await refused(one.use(client), "billing", "30 of 20")

    with_store(act)


def test_while_the_store_fails_use_is_kept_and_written_later_and_that_is_logged_once() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, tokens_total=100)
        worker = Worker(store, clock)
        await worker.ring.admit(secret)
        await worker.use(client)
        store.is_failing = True
        for _ in range(3):
            await worker.use(client)
            await worker.meter.flush()
        assert [line for line in worker.logged if "cannot store usage" in line] == worker.logged[-1:]
        store.is_failing = False
        await worker.meter.flush()
        assert group_usage(await read_usage(store), "day")["2026-11-15"].requests == 4
        other = Worker(store, clock)
        await other.ring.start()
        store.is_failing = True
        wait = await refused(other.use(client), "overloaded", "cannot be read now")
        assert wait == BATCH_SECONDS

    with_store(act)


async def test_the_meter_keeps_the_store_up_to_date_by_itself_and_is_not_cut_off_in_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolglot.gateway.accounting.metering.BATCH_SECONDS", 0.001)

    class SlowStore(SqliteStore):
        begun = asyncio.Event()
        go_on = asyncio.Event()

        async def add(self, *values: Any, **named: Any) -> dict[str, float]:
            self.begun.set()
            await self.go_on.wait()
            return await super().add(*values, **named)

    clock = Clock()
    store = SlowStore(":memory:", clock=clock)
    worker = Worker(store, clock)
    running = asyncio.ensure_future(worker.meter.run())
    await worker.use(ANYONE)
    await store.begun.wait()
    running.cancel()
    await asyncio.sleep(0)  # it is notified in the middle of the batch
    store.go_on.set()
    await worker.use(ANYONE)
    await worker.meter.close()
    (row,) = await read_usage(store)
    assert (row.client, row.amounts.requests) == (ANYONE, 2)
    await store.close()


async def test_at_the_end_nothing_is_lost_that_was_used_while_an_earlier_batch_is_not_confirmed(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    clock = Clock()
    store = SqliteStore(file, clock=clock, busy_seconds=HANG_SECONDS)
    worker = Worker(store, clock, store_seconds=0.001)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # no other connection can write
        await worker.use(ANYONE, model="one")
        await worker.meter.flush()
        await worker.use(ANYONE, model="one")
        await worker.use(ANYONE, model="two")
        await worker.meter.close()
        other.execute("ROLLBACK")
    await store.close()
    store = SqliteStore(file, clock=clock)
    models = group_usage(await read_usage(store), "model")
    assert {model: amounts.requests for model, amounts in models.items()} == {"one": 2, "two": 1}
    await store.close()


def test_usage_that_cannot_be_stored_at_the_end_is_reported_as_lost() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        worker = Worker(store, clock)
        await worker.use(ANYONE, model="one")
        await worker.use(ANYONE, model="two")
        store.is_failing = True
        await worker.meter.flush()
        await worker.meter.close()
        assert worker.logged[-1] == "cannot store usage: 2 rows are lost"

    with_store(act)


# --- usage ----------------------------------------------------------------------------------------


def test_usage_is_counted_by_key_model_upstream_and_day() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        one, secret = await added(store, "one")
        two, _ = await added(store, "two")
        worker = Worker(store, clock)
        await worker.ring.admit(secret)
        usage = {"input_tokens": 100, "output_tokens": 10, "cache_read_tokens": 50, "cache_write_tokens": 20}
        await worker.use(one, usage={**usage, "reasoning_tokens": 4})
        await worker.use(two, model="free", upstream="elsewhere")
        await worker.use(two, model="a\nb", status=500, usage=None, error="server")
        clock.now += DAY
        await worker.use(one)
        await worker.meter.flush()
        rows = await read_usage(store)
        assert group_usage(rows, "key") == {
            one: Amounts(requests=2, input=110, output=15, cache_read=50, cache_write=20, cost=140_000),
            two: Amounts(requests=2, failed=1, input=10, output=5),
        }
        assert list(group_usage(rows, "day")) == ["2026-11-15", "2026-11-16"]
        assert set(group_usage(rows, "model")) == {"m", "free", "a\nb"}
        assert group_usage(rows, "upstream")["elsewhere"].requests == 1
        assert len(await read_usage(store, since="2026-11-16")) == 1
        assert len(await read_usage(store, until="2026-11-15")) == 3

    with_store(act)


def test_usage_is_kept_as_long_as_is_set() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        worker = Worker(store, clock)
        await worker.use(ANYONE)
        await worker.meter.flush()
        clock.now += 30 * DAY - 1
        assert await read_usage(store)
        clock.now += 1
        assert await read_usage(store) == []
        assert await store.prune(clock.now) == 1

    with_store(act)


def test_who_needs_no_key_is_counted_under_one_name() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        worker = Worker(store, clock)
        for number in range(5):
            await worker.use(await worker.ring.admit(f"made up {number}"))
        await worker.meter.flush()
        assert group_usage(await read_usage(store), "key")[ANYONE].requests == 5

    with_store(act)


def test_made_up_names_of_models_make_no_more_rows_than_allowed_and_show_no_key() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        worker = Worker(store, clock)
        await worker.use(ANYONE, model="sk-abcdefgh12345678")
        for number in range(MAX_MODELS + 50):
            await worker.use(ANYONE, model=f"model {number} " + "x" * 500)
        await worker.meter.flush()
        rows = await read_usage(store)
        assert len(rows) == MAX_MODELS + 1
        found = group_usage(rows, "model")
        assert found[OTHERS].requests == 51
        assert found["sk-***"].requests == 1

    with_store(act)


def test_what_is_past_is_forgotten() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, tokens_per_day=10**6, requests_per_minute=10**6)
        for kept in (store, None):
            worker = Worker(store, clock)
            await worker.ring.admit(secret)
            worker.meter = meter = Meter(kept, worker.ring, PRICES, clock=clock, monotonic=clock.monotonic)
            for _ in range(100):
                await worker.use(client, size=400)
                clock.now += SLOT
                await meter.flush()
            assert len(meter._totals) < 40
            clock.now += 3 * DAY + IDLE
            await meter.flush()
            assert not meter._totals
            await meter.flush()
            await meter.flush()
            assert not any((meter._seen, meter._loaded, meter._reservations.clients, meter._models, meter._minutes))

    with_store(act)


def test_a_key_lists_the_limits_that_it_has() -> None:
    key, _ = new_key("a", now=NOW)
    assert not key.is_limited
    for limit in ("requests_per_minute", "tokens_per_minute", "tokens_per_day", "spend_total"):
        limits: dict[str, Any] = {limit: 1}
        assert new_key("a", now=NOW, **limits)[0].is_limited
    assert keys_named([key], "a") == [key]
    assert isinstance(key, ClientKey)
