"""What a stored response costs on one gateway and on several, by the store: CPU of the gateways, and round trips to it.

Each client goes on with its conversation by `previous_response_id`, each turn on the next gateway, so that every turn
reads what another process has stored. Gateways are processes of `toolglot serve`; the upstream answers at once. CPU is
that of the gateways alone, from the system; the store's server has its own. Exits with 1 when a limit is broken:

- with a server and four gateways, a request costs at most SERVER_LIMIT times what it costs on one gateway with SQLite;
- with more gateways, the CPU of a request grows by at most GROWTH_LIMIT: then throughput grows with the cores.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest

# Where the servers of the tests are started.
sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support.hostile.echo_upstream import echo_upstream
from support.hostile.store_stage import KEYS, ServedGateway, config_text
from support.store.servers import postgres_url, redis_url

FLEETS: Final = (1, 2, 4)
CLIENTS: Final = 8
TURNS: Final = int(os.environ.get("FLEET_TURNS", "40"))
WARM_UP: Final = 10
ROUNDS: Final = int(os.environ.get("FLEET_ROUNDS", "3"))
SERVER_LIMIT: Final = 1.3
GROWTH_LIMIT: Final = 1.1
TICK: Final = os.sysconf("SC_CLK_TCK")
SERVERS: Final = {"Redis": redis_url, "Postgres": postgres_url}


def cpu_seconds(gateways: list[ServedGateway]) -> float:
    """CPU of these processes so far, of user and system."""
    total = 0
    for gateway in gateways:
        assert gateway.process is not None
        fields = Path(f"/proc/{gateway.process.pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICK


def converse(ports: list[int], number: int, turns: int) -> None:
    """A conversation, each turn on the next gateway."""
    connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for port in ports]
    headers = {"authorization": f"Bearer {KEYS['ann']}", "content-type": "application/json"}
    previous: str | None = None
    for turn in range(turns):
        if turn % 10 == 0:
            previous = None  # a conversation of ten turns
        connection = connections[(number + turn) % len(connections)]
        body = {"model": "chat/echo", "input": f"mk-fleet{number}-{turn}", "previous_response_id": previous}
        connection.request("POST", "/v1/responses", json.dumps(body), headers)
        with connection.getresponse() as response:
            data = response.read()
        if response.status != 200:
            raise RuntimeError(data.decode()[:500])
        previous = json.loads(data)["id"]
    for connection in connections:
        connection.close()


def load(ports: list[int], turns: int) -> None:
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            converse(ports, number, turns)
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@contextmanager
def fleet(count: int, store: str, upstream: str, folder: Path) -> Iterator[list[ServedGateway]]:
    with ExitStack() as stack:
        gateways = [ServedGateway(f"g{n}", folder, config_text(upstream, store, 10)) for n in range(count)]
        for gateway in gateways:
            gateway.start()
            stack.callback(gateway.end, signal.SIGTERM)
        yield gateways


def measure(count: int, store: str, upstream: str, folder: Path) -> float:
    """CPU of a request in milliseconds, the median of some rounds."""
    with fleet(count, store, upstream, folder) as gateways:
        ports = [gateway.port for gateway in gateways]
        load(ports, WARM_UP * count)
        found = []
        for _ in range(ROUNDS):
            before = cpu_seconds(gateways)
            load(ports, TURNS)
            found.append(1000 * (cpu_seconds(gateways) - before) / (TURNS * CLIENTS))
        return statistics.median(found)


def main() -> int:
    found: dict[tuple[str, int], float] = {}
    with echo_upstream() as upstream, tempfile.TemporaryDirectory() as root:
        for name in ("SQLite", *SERVERS):
            for count in FLEETS if name != "SQLite" else (1, 4):
                folder = Path(root, f"{name}{count}")
                folder.mkdir()
                try:
                    store = str(folder / "store.db") if name == "SQLite" else SERVERS[name](folder)
                except pytest.skip.Exception as error:
                    print(f"{name}: {error}")
                    break
                found[name, count] = measure(count, store, upstream, folder)
    floor = found["SQLite", 1]
    print(f"\nA stored response, CPU of the gateways; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    print("| store | gateways | CPU a request | to SQLite on one | to its one |\n|---|---|---|---|---|")
    is_kept = True
    for (name, count), each in found.items():
        growth = each / found[name, 1]
        print(f"| {name} | {count} | {each:.2f} ms | {each / floor:.2f} x | {growth:.2f} x |")
        if name != "SQLite":
            is_kept = is_kept and growth <= GROWTH_LIMIT and (count < 4 or each / floor <= SERVER_LIMIT)
    print("\nlimits kept" if is_kept else f"\na limit is broken: {SERVER_LIMIT} x SQLite, {GROWTH_LIMIT} x one gateway")
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
