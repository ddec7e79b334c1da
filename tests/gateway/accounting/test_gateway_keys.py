"""Client keys and their limits: who is admitted, what is refused and in which words, what is counted."""

from __future__ import annotations

import asyncio
import math
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.gateway.request_records import ended_request
from support.waiting import HANG_SECONDS
from toolglot import InputError
from toolglot.gateway.accounting.client_keys import (
    FRESH_SECONDS,
    KIND,
    PREFIX,
    UNKNOWN_KEY_SECONDS,
    ClientKey,
    KeyRing,
    named,
    new_key,
    revoke,
    save,
    saved_keys,
)
from toolglot.gateway.accounting.metering import (
    ANYONE,
    BATCH_SECONDS,
    IDLE,
    MAX_ESTIMATED,
    MAX_MODELS,
    OTHERS,
    READ_SECONDS,
    SLOT,
    STALE,
    Meter,
    Ticket,
)
from toolglot.gateway.accounting.prices import ConfiguredPrices, PriceSettings
from toolglot.gateway.accounting.usage import Amounts, group_usage, read_usage
from toolglot.gateway.config.key_table import digest
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.gateway.state.bounded_store import STORE_SECONDS
from toolglot.masking import mask
from toolglot.protocols.errors.failures import ProviderError
from toolglot.store import SqliteStore, Store, StoreError

NOW = 1_794_700_830.0
"""2026-11-15 00:00:30 UTC"""
DAY = 86_400
PRICES = ConfiguredPrices({"m": PriceSettings(input=1, output=2), "free": PriceSettings(input=0, output=0)})


class Clock:
    """The clock on the wall, which may be set (`ahead`), and one that only runs forward."""

    def __init__(self) -> None:
        self.now = NOW
        self.ahead = 0.0

    def __call__(self) -> float:
        return self.now + self.ahead

    def monotonic(self) -> float:
        return self.now


class FailingStore(SqliteStore):
    """A store that fails while it is told to."""

    is_failing = False
    additions = 0
    open_additions = 0
    max_open_additions = 0

    async def add(self, *values: Any, **named: Any) -> dict[str, float]:
        self._check()
        self.additions += 1
        self.open_additions += 1
        self.max_open_additions = max(self.open_additions, self.max_open_additions)
        try:
            return await super().add(*values, **named)
        finally:
            self.open_additions -= 1

    async def scan(self, *values: Any, **named: Any) -> Any:
        self._check()
        self.scans = getattr(self, "scans", 0) + 1
        return await super().scan(*values, **named)

    def _check(self) -> None:
        if self.is_failing:
            raise StoreError("the disk is on fire")


class Worker:
    """One process of a gateway: a ring and a meter over a store that may be shared."""

    def __init__(
        self,
        store: Store | None,
        clock: Clock,
        *,
        configured: tuple[str, ...] = (),
        store_seconds: float = STORE_SECONDS,
    ) -> None:
        self.said: list[str] = []
        self.clock = clock
        self.ring = KeyRing(store, configured, clock=clock, monotonic=clock.monotonic, report=self.said.append)
        self.meter = Meter(
            store,
            self.ring,
            PRICES,
            usage_seconds=30 * DAY,
            clock=clock,
            monotonic=clock.monotonic,
            report=self.said.append,
            store_seconds=store_seconds,
        )

    async def use(self, client: str, *, model: str = "m", size: int = 0, ends: bool = True, **fields: Any) -> Ticket:
        """A whole request."""
        ticket, request = await self.begin(client, model=model, size=size, **fields)
        if ends:
            self.meter.record(ticket, request)
        return ticket

    async def begin(
        self, client: str, *, model: str = "m", size: int = 0, **fields: Any
    ) -> tuple[Ticket, RequestRecord]:
        usage = fields.pop("usage", {"input_tokens": 10, "output_tokens": 5})
        request = ended_request(model, fields.pop("upstream", "up"), client=client, usage=usage, **fields)
        self.meter.check_model(client, model)
        return await self.meter.admit(client, request, size), request


def with_store(act: Callable[[FailingStore, Clock], Awaitable[None]], path: str | Path = ":memory:") -> None:
    async def run() -> None:
        clock = Clock()
        store = FailingStore(path, clock=clock)
        try:
            await act(store, clock)
        finally:
            await store.close()

    asyncio.run(run())


async def added(store: Store, name: str = "ci", **limits: Any) -> tuple[str, str]:
    """A key in a store: the client, and its secret."""
    key, secret = new_key(name, now=NOW, **limits)
    await save(store, key)
    return key.hashed, secret


