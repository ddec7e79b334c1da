"""Reloading: the configuration is read again when its file has changed.

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

CHECK_SECONDS: Final = 1.0
FIXED: Final = ("host", "port", "store", "store_seconds", "tracing")
"""Settings that only a new start can change."""

Mark = tuple[int, int, int]
"""The modification time, size and inode of a file."""


class ConfigWatch:
    """Checks a file every `seconds`.

    read: reads the configuration again; apply: applies it; report: gets messages for the operator.
    """

    def __init__(
        self,
        path: str,
        read: Callable[[], Config],
        apply: Callable[[Config], Awaitable[None]],
        report: Callable[[str], None],
        *,
        seconds: float = CHECK_SECONDS,
    ) -> None:
        self._path = path
        self._read = read
        self._apply = apply
        self._report = report
        self._seconds = seconds
        self._loaded = self._last = mark_of(path)
        self.is_requested: bool = False
        """Read the file at the next check, changed or not."""

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            mark, before = mark_of(self._path), self._last
            self._last = mark
            is_still = mark == before and (mark is None or mark[1] > 0)
            if (mark != self._loaded and is_still) or self.is_requested:
                self._loaded, self.is_requested = mark, False
                await self.reload()

    async def reload(self) -> None:
        """Read the file and apply it, or report why that is not possible."""
        try:
            config = await asyncio.to_thread(self._read)
            await self._apply(config)
        except InputError as error:
            self._report(f"cannot reload the configuration; the old one stays: {error}")


def mark_of(path: str) -> Mark | None:
    """What differs between two states of a file; None: it does not exist."""
    try:
        found = os.stat(path)  # noqa: PTH116 - the same, without an object for each check
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def keep_fixed(new: Config, old: Config) -> tuple[Config, list[str]]:
    """The new configuration with the old values of `FIXED`, and the names of those that differ."""
    if (old.gateway.client_keys or old.keys) and not (new.gateway.client_keys or new.keys):
        raise InputError(
            "the client keys were removed, and the gateway requires one",
            path=new.origin,
            hint="add one, or restart the gateway to serve without keys",
        )
    if new.simulates_known and not old.simulates_known:
        raise InputError(
            "nothing is configured any more, so that simulated models would answer",
            path=old.origin,
            hint="restore the file, or restart the gateway to serve simulated models",
        )
    kept: dict[str, Any] = {
        name: getattr(old.gateway, name) for name in FIXED if getattr(old.gateway, name) != getattr(new.gateway, name)
    }
    if not kept:
        return new, []
    return msgspec.structs.replace(new, gateway=msgspec.structs.replace(new.gateway, **kept)), list(kept)


def watched_file(config: Config) -> str | None:
    """The file of a configuration; if nothing is configured, the one that may be written later."""
    if config.is_empty:
        return str(Path(FILE).absolute())
    return config.origin if config.origin and Path(config.origin).is_file() else None
