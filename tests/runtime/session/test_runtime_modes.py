"""One way to run tools, in every mode: the same suite over each of them (`session_modes.MODES`).

Seed 004, section 9: a scheduler for the session, a whole turn as one batch, only results go back, one write boundary,
and cancellation through the scheduler.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, TypeVar

import anyio
import pytest

from support.sessions.run_modes import Mode, every_mode
from support.sessions.simulated_sessions import (
    MODELS,
    RESPONSES,
    SimulatedProviders,
    run_with_providers,
    simulated_providers,
)
from toolglot import History, ToolCall, ToolResult, Turn, Usage
from toolglot.conversation.ids import is_canonical
from toolglot.history.attempts import Attempt
from toolglot.runtime.log.memory_log import MemoryLog
from toolglot.runtime.scheduler.approvals import Allow, Edit
from toolglot.runtime.session.session import Session
from toolglot.runtime.tools.toolbox import Tool, tool

T = TypeVar("T")

TWO_CALLS = {
    "rules": [
        {
            "when": {"results": 0},
            "reply": {
                "text": "I look.",
                "calls": [
                    {"name": "first", "arguments": {"n": 1}},
                    {"name": "second", "arguments": {"n": 2}},
                ],
            },
        }
    ]
}
MISTRAL = f"mistral/{MODELS['mistral']}"
some_targets = pytest.mark.parametrize("target", ["anthropic/claude-opus-5", "openai/gpt-4.1", RESPONSES, MISTRAL])


class Watched:
    """A write boundary that says what was written through it."""

    def __init__(self) -> None:
        self._log = MemoryLog()
        self.writes: list[str] = []

    @property
    def id(self) -> str:
        return self._log.id

    @property
    def history(self) -> History:
        return self._log.history

    async def add_turn(self, turn: Turn) -> Turn:
        self.writes.append(f"say {turn.role}")
        return await self._log.add_turn(turn)

    async def commit(self, attempt: Attempt, *, usage: Usage | None = None, cost: Decimal | None = None) -> Turn:
        self.writes.append("commit")
        return await self._log.commit(attempt, usage=usage, cost=cost)

    async def publish(self, results: Sequence[ToolResult]) -> Turn | None:
        self.writes.append(f"publish {len(results)}")
        return await self._log.publish(results)

    async def end_turn(self, reason: str = "", known: Sequence[ToolResult] = ()) -> None:
        self.writes.append("land")
        await self._log.end_turn(reason, known)

    async def change(
        self, change: Callable[[History], T], *, usage: Usage | None = None, cost: Decimal | None = None
    ) -> T:
        self.writes.append("change")
        return await self._log.change(change, usage=usage, cost=cost)

    async def record_model(self, model: str) -> None:
        self.writes.append(f"switched {model}")

    async def record_start(self, call: ToolCall, arguments: dict[str, Any]) -> None:
        self.writes.append(f"started {call.name} {arguments}")

    async def record_result(self, result: ToolResult) -> None:
        self.writes.append(f"finished {result.name}")

    async def close(self) -> None:
        self.writes.append("close")


def pair(*, meet: bool = False, seen: list[str] | None = None) -> list[Tool]:
    """Two tools; they wait for each other if they are to meet."""
    arrived = {"first": anyio.Event(), "second": anyio.Event()}

    async def run(name: str, other: str, n: int) -> str:
        if seen is not None:
            seen.append(name)
        arrived[name].set()
        if meet:
            await arrived[other].wait()
        return f"{name} {n}"

    async def first(n: int) -> str:
        return await run("first", "second", n)

    async def second(n: int) -> str:
        return await run("second", "first", n)

    return [tool(first, description="The first."), tool(second, description="The second.")]


async def run_in(mode: Mode, session: Session, prompt: str = "Go.") -> tuple[Session, Any]:
    runs = mode.of(session, None)
    return runs, await mode.run(runs, prompt)


@every_mode
@some_targets
async def test_acceptance_6_calls_of_a_turn_run_side_by_side_and_their_results_go_back_in_order(
    mode: Mode, target: str
) -> None:
    async with simulated_providers(TWO_CALLS) as providers:
        async with providers.session(target, tools=pair(meet=True)) as session:
            runs, answer = await run_in(mode, session)
            assert answer.stop == "stop"
            assert [result.text for turn in runs.history.turns for result in turn.results] == ["first 1", "second 2"]
            assert "first 1" in answer.text
            assert "second 2" in answer.text
        assert providers.refused == []


@every_mode
async def test_R_004_18_one_scheduler_lives_as_long_as_its_session(mode: Mode) -> None:
    async with simulated_providers(TWO_CALLS) as providers, providers.session(tools=pair()) as session:
        runs = mode.of(session, None)
        scheduler = runs.scheduler
        await mode.run(runs, "Go.")
        await mode.run(runs, "Again.")
        assert runs.scheduler is scheduler
        assert len(runs.history.ledger) == 4
        for interaction in runs.history.ledger:
            assert scheduler.known_result(interaction.id) is not None, "the same one ran all calls"
        assert (runs is session) == (scheduler is session.scheduler), "a subagent has one of its own"


@every_mode
async def test_R_001_6_the_scheduler_sees_canonical_ids_only(mode: Mode) -> None:
    seen: list[str] = []

    async def approve(call: ToolCall, _: Tool, __: dict[str, Any]) -> Allow:
        seen.append(call.id)
        return Allow()

    async with simulated_providers(TWO_CALLS) as providers:
        tools = [Tool(spec=each.spec, run=each.run, approval=True) for each in pair()]
        async with providers.session(tools=tools, approve=approve) as session:
            runs, _ = await run_in(mode, session)
            assert len(seen) == 2
            assert all(is_canonical(id) for id in seen)
            assert [found.id for found in runs.history.ledger] == seen


@every_mode
@some_targets
async def test_R_004_18_only_results_go_back(mode: Mode, target: str) -> None:
    """What a tool shows while it runs, and what it returns beside its content, is for others."""
    async with simulated_providers(TWO_CALLS) as providers, providers.session(target, tools=pair()) as session:
        runs, _ = await run_in(mode, session)
        back = [turn for turn in runs.history.turns if turn.role == "tool"]
        assert len(back) == 1
        assert all(isinstance(block, ToolResult) for block in back[0].blocks)
        assert [len(turn.calls) for turn in runs.history.turns if turn.role == "assistant"] == [2, 0]
        ids = re.findall(
            r"'(?:call_id|tool_call_id|tool_use_id)': '([^']+)'", str(providers.simulator.requests[-1].body)
        )
        results = ids[-2:]
        assert len(set(results)) == 2, "a result for each call"


@every_mode
async def test_R_004_18_every_write_goes_through_one_boundary(mode: Mode) -> None:
    async with simulated_providers(TWO_CALLS) as providers:
        log = Watched()
        async with providers.session(tools=pair(), log=log) as session:
            runs = mode.of(session, log)
            await mode.run(runs, "Go.")
            assert runs.history is log.history
        assert log.writes[0] == "say user"
        assert log.writes[1] == "commit"
        assert [write for write in log.writes if write.startswith("publish")] == ["publish 2"]
        assert sorted(
            write.partition(" {")[0] for write in log.writes if write.startswith(("started", "finished"))
        ) == [
            "finished first",
            "finished second",
            "started first",
            "started second",
        ]
        assert log.writes.index("publish 2") > max(
            index for index, write in enumerate(log.writes) if "finished" in write
        )
        after = log.writes[log.writes.index("publish 2") :]
        # What a subagent took goes into its parent's log as well: here that is the same one.
        assert after.count("change") == (runs is not session)
        assert [write for write in after if write not in ("close", "change")] == [
            "publish 2",
            "land",
            "commit",
            "land",
        ]


@every_mode
def test_R_004_18_cancellation_goes_through_the_scheduler(mode: Mode) -> None:
    """No result of a cancelled call is written by anything else."""

    async def scene(providers: SimulatedProviders) -> None:
        started = anyio.Event()

        async def first(n: int) -> str:
            started.set()
            await anyio.sleep_forever()
            return str(n)

        async def second(n: int) -> str:
            return f"done {n}"

        log = Watched()
        async with providers.session(tools=[first, second], log=log) as session:
            runs = mode.of(session, log)
            running = asyncio.ensure_future(mode.run(runs, "Go."))
            await started.wait()
            await session.cancel("Enough.")
            answer = await running
            assert answer.stop == "cancelled"
            by_call = {found.name: found for found in runs.history.ledger}
            assert by_call["first"].status == "cancelled"
            assert runs.scheduler.known_result(by_call["first"].id) is not None
            assert "Enough." in (by_call["first"].result or ToolResult("")).text
            assert [write for write in log.writes if write.startswith("publish")] == ["publish 2"]
            assert runs.history.ledger.pending == ()
            assert runs.history.in_flight is None
            again = await mode.run(runs, "And now?")
            assert again.stop in ("stop", "cancelled")
        assert providers.refused == []

    script = {"rules": [{**TWO_CALLS["rules"][0], "when": {"turn": 1, "results": 0}}, {"reply": {"text": "Fine."}}]}
    run_with_providers(scene, script)


@every_mode
async def test_law_11_the_call_stays_as_written_and_what_was_executed_is_recorded(mode: Mode) -> None:
    async def approve(call: ToolCall, _: Tool, arguments: dict[str, Any]) -> Allow | Edit:
        return Edit({"n": 7}) if call.name == "first" else Allow()

    async with simulated_providers(TWO_CALLS) as providers:
        tools = [Tool(spec=each.spec, run=each.run, approval=True) for each in pair()]
        async with providers.session(tools=tools, approve=approve) as session:
            runs, _ = await run_in(mode, session)
            first, second = runs.history.ledger
            assert first.call.arguments == {"n": 1}, "as the model wrote it"
            assert first.executed_arguments == {"n": 7}
            assert first.result is not None
            assert "first 7" in first.result.text
            assert "7" in first.result.text.replace("first 7", "", 1), "the model learns what was executed"
            assert second.executed_arguments == {"n": 2}
            assert second.result is not None
            assert second.result.text == "second 2"


@every_mode
async def test_law_11_a_truncated_call_is_never_executed(mode: Mode) -> None:
    async with simulated_providers(TWO_CALLS) as providers:
        seen: list[str] = []
        providers.simulator.fault("truncated_call")
        async with providers.session(tools=pair(seen=seen)) as session:
            runs, answer = await run_in(mode, session)
            assert seen == ["first"], "the call that was whole, and only it"
            cut = [found for found in runs.history.ledger if found.name == "second"]
            assert cut
            assert cut[0].status == "cancelled"
            assert "cut off" in (cut[0].result or ToolResult("")).text
            assert answer.stop == "stop"
        assert providers.refused == []
