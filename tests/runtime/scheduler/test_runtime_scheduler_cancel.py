"""Cancelling, at every step of a batch: each call has one result, in words of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from support.sessions.scheduled_tools import (
    GRACE,
    LIMITS,
    Gated,
    Recorded,
    Watched,
    call,
    calls,
    make_tool,
    other_tasks,
    scheduler,
    ticks,
    tool_returning,
    was_reported,
)
from toolglot.conversation import ToolCall, ToolResult
from toolglot.conversation.completion import status_of
from toolglot.runtime.scheduler import outcomes
from toolglot.runtime.scheduler.approvals import Allow, Decision
from toolglot.runtime.scheduler.scheduler import RunLimits, Scheduler
from toolglot.runtime.tools.threads import run_in_thread
from toolglot.runtime.tools.toolbox import Tool, ToolBox, ToolContext

REASON = "Enough."


def is_never_started(result: ToolResult) -> bool:
    return result.text == outcomes.not_started(ToolCall("", ""), REASON).text


async def test_what_runs_is_cancelled_and_what_waits_is_never_started() -> None:
    gated, watch = Gated(), Watched()
    running = scheduler(gated.tool, limits=RunLimits(parallel=2, grace=GRACE), watch=watch)
    batch = asyncio.create_task(running.run(calls(4)))
    await gated.started.wait()
    await ticks()
    running.cancel(REASON)
    running.cancel("A second time.")
    results = await batch
    assert [result.call_id for result in results] == ["c0", "c1", "c2", "c3"]
    assert [status_of(result) for result in results] == ["cancelled"] * 4
    assert ["stopped while it ran" in result.text for result in results] == [True, True, False, False]
    assert [is_never_started(result) for result in results] == [False, False, True, True]
    assert all(result.text.startswith(REASON) for result in results)
    assert watch.states("c0") == ["validating", "scheduled", "executing", "cancelled"]
    assert watch.states("c3") == ["validating", "scheduled", "cancelled"]
    assert gated.contexts[0].cancelled.is_set()
    assert running.abandoned == 0
    assert not other_tasks()


def test_never_started_cancelled_and_unknown_are_three_different_results() -> None:
    one = call()
    results = [
        outcomes.not_started(one),
        outcomes.cancellation(one),
        outcomes.unknown_outcome(one, outcomes.CANCELLED),
    ]
    assert [status_of(result) for result in results] == ["cancelled", "cancelled", "error"]
    assert len({result.text for result in results}) == 3
    assert "nothing was done" in results[0].text
    assert "stays done" in results[1].text
    assert "may have run" in results[2].text


async def test_what_a_tool_gives_while_it_is_cancelled_is_reported() -> None:
    async def partly(arguments: dict[str, Any], context: ToolContext) -> object:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "line 1"
        return "never"

    async def badly(arguments: dict[str, Any], context: ToolContext) -> object:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError("cleanup failed")

    running = scheduler(make_tool(partly, "partly"), make_tool(badly, "badly"))
    batch = asyncio.create_task(running.run([call("a", "partly"), call("b", "badly")]))
    await ticks()
    running.cancel(REASON)
    results = await batch
    assert [status_of(result) for result in results] == ["cancelled", "cancelled"]
    assert results[0].text.endswith("Its output:\nline 1")
    assert results[1].text.endswith("Its output:\nValueError: cleanup failed")


@pytest.mark.parametrize("side_effects", [True, False])
async def test_a_tool_that_ignores_its_cancellation_does_not_hold_up_the_session(side_effects: bool) -> None:
    gated = Gated(ignores_cancel=True, side_effects=side_effects)
    running = scheduler(gated.tool)
    batch = asyncio.create_task(running.run([call()]))
    await gated.started.wait()
    running.cancel(REASON)
    async with asyncio.timeout(120):
        (result,) = await batch
    assert ("outcome is unknown" in result.text) == side_effects
    assert "did not stop when it was cancelled" in result.text
    assert status_of(result) == ("error" if side_effects else "cancelled")
    assert running.abandoned == 1
    assert await running.run([call("next", "nobody")])  # and the session goes on
    gated.gate.set()
    await ticks()


async def test_tools_that_were_cancelled_are_not_waited_for_when_no_caller_waits() -> None:
    gated = Gated(ignores_cancel=True)
    running = scheduler(gated.tool, limits=RunLimits(grace=3600))
    running.stop_waiting()  # nothing runs
    batch = asyncio.create_task(running.run([call()]))
    await gated.started.wait()
    running.stop_waiting()  # nothing was cancelled
    await ticks()
    assert not batch.done()
    running.cancel(REASON)
    await ticks()
    assert not batch.done()
    running.stop_waiting()
    running.stop_waiting()
    async with asyncio.timeout(60):
        (result,) = await batch
    assert "did not stop when it was cancelled" in result.text
    assert running.abandoned == 1
    assert "ignored its cancellation and was abandoned" in running.entries[-1].reason
    gated.gate.set()
    await ticks()


async def test_a_cancel_from_another_thread_reaches_the_batch() -> None:
    gated = Gated()
    running = scheduler(gated.tool)
    batch = asyncio.create_task(running.run([call()]))
    await gated.started.wait()
    threading.Thread(target=running.cancel, args=(REASON,)).start()
    (result,) = await batch
    assert "stopped while it ran" in result.text


def test_a_cancel_when_nothing_runs_changes_nothing() -> None:
    running = scheduler(tool_returning("fine"))
    running.cancel()

    async def main() -> None:
        running.cancel()
        assert [result.content for result in await running.run([call("a")])] == ["fine"]
        running.cancel()
        assert [result.content for result in await running.run([call("b")])] == ["fine"]
        assert [result.call_id for result in await running.last_results()] == ["b"]

    asyncio.run(main())
    running.cancel("The loop is closed by now.")


async def test_batches_that_wait_are_cancelled_with_the_one_that_runs() -> None:
    gated = Gated()
    running = scheduler(gated.tool)
    batches = [asyncio.create_task(running.run([call(f"c{n}")])) for n in range(3)]
    await gated.started.wait()
    running.cancel(REASON)
    results = [(await batch)[0] for batch in batches]
    assert [is_never_started(result) for result in results] == [False, True, True]
    gated.gate.set()
    assert [result.content for result in await running.run([call("later")])] == ["done"]


async def test_a_batch_whose_waiting_task_is_cancelled_in_line_never_starts_and_the_others_go_on() -> None:
    gated = Gated()
    running = scheduler(gated.tool)
    batches = [asyncio.create_task(running.run([call(f"c{n}")])) for n in range(3)]
    await gated.started.wait()
    batches[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await batches[1]
    gated.gate.set()
    assert [result.content for result in (*await batches[0], *await batches[2])] == ["done", "done"]
    assert gated.order == ["c0", "c2"]
    known = running.known_result("c1")
    assert known is not None
    assert "never started" in known.text


async def test_the_cancellation_of_the_waiting_task_cancels_the_batch_and_goes_on_when_it_is_settled() -> None:
    gated = Gated()
    running = scheduler(gated.tool, limits=RunLimits(parallel=1, grace=GRACE))
    batch = asyncio.create_task(running.run(calls(2)))
    await gated.started.wait()
    batch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await batch
    assert not other_tasks()
    results = await running.last_results()
    assert [result.call_id for result in results] == ["c0", "c1"]
    assert ["stopped while it ran" in result.text for result in results] == [True, False]


async def test_a_cancel_scope_around_the_waiting_task_does_the_same() -> None:
    gated = Gated()
    running = scheduler(gated.tool)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(running.run, [call()])
            await gated.started.wait()
            scope.cancel()
    assert scope.cancelled_caught
    with anyio.CancelScope() as scope:
        scope.cancel()
        results = await running.last_results()  # also where everything is cancelled
    assert "stopped while it ran" in results[0].text


async def test_a_second_cancellation_leaves_the_batch_to_settle_alone() -> None:
    gated = Gated(ignores_cancel=True)
    running = scheduler(gated.tool)
    batch = asyncio.create_task(running.run([call()]))
    await gated.started.wait()
    batch.cancel()
    await ticks()
    batch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await batch
    (result,) = await running.last_results()
    assert "outcome is unknown" in result.text
    gated.gate.set()
    await ticks()


# --- at every step --------------------------------------------------------------------------------------


async def test_a_cancel_while_calls_are_validated_starts_nothing() -> None:
    gated = Gated()
    changes: list[Any] = []

    def watch(change: Any) -> None:
        changes.append(change)
        if change.call.id == "c1":
            running.cancel(REASON)

    running = Scheduler(ToolBox([gated.tool]), watch=watch)
    results = await running.run(calls(3))
    assert [is_never_started(result) for result in results] == [True] * 3
    assert gated.runs == 0
    assert [change.state for change in changes if change.call.id == "c2"] == ["validating", "cancelled"]


async def _wait_for_ever() -> None:
    await asyncio.Event().wait()


async def _ignore_one_cancellation() -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.Event().wait()


@pytest.mark.parametrize("waiting", [_wait_for_ever, _ignore_one_cancellation])
async def test_a_cancel_while_a_question_is_open_starts_nothing(waiting: Callable[[], Awaitable[None]]) -> None:
    questions: list[str] = []

    async def approve(call: ToolCall, tool: Tool, arguments: dict[str, Any]) -> Decision:
        questions.append(call.id)
        await waiting()
        return Allow()

    gated, watch = Gated(approval=True), Watched()
    running = scheduler(gated.tool, approve=approve, watch=watch)
    batch = asyncio.create_task(running.run(calls(3)))
    await ticks()
    assert watch.states("c0")[-1] == "awaiting_approval"
    running.cancel(REASON)
    results = await batch
    assert [is_never_started(result) for result in results] == [True] * 3
    assert questions == ["c0"]
    assert gated.runs == 0
    assert watch.states("c0") == ["validating", "awaiting_approval", "cancelled"]
    is_left = waiting is _ignore_one_cancellation
    assert was_reported(running, ["an approval callback ignored its cancellation"]) == is_left
    assert len(other_tasks()) == is_left
    assert running.abandoned == 0  # those are tools
    await running.close()
    assert not other_tasks()


@pytest.mark.parametrize("waiting", [_wait_for_ever, _ignore_one_cancellation])
async def test_a_cancel_while_a_start_is_recorded_starts_nothing(waiting: Callable[[], Awaitable[None]]) -> None:
    gated, journal = Gated(), Recorded()
    journal.at_start = waiting
    running = scheduler(gated.tool, journal=journal)
    batch = asyncio.create_task(running.run([call()]))
    await ticks()
    running.cancel(REASON)
    (result,) = await batch
    assert is_never_started(result)
    assert gated.runs == 0
    assert journal.log == [("finished", "c1")]
    await running.close()


async def test_a_cancel_in_the_moment_a_start_is_on_record_starts_nothing() -> None:
    gated, journal = Gated(), Recorded()

    async def cancel() -> None:
        running.cancel(REASON)

    journal.at_start = cancel
    running = scheduler(gated.tool, journal=journal)
    (result,) = await running.run([call()])
    assert is_never_started(result)
    assert gated.runs == 0


async def test_a_cancel_while_a_result_is_recorded_keeps_the_result() -> None:
    journal, gate = Recorded(), asyncio.Event()
    journal.at_end = gate.wait
    running = scheduler(tool_returning("done"), journal=journal, limits=RunLimits(grace=60))
    batch = asyncio.create_task(running.run([call()]))
    await ticks()
    running.cancel(REASON)
    await ticks()
    gate.set()
    (result,) = await batch
    assert result.content == "done"
    assert journal.results == {"c1": result}
    assert not running.entries


async def test_a_journal_that_hangs_does_not_hold_up_a_cancel() -> None:
    journal = Recorded()
    journal.at_end = _ignore_one_cancellation
    running = scheduler(tool_returning("done"), journal=journal)
    batch = asyncio.create_task(running.run([call()]))
    await ticks()
    running.cancel(REASON)
    (result,) = await batch
    assert result.content == "done"
    assert was_reported(running, ["a result could not be recorded", "took too long"])
    await running.close()
    assert not other_tasks()


async def test_a_cancel_between_two_tries_ends_the_trying() -> None:
    tried = asyncio.Event()
    runs = 0

    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        nonlocal runs
        runs += 1
        tried.set()
        raise ConnectionError("reset")

    running = scheduler(make_tool(run, idempotent=True), limits=RunLimits(retry_wait=1000, grace=GRACE))
    batch = asyncio.create_task(running.run([call()]))
    await tried.wait()
    await ticks()
    running.cancel(REASON)
    (result,) = await batch
    assert runs == 1
    assert status_of(result) == "cancelled"
    assert result.text.endswith("Its output:\nConnectionError: reset")


# --- the end --------------------------------------------------------------------------------------------


async def test_a_closed_scheduler_starts_nothing() -> None:
    gated = Gated()
    running = scheduler(gated.tool)
    batch = asyncio.create_task(running.run([call("a")]))
    await gated.started.wait()
    await running.close()
    assert "The session was closed." in (await batch)[0].text
    (result,) = await running.run([call("b")])
    assert "The session was closed." in result.text
    assert "never started" in result.text
    assert gated.runs == 1
    await running.close()


def test_closing_lets_go_of_threads_that_do_not_return() -> None:
    release = threading.Event()

    async def main() -> None:
        async def run(arguments: dict[str, Any], context: ToolContext) -> object:
            return await run_in_thread(release.wait)

        running = scheduler(make_tool(run), limits=RunLimits(timeout=0.001, grace=GRACE))
        await running.run([call()])
        assert len(other_tasks()) == 1
        await running.close()
        assert not other_tasks()

    try:
        asyncio.run(main())
    finally:
        release.set()


def test_when_the_event_loop_is_closed_every_call_still_has_its_result() -> None:
    release = threading.Event()
    kept: list[tuple[Scheduler, Watched]] = []

    async def main() -> None:
        started = asyncio.Event()

        async def stuck(arguments: dict[str, Any], context: ToolContext) -> object:
            started.set()
            return await run_in_thread(release.wait)

        watch = Watched()
        running = scheduler(make_tool(stuck, "stuck"), tool_returning("x"), limits=RunLimits(parallel=1), watch=watch)
        kept.append((running, watch))
        asyncio.get_running_loop().create_task(running.run([call("a", "stuck"), call("b")])).add_done_callback(str)
        await started.wait()

    try:
        asyncio.run(main())  # does not hang, though a thread never returns
    finally:
        release.set()
    ((running, watch),) = kept
    known = [running.known_result("a"), running.known_result("b")]
    assert [result is not None and status_of(result) for result in known] == ["error", "cancelled"]
    assert watch.states("a")[-1] == "error"
    assert watch.states("b")[-1] == "cancelled"


def test_a_single_call_that_the_end_of_the_loop_interrupts_has_its_result_too() -> None:
    kept: list[Scheduler] = []

    async def main() -> None:
        gate, journal = asyncio.Event(), Recorded()
        journal.at_end = gate.wait
        running = scheduler(tool_returning("done"), journal=journal, limits=LIMITS)
        kept.append(running)
        asyncio.get_running_loop().create_task(running.run([call()])).add_done_callback(str)
        await ticks()

    asyncio.run(main())
    known = kept[0].known_result("c1")
    assert known is not None
    assert known.content == "done"


async def test_a_function_in_a_thread_gives_back_what_it_returns_and_raises() -> None:
    def stop() -> None:
        raise StopIteration(3)

    assert await run_in_thread(divmod, 7, 2) == (3, 1)
    with pytest.raises(RuntimeError):
        await run_in_thread(stop)
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(divmod, 7, 0)
