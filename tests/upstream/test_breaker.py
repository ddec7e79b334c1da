"""The circuit breaker: when an upstream is not called, and when it is tried again."""

from __future__ import annotations

import pytest

from toolglot import Failure
from toolglot.upstream.breaker import Breaker

DOWN = Failure("overloaded", "down")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_breaker_opens_after_failures_in_a_row_and_lets_one_try_after_a_while() -> None:
    clock = Clock()
    breaker = Breaker(failures=2, seconds=10, clock=clock)
    breaker.failed(DOWN)
    breaker.succeeded()
    breaker.failed(DOWN)
    assert not breaker.refusal()
    breaker.failed(DOWN)
    assert (breaker.state, breaker.refusal()) == ("open", "it failed too often just now")
    assert breaker.wait == 10
    clock.now += 10
    assert (breaker.state, breaker.refusal()) == ("half open", "")
    breaker.begin()
    assert breaker.refusal(), "one at a time"
    breaker.failed(DOWN)
    breaker.end()
    assert breaker.state == "open"
    clock.now += 10
    breaker.begin()
    breaker.succeeded()
    breaker.end()
    assert (breaker.state, breaker.running) == ("closed", 0)


@pytest.mark.parametrize("kind", ["bad_request", "rate_limit", "auth", "content_filter", "context_overflow"])
def test_what_is_not_the_upstreams_trouble_opens_nothing(kind: str) -> None:
    breaker = Breaker(failures=1, seconds=10)
    breaker.failed(Failure(kind))  # type: ignore[arg-type]
    assert breaker.state == "closed"


def test_an_abandoned_try_lets_another_one_try() -> None:
    clock = Clock()
    breaker = Breaker(failures=1, seconds=10, clock=clock)
    breaker.failed(DOWN)
    clock.now += 10
    breaker.begin()
    breaker.gave_up()
    breaker.end()
    assert breaker.refusal() == ""


def test_only_so_many_are_called_at_once() -> None:
    breaker = Breaker(failures=1, seconds=1, max_concurrent=2)
    breaker.begin()
    assert breaker.refusal() == ""
    breaker.begin()
    assert "2 requests" in breaker.refusal()
    breaker.end()
    assert breaker.refusal() == ""
