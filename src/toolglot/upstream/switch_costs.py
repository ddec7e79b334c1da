"""What it costs once to go on with a conversation at another provider or model, where it is in no prompt cache yet.

    now = CachePlace(profiles.get("anthropic", "claude-opus-5"), "claude-opus-5", tokens=80_000)
    there = CachePlace(profiles.get("openai", "gpt-5.5"), "gpt-5.5", tokens=76_000)
    cost = switch_cost(now, there)
    cost.price, cost.cached, cost.more     # Decimal("0.38"), Decimal("0.04"), Decimal("0.34")

Tokens are estimates of the caller, by the vocabulary of each model. Law: an unknown price is None, never 0.
"""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from toolglot.profiles import Profile
from toolglot.upstream.prices import LISTED, MILLION, Price, Prices, Rates


class CachePlace(Struct, frozen=True):
    """A model at a provider, and what a conversation is there in tokens."""

    profile: Profile
    model: str
    tokens: int

    @property
    def has_cache(self) -> bool:
        """Whether the beginning of such a conversation is in a cache after its first request, as far as is known."""
        rules = self.profile.cache
        return rules.style != "none" and self.tokens >= rules.min_tokens


class SwitchCost(Struct, frozen=True, kw_only=True):
    """What it costs, in dollars. The sum of several has no price that one of them has not."""

    tokens: int
    """Tokens that must be read again."""
    uncached: Decimal | None
    """What they cost there."""
    written: Decimal | None
    """What they cost there if they are written to its cache, where that is dearer; None: it is not, or not known."""
    cached: Decimal | None
    """What they cost from the cache where the conversation is now, or uncached if it has none."""
    is_cached: bool
    """Whether the conversation is in a cache now, as far as is known."""

    @property
    def price(self) -> Decimal | None:
        """What is paid: with the cache of the target, where that costs more."""
        return self.uncached if self.written is None else self.written

    @property
    def more(self) -> Decimal | None:
        """How much more the next request costs than without the switch; less than 0: it is cheaper."""
        price = self.price
        return None if price is None or self.cached is None else price - self.cached

    def __add__(self, other: SwitchCost) -> SwitchCost:
        has_written = self.written is not None or other.written is not None
        return SwitchCost(
            tokens=self.tokens + other.tokens,
            uncached=_sum(self.uncached, other.uncached),
            written=_sum(self.price, other.price) if has_written else None,
            cached=_sum(self.cached, other.cached),
            is_cached=self.is_cached or other.is_cached,
        )


def switch_cost(now: CachePlace, target: CachePlace, prices: Prices = LISTED) -> SwitchCost:
    """What the next request of a conversation costs at another place, and what it would cost where it is now."""
    there = _rates(target, prices)
    here = _rates(now, prices)
    is_dearer = there is not None and target.has_cache and there.write_rate > there.input
    cached = None
    if here is not None:
        cached = (here.read_rate if now.has_cache else here.input) * now.tokens / MILLION
    return SwitchCost(
        tokens=target.tokens,
        uncached=None if there is None else there.input * target.tokens / MILLION,
        written=there.write_rate * target.tokens / MILLION if there is not None and is_dearer else None,
        cached=cached,
        is_cached=now.has_cache,
    )


def _rates(place: CachePlace, prices: Prices) -> Rates | None:
    price: Price | None = prices.of(place.model, place.profile.name)
    return None if price is None else price.rates_for(place.tokens)


def _sum(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    return None if one is None or other is None else one + other
