"""Soaks the gateway: mixed traffic with faults, kills of its upstreams and of itself; nothing may be answered wrongly.

    python scripts/soak_gateway.py --minutes 15              everything, on loopback, in a folder of its own
    python scripts/soak_gateway.py --minutes 2 --seed 7      the same choices again (not the same moments)

In the first quarter of the time the gateway is killed (SIGKILL) and ended (SIGTERM) again and again, and so are the two
processes of its upstreams; then only these, and what the gateway holds is measured: memory must be flat, no file
descriptor may be left. At the end the gateway is ended and started once more, and all conversations go on. What is
wrong is told with its seed, and kept with request and answer in build/soak; the exit code is then 1.

The clients and their judgement are in soak_loops.py, what they ask in soak_plans.py, the upstreams in soak_upstream.py.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import random
import re
import shutil
import signal
import statistics
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from soak_loops import PAIRS, Tally, Traffic
from soak_processes import Place, ended_by_itself, summary
from soak_report import LEAST_WARM, MOST_GROWTH, Part, write_part

ROOT: Final = Path(__file__).resolve().parent.parent
KEPT: Final = ROOT / "build" / "soak"
"""Where evidence and the report go, unless told."""
CHAOS: Final = 1 / 4
"""The part of the time in which the gateway itself is ended."""
WARM: Final = 0.55
"""The part of the rest that is not measured: the vault's cache and the reports take some minutes to be full, and what
they hold is bounded. What grows after that is what is looked for. The last reports hold large bodies by turns, so that
memory goes up and down by some megabytes within a minute: what is measured are minutes."""
LEAST_MEASURED: Final = 60.0
"""Seconds that memory must be measured for, to say anything."""
SPARE_FDS: Final = 6
"""Descriptors that the gateway may have more than at its start, besides connections kept for the next request."""
STALLS_FROM: Final = 60.0
"""Seconds of a soak from which on upstreams fall silent too: that takes as long as the gateway's patience."""
QUIET_SECONDS: Final = 2.0


class Sample(NamedTuple):
    at: float
    rss: int
    fds: int


