"""Signs of life: not before there was silence for so long, and not much later."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolglot.gateway.http.keep_alive import CHECKS, KeepAlive

SECONDS = 8.0


class Timers(asyncio.SelectorEventLoop):
    """An event loop whose clock goes on when a test says so."""

    now = 0.0

    def time(self) -> float:
        return self.now


def pinged(stirs: list[float], until: float, step: float = 0.25) -> list[float]:
    """When a client is pinged that gets something at these times."""
    loop = Timers()
    found: list[float] = []

    async def give(data: bytes) -> None:
        assert data == b"ping"
        found.append(loop.now)

    async def play() -> None:
        pings = KeepAlive(lambda: b"ping", give, SECONDS)
        while loop.now < until:
            loop.now += step
            for _ in range(4):
                await asyncio.sleep(0)
            if loop.now in stirs:
                pings.reset()
        pings.end()

    try:
        loop.run_until_complete(play())
    finally:
        loop.close()
    return found


def test_who_gets_nothing_is_pinged_each_time() -> None:
    assert pinged([], 3 * SECONDS) == [SECONDS, 2 * SECONDS, 3 * SECONDS]


@pytest.mark.parametrize("last", [0.25, 1.0, 2.0, 2.25, 5.5, 7.75, 8.0, 9.0])
def test_a_ping_comes_after_silence_of_its_time_and_at_most_a_look_more(last: float) -> None:
    after = [at - last for at in pinged([last], 4 * SECONDS) if at > last]
    assert SECONDS <= after[0] <= SECONDS * (1 + 1 / CHECKS)
    assert after[1] - after[0] == SECONDS


def test_who_gets_something_all_the_time_is_not_pinged() -> None:
    stirs: list[Any] = [float(at) for at in range(1, 40)]
    assert pinged(stirs, 40.0) == []
