"""Soaks the gateway: mixed traffic with faults, kills of its upstreams and of itself; no response may be wrong.

    python scripts/soak_gateway.py --minutes 15              everything, on loopback, in a folder of its own
    python scripts/soak_gateway.py --minutes 2 --seed 7      the same choices again (not the same moments)

In the first quarter of the time the gateway is killed (SIGKILL) and ended (SIGTERM) again and again, and so are the two
processes of its upstreams; then only these, and what the gateway holds is measured: memory must be flat, no file
descriptor may be left. At the end the gateway is ended and started once more, and all conversations go on. Violations
are printed with the seed, and written with request and response to build/soak; the exit code is then 1.

The clients and their judge are in soak_loops.py, their prompts in soak_plans.py, the upstreams in soak_upstream.py.
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
from soak_processes import Testbed, ended_by_itself, summary
from soak_report import MAX_GROWTH, MIN_WARM_SECONDS, Part, write_part

ROOT: Final = Path(__file__).resolve().parent.parent
OUTPUT: Final = ROOT / "build" / "soak"
"""The default folder of evidence and report."""
CHAOS: Final = 1 / 4
"""The part of the time in which the gateway itself is ended."""
WARM: Final = 0.55
"""The part of the rest that is not measured: the vault's cache and the reports take some minutes to be full, and what
they hold is bounded. What grows after that is what is looked for. The last reports hold large bodies by turns, so that
memory goes up and down by some megabytes within a minute: what is measured are minutes."""
MIN_MEASURED_SECONDS: Final = 60.0
"""Seconds that memory must be measured for, to say anything."""
SPARE_FDS: Final = 6
"""Descriptors that the gateway may have more than at its start, besides connections kept for the next request."""
STALLS_FROM: Final = 60.0
"""Seconds that a soak must last for upstreams to fall silent too: that takes as long as the gateway's timeouts."""
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
        output: Path,
        answers: int = 0,
        patience: float = 1.0,
    ) -> None:
        self.total = minutes * 60
        self.seed = seed
        self.loops = loops
        self.answers = answers
        self.testbed = Testbed(folder, workers, patience)
        self.tally = Tally(str(seed), output)
        stalls = self.total >= STALLS_FROM
        self.traffic = Traffic(self.testbed, self.tally, loops=loops, seed=str(seed), stalls=stalls)
        self.samples: list[Sample] = []
        self.upstream_counts: Counter[str] = Counter()
        self.state = "starting"
        self._draw = random.Random(f"{seed}/chaos")  # noqa: S311 - not for a secret
        self._begun = time.monotonic()
        self._upstream_logs = [LogTail(folder / f"upstream-{name}.log") for name in self.testbed.upstreams]
        self._gateway_log = LogTail(folder / "gateway.err")

    async def run(self) -> None:
        try:
            await self.testbed.start()
            await asyncio.to_thread(_open_requests, self.testbed.gateway.url)
            self._idle_fds = self.testbed.gateway.fds()
            self.traffic.gate.set()
            self._begun = time.monotonic()
            traffic = asyncio.create_task(self.traffic.run())
            watch = asyncio.create_task(self._watch())
            phases = asyncio.create_task(self._run_phases())
            done, _ = await asyncio.wait({traffic, watch, phases}, return_when=asyncio.FIRST_COMPLETED)
            self.traffic.is_over = True
            self.traffic.gate.clear()
            for task in done:
                task.result()
            await traffic
            watch.cancel()
            self._read_logs()
        finally:
            self.testbed.kill()

    async def _run_phases(self) -> None:
        """End processes and start them again, phase by phase."""
        chaos_ends = self._begun + self.total * CHAOS
        self.state = "kills of all processes"
        first = [("a", signal.SIGKILL), ("gateway", signal.SIGKILL), ("gateway", signal.SIGTERM), ("b", signal.SIGTERM)]
        self._draw.shuffle(first)
        while first or time.monotonic() < chaos_ends:
            who, how = first.pop() if first else self._choose(("a", "b", "gateway", "gateway"))
            await self._pause(3, 9)
            await self._disturb(who, how)
        self.state = "kills of upstreams"
        self.samples.clear()
        while time.monotonic() < self._begun + self.total * 0.97:
            await self._pause(5, 15)
            await self._disturb(*self._choose(("a", "b")))
        await self._settle()
        self.state = "after the last restart"
        await self._disturb("gateway", signal.SIGTERM)
        await asyncio.sleep(max(2.0, self._begun + self.total - time.monotonic()))
        await self.tally.wait_for_right(self.answers)

    def _choose(self, names: Sequence[str]) -> tuple[str, signal.Signals]:
        return self._draw.choice(names), self._draw.choice((signal.SIGKILL, signal.SIGTERM))

    async def _pause(self, min_seconds: float, max_seconds: float) -> None:
        scale = min(1.0, self.total / 180)
        await asyncio.sleep(self._draw.uniform(min_seconds, max_seconds) * scale)

    async def _disturb(self, who: str, how: signal.Signals) -> None:
        process = self.testbed.gateway if who == "gateway" else self.testbed.upstreams[who]
        pause = self._draw.choice((0.0, 0.2, 2.0)) * min(1.0, self.total / 120)
        wrong = await self.testbed.restart(process, how, pause)
        if wrong and who == "gateway":
            self.tally.add_violation("end", wrong)

    async def _settle(self) -> None:
        """Measure what the gateway holds while there are no requests."""
        self.state = "quiet"
        await self.traffic.pause()
        await asyncio.sleep(QUIET_SECONDS)
        self._quiet = Sample(time.monotonic(), self.testbed.gateway.rss(), self.testbed.gateway.fds())
        open_now = await asyncio.to_thread(_open_requests, self.testbed.gateway.url)
        if open_now:
            self.tally.add_violation("left open", f"there are no requests, and the gateway reports {open_now}")
        self.traffic.gate.set()

    # --- watching -----------------------------------------------------------------------------------

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            gateway = self.testbed.gateway
            if gateway.pid:
                self.samples.append(Sample(time.monotonic(), gateway.rss(), gateway.fds()))
            for why in ended_by_itself(self.testbed):
                self.tally.add_violation("ended", why)
                raise RuntimeError(why)
            await asyncio.to_thread(self._read_logs)
            self._show()

    def _read_logs(self) -> None:
        for log in self._upstream_logs:
            for line in log.lines():
                self._read_upstream_line(json.loads(line))
        for line in self._gateway_log.lines():
            self._read_gateway_line(line)

    def _read_upstream_line(self, fields: dict[str, Any]) -> None:
        if "wrong" in fields:
            where = f"at {fields['provider']}, {fields['marker']}"
            self.tally.add_violation(
                "reached the upstream wrongly", "; ".join(fields["wrong"]), where, body=fields["body"]
            )
        elif "error" in fields:
            self.tally.add_violation(
                "refused by the upstream", f"{fields['rule']}: {fields['error']}", fields["path"], **fields
            )
        else:
            fault, status = fields["fault"], str(fields["status"])
            kind = "cut off" if fields.get("cut") else f"fault {fault}" if fault else status
            self.upstream_counts[kind] += 1

    def _read_gateway_line(self, line: bytes) -> None:
        try:
            fields = json.loads(line)
        except ValueError:
            self.tally.add_violation("gateway's stderr", line.decode(errors="replace"))
            return
        if fields.get("event") == "error" or "are cut off" in str(fields.get("text", fields)):
            self.tally.add_violation("gateway's log", str(fields))
        if "store" in str(fields.get("error", "")) or "nothing was stored" in str(fields.get("error", "")):
            self.tally.counts["store too slow or failing"] += 1

    def _show(self) -> None:
        if not sys.stderr.isatty():
            return
        spent = time.monotonic() - self._begun
        counts, rss = self.tally.counts, self.samples[-1].rss / 1e6 if self.samples else 0
        restarts = len(self.testbed.disturbances.spans)
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
            "max_mb": round(max(s.rss for s in warm) / 1e6, 1),
            "growth": round(late / early - 1, 4),
            "slope_kb_per_minute": round(slope * 60 / 1e3, 1),
            "max_fds": max(s.fds for s in warm),
            "idle_fds": self._idle_fds,
            "quiet_fds": self._quiet.fds,
            "quiet_mb": round(self._quiet.rss / 1e6, 1),
        }

    def check_memory(self) -> None:
        found = self.memory()
        if not found or found["measured_seconds"] < MIN_MEASURED_SECONDS:
            return
        if found["growth"] > MAX_GROWTH and found["warm_seconds"] >= MIN_WARM_SECONDS:
            self.tally.add_violation("memory", f"it grew by {found['growth']:.0%}: {found}")
        if found["quiet_fds"] > found["idle_fds"] + len(self.testbed.upstreams) * self.loops + SPARE_FDS:
            self.tally.add_violation("descriptors", f"some are left open when there are no requests: {found}")

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
            "restarts": summary(self.testbed),
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
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as response:  # noqa: S310 - our own process
        text = response.read().decode()
    found = {name: float(count) for name, count in re.findall(r"^(toolglot_open_[a-z]+) (\S+)$", text, re.MULTILINE)}
    found["toolglot_open_requests"] -= 1  # this request itself
    return ", ".join(f"{name} {count:g}" for name, count in found.items() if count)


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def report_text(report: dict[str, Any], folder: Path) -> str:
    """A report as text."""
    lines = [f"soak of {report['seconds']} s, seed {report['seed']}: {report['requests']} requests"]
    lines.append(f"  {report['conversations']} conversations, {report['pairs']}")
    lines += [f"  {name}: {_listed(report[name])}" for name in ("answers", "upstreams", "restarts")]
    lines += [f"  {name}: {found} ms" for name, found in report["milliseconds"].items()]
    lines.append(f"  memory: {report['memory'] or 'not measured long enough'}")
    lines.append(f"  violations: {len(report['violations'])}")
    kinds = Counter(violation["kind"] for violation in report["violations"])
    lines += [f"    {count} times: {kind}" for kind, count in kinds.most_common()]
    for number, violation in enumerate(report["violations"][:10]):
        lines.append(f"    [{number}] {violation['kind']}: {violation['message']}\n        {violation['where']}")
    if report["violations"]:
        lines.append(f"  evidence: {folder}/violation-N.json")
        lines.append(f"  again: python scripts/soak_gateway.py --seed {report['seed']}")
    return "\n".join(lines)


