"""Usage, read from the store: by client, day, upstream and model.

    rows = await read_usage(store, since="2026-11-01")
    group_usage(rows, "model")        # {"gpt-5.5": Amounts(requests=…, input=…, …), …}

`metering.py` writes it. Law: sums are exact: tokens are whole numbers, money is whole billionths of a dollar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import fields

from toolglot.gateway.accounting.metering import NANO, USAGE
from toolglot.store import Row, Store

By = Literal["key", "model", "day", "upstream"]
_PAGE: Final = 1000


class Amounts(Struct, frozen=True):
    """Amounts of everything that is counted."""

    requests: int = 0
    failed: int = 0
    """Requests without a complete reply."""
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    """Of the input."""
    cost: int = 0
    """In billionths of a dollar."""
    unpriced: int = 0
    """Requests whose price is not known: they are not in the cost."""
    uncounted: int = 0
    """Replies whose tokens the provider did not report."""
    cache_lost: int = 0
    """Tokens of the input that were cached for the request before, and were read again."""
    cache_lost_cost: int = 0
    """What that cost more, in billionths of a dollar, as far as the prices are known."""

    @property
    def dollars(self) -> Decimal:
        return Decimal(self.cost) / NANO

    @property
    def lost_dollars(self) -> Decimal:
        return Decimal(self.cache_lost_cost) / NANO

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(*(getattr(self, name) + getattr(other, name) for name in self.__struct_fields__))


class UsageRow(Struct, frozen=True):
    """What one client used of one model on one day."""

    client: str
    day: str
    upstream: str
    model: str
    amounts: Amounts


async def read_usage(store: Store, *, since: str = "", until: str = "9999") -> list[UsageRow]:
    """The usage from one day to another, both included."""
    found: list[UsageRow] = []
    after = ""
    while rows := await store.scan(USAGE, after=after, limit=_PAGE):
        found += [read for row in rows if since <= (read := _read(row)).day <= until]
        after = rows[-1].cursor
    return found


def _read(row: Row) -> UsageRow:
    day, upstream, model = [*row.key.split("\n", 2), "", ""][:3]
    known = {field.name for field in fields(Amounts)}
    amounts = Amounts(**{name: round(amount) for name, amount in row.amounts.items() if name in known})
    return UsageRow(row.client, day, upstream, model, amounts)


_GROUPS: Final[dict[By, Callable[[UsageRow], str]]] = {
    "key": lambda row: row.client,
    "model": lambda row: row.model,
    "day": lambda row: row.day,
    "upstream": lambda row: row.upstream,
}


def group_usage(rows: Iterable[UsageRow], by: By) -> dict[str, Amounts]:
    """Sums: days in order, everything else by cost, and then by tokens."""
    found: dict[str, Amounts] = {}
    for row in rows:
        name = _GROUPS[by](row)
        found[name] = found.get(name, Amounts()) + row.amounts
    if by == "day":
        return dict(sorted(found.items()))
    return dict(sorted(found.items(), key=lambda pair: (-pair[1].cost, -pair[1].input - pair[1].output, pair[0])))
