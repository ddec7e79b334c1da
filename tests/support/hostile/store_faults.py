"""What can happen to the server of a store, and to the way to it; each fault begins and ends here.

Each method of `Faults` disturbs, lets the clients do so many steps under it, and heals; when it returns, every gateway
uses the store again. A failover has a server to go to: `postgres_failover`, `redis_failover`.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import asyncpg  # type: ignore[import-untyped]
from redis import Redis

from support.hostile.store_checker import Step
from support.hostile.store_proxy import StoreProxy
from support.hostile.store_stage import Stage
from support.store.servers import PASSWORD, WRITTEN, Server, named, postgres, redis, start_redis
from support.waiting import wait_until

SERVERS: dict[str, Callable[[], Server]] = {"postgres": postgres, "redis": redis}


def url_of(kind: str, folder: Path, port: int, *, host: str = "127.0.0.1", patient: bool = False) -> str:
    """The address of a store of that folder's. `patient`: the drivers themselves wait for ten minutes, so that nothing
    but the gateway's own limit ends a wait in the time of a test."""
    if kind == "postgres":
        more = "&statement_timeout=600000" if patient else ""
        return f"postgres://toolglot:{WRITTEN}@{host}:{port}/postgres?schema=t_{named(folder)}{more}"
    more = "&socket_timeout=600" if patient else ""
    return f"redis://:{WRITTEN}@{host}:{port}/0?prefix=t_{named(folder)}{more}"


def postgres_command(port: int, statement: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(f"postgres://toolglot:{WRITTEN}@127.0.0.1:{port}/postgres")
        await connection.execute(statement)
        await connection.execute("SELECT pg_reload_conf()")
        await connection.close()

    asyncio.run(run())


def redis_command(port: int, *words: str) -> object:
    with Redis(host="127.0.0.1", port=port, password=PASSWORD) as client:
        return client.execute_command(*words)


class Faults:
    """Of one server, one proxy in front of it, and those who use it."""

    def __init__(self, kind: str, server: Server, proxy: StoreProxy, held: Stage) -> None:
        self.kind = kind
        self.server = server
        self.proxy = proxy
        self.held = held

    def killed(self, steps: int) -> list[Step]:
        with self.held.disturbance():
            self.server.end(signal.SIGKILL)
            try:
                return self.held.pass_by(steps)
            finally:
                self.server.start()

    def slow(self, steps: int) -> list[Step]:
        """Slower than it should be, and in time all the same: no client may notice."""
        self.proxy.delay = 0.01
        try:
            return self.held.pass_by(steps)
        finally:
            self.proxy.delay = 0.0

    def read_only(self, steps: int) -> list[Step]:
        with self.held.disturbance():
            if self.kind == "postgres":
                postgres_command(self.server.port, "ALTER SYSTEM SET default_transaction_read_only = on")
            else:
                redis_command(self.server.port, "CONFIG", "SET", "min-replicas-to-write", "1")
            try:
                return self.held.pass_by(steps)
            finally:
                if self.kind == "postgres":
                    make_writable(self.server.port)
                else:
                    redis_command(self.server.port, "CONFIG", "SET", "min-replicas-to-write", "0")

    def held_then_released(self, steps: int) -> list[Step]:
        with self.held.disturbance():
            self.proxy.hold()
            try:
                return self.held.pass_by(steps)
            finally:
                self.proxy.release()

    def held_cut_and_refused(self, steps: int) -> list[Step]:
        """Silent first, then all connections end, and new ones too."""
        with self.held.disturbance():
            self.proxy.hold()
            found = self.held.pass_by(1)
            self.proxy.refuse = True
            self.proxy.cut()
            self.proxy.release()
            try:
                return found + self.held.pass_by(steps)
            finally:
                self.proxy.refuse = False


def make_writable(port: int) -> None:
    """ALTER SYSTEM is itself a write: it needs a session that writes."""

    async def run() -> None:
        settings = {"default_transaction_read_only": "off"}
        url = f"postgres://toolglot:{WRITTEN}@127.0.0.1:{port}/postgres"
        connection = await asyncpg.connect(url, server_settings=settings)
        await connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
        await connection.execute("SELECT pg_reload_conf()")
        await connection.close()

    asyncio.run(run())


# --- failing over -----------------------------------------------------------------------------------


def postgres_failover(primary: Server, standby: Server, proxy: StoreProxy, held: Stage, steps: int) -> None:
    """The primary is killed, the address leads to the standby, which is promoted later: until then it only reads."""
    with held.disturbance():
        primary.end(signal.SIGKILL)
        proxy.switch(standby.port)
        held.pass_by(steps)
        postgres_command(standby.port, "SELECT pg_promote()")


def redis_failover(master: Server, replica: Server, proxy: StoreProxy, held: Stage, steps: int) -> None:
    """The replica takes over, the master becomes its replica and stays connected: the address leads elsewhere."""
    with held.disturbance():
        proxy.hold()
        wait_until(lambda: _offset(master) == _offset(replica))
        redis_command(replica.port, "REPLICAOF", "NO", "ONE")
        redis_command(master.port, "CONFIG", "SET", "masterauth", PASSWORD)
        redis_command(master.port, "REPLICAOF", "127.0.0.1", str(replica.port))
        proxy.release()
        held.pass_by(steps)
        proxy.target = replica.port  # and what is connected stays so


def _offset(server: Server) -> int:
    info = redis_command(server.port, "INFO", "replication")
    assert isinstance(info, dict)
    return int(info["slave_repl_offset"] if info["role"] == "slave" else info["master_repl_offset"])


def streams_to(primary: Server) -> bool:
    """Whether a standby has all that the primary has committed."""

    async def run() -> bool:
        connection = await asyncpg.connect(f"postgres://toolglot:{WRITTEN}@127.0.0.1:{primary.port}/postgres")
        try:
            found = await connection.fetchval("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")
            return bool(found)
        finally:
            await connection.close()

    return asyncio.run(run())


def redis_replica(master: Server) -> Server:
    words = ["--replicaof", "127.0.0.1", str(master.port), "--masterauth", PASSWORD]
    return start_redis(*words, "--appendonly", "yes", "--appendfsync", "always", "--save", "")


FAILOVERS = {"postgres": postgres_failover, "redis": redis_failover}
