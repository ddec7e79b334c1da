"""The scheduler: batches, order, resources, timeouts, retries, duplicates, the journal."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sessions.scheduled_tools import (
    GRACE,
    Gated,
    Recorded,
    Watched,
    call,
    calls,
    make_tool,
    on_the_file,
    other_tasks,
    outcome,
    reasons,
    scheduler,
    ticks,
    tool_raising,
    tool_returning,
    was_reported,
)
from toolglot.conversation import Media, Text, ToolCall, ToolResult, ToolSpec
from toolglot.conversation.completion import completion_key, status_of
from toolglot.errors import InputError
from toolglot.runtime.scheduler.known_calls import RUN_BEFORE, KnownCallLimits, KnownCalls, size_of
from toolglot.runtime.scheduler.progress import MAX_CHARACTERS
from toolglot.runtime.scheduler.scheduler import RunLimits, Scheduler
from toolglot.runtime.tools.threads import run_in_thread
from toolglot.runtime.tools.toolbox import Output, Tool, ToolBox, ToolContext, ToolError

# --- a batch --------------------------------------------------------------------------------------------


def test_a_call_goes_through_its_states_to_success() -> None:
    watch = Watched()
    result = outcome(tool_returning("sunny"), watch=watch)
    assert watch.states() == ["validating", "scheduled", "executing", "success"]
    assert (result.call_id, result.content, result.name, result.is_error) == ("c1", "sunny", "tool", False)
    assert status_of(result) == "complete"
    assert watch.changes[-1].result == result


async def test_a_whole_turn_runs_side_by_side_and_its_results_are_in_call_order() -> None:
    slow, fast = Gated("slow", value="slow"), Gated("fast", value="fast")
    watch = Watched()
    running = scheduler(slow.tool, fast.tool, watch=watch)
    batch = asyncio.create_task(running.run([call("a", "slow"), call("b", "fast")]))
    await slow.started.wait()
    await fast.started.wait()
    assert running.running == 2
    fast.gate.set()
    await ticks()
    assert watch.states("b")[-1] == "success"  # states are reported as they come
    slow.gate.set()
    assert [(result.call_id, result.content) for result in await batch] == [("a", "slow"), ("b", "fast")]
    assert running.running == 0
    assert not other_tasks()


@pytest.mark.parametrize("parallel", [1, 3])
async def test_no_more_than_the_limit_run_at_once_and_they_start_in_call_order(parallel: int) -> None:
    gated = Gated()
    running = scheduler(gated.tool, limits=RunLimits(parallel=parallel))
    batch = asyncio.create_task(running.run(calls(7)))
    await ticks()
    assert gated.active == parallel
    gated.gate.set()
    await batch
    assert gated.max_active == parallel
    assert gated.order == [f"c{number}" for number in range(7)]


async def test_a_batch_waits_for_the_one_before_it() -> None:
    first, second = Gated("first"), Gated("second")
    running = scheduler(first.tool, second.tool)
    one = asyncio.create_task(running.run([call("a", "first")]))
    await first.started.wait()
    two = asyncio.create_task(running.run([call("b", "second")]))
    three = asyncio.create_task(running.run([call("c", "second")]))
    await ticks()
    assert second.runs == 0
    first.gate.set()
    second.gate.set()
    results = [result.call_id for batch in await asyncio.gather(one, two, three) for result in batch]
    assert results == ["a", "b", "c"]
    assert second.order == ["b", "c"]


async def test_an_empty_batch_has_no_results() -> None:
    running = scheduler()
    assert await running.run([]) == ()
    assert await running.last_results() == ()


async def test_a_tool_that_is_only_a_definition_is_left_to_the_caller() -> None:
    watch = Watched()
    running = scheduler(Tool(spec=ToolSpec("theirs")), tool_returning("mine", "mine"), watch=watch)
    results = await running.run([call("a", "theirs"), call("b", "mine"), call("c", "theirs")])
    assert [result.call_id for result in results] == ["b"]
    assert watch.states("a") == []


async def test_calls_beyond_the_limit_of_a_batch_are_refused() -> None:
    gated = Gated()
    gated.gate.set()
    results = await scheduler(gated.tool, limits=RunLimits(max_calls=2)).run(calls(4))
    assert [result.is_error for result in results] == [False, False, True, True]
    assert "no more than 2 calls" in results[3].text
    assert gated.runs == 2


def test_what_is_no_call_is_the_callers_mistake() -> None:
    with pytest.raises(InputError, match=r"calls\[1\]"):
        asyncio.run(scheduler().run([call(), "call"]))  # type: ignore[list-item]
    with pytest.raises(InputError, match=r"calls\[0\]"):
        asyncio.run(scheduler().run([ToolCall([], "tool")]))  # type: ignore[arg-type]


async def test_a_tool_knows_its_call_its_session_and_its_attempt() -> None:
    gated = Gated()
    gated.gate.set()
    session = object()
    box = ToolBox([gated.tool])
    await Scheduler(box, session_id="s9", session=session).run([call("id7")])
    (context,) = gated.contexts
    known = (context.call_id, context.tool, context.session_id, context.attempt, context.session)
    assert known == ("id7", "tool", "s9", 1, session)
    assert not context.cancelled.is_set()


async def test_a_tool_runs_in_the_context_of_whoever_asked() -> None:
    where = contextvars.ContextVar("where", default="nowhere")

    async def look(arguments: dict[str, Any], context: ToolContext) -> str:
        return where.get()

    where.set("here")
    (result,) = await scheduler(make_tool(look)).run([call()])
    assert result.content == "here"


async def test_progress_is_told_while_the_tool_runs_from_any_thread_and_not_after() -> None:
    watch = Watched()
    kept: list[ToolContext] = []

    def work(context: ToolContext) -> str:
        context.progress("from a thread")
        return "done"

    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        kept.append(context)
        context.progress("x" * 100_000)
        return await run_in_thread(work, context)

    (result,) = await scheduler(make_tool(run), watch=watch).run([call()])
    kept[0].progress("too late")
    messages = [change.progress for change in watch.changes if change.progress]
    assert messages == ["x" * MAX_CHARACTERS, "from a thread"]
    assert result.content == "done"


def test_progress_after_the_loop_is_closed_goes_nowhere() -> None:
    kept: list[ToolContext] = []

    async def run(arguments: dict[str, Any], context: ToolContext) -> None:
        kept.append(context)

    assert outcome(make_tool(run)).content == ""
    kept[0].progress("hello?")


async def test_whoever_watches_cannot_stop_what_it_watches() -> None:
    def watch(change: object) -> None:
        raise ValueError("no screen")

    running = Scheduler(ToolBox([tool_returning("fine")]), watch=watch)
    results = await running.run(calls(3))
    assert [result.content for result in results] == ["fine"] * 3
    assert len(running.entries) == 1
    assert was_reported(running, ["the watch callback raised", "ValueError: no screen"])


async def test_a_tool_cannot_wait_for_its_own_scheduler() -> None:
    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        assert isinstance(context.session, list)
        return await context.session[0].run([call("inner")])

    session: list[Scheduler] = []
    running = Scheduler(ToolBox([make_tool(run)]), session=session)
    session.append(running)
    (result,) = await running.run([call("outer")])
    assert result.is_error
    assert "cannot wait for calls of its own scheduler" in result.text


# --- errors are results ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad value"), "ValueError: bad value"),
        (ToolError("The file is not there."), "The file is not there."),
        (ToolError(""), "The tool did not work."),
        (KeyError(), "KeyError"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (BaseException("raw"), "BaseException: raw"),
        (GeneratorExit(), "GeneratorExit"),
        (ExceptionGroup("many", [ValueError("a"), KeyError("b")]), "ValueError: a; KeyError: 'b'"),
        (ExceptionGroup("more", [KeyError(n) for n in range(5)]), "KeyError: 0; KeyError: 1; KeyError: 2; …"),
    ],
)
def test_whatever_a_tool_raises_is_a_result(error: BaseException, text: str) -> None:
    watch = Watched()
    result = outcome(tool_raising(error), watch=watch)
    assert (result.is_error, result.content) == (True, text)
    assert status_of(result) == "error"
    assert watch.states()[-1] == "error"


def test_an_error_that_cannot_say_what_it_is_is_told_by_its_type_and_a_long_one_is_cut() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert outcome(tool_raising(MuteError())).content == "MuteError"
    long = outcome(tool_raising(ValueError("x" * 1_000_000))).text
    assert len(long) < 2_100
    assert "characters left out" in long


async def test_a_tool_that_is_no_coroutine_or_cancels_itself_fails_alone() -> None:
    async def itself(arguments: dict[str, Any], context: ToolContext) -> object:
        raise asyncio.CancelledError

    def plain(arguments: dict[str, Any], context: ToolContext) -> Any:
        return "not awaited"

    running = scheduler(make_tool(itself, "itself"), make_tool(plain, "plain"), tool_returning("fine", "fine"))
    results = await running.run([call("a", "itself"), call("b", "plain"), call("c", "fine")])
    assert [result.is_error for result in results] == [True, True, False]
    assert "cancelled, and not by its caller" in results[0].text
    assert "TypeError" in results[1].text


class Undecided:
    """Something that is neither true nor false."""

    def __bool__(self) -> bool:
        raise SystemExit("which?")


class BrokenBox(ToolBox):
    """A box that cannot list what is in it."""

    def __iter__(self) -> Any:
        raise ZeroDivisionError


async def test_a_fault_while_a_call_is_served_costs_one_call() -> None:
    hostile = tool_raising(ValueError("no"), "hostile", idempotent=Undecided())
    running = scheduler(hostile, tool_returning("fine", "fine"))
    results = await running.run([call("a", "hostile"), call("b", "fine")])
    assert "SystemExit" in results[0].text
    assert "may have run" in results[0].text
    assert results[1].content == "fine"
    assert was_reported(running, ["serving a call failed", "SystemExit"])


async def test_a_fault_while_calls_are_checked_costs_one_call() -> None:
    running = Scheduler(BrokenBox([tool_returning("fine", "fine")]))
    results = await running.run([call("a", "unknown"), call("b", "fine")])
    assert "ZeroDivisionError" in results[0].text
    assert "never started" in results[0].text
    assert results[1].content == "fine"


# --- resources ------------------------------------------------------------------------------------------


def by_argument(arguments: dict[str, Any]) -> list[str]:
    return list(arguments["uses"])


async def test_calls_on_the_same_resource_run_one_after_another_in_call_order() -> None:
    gated = Gated(resources=by_argument)
    running = scheduler(gated.tool)
    requested = [call("a", uses=["x"]), call("b", uses=["x"]), call("c", uses=["y"]), call("d", uses=["x", "y"])]
    batch = asyncio.create_task(running.run(requested))
    await ticks()
    assert gated.order == ["a", "c"]
    gated.gate.set()
    assert [result.call_id for result in await batch] == ["a", "b", "c", "d"]
    assert gated.order == ["a", "c", "b", "d"]


async def test_calls_that_name_several_resources_never_wait_for_each_other_for_ever() -> None:
    gated = Gated(resources=by_argument)
    gated.gate.set()
    requested = [call(f"c{n}", uses=["a", "b", "c"][n % 3 :] + ["a", "b", "c"][: n % 3]) for n in range(30)]
    results = await scheduler(gated.tool).run(requested)
    assert [result.content for result in results] == ["done"] * 30
    assert gated.max_active == 1


async def test_a_single_text_is_one_resource() -> None:
    gated = Gated(resources=lambda arguments: arguments["path"])
    running = scheduler(gated.tool)
    batch = asyncio.create_task(running.run([call("a", path="ab"), call("b", path="ba"), call("c", path="ab")]))
    await ticks()
    assert gated.order == ["a", "b"]
    gated.gate.set()
    await batch


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        (lambda _: [1], "expected a string"),
        (lambda arguments: arguments["missing"], "KeyError: 'missing'"),
        (lambda _: iter(lambda: "x", ""), "more than 1000 resources"),
    ],
)
def test_resources_that_cannot_be_found_out_refuse_the_call(resources: Any, text: str) -> None:
    result = outcome(tool_returning("ran", resources=resources))
    assert result.is_error
    assert text in result.text
    assert "was not run" in result.text


def test_whoever_names_resources_cannot_change_the_arguments() -> None:
    def resources(arguments: dict[str, Any]) -> list[str]:
        arguments["list"].append("more")
        return []

    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        arguments["list"].append("mine")
        return arguments["list"]

    requested = call("c1", list=["a"])
    assert outcome(make_tool(run, resources=resources), of=requested).content == '["a","mine"]'
    assert requested.arguments == {"list": ["a"]}


# --- timeouts and retries -------------------------------------------------------------------------------

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


@pytest.mark.parametrize(("given", "text"), [("half of it", "Its output:\nhalf of it"), (None, "was stopped.")])
def test_what_a_tool_gives_when_its_time_is_over_is_told(given: object, text: str) -> None:
    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return given
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


# --- tools that ignore their cancellation -----------------------------------------------------------------


async def test_a_tool_that_swallows_its_timeout_is_left_counted_and_its_late_result_reported() -> None:
    gated = Gated(ignores_cancel=True, idempotent=True, on_timeout="error")
    running = scheduler(gated.tool, limits=NEVER)
    (result,) = await running.run([call()])
    assert "outcome is unknown" in result.text  # it did not stop, so nobody knows
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


async def test_a_tool_that_was_left_and_fails_later_is_told() -> None:
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


# --- duplicates -----------------------------------------------------------------------------------------


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


# --- the journal ----------------------------------------------------------------------------------------


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
async def test_a_result_that_cannot_be_recorded_is_published_and_told(fault: Any, text: str) -> None:
    journal = Recorded()
    journal.at_end = fault
    running = scheduler(tool_returning("done"), journal=journal)
    (result,) = await running.run([call()])
    assert result.content == "done"
    assert was_reported(running, ["a result could not be recorded", text])
    assert running.entries[0].fault == "loss"


# --- the limits -----------------------------------------------------------------------------------------


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
