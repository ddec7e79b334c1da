"""A store's server is killed, slow, read-only, failing over or cut off while two gateways serve from it.

Whatever happens to it: requests that need no store go on, those that do learn that it fails, no request waits longer
than `store_seconds` for it, and when it is back everything works again without a restart. Nothing that was kept is
lost, no client sees what is another's, and no use is counted twice.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.hostile import store_faults
from support.hostile.store_checker import violations
from support.hostile.store_proxy import StoreProxy
from support.hostile.store_stage import Stage, stage
from support.store.servers import Server, start_postgres_standby
from support.waiting import wait_until

STEPS = 2
"""Of each client, under each fault and after it."""
KINDS = ["postgres", "redis"]


@pytest.mark.parametrize("kind", KINDS)
def test_gateways_outlive_every_fault_of_their_store_and_its_failover_and_lose_nothing(
    kind: str, tmp_path: Path
) -> None:
    server = store_faults.SERVERS[kind]()
    with StoreProxy(server.port) as proxy:
        url = store_faults.url_of(kind, tmp_path, proxy.port, patient=True)
        direct = store_faults.url_of(kind, tmp_path, server.port)
        with stage(url, tmp_path, direct=direct, seed=kind) as held:
            faults = store_faults.Faults(kind, server, proxy, held)
            held.pass_every_kind()
            for fault in (
                faults.killed,
                faults.slow,
                faults.read_only,
                faults.held_then_released,
                faults.held_cut_and_refused,
            ):
                fault(STEPS)
                held.pass_by(STEPS)
            with second_server(kind, server) as other:
                fail_over = store_faults.FAILOVERS[kind]
                fail_over(server, other, proxy, held, STEPS)
                held.pass_every_kind()
                held.direct = store_faults.url_of(kind, tmp_path, other.port)
                assert violations(held.end()) == []
                assert_was_noticed(held)


@contextmanager
def second_server(kind: str, server: Server) -> Iterator[Server]:
    """A standby or replica that has all that the server has; in the end the server is again what it was."""
    if kind == "redis":
        other = store_faults.redis_replica(server)
        try:
            yield other
        finally:
            store_faults.redis_command(server.port, "REPLICAOF", "NO", "ONE")
            other.remove()
        return
    other = start_postgres_standby(server)
    try:
        store_faults.postgres_command(server.port, "ALTER SYSTEM SET synchronous_standby_names = '*'")
        wait_until(lambda: store_faults.streams_to(server))
        yield other
    finally:
        other.remove()
        server.start()  # it was killed in between
        store_faults.postgres_command(server.port, "ALTER SYSTEM RESET synchronous_standby_names")


@pytest.mark.parametrize("kind", KINDS)
def test_gateways_and_servers_that_are_killed_lose_nothing_that_was_kept(kind: str, tmp_path: Path) -> None:
    draw = random.Random(kind)  # noqa: S311 - a draw that can be repeated
    server = store_faults.SERVERS[kind]()
    url = store_faults.url_of(kind, tmp_path, server.port)
    with StoreProxy(server.port) as proxy, stage(url, tmp_path, direct=url, seed=f"kill{kind}") as held:
        faults = store_faults.Faults(kind, server, proxy, held)
        for _ in range(2):
            held.pass_by(draw.randint(1, 3))
            held.kill(draw.choice(held.gateways))
            faults.killed(1)
        held.pass_every_kind()
        assert violations(held.end()) == []


def assert_was_noticed(held: Stage) -> None:
    """The faults were felt: otherwise nothing was shown."""
    assert any(step.is_disturbed and step.status == 503 for step in held.steps)
    logs = "".join(gateway.log.read_text() for gateway in held.gateways)
    assert "nothing was stored" in logs
