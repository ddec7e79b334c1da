"""The rows of a session's log in a store.

Law: entries have consecutive numbers, and no entry is ever overwritten.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from msgspec import Struct

from toolglot.errors import InputError, LimitError, quote
from toolglot.runtime.log.entries import LAST_NUMBER, LogEntry, damaged_error, decode, decode_opened, row_key
from toolglot.store import Row, Store, StoreConflictError

T = TypeVar("T")

KIND: Final = "turns"
PAGE_ROWS: Final = 256
FOR_EVER: Final = math.inf


class LogLimits(Struct, frozen=True, kw_only=True):
    """Limits for the log of a session. Each refusal names its limit."""

    max_entry_bytes: int = 32 * 1024**2
    """Bytes of one entry. The state after a compression may take several entries."""
    max_session_bytes: int = 1024**3
    """Bytes of all entries since the last reset."""
    max_report_entries: int = 2000
    """Report entries that a reset keeps: the newest."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            limit = getattr(self, name)
            if type(limit) is not int or limit < 1:
                raise InputError("expected a whole number from 1", path=name)


DEFAULT_LOG_LIMITS: Final = LogLimits()


class LogRows:
    """The rows of one session's log in a store."""

    def __init__(self, store: Store, session: str, *, owner: str = "", limits: LogLimits = DEFAULT_LOG_LIMITS) -> None:
        self._store = store
        self._session = session
        self._limits = limits
        self._client = f"{owner}/{session}" if owner else session

    async def append(self, number: int, values: Sequence[bytes]) -> None:
        """Write entries from this number on, all or none. Raises `StoreConflictError` if one of them exists."""
        if number + len(values) > LAST_NUMBER:
            raise LimitError(f"session {quote(self._session)} has too many entries", hint="fork it")
        rows = {row_key(number + offset): value for offset, value in enumerate(values)}
        await self._store.keep(KIND, self._client, rows, until=FOR_EVER, unless=tuple(rows))

    async def contains(self, number: int, values: Sequence[bytes]) -> bool:
        """Whether exactly these entries exist."""
        rows = {row_key(number + offset): value for offset, value in enumerate(values)}
        return await self._store.find(KIND, self._client, list(rows)) == rows

    async def read(self, first: int | None, *, last: int = -1) -> AsyncIterator[tuple[int, LogEntry]]:
        """The entries from this number on, or from the first that exists, with their numbers. All up to `last` must
        exist. Before the first there may be fences, with gaps: what was between them has been removed."""
        size = 0
        number = first or 0
        is_begun = first is not None
        async for key, value in self._from(number):
            if not is_begun:
                number = row_number(key)
                is_begun = decode_opened(value) is None
            if key != row_key(number):
                raise damaged_error(self._session, number, "is missing")
            size += len(value)
            if size > self._limits.max_session_bytes:
                limit = f"max_session_bytes, {self._limits.max_session_bytes}"
                raise LimitError(f"session {quote(self._session)} is larger than {limit}", hint="pass larger LogLimits")
            yield number, decode(value, session=self._session, number=number)
            number += 1
        if number <= last:
            raise damaged_error(self._session, number, f"is missing, and all up to {last}")

    async def has(self, number: int) -> bool:
        """Whether there is an entry with this number."""
        return bool(await self._store.find(KIND, self._client, [row_key(number)]))

    async def ends_at(self, number: int, *, new: bool) -> bool:
        """Whether there is no entry from this number on, and, unless the session is new, one right before it."""
        first = number if new else number - 1
        return [key async for key, _ in self._from(first)] == [row_key(n) for n in range(first, number)]

    async def end(self) -> int:
        """The number after the last entry."""
        number = 0
        async for key, _ in self._from(0):
            number = max(number, row_number(key) + 1)
        return number

    async def remove(self, number: int) -> None:
        """Remove the entries from this number on."""
        await self._remove([key async for key, _ in self._from(number)])

    async def clear(self, *, before: int, until: float) -> int:
        """Remove the entries before a number; how many. `LogOpened` entries stay until `until`: an earlier holder that
        does not know that it lost the session would write there."""
        keys: list[str] = []
        fences: dict[str, bytes] = {}
        async for key, value in self._from(0):
            if key >= row_key(before):
                break
            opened = decode_opened(value)
            if opened is None or opened.new:
                keys.append(key)
            else:
                fences[key] = value
        for part in chunks(list(fences.items()), PAGE_ROWS):
            await self._store.keep(KIND, self._client, dict(part), until=until)
        return await self._remove(keys)

    async def remove_all(self, fence: bytes, *, until: float) -> list[int]:
        """Remove all entries, but leave one after them for a time: the next write of a process that assumes that
        it holds the session conflicts with it. Returns the numbers of all `LogOpened` entries."""
        openings: list[int] = []
        number = 0
        while True:
            async for key, value in self._from(number):
                number = max(number, row_number(key) + 1)
                if decode_opened(value) is not None:
                    openings.append(row_number(key))
            key = row_key(number)
            with suppress(StoreConflictError):
                await self._store.keep(KIND, self._client, {key: fence}, until=until, unless=(key,))
                break
        await self.clear(before=number, until=until)
        return openings

    async def _from(self, number: int) -> AsyncIterator[tuple[str, bytes]]:
        async for row in scan_rows(self._store, KIND, self._client, after=row_key(number - 1) if number else ""):
            if row.value is not None:
                yield row.key, row.value

    async def _remove(self, keys: list[str]) -> int:
        gone = 0
        for part in chunks(keys, PAGE_ROWS):
            gone += await self._store.remove(KIND, self._client, part)
        return gone


def chunks(items: list[T], size: int) -> Iterator[list[T]]:
    """The items in lists of at most `size`."""
    return (items[start : start + size] for start in range(0, len(items), size))


def row_number(key: str) -> int:
    return int(key) if key.isascii() and key.isdigit() else 0


async def scan_rows(store: Store, kind: str, client: str, *, after: str = "") -> AsyncIterator[Row]:
    """All rows of a client after a key, page by page. Pages are shorter if rows are large."""
    position = f"{client}\0{after}" if after else ""
    limit = PAGE_ROWS
    while True:
        try:
            page = await store.scan(kind, client=client, after=position, limit=limit)
        except LimitError:
            if limit == 1:
                raise
            limit //= 4
            continue
        for row in page:
            yield row
        if len(page) < limit:
            return
        position = page[-1].cursor
