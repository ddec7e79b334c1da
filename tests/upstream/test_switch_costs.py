"""What it costs once to go on with a conversation elsewhere."""

from __future__ import annotations

from decimal import Decimal

import pytest

from toolglot import profiles
from toolglot.upstream.switch_costs import CachePlace, SwitchCost, switch_cost


def place(target: str, model: str, tokens: int = 100_000) -> CachePlace:
    return CachePlace(profiles.get(target, model), model, tokens)


def test_the_whole_prompt_is_read_again_and_not_from_the_cache() -> None:
    cost = switch_cost(place("anthropic", "claude-opus-5"), place("openai", "gpt-5.5", 90_000))
    assert cost == SwitchCost(
        tokens=90_000, uncached=Decimal("0.45"), written=None, cached=Decimal("0.05"), is_cached=True
    )
    assert (cost.price, cost.more) == (Decimal("0.45"), Decimal("0.4"))


def test_writing_to_the_cache_of_the_target_costs_more_where_it_does() -> None:
    now = place("openai", "gpt-5.5")
    cost = switch_cost(now, place("anthropic", "claude-opus-5"))
    assert (cost.uncached, cost.written) == (Decimal("0.5"), Decimal("0.625"))
    assert (cost.price, cost.more) == (Decimal("0.625"), Decimal("0.575"))
    assert switch_cost(now, place("openai", "gpt-5.6-terra")).written == Decimal("0.25")
    assert switch_cost(now, place("anthropic", "claude-opus-5", 1000)).written is None, "too short for its cache"


def test_a_switch_can_be_cheaper_at_once() -> None:
    cost = switch_cost(place("anthropic", "claude-opus-5"), place("openai", "gpt-5-nano"))
    assert cost.more == Decimal("0.005") - Decimal("0.05")


@pytest.mark.parametrize(
    ("now", "cached"),
    [
        (place("anthropic", "claude-opus-5", 1000), Decimal("0.005")),  # too short
        (place("cohere", "command-a"), None),
        (place("openai", "gpt-5.5"), Decimal("0.05")),
    ],
)
def test_what_is_in_no_cache_costs_as_other_input(now: CachePlace, cached: Decimal | None) -> None:
    cost = switch_cost(now, place("gemini", "gemini-2.5-pro"))
    assert cost.cached == cached
    assert cost.is_cached == (now.model == "gpt-5.5")


def test_a_long_prompt_has_the_rates_of_long_prompts() -> None:
    cost = switch_cost(place("gemini", "gemini-2.5-pro", 300_000), place("gemini", "gemini-3-pro", 300_000))
    assert (cost.uncached, cost.cached) == (Decimal("1.2"), Decimal("0.075"))


def test_an_unknown_price_stays_unknown_in_a_sum() -> None:
    now = place("anthropic", "claude-opus-5")
    known, unknown = (switch_cost(now, place("openai", model)) for model in ("gpt-5.5", "nobody"))
    assert (unknown.uncached, unknown.written, unknown.more) == (None, None, None)
    total = known + unknown
    assert (total.tokens, total.uncached, total.cached, total.more) == (200_000, None, Decimal("0.1"), None)
    dearer = switch_cost(now, place("anthropic", "claude-haiku-4-5"))
    both = known + dearer
    assert (both.uncached, both.written) == (Decimal("0.6"), Decimal("0.625")), "what is paid, with each one's cache"
    assert both.more == (known.more or 0) + (dearer.more or 0)
