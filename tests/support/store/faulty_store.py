"""A store that does what another does, and tells of it, fails or waits where a test says so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from toolglot.store import Row, Store

Hook = Callable[[str], Awaitable[None]]
"""Called with what is about to happen or has happened: "before keep turns", "after keep turns", "before claim", …"""


async def nothing(_moment: str) -> None:
    """The hook of a store without a watcher."""


class HookedStore:
    """A `Store` with a hook before and after each write and claim."""

    def __init__(self, store: Store, hook: Hook = nothing) -> None:
        self.store = store
        self.hook = hook
        self.moments: list[str] = []
        self.rows_read = 0

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.store.warnings

    async def _at(self, moment: str) -> None:
        self.moments.append(moment)
        await self.hook(moment)

    async def keep(
        self, kind: str, client: str, rows: Mapping[str, bytes], *, until: float, unless: Sequence[str] = ()
    ) -> None:
        await self._at(f"before keep {kind}")
        await self.store.keep(kind, client, rows, until=until, unless=unless)
        await self._at(f"after keep {kind}")

    async def claim(self, kind: str, client: str, key: str, holder: str, *, until: float) -> str:
        await self._at("before claim")
        held_by = await self.store.claim(kind, client, key, holder, until=until)
        await self._at("after claim")
        return held_by

    async def find(self, kind: str, client: str, keys: Sequence[str]) -> dict[str, bytes]:
        await self._at(f"before find {kind}")
        return await self.store.find(kind, client, keys)

    async def remove(self, kind: str, client: str, keys: Sequence[str]) -> int:
        return await self.store.remove(kind, client, keys)

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
        return await self.store.add(kind, client, key, amounts, until=until, once=once)

    async def hold(
        self, kind: str, client: str, holder: str, amounts: Mapping[str, float], *, until: float
    ) -> dict[str, float]:
        return await self.store.hold(kind, client, holder, amounts, until=until)

    async def scan(
        self, kind: str, *, client: str | None = None, prefix: str = "", after: str = "", limit: int
    ) -> list[Row]:
        rows = await self.store.scan(kind, client=client, prefix=prefix, after=after, limit=limit)
        self.rows_read += len(rows)
        return rows

    async def prune(self, now: float) -> int:
        return await self.store.prune(now)

    async def close(self) -> None:
        await self.store.close()
