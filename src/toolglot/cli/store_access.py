"""Commands that look into the gateway's store: which one it is, and the words for times and amounts."""

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
    parser.add_argument("--store", metavar="PLACE", help="the store to use instead of the configuration's")


def configured(arguments: argparse.Namespace) -> Config | None:
    """The configuration, where it is not the store itself that was named."""
    return None if arguments.store else read_config(arguments.config, _Environment(os.environ))


class _Environment(dict[str, str]):
    """The environment with every key that a configuration may name: who looks into the store needs none of them."""

    def get(self, name: str, default: Any = None) -> Any:
        is_ours = name in (FILE_VARIABLE, CLIENT_KEY_VARIABLE, "HOME", "XDG_STATE_HOME")
        return super().get(name, default) if is_ours else super().get(name) or f"not-set-{name}"


def place_of(arguments: argparse.Namespace, config: Config | None = None) -> str:
    """The file of the store."""
    config = config or configured(arguments)
    place: str = arguments.store if config is None else config.gateway.store
    if place in (MEMORY, OFF):
        raise InputError(
            f"the gateway's store is {place!r}, which no other program can see",
            path="store",
            hint="set store in [gateway] to a file, or name it with --store",
        )
    return place


def with_store(place: str, act: Callable[[Store], Awaitable[T]]) -> T:
    """Do something with a store, and close it."""

    async def run() -> T:
        store = open_store(place)
        try:
            return await act(store)
        except StoreError as error:
            raise InputError(str(error), path="store") from None
        finally:
            await store.close()

    return asyncio.run(run())


def is_there(place: str) -> bool:
    """Whether there is a store: to look into one makes none."""
    return is_address(place) or Path(place).expanduser().exists()