async def refused(doing: Awaitable[object], kind: str, *words: str) -> float | None:
    with pytest.raises(ProviderError) as caught:
        await doing
    failure = caught.value.failure
    assert failure.kind == kind, failure.message
    for word in words:
        assert word in failure.message
    return failure.retry_after


# --- keys -------------------------------------------------------------------------------------------


def test_a_key_is_long_random_and_kept_only_as_its_hash(tmp_path: Path) -> None:
    secrets = {new_key("a", now=NOW)[1] for _ in range(50)}
    assert len(secrets) == 50
    assert all(secret.startswith(PREFIX) and len(secret) >= 47 and secret.isascii() for secret in secrets)

    async def act(store: FailingStore, _: Clock) -> None:
        client, secret = await added(store, "ci")
        assert client == digest(secret)
        (key,) = await saved_keys(store)
        assert (key.name, key.hashed, key.id) == ("ci", client, client[:12])
        assert secret.startswith(key.shown.removesuffix("…"))
        assert secret[12:] not in str(key)
        assert mask(f"the key is {secret}.") == "the key is tgk_***."
        await store.close()
        for file in tmp_path.iterdir():
            assert secret.encode()[12:] not in file.read_bytes()

    with_store(act, tmp_path / "store.db")


@pytest.mark.parametrize("name", ["", " a", "a" * 65, "a\nb", "\x1b[2J"])
def test_what_cannot_be_a_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="1 to 64 printable"):
        new_key(name, now=NOW)


def test_a_key_is_revoked_by_its_name_or_its_id_and_stays_known() -> None:
    async def act(store: FailingStore, _clock: Clock) -> None:
        first, _ = await added(store, "ci")
        assert (await revoke(store, "ci", NOW + 1)).revoked == NOW + 1
        assert (await revoke(store, "ci", NOW + 2)).revoked == NOW + 1, "it stays revoked when it was"
        second, _ = await added(store, "ci")
        assert (await revoke(store, "ci", NOW + 3)).hashed == second, "the one that is active is meant"
        with pytest.raises(InputError, match="several keys") as several:
            await revoke(store, "ci", NOW + 4)
        assert first[:12] in several.value.hint
        assert (await revoke(store, first[:12], NOW + 4)).hashed == first
        with pytest.raises(InputError, match="no key 'nobody'"):
            await revoke(store, "nobody", NOW)
        assert [key.state(NOW + 9) for key in await saved_keys(store)] == ["revoked", "revoked"]

    with_store(act)


def test_all_keys_are_read_however_many() -> None:
    async def act(store: FailingStore, _: Clock) -> None:
        await asyncio.gather(*(added(store, f"k{number}") for number in range(2100)))
        assert len(await saved_keys(store)) == 2100

    with_store(act)


def test_a_key_that_cannot_be_read_admits_nobody_and_still_demands_one() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        await store.keep(KIND, "", {digest("s"): b"not a key"}, until=math.inf)
        ring = KeyRing(store, clock=clock, monotonic=clock.monotonic)
        await refused(ring.admit("s"), "auth", "(unreadable)")
        await refused(ring.admit("t"), "auth", "unknown")

    with_store(act)


# --- the ring ---------------------------------------------------------------------------------------


def test_without_any_key_everybody_is_admitted_and_told_apart() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        for ring in (
            KeyRing(store, clock=clock, monotonic=clock.monotonic),
            KeyRing(None, clock=clock, monotonic=clock.monotonic),
        ):
            assert await ring.admit("a") != await ring.admit("b")
            assert await ring.admit("") == digest("")
            assert not ring.is_demanded
            assert not ring.is_shared

    with_store(act)


def test_from_the_first_key_on_one_is_demanded_also_when_the_last_was_revoked() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        ring = KeyRing(store, clock=clock, monotonic=clock.monotonic)
        await ring.admit("anything")
        client, secret = await added(store)
        clock.now += FRESH_SECONDS
        await refused(ring.admit("anything"), "auth", "unknown client key", "x-api-key")
        await refused(ring.admit(""), "auth", "no client key")
        assert await ring.admit(secret) == client
        assert ring.is_demanded
        assert not ring.is_shared
        await revoke(store, "ci", clock.now)
        clock.now += FRESH_SECONDS
        await refused(ring.admit(secret), "auth", "'ci' is revoked")
        await refused(ring.admit("anything"), "auth", "unknown")

    with_store(act)


