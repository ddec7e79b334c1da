"""Sessions inside sessions, and sessions when something around them fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import anyio
import pytest

from support.sessions.session_scripts import CLAUDE, FINE, OPENAI, calling, look_up
from support.sessions.simulated_sessions import (
    PATIENT,
    QUICK,
    TARGETS,
    SimulatedProviders,
    collect_events,
    run_with_providers,
    simulated_providers,
)
from toolglot import InputError, ToolResult, Turn
from toolglot.conversation import Usage
from toolglot.history.attempts import Attempt
from toolglot.runtime.log.memory_log import MemoryLog
from toolglot.runtime.log.session_log import SessionLog
from toolglot.runtime.session.events import (
    RunResult,
)
from toolglot.runtime.session.limits import SessionLimits
from toolglot.runtime.session.session import Session
from toolglot.runtime.tools.toolbox import ToolContext, tool
from toolglot.store import SqliteStore

# --- sessions inside sessions ---------------------------------------------------------------------


async def test_a_tool_cannot_run_the_session_that_runs_it() -> None:
    async with simulated_providers() as providers:

        async def again(n: int, context: ToolContext) -> str:
            assert isinstance(context.session, Session)
            return (await context.session.run(f"Again {n}.")).text

        async with providers.session(tools=[tool(again, description="Again.")]) as session:
            await session.run("Go.")
            (found,) = session.history.ledger
            assert found.status == "error"
            assert found.result is not None
            assert "cannot run the session that runs it" in found.result.text


async def test_a_tool_may_cancel_its_session() -> None:
    async with simulated_providers() as providers:

        async def enough(n: int, context: ToolContext) -> str:
            assert isinstance(context.session, Session)
            await context.session.cancel(f"Enough of {n}.")
            await anyio.sleep_forever()
            return "never"

        async with providers.session(tools=[tool(enough, description="Enough.")]) as session:
            answer = await session.run("Go.")
            assert answer.stop == "cancelled"
            (found,) = session.history.ledger
            assert found.status == "cancelled"
        assert providers.refused == []


async def test_subagents_are_spawned_only_so_deep() -> None:
    async with simulated_providers() as providers, providers.session(limits=SessionLimits(max_depth=2)) as session:
        child = session.spawn().spawn()
        with pytest.raises(InputError, match="at most 2 deep"):
            child.spawn()


async def test_a_subagent_has_what_its_parent_has_by_default() -> None:
    async with (
        simulated_providers(FINE) as providers,
        providers.session(CLAUDE, tools=[look_up], system="Be brief.") as session,
    ):
        child = session.spawn(model=OPENAI, tools=[], system=None)
        assert (child.model, len(child.tools)) == (OPENAI, 0)
        async with child as entered:
            assert (await entered.run("Hello")).text == "Fine."
        assert [turn.role for turn in child.history.turns] == ["user", "assistant"]
        assert child.is_closed
        assert not session.is_closed
        same = session.spawn(model=None)
        assert (same.model, len(same.tools), same.limits) == (CLAUDE, 1, session.limits)
        await same.run("Hello")
        assert same.history.turns[0].text == "Be brief."
        assert len(session.history) == 0
        assert same.id != session.id
        assert repr(same) == f"<Session {same.id}: {CLAUDE}, 3 turns>"


@pytest.mark.parametrize("end", ["cancel", "close"])
async def test_what_stops_a_session_stops_what_it_spawned(end: str) -> None:
    async with simulated_providers() as providers:
        is_running = anyio.Event()

        async def hang(n: int) -> str:
            is_running.set()
            await anyio.sleep_forever()
            return str(n)

        async with providers.session(tools=[tool(hang, description="Hang.")]) as session:
            child = session.spawn().spawn()
            running = asyncio.ensure_future(child.run("Go."))
            await is_running.wait()
            await (session.cancel() if end == "cancel" else session.close())
            assert not child.is_running
            assert (await running).stop == "cancelled"
            assert child.history.ledger.pending == ()
            if end == "close":
                with pytest.raises(InputError, match="is closed"):
                    await child.run("More.")


async def test_a_fork_goes_its_own_way() -> None:
    async with simulated_providers() as providers:
        async with providers.session(CLAUDE, tools=[look_up]) as session:
            await session.run("Look.")
            before = session.history.turns
            fork = session.fork(model=OPENAI)
            assert (await fork.run("And now?")).model == OPENAI
            assert session.history.turns == before
            assert fork.history.turns[: len(before)] == before
            assert session.usage != fork.usage
            logged = session.fork(log=MemoryLog())
            assert len(logged.history) == 0
        assert providers.refused == []


async def test_a_fork_of_a_session_that_runs_has_no_open_calls() -> None:
    async with simulated_providers() as providers:

        async def split(n: int, context: ToolContext) -> str:
            assert isinstance(context.session, Session)
            fork = context.session.fork(tools=[look_up])
            assert fork.history.ledger.pending == ()
            return (await fork.run(f"And {n}?")).text

        rules = [calling(1, name="split", turn=1, results=0), {"reply": {"text": "Fine."}}]
        providers.simulator.use({"rules": rules})
        async with providers.session(CLAUDE, tools=[tool(split, description="Split.")]) as session:
            await session.run("Go.")
            (found,) = session.history.ledger
            assert found.result is not None
            assert found.result.text == "Fine."
        assert providers.refused == []


async def test_undo_takes_back_the_last_message_of_the_user_and_everything_after_it() -> None:
    async with simulated_providers() as providers:
        async with providers.session(CLAUDE, tools=[look_up], system="Be brief.") as session:
            await session.run("First.")
            kept = session.history.turns
            await session.run("Second.")
            taken = await session.undo()
            assert taken is not None
            assert taken.text == "Second."
            assert session.history.turns == kept
            assert (await session.run("Third.")).stop == "stop"
            await session.undo()
            await session.undo()
            assert [turn.role for turn in session.history.turns] == ["system"]
            assert await session.undo() is None
        assert providers.refused == []


async def test_a_summary_is_not_undone() -> None:
    async with simulated_providers(FINE) as providers:
        limits = SessionLimits(keep_turns=1)
        async with providers.session(CLAUDE, summarise=lambda turns: f"{len(turns)} turns", limits=limits) as session:
            for _ in range(3):
                await session.run("Hello")
            assert await session.compress() == 5
            assert await session.undo() is None
            assert len(session.history) == 2


# --- what goes wrong around it --------------------------------------------------------------------


class BrokenLog(MemoryLog):
    """A log that cannot write some things."""

    def __init__(self, *broken: str) -> None:
        super().__init__()
        self.broken = set(broken)

    async def commit(self, attempt: Attempt, *, usage: Usage | None = None, cost: Decimal | None = None) -> Turn:
        if "commit" in self.broken:
            raise OSError("the disk is full")
        return await super().commit(attempt, usage=usage, cost=cost)

    async def end_turn(self, reason: str = "", known: Sequence[ToolResult] = ()) -> None:
        if "land" in self.broken:
            raise OSError("the disk is gone")
        await super().end_turn(reason, known)


@pytest.mark.parametrize(
    ("broken", "problem"), [(("commit",), "full"), (("commit", "land"), "full"), (("land",), "gone")]
)
async def test_a_write_that_fails_is_reported_and_the_session_is_not_stuck(
    broken: tuple[str, ...], problem: str
) -> None:
    async with simulated_providers(FINE) as providers:
        log = BrokenLog(*broken)
        async with providers.session(CLAUDE, log=log) as session:
            with pytest.raises(OSError, match=problem):
                await session.run("Hello")
            assert not session.is_running
            log.broken.clear()
            await session.cancel()
            log.broken.update(broken)
            with pytest.raises(OSError, match=problem):
                await collect_events(session, "Hello")
            log.broken.clear()
            await session.cancel()
            assert (await session.run("Hello")).text == "Fine."
        assert providers.refused == []


async def test_a_session_in_a_store_goes_on_in_another_process(tmp_path: Any) -> None:
    async with simulated_providers() as providers:
        store = SqliteStore(tmp_path / "sessions.db")
        try:
            log = await SessionLog.create(store, model=CLAUDE)
            async with providers.session(CLAUDE, tools=[look_up], log=log) as session:
                await session.run("Look.")
                session.switch(OPENAI)
                await session.run("Thanks.")
                turns, id, spent = session.history.turns, session.id, (session.usage, session.cost)
            again = await SessionLog.open(store, id)
            assert again.model == OPENAI
            async with providers.session(again.model, tools=[look_up], log=again) as session:
                assert session.history.turns == turns
                assert (session.usage, session.cost) == spent, "what was spent is not forgotten"
                assert (await session.run("And now?")).stop == "stop"
        finally:
            await store.close()
        assert providers.refused == []


async def test_an_outer_scope_that_is_cancelled_leaves_everything_in_order() -> None:
    async with simulated_providers() as providers:
        for rounds in range(0, 150, 3):
            session = providers.session(CLAUDE, tools=[look_up])
            with anyio.CancelScope() as scope:

                async def end(scope: anyio.CancelScope = scope, rounds: int = rounds) -> None:
                    for _ in range(rounds):
                        await asyncio.sleep(0)
                    scope.cancel()

                ending = asyncio.ensure_future(end())
                async with session:
                    answer = await session.run("Look.")
                    assert isinstance(answer, RunResult)
            await ending
            assert session.is_closed
            assert session.history.in_flight is None
            assert session.history.ledger.pending == ()
            async with providers.session(OPENAI, tools=[look_up], history=session.history) as again:
                assert (await again.run("And now?")).stop == "stop"
        assert providers.refused == []


def test_many_sessions_at_once_do_not_hear_of_each_other() -> None:
    async def scene(providers: SimulatedProviders) -> None:
        async def remember(n: int, context: ToolContext) -> str:
            return f"{context.session_id} has {n}"

        async def one(number: int) -> None:
            target = TARGETS[number % len(TARGETS)]
            async with providers.session(target, tools=[tool(remember, description="Remember.")]) as session:
                answer = await session.run(f"I am number {number}.")
                assert answer.stop == "stop", (target, answer.failure)
                texts = [result.text for turn in session.history.turns for result in turn.results]
                assert len(texts) == 5
                assert all(text.startswith(f"{session.id} has") for text in texts)
                assert session.history.turns[0].text == f"I am number {number}."
                others = [turn for turn in session.history.turns if "number" in turn.text][1:]
                assert all(f"number {number}." in turn.text for turn in others)

        await asyncio.gather(*(one(number) for number in range(50)))
        assert providers.refused == []

    rules = [calling(n, name="remember", results=n) for n in range(5)]
    run_with_providers(scene, {"rules": rules})


def test_settings_of_the_stage_are_those_that_are_meant() -> None:
    """The suites rely on them: nothing in them waits long."""
    assert QUICK.grace <= 1
    assert PATIENT.retry_seconds <= 5
