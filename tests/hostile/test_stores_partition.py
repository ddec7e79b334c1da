"""The server of a store is at the other end of a cable that is cut: packets are lost without a notice.

Requests that need no store go on, no request waits longer than `store_seconds`, and when packets get through again
everything works without a restart.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.hostile import store_faults
from support.hostile.network_namespace import network_namespace
from support.hostile.store_checker import violations
from support.hostile.store_stage import stage
from support.store.servers import start_postgres, start_redis


@pytest.mark.parametrize("kind", ["postgres", "redis"])
def test_gateways_outlive_a_network_that_loses_every_packet_to_their_store(kind: str, tmp_path: Path) -> None:
    with network_namespace() as far:
        if kind == "postgres":
            server = start_postgres(far.address, far.command)
        else:
            words = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")
            server = start_redis(*words, host=far.address, within=far.command)
        try:
            url = store_faults.url_of(kind, tmp_path, server.port, host=far.address)
            patient = store_faults.url_of(kind, tmp_path, server.port, host=far.address, patient=True)
            with stage(patient, tmp_path, direct=url, seed=f"far{kind}") as held:
                held.pass_every_kind()
                with held.disturbance():
                    far.cut()
                    try:
                        held.pass_by(2)
                        held.pass_until_refused()
                    finally:
                        far.join()
                held.pass_every_kind()
                assert violations(held.end()) == []
        finally:
            server.remove()