@pytest.mark.parametrize("ahead", [-DAY, -3600.0, 3600.0])
def test_a_revocation_counts_also_when_the_clock_is_set(ahead: float) -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store)
        worker = Worker(store, clock)
        assert await worker.ring.admit(secret) == client
        clock.ahead = ahead
        await revoke(store, "ci", clock())
        clock.now += FRESH_SECONDS
        await refused(worker.ring.admit(secret), "auth", "'ci' is revoked")

    with_store(act)


def test_what_others_use_is_heard_and_a_minute_ends_also_when_the_clock_is_set_back() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, requests_per_minute=3)
        worker, other = Worker(store, clock), Worker(store, clock)
        for each in (worker, other):
            await each.ring.admit(secret)
        for _ in range(3):
            await worker.use(client)
        await refused(worker.use(client), "rate_limit", "3 requests a minute")
        clock.ahead = -3600.0
        for _ in range(3):
            await worker.use(client)
        await worker.meter.flush()
        clock.now += READ_SECONDS
        await other.meter.flush()
        await refused(other.use(client), "rate_limit", "3 requests a minute")

    with_store(act)


def test_a_revocation_counts_in_every_process_within_five_seconds() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        _, secret = await added(store)
        rings = [KeyRing(store, clock=clock, monotonic=clock.monotonic) for _ in range(3)]
        for number, ring in enumerate(rings):
            await ring.admit(secret)
            clock.now += number * 0.7
        await revoke(store, "ci", clock.now)
        clock.now += 4.9
        for ring in rings:
            await refused(ring.admit(secret), "auth", "revoked")

    with_store(act)
    assert FRESH_SECONDS < 5


def test_a_new_key_is_known_at_once_and_wrong_ones_do_not_make_the_store_work() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        await added(store, "first")
        ring = KeyRing(store, clock=clock, monotonic=clock.monotonic)
        await refused(ring.admit("wrong"), "auth")
        client, secret = await added(store, "second")
        clock.now += UNKNOWN_KEY_SECONDS
        assert await ring.admit(secret) == client
        assert ring.is_shared
        before = store.scans
        for number in range(100):
            await refused(ring.admit(f"wrong {number}"), "auth")
        assert store.scans == before
        for _ in range(100):
            await ring.admit(secret)
        assert store.scans == before

    with_store(act)


def test_a_key_ends_at_its_time() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, expires=NOW + 10)
        ring = KeyRing(store, clock=clock, monotonic=clock.monotonic)
        clock.now = NOW + 9.9
        assert await ring.admit(secret) == client
        clock.now = NOW + 10
        await refused(ring.admit(secret), "auth", "'ci' is expired")

    with_store(act)


def test_keys_of_the_configuration_count_beside_those_of_the_store() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        _, secret = await added(store)
        ring = KeyRing(store, [digest("configured")], clock=clock, monotonic=clock.monotonic)
        assert await ring.admit("configured") == digest("configured")
        assert ring.key_of(digest("configured")) is None
        assert await ring.admit(secret)
        assert ring.is_shared
        alone = KeyRing(None, [digest("configured")], clock=clock, monotonic=clock.monotonic)
        await refused(alone.admit(secret), "auth", "unknown")
        assert not alone.is_shared

    with_store(act)


def test_where_the_configuration_says_store_a_key_is_demanded_also_while_there_is_none() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        ring = KeyRing(store, ["store"], clock=clock, monotonic=clock.monotonic)
        assert ring.is_demanded
        for wrong in ("", "store", digest("store")):
            await refused(ring.admit(wrong), "auth")
        _, secret = await added(store)
        clock.now += FRESH_SECONDS
        assert await ring.admit(secret)

    with_store(act)


def test_while_the_store_fails_the_last_keys_known_count_and_that_is_said_once() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store)
        worker = Worker(store, clock)
        await worker.ring.start()
        store.is_failing = True
        for _ in range(3):
            clock.now += FRESH_SECONDS
            assert await worker.ring.admit(secret) == client
        assert len(worker.said) == 1
        assert "on fire" in worker.said[0]
        store.is_failing = False
        await revoke(store, "ci", clock.now)
        clock.now += FRESH_SECONDS
        await refused(worker.ring.admit(secret), "auth", "revoked")
        store.is_failing = True
        with pytest.raises(StoreError):
            await KeyRing(store, clock=clock, monotonic=clock.monotonic).start()

    with_store(act)


def test_many_who_ask_at_once_make_one_look_into_the_store() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        _, secret = await added(store)
        ring = KeyRing(store, clock=clock, monotonic=clock.monotonic)
        await asyncio.gather(*(ring.admit(secret) for _ in range(50)))
        assert store.scans == 2, "one page, and the end"

    with_store(act)


