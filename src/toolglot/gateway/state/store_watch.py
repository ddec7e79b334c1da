"""Whether the store can be written: checked by writing, and reported when it changes.

    watch = StoreWatch(store, file="/var/lib/toolglot/store.db", notice=log.notice)
    await watch.problem()        # "" or what is wrong; for `/ready`
    await watch.run()            # checks by itself, until cancelled

A store can fail while it still responds: a full disk, a read-only file system, a file that was removed, a server that
accepts no writes. Reading finds none of these.

Laws: it writes at most once in `MIN_SECONDS`, however often it is called, by a monotonic clock; always the same row. A
store works again when a write has succeeded, and not before.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from toolglot.store import Store, StoreError

KIND: Final = "ready"
ROW: Final = {"ready": bytes(8 * 1024)}
"""As large as a row of a short conversation: a nearly full disk may have space for less."""
ROW_SECONDS: Final = 600.0
"""How long the row is kept."""
MIN_SECONDS: Final = 1.0
"""Seconds for which a check is valid."""
WAIT_SECONDS: Final = 2.0
"""How long a caller waits for a check: what asks whether the gateway is ready has a short patience."""
CHECK_SECONDS: Final = 5.0
"""How often it checks by itself."""
MIN_FREE_BYTES: Final = 1024 * 1024
"""A disk with less is full: a single row may still fit into space that the store has reserved."""


class StoreWatch:
    """Watches one store.

    file: the store's file, where it is one.
    notice: gets messages for the operator.
    count: is called for each check that failed.
    """

    def __init__(
        self,
        store: Store | None,
        *,
        file: str = "",
        notice: Callable[[str], None] = lambda _: None,
        count: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._file = file
        self._notice = notice
        self._count = count
        self._clock = clock
        self._monotonic = monotonic
        self._checking: asyncio.Task[None] | None = None
        self._checked_at: float | None = None
        self.reason: str = ""
        """The problem that the last check found; empty: none."""

    async def problem(self) -> str:
        """The problem of the store now; empty: it has none."""
        if self._store is None:
            return ""
        is_checking = self._checking is not None and not self._checking.done()
        if not is_checking and (self._checked_at is None or self._monotonic() - self._checked_at >= MIN_SECONDS):
            self._checking = asyncio.create_task(self._check(self._store))
            is_checking = True
        if is_checking and self._checking is not None:
            # Not awaited itself: a disconnect does not cancel it for others.
            ended, _ = await asyncio.wait([self._checking], timeout=WAIT_SECONDS)
            if not ended:
                return self.reason or f"the store has not responded within {WAIT_SECONDS:g} s"
        return self.reason

    async def run(self) -> None:
        """Check again and again, until cancelled."""
        while True:
            await self.problem()
            await asyncio.sleep(CHECK_SECONDS)

    async def close(self) -> None:
        """End a check that has begun."""
        if self._checking is not None:
            self._checking.cancel()
            await asyncio.gather(self._checking, return_exceptions=True)

    async def _check(self, store: Store) -> None:
        self._checked_at = self._monotonic()
        before, self.reason = self.reason, await self._find_problem(store)
        if self.reason:
            self._count()
        if self.reason and not before:
            self._notice(f"the store cannot be written; requests continue without it: {self.reason}")
        elif before and not self.reason:
            self._notice("the store can be written again")

    async def _find_problem(self, store: Store) -> str:
        try:
            await store.keep(KIND, "", ROW, until=self._clock() + ROW_SECONDS)
        except StoreError as error:
            return str(error)
        return await asyncio.to_thread(full_disk, self._file) if self._file else ""


def full_disk(file: str) -> str:
    """The message for a full disk; empty: it has space."""
    try:
        found = os.statvfs(Path(file).parent)
    except (OSError, AttributeError):  # no such system call, or a problem that the write has found
        return ""
    free = found.f_bavail * found.f_frsize
    return f"{file}: the disk is full, {free} bytes are free" if free < MIN_FREE_BYTES else ""
