"""Sessions when their store fails, results are too large, or calls stay open across processes."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from support.sessions.faulty_sessions import OPENAI, PAYING, assert_in_order, results_of
from support.sessions.simulated_sessions import SimulatedProviders, simulated_providers
from support.store.faulty_store import HookedStore
from toolglot import History, InputError, Limits, Media, Text, ToolCall, ToolResult, Turn
from toolglot.errors import LimitError
from toolglot.runtime.log.memory_log import MemoryLog, reopen_turn
from toolglot.runtime.log.result_shortening import shorter_versions
from toolglot.runtime.log.session_log import LogLimits, SessionLog
from toolglot.runtime.tools.toolbox import ToolContext, define, tool
from toolglot.store import SqliteStore, StoreError

ASKING: dict[str, Any] = {
    "rules": [
        {
            "when": {"results": 0},
            "reply": {"calls": [{"name": "ask_user", "arguments": {"q": str(n)}} for n in (1, 2)]},
        },
        {"reply": {"text": "ok"}},
    ]
}


ASK_USER = define({"name": "ask_user", "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}}})


class Failing:
    """A hook of a store that fails at the writes of turns with these numbers, from the first after `begin` on."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = set(numbers)
        self.count = 0

    async def __call__(self, moment: str) -> None:
        if moment == "before keep turns":
            self.count += 1
            if self.count in self.numbers:
                raise StoreError("disk full")


# --- a store that fails ---------------------------------------------------------------------------


@pytest.mark.parametrize("failing", [(5,), (4, 5), (5, 6), (4, 5, 6), (5, 6, 7), (4, 5, 6, 7, 8)])
async def test_R_009_law_2_a_real_result_outlives_a_store_that_fails_as_it_is_published(
    failing: tuple[int, ...], tmp_path: Path
) -> None:
    runs: list[str] = []

    @tool
    async def pay(to: str, context: ToolContext) -> str:
        runs.append(context.call_id)
        return f"paid {to}, receipt {len(runs)}"

    async with simulated_providers(PAYING) as providers:
        inner = SqliteStore(tmp_path / "s.db")
        store = HookedStore(inner)
        log = await SessionLog.create(store)
        store.hook = hook = Failing(*failing)
        async with providers.session(OPENAI, tools=[pay], log=log) as session:
            with pytest.raises(StoreError):
                await session.run("pay bob")
            hook.numbers = {number for number in hook.numbers if number <= hook.count + 1}
            for _ in range(3):
                try:
                    await session.run("go on")
                    break
                except StoreError:
                    assert [turn.text for turn in session.history.turns].count("go on") == 0
            assert_in_order(session.history)
            assert len(runs) == len(set(runs)) == 2
            texts = [results_of(session.history)[call_id][0].text for call_id in runs]
            assert texts == ["paid bob, receipt 1", "paid bob, receipt 2"]
            turns = session.history.turns
        assert providers.refused == []
        log = await SessionLog.open(inner, log.id)
        assert log.history.turns == turns
        await log.close()
        await inner.close()


async def test_calls_that_never_started_have_a_result_that_says_so_when_the_store_failed_in_between(
    tmp_path: Path,
) -> None:
    runs: list[str] = []

    @tool
    async def pay(to: str) -> str:
        runs.append(to)
        return "paid"

    async with simulated_providers(PAYING) as providers:
        inner = SqliteStore(tmp_path / "s.db")
        store = HookedStore(inner)
        log = await SessionLog.create(store)
        store.hook = Failing(3, 4, 5, 6)
        async with providers.session(OPENAI, tools=[pay], log=log) as session:
            with pytest.raises(StoreError):
                await session.run("pay bob")
            assert runs == []
            await session.run()
            assert_in_order(session.history)
            first = next(iter(results_of(session.history).values()))[0]
            assert "never started" in first.text
        await inner.close()


async def test_what_a_store_did_not_take_is_written_at_the_latest_when_the_session_is_closed(tmp_path: Path) -> None:
    @tool
    async def pay(to: str) -> str:
        return "paid, receipt 42"

    async with simulated_providers(PAYING) as providers:
        inner = SqliteStore(tmp_path / "s.db")
        store = HookedStore(inner)
        log = await SessionLog.create(store)
        store.hook = Failing(4, 5, 6)
        async with providers.session(OPENAI, tools=[pay], log=log) as session:
            with pytest.raises(StoreError):
                await session.run("pay bob")
            assert session.history.in_flight is not None
        log = await SessionLog.open(inner, log.id)
        assert [result.text for turn in log.history.turns for result in turn.results] == ["paid, receipt 42"]
        await log.close()
        await inner.close()


