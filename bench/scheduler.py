"""What the scheduler costs: microseconds of CPU a call, less a bare `await` of the same tool that does nothing.

Batches of one call and of eight; a tool without a schema, one whose arguments are validated, and one with everything
else that can be set: a resource, a journal, a callback for changes. Exits with 1 when a call costs more than the limit.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import Callable
from typing import Any, Final

from timing import NAME_WIDTH, in_turn, quiet_gc, spent
from toolglot.conversation import ToolCall, ToolResult, ToolSpec
from toolglot.runtime.scheduler.call_states import CallChange
from toolglot.runtime.scheduler.scheduler import Scheduler
from toolglot.runtime.tools.toolbox import Tool, ToolBox, ToolContext

ROUNDS: Final = 15
CALLS: Final = 800
LIMIT: Final = 100.0
"""Microseconds a call."""

ARGUMENTS: Final = {"path": "src/main.py", "line": 12, "flags": ["a", "b"]}
SCHEMA: Final = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "line": {"type": "integer", "minimum": 1},
        "flags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["path", "line"],
    "additionalProperties": False,
}


async def nothing(_: dict[str, Any], __: ToolContext) -> str:
    return "ok"


def resource(arguments: dict[str, Any]) -> list[str]:
    return [arguments["path"]]


class Journal:
    async def record_start(self, call: ToolCall, arguments: dict[str, Any]) -> None: ...

    async def record_result(self, result: ToolResult) -> None: ...


def watch(_: CallChange) -> None: ...


BOX: Final = ToolBox(
    [
        Tool(spec=ToolSpec("plain"), run=nothing),
        Tool(spec=ToolSpec("validated", parameters=SCHEMA), run=nothing),
        Tool(spec=ToolSpec("journaled", parameters=SCHEMA), run=nothing, resources=resource),
    ]
)


def batches(tool: str, size: int) -> list[list[ToolCall]]:
    numbers = range(CALLS // size)
    return [[ToolCall(f"c{first}_{n}", tool, ARGUMENTS) for n in range(size)] for first in numbers]


def run(tool: str, size: int) -> Callable[[], None]:
    """All calls, on a scheduler that does not know them."""
    planned = batches(tool, size)
    runner = asyncio.Runner()

    async def main() -> None:
        has_journal = tool == "journaled"
        scheduler = Scheduler(BOX, journal=Journal() if has_journal else None, watch=watch if has_journal else None)
        for batch in planned:
            results = await scheduler.run(batch)
            assert len(results) == size

    return lambda: runner.run(main())


def bare() -> Callable[[], None]:
    runner = asyncio.Runner()
    context = ToolContext()

    async def main() -> None:
        for _ in range(CALLS):
            await nothing(ARGUMENTS, context)

    return lambda: runner.run(main())


def main() -> int:
    quiet_gc()
    shapes = {
        f"{tool}, a batch of {size}": (tool, size) for tool in ("plain", "validated", "journaled") for size in (1, 8)
    }
    variants = {"a bare await": bare()} | {name: run(*shape) for name, shape in shapes.items()}
    times = in_turn(ROUNDS, {name: lambda work=work: spent(work, 1) for name, work in variants.items()})  # type: ignore[misc]
    floor = times["a bare await"]
    print(f"{'scheduler':<{NAME_WIDTH}}{'µs a call':>10}  {'limit':<9}ok")
    print(f"{'a bare await':<{NAME_WIDTH}}{statistics.median(floor) / CALLS / 1000:>10.2f}")
    kept = True
    for name, (tool, _) in shapes.items():
        cost = statistics.median(one - base for one, base in zip(times[name], floor, strict=True)) / CALLS / 1000
        limit = "" if tool == "journaled" else f"<= {LIMIT:g}"
        verdict = "" if tool == "journaled" else "yes" if cost <= LIMIT else "NO"
        kept &= verdict != "NO"
        print(f"{name:<{NAME_WIDTH}}{cost:>10.1f}  {limit:<9}{verdict}".rstrip())
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
