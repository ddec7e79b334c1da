"""Commands that look into the gateway's store: which one it is, and the words for times and amounts."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, TypeVar

from toolglot.errors import InputError, quote
from toolglot.gateway.config.settings import CLIENT_KEY_VARIABLE, FILE_VARIABLE, MEMORY, OFF, Config, read_config
from toolglot.store import Store, StoreError, is_address, open_store

T = TypeVar("T")

_AGO: Final = re.compile(r"([0-9]{1,5})([hdw])")
_UNITS: Final = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_COUNT: Final = re.compile(r"([0-9][0-9_,]*)(\.[0-9]+)?([kKmMgG]?)")
_TIMES: Final = {"": 1, "k": 1000, "m": 1_000_000, "g": 1_000_000_000}
MOST: Final = 10**15
MAX_DOLLARS: Final = 10**6


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


# --- words ------------------------------------------------------------------------------------------


def whole(text: str) -> int:
    """`250`, `500k`, `2.5M`."""
    found = _COUNT.fullmatch(text.strip())
    number = Decimal(found[1].replace(",", "").replace("_", "") + (found[2] or "")) if found else Decimal(0)
    count = number * _TIMES[found[3].lower()] if found else number
    if count != int(count) or not 1 <= count <= MOST:
        raise argparse.ArgumentTypeError(
            f"expected a number such as 250, 500k or 2M, at most {MOST}, not {text[:40]!r}"
        )
    return int(count)


def dollars(text: str) -> Decimal:
    """`50`, `$12.50`."""
    try:
        amount = Decimal(text.strip().removeprefix("$").replace(",", ""))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or not 0 < amount <= MAX_DOLLARS:
        raise argparse.ArgumentTypeError(
            f"expected US dollars such as 50 or 12.50, at most {MAX_DOLLARS}, not {text[:40]!r}"
        )
    return amount


def moment(text: str, *, now: datetime, option: str, ahead: bool = False) -> datetime:
    """`today`, `2026-11-15`, `2026-11`, `7d` (or hours, weeks): that long ago, or from now on."""
    found = _AGO.fullmatch(text)
    if found:
        length = int(found[1]) * _UNITS[found[2]]
        return now + length if ahead else now - length
    if text == "today":
        return now.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        read = datetime.fromisoformat(f"{text}-01" if re.fullmatch(r"[0-9]{4}-[0-9]{2}", text) else text)
    except ValueError:
        raise InputError(
            f"{quote(text)} is no time", path=option, hint="write a day such as 2026-11-15, or a length such as 30d"
        ) from None
    return read if read.tzinfo is not None else read.replace(tzinfo=UTC)
