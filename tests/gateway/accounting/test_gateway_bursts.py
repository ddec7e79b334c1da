"""A burst of requests on several gateways with one store exceeds no limit by more than a request."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.gateway.metered_gateway import NOW, PRICES, Clock, FailingStore, Worker, added, refused
from support.store.opened_stores import STORES
from toolglot.gateway.accounting.client_keys import ClientKey
from toolglot.gateway.accounting.estimates import MAX_ESTIMATED, UNKNOWN_REPLY, CostEstimates
from toolglot.gateway.accounting.metering import READ_SECONDS, Meter
from toolglot.gateway.accounting.reservations import LEASE_SECONDS, USE_SECONDS
from toolglot.protocols.errors.failures import ProviderError
from toolglot.store import Store, StoreLimits

GATEWAYS = 4
BURST = 60
KINDS = ["sqlite file", "postgres", "redis"]
USAGE = {"input_tokens": 400, "output_tokens": 600}
TOKENS = sum(USAGE.values())
PRICE = 400 * 1e-6 + 600 * 2e-6
"""Of one request in dollars, by the prices of these tests."""


class Fleet:
    """Gateways, each with its own connection to a store, and what they served."""

    def __init__(self, stores: list[Store], clock: Clock) -> None:
        self.clock = clock
        self.stores = stores
        self.workers = [Worker(store, clock) for store in stores]
        self.served = 0
        self.refusals: list[str] = []

    async def burst(self, client: str, count: int = BURST, *, usage: Any = USAGE, turns: int = 20) -> int:
        """So many requests at once, evenly on all gateways. Returns how many were served."""
        before = self.served
        await asyncio.gather(
            *(self._send(self.workers[n % len(self.workers)], client, usage, turns) for n in range(count))
        )
        return self.served - before

    async def _send(self, worker: Worker, client: str, usage: Any, turns: int) -> None:
        try:
            ticket, record = await worker.begin(client, size=1600, usage=usage)
        except ProviderError as error:
            self.refusals.append(error.failure.message)
            return
        for _ in range(turns):  # others begin while it is in progress
            await asyncio.sleep(0.001)
        worker.meter.record(ticket, record)
        self.served += 1

    async def flush(self) -> None:
        for worker in self.workers:
            await worker.meter.flush()


def with_fleet(kind: str, folder: Path, act: Any, **limits: Any) -> None:
    async def run() -> None:
        clock = Clock()
        stores = [STORES[kind](folder, clock, StoreLimits()) for _ in range(GATEWAYS)]
        try:
            client, secret = await added(stores[0], **limits)
            fleet = Fleet(stores, clock)
            for worker in fleet.workers:
                await worker.ring.start()
                assert await worker.ring.admit(secret) == client
            await act(fleet, client)
            for worker in fleet.workers:
                await worker.meter.close()
        finally:
            for store in stores:
                await store.close()

    asyncio.run(run())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("limits", "most"),
    [
        ({"requests_per_minute": 20}, 20),
        ({"tokens_per_minute": 20 * TOKENS}, 21),
        ({"tokens_per_day": 5 * TOKENS}, 6),
        ({"spend_per_month": Decimal("0.01")}, int(0.01 / PRICE) + 1),
        ({"requests_per_minute": 30, "spend_total": Decimal("0.01"), "tokens_total": 10**9}, int(0.01 / PRICE) + 1),
    ],
)
def test_a_burst_exceeds_no_limit_by_more_than_one_request(
    kind: str, limits: dict[str, Any], most: int, tmp_path: Path
) -> None:
    async def act(fleet: Fleet, client: str) -> None:
        served = await fleet.burst(client)
        assert 1 <= served <= most, fleet.refusals
        for _ in range(4 * most):  # those that were refused come again
            if served >= most - 1:
                break
            served += await fleet.burst(client, 2 * GATEWAYS)
            await fleet.flush()
        assert most - 1 <= fleet.served <= most, "what is not used is not lost"
        await fleet.flush()
        assert await fleet.burst(client, 2 * GATEWAYS) <= most - served
        assert fleet.served <= most

    with_fleet(kind, tmp_path, act, **limits)


@pytest.mark.parametrize("kind", KINDS)
def test_far_from_its_limits_a_request_waits_for_no_store(kind: str, tmp_path: Path) -> None:
    async def act(fleet: Fleet, client: str) -> None:
        for worker in fleet.workers:
            await worker.use(client, usage=USAGE)
        for store in fleet.stores:
            await store.close()  # whatever is called now fails
        for worker in fleet.workers:
            for _ in range(50):
                await worker.use(client, usage=USAGE)
            assert worker.logged == []

    async def end(fleet: Fleet, client: str) -> None:
        await act(fleet, client)
        fleet.workers.clear()

    with_fleet(kind, tmp_path, end, requests_per_minute=100_000, tokens_per_day=10**9, spend_total=Decimal(10**6))


def test_what_a_dead_gateway_held_is_free_after_its_lease(tmp_path: Path) -> None:
    async def act(fleet: Fleet, client: str) -> None:
        dead, *_, alive = fleet.workers
        await dead.begin(client, usage=USAGE)
        await refused(alive.use(client), "rate_limit", "requests in progress may use the rest: try again")
        fleet.clock.now += LEASE_SECONDS
        await alive.ring.start()
        await alive.use(client)
        fleet.workers.remove(dead)

    with_fleet("sqlite file", tmp_path, act, tokens_total=1000)


def test_a_request_that_takes_longer_than_a_lease_stays_reserved(tmp_path: Path) -> None:
    async def act(fleet: Fleet, client: str) -> None:
        one, *_, other = fleet.workers
        ticket, record = await one.begin(client, usage=USAGE)
        for _ in range(10):
            fleet.clock.now += LEASE_SECONDS / 4
            await one.meter.flush()
        await other.ring.start()
        await refused(other.use(client), "rate_limit", "requests in progress")
        one.meter.record(ticket, record)
        await one.meter.flush()
        fleet.clock.now += READ_SECONDS
        await refused(other.use(client), "billing", "1,000 of 1,000 tokens")

    with_fleet("sqlite file", tmp_path, act, tokens_total=1000)


def test_during_an_outage_a_gateway_uses_what_it_knows_and_then_refuses(tmp_path: Path) -> None:
    async def run() -> None:
        clock = Clock()
        store = FailingStore(tmp_path / "store.db", clock=clock)
        client, secret = await added(store, tokens_total=3000)
        worker = Worker(store, clock)
        await worker.ring.admit(secret)
        await worker.use(client, usage=USAGE)
        store.is_failing = True
        await worker.use(client, usage=USAGE)
        clock.now += USE_SECONDS
        await refused(worker.use(client, usage=USAGE), "overloaded", "the usage of this key is unknown")
        store.is_failing = False
        await worker.use(client, usage=USAGE)
        await refused(worker.use(client, usage=USAGE), "billing", "3,000 of 3,000")
        await store.close()

    asyncio.run(run())


async def test_without_a_store_requests_in_progress_count_too() -> None:
    clock = Clock()
    worker = Worker(None, clock)
    key = ClientKey(id="a", name="a", hashed="a", shown="", created=NOW, spend_total=Decimal("0.01"))
    worker.ring._keys = {"a": key}
    worker.meter = Meter(None, worker.ring, PRICES, clock=clock, monotonic=clock.monotonic)
    begun = await worker.begin("a", usage=USAGE)
    await refused(worker.use("a"), "rate_limit", "'a' may use $0.01 dollars in total, and has used $0 of $0.01")
    worker.meter.record(*begun)
    await worker.use("a", usage=USAGE)


def test_an_estimate_is_what_the_client_usually_uses_and_never_above_what_the_request_allows() -> None:
    estimates = CostEstimates()
    assert estimates.of("a", "m", 4000, None) == (1000, UNKNOWN_REPLY)
    assert estimates.of("a", "m", 10**9, 50) == (MAX_ESTIMATED, 50)
    assert estimates.of("a", "m", 0, -5) == (0, 0)
    estimates.learn("a", "m", 8000, {"input_tokens": 4000, "output_tokens": 100})
    estimates.learn("a", "m", 8000, {"input_tokens": 400, "output_tokens": 1})
    assert estimates.of("a", "m", 400_000, None) == (180_000, 112)
    assert estimates.of("a", "m", 400_000, 60) == (180_000, 60)
    assert estimates.of("b", "m", 4000, None) == (1000, UNKNOWN_REPLY)
    estimates.learn("b", "m", 10, {"input_tokens": 4000})
    assert estimates.of("b", "m", 4000, None) == (1000, UNKNOWN_REPLY)
