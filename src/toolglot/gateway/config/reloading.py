"""The configuration while the gateway runs: looked at again when its file has changed.

Laws: an invalid file changes nothing; the reason is reported once, and the old configuration stays. A file that is
being written is not read: it must look the same twice. What needs a key still needs one until a restart.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from toolglot.errors import InputError
from toolglot.gateway.config.settings import FILE, Config

LOOK_SECONDS: Final = 1.0
FIXED: Final = ("host", "port", "store", "store_seconds", "tracing")
"""Settings that only a new start can change."""

Mark = tuple[int, int, int]
"""When a file was written, how long it is, and which one it is."""


class ConfigWatch:
    """Looks at a file now and then.

    read: reads the configuration again; take: applies it; report: gets messages for the operator.
    """

    def __init__(
        self,
        path: str,
        read: Callable[[], Config],
        take: Callable[[Config], Awaitable[None]],
        report: Callable[[str], None],
        *,
        seconds: float = LOOK_SECONDS,
    ) -> None:
        self._path = path
        self._read = read
        self._take = take
        self._report = report
        self._seconds = seconds
        self._taken = self._last = mark_of(path)
        self.is_asked: bool = False
        """Somebody wants the file to be read although it looks the same."""

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            mark, before = mark_of(self._path), self._last
            self._last = mark
            is_still = mark == before and (mark is None or mark[1] > 0)
            if (mark != self._taken and is_still) or self.is_asked:
                self._taken, self.is_asked = mark, False
                await self.look()

    async def look(self) -> None:
        """Read the file and put it in force; say why where that cannot be."""
        try:
            config = await asyncio.to_thread(self._read)
            await self._take(config)
        except InputError as error:
            self._report(f"the configuration stays as it was: {error}")


def mark_of(path: str) -> Mark | None:
    """What differs between two states of a file; None: it is not there."""
    try:
        found = os.stat(path)  # noqa: PTH116 - the same, without an object for each look
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def running_with(new: Config, old: Config) -> tuple[Config, list[str]]:
    """The new configuration with what cannot change while the gateway runs; and the names of that."""
    if (old.gateway.client_keys or old.keys) and not (new.gateway.client_keys or new.keys):
        raise InputError(
            "it has no client keys any more, and the gateway demands one",
            path=new.origin,
            hint="put one back, or start the gateway anew to serve without",
        )
    if new.simulates_known and not old.simulates_known:
        raise InputError(
            "nothing is configured any more, and simulated models would answer",
            path=old.origin,
            hint="put the file back, or start the gateway anew to serve simulated models",
        )
    kept: dict[str, Any] = {
        name: getattr(old.gateway, name) for name in FIXED if getattr(old.gateway, name) != getattr(new.gateway, name)
    }
    if not kept:
        return new, []
    return msgspec.structs.replace(new, gateway=msgspec.structs.replace(new.gateway, **kept)), list(kept)


def watched_file(config: Config) -> str | None:
    """The file of a configuration that was read from one; where nothing is configured, the one that may come."""
    if config.is_empty:
        return str(Path(FILE).absolute())
    return config.origin if config.origin and Path(config.origin).is_file() else None
