"""Rows that the store did not take: they wait in memory, are served from there, and are written when it is back.

    late = LateStore(store, failed=gateway.note_failure)
    await late.keep("responses", client, rows, until=until)     # waits here if the store fails
    late.is_waiting("responses", client, "link:resp_1")         # whether it still does
    await late.run()                                            # writes what waits, until cancelled

For rows that are written once, such as stored responses: what another process may change meanwhile must not be written
late.

Laws: no more than `max_bytes` wait; beyond that, the store's error is raised. What waits is found and removed as if it
were stored, by this process only. A row that the store confirmed is not written again.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from toolglot.errors import InputError
from toolglot.store import RowStore, StoreConflictError, StoreError

MAX_BYTES: Final = 64 * 1024 * 1024
"""Bytes of rows that wait, with their names."""
ROW_BYTES: Final = 400
"""What a row counts besides its bytes: its objects."""
RETRY_SECONDS: Final = 1.0
BATCH_BYTES: Final = 4 * 1024 * 1024
BATCH_ROWS: Final = 500
CLOSE_SECONDS: Final = 3.0
PROBE: Final = ("ready", "", ("late",))
"""A row that is looked up to see whether the store responds; there is none."""

Name = tuple[str, str, str]


class WaitingRow(NamedTuple):
    value: bytes
    until: float

    def size(self, name: Name) -> int:
        return len(self.value) + sum(map(len, name)) + ROW_BYTES


class LateStore:
    """A `RowStore` that keeps rows in memory while the store behind it fails.

    failed: is called with each failure that made rows wait.
    report: gets messages for the operator.
    """

    def __init__(
        self,
        store: RowStore,
        *,
        max_bytes: int = MAX_BYTES,
        failed: Callable[[StoreError], None] = lambda _: None,
        report: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._max_bytes = max_bytes
        self._failed = failed
        self._report = report
        self._clock = clock
        self._rows: dict[Name, WaitingRow] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        """The number of rows by kind and client."""
        self._size = 0
        self.last_error: str = ""
        """Why rows wait, as last heard."""
        self._has_rows = asyncio.Event()
        self._flushing = asyncio.Lock()
        self._writing: frozenset[Name] = frozenset()
        """The rows that are being written now."""

    @property
    def size(self) -> int:
        """The bytes that wait."""
        return self._size

    def is_waiting(self, kind: str, client: str, key: str = "") -> bool:
        """Whether a row waits, or any row of this kind and client."""
        if key:
            return (kind, client, key) in self._rows
        return bool(self._counts[kind, client])

    # --- for requests -------------------------------------------------------------------------------

    async def keep(
        self, kind: str, client: str, rows: Mapping[str, bytes], *, until: float, unless: Sequence[str] = ()
    ) -> None:
        try:
            await self._store.keep(kind, client, rows, until=until, unless=unless)
        except StoreConflictError:
            raise
        except StoreError as error:
            if unless:  # only the store knows whether they are there
                raise
            self._put(kind, client, rows, until, error)
            self._note(error)
        else:
            self._drop([(kind, client, key) for key in rows])

    async def find(self, kind: str, client: str, keys: Sequence[str]) -> dict[str, bytes]:
        now = self._clock()
        waiting = {key: self._rows[kind, client, key] for key in keys if (kind, client, key) in self._rows}
        found = {key: row.value for key, row in waiting.items() if row.until > now}
        missing = [key for key in keys if key not in found]
        if missing or not keys:
            found |= await self._store.find(kind, client, missing)
        return {key: found[key] for key in keys if key in found}

    async def remove(self, kind: str, client: str, keys: Sequence[str]) -> int:
        names = [(kind, client, key) for key in keys]
        # Dropped first, so that a row is not written between its removal from the store and from here. One that is
        # being written could arrive in the store after its removal.
        if not self._writing.isdisjoint(names):
            async with self._flushing:
                waiting = self._take(names)
        else:
            waiting = self._take(names)
        try:
            count = await self._store.remove(kind, client, keys)
        except StoreError:
            for name, row in waiting.items():
                self._add(name, row)
            raise
        return max(count, len(waiting))

    def _note(self, error: StoreError) -> None:
        self.last_error = str(error)
        self._failed(error)

    # --- what waits ---------------------------------------------------------------------------------

    def _put(self, kind: str, client: str, rows: Mapping[str, bytes], until: float, error: StoreError) -> None:
        """Let rows wait, all or none."""
        named = {(kind, client, key): WaitingRow(value, until) for key, value in rows.items()}
        more = sum(row.size(name) for name, row in named.items())
        there = sum(self._rows[name].size(name) for name in named if name in self._rows)
        if self._size - there + more > self._max_bytes:
            raise error
        for name, row in named.items():
            self._add(name, row)

    def _add(self, name: Name, row: WaitingRow) -> None:
        self._drop([name])
        self._rows[name] = row
        self._size += row.size(name)
        self._counts[name[:2]] += 1
        self._has_rows.set()

    def _take(self, names: Sequence[Name]) -> dict[Name, WaitingRow]:
        """Take out the rows that wait, of those with these names."""
        waiting = {name: self._rows[name] for name in names if name in self._rows}
        self._drop(waiting)
        return waiting

    def _drop(self, names: Sequence[Name] | Mapping[Name, WaitingRow]) -> None:
        if not self._rows:
            return
        for name in names:
            row = self._rows.pop(name, None)
            if row is not None:
                self._size -= row.size(name)
                self._counts[name[:2]] -= 1
        if not self._rows:
            self._has_rows.clear()
            self._counts.clear()

    async def run(self) -> None:
        """Write what waits when the store is back, until cancelled."""
        while True:
            await self._has_rows.wait()
            await asyncio.sleep(RETRY_SECONDS)
            await self.flush()

    async def flush(self) -> bool:
        """Write what waits. Returns whether nothing does any more."""
        async with self._flushing:
            count = 0
            try:
                if self._rows:  # a read fails at once while the store is silent, and a write would be queued again
                    await self._store.find(*PROBE)
                while self._rows:
                    count += await self._write_batch()
            except StoreError as error:
                self._note(error)
            if count and not self._rows:
                self._report("what could not be stored during the outage is stored now")
            return not self._rows

    async def _write_batch(self) -> int:
        """Write some rows that belong together. Returns how many."""
        now = self._clock()
        self._drop([name for name, row in self._rows.items() if row.until <= now])
        batch = self._next_batch()
        if not batch:
            return 0
        kind, client, _ = next(iter(batch))
        until = next(iter(batch.values())).until
        self._writing = frozenset(batch)
        try:
            await self._store.keep(kind, client, {name[2]: row.value for name, row in batch.items()}, until=until)
        except InputError as error:  # the store will never take them
            self._report(f"cannot store {len(batch)} rows: {error}")
        finally:
            self._writing = frozenset()
        self._drop([name for name, row in batch.items() if self._rows.get(name) is row])
        return len(batch)

    def _next_batch(self) -> dict[Name, WaitingRow]:
        """The oldest rows, of one kind, client and time."""
        batch: dict[Name, WaitingRow] = {}
        size = 0
        for name, row in self._rows.items():
            first = next(iter(batch.items()), (name, row))
            if name[:2] != first[0][:2] or row.until != first[1].until:
                continue
            batch[name] = row
            size += row.size(name)
            if size >= BATCH_BYTES or len(batch) >= BATCH_ROWS:
                break
        return batch

    async def close(self) -> None:
        """Write what waits, if that is possible soon; `run` is over."""
        if not self._rows:
            return
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.flush()
        except TimeoutError:
            pass
        if self._rows:
            self._report(f"cannot store what was kept in memory during the outage: {len(self._rows)} rows are lost")
