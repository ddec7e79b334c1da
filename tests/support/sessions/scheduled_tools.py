"""Tools, calls and listeners for the tests of the scheduler. Tools wait for events, never for time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from toolglot.conversation import ToolCall, ToolResult, ToolSpec
from toolglot.runtime.scheduler.approvals import Approve
from toolglot.runtime.scheduler.call_states import CallChange, State
from toolglot.runtime.scheduler.scheduler import Journal, RunLimits, Scheduler
from toolglot.runtime.tools.toolbox import Tool, ToolBox, ToolContext

GRACE = 0.5
LIMITS = RunLimits(grace=GRACE, retry_wait=0.0)


def make_tool(
    run: Callable[[dict[str, Any], ToolContext], Awaitable[object]], name: str = "tool", **options: Any
) -> Tool:
    spec = ToolSpec(name, parameters=options.pop("parameters", None), type=options.pop("type", "function"))
    return Tool(spec=spec, run=run, **options)


def on_the_file(_: dict[str, Any]) -> list[str]:
    """The resource of tools that all use the same."""
    return ["file"]


def tool_returning(value: object, name: str = "tool", **options: Any) -> Tool:
    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        return value

    return make_tool(run, name, **options)


def tool_raising(error: BaseException, name: str = "tool", **options: Any) -> Tool:
    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        raise error

    return make_tool(run, name, **options)


def call(id: str = "c1", name: str = "tool", /, **arguments: Any) -> ToolCall:
    return ToolCall(id, name, arguments)


def calls(count: int, name: str = "tool") -> list[ToolCall]:
    return [call(f"c{number}", name) for number in range(count)]


class Watched:
    """A watcher: every change, in order."""

    def __init__(self) -> None:
        self.changes: list[CallChange] = []

    def __call__(self, change: CallChange) -> None:
        self.changes.append(change)

    def states(self, id: str = "c1") -> list[State]:
        return [change.state for change in self.changes if change.call.id == id and not change.progress]


class Recorded:
    """A journal that keeps its entries, and can be made to fail or to wait."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []
        self.arguments: dict[str, dict[str, Any]] = {}
        self.results: dict[str, ToolResult] = {}
        self.at_start: Callable[[], Awaitable[object]] | None = None
        self.at_end: Callable[[], Awaitable[object]] | None = None

    async def record_start(self, call: ToolCall, arguments: dict[str, Any]) -> None:
        if self.at_start is not None:
            await self.at_start()
        self.log.append(("started", call.id))
        self.arguments[call.id] = arguments

    async def record_result(self, result: ToolResult) -> None:
        if self.at_end is not None:
            await self.at_end()
        self.log.append(("finished", result.call_id))
        self.results[result.call_id] = result


class Gated:
    """A tool that tells when it runs and goes on when it is let."""

    def __init__(self, name: str = "tool", *, value: object = "done", ignores_cancel: bool = False, **options: Any):
        self.started = asyncio.Event()
        self.gate = asyncio.Event()
        self.runs = 0
        self.active = 0
        self.max_active = 0
        self.order: list[str] = []
        self.contexts: list[ToolContext] = []
        self._value = value
        self._ignores = ignores_cancel
        self.tool = make_tool(self._run, name, **options)

    async def _run(self, _: dict[str, Any], context: ToolContext) -> object:
        self.runs += 1
        self.active += 1
        self.max_active = max(self.max_active, self.active)
        self.order.append(context.call_id)
        self.contexts.append(context)
        self.started.set()
        try:
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                if not self._ignores:
                    raise
                await self.gate.wait()  # only one is ignored, so that a test that fails can end
            return self._value
        finally:
            self.active -= 1


def scheduler(
    *tools: Tool,
    limits: RunLimits = LIMITS,
    approve: Approve | None = None,
    watch: Watched | None = None,
    journal: Journal | None = None,
) -> Scheduler:
    return Scheduler(ToolBox(tools), limits=limits, approve=approve, watch=watch, journal=journal, session_id="s1")


def outcome(*tools: Tool, of: ToolCall | None = None, **options: Any) -> ToolResult:
    """The result of one call."""
    return asyncio.run(scheduler(*tools, **options).run([of or call()]))[0]


async def ticks(count: int = 20) -> None:
    """Let everything that can go on do so."""
    for _ in range(count):
        await asyncio.sleep(0)


def other_tasks() -> set[asyncio.Task[Any]]:
    """The tasks that are there besides this one."""
    current = asyncio.current_task()
    return {task for task in asyncio.all_tasks() if task is not current}


def reasons(of: Scheduler) -> list[str]:
    return [entry.reason for entry in of.entries]


def was_reported(of: Scheduler, words: Iterable[str]) -> bool:
    return any(all(word in reason for word in words) for reason in reasons(of))
