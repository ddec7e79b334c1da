"""Prices of models: `prices.toml`, and before it the caller's own.

    prices = Prices({"box/*": Price(Decimal(0), Decimal(0))})
    prices.cost("claude-opus-5", usage, upstream="anthropic")     # Decimal("0.0625"); None: not known

A name is looked for as `upstream/model` and as `model`, each as it is and without a date at its end, and a name of
Claude on Bedrock (`us.anthropic.claude-…-v1:0`) also without its region, vendor and version: first among the
caller's patterns, in their order, then among those of the list. Where a price does not say what cached tokens cost, it
is the target's usual share of other input (`cache.read_price`, `cache.write_price`), else what other input costs.

Law: an unknown price is None, never 0; code that counts money must handle it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, NamedTuple, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot import profiles
from toolglot.conversation import Usage
from toolglot.errors import InputError
from toolglot.profiles import Overrides
from toolglot.profiles.name_patterns import matches, spellings
from toolglot.profiles.rules import CacheRules

MILLION: Final = Decimal(1_000_000)
_THOUSAND: Final = 1_000
"""Billionths of a dollar that a token costs whose million costs one."""
_FILE: Final = Path(__file__).with_name("prices.toml")
_BEDROCK: Final = re.compile(r"(?:[a-z]{2,6}\.)?anthropic\.(claude-[\w.-]+?)(?:-v[0-9]{1,2}(?::[0-9]{1,2})?)?")
"""A name of Claude on Bedrock, with its region and version."""

Confidence = Literal["documented", "reported", "doubtful", "own"]


class Rates(Struct, frozen=True, forbid_unknown_fields=True):
    """Dollars for a million tokens of each sort; None: what other input costs."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None
    """For an hour; None: as `cache_write`."""

    @property
    def read_rate(self) -> Decimal:
        """What a million tokens from the cache cost."""
        return self.input if self.cache_read is None else self.cache_read

    @property
    def write_rate(self) -> Decimal:
        """What a million tokens cost that are written to the cache, for the usual time."""
        return self.input if self.cache_write is None else self.cache_write

    @property
    def write_rate_1h(self) -> Decimal:
        """The same for an hour."""
        return self.write_rate if self.cache_write_1h is None else self.cache_write_1h

    def of(self, usage: Usage) -> Decimal:
        """What tokens cost at these rates."""
        read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
        hour = min(usage.cache_write_1h_tokens or 0, written)
        plain = max((usage.input_tokens or 0) - read - written, 0)
        total = plain * self.input + (usage.output_tokens or 0) * self.output + read * self.read_rate
        total += (written - hour) * self.write_rate + hour * self.write_rate_1h
        return total / MILLION

    def with_shares(self, shares: CacheShares) -> Self:
        """The same rates, those for cached tokens that are not known as shares of the other input."""
        found = {
            f"cache_{name}": self.input * share
            for name, share in shares._asdict().items()
            if share is not None and getattr(self, f"cache_{name}") is None
        }
        return replace(self, **found) if found else self


class CacheShares(NamedTuple):
    """What cached tokens cost as shares of other input; None: not known."""

    read: Decimal | None = None
    write: Decimal | None = None
    write_1h: Decimal | None = None


def cache_shares(rules: CacheRules) -> CacheShares:
    """The shares that a profile has (`cache.read_price` and others); one that is negative is not used."""
    found = (rules.read_price, rules.write_price, rules.write_price_1h)
    return CacheShares(*(None if share is None or not share >= 0 else Decimal(str(share)) for share in found))


