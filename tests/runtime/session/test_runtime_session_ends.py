"""Sessions that are cancelled while they end, tasks that outlive their tool, providers that lie or flood."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import pytest

from support.sessions.faulty_sessions import OPENAI, PAYING, assert_in_order
from support.sessions.simulated_sessions import QUICK, simulated_providers
from toolglot import InputError, Turn
from toolglot.conversation import Usage
from toolglot.history.attempts import Attempt
from toolglot.history.history import History as Kept
from toolglot.runtime.log.memory_log import MemoryLog
from toolglot.runtime.log.session_log import SessionLog
from toolglot.runtime.session.limits import SessionLimits
from toolglot.runtime.session.models import UpstreamModels
from toolglot.runtime.session.session import Session
from toolglot.runtime.tools.toolbox import ToolContext, tool
from toolglot.store import SqliteStore, StoreError
from toolglot.upstream import PROVIDERS, AsgiTransport, Upstream

T = TypeVar("T")


# --- cancelled while it ends ----------------------------------------------------------------------


@pytest.mark.parametrize("cancels", [1, 2, 3, 4, 8])
async def test_a_session_is_closed_however_often_its_task_is_cancelled(cancels: int, tmp_path: Path) -> None:
    async with simulated_providers(PAYING) as providers:
        begun, reported = asyncio.Event(), asyncio.Event()

        @tool
        async def pay(to: str) -> str:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                await reported.wait()
            return "never"

        store = SqliteStore(tmp_path / "s.db")
        log = await SessionLog.create(store)
        made: list[Session] = []

        async def request() -> None:
            async with providers.session(OPENAI, tools=[pay], log=log) as session:
                made.append(session)
                await session.run("x")

        task = asyncio.create_task(request())
        await begun.wait()
        for _ in range(cancels):
            task.cancel()
            for _ in range(10):
                await asyncio.sleep(0)
        reported.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        await made[0].close()
        assert made[0].is_closed
        log = await SessionLog.open(store, log.id)
        assert_in_order(log.history)
        await log.close()
        await store.close()


async def test_a_waiter_for_a_run_that_is_cancelled_twice_still_waits_until_all_is_in_order() -> None:
    async with simulated_providers(PAYING) as providers:
        begun, reported = asyncio.Event(), asyncio.Event()

        @tool
        async def pay(to: str) -> str:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                await reported.wait()
            return "never"

        async with providers.session(OPENAI, tools=[pay]) as session:
            task = asyncio.create_task(session.run("x"))
            await begun.wait()
            for _ in range(3):
                task.cancel()
                for _ in range(10):
                    await asyncio.sleep(0)
                assert not task.done()
            reported.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not session.is_running
            assert_in_order(session.history)


async def test_a_tool_may_close_the_session_that_runs_it() -> None:
    async with simulated_providers(PAYING) as providers:

        @tool
        async def pay(to: str, context: ToolContext) -> str:
            assert isinstance(context.session, Session)
            await context.session.close()
            return "closed"

        async with providers.session(OPENAI, tools=[pay]) as session:
            assert (await session.run("x")).stop == "cancelled"
        assert session.is_closed
        assert_in_order(session.history)
        assert session.scheduler.abandoned == 0


async def test_what_fails_as_a_session_ends_is_reported_and_the_rest_is_ended_all_the_same() -> None:
    class Unclosable(MemoryLog):
        closed = 0

        async def close(self) -> None:
            self.closed += 1
            if self.closed == 1:
                raise StoreError("the disk is gone")

    async with simulated_providers({"rules": [{"reply": {"text": "ok"}}]}) as providers:
        log = Unclosable()
        with pytest.raises(StoreError):
            async with providers.session(OPENAI, log=log) as session:
                await session.run("x")
        await session.close()
        await session.close()
        assert log.closed == 2


# --- tasks that outlive their tool ----------------------------------------------------------------


async def test_a_task_that_a_tool_began_may_run_the_session_when_the_tool_s_run_is_over() -> None:
    async with simulated_providers(PAYING) as providers:
        later: list[asyncio.Task[list[str]]] = []
        is_over = asyncio.Event()

        @tool
        async def pay(to: str, context: ToolContext) -> str:
            session = context.session
            assert isinstance(session, Session)

            async def go_on() -> list[str]:
                with pytest.raises(InputError, match="cannot run the session that runs it"):
                    await session.run("at once")
                await is_over.wait()
                return [(await session.run("later")).stop]

            if not later:
                later.append(asyncio.create_task(go_on()))
                await asyncio.sleep(0)
            return "paid"

        async with providers.session(OPENAI, tools=[pay]) as session:
            await session.run("go")
            is_over.set()
            assert await later[0] == ["stop"]


async def test_a_cancel_by_a_task_of_an_earlier_tool_returns_when_all_is_in_order() -> None:
    async with simulated_providers(PAYING) as providers:
        later: list[asyncio.Task[bool]] = []
        begun = asyncio.Event()

        @tool
        async def pay(to: str, context: ToolContext) -> str:
            session = context.session
            assert isinstance(session, Session)

            async def stop() -> bool:
                await begun.wait()
                await session.cancel("enough")
                return session.is_running

            if not later:
                later.append(asyncio.create_task(stop()))
                return "paid"
            begun.set()
            await asyncio.Event().wait()
            return "never"

        async with providers.session(OPENAI, tools=[pay]) as session:
            await session.run("go")
            assert (await session.run("again")).stop == "cancelled"
            assert await later[0] is False


# --- providers that lie, keep silent about it, or flood -------------------------------------------


Answers = Callable[[int], AsyncIterator[bytes]]


def piece(delta: dict[str, Any], stop: str | None = None, usage: dict[str, Any] | None = None) -> bytes:
    chunk: dict[str, Any] = {
        "id": "x",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": stop}],
    }
    if usage is not None:
        chunk["usage"] = usage
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def with_provider(answers: Answers, scene: Callable[[UpstreamModels], Awaitable[None]]) -> None:
    """Run a scene against a provider of one's own, which speaks Chat Completions."""
    calls = 0

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal calls
        while (await receive()).get("more_body"):
            pass
        calls += 1
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for data in answers(calls):
            await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def run() -> None:
        transport = AsgiTransport(app, grace=0.05)
        upstream = Upstream(
            name="openai",
            target="openai",
            url="http://h/v1",
            transport=transport,
            auth=PROVIDERS["openai"].auth,
            key="sk-0123456789",
        )
        async with asyncio.timeout(120):
            try:
                await scene(UpstreamModels({"openai": upstream}))
            finally:
                await transport.close()

    asyncio.run(run())


