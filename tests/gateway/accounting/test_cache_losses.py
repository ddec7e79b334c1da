"""What is remembered of a conversation's cache, and what is said of it: without servers and with a clock of its own."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot.conversation import Conversation, Text, Turn
from toolglot.conversation.report import Entry
from toolglot.gateway.accounting.cache_losses import (
    MIN_LOST,
    CacheLoss,
    CacheUse,
    CacheWatch,
    WatchKey,
    watch_key,
)
from toolglot.upstream.prices import Price, Prices, dollars

KEY = ("client", 1)
PRICES = Prices(
    {
        "here/m": Price(Decimal(10), Decimal(50), Decimal(1), Decimal("12.5"), Decimal(20)),
        "there/m": Price(Decimal(4), Decimal(20), Decimal("0.4")),
    }
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def use(read: int = 0, written: int = 0, **fields: Any) -> CacheUse:
    hour = fields.pop("hour", 0)
    counts = {"input_tokens": 10_000, "cache_read_tokens": read, "cache_write_tokens": written}
    counts |= {"cache_write_1h_tokens": hour} if hour else {}
    known: dict[str, Any] = {"upstream": "here", "model": "m", "turns": 3, "counts": counts, "ttl_seconds": 300}
    return CacheUse(**{**known, **fields})


def repaired(*turns: int | None, action: Any = "orphaned") -> tuple[Entry, ...]:
    return tuple(Entry(action=action, reason=f"r{turn}", fault="canonical", turn=turn) for turn in turns)


def after(first: CacheUse, second: CacheUse, seconds: float = 1.0) -> CacheLoss | None:
    clock = Clock()
    watch = CacheWatch(clock=clock)
    assert watch.note(KEY, first, PRICES) is None
    clock.now += seconds
    return watch.note(KEY, second, PRICES)


def test_what_was_read_and_written_is_expected_to_be_read() -> None:
    assert after(use(5000, 3000), use(8000, 500)) is None
    loss = after(use(5000, 3000), use(2000, 6500))
    assert loss is not None
    assert (loss.tokens, loss.cause, loss.place) == (6000, "other", "here/m")
    assert loss.price == Decimal(6000) * Decimal("12.5") / 1_000_000, "all of it was written again"
    assert loss.cached_price == Decimal(6000) / 1_000_000
    assert loss.extra == 69_000_000


def test_two_requests_at_once_lose_nothing() -> None:
    """Neither could read what the other wrote. The next one can read what either of them did."""
    clock = Clock()
    watch = CacheWatch(clock=clock)
    assert watch.note(KEY, use(0, 50_000, seconds=5.0), PRICES) is None
    clock.now += 2.0
    assert watch.note(KEY, use(0, 30_000, seconds=4.0), PRICES) is None, "it began before the first was over"
    clock.now += 2.0
    loss = watch.note(KEY, use(20_000, 0, seconds=1.0), PRICES)
    assert loss is not None
    assert loss.tokens == 30_000


def test_the_time_to_live_begins_with_the_request_before() -> None:
    """Each use starts it anew. A long reply is no pause, and a pause during one counts."""
    assert (lost := after(use(0, 8000), use(0, 8000, seconds=300), 400)) is not None
    assert lost.cause == "other", "it began 100 s after the one before"
    assert (lost := after(use(0, 8000, seconds=250), use(0, 8000), 100)) is not None
    assert (lost.cause, lost.detail) == ("expired", "350 s, it keeps it 300 s")


def test_what_is_written_for_an_hour_costs_its_own_price() -> None:
    loss = after(use(0, 8000), use(0, 5000, hour=2000))
    assert loss is not None
    assert loss.price == (3000 * Decimal(10) + 3000 * Decimal("12.5") + 2000 * 20) / 1_000_000


def test_another_upstream_has_its_own_prices() -> None:
    loss = after(use(0, 8000), use(0, 0, upstream="there", turns=5))
    assert loss is not None
    assert (loss.cause, loss.price, loss.cached_price) == ("upstream", Decimal("0.032"), Decimal("0.008"))
    assert str(loss.entry) == (
        "uncached at $.usage: 8,000 tokens that here/m had cached were not read from its cache: another upstream "
        "served the request before; they cost $0.0320 instead of $0.0080"
    )
    cheaper = after(use(0, 8000, upstream="there"), use(0, 0, model="free"))
    assert cheaper is not None
    assert (cheaper.price, cheaper.extra) == (None, 0), "an unknown price is not 0"
    assert "cost" not in str(cheaper.entry)
    simulated = after(use(0, 8000, is_simulated=True), use(is_simulated=True, model="n"))
    assert simulated is not None
    assert (simulated.cause, simulated.price) == ("model", None)


@pytest.mark.parametrize(
    ("before", "now", "cause"),
    [
        ((), repaired(0), "repair"),
        (repaired(0), repaired(0), "other"),
        (repaired(0), repaired(0, 1), "repair"),
        (repaired(0), repaired(0, 4), "other"),  # in a turn that is new
        (repaired(None), repaired(None, action="set-aside"), "repair"),
        (repaired(*range(300)), repaired(*range(300)), "other"),
        ((), repaired(*range(300)), "repair"),
        ((), repaired(0, action="canonicalised"), "other"),  # housekeeping
    ],
)
def test_a_repair_is_one_that_the_request_before_did_not_have(
    before: tuple[Entry, ...], now: tuple[Entry, ...], cause: str
) -> None:
    loss = after(use(0, 8000, entries=before), use(0, 8000, entries=now, turns=5))
    assert loss is not None
    assert loss.cause == cause


@pytest.mark.parametrize(
    ("seconds", "hour", "ttl", "cause"),
    [
        (299, 0, 300, "other"),
        (301, 0, 300, "expired"),
        (301, 9, 300, "other"),
        (3601, 9, 300, "expired"),
        (9**9, 0, None, "other"),
    ],
)
def test_a_pause_is_the_cause_if_it_was_longer_than_the_cache_keeps(
    seconds: float, hour: int, ttl: int | None, cause: str
) -> None:
    loss = after(use(0, 8000, hour=hour, ttl_seconds=ttl), use(0, 8000, ttl_seconds=ttl), seconds)
    assert loss is not None
    assert loss.cause == cause


def test_little_is_not_reported() -> None:
    assert after(use(0, 5000), use(5000 - MIN_LOST + 1)) is None
    assert after(use(0, 5000), use(5000 - MIN_LOST)) is not None
    assert after(use(0, 50_000), use(46_000)) is None, "less than a tenth"


def test_a_shorter_conversation_is_another_one() -> None:
    assert after(use(0, 8000, turns=9), use(0, 0, turns=8)) is None


def test_the_memory_is_bounded_and_forgets_the_oldest() -> None:
    watch = CacheWatch(max_conversations=3)
    for number in range(5):
        watch.note(("client", number), use(0, 8000), PRICES)
    watch.note(("client", 2), use(8000), PRICES)
    watch.note(("client", 5), use(0, 8000), PRICES)
    assert len(watch) == 3
    assert watch.note(("client", 3), use(), PRICES) is None, "forgotten"
    assert watch.note(("client", 2), use(), PRICES) is not None
    watch.forget(("client", 2))
    watch.forget(("client", 99))
    assert watch.note(("client", 2), use(), PRICES) is None


def test_a_conversation_is_known_by_client_session_and_first_message() -> None:
    def key(client: str, session: str, *texts: str) -> WatchKey:
        return watch_key(client, session, Conversation(tuple(Turn("user", (Text(text),)) for text in texts)))

    known = key("c", "s", "Hi")
    assert key("c", "s", "Hi", "more") == known
    others = [key("d", "s", "Hi"), key("c", "t", "Hi"), key("c", "s", "Ho"), key("c", "", "sHi"), key("cs", "", "Hi")]
    assert len({known, *others}) == 6
    assert key("c", "\ud800", "x" * 10**6) == key("c", "\ud800", "x" * 10**6, "y"), "bounded, and any text"


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("0", "$0.0000"),
        ("1234.5", "$1,234.5000"),
        ("0.001", "$0.0010"),
        ("0.00099", "$0.00099"),
        ("0.0000012", "$0.0000012"),
        ("1e-12", "$0.000000000"),
    ],
)
def test_amounts_are_shown_with_their_digits(amount: str, text: str) -> None:
    assert dollars(Decimal(amount)) == text


COUNTS = st.integers(0, 10**12)
UPSTREAMS = st.sampled_from(["here", "there", "nobody"])


@pytest.mark.law
@given(
    st.lists(st.tuples(COUNTS, COUNTS, COUNTS, st.integers(0, 9), st.sampled_from(["here", "there", "x"])), max_size=8)
)
def test_no_loss_is_negative_or_more_than_was_cached(steps: list[tuple[int, int, int, int, str]]) -> None:
    watch, cached = CacheWatch(), 0
    for read, written, hour, turns, upstream in steps:
        loss = watch.note(KEY, use(read, written, hour=hour, turns=turns, upstream=upstream), PRICES)
        if loss is not None:
            assert MIN_LOST <= loss.tokens <= cached
            assert loss.extra >= 0
            assert loss.price is None or loss.price >= 0
        cached = read + written
