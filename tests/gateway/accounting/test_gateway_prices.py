"""Prices: which one a model has, what an answer costs, and that an unknown price is not zero."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot.conversation import Usage
from toolglot.gateway.accounting.prices import (
    MAX_OWN_PRICES,
    ConfiguredPrices,
    Price,
    PriceSettings,
    cost,
    listed_prices,
    read_list,
)
from toolglot.gateway.config.file import ConfigText
from toolglot.gateway.config.settings import ConfigError, parse_config
from toolglot.upstream.prices import Prices as BasePrices

ENV = {"HOME": "/home/user"}
LISTED = listed_prices()


def own(text: str) -> dict[str, PriceSettings]:
    return parse_config(ConfigText("toolglot.toml", text), ENV).prices


# --- the list ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", LISTED)
def test_every_price_of_the_list_has_a_source_and_can_be_found(pattern: str) -> None:
    price = LISTED[pattern]
    assert price.source.startswith(("https://", "widely quoted", "as [mistral]", "as [embeddings]"))
    assert price.read >= "2026"
    assert price.confidence in ("documented", "reported", "doubtful")
    assert price.input > 0
    assert (
        price.output == 0 if "embed" in pattern else price.input <= price.output
    )  # vectors cost nothing by themselves
    if pattern.endswith("-pro") and pattern.startswith("gpt"):
        assert price.cache_read in (None, price.input), "these models have no lower price"
    else:
        assert price.cache_read is None or price.cache_read < price.input
    assert price.cache_write is None or price.cache_write >= price.input
    assert price.cache_write_1h is None or price.cache_write_1h > (price.cache_write or price.input)
    if pattern.startswith("claude"):
        assert price.cache_write_1h == 2 * price.input
    if price.long is not None:
        assert price.long.above >= 100_000
        assert price.long.input > price.input
        assert price.long.output > price.output
    example = pattern.replace("*", "").replace("?", "1").replace("[5678]", "5")
    for letters in ("[56]", "[34]", "[567]"):
        example = example.replace(letters, letters[1])
    assert ConfiguredPrices().of(example) is price, "no pattern before it takes its models"


@pytest.mark.parametrize(
    ("model", "listed"),
    [
        ("claude-opus-5", "claude-opus-5"),
        ("Claude-Opus-5", "claude-opus-5"),
        ("claude-opus-5[1m]", "claude-opus-5"),
        ("claude-opus-4-5-20251101", "claude-opus-4-[5678]"),
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-[56]"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-5.4-mini", "gpt-5.4-mini"),
        ("gemini-3.1-pro-preview", "gemini-3.1-pro*"),
        ("grok-4.7", "grok-4.[567]"),
        ("claude-opus-9", None),
        ("claude-opus-5-9", None),
        ("gpt-5.5-unheard-of", None),
        ("gpt-4o-audio-preview", None),
        ("anthropic/claude-opus-5", None),
        ("", None),
    ],
)
def test_a_model_has_its_own_price_or_none(model: str, listed: str | None) -> None:
    assert ConfiguredPrices().of(model) is (LISTED[listed] if listed is not None else None)


def test_the_price_of_the_day_is_paid() -> None:
    usage = Usage(input_tokens=10_000, output_tokens=1_000, cache_read_tokens=6_000, cache_write_tokens=2_000)
    # 2,000 at 5, 6,000 at 0.5, 2,000 at 6.25 and 1,000 at 25 dollars a million
    assert cost("claude-opus-5", usage) == Decimal("0.0505")
    assert cost("gpt-5.5", Usage(1_000_000, 1_000_000)) == 35
    assert cost("gpt-5.5", Usage(1_000_000, 0, 1_000_000)) == Decimal("0.5")
    assert cost("gpt-5.5-pro", Usage(1_000_000, 0, 1_000_000)) == 30, (
        "from a cache: as the rest, where the reply does not say"
    )
    assert cost("nobody-knows", usage) is None
    assert cost("gpt-5.5", Usage()) is None
    assert cost("gpt-5.5", Usage(output_tokens=1_000_000)) == 30


def test_a_long_prompt_costs_more_for_all_of_its_tokens() -> None:
    assert cost("gemini-2.5-pro", Usage(200_000, 1000)) == Decimal("0.26")
    assert cost("gemini-2.5-pro", Usage(200_001, 1000)) == Decimal("0.5150025")
    assert cost("grok-4.7", Usage(200_000, 0, 200_000)) == Decimal("0.2")


def test_what_is_written_for_an_hour_has_its_own_price() -> None:
    usage = Usage(10_000, 0, 0, 10_000, cache_write_1h_tokens=4_000)
    assert cost("claude-opus-5", usage) == Decimal("0.0775")  # 6,000 at 6.25 and 4,000 at 10 dollars a million
    assert cost("gpt-6-sol", usage) == Decimal("0.025"), "a model with one price has it at all times"
    assert cost("gpt-5.6-sol", usage) == Decimal("0.05"), "writing costs more from GPT-5.6 on"
    more = Usage(10_000, 0, 0, 10_000, cache_write_1h_tokens=99_000)
    assert cost("claude-opus-5", more) == Decimal("0.1"), "never more than was written"


def test_where_a_price_does_not_say_cached_tokens_cost_the_usual_share_of_the_target() -> None:
    prices = ConfiguredPrices(
        own('[prices."mine"]\ninput = 10\noutput = 50\n[prices."other"]\ninput = 10\noutput = 50\ncache_read = 3\n'),
        {"work": "anthropic", "box": "openai_compatible"},
    )
    usage = Usage(3_000_000, 0, 1_000_000, 1_000_000, cache_write_1h_tokens=500_000)
    assert prices.cost("mine", usage, "work") == Decimal(10) + 1 + Decimal("6.25") + 10
    assert prices.cost("other", usage, "work") == Decimal(10) + 3 + Decimal("6.25") + 10
    assert prices.cost("mine", usage, "box") == prices.cost("mine", usage, "nobody") == 30, "nothing is known there"
    assert prices.cost("mistral-large-4-0", Usage(1_000_000, 0, 1_000_000), "mistral") == Decimal("0.068")
    assert prices.cost("gpt-5.5-pro", Usage(1_000_000, 0, 1_000_000), "openai") == 30


def test_an_overridden_share_is_used_and_a_negative_one_is_not() -> None:
    for share, expected in (("0.5", 5), ("-1.0", 10)):
        text = f'[profiles.anthropic.rules]\n"cache.read_price" = {share}\n[prices."mine"]\ninput = 10\noutput = 50\n'
        config = parse_config(ConfigText("toolglot.toml", text), ENV)
        prices = ConfiguredPrices(config.prices, {}, config.overrides)
        assert prices.cost("mine", Usage(1_000_000, 0, 1_000_000), "anthropic") == expected


TOKENS = st.integers(0, 10**7)


@pytest.mark.law
@given(st.sampled_from(sorted(LISTED)), TOKENS, TOKENS, TOKENS, TOKENS, TOKENS)
def test_more_tokens_never_cost_less_and_nothing_costs_nothing(
    pattern: str, sent: int, out: int, read: int, written: int, hour: int
) -> None:
    price = LISTED[pattern]
    usage = Usage(sent, out, read, written)
    assert price.cost(Usage(sent, out, read, written, cache_write_1h_tokens=hour)) >= price.cost(usage)
    assert price.cost(Usage(0, 0, 0, 0)) == 0
    assert price.cost(usage) >= 0
    more = price.cost(Usage(sent, out + 1, read, written))
    assert more > price.cost(usage) if price.output else more == price.cost(usage)  # embeddings have no output
    assert price.cost(Usage(sent + 1, out, read, written)) >= price.cost(usage)


# --- prices of one's own ----------------------------------------------------------------------------


def test_ones_own_prices_come_first_in_the_order_of_the_file() -> None:
    prices = ConfiguredPrices(
        own(
            '[prices."gpt-5.5"]\ninput = 0.1\noutput = 0.3\n'
            '[prices."box/*"]\ninput = 0\noutput = 0\n'
            '[prices."gpt-*"]\ninput = 7\noutput = 8\ncache_read = 0.7\ncache_write = 9\n'
        )
    )
    million = Usage(1_000_000, 1_000_000)
    assert prices.cost("gpt-5.5", million) == Decimal("0.4"), "as it was written, not its nearest binary fraction"
    assert prices.cost("gpt-5.5", million, "box") == Decimal("0.4")
    assert prices.cost("anything", million, "box") == 0
    assert prices.cost("anything", million, "other") is None
    assert prices.cost("gpt-6", million) == 15
    assert prices.cost("gpt-6", Usage(1_000_000, 0, 500_000, 500_000)) == Decimal("4.85")
    assert prices.cost("claude-opus-5", million) == 30
    found = prices.of("gpt-6")
    assert found is not None
    assert (found.confidence, found.source) == ("own", "[prices]")


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        ("prices = 1", "prices", "expected a table, got a whole number"),
        ('[prices]\n"gpt" = 1', "prices.gpt", "expected a table, got a whole number"),
        ('[prices."gpt-*"]\noutput = 1', "prices.'gpt-*'", "missing setting: input"),
        ('[prices."gpt-*"]\ninput = 1', "prices.'gpt-*'", "missing setting: output"),
        ('[prices."g"]\ninput = -1\noutput = 1', "prices.g.input", "expected a number from 0 to 1000000, got -1"),
        ('[prices."g"]\ninput = nan\noutput = 1', "prices.g.input", "expected a number from 0 to 1000000, got nan"),
        ('[prices."g"]\ninput = true\noutput = 1', "prices.g.input", "expected a number from 0 to 1000000, got true"),
        ('[prices."g"]\ninput = 1\noutput = "2"', "prices.g.output", "expected a number from 0 to 1000000, got '2'"),
        ('[prices."g"]\ninput = 1\noutput = 2\ncached = 3', "prices.g.cached", "unknown setting"),
    ],
)
def test_a_mistake_in_a_price_is_reported(text: str, key: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        own(text)
    assert caught.value.message == message
    assert caught.value.path.endswith(f": {key}")


def test_too_many_prices_are_refused() -> None:
    lines = "".join(f'"m{number}" = {{ input = 1, output = 1 }}\n' for number in range(MAX_OWN_PRICES + 1))
    with pytest.raises(ConfigError, match="more than 1000 prices"):
        own(f"[prices]\n{lines}")


def test_a_list_is_read_in_its_order() -> None:
    data = b'[a]\nsource = "s"\nread = "d"\nconfidence = "doubtful"\n[a.models]\nx = { input = 1.1, output = 2 }\n'
    assert read_list(data) == {
        "x": Price(Decimal("1.1"), Decimal(2), source="s", read="d", confidence="doubtful"),
    }
    with pytest.raises(msgspec.ValidationError, match="outptu"):
        read_list(data.replace(b"output", b"outptu"))


# --- in whole numbers -------------------------------------------------------------------------------

_DOLLARS = st.decimals(0, 1_000_000, allow_nan=False, allow_infinity=False, places=9)
_TOKENS = st.none() | st.integers(0, 10_000_000)


@pytest.mark.law
@given(_DOLLARS, _DOLLARS, *[st.none() | _DOLLARS] * 3, *[_TOKENS] * 5)
def test_whole_billionths_are_what_the_exact_cost_is_rounded_to(
    price_in: Decimal,
    price_out: Decimal,
    read: Decimal | None,
    written: Decimal | None,
    hour: Decimal | None,
    used: int | None,
    answered: int | None,
    from_cache: int | None,
    into_cache: int | None,
    for_an_hour: int | None,
) -> None:
    prices = BasePrices({"m": Price(price_in, price_out, read, written, hour)})
    usage = Usage(used, answered, from_cache, into_cache, cache_write_1h_tokens=for_an_hour)
    counts = {name: count for name, count in msgspec.structs.asdict(usage).items() if type(count) is int}
    exact = prices.cost("m", usage)
    assert prices.billionths("m", counts) == (None if exact is None else round(exact * 1_000_000_000))


@pytest.mark.parametrize(
    ("dollars", "tokens", "billionths"),
    [("0.0005", 1, 0), ("0.0005", 3, 2), ("0.0015", 1, 2), ("1E+2", 7, 700_000), ("0", 9, 0), ("2.5", 1, 2500)],
)
def test_half_a_billionth_goes_to_the_even_one(dollars: str, tokens: int, billionths: int) -> None:
    prices = BasePrices({"m": Price(Decimal(dollars), Decimal(0))})
    assert prices.billionths("m", {"input_tokens": tokens}) == billionths
    assert round((prices.cost("m", Usage(tokens)) or 0) * 1_000_000_000) == billionths


def test_a_long_prompt_costs_more_in_whole_numbers_too() -> None:
    name, price = next((name, price) for name, price in LISTED.items() if price.long is not None)
    assert price.long is not None
    model = name.replace("*", "x")
    for count in (price.long.above, price.long.above + 1):
        exact = ConfiguredPrices().cost(model, Usage(count, 10))
        assert exact is not None
        assert ConfiguredPrices().billionths(model, {"input_tokens": count, "output_tokens": 10}) == round(
            exact * 10**9
        )
    assert ConfiguredPrices().billionths("nobody's", {"input_tokens": 1}) is None
    assert ConfiguredPrices().billionths(model, {"cache_read_tokens": 1}) is None
