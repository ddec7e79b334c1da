"""Whether the store takes what is written to it: found out by writing, and said when it changes.

    watch = StoreWatch(store, file="/var/lib/toolglot/store.db", say=log.say)
    await watch.why_not()        # "" or what is wrong; for `/ready`
    await watch.run()            # looks by itself, until cancelled

A store can fail while it still answers: a full disk, a file system that is read-only, a file that somebody removed, a
server that takes no writes. Reading finds none of these.

Laws: it writes at most once in `EVERY` seconds, however many ask, by a clock that nobody sets back; one row, over and
over. A store is well again when a write has succeeded, and not before.
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
"""As large as a row of a short conversation: a disk may have room for less."""
ROW_SECONDS: Final = 600.0
"""How long the row is kept."""
EVERY: Final = 1.0
"""Seconds for which what was found out holds."""
LOOK_SECONDS: Final = 5.0
"""How often it looks by itself."""
MIN_FREE_BYTES: Final = 1024 * 1024
"""A disk with less is full: one row more or less may still find room in what the store has reserved."""


class StoreWatch:
    """Looks after one store.

    file: the store's file, where it is one.
    say: tells whoever runs the gateway.
    count: is called for each look that found the store failing.
    """

    def __init__(
        self,
        store: Store | None,
        *,
        file: str = "",
        say: Callable[[str], None] = lambda _: None,
        count: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._file = file
        self._say = say
        self._count = count
        self._clock = clock
        self._monotonic = monotonic
        self._looking: asyncio.Task[None] | None = None
        self._looked: float | None = None
        self.reason: str = ""
        """What was wrong when it looked last; empty: nothing."""

    async def why_not(self) -> str:
        """What is wrong with the store now; empty: nothing."""
        if self._store is None:
            return ""
        is_looking = self._looking is not None and not self._looking.done()
        if not is_looking and (self._looked is None or self._monotonic() - self._looked >= EVERY):
            self._looking = asyncio.create_task(self._look(self._store))
            is_looking = True
        if is_looking and self._looking is not None:
            await asyncio.shield(self._looking)  # who goes away leaves the others their answer
        return self.reason

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self.why_not()
            await asyncio.sleep(LOOK_SECONDS)

    async def close(self) -> None:
        """The end of a look that has begun."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self, store: Store) -> None:
        self._looked = self._monotonic()
        before, self.reason = self.reason, await self._wrong(store)
        if self.reason:
            self._count()
        if self.reason and not before:
            self._say(f"the store cannot be written, and requests go on without it: {self.reason}")
        elif before and not self.reason:
            self._say("the store can be written again")

    async def _wrong(self, store: Store) -> str:
        try:
            await store.keep(KIND, "", ROW, until=self._clock() + ROW_SECONDS)
        except StoreError as error:
            return str(error)
        return await asyncio.to_thread(full_disk, self._file) if self._file else ""


def full_disk(file: str) -> str:
    """What is to be said of a disk that has no room left; empty: it has."""
    try:
        found = os.statvfs(Path(file).parent)
    except (OSError, AttributeError):  # no such system call, or another reason, which the write has told
        return ""
    free = found.f_bavail * found.f_frsize
    return f"{file}: the disk is full: {free} bytes are free" if free < MIN_FREE_BYTES else ""
