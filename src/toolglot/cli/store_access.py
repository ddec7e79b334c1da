"""The gateway's store, for commands that read or change it: where it is, and how to open it."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from toolglot.errors import InputError
from toolglot.gateway.config.settings import CLIENT_KEY_VARIABLE, FILE_VARIABLE, MEMORY, OFF, Config, read_config
from toolglot.store import Store, StoreError, is_address, open_store

T = TypeVar("T")


def add_store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", help="default: $TOOLGLOT_CONFIG, else ./toolglot.toml, else none")
    parser.add_argument("--store", metavar="FILE|URL", help="the store to use instead of the configured one")


def store_config(arguments: argparse.Namespace) -> Config | None:
    """The configuration; None if `--store` is set."""
    return None if arguments.store else read_config(arguments.config, _Environment(os.environ))


class _Environment(dict[str, str]):
    """An environment in which every variable is set: reading the store needs no provider keys."""

    def get(self, name: str, default: Any = None) -> Any:
        is_ours = name in (FILE_VARIABLE, CLIENT_KEY_VARIABLE, "HOME", "XDG_STATE_HOME")
        return super().get(name, default) if is_ours else super().get(name) or f"not-set-{name}"


def store_location(arguments: argparse.Namespace, config: Config | None = None) -> str:
    """The path or URL of the store."""
    config = config or store_config(arguments)
    location: str = arguments.store if config is None else config.gateway.store
    if location in (MEMORY, OFF):
        raise InputError(
            f"the gateway's store is {location!r}, which other processes cannot read",
            path="store",
            hint="set store in [gateway] to a file, or name it with --store",
        )
    return location


def with_store(location: str, act: Callable[[Store], Awaitable[T]]) -> T:
    """Run `act` with an open store, and close it."""

    async def run() -> T:
        store = open_store(location)
        try:
            return await act(store)
        except StoreError as error:
            raise InputError(str(error), path="store") from None
        finally:
            await store.close()

    return asyncio.run(run())


def store_exists(location: str) -> bool:
    """Whether the store exists. Reading one must not create it."""
    return is_address(location) or Path(location).expanduser().exists()
