"""The gateway's store with a limit on how long anybody waits for it.

    store = BoundedStore(open_store(where), seconds=3)

A server that is slow, or that nobody can reach, must not hold up requests that are good without it. So each call waits
for `seconds` at most. After one that took longer the store is taken to be silent: reads fail at once, and what is to be
kept is queued and not waited for, but for one call a second that is waited for as before. The first answer ends that.

`add` alone is waited for as long as it takes: only who hears the end knows what is counted, and no request adds.

Law: what was to be kept is kept if the store takes it, however short it was waited for.
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
"""What takes away old rows may take longer: nobody waits for it."""


class BoundedStore:
    """A `Store` that answers in time, or raises a `StoreError`."""

    def __init__(
        self,
        store: Store,
        seconds: float = STORE_SECONDS,
        *,
        place: str = "the store",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._seconds = seconds
        self._place = place
        self._monotonic = monotonic
        self._is_silent = False
        self._probe_at = 0.0

    @property
    def warnings(self) -> tuple[str, ...]:
        return self._store.warnings

    async def keep(
        self, kind: str, client: str, rows: Mapping[str, bytes], *, until: float, unless: Sequence[str] = ()
    ) -> None:
        await self._waited(self._store.keep(kind, client, rows, until=until, unless=unless))

    async def find(self, kind: str, client: str, keys: Sequence[str]) -> dict[str, bytes]:
        return await self._asked(lambda: self._store.find(kind, client, keys))

    async def remove(self, kind: str, client: str, keys: Sequence[str]) -> int:
        return await self._waited(self._store.remove(kind, client, keys))

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
        return await self._waited(self._store.claim(kind, client, key, holder, until=until))

    async def scan(
        self, kind: str, *, client: str | None = None, prefix: str = "", after: str = "", limit: int
    ) -> list[Row]:
        return await self._asked(lambda: self._store.scan(kind, client=client, prefix=prefix, after=after, limit=limit))

    async def prune(self, now: float) -> int:
        return await self._within(self._store.prune(now), PRUNE_SECONDS)

    async def close(self) -> None:
        await self._store.close()

    async def _asked(self, ask: Callable[[], Awaitable[T]]) -> T:
        seconds = self._patience()
        if not seconds:
            raise self._too_long()
        return await self._within(ask(), seconds)

    async def _waited(self, call: Awaitable[T]) -> T:
        return await self._within(call, self._patience())

    def _patience(self) -> float:
        """Seconds that the next call is waited for; 0: it is not."""
        if not self._is_silent:
            return self._seconds
        now = self._monotonic()
        if now < self._probe_at:
            return 0.0
        self._probe_at = now + PROBE_SECONDS
        return self._seconds

    async def _within(self, call: Awaitable[T], seconds: float) -> T:
        # A call puts what it wants into the store's queue before it waits for the first time: 0 s are enough for that.
        try:
            async with asyncio.timeout(seconds):
                result = await call
        except TimeoutError:
            if not self._is_silent:
                self._is_silent, self._probe_at = True, self._monotonic() + PROBE_SECONDS
            raise self._too_long() from None
        except StoreError:  # it answers, if only that it cannot
            self._is_silent = False
            raise
        self._is_silent = False
        return result

    def _too_long(self) -> StoreError:
        return StoreError(
            f"{self._place}: no answer in {self._seconds:g} s (store_seconds): see that its server runs, can be "
            "reached and is not overloaded"
        )