# --- models -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "is_allowed"),
    [
        ("gpt-5.5", True),
        ("GPT-5.5", True),
        (" gpt-5.5 ", True),
        ("gpt-5.5[1m]", True),
        ("opus", True),
        ("openai/gpt-5.5", False),
        ("claude-opus-5", False),
        ("", False),
        ("sk-abcdefgh12345678", False),
    ],
)
def test_a_key_may_ask_for_the_models_that_it_was_given(model: str, is_allowed: bool) -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, models=("gpt-5*", "opus"))
        worker = Worker(store, clock)
        await worker.ring.admit(secret)
        if is_allowed:
            await worker.use(client, model=model)
        else:
            await refused(worker.use(client, model=model), "permission", "'ci' may not use", "gpt-5*, opus")
            with pytest.raises(ProviderError) as caught:
                worker.meter.check_model(client, "sk-abcdefgh12345678")
            assert "abcdefgh" not in caught.value.failure.message

    with_store(act)


# --- rates ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stored", [True, False])
def test_requests_a_minute(stored: bool) -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, requests_per_minute=3)
        worker = Worker(store, clock)
        await worker.ring.admit(secret)
        if not stored:
            worker.meter = Meter(None, worker.ring, PRICES, clock=clock, monotonic=clock.monotonic)
        for _ in range(3):
            await worker.use(client)
            clock.now += 10
        wait = await refused(worker.use(client), "rate_limit", "'ci' may use 3 requests a minute, and has used 3")
        assert wait is not None
        assert 30 <= wait <= 30 + SLOT
        clock.now += wait - 0.01 - 1
        await refused(worker.use(client), "rate_limit")
        clock.now += 1.02
        await worker.use(client)
        await refused(worker.use(client), "rate_limit")

    with_store(act)


@pytest.mark.law
@given(gaps=st.lists(st.floats(0, 20), min_size=1, max_size=60), limit=st.integers(1, 5))
def test_no_minute_has_more_requests_than_allowed_and_who_waits_as_told_is_served(
    gaps: list[float], limit: int
) -> None:
    async def act() -> None:
        clock = Clock()
        key, _ = new_key("ci", now=NOW, requests_per_minute=limit)
        ring = KeyRing(None, clock=clock, monotonic=clock.monotonic)
        ring._keys = {key.hashed: key}
        worker = Worker(None, clock)
        worker.meter = Meter(None, ring, PRICES, clock=clock, monotonic=clock.monotonic)
        served: list[float] = []
        for gap in gaps:
            clock.now += gap
            try:
                await worker.use(key.hashed)
            except ProviderError as error:
                clock.now += error.failure.retry_after or 0
                await worker.use(key.hashed)
            served.append(clock.now)
        for moment in served:
            assert sum(moment <= other < moment + 60 for other in served) <= limit

    asyncio.run(act())


def test_tokens_a_minute_are_those_of_answers_and_of_what_is_under_way() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, tokens_per_minute=100)
        worker = Worker(store, clock)
        await worker.ring.admit(secret)
        ticket, request = await worker.begin(client, size=10**9)
        assert ticket.estimated == MAX_ESTIMATED
        await refused(worker.use(client), "rate_limit", "100 tokens a minute")
        worker.meter.record(ticket, request)
        worker.meter.record(ticket, request)
        for _ in range(6):
            await worker.use(client)
        assert await refused(worker.use(client), "rate_limit", "has used 105") == 60 + SLOT - 0
        clock.now += 60 + SLOT
        await worker.use(client)

    with_store(act)


# --- budgets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "limit", "words", "renews"),
    [
        ("tokens_per_day", 30, "30 of 30 tokens a day; it renews at 2026-11-16T00:00:00Z", DAY),
        ("tokens_per_month", 30, "30 of 30 tokens a month; it renews at 2026-12-01T00:00:00Z", 16 * DAY),
        ("tokens_total", 30, "30 of 30 tokens in total; it does not renew", None),
        ("spend_per_day", Decimal("0.00004"), "$0.0000 of $0.00004 a day; it renews at 2026-11-16", DAY),
        ("spend_per_month", Decimal("0.00004"), "a month; it renews at 2026-12-01T00:00:00Z", 16 * DAY),
        ("spend_total", Decimal("0.00004"), "in total; it does not renew", None),
    ],
)
@pytest.mark.parametrize("stored", [True, False])
def test_a_budget_that_is_used_up_is_told_with_its_name_its_size_and_its_end(
    budget: str, limit: Any, words: str, renews: float | None, stored: bool
) -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, **{budget: limit})
        worker = Worker(store, clock)
        await worker.ring.admit(secret)
        if not stored:
            worker.meter = Meter(None, worker.ring, PRICES, clock=clock, monotonic=clock.monotonic)
        await worker.use(client)
        await worker.meter.flush()
        await worker.use(client)
        await refused(worker.use(client), "billing", "budget of the key 'ci' is used up", words)
        await worker.meter.flush()
        again = Worker(store, clock) if stored else worker
        await again.ring.start()
        await refused(again.use(client), "billing", words)
        clock.now += (renews or 400 * DAY) - 31
        await again.meter.flush()
        await refused(again.use(client), "billing")
        clock.now += 2
        if renews is None:
            await refused(again.use(client), "billing")
        else:
            await again.use(client)

    with_store(act)