async def test_a_session_closes_also_where_its_store_takes_nothing_any_more(tmp_path: Path) -> None:
    @tool
    async def pay(to: str) -> str:
        return "paid"

    async with simulated_providers(PAYING) as providers:
        inner = SqliteStore(tmp_path / "s.db")
        store = HookedStore(inner)
        log = await SessionLog.create(store)
        store.hook = Failing(*range(5, 100))
        async with providers.session(OPENAI, tools=[pay], log=log) as session:
            with pytest.raises(StoreError):
                await session.run("pay bob")
            with pytest.raises(StoreError):
                await session.run("go on")
            with pytest.raises(StoreError):
                await session.cancel()
        log = await SessionLog.open(inner, log.id)
        assert [result.text for turn in log.history.turns for result in turn.results] == ["paid"]
        await log.close()
        await inner.close()


async def test_a_cancel_after_the_store_failed_writes_the_result_that_is_known(tmp_path: Path) -> None:
    @tool
    async def pay(to: str) -> str:
        return "paid, receipt 42"

    async with simulated_providers(PAYING) as providers:
        inner = SqliteStore(tmp_path / "s.db")
        store = HookedStore(inner)
        log = await SessionLog.create(store)
        store.hook = Failing(5, 6)
        async with providers.session(OPENAI, tools=[pay], log=log) as session:
            with pytest.raises(StoreError):
                await session.run("pay bob")
            await session.cancel("enough")
            assert_in_order(session.history)
            assert [result.text for turn in session.history.turns for result in turn.results] == ["paid, receipt 42"]
        await inner.close()


async def test_an_answer_that_the_store_does_not_take_leaves_the_call_open(tmp_path: Path) -> None:
    async with simulated_providers(ASKING) as providers:
        inner = SqliteStore(tmp_path / "s.db")
        store = HookedStore(inner)
        log = await SessionLog.create(store)
        async with providers.session(OPENAI, tools=[ASK_USER], log=log) as session:
            first, second = (await session.run("go")).calls
            store.hook = Failing(1)
            answers = ToolResult(first.id, "yes"), ToolResult(second.id, "no")
            with pytest.raises(StoreError):
                await session.answer(*answers)
            with pytest.raises(InputError, match="calls are open"):
                await session.run("more")
            assert (await session.answer(*answers)).text == "ok"
            assert_in_order(session.history)
        await inner.close()


# --- results that are too large -------------------------------------------------------------------


SHOOTING: dict[str, Any] = {
    "rules": [
        {
            "when": {"results": 0},
            "times": 1,
            "reply": {"calls": [{"name": "shot", "arguments": {"size": size}} for size in (9000, 50, 60)]},
        },
        {"reply": {"text": "ok"}},
    ]
}


@tool
async def shot(size: int) -> list[Text | Media]:
    """Take a picture."""
    return [
        Text(f"shot {size}"),
        Media(kind="image", media_type="image/png", data=base64.b64encode(b"x" * size).decode()),
    ]


@pytest.mark.parametrize("kind", ["log", "memory"])
async def test_a_result_that_is_too_large_is_shortened_and_takes_no_other_with_it(kind: str, tmp_path: Path) -> None:
    async with simulated_providers(SHOOTING) as providers:
        store = SqliteStore(tmp_path / "s.db")
        log: SessionLog | MemoryLog
        if kind == "log":
            log = await SessionLog.create(store, limits=LogLimits(max_entry_bytes=8000))
        else:
            log = MemoryLog(History(limits=Limits(max_bytes=8000)))
        async with providers.session(OPENAI, tools=[shot], log=log) as session:
            assert (await session.run("go")).text == "ok"
            assert_in_order(session.history)
            large, small, other = (tool_result[0] for tool_result in results_of(session.history).values())
            assert large.status == small.status == "complete"
            assert large.text.startswith("shot 9000")
            assert "left out" in large.text
            assert isinstance(small.content, tuple)
            assert isinstance(small.content[1], Media)
            assert isinstance(other.content, tuple)
            assert isinstance(other.content[1], Media)
            reported = [entry for entry in session.report.entries if "too large" in entry.reason]
            assert [entry.call_ids for entry in reported] == [(large.call_id,)]
        await store.close()


async def test_where_not_even_short_results_fit_the_result_says_what_happened(tmp_path: Path) -> None:
    @tool
    async def pay(to: str) -> str:
        return "x" * 5000

    async with simulated_providers(PAYING) as providers:
        store = SqliteStore(tmp_path / "s.db")
        log = await SessionLog.create(store, limits=LogLimits(max_entry_bytes=900))
        async with providers.session(OPENAI, tools=[pay], log=log) as session:
            assert (await session.run("go")).text == "ok"
            (result,) = (tool_result[0] for tool_result in results_of(session.history).values())
            assert result.status == "complete"
            assert "too large" in result.text
        await store.close()


