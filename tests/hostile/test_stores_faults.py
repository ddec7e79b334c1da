"""A store's server is killed, slow, read-only, failing over or cut off while two gateways serve from it.

Whatever happens to it: requests that need no store go on, those that do are told that it fails, nobody waits longer
than `store_seconds` for it, and when it is back everything works again without a restart. Nothing that was kept is
lost, no client sees what is another's, and no use is counted twice.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import store_faults
from store_checker import violations
from store_proxy import StoreProxy
from store_servers import postgres, redis, start_postgres_standby
from store_stage import Stage, stage
from waiting import wait_until

STEPS = 3
"""Of each client, under each fault and after it."""
KINDS = ["postgres", "redis"]


@pytest.mark.parametrize("kind", KINDS)
def test_gateways_outlive_every_fault_of_their_store_and_lose_nothing(kind: str, tmp_path: Path) -> None:
    server = store_faults.SERVERS[kind]()
    direct = store_faults.url_of(kind, tmp_path, server.port)
    with StoreProxy(server.port) as proxy:
        url = store_faults.url_of(kind, tmp_path, proxy.port, patient=True)
        with stage(url, tmp_path, direct=direct, seed=kind) as held:
            held.pass_by(STEPS)
            faults = store_faults.Faults(kind, server, proxy, held)
            for fault in (
                faults.killed,
                faults.slow,
                faults.read_only,
                faults.held_then_released,
                faults.held_cut_and_refused,
            ):
                fault(STEPS)
                held.pass_by(STEPS)
            assert violations(held.end()) == []
            assert_was_noticed(held)


def test_gateways_go_on_with_a_postgres_standby_that_was_promoted_and_lose_nothing(tmp_path: Path) -> None:
    primary = postgres()
    standby = start_postgres_standby(primary)
    try:
        store_faults.postgres_command(primary.port, "ALTER SYSTEM SET synchronous_standby_names = '*'")
        wait_until(lambda: store_faults.streams_to(primary))
        direct = store_faults.url_of("postgres", tmp_path, standby.port)
        with StoreProxy(primary.port) as proxy:
            url = store_faults.url_of("postgres", tmp_path, proxy.port)
            with stage(url, tmp_path, direct=direct, seed="pgover") as held:
                held.pass_by(STEPS)
                store_faults.postgres_failover(primary, standby, proxy, held, STEPS)
                held.pass_by(STEPS)
                assert violations(held.end()) == []
                assert_was_noticed(held)
    finally:
        standby.remove()
        primary.start()
        store_faults.postgres_command(primary.port, "ALTER SYSTEM RESET synchronous_standby_names")


def test_gateways_go_on_with_a_redis_replica_that_took_over_and_lose_nothing(tmp_path: Path) -> None:
    master = redis()
    replica = store_faults.redis_replica(master)
    try:
        direct = store_faults.url_of("redis", tmp_path, replica.port)
        with StoreProxy(master.port) as proxy:
            url = store_faults.url_of("redis", tmp_path, proxy.port)
            with stage(url, tmp_path, direct=direct, seed="redisover") as held:
                held.pass_by(STEPS)
                store_faults.redis_failover(master, replica, proxy, held, STEPS)
                held.pass_by(STEPS)
                assert violations(held.end()) == []
                assert_was_noticed(held)
    finally:
        store_faults.redis_command(master.port, "REPLICAOF", "NO", "ONE")
        replica.remove()


@pytest.mark.parametrize("kind", KINDS)
def test_gateways_and_servers_that_are_killed_lose_nothing_that_was_kept(kind: str, tmp_path: Path) -> None:
    draw = random.Random(kind)  # noqa: S311 - a draw that can be repeated
    server = store_faults.SERVERS[kind]()
    url = store_faults.url_of(kind, tmp_path, server.port)
    with StoreProxy(server.port) as proxy, stage(url, tmp_path, direct=url, seed=f"kill{kind}") as held:
        faults = store_faults.Faults(kind, server, proxy, held)
        for number in range(3):
            held.pass_by(draw.randint(1, 2))
            held.kill(draw.choice(held.gateways))
            if number == 1:
                faults.killed(1)
        held.pass_by(1)
        assert violations(held.end()) == []
        assert any(step.status == 0 for step in held.steps) or held.kills == 3


def assert_was_noticed(held: Stage) -> None:
    """The faults were felt: otherwise nothing was shown."""
    logs = "".join(gateway.log.read_text() for gateway in held.gateways)
    assert "nothing was kept" in logs
    assert any(step.kind == "recalled" and step.status == 200 and not step.is_disturbed for step in held.steps)
    assert any(step.kind == "continued" and step.status == 200 and not step.is_disturbed for step in held.steps)
