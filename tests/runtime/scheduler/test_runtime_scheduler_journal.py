"""A call runs once: duplicates, the journal, and the limits of a scheduler."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sessions.scheduled_tools import (
    Gated,
    Recorded,
    Watched,
    call,
    calls,
    make_tool,
    outcome,
    reasons,
    scheduler,
    ticks,
    tool_returning,
    was_reported,
)
from toolglot.conversation import Media, Text, ToolResult
from toolglot.conversation.completion import completion_key, status_of
from toolglot.errors import InputError
from toolglot.runtime.scheduler.known_calls import RUN_BEFORE, KnownCallLimits, KnownCalls, size_of
from toolglot.runtime.scheduler.scheduler import RunLimits, Scheduler
from toolglot.runtime.tools.toolbox import ToolBox, ToolContext

# --- duplicates -----------------------------------------------------------------------------------


async def test_a_call_id_is_run_once_in_a_batch_and_ever_after() -> None:
    gated = Gated()
    gated.gate.set()
    running = scheduler(gated.tool)
    first = await running.run([call("a"), call("b"), call("a")])
    assert [result.call_id for result in first] == ["a", "b", "a"]
    assert first[0] == first[2]
    again = await running.run([call("b"), call("c")])
    assert again[0] == first[1]
    assert gated.order == ["a", "b", "c"]
    assert [entry.call_ids for entry in running.entries] == [("a",), ("b",)]
    assert was_reported(running, ["not run again"])


async def test_a_call_that_runs_in_the_batch_before_is_not_run_again() -> None:
    gated = Gated()
    running = scheduler(gated.tool)
    one = asyncio.create_task(running.run([call("a")]))
    await gated.started.wait()
    two = asyncio.create_task(running.run([call("a")]))
    await ticks()
    gated.gate.set()
    assert await one == await two
    assert gated.runs == 1


async def test_the_known_results_are_those_of_the_newest_calls() -> None:
    running = Scheduler(ToolBox([tool_returning("x")]), _memory=KnownCallLimits(calls=3))
    await running.run(calls(5))
    assert [running.known_result(f"c{n}") is not None for n in range(5)] == [False, False, True, True, True]


async def test_whole_results_are_bounded_by_their_bytes_and_older_calls_are_still_not_run_again() -> None:
    gated = Gated(value="x" * 1_000)
    gated.gate.set()
    running = Scheduler(ToolBox([gated.tool]), _memory=KnownCallLimits(result_bytes=2_500))
    first = {result.call_id: result for result in await running.run(calls(5))}
    again = await running.run(calls(5))
    assert gated.runs == 5
    assert [result.content for result in again] == [RUN_BEFORE] * 3 + ["x" * 1_000] * 2
    for result in again:
        assert completion_key(result) == completion_key(first[result.call_id])
        assert status_of(result) == "complete"
    assert [result.content for result in await running.run(calls(5))] == [result.content for result in again]


@pytest.mark.law
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3_000), st.booleans()), max_size=40))
def test_what_is_known_of_calls_is_bounded_by_number_and_by_bytes(steps: list[tuple[int, int, bool]]) -> None:
    known, runs = KnownCalls(KnownCallLimits(calls=6, result_bytes=5_000)), dict[str, ToolResult]()
    for number, size, forgets in steps:
        id = str(number)
        if forgets:
            known.forget([id])
            assert known.get(id) is None
            continue
        was_known = known.get(id)
        new = ToolResult(id, (Text("x" * size), Media("image", data="y" * size)), result=[size], status="complete")
        known.add(new)
        runs[id] = was_known or new
        assert len([*known]) <= 6
        kept = [found for other in range(13) if (found := known.get(str(other))) is not None]
        assert sum(size_of(found) for found in kept if found.content != RUN_BEFORE) <= 5_000
        assert all(completion_key(found) == completion_key(runs[found.call_id]) for found in kept)


def test_the_report_keeps_the_newest_entries() -> None:
    running = Scheduler(ToolBox(), _memory=KnownCallLimits(entries=4))
    for number in range(9):
        running.report("ignored", str(number))
    assert reasons(running)[-1] == "8"
    assert len(running.entries) <= 4


# --- the journal ----------------------------------------------------------------------------------


async def test_a_start_is_on_record_before_the_tool_runs_and_the_end_before_the_result_is_published() -> None:
    journal, watch = Recorded(), Watched()
    at: dict[str, list[tuple[str, str]]] = {}

    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        at["run"] = list(journal.log)
        return "done"

    def look(change: Any) -> None:
        watch(change)
        if change.result is not None:
            at["published"] = list(journal.log)

    running = Scheduler(ToolBox([make_tool(run)]), watch=look, journal=journal)
    results = await running.run([call("c1", path="x")])
    assert at == {"run": [("started", "c1")], "published": [("started", "c1"), ("finished", "c1")]}
    assert journal.arguments == {"c1": {"path": "x"}}
    assert journal.results == {"c1": results[0]}


def test_a_tool_without_side_effects_has_no_start_on_record() -> None:
    journal = Recorded()
    outcome(tool_returning("x", side_effects=False), journal=journal)
    assert journal.log == [("finished", "c1")]


async def test_every_result_is_on_record_also_that_of_a_call_that_is_refused() -> None:
    journal = Recorded()
    results = await scheduler(tool_returning("x"), journal=journal).run([call("a"), call("b", "nobody")])
    assert sorted(journal.log) == [("finished", "a"), ("finished", "b"), ("started", "a")]
    assert journal.results["b"] == results[1]


async def _broken() -> None:
    raise OSError("disk full")


async def _cancels_itself() -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize(("fault", "text"), [(_broken, "OSError: disk full"), (_cancels_itself, "was cancelled")])
async def test_a_tool_whose_start_cannot_be_recorded_is_never_started(fault: Any, text: str) -> None:
    journal, gated = Recorded(), Gated()
    journal.at_start = fault
    running = scheduler(gated.tool, journal=journal)
    (result,) = await running.run([call()])
    assert gated.runs == 0
    assert status_of(result) == "cancelled"
    assert text in result.text
    assert "never started" in result.text
    assert was_reported(running, ["start", "could not be recorded"])
    assert journal.log == [("finished", "c1")]


@pytest.mark.parametrize(("fault", "text"), [(_broken, "OSError: disk full"), (_cancels_itself, "was cancelled")])
async def test_a_result_that_cannot_be_recorded_is_published_and_reported(fault: Any, text: str) -> None:
    journal = Recorded()
    journal.at_end = fault
    running = scheduler(tool_returning("done"), journal=journal)
    (result,) = await running.run([call()])
    assert result.content == "done"
    assert was_reported(running, ["a result could not be recorded", text])
    assert running.entries[0].fault == "loss"


# --- the limits -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits",
    [
        {"parallel": 0},
        {"parallel": True},
        {"retries": -1},
        {"max_output": 0},
        {"max_calls": 0},
        {"timeout": 0},
        {"timeout": float("inf")},
        {"grace": -1},
        {"grace": float("nan")},
        {"retry_wait": "1"},
    ],
)
def test_limits_that_make_no_sense_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(limits))):
        RunLimits(**limits)
