"""What every store does with a call before it reads or writes: check it, and make one operation of it.

    class SqliteStore(CheckedStore): ...     # carries out operations

Law: a store carries out only what was checked here, so that all stores refuse the same calls in the same words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from toolglot.store.interface import (
    Mark,
    Row,
    StoreLimits,
    check_amounts,
    check_claim,
    check_keys,
    check_scan,
    check_time,
    check_unless,
    held_kind,
    mark_of,
    row_bytes,
)


@dataclass(frozen=True, slots=True)
class Keep:
    kind: str
    client: str
    rows: tuple[tuple[str, int, bytes], ...]
    """Key, size and value."""
    until: float
    unless: tuple[str, ...]
    now: float

    @property
    def size(self) -> int:
        return sum(size for _, size, _ in self.rows)


@dataclass(frozen=True, slots=True)
class NamedRows:
    """Rows to find or to remove. Each key is in it once."""

    kind: str
    client: str
    keys: tuple[str, ...]
    now: float


@dataclass(frozen=True, slots=True)
class Add:
    kind: str
    client: str
    key: str
    amounts: dict[str, float]
    until: float
    now: float
    mark: Mark | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    kind: str
    client: str
    key: str
    holder: str
    until: float
    now: float


@dataclass(frozen=True, slots=True)
class Hold:
    kind: str
    """That of the claims (`held_kind`)."""
    client: str
    holder: str
    amounts: str
    """As JSON; empty: it releases what it held."""
    until: float
    now: float


@dataclass(frozen=True, slots=True)
class Scan:
    kind: str
    client: str | None
    prefix: str
    after: str
    limit: int
    now: float


class CheckedStore(ABC):
    """A `Store` whose calls are checked; a subclass carries out the operations."""

    def __init__(self, clock: Callable[[], float], limits: StoreLimits) -> None:
        self._clock = clock
        self._limits = limits

    @property
    def warnings(self) -> tuple[str, ...]:
        """What its operator should know about it."""
        return ()

    async def keep(
        self, kind: str, client: str, rows: Mapping[str, bytes], *, until: float, unless: Sequence[str] = ()
    ) -> None:
        sizes = row_bytes(kind, client, rows, self._limits)
        end = check_time(until, "$.until")
        refused_keys = check_unless(unless, self._limits)
        sized = tuple((key, size, value) for (key, value), size in zip(rows.items(), sizes, strict=True))
        await self._keep(Keep(kind, client, sized, end, refused_keys, self._clock()))

    async def find(self, kind: str, client: str, keys: Sequence[str]) -> dict[str, bytes]:
        check_keys(kind, client, keys, self._limits)
        return await self._find(NamedRows(kind, client, tuple(dict.fromkeys(keys)), self._clock()))

    async def remove(self, kind: str, client: str, keys: Sequence[str]) -> int:
        check_keys(kind, client, keys, self._limits)
        return await self._remove(NamedRows(kind, client, tuple(dict.fromkeys(keys)), self._clock()))

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
        more = check_amounts(kind, client, key, amounts, self._limits)
        end, now = check_time(until, "$.until"), self._clock()
        mark = mark_of(kind, client, key, once, now, self._limits)
        return await self._add(Add(kind, client, key, more, end, now, mark))

    async def claim(self, kind: str, client: str, key: str, holder: str, *, until: float) -> str:
        check_claim(kind, client, key, holder, self._limits)
        end = check_time(until, "$.until")
        return await self._claim(Claim(kind, client, key, holder, end, self._clock()))

    async def hold(
        self, kind: str, client: str, holder: str, amounts: Mapping[str, float], *, until: float
    ) -> dict[str, float]:
        check_claim(kind, client, "", holder, self._limits)
        held = check_amounts(kind, client, holder, amounts, self._limits)
        end = check_time(until, "$.until")
        text = msgspec.json.encode(held).decode() if held else ""
        return await self._hold(Hold(held_kind(kind), client, holder, text, end, self._clock()))

    async def scan(
        self, kind: str, *, client: str | None = None, prefix: str = "", after: str = "", limit: int
    ) -> list[Row]:
        check_scan(kind, client, prefix, after, limit, self._limits)
        return await self._scan(Scan(kind, client, prefix, after, limit, self._clock()))

    async def prune(self, now: float) -> int:
        return await self._prune(check_time(now, "$.now"))

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def _keep(self, operation: Keep) -> None: ...

    @abstractmethod
    async def _find(self, operation: NamedRows) -> dict[str, bytes]: ...

    @abstractmethod
    async def _remove(self, operation: NamedRows) -> int: ...

    @abstractmethod
    async def _add(self, operation: Add) -> dict[str, float]: ...

    @abstractmethod
    async def _claim(self, operation: Claim) -> str: ...

    @abstractmethod
    async def _hold(self, operation: Hold) -> dict[str, float]: ...

    @abstractmethod
    async def _scan(self, operation: Scan) -> list[Row]: ...

    @abstractmethod
    async def _prune(self, now: float) -> int: ...
