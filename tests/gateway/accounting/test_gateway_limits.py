"""What a client key may use: its models, rates and budgets."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.gateway.metered_gateway import DAY, NOW, PRICES, Clock, FailingStore, Worker, added, refused, with_store
from toolglot.gateway.accounting.client_keys import (
    KeyRing,
    new_key,
)
from toolglot.gateway.accounting.estimates import MAX_ESTIMATED
from toolglot.gateway.accounting.metering import (
    SLOT,
    Meter,
)
from toolglot.gateway.accounting.usage import Amounts, group_usage, read_usage
from toolglot.protocols.errors.failures import ProviderError

# --- models ---------------------------------------------------------------------------------------


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
def test_a_key_may_use_the_models_that_it_lists(model: str, is_allowed: bool) -> None:
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


# --- rates ----------------------------------------------------------------------------------------


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
        wait = await refused(worker.use(client), "rate_limit", "'ci' may use 3 requests per minute, and has used 3")
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
def test_no_minute_has_more_requests_than_allowed_and_who_waits_as_long_as_required_is_served(
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
        await refused(worker.use(client), "rate_limit", "100 tokens per minute")
        worker.meter.record(ticket, request)
        worker.meter.record(ticket, request)
        for _ in range(6):
            await worker.use(client)
        assert await refused(worker.use(client), "rate_limit", "has used 105") == 60 + SLOT - 0
        clock.now += 60 + SLOT
        await worker.use(client)

    with_store(act)


# --- budgets --------------------------------------------------------------------------------------


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
def test_a_budget_that_is_used_up_is_reported_with_its_name_its_size_and_its_end(
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


def test_an_answer_whose_tokens_are_not_reported_counts_as_its_length_suggests() -> None:
    async def act(store: FailingStore, clock: Clock) -> None:
        client, secret = await added(store, tokens_total=1000)
        worker = Worker(store, clock)
        await worker.ring.admit(secret)
        await worker.use(client, size=4000, status=502, usage=None, error="server")
        await worker.use(client, size=3996, usage=None, error="the client disconnected")
        await worker.use(client, size=0, usage=None)
        await worker.use(client, size=0)
        await refused(worker.use(client), "billing", "1,014 of 1,000 tokens in total")
        await worker.meter.flush()
        (found,) = group_usage(await read_usage(store), "key").values()
        assert found == Amounts(requests=4, failed=2, input=1009, output=5, cost=1_019_000, uncounted=2)

    with_store(act)
