"""The gateway's store with a limit on how long a request waits for it.

    store = BoundedStore(open_store(where), seconds=3)

A server that is slow or cannot be reached must not delay requests that work without it. So each call waits for
`seconds` at most. After one that took longer the store counts as silent: reads fail at once, and writes are queued
without waiting, except for one call a second that waits as before. The first response ends that.

Only `add` waits as long as it takes: only its end shows what was counted, and no request waits for it.

Law: a row is stored if the store accepts it, however short the wait was.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

from toolglot.store import Row, Store, StoreError

T = TypeVar("T")

STORE_SECONDS: Final = 3.0
"""Unless the configuration says otherwise."""
PROBE_SECONDS: Final = 1.0
PRUNE_SECONDS: Final = 600.0
"""Removing old rows may take longer: no request waits for it."""


class BoundedStore:
    """A `Store` that responds in time, or raises a `StoreError`."""

    def __init__(
        self,
        store: Store,
        seconds: float = STORE_SECONDS,
        *,
        name: str = "the store",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._seconds = seconds
        self._name = name
        self._monotonic = monotonic
        self._is_silent = False
        self._probe_at = 0.0

    @property
    def warnings(self) -> tuple[str, ...]:
        return self._store.warnings

    async def keep(
        self, kind: str, client: str, rows: Mapping[str, bytes], *, until: float, unless: Sequence[str] = ()
    ) -> None:
        await self._write(self._store.keep(kind, client, rows, until=until, unless=unless))

    async def find(self, kind: str, client: str, keys: Sequence[str]) -> dict[str, bytes]:
        return await self._read(lambda: self._store.find(kind, client, keys))

    async def remove(self, kind: str, client: str, keys: Sequence[str]) -> int:
        return await self._write(self._store.remove(kind, client, keys))

    async def add(
        self,
        kind: str,
        client: str,
        key: str,
        amounts: Mapping[str, float],
        *,
        until: float,
        once: tuple[str, str] | None = None,
    ) -> dict[str, float]:
        totals = await self._store.add(kind, client, key, amounts, until=until, once=once)
        self._is_silent = False
        return totals

    async def claim(self, kind: str, client: str, key: str, holder: str, *, until: float) -> str:
        return await self._write(self._store.claim(kind, client, key, holder, until=until))

    async def hold(
        self, kind: str, client: str, holder: str, amounts: Mapping[str, float], *, until: float
    ) -> dict[str, float]:
        # Not queued while the store is silent: it would hold what nobody uses any more.
        return await self._read(lambda: self._store.hold(kind, client, holder, amounts, until=until))

    async def scan(
        self, kind: str, *, client: str | None = None, prefix: str = "", after: str = "", limit: int
    ) -> list[Row]:
        return await self._read(lambda: self._store.scan(kind, client=client, prefix=prefix, after=after, limit=limit))

    async def prune(self, now: float) -> int:
        return await self._within(self._store.prune(now), PRUNE_SECONDS)

    async def close(self) -> None:
        await self._store.close()

    async def _read(self, call: Callable[[], Awaitable[T]]) -> T:
        seconds = self._wait_seconds()
        if not seconds:
            raise self._timeout_error()
        return await self._within(call(), seconds)

    async def _write(self, call: Awaitable[T]) -> T:
        return await self._within(call, self._wait_seconds())

    def _wait_seconds(self) -> float:
        """How long the next call waits; 0: not at all."""
        if not self._is_silent:
            return self._seconds
        now = self._monotonic()
        if now < self._probe_at:
            return 0.0
        self._probe_at = now + PROBE_SECONDS
        return self._seconds

    async def _within(self, call: Awaitable[T], seconds: float) -> T:
        # A call puts its job into the store's queue before it waits for the first time: 0 s are enough for that.
        try:
            async with asyncio.timeout(seconds):
                result = await call
        except TimeoutError:
            if not self._is_silent:
                self._is_silent, self._probe_at = True, self._monotonic() + PROBE_SECONDS
            raise self._timeout_error() from None
        except StoreError:  # it responds, if only with an error
            self._is_silent = False
            raise
        self._is_silent = False
        return result

    def _timeout_error(self) -> StoreError:
        return StoreError(
            f"{self._name}: no response within {self._seconds:g} s (store_seconds); check that its server runs, can be "
            "reached and is not overloaded"
        )