async def test_a_result_that_nothing_makes_fit_is_refused_and_the_call_is_not_run_again(tmp_path: Path) -> None:
    runs: list[str] = []

    class Full(MemoryLog):
        async def publish(self, results: Any) -> Turn | None:  # noqa: ARG002
            raise LimitError("there is no room")

        async def end_turn(self, reason: str = "", known: Any = ()) -> None:
            if known:
                raise LimitError("there is no room")
            await super().end_turn(reason)

    @tool
    async def pay(to: str) -> str:
        runs.append(to)
        return "paid"

    async with (
        simulated_providers(PAYING) as providers,
        providers.session(OPENAI, tools=[pay], log=Full()) as session,
    ):
        for prompt in ("go", "on"):
            with pytest.raises(LimitError):
                await session.run(prompt)
        assert runs == ["bob"]


def test_the_largest_results_are_shortened_first_and_small_ones_last() -> None:
    results = [ToolResult(f"c{n}", "x" * size, result={"n": n}) for n, size in enumerate((10, 90_000, 20, 50_000, 30))]
    cuts = [cut for _, cut in shorter_versions(results)]
    assert cuts == [(), ("c1",), ("c1", "c3"), ("c1", "c2", "c3", "c4"), *[("c0", "c1", "c2", "c3", "c4")] * 2]
    for fitted, cut in shorter_versions(results):
        assert [result.call_id for result in fitted] == [result.call_id for result in results]
        assert [a.call_id for a, b in zip(fitted, results, strict=True) if a != b] == list(cut)
        assert all(len(result.text) <= 4_000 and result.result is None for result in fitted if result.call_id in cut)
    assert [cut for _, cut in shorter_versions([])] == [()]
    plain = ToolResult("c", "short")
    assert [fitted for fitted, _ in shorter_versions([plain])] == [[plain]] * 3


# --- taken back, and sent again -------------------------------------------------------------------


@pytest.mark.parametrize("model", ["ollama/qwen3", OPENAI, "gemini/gemini-3-pro"])
async def test_a_call_that_was_taken_back_is_run_when_the_model_makes_it_again(model: str) -> None:
    runs: list[str] = []

    @tool
    async def pay(to: str) -> str:
        runs.append(to)
        return f"paid {len(runs)}"

    async with simulated_providers(PAYING) as providers, providers.session(model, tools=[pay]) as session:
        await session.run("hello")
        await session.undo()
        await session.run("hello")
        assert len(runs) == 2
        assert [result.text for turn in session.history.turns for result in turn.results] == ["paid 2"]


# --- calls that stay open across processes --------------------------------------------------------


async def left_open(providers: SimulatedProviders, store: SqliteStore) -> SessionLog:
    """The log of a session whose process ended while calls were open, opened again."""
    log = await SessionLog.create(store)
    async with providers.session(OPENAI, tools=[ASK_USER], log=log) as session:
        assert (await session.run("go")).stop == "calls_open"
    return await SessionLog.open(store, log.id, keep_open=["ask_user"])


async def test_calls_that_were_kept_open_are_open_in_the_next_process_too(tmp_path: Path) -> None:
    async with simulated_providers(ASKING) as providers:
        store = SqliteStore(tmp_path / "s.db")
        async with providers.session(OPENAI, tools=[ASK_USER], log=await left_open(providers, store)) as session:
            for refused in (session.run("more"), session.undo(), session.compress()):
                with pytest.raises(InputError, match="calls are open"):
                    await refused
            first, second = (found.id for found in session.history.ledger.pending)
            answer = await session.answer(ToolResult(second, "no"))
            assert [call.id for call in answer.calls] == [first]
            assert (await session.answer(ToolResult(first, "yes"))).text == "ok"
            assert_in_order(session.history)
        await store.close()
        assert providers.refused == []


async def test_calls_that_were_kept_open_can_be_cancelled_in_the_next_process(tmp_path: Path) -> None:
    async with simulated_providers(ASKING) as providers:
        store = SqliteStore(tmp_path / "s.db")
        async with providers.session(OPENAI, tools=[ASK_USER], log=await left_open(providers, store)) as session:
            await session.cancel("the user left")
            assert_in_order(session.history)
            texts = [result.text for turn in session.history.turns for result in turn.results]
            assert texts == ["the user left"] * 2
            assert (await session.run("more")).stop == "calls_open"
        await store.close()
        assert providers.refused == []


def test_open_calls_of_a_history_without_an_approver_stay_as_they_are() -> None:
    call = ToolCall("c", "ask_user", {})
    made = History(provider="openai")
    kept = made.append(Turn("assistant", (call,)))
    history = History()
    history.append(replace(kept, issuer=None))
    reopen_turn(history)
    assert history.in_flight is None
    history.append(Turn("assistant", (Text("Never mind."),)), provider="openai")
    reopen_turn(history)
    assert history.in_flight is None