@tool(side_effects=False)
async def look(x: str = "") -> str:
    """Look."""
    return "seen"


def calling_with(usage: dict[str, Any] | None) -> Answers:
    async def answers(number: int) -> AsyncIterator[bytes]:
        call = {"index": 0, "id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        yield piece({"tool_calls": [call]})
        yield piece({}, "tool_calls", usage)
        yield b"data: [DONE]\n\n"

    return answers


@pytest.mark.parametrize(
    "limits",
    [SessionLimits(max_turns=40, max_tokens=60), SessionLimits(max_turns=40, max_cost=Decimal("0.0001"))],
)
@pytest.mark.parametrize(
    "usage",
    [
        None,
        {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        {"prompt_tokens": -5, "completion_tokens": -(10**9), "total_tokens": 0},
        {"prompt_tokens": 10**13, "completion_tokens": 10**40, "total_tokens": 0},
    ],
)
def test_a_budget_holds_where_the_provider_does_not_say_what_it_took(
    usage: dict[str, Any] | None, limits: SessionLimits
) -> None:
    async def scene(models: UpstreamModels) -> None:
        async with Session(model=OPENAI, models=models, tools=[look], run_limits=QUICK, limits=limits) as session:
            answer = await session.run("go")
            assert answer.stop == "budget"
            assert 2 < len(session.history) < 30
            assert session.cost is not None
            assert 0 < session.cost < 1
            assert 0 < (session.usage.input_tokens or 0) < 10_000
            assert 0 < (session.usage.output_tokens or 0) < 10_000
            reported = [entry.reason for entry in session.report.entries if "estimated" in entry.reason]
            assert len(reported) == 1
            doubted = [entry.reason for entry in session.report.entries if "ignored token counts" in entry.reason]
            assert len(doubted) == (usage is not None and usage["prompt_tokens"] != 0)

    with_provider(calling_with(usage), scene)


def test_a_log_takes_no_counts_that_are_not_believed(tmp_path: Path) -> None:
    async def answers(_: int) -> AsyncIterator[bytes]:
        yield piece({"content": "hi"})
        yield piece({}, "stop", {"prompt_tokens": 10**40, "completion_tokens": -5, "total_tokens": 1})
        yield b"data: [DONE]\n\n"

    async def scene(models: UpstreamModels) -> None:
        store = SqliteStore(tmp_path / "s.db")
        log = await SessionLog.create(store)
        async with Session(model=OPENAI, models=models, log=log) as session:
            assert (await session.run("go")).text == "hi"
            used = session.usage
        log = await SessionLog.open(store, log.id)
        assert (log.usage.input_tokens, log.usage.output_tokens) == (used.input_tokens, used.output_tokens)
        await log.close()
        await store.close()

    with_provider(answers, scene)


async def test_what_subagents_summaries_and_failed_tries_took_counts_after_a_reopen_too(tmp_path: Path) -> None:
    script: dict[str, Any] = {
        "rules": [
            {
                "when": {"turn": 1, "results": 0},
                "times": 1,
                "reply": {
                    "calls": [{"name": "delegate", "arguments": {}}],
                    "usage": {"input_tokens": 100, "output_tokens": 10},
                },
            },
            {"reply": {"text": "ok", "usage": {"input_tokens": 1000, "output_tokens": 100}}},
        ]
    }

    @tool
    async def delegate(context: ToolContext) -> str:
        assert isinstance(context.session, Session)
        return (await context.session.spawn(tools=[]).run("sub")).text

    async with simulated_providers(script) as providers:
        store = SqliteStore(tmp_path / "s.db")
        log = await SessionLog.create(store)
        async with providers.session(OPENAI, tools=[delegate], log=log, limits=SessionLimits(keep_turns=1)) as session:
            await session.run("x")
            await session.run("y")
            await session.compress()
            used, cost = session.usage, session.cost
        assert used.input_tokens == 100 + 4 * 1000
        log = await SessionLog.open(store, log.id)
        async with providers.session(OPENAI, tools=[delegate], log=log) as session:
            assert (session.usage, session.cost) == (used, cost)
        await store.close()


async def test_spending_that_a_log_does_not_take_is_written_with_the_next_answer() -> None:
    class Reluctant(MemoryLog):
        def __init__(self) -> None:
            super().__init__()
            self.spent: list[int | None] = []

        async def change(
            self, change: Callable[[Kept], T], *, usage: Usage | None = None, cost: Decimal | None = None
        ) -> T:
            if usage is not None:
                raise StoreError("disk full")
            return await super().change(change, cost=cost)

        async def commit(self, attempt: Attempt, *, usage: Usage | None = None, cost: Decimal | None = None) -> Turn:
            if self.spent == [10]:
                self.spent.append(-1)
                raise StoreError("disk full")
            self.spent.append(usage.input_tokens if usage is not None else None)
            return await super().commit(attempt, usage=usage, cost=cost)

    async with simulated_providers(
        {"rules": [{"reply": {"text": "ok", "usage": {"input_tokens": 10, "output_tokens": 1}}}]}
    ) as providers:
        log = Reluctant()
        async with providers.session(OPENAI, log=log) as session:
            await session.run("x")
            await session.spawn().run("sub")
            with pytest.raises(StoreError):
                await session.run("y")
            await session.run("z")
            assert log.spent == [10, -1, 30]
            assert session.usage.input_tokens == 40
            await session.spawn().run("sub")
        assert session.usage.input_tokens == 50
        assert session.is_closed


def test_a_provider_that_floods_can_be_left() -> None:
    async def answers(_: int) -> AsyncIterator[bytes]:
        while True:
            yield b": keepalive\n\n"
            await asyncio.sleep(0)

    async def scene(models: UpstreamModels) -> None:
        async with Session(model=OPENAI, models=models, run_limits=QUICK) as session:
            run = asyncio.create_task(session.run("x"))
            for _ in range(500):
                await asyncio.sleep(0)
            async with asyncio.timeout(120):
                await session.cancel()
                assert (await run).stop == "cancelled"
            assert not session.is_running

    with_provider(answers, scene)


def test_a_summary_that_floods_can_be_left() -> None:
    async def answers(number: int) -> AsyncIterator[bytes]:
        while number > 3:
            yield b": keepalive\n\n"
            await asyncio.sleep(0)
        yield piece({"content": "hi"}, "stop")
        yield b"data: [DONE]\n\n"

    async def scene(models: UpstreamModels) -> None:
        limits = SessionLimits(keep_turns=1)
        async with Session(model=OPENAI, models=models, run_limits=QUICK, limits=limits) as session:
            for _ in range(3):
                await session.run("x")
            before = session.history.turns
            work = asyncio.create_task(session.compress())
            for _ in range(500):
                await asyncio.sleep(0)
            async with asyncio.timeout(120):
                await session.cancel()
                assert await work == 0
            assert session.history.turns == before

    with_provider(answers, scene)
