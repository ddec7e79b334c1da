"""The laws of the scheduler, over random batches: whatever the tools do and whenever a cancel comes.

Time is made of events: a tool goes on when a step of the plan lets it, and a cancel is a step like any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sessions.scheduled_tools import Recorded, Watched, make_tool, other_tasks, ticks
from toolglot.conversation import ToolCall, ToolResult
from toolglot.runtime.scheduler.approvals import Allow, AllowAlways, Decision, Deny, Edit
from toolglot.runtime.scheduler.call_states import FINAL, final_state
from toolglot.runtime.scheduler.scheduler import RunLimits, Scheduler
from toolglot.runtime.tools.toolbox import Tool, ToolBox, ToolContext

Kind = Literal["value", "raise", "exit", "flaky", "ignore", "late value", "invalid", "unknown", "open"]
Act = Literal["release", "cancel", "cancel waiting", "tick"]

KINDS: Sequence[Kind] = ("value", "raise", "exit", "flaky", "ignore", "late value", "invalid", "unknown", "open")
DECISIONS: Sequence[Decision | None] = (None, None, None, Allow(), AllowAlways(), Deny("no"), Edit({"key": 2}))


class Plan(NamedTuple):
    """What one call does."""

    kind: Kind
    resources: frozenset[str]
    decision: Decision | None
    """None: there is no approver."""
    is_idempotent: bool
    has_side_effects: bool


class Step(NamedTuple):
    act: Act
    which: int
    ticks: int


plans = st.builds(
    Plan,
    st.sampled_from(KINDS),
    st.frozensets(st.sampled_from("abc"), max_size=2),
    st.sampled_from(DECISIONS),
    st.booleans(),
    st.booleans(),
)
steps = st.builds(
    Step,
    st.sampled_from(("release", "release", "release", "release", "tick", "cancel", "cancel waiting")),
    st.integers(0, 9),
    st.integers(0, 12),
)


class World:
    """The tools of one example, which check at each start what must hold then."""

    def __init__(self, plan: list[Plan], parallel: int, keeps_journal: bool) -> None:
        self.plan = plan
        self.parallel = parallel
        self.gates = [asyncio.Event() for _ in plan]
        self.active: set[int] = set()
        self.runs: dict[int, int] = {}
        self.asking = 0
        self.faults: list[str] = []
        self.watch = Watched()
        self.journal = Recorded()
        limits = RunLimits(parallel=parallel, grace=0.01, retry_wait=0.0, retries=1)
        self.scheduler = Scheduler(
            ToolBox([self._tool(number) for number, one in enumerate(plan) if one.kind != "unknown"]),
            limits=limits,
            approve=self._approve,
            watch=self.watch,
            journal=self.journal if keeps_journal else None,
        )

    def call(self, number: int) -> ToolCall:
        return ToolCall(f"c{number}", f"t{number}", {"key": "no" if self.plan[number].kind == "invalid" else 1})

    def _tool(self, number: int) -> Tool:
        plan = self.plan[number]
        made_tool = make_tool(
            self._run,
            f"t{number}",
            parameters={"properties": {"key": {"type": "integer"}}},
            resources=lambda _: plan.resources,
            approval=plan.decision is not None,
            idempotent=plan.is_idempotent,
            side_effects=plan.has_side_effects,
        )
        return made_tool if plan.kind != "open" else Tool(spec=made_tool.spec)

    async def _approve(self, call: ToolCall, *_: object) -> Decision:
        self.asking += 1
        self._expect(self.asking == 1, "two questions at once")
        try:
            await ticks(2)
        finally:
            self.asking -= 1
        decision = self.plan[int(call.id[1:])].decision
        assert decision is not None
        return decision

    async def _run(self, arguments: dict[str, Any], context: ToolContext) -> object:
        number = int(context.call_id[1:])
        plan = self.plan[number]
        self.runs[number] = self.runs.get(number, 0) + 1
        left = self.scheduler.abandoned
        self._expect(self.scheduler.running <= self.parallel, "too many run")
        self._expect(len(self.active) < self.parallel + left, "too many are active")
        self._expect(not any(self.plan[other].resources & plan.resources for other in self.active), "resource shared")
        self._expect(self.runs[number] == 1 or plan.is_idempotent, "run twice")
        self._expect(arguments == {"key": 2 if isinstance(plan.decision, Edit) else 1}, "other arguments")
        if self.scheduler.journal is not None and plan.has_side_effects:
            self._expect(("started", context.call_id) in self.journal.log, "not on record")
        self.active.add(number)
        try:
            return await self._work(number, plan)
        finally:
            self.active.discard(number)

    async def _work(self, number: int, plan: Plan) -> object:
        try:
            await self.gates[number].wait()
        except asyncio.CancelledError:
            if plan.kind == "late value":
                return "partial"
            if plan.kind != "ignore":
                raise
            await self.gates[number].wait()
        if plan.kind == "raise" or (plan.kind == "flaky" and self.runs[number] == 1):
            raise ValueError(number)
        if plan.kind == "exit":
            raise SystemExit(number)
        return f"value {number}"

    def _expect(self, holds: bool, fault: str) -> None:
        if not holds:
            self.faults.append(fault)


async def play(world: World, sizes: list[int], script: list[Step]) -> list[ToolResult]:
    """Run the calls in batches while the steps happen; in the end everybody may go on."""
    scheduler = world.scheduler
    numbers = iter(range(len(world.plan)))
    batches = [[world.call(number) for number in islice(numbers, size)] for size in (*sizes, None)]
    waiting = [asyncio.create_task(scheduler.run(batch)) for batch in batches]
    await ticks(1)
    for step in script:
        if step.act == "release":
            world.gates[step.which % len(world.gates)].set()
        elif step.act == "cancel":
            scheduler.cancel("Stopped.")
        elif step.act == "cancel waiting":
            waiting[step.which % len(waiting)].cancel()
        await ticks(step.ticks)
    for gate, plan in zip(world.gates, world.plan, strict=True):
        if plan.kind != "ignore":
            gate.set()
    if any(plan.kind == "ignore" for plan in world.plan):
        scheduler.cancel("In the end.")
    await asyncio.wait(waiting)
    await scheduler.close()
    found: list[ToolResult] = []
    for batch, task in zip(batches, waiting, strict=True):
        if task.cancelled():
            results = [known for call in batch if (known := scheduler.known_result(call.id)) is not None]
        else:
            results = list(task.result())
        mine = [call.id for call in batch if world.plan[int(call.id[1:])].kind != "open"]
        assert [result.call_id for result in results] == mine, "one result for each call, in call order"
        found += results
    return found


@pytest.mark.law
@given(
    st.lists(plans, min_size=1, max_size=8),
    st.integers(1, 4),
    st.booleans(),
    st.lists(st.integers(0, 5), max_size=2),
    st.lists(steps, max_size=12),
)
def test_every_call_comes_to_one_end_in_order_within_the_limits(
    plan: list[Plan], parallel: int, keeps_journal: bool, sizes: list[int], script: list[Step]
) -> None:
    async def main() -> None:
        world = World(plan, parallel, keeps_journal)
        results = await play(world, sizes, script)
        scheduler = world.scheduler
        assert world.faults == []
        assert len(other_tasks()) <= scheduler.abandoned, "a task is left that was not abandoned"
        assert scheduler.running == 0
        for gate in world.gates:
            gate.set()
        await ticks()
        assert not other_tasks()
        assert len({result.call_id for result in results}) == len(results)
        for result in results:
            check_story(world, result)

    asyncio.run(main())


def check_story(world: World, result: ToolResult) -> None:
    """The changes of one call are consistent, and its result says what happened."""
    number = int(result.call_id[1:])
    states = world.watch.states(result.call_id)
    assert [state in FINAL for state in states] == [False] * (len(states) - 1) + [True]
    assert states[-1] == final_state(result)
    assert ("executing" in states) == (number in world.runs) or "may have run" in result.text
    if number not in world.runs:
        assert result.executed_arguments is None
        assert "was not run" in result.text or "nothing was" in result.text or "stopped while it ran" in result.text
    elif isinstance(world.plan[number].decision, Edit):
        assert result.executed_arguments == {"key": 2}
    if "never started" in result.text:
        assert number not in world.runs
    if world.scheduler.journal is not None:
        assert world.journal.results[result.call_id] == result
