"""A thousand sessions in one process against the simulator, five tool turns each: the memory that each needs beyond its
history, that none sees data of another, and how long all of them take.

Memory is what Python allocated (tracemalloc), measured at two moments: when every session waits in its last tool, and
when all are open and idle. What is left when they are closed and only their histories are kept is taken off. Exits
with 1 when the limit is broken.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

# Where sessions against the simulator are set up.
sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support.sessions.simulated_sessions import ALL_TARGETS, SimulatedProviders
from toolglot import History
from toolglot.runtime.scheduler.scheduler import RunLimits
from toolglot.runtime.session.session import Session
from toolglot.runtime.tools.toolbox import ToolContext, tool

SESSIONS: Final = 1_000
TURNS: Final = 5
LIMIT: Final = 60_000
"""Bytes of a session beyond its history."""

SCRIPT: Final[dict[str, Any]] = {
    "rules": [
        {"when": {"results": n}, "reply": {"text": "I look.", "calls": [{"name": "look_up", "arguments": {"n": n}}]}}
        for n in range(TURNS)
    ]
}


class Measured(Struct):
    """Bytes that are allocated."""

    running: int = 0
    idle: int = 0
    kept: int = 0
    seconds: float = 0.0


def allocated() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


class Crowd:
    """Sessions that wait for each other where they are measured."""

    def __init__(self, count: int) -> None:
        self.providers = SimulatedProviders(SCRIPT)
        self.count = count
        self.waiting = 0
        self.all_wait = asyncio.Event()
        self.go_on = asyncio.Event()
        self.done = 0
        self.all_done = asyncio.Event()
        self.end = asyncio.Event()

    async def look_up(self, n: int, context: ToolContext) -> str:
        """Look something up.

        Args:
            n: Which one.
        """
        if n == TURNS - 1:
            self.waiting += 1
            if self.waiting == self.count:
                self.all_wait.set()
            await self.go_on.wait()
        return f"{context.session_id} found {n}"

    async def one(self, number: int) -> History:
        target, limits = ALL_TARGETS[number % len(ALL_TARGETS)], RunLimits(timeout=3_600)
        async with self.providers.session(target, tools=[tool(self.look_up)], run_limits=limits) as session:
            result = await session.run(f"I am number {number}.")
            _refuse_crosstalk(session, number, result.stop)
            self.done += 1
            if self.done == self.count:
                self.all_done.set()
            await self.end.wait()
        return session.history


def _refuse_crosstalk(session: Session, number: int, stop: str) -> None:
    results = [result.text for turn in session.history.turns for result in turn.results]
    expected = [f"{session.id} found {n}" for n in range(TURNS)]
    if stop != "stop" or results != expected or session.history.turns[0].text != f"I am number {number}.":
        raise SystemExit(f"session {number} ended as {stop} with {results}")


async def measure(count: int) -> Measured:
    found = Measured()
    before = allocated()
    crowd = Crowd(count)
    start = time.perf_counter()
    tasks = [asyncio.ensure_future(crowd.one(number)) for number in range(count)]
    await asyncio.wait([asyncio.ensure_future(crowd.all_wait.wait()), *tasks], return_when=asyncio.FIRST_COMPLETED)
    crowd.providers.simulator.reset()  # what it remembers of requests is not the sessions'
    found.running = allocated() - before
    crowd.go_on.set()
    await asyncio.wait([asyncio.ensure_future(crowd.all_done.wait()), *tasks], return_when=asyncio.FIRST_COMPLETED)
    found.seconds = time.perf_counter() - start
    refused = crowd.providers.refused
    crowd.providers.simulator.reset()
    found.idle = allocated() - before
    crowd.end.set()
    histories = await asyncio.gather(*tasks)
    tasks.clear()
    await crowd.providers.transport.close()
    del crowd
    found.kept = allocated() - before
    if refused:
        raise SystemExit(f"the simulator refused: {refused[:3]}")
    if len(histories) != count:
        raise SystemExit("a session got lost")
    return found


def main() -> int:
    asyncio.run(measure(20))  # what is imported and cached once
    tracemalloc.start()
    asyncio.run(measure(20))
    found = asyncio.run(measure(SESSIONS))
    running, idle = ((size - found.kept) / SESSIONS for size in (found.running, found.idle))
    print(f"{SESSIONS} sessions, {TURNS} tool turns each, against the simulator")
    print(f"  history of a session         {found.kept / SESSIONS / 1000:8.1f} kB")
    print(f"  beyond it, in a tool         {running / 1000:8.1f} kB")
    print(f"  beyond it, open and idle     {idle / 1000:8.1f} kB   at most {LIMIT / 1000:.0f}")
    print(f"  all of them (traced)         {found.seconds:8.1f} s")
    print(
        f"  the process at its largest   {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000:8.1f} MB (traced)"
    )
    is_kept = max(running, idle) <= LIMIT
    print("kept" if is_kept else "BROKEN: a session takes too much memory")
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
