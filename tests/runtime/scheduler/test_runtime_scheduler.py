"""The scheduler: batches, order, errors as results, resources."""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

import pytest

from support.sessions.scheduled_tools import (
    Gated,
    Watched,
    call,
    calls,
    make_tool,
    other_tasks,
    outcome,
    scheduler,
    ticks,
    tool_raising,
    tool_returning,
    was_reported,
)
from toolglot.conversation import ToolCall, ToolSpec
from toolglot.conversation.completion import status_of
from toolglot.errors import InputError
from toolglot.runtime.scheduler.progress import MAX_CHARACTERS
from toolglot.runtime.scheduler.scheduler import RunLimits, Scheduler
from toolglot.runtime.tools.threads import run_in_thread
from toolglot.runtime.tools.toolbox import Tool, ToolBox, ToolContext, ToolError

# --- a batch --------------------------------------------------------------------------------------


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


async def test_a_tool_runs_in_the_context_of_its_caller() -> None:
    where = contextvars.ContextVar("where", default="nowhere")

    async def look(arguments: dict[str, Any], context: ToolContext) -> str:
        return where.get()

    where.set("here")
    (result,) = await scheduler(make_tool(look)).run([call()])
    assert result.content == "here"


async def test_progress_is_reported_while_the_tool_runs_from_any_thread_and_not_after() -> None:
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


async def test_a_watcher_cannot_stop_what_it_watches() -> None:
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


# --- errors are results ---------------------------------------------------------------------------


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


def test_an_error_that_cannot_say_what_it_is_is_reported_by_its_type_and_a_long_one_is_cut() -> None:
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


# --- resources ------------------------------------------------------------------------------------


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


def test_the_function_that_names_resources_cannot_change_the_arguments() -> None:
    def resources(arguments: dict[str, Any]) -> list[str]:
        arguments["list"].append("more")
        return []

    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        arguments["list"].append("mine")
        return arguments["list"]

    requested = call("c1", list=["a"])
    assert outcome(make_tool(run, resources=resources), of=requested).content == '["a","mine"]'
    assert requested.arguments == {"list": ["a"]}
