"""What the gateway costs, next to LiteLLM's proxy, llm-rosetta's gateway and nginx, which only forwards bytes.

The client sends Messages, the provider Chat Completions. The provider is a fake one that responds at once, so that only
the gateway is measured: CPU time of its processes for a request, rounds in turn; then memory and delay of 1,000 slow
streams, the time to start, and memory when idle. Ours keeps nothing of past requests (`keep = "off"`); a second
one keeps bodies, for what that costs. A server that cannot be measured breaks its limits; BENCH_PEERS=0
leaves out the other servers. Exits with 1 when a limit is broken.

`--json FILE` also writes the figures to a file, and `scripts/plot_performance.py FILE` puts them into docs/.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import gateway_traffic as traffic
import peers
from gateway_servers import KEEPING, NGINX, OURS, STARTERS, Load, Server, post, provider, toolglot
from timing import NAME_WIDTH, Row, in_turn, table

ROUNDS: Final = 7
CONNECTIONS: Final = 32
REQUESTS: Final = {OURS: 2_000, KEEPING: 2_000, NGINX: 8_000, "litellm": 48, "llm-rosetta": 400}
STREAMS: Final = {OURS: 400, KEEPING: 400, NGINX: 2_000, "litellm": 8, "llm-rosetta": 40}
"""Of a round: enough of each that its time is not noise."""

SESSION_REQUESTS: Final = {
    7_000: {OURS: 1_000, KEEPING: 1_000, NGINX: 4_000, "litellm": 48, "llm-rosetta": 200},
    100_000: {OURS: 400, KEEPING: 400, NGINX: 2_000, "litellm": 32, "llm-rosetta": 80},
    1_000_000: {OURS: 120, KEEPING: 120, NGINX: 400, "litellm": 16, "llm-rosetta": 24},
}
SESSION_LIMITS: Final = {
    7_000: {"litellm": 60.0, "llm-rosetta": 6.0},
    100_000: {"litellm": 40.0, "llm-rosetta": 5.0},
    1_000_000: {"litellm": 25.0, "llm-rosetta": 4.0},
}
SESSION_CONNECTIONS: Final = 8
SESSION_ROUNDS: Final = 5
"""By the size of the history, in bytes. Each request is the next turn of a session that was seen before."""

WHOLE_LIMITS: Final = {"litellm": 50.0, "llm-rosetta": 5.0}
STREAM_LIMITS: Final = {"litellm": 250.0, "llm-rosetta": 8.0}
NGINX_LIMIT: Final = 15.0
KEEPING_LIMIT: Final = 1.10

HELD: Final = 1_000
SLOWER: Final = 3_000
"""Streams with an event each 500 ms."""
HOLD_SECONDS: Final = 10
OPENING: Final = 1.0
"""Seconds that it takes to open all of them, on the average."""
DELAY_LIMIT: Final = 50.0
"""Milliseconds that the gateway adds at the 99th percentile."""
HELD_LIMIT: Final = 25_000
EVENT_LIMIT: Final = 30.0
"""Microseconds of CPU an event."""
IDLE_LIMIT: Final = 50_000_000
STARTS: Final = 5
START_LIMIT: Final = 0.25

measures: dict[str, Any] = {"compared": [], "figures": []}
"""What was measured, for `--json`."""


def find_fault(server: Server) -> str:
    """Why a server cannot be compared; empty: its responses are right."""
    whole = post(server.port, traffic.request(stream=False))
    streamed = post(server.port, traffic.request(stream=True))
    if (whole.status, streamed.status) != (200, 200):
        return f"it responds with status {whole.status}, {streamed.status}: {whole.body[:150]!r}"
    if server.name == NGINX:
        return "" if whole.body == traffic.reply() else "it changes the response"
    contents = traffic.census(whole.body), peers.stream_census(streamed.body)
    return "" if contents == _expected() else f"its responses contain {contents[0]} and {contents[1]}"


def _expected() -> tuple[dict[str, Any], dict[str, int]]:
    arguments = {"path": "src/ledger/settlement.py", "old": "ROUND_DOWN", "new": "ROUND_HALF_EVEN"}
    whole = {"text": "Each account is rounded down.", "calls": [("edit_file", arguments)], "stop": "tool_use"}
    return whole, {"text": 464, "input": 500, "calls": 1}


@contextmanager
def start_servers(upstream: int, folder: Path) -> Iterator[tuple[dict[str, Server], dict[str, str]]]:
    """The servers that run and respond rightly, ours among them, and why others do not."""
    running = {OURS: toolglot(upstream, folder), KEEPING: toolglot(upstream, folder, "bodies")}
    missing: dict[str, str] = {}
    try:
        for kind, start in STARTERS.items():
            if not peers.wanted():
                missing[kind] = "BENCH_PEERS=0"
                continue
            try:
                running[kind] = start(upstream, folder)
            except (peers.PeerError, OSError) as error:
                missing[kind] = str(error)
        for kind, server in list(running.items()):
            if reason := find_fault(server):
                missing[kind] = reason
                running.pop(kind).stop()
        if OURS in missing:
            raise SystemExit(f"our own gateway: {missing[OURS]}")
        yield running, missing
    finally:
        for server in running.values():
            server.stop()


# --- CPU of a request -------------------------------------------------------------------------------


def round_of(server: Server, load: Load, kind: str, requests: int, size: int = 0) -> Callable[[], float]:
    """Nanoseconds of CPU for one request, a round."""
    connections = SESSION_CONNECTIONS if kind == "session" else CONNECTIONS

    def fire(count: int) -> None:
        done = load.order(do="fire", port=server.port, kind=kind, requests=count, connections=connections, size=size)
        if done["failed"] or done["answered"] != count:
            raise SystemExit(f"{server.title}: {done['failed']} of {count} requests failed: {done['why']}")

    def one_round() -> float:
        fire(
            max(4, connections if kind == "session" else requests // 10)
        )  # the turn of another server has left connections and caches cold
        before = server.cpu_ns()
        fire(requests)
        return (server.cpu_ns() - before) / requests

    return one_round


def compare(
    title: str,
    load: Load,
    kind: str,
    found: tuple[dict[str, Server], dict[str, str]],
    limits: dict[str, float],
    size: int = 0,
) -> bool:
    running, missing = found
    counts = SESSION_REQUESTS[size] if size else REQUESTS if kind == "whole" else STREAMS
    rounds = {server.title: round_of(server, load, kind, counts[name], size) for name, server in running.items()}
    for one_round in rounds.values():
        one_round()
    times = in_turn(SESSION_ROUNDS if size else ROUNDS, rounds)
    own = running[OURS].title
    rows = [Row(own), _keeping_row(running, missing, own), *_nginx_rows(running, missing, own, kind)]
    for name, min_ratio in limits.items():
        if name in running:
            rows.append(Row(running[name].title, own, min_ratio=min_ratio))
        else:
            rows.append(Row(name, own, min_ratio=min_ratio, missing=missing[name], excused=not peers.wanted()))
    measures["compared"].append(_comparison_data(title, kind, running, times, limits))
    return table(title, "µs", 1_000, rows, times)


def _comparison_data(
    title: str, kind: str, running: dict[str, Server], times: dict[str, list[float]], limits: dict[str, float]
) -> dict[str, Any]:
    """A comparison as data: medians in µs, and the medians of the ratios of each round."""
    own = times[running[OURS].title]
    found = {}
    for name, server in running.items():
        if name == KEEPING:  # the charts compare servers
            continue
        ratios = [one / other for one, other in zip(times[server.title], own, strict=True)]
        found[name] = {
            "title": server.title,
            "us": statistics.median(times[server.title]) / 1e3,
            "us_of_rounds": [min(times[server.title]) / 1e3, max(times[server.title]) / 1e3],
            "ratio": statistics.median(ratios),
            "ratio_of_rounds": [min(ratios), max(ratios)],
        }
    upper = {NGINX: NGINX_LIMIT} if kind == "whole" else {}
    return {"title": title, "servers": found, "min_ratio": limits, "max_ratio": upper}


def _keeping_row(running: dict[str, Server], missing: dict[str, str], own: str) -> Row:
    if KEEPING not in running:
        return Row(KEEPING, own, max_ratio=KEEPING_LIMIT, missing=missing[KEEPING])
    return Row(running[KEEPING].title, own, max_ratio=KEEPING_LIMIT)


def _nginx_rows(running: dict[str, Server], missing: dict[str, str], own: str, kind: str) -> list[Row]:
    limit = NGINX_LIMIT if kind == "whole" else None
    if NGINX not in running:
        return [Row(NGINX, own, max_ratio=limit, missing=missing[NGINX], excused=not peers.wanted())]
    title = running[NGINX].title
    return [Row(title), Row(own, title, max_ratio=limit)]


# --- single figures ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    name: str
    value: float
    unit: str
    limit: float | None = None

    def show(self) -> bool:
        kept = self.limit is None or self.value <= self.limit
        measures["figures"].append({"name": self.name, "value": self.value, "unit": self.unit, "limit": self.limit})
        limit = f"<= {self.limit:,g}" if self.limit is not None else ""
        verdict = "" if self.limit is None else "yes" if kept else "NO"
        print(f"{self.name:<{NAME_WIDTH}}{self.value:>10,.2f} {self.unit:<7}  {limit:<10}{verdict}".rstrip())
        return kept


@dataclass(frozen=True)
class Holding:
    """The cost of streams that are open at the same time."""

    seen: dict[str, Any]
    memory: float
    """Bytes of each."""
    cpu: float
    """Nanoseconds of each event."""


def hold_streams(upstream: int, folder: Path, load: Load, kind: str, seconds: int, streams: int = HELD) -> Holding:
    """Slow streams on a gateway of their own, which has served some quick ones before."""
    server = toolglot(upstream, folder)
    try:
        load.order(do="fire", port=server.port, kind="stream", requests=500, connections=CONNECTIONS)
        time.sleep(1)
        before, cpu, begun = server.memory(), server.cpu_ns(), time.monotonic()
        seen = load.order(do="hold", port=server.port, streams=streams, seconds=seconds, kind=kind)
        growth, spent = server.memory() - before, server.cpu_ns() - cpu
        each = traffic.SECONDS_A_SLOWER_EVENT if kind == "slower" else traffic.SECONDS_AN_EVENT
        events = streams * (time.monotonic() - begun - OPENING) / each
        load.write_line("release")
        load.read_line()
    finally:
        server.stop()
    if seen["open"] != streams:
        raise SystemExit(f"only {seen['open']} of {streams} streams opened")
    return Holding(seen, growth / streams, spent / events)


def slow_stream_figures(upstream: int, folder: Path, load: Load) -> list[Figure]:
    """Slow streams, with a gateway and without."""
    direct = load.order(do="hold", port=upstream, streams=HELD, seconds=HOLD_SECONDS, kind="question")
    load.write_line("release")
    load.read_line()
    short = hold_streams(upstream, folder, load, "question", HOLD_SECONDS)
    agent = hold_streams(upstream, folder, load, "agent", 3)
    slower = hold_streams(upstream, folder, load, "slower", HOLD_SECONDS, SLOWER)
    expected = HELD * HOLD_SECONDS / traffic.SECONDS_AN_EVENT
    return [
        Figure("events that came, of those expected", 100 * short.seen["events"] / expected, "%"),
        Figure("CPU of the gateway an event", short.cpu / 1e3, "µs", EVENT_LIMIT),
        Figure("delay without a gateway, p99", direct["p99"], "ms"),
        Figure("delay with it, p50", short.seen["p50"], "ms"),
        Figure("delay that it adds, p99", short.seen["p99"] - direct["p99"], "ms", DELAY_LIMIT),
        Figure("memory of a stream", short.memory / 1e3, "kB", HELD_LIMIT / 1e3),
        Figure("memory of a stream, agent's request of 7 kB", agent.memory / 1e3, "kB", HELD_LIMIT / 1e3),
        Figure(f"{SLOWER:,} streams, each 500 ms: events that came", 100 * slower.seen["events"] / _of_slower(), "%"),
        Figure(f"{SLOWER:,} streams: delay, p99", slower.seen["p99"], "ms", DELAY_LIMIT),
        Figure(f"{SLOWER:,} streams: memory of each, 7 kB", slower.memory / 1e3, "kB", HELD_LIMIT / 1e3),
    ]


def _of_slower() -> float:
    """Events that are expected."""
    return SLOWER * HOLD_SECONDS / traffic.SECONDS_A_SLOWER_EVENT


def start_figures(upstream: int, folder: Path) -> list[Figure]:
    """The start of a gateway. The best of several: other work of the machine only ever makes one longer."""
    seconds, idle, cpu = [], [], []
    for _ in range(STARTS):
        begun = time.perf_counter()
        server = toolglot(upstream, folder)
        try:
            response = post(server.port, traffic.request(stream=False))
            seconds.append(time.perf_counter() - begun)
            assert response.status == 200
            cpu.append(server.cpu_ns() / 1e9)
            time.sleep(0.5)
            idle.append(server.memory())
        finally:
            server.stop()
    return [
        Figure(f"from start to first answer, best of {STARTS}", min(seconds), "s", START_LIMIT),
        Figure("CPU of that, median", statistics.median(cpu), "s"),
        Figure("memory after the first answer", statistics.median(idle) / 1e6, "MB", IDLE_LIMIT / 1e6),
    ]


def machine() -> str:
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    cpu = names[0].partition(":")[2].strip() if names else platform.machine()
    release = ".".join(platform.release().split(".")[:2])
    return f"{len(names)} x {cpu}, Linux {release}, CPython {platform.python_version()}"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to this file")
    file = options.parse_args().json
    before = os.getloadavg()[0]
    code = _main()
    if file is not None:
        measures["load"] = [before, os.getloadavg()[0]]
        measures["machine"] = machine()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(measures, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    return code


def _main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        load = Load(folder)
        try:
            with provider(folder) as upstream:
                return 0 if _run(upstream, folder, load) else 1
        finally:
            load.stop()


def _run(upstream: int, folder: Path, load: Load) -> bool:
    size = len(traffic.request(stream=False))
    print(f"Machine: {machine()}.")
    print(f"Messages client, Chat provider: {size:,} bytes, 8 tools; {CONNECTIONS} connections, {ROUNDS} rounds.")
    print(f"Ratio: others to '{OURS}', ours in the second row of its name to nginx.\n")
    with start_servers(upstream, folder) as found:
        kept = compare("a request, CPU", load, "whole", found, WHOLE_LIMITS)
        print()
        kept &= compare(f"a stream of {traffic.EVENTS} events, CPU", load, "stream", found, STREAM_LIMITS)
        for size, limits in SESSION_LIMITS.items():
            print()
            kept &= compare(f"the next turn of a session of {size // 1000:,} kB", load, "session", found, limits, size)
    print(f"\n{HELD:,} streams, an event each {traffic.SECONDS_AN_EVENT * 1000:.0f} ms, one process")
    for figure in slow_stream_figures(upstream, folder, load):
        kept &= figure.show()
    print("\nstart, and nothing to do")
    for figure in start_figures(upstream, folder):
        kept &= figure.show()
    return kept


if __name__ == "__main__":
    sys.exit(main())
