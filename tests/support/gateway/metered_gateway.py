"""Gateways with client keys, limits and budgets, and requests with one of the keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from support.gateway.request_records import ended_request
from toolglot.gateway.accounting.client_keys import (
    KeyRing,
    new_key,
    save,
)
from toolglot.gateway.accounting.metering import (
    Meter,
    Ticket,
)
from toolglot.gateway.accounting.prices import ConfiguredPrices, PriceSettings
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.gateway.state.bounded_store import STORE_SECONDS
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
    """A store that fails while a test says so."""

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
        self.logged: list[str] = []
        self.clock = clock
        self.ring = KeyRing(store, configured, clock=clock, monotonic=clock.monotonic, report=self.logged.append)
        self.meter = Meter(
            store,
            self.ring,
            PRICES,
            usage_seconds=30 * DAY,
            clock=clock,
            monotonic=clock.monotonic,
            report=self.logged.append,
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