class LogTail:
    """The new lines of a file that another process writes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._rest = b""

    def lines(self) -> Iterator[bytes]:
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._at)
            data = file.read()
        self._at += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        yield from lines


class Soak:
    """One soak, from start to report."""

    def __init__(
        self,
        *,
        minutes: float,
        seed: int,
        loops: int,
        workers: int,
        folder: Path,
        kept: Path,
        answers: int = 0,
        patience: float = 1.0,
    ) -> None:
        self.total = minutes * 60
        self.seed = seed
        self.loops = loops
        self.answers = answers
        self.place = Place(folder, workers, patience)
        self.tally = Tally(str(seed), kept)
        stalls = self.total >= STALLS_FROM
        self.traffic = Traffic(self.place, self.tally, loops=loops, seed=str(seed), stalls=stalls)
        self.samples: list[Sample] = []
        self.upstream_counts: Counter[str] = Counter()
        self.state = "starting"
        self._draw = random.Random(f"{seed}/chaos")  # noqa: S311 - no secret hangs on it
        self._begun = time.monotonic()
        self._upstream_logs = [LogTail(folder / f"upstream-{name}.log") for name in self.place.upstreams]
        self._gateway_log = LogTail(folder / "gateway.err")

    async def run(self) -> None:
        try:
            await self.place.start()
            await asyncio.to_thread(_open_requests, self.place.gateway.url)
            self._idle_fds = self.place.gateway.fds()
            self.traffic.gate.set()
            self._begun = time.monotonic()
            traffic = asyncio.create_task(self.traffic.run())
            watch = asyncio.create_task(self._watch())
            story = asyncio.create_task(self._story())
            done, _ = await asyncio.wait({traffic, watch, story}, return_when=asyncio.FIRST_COMPLETED)
            self.traffic.is_over = True
            self.traffic.gate.clear()
            for task in done:
                task.result()
            await traffic
            watch.cancel()
            self._read_logs()
        finally:
            self.place.kill()

    async def _story(self) -> None:
        """What is done to whom, in its order."""
        chaos_ends = self._begun + self.total * CHAOS
        self.state = "kills of everybody"
        first = [("a", signal.SIGKILL), ("gateway", signal.SIGKILL), ("gateway", signal.SIGTERM), ("b", signal.SIGTERM)]
        self._draw.shuffle(first)
        while first or time.monotonic() < chaos_ends:
            who, how = first.pop() if first else self._chosen(("a", "b", "gateway", "gateway"))
            await self._pause(3, 9)
            await self._disturb(who, how)
        self.state = "kills of upstreams"
        self.samples.clear()
        while time.monotonic() < self._begun + self.total * 0.97:
            await self._pause(5, 15)
            await self._disturb(*self._chosen(("a", "b")))
        await self._settle()
        self.state = "after the last restart"
        await self._disturb("gateway", signal.SIGTERM)
        await asyncio.sleep(max(2.0, self._begun + self.total - time.monotonic()))
        await self.tally.until_right(self.answers)

    def _chosen(self, names: Sequence[str]) -> tuple[str, signal.Signals]:
        return self._draw.choice(names), self._draw.choice((signal.SIGKILL, signal.SIGTERM))

    async def _pause(self, least: float, most: float) -> None:
        scale = min(1.0, self.total / 180)
        await asyncio.sleep(self._draw.uniform(least, most) * scale)

    async def _disturb(self, who: str, how: signal.Signals) -> None:
        process = self.place.gateway if who == "gateway" else self.place.upstreams[who]
        pause = self._draw.choice((0.0, 0.2, 2.0)) * min(1.0, self.total / 120)
        wrong = await self.place.restart(process, how, pause)
        if wrong and who == "gateway":
            self.tally.found("end", wrong)

    async def _settle(self) -> None:
        """Nobody asks: what the gateway holds now, it holds for nobody."""
        self.state = "quiet"
        await self.traffic.quiet()
        await asyncio.sleep(QUIET_SECONDS)
        self._quiet = Sample(time.monotonic(), self.place.gateway.rss(), self.place.gateway.fds())
        open_now = await asyncio.to_thread(_open_requests, self.place.gateway.url)
        if open_now:
            self.tally.found("left open", f"nobody asks, and the gateway says: {open_now}")
        self.traffic.gate.set()

    # --- watching -----------------------------------------------------------------------------------

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            gateway = self.place.gateway
            if gateway.pid:
                self.samples.append(Sample(time.monotonic(), gateway.rss(), gateway.fds()))
            for why in ended_by_itself(self.place):
                self.tally.found("ended", why)
                raise RuntimeError(why)
            await asyncio.to_thread(self._read_logs)
            self._show()

    def _read_logs(self) -> None:
        for log in self._upstream_logs:
            for line in log.lines():
                self._upstream_told(json.loads(line))
        for line in self._gateway_log.lines():
            self._gateway_told(line)

    def _upstream_told(self, told: dict[str, Any]) -> None:
        if "wrong" in told:
            where = f"at {told['provider']}, {told['marker']}"
            self.tally.found("reached the upstream wrongly", "; ".join(told["wrong"]), where, body=told["body"])
        elif "error" in told:
            self.tally.found("refused by the upstream", f"{told['rule']}: {told['error']}", told["path"], **told)
        else:
            kind = "cut off" if told.get("cut") else f"fault {told['fault']}" if told["fault"] else str(told["status"])
            self.upstream_counts[kind] += 1

    def _gateway_told(self, line: bytes) -> None:
        try:
            told = json.loads(line)
        except ValueError:
            self.tally.found("gateway's stderr", line.decode(errors="replace"))
            return
        if told.get("event") == "error" or "before their time" in str(told.get("text", told)):
            self.tally.found("gateway's log", str(told))
        if "store" in str(told.get("error", "")) or "nothing was kept" in str(told.get("error", "")):
            self.tally.counts["store too slow or failing"] += 1

    def _show(self) -> None:
        if not sys.stderr.isatty():
            return
        spent = time.monotonic() - self._begun
        counts, rss = self.tally.counts, self.samples[-1].rss / 1e6 if self.samples else 0
        restarts = len(self.place.disturbances.spans)
        line = (
            f"{spent:5.0f} s of {self.total:.0f}  {self.state:<22} right {counts['right']}  "
            f"all {sum(counts.values())}  conversations {counts['conversations']}  restarts {restarts}  "
            f"{rss:.0f} MB  WRONG {len(self.tally.violations)}"
        )
        print(f"\r{line:<{shutil.get_terminal_size().columns - 1}}", end="", file=sys.stderr, flush=True)

    # --- the end ------------------------------------------------------------------------------------

    def memory(self) -> dict[str, Any]:
        """What the gateway held after warm-up, and by how much that grew."""
        pid_samples = self.samples
        if len(pid_samples) < 8:
            return {}
        begin, end = pid_samples[0].at, self._quiet.at
        warm = [sample for sample in pid_samples if begin + (end - begin) * WARM <= sample.at <= end]
        if len(warm) < 8:
            return {}
        part = len(warm) // 4
        early, late = (statistics.median(s.rss for s in some) for some in (warm[:part], warm[-part:]))
        slope = statistics.linear_regression([s.at for s in warm], [s.rss for s in warm]).slope
        return {
            "warm_seconds": round(warm[0].at - begin),
            "measured_seconds": round(warm[-1].at - warm[0].at),
            "early_mb": round(early / 1e6, 1),
            "late_mb": round(late / 1e6, 1),
            "most_mb": round(max(s.rss for s in warm) / 1e6, 1),
            "growth": round(late / early - 1, 4),
            "slope_kb_per_minute": round(slope * 60 / 1e3, 1),
            "most_fds": max(s.fds for s in warm),
            "idle_fds": self._idle_fds,
            "quiet_fds": self._quiet.fds,
            "quiet_mb": round(self._quiet.rss / 1e6, 1),
        }

    def check_memory(self) -> None:
        found = self.memory()
        if not found or found["measured_seconds"] < LEAST_MEASURED:
            return
        if found["growth"] > MOST_GROWTH and found["warm_seconds"] >= LEAST_WARM:
            self.tally.found("memory", f"it grew by {found['growth']:.0%}: {found}")
        if found["quiet_fds"] > found["idle_fds"] + len(self.place.upstreams) * self.loops + SPARE_FDS:
            self.tally.found("descriptors", f"some are left open when nobody asks: {found}")

    def report(self) -> dict[str, Any]:
        spent = time.monotonic() - self._begun
        return {
            "seed": self.seed,
            "seconds": round(spent),
            "machine": f"{platform.system()} {platform.machine()}, CPython {platform.python_version()}",
            "requests": sum(self.tally.counts[name] for name in self.tally.counts if "conversations" not in name),
            "conversations": self.tally.counts["conversations"],
            "pairs": f"{len(self.tally.pairs)} of {len(PAIRS)} (client, model) in a whole conversation",
            "answers": dict(sorted(self.tally.counts.items())),
            "upstreams": dict(sorted(self.upstream_counts.items())),
            "restarts": summary(self.place),
            "memory": self.memory(),
            "milliseconds": {name: _percentiles(values) for name, values in self.tally.seconds.items() if values},
            "violations": [violation._asdict() for violation in self.tally.violations],
        }


def _percentiles(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    at = {f"p{share}": ordered[min(len(ordered) - 1, len(ordered) * share // 100)] for share in (50, 90, 99)}
    return {name: round(value * 1000, 1) for name, value in at.items()} | {"count": len(ordered)}


def _open_requests(url: str) -> str:
    """What the gateway's own metrics say is open; empty: nothing."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:  # noqa: S310 - our own process
        text = answer.read().decode()
    found = {name: float(count) for name, count in re.findall(r"^(toolglot_open_[a-z]+) (\S+)$", text, re.MULTILINE)}
    found["toolglot_open_requests"] -= 1  # the one that asks for this
    return ", ".join(f"{name} {count:g}" for name, count in found.items() if count)


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def told(report: dict[str, Any], kept: Path) -> str:
    """A report in words."""
    lines = [f"soak of {report['seconds']} s, seed {report['seed']}: {report['requests']} requests"]
    lines.append(f"  {report['conversations']} conversations, {report['pairs']}")
    lines += [f"  {name}: {_listed(report[name])}" for name in ("answers", "upstreams", "restarts")]
    lines += [f"  {name}: {found} ms" for name, found in report["milliseconds"].items()]
    lines.append(f"  memory: {report['memory'] or 'not measured long enough'}")
    lines.append(f"  violations: {len(report['violations'])}")
    kinds = Counter(violation["kind"] for violation in report["violations"])
    lines += [f"    {count} times: {kind}" for kind, count in kinds.most_common()]
    for number, violation in enumerate(report["violations"][:10]):
        lines.append(f"    [{number}] {violation['kind']}: {violation['told']}\n        {violation['where']}")
    if report["violations"]:
        lines.append(f"  evidence: {kept}/violation-N.json")
        lines.append(f"  again: python scripts/soak_gateway.py --seed {report['seed']}")
    return "\n".join(lines)