class WholeRates(NamedTuple):
    """The same as whole numbers, for counting every reply: multiples of a fraction of a dollar."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    cache_write_1h: int
    parts: int
    """How many of those a dollar has."""

    def billionths(self, counts: Mapping[str, int]) -> int:
        """What tokens cost, in billionths of a dollar; half of one is rounded to the even number, as `round` does."""
        read, written = counts.get("cache_read_tokens", 0), counts.get("cache_write_tokens", 0)
        plain = counts.get("input_tokens", 0) - read - written
        total = counts.get("output_tokens", 0) * self.output
        if plain > 0:
            total += plain * self.input
        if read or written:
            total += read * self.cache_read + written * self.cache_write
            hour = counts.get("cache_write_1h_tokens", 0)
            if hour:
                total += min(hour, written) * (self.cache_write_1h - self.cache_write)
        whole, rest = divmod(total * _THOUSAND, self.parts)
        return whole + (2 * rest > self.parts or (2 * rest == self.parts and whole % 2 == 1))


def _whole_rates(rates: Rates) -> WholeRates:
    each = (rates.input, rates.output, rates.read_rate, rates.write_rate, rates.write_rate_1h)
    decimals = max(0, *(-int(rate.as_tuple().exponent) for rate in each))
    whole = [int(rate.scaleb(decimals)) for rate in each]
    return WholeRates(whole[0], whole[1], whole[2], whole[3], whole[4], 10**decimals)


class LongRates(Rates, frozen=True, kw_only=True):
    """The rates of a request with more input tokens than `above`."""

    above: int


class Price(Rates, frozen=True, kw_only=True):
    """The price of a model, and its source."""

    long: LongRates | None = None
    source: str = ""
    read: str = ""
    confidence: Confidence = "own"

    def rates_for(self, input_tokens: int) -> Rates:
        """The rates of a request with so many tokens."""
        return self.long if self.long is not None and input_tokens > self.long.above else self

    def cost(self, usage: Usage) -> Decimal:
        return self.rates_for(usage.input_tokens or 0).of(usage)


def read_list(data: bytes) -> dict[str, Price]:
    """The prices of a file such as prices.toml, in its order."""
    found: dict[str, Price] = {}
    for group in tomllib.loads(data.decode(), parse_float=Decimal).values():
        shared = {key: value for key, value in group.items() if key != "models"}
        found |= {name: msgspec.convert({**table, **shared}, Price) for name, table in group["models"].items()}
    return found


@lru_cache(maxsize=1)
def listed_prices() -> Mapping[str, Price]:
    """The prices of prices.toml; it is read when they are first needed."""
    return read_list(_FILE.read_bytes())


SharesOf = Callable[[str, str], CacheShares]
"""The shares for a model at an upstream."""


def shares_of_target(model: str, upstream: str) -> CacheShares:
    """The shares of a target by its name; none for an upstream with another name."""
    return target_shares(upstream, model)


def target_shares(target: str, model: str, overrides: Overrides | None = None) -> CacheShares:
    """The shares that the profile of a target has for a model; none if there is no such target."""
    try:
        return cache_shares(profiles.get(target, model, overrides=overrides).cache)
    except InputError:
        return CacheShares()


class Prices:
    """Finds the price of a model; made once for a caller's own prices.

    shares: what cached tokens cost where a price does not say. By default, upstreams are taken for targets.
    """

    def __init__(self, own: Mapping[str, Price] | None = None, shares: SharesOf = shares_of_target) -> None:
        self._own = dict(own or {})
        self._shares = shares
        self._cached = lru_cache(maxsize=1024)(self._find)
        self._cached_whole = lru_cache(maxsize=1024)(self._find_whole)

    def of(self, model: str, upstream: str = "") -> Price | None:
        """The price of a model; None: not known."""
        return self._cached(model, upstream)

    def cost(self, model: str, usage: Usage, upstream: str = "") -> Decimal | None:
        """The cost of a reply; None: the price is not known, or the provider reported no tokens."""
        price = self._cached(model, upstream)
        if price is None or (usage.input_tokens is None and usage.output_tokens is None):
            return None
        return price.cost(usage)

    def billionths(self, model: str, counts: Mapping[str, int], upstream: str = "") -> int | None:
        """The same in whole billionths of a dollar, of counts by the names that `Usage` has for them."""
        found = self._cached_whole(model, upstream)
        if found is None or ("input_tokens" not in counts and "output_tokens" not in counts):
            return None
        rates, above, long = found
        if long is not None and counts.get("input_tokens", 0) > above:
            rates = long
        return rates.billionths(counts)

    def _find_whole(self, model: str, upstream: str) -> tuple[WholeRates, int, WholeRates | None] | None:
        price = self._cached(model, upstream)
        if price is None:
            return None
        long = price.long
        return (
            _whole_rates(price),
            long.above if long is not None else 0,
            _whole_rates(long) if long is not None else None,
        )

    def _find(self, model: str, upstream: str) -> Price | None:
        names = list(_names(model, upstream))
        for prices in (self._own, listed_prices()):
            for pattern, price in prices.items():
                if any(matches(name, (pattern,)) for name in names):
                    return self._with_shares(price, model, upstream)
        return None

    def _with_shares(self, price: Price, model: str, upstream: str) -> Price:
        shares = self._shares(model, upstream)
        if not any(shares):
            return price
        long = price.long.with_shares(shares) if price.long is not None else None
        filled = price.with_shares(shares)
        return filled if long is price.long else replace(filled, long=long)


def dollars(amount: Decimal) -> str:
    """An amount with four decimals, or two digits if it is less."""
    places = 4 if amount == 0 or amount >= Decimal("0.0010") else min(1 - amount.adjusted(), 9)
    return f"${amount:,.{places}f}"


def cost(model: str, usage: Usage) -> Decimal | None:
    """The cost of a reply by the list alone."""
    return LISTED.cost(model, usage)


def _names(model: str, upstream: str) -> Iterator[str]:
    for name in dict.fromkeys((*spellings(model), *spellings(_plain_name(model)))):
        if upstream:
            yield f"{upstream}/{name}"
        yield name


def _plain_name(model: str) -> str:
    """A model without what Bedrock writes around its name."""
    found = _BEDROCK.fullmatch(model)
    return model if found is None else found[1]


LISTED: Final = Prices()
