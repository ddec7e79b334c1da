"""The table `[prices]` of a configuration, which overrides the list of `upstream/prices.py`.

prices = ConfiguredPrices(config.prices)
prices.cost("claude-opus-5", usage, upstream="anthropic")     # Decimal("0.0625"); None: unknown
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from toolglot.gateway.config.file import ConfigText, Mistakes, read_table, table_of
from toolglot.profiles import Overrides
from toolglot.upstream import prices
from toolglot.upstream.prices import CacheShares, Price, cost, listed_prices, read_list, target_shares

__all__ = [
    "MAX_OWN_PRICES",
    "ConfiguredPrices",
    "Price",
    "PriceSettings",
    "cost",
    "listed_prices",
    "read_list",
    "read_own_prices",
]

MAX_OWN_PRICES: Final = 1000

Dollars = Annotated[float, Meta(ge=0, le=1_000_000, title="a number from 0")]


class PriceSettings(Struct, frozen=True, kw_only=True):
    """`[prices."PATTERN"]`: what models cost, in US dollars for a million tokens."""

    input: Annotated[Dollars, Meta(description="Prompt tokens.")]
    output: Annotated[Dollars, Meta(description="Reply tokens, including thinking.")]
    cache_read: Annotated[
        Dollars | None,
        Meta(
            title="a number from 0",
            description="Prompt tokens that were read from a cache. Default: the provider's usual share of `input`, if "
            "it is known, else as `input`.",
        ),
    ] = None
    cache_write: Annotated[
        Dollars | None,
        Meta(
            title="a number from 0",
            description="Prompt tokens that were written to a cache. Default: as for `cache_read`.",
        ),
    ] = None
    cache_write_1h: Annotated[
        Dollars | None,
        Meta(
            title="a number from 0",
            description="Prompt tokens that were written to a cache for an hour. Default: the provider's usual share "
            "of `input`, if it is known, else as `cache_write`.",
        ),
    ] = None

    def price(self) -> Price:
        return Price(
            _exact(self.input),
            _exact(self.output),
            None if self.cache_read is None else _exact(self.cache_read),
            None if self.cache_write is None else _exact(self.cache_write),
            None if self.cache_write_1h is None else _exact(self.cache_write_1h),
            source="[prices]",
        )


def _exact(amount: float) -> Decimal:
    """The number as written, not its nearest binary fraction."""
    return Decimal(str(amount))


def read_own_prices(value: Any, text: ConfigText) -> dict[str, PriceSettings]:
    """The table `[prices]` of a configuration."""
    tables = table_of(value, text, "prices")
    if len(tables) > MAX_OWN_PRICES:
        raise text.error(
            f"more than {MAX_OWN_PRICES} prices", "prices", hint="use patterns: one can set the price of many models"
        )
    found, mistakes = {}, Mistakes()
    for name, table in tables.items():
        settings = mistakes.collect(functools.partial(_read_price, name, table, text))
        if settings is not None:
            found[name] = settings
    mistakes.raise_all()
    return found


def _read_price(name: str, table: Any, text: ConfigText) -> PriceSettings:
    fields = table_of(table, text, "prices", name)
    for needed in ("input", "output"):
        if needed not in fields:
            hint = f"add it, or write {needed} = 0 if it costs nothing"
            raise text.error(f"missing setting: {needed}", "prices", name, hint=hint)
    return read_table(fields, PriceSettings, text, "prices", name)


class ConfiguredPrices(prices.Prices):
    """Finds the price of a model; made once for a configuration.

    targets: the target of each upstream, for what cached tokens cost where a price does not say.
    """

    def __init__(
        self,
        own: Mapping[str, PriceSettings] | None = None,
        targets: Mapping[str, str] | None = None,
        overrides: Overrides | None = None,
    ) -> None:
        known = dict(targets or {})

        def shares(model: str, upstream: str) -> CacheShares:
            return target_shares(known.get(upstream, upstream), model, overrides)

        super().__init__({name: settings.price() for name, settings in (own or {}).items()}, shares)