def test_the_december_ends_with_the_year() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, tokens_per_month=1)
        clock.now = NOW + 20 * DAY
        worker = Worker(store, clock)
        await worker.ring.admit(secret)
        await worker.use(client)
        await refused(worker.use(client), "billing", "renews at 2027-01-01T00:00:00Z")

    with_store(act)


def test_what_has_no_price_is_not_spent_from_a_budget_of_money() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, spend_total=Decimal(1))
        other, secret_of_other = await added(store, "other", tokens_total=100)
        worker = Worker(store, clock)
        await worker.ring.admit(secret)
        await refused(
            worker.use(client, model="unheard-of"), "billing", "price of 'up/unheard-of'", '[prices."up/unheard-of"]'
        )
        await worker.use(client, model="unheard-of", is_simulated=True)
        await worker.use(client, model="free")
        await worker.use(other, model="unheard-of")
        await worker.meter.flush()
        rows = await read_usage(store)
        assert set(group_usage(rows, "upstream")) == {"up", "up (simulated)"}
        found = group_usage(rows, "model")
        assert found["unheard-of"].unpriced == 1, "the stand-in costs nothing, and that is known"
        assert found["free"].unpriced == 0
        assert secret_of_other

    with_store(act)


def test_an_answer_whose_tokens_are_not_told_counts_as_its_length_suggests() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, tokens_total=1000)
        worker = Worker(store, clock)
        await worker.ring.admit(secret)
        await worker.use(client, size=4000, status=502, usage=None, error="server")
        await worker.use(client, size=3996, usage=None, error="the client went away")
        await worker.use(client, size=0, usage=None)
        await worker.use(client, size=0)
        await refused(worker.use(client), "billing", "1,014 of 1,000 tokens in total")
        await worker.meter.flush()
        (found,) = group_usage(await read_usage(store), "key").values()
        assert found == Amounts(requests=4, failed=2, input=1009, output=5, cost=1_019_000, uncounted=2)

    with_store(act)


# --- several processes ------------------------------------------------------------------------------


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
        await refused(workers[2].use(client), "rate_limit", "11 requests a minute")

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


def test_while_the_store_fails_use_is_kept_and_written_later_and_that_is_said_once() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, tokens_total=100)
        worker = Worker(store, clock)
        await worker.ring.admit(secret)
        await worker.use(client)
        store.is_failing = True
        for _ in range(3):
            await worker.use(client)
            await worker.meter.flush()
        assert [line for line in worker.said if "usage cannot be stored" in line] == worker.said[-1:]
        store.is_failing = False
        await worker.meter.flush()
        assert group_usage(await read_usage(store), "day")["2026-11-15"].requests == 4
        other = Worker(store, clock)
        await other.ring.start()
        store.is_failing = True
        wait = await refused(other.use(client), "overloaded", "cannot be read just now")
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
    await asyncio.sleep(0)  # it is told in the middle of the batch
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
        other.execute("BEGIN IMMEDIATE")  # nobody else can write
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
        assert worker.said[-1] == "usage cannot be stored, and is lost: 2 rows"

    with_store(act)


# --- usage ------------------------------------------------------------------------------------------


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
            assert not any(
                (meter._seen, meter._loaded, meter._estimated, meter._loading, meter._models, meter._minutes)
            )

    with_store(act)


def test_a_key_tells_which_limits_it_has() -> None:
    key, _ = new_key("a", now=NOW)
    assert not key.is_limited
    for limit in ("requests_per_minute", "tokens_per_minute", "tokens_per_day", "spend_total"):
        limits: dict[str, Any] = {limit: 1}
        assert new_key("a", now=NOW, **limits)[0].is_limited
    assert named([key], "a") == [key]
    assert isinstance(key, ClientKey)
