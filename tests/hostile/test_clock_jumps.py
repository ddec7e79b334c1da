"""The wall clock jumps by an hour or a day, back and forward: what was revoked stays so, limits and what is kept hold.

The gateway is a process of its own, with libfaketime before its C library: a file says by how much its wall clock is
off, from the next look at it on. The monotonic clock is the system's.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.gateway.gateway_process import Process, process
from support.gateway.http_client import ask, request_of
from support.waiting import wait_until
from toolglot.gateway.accounting.client_keys import ClientKey, new_key, revoke, save
from toolglot.simulator import serve
from toolglot.store import open_store

LIBRARY = next(iter(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
pytestmark = pytest.mark.skipif(LIBRARY is None, reason="libfaketime is not installed: apt-get install libfaketime")

HOUR, DAY = 3600, 86_400
JUMPS = (-HOUR, HOUR, -DAY, DAY, 0)
REVOKED_AFTER = JUMPS if "HOSTILE_LONG" in os.environ else (-HOUR, DAY)
"""Jumps after which a key is revoked: until that is noticed takes three seconds."""
NOW = 1_800_000_000.0
"""Where the gateway's clock begins: in the middle of a day and of a month."""
METRICS_KEY = "a-key-for-metrics-0123456789"
SETTINGS = 'client_keys = ["store"]\nmetrics_key = "env:METRICS_KEY"'
PATH, BODY = request_of("openai", "openai_chat/gpt-4.1")


class Clock:
    """The wall clock of a gateway."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.jump(0)

    def jump(self, seconds: int) -> None:
        """To so many seconds from where it would be."""
        shift = NOW - time.time() + seconds
        new = self._file.with_suffix(".new")
        new.write_text(f"{shift:+.0f}\n")
        new.replace(self._file)


class Ring:
    """The keys of a gateway's store, changed from outside, as `toolglot keys` does."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def add(self, name: str, **limits: Any) -> str:
        key, secret = new_key(name, now=NOW, **limits)
        asyncio.run(self._save(key))
        return secret

    async def _save(self, key: ClientKey) -> None:
        store = open_store(str(self._file))
        try:
            await save(store, key)
        finally:
            await store.close()

    def revoke(self, name: str) -> None:
        async def steps() -> None:
            store = open_store(str(self._file))
            try:
                await revoke(store, name, NOW)
            finally:
                await store.close()

        asyncio.run(steps())


@pytest.fixture(scope="module")
def jumping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Process, Clock, Ring]]:
    folder = tmp_path_factory.mktemp("clock")
    clock, ring = Clock(folder / "clock"), Ring(folder / "store.db")
    environ = {
        "METRICS_KEY": METRICS_KEY,
        "LD_PRELOAD": str(LIBRARY),
        "FAKETIME_TIMESTAMP_FILE": str(folder / "clock"),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",  # otherwise no compiled module is fresh
    }
    with (
        serve({"rules": [{"reply": {"text": "Hello."}}]}) as simulated,
        process(folder, simulated, settings=SETTINGS, environ=environ) as running,
    ):
        yield running, clock, ring


def _status(running: Process, key: str) -> int:
    return ask(running.url, PATH, BODY, key=key).status


def test_wherever_the_clock_is_set_to_what_was_revoked_stays_revoked_and_is_noticed(
    jumping: tuple[Process, Clock, Ring],
) -> None:
    running, clock, ring = jumping
    good = ring.add("good")
    others = {jump: ring.add(f"revoked after {jump}") for jump in REVOKED_AFTER}
    wait_until(lambda: {_status(running, key) for key in (good, *others.values())} == {200})
    revoked: list[str] = []
    for jump, key in others.items():
        clock.jump(jump)
        ring.revoke(f"revoked after {jump}")
        wait_until(lambda key=key: _status(running, key) == 401)  # type: ignore[misc]
        revoked.append(key)
        for again in JUMPS:
            clock.jump(again)
            assert {_status(running, each) for each in revoked} == {401}
            assert _status(running, good) == 200


def test_wherever_the_clock_is_set_to_limits_hold_and_expiries_are_kept(jumping: tuple[Process, Clock, Ring]) -> None:
    running, clock, ring = jumping
    clock.jump(0)
    hasty = ring.add("hasty", requests_per_minute=3)
    spent = ring.add("spent", tokens_total=1)
    short = ring.add("short", expires=NOW + HOUR / 2)
    wait_until(lambda: _status(running, short) == 200)
    assert _status(running, spent) == 200
    for jump in JUMPS:
        clock.jump(jump)
        # A clock that jumps may begin another minute, and no more than one.
        statuses = [_status(running, hasty) for _ in range(8)]
        assert statuses.count(200) <= 3
        assert statuses[-1] == 429
        assert _status(running, spent) in (402, 403, 429)
        assert _status(running, short) == (401 if jump >= HOUR else 200)


def test_wherever_the_clock_is_set_to_what_is_kept_can_be_read_and_nothing_takes_less_than_no_time(
    jumping: tuple[Process, Clock, Ring],
) -> None:
    running, clock, ring = jumping
    clock.jump(0)
    key = ring.add("reader")
    wait_until(lambda: _status(running, key) == 200)
    path, body = request_of("openai_responses", "anthropic/claude-sonnet-4-5")
    id = ask(running.url, path, body, key=key).body["id"]
    for jump in (*JUMPS, -DAY):
        clock.jump(jump)
        assert ask(running.url, f"{path}/{id}", key=key).status == 200
        again = {"model": body["model"], "input": "go on", "previous_response_id": id}
        assert ask(running.url, path, again, key=key).status == 200
    metrics = ask(running.url, "/metrics", key=METRICS_KEY).data.decode()
    assert "toolglot_uptime_seconds" in metrics
    assert [line for line in metrics.splitlines() if re.search(r" -\d", line)] == []
    wait_until(lambda: len(running.events("request")) >= 2 * len(JUMPS))
    assert [event for event in running.events("request") if event["seconds"] < 0] == []
    assert "Traceback" not in "".join(running.log)
