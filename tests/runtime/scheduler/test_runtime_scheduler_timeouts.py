"""Tools that run too long, fail and are tried again, or ignore that they are cancelled."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from support.sessions.scheduled_tools import (
    GRACE,
    Gated,
    Watched,
    call,
    make_tool,
    on_the_file,
    other_tasks,
    outcome,
    scheduler,
    ticks,
    was_reported,
)
from toolglot.conversation.completion import status_of
from toolglot.runtime.scheduler.scheduler import RunLimits
from toolglot.runtime.tools.threads import run_in_thread
from toolglot.runtime.tools.toolbox import Output, ToolContext, ToolError

# --- timeouts and retries -------------------------------------------------------------------------


NEVER = RunLimits(timeout=0.001, grace=GRACE, retry_wait=0.0)


async def test_a_tool_that_is_known_to_stop_times_out_with_an_error() -> None:
    gated = Gated(on_timeout="error")
    (result,) = await scheduler(gated.tool, limits=NEVER).run([call()])
    assert result.is_error
    assert result.content == "The tool did not end within 0.001 seconds and was stopped."
    assert gated.contexts[0].cancelled.is_set()
    assert not other_tasks()


async def test_a_tool_that_may_have_run_times_out_with_an_unknown_outcome() -> None:
    (result,) = await scheduler(Gated(timeout=0.001).tool).run([call()])
    assert result.is_error
    assert "did not end within 0.001 seconds" in result.text
    assert "may have run" in result.text
    assert "outcome is unknown" in result.text


async def test_a_tool_without_side_effects_that_times_out_has_done_nothing() -> None:
    (result,) = await scheduler(Gated(timeout=0.001, side_effects=False).tool).run([call()])
    assert result.content == "The tool did not end within 0.001 seconds and was stopped."


@pytest.mark.parametrize(("returned", "text"), [("half of it", "Its output:\nhalf of it"), (None, "was stopped.")])
def test_what_a_tool_gives_when_its_time_is_over_is_reported(returned: object, text: str) -> None:
    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return returned
        return "never"

    result = outcome(make_tool(run), limits=NEVER)
    assert result.is_error
    assert result.text.endswith(text)


async def test_an_idempotent_tool_is_tried_again_after_an_error_and_after_a_timeout() -> None:
    contexts: list[ToolContext] = []

    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        contexts.append(context)
        if context.attempt == 1:
            raise ConnectionError("reset")
        if context.attempt == 2:
            await asyncio.Event().wait()
        return f"attempt {context.attempt}"

    watch = Watched()
    (result,) = await scheduler(make_tool(run, idempotent=True), limits=NEVER, watch=watch).run([call()])
    assert result.content == "attempt 3"
    assert watch.states() == ["validating", "scheduled", *["executing"] * 3, "success"]
    assert [change.attempt for change in watch.changes] == [1, 1, 1, 2, 3, 3]
    assert {context.call_id for context in contexts} == {"c1"}


@pytest.mark.parametrize(
    ("options", "error", "runs"),
    [
        ({"idempotent": True}, ValueError("x"), 3),
        ({"idempotent": False}, ValueError("x"), 1),
        ({"idempotent": True}, ToolError("no such file"), 1),
    ],
)
def test_only_idempotent_tools_are_tried_again_and_not_after_their_own_words(
    options: dict[str, Any], error: Exception, runs: int
) -> None:
    count = 0

    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        nonlocal count
        count += 1
        raise error

    assert outcome(make_tool(run, **options)).is_error
    assert count == runs


async def test_an_output_that_says_error_is_an_answer_and_not_tried_again() -> None:
    gated = Gated(value=Output("not found", is_error=True), idempotent=True)
    gated.gate.set()
    (result,) = await scheduler(gated.tool).run([call()])
    assert (result.is_error, result.content, gated.runs) == (True, "not found", 1)


async def test_the_waits_between_tries_double() -> None:
    loop = asyncio.get_running_loop()
    started: list[float] = []

    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        started.append(loop.time())
        raise ValueError

    await scheduler(make_tool(run, idempotent=True), limits=RunLimits(retry_wait=0.02)).run([call()])
    assert len(started) == 3
    assert started[1] - started[0] >= 0.019
    assert started[2] - started[1] >= 0.039


# --- tools that ignore their cancellation ---------------------------------------------------------


async def test_a_tool_that_swallows_its_timeout_is_left_counted_and_its_late_result_reported() -> None:
    gated = Gated(ignores_cancel=True, idempotent=True, on_timeout="error")
    running = scheduler(gated.tool, limits=NEVER)
    (result,) = await running.run([call()])
    assert "outcome is unknown" in result.text  # it did not stop, so its outcome is unknown
    assert (running.abandoned, running.running, gated.runs) == (1, 0, 1)
    assert was_reported(running, ["'tool'", "ignored its cancellation", "was abandoned"])
    assert len(other_tasks()) == 1
    gated.gate.set()
    await ticks()
    assert not other_tasks()
    assert was_reported(running, ["that was abandoned has ended", "too late"])
    assert (await running.run([call()]))[0] == result  # the late result is not used
    assert all("c1" in entry.call_ids for entry in running.entries)


async def test_a_function_in_a_thread_that_does_not_return_is_left() -> None:
    release = threading.Event()

    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        return await run_in_thread(release.wait)

    running = scheduler(make_tool(run, side_effects=False), limits=NEVER)
    (result,) = await running.run([call()])
    assert "did not end within" in result.text
    assert running.abandoned == 1
    release.set()
    await asyncio.wait(other_tasks())
    assert was_reported(running, ["has ended", "too late"])


async def test_a_function_in_a_thread_hears_of_its_cancellation_and_may_end_in_time() -> None:
    started = asyncio.Event()
    loop = asyncio.get_running_loop()

    def work(context: ToolContext) -> str:
        loop.call_soon_threadsafe(started.set)
        context.cancelled.wait()
        return "3 of 5 written"

    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        return await run_in_thread(work, context)

    running = scheduler(make_tool(run), limits=RunLimits(grace=30))
    batch = asyncio.create_task(running.run([call()]))
    await started.wait()
    running.cancel("Stopped.")
    (result,) = await batch
    assert status_of(result) == "cancelled"
    assert result.text.endswith("Its output:\n3 of 5 written")
    assert running.abandoned == 0


async def test_a_resource_of_a_tool_that_was_left_is_not_used_by_another_until_that_one_ends() -> None:
    stuck = Gated("stuck", ignores_cancel=True, resources=on_the_file, timeout=0.001)
    other = Gated("other", resources=on_the_file)
    other.gate.set()
    running = scheduler(stuck.tool, other.tool)
    results = await running.run([call("a", "stuck"), call("b", "other")])
    assert "outcome is unknown" in results[0].text
    assert "An earlier call on the same resource (a) did not end" in results[1].text
    assert "never started" in results[1].text
    assert other.runs == 0
    stuck.gate.set()
    await ticks()
    assert [result.content for result in await running.run([call("c", "other")])] == ["done"]


async def test_a_tool_that_was_left_and_fails_later_is_reported() -> None:
    gate = asyncio.Event()

    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        try:
            await gate.wait()
        except asyncio.CancelledError:
            await gate.wait()
        raise ValueError("in the end")

    running = scheduler(make_tool(run), limits=NEVER)
    await running.run([call()])
    gate.set()
    await ticks()
    assert was_reported(running, ["failed: ValueError: in the end", "too late"])