def part_of(report: dict[str, Any], command: str) -> Part:
    """The row of a report in the table of the whole soak."""
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=None, help="default: a new one, which is printed")
    parser.add_argument("--loops", type=int, default=8, help="clients at the same time")
    parser.add_argument("--workers", type=int, default=1, help="processes of the gateway")
    parser.add_argument("--answers", type=int, default=0, help="go on until at least so many replies were right")
    parser.add_argument("--patience", type=float, default=1.0, help="multiplies every time limit: for a busy machine")
    parser.add_argument("--out", type=Path, default=OUTPUT, help="evidence and report go here; older ones are removed")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(100_000)
    options.out.mkdir(parents=True, exist_ok=True)
    for old in (*options.out.glob("violation-*.json"), *options.out.glob("report.json")):
        old.unlink()
    print(f"==> soaking the gateway for {options.minutes:g} minutes, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="toolglot-soak-") as folder:
        soak = Soak(
            minutes=options.minutes,
            seed=seed,
            loops=options.loops,
            workers=options.workers,
            folder=Path(folder),
            output=options.out,
            answers=options.answers,
            patience=options.patience,
        )
        asyncio.run(soak.run())
        soak.check_memory()
        report = soak.report()
    (options.out / "report.json").write_text(json.dumps(report, indent=1))
    command = f"python scripts/soak_gateway.py --minutes {options.minutes:g} --seed {seed}"
    write_part(part_of(report, command), options.out / "parts" if options.out != OUTPUT else None)
    print(("\n" if sys.stderr.isatty() else "") + report_text(report, options.out), flush=True)
    return 1 if report["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