def part_of(report: dict[str, Any], command: str) -> Part:
    """What the table of the whole soak shows of a report."""
    ends = report["restarts"]
    memory = report["memory"]
    return Part(
        "gateway with faults",
        command,
        report["seconds"],
        len(report["violations"]),
        requests=report["requests"],
        kills=sum(count for name, count in ends.items() if name.endswith("SIGKILL")),
        ended=sum(count for name, count in ends.items() if name.endswith("SIGTERM")),
        warm_mb=memory.get("early_mb", 0.0),
        end_mb=memory.get("late_mb", 0.0),
        warm_seconds=memory.get("warm_seconds", 0.0),
        seed=str(report["seed"]),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=15.0)
    options.add_argument("--seed", type=int, default=None, help="default: a new one, which is told")
    options.add_argument("--loops", type=int, default=8, help="clients at the same time")
    options.add_argument("--workers", type=int, default=1, help="processes of the gateway")
    options.add_argument("--answers", type=int, default=0, help="go on until at least so many answers were right")
    options.add_argument("--patience", type=float, default=1.0, help="multiplies every time limit: for a busy machine")
    options.add_argument("--out", type=Path, default=KEPT, help="evidence and report go here; older ones are removed")
    given = options.parse_args(arguments)
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(100_000)
    given.out.mkdir(parents=True, exist_ok=True)
    for old in (*given.out.glob("violation-*.json"), *given.out.glob("report.json")):
        old.unlink()
    print(f"==> soaking the gateway for {given.minutes:g} minutes, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="toolglot-soak-") as folder:
        soak = Soak(
            minutes=given.minutes,
            seed=seed,
            loops=given.loops,
            workers=given.workers,
            folder=Path(folder),
            kept=given.out,
            answers=given.answers,
            patience=given.patience,
        )
        asyncio.run(soak.run())
        soak.check_memory()
        report = soak.report()
    (given.out / "report.json").write_text(json.dumps(report, indent=1))
    command = f"python scripts/soak_gateway.py --minutes {given.minutes:g} --seed {seed}"
    write_part(part_of(report, command), given.out / "parts" if given.out != KEPT else None)
    print(("\n" if sys.stderr.isatty() else "") + told(report, given.out), flush=True)
    return 1 if report["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
