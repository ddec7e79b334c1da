"""Hostile tools: values and exceptions that do harm when they are read, endless progress, tools that never begin."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from support.sessions.scheduled_tools import (
    GRACE,
    Gated,
    Watched,
    call,
    make_tool,
    outcome,
    scheduler,
    ticks,
    tool_raising,
    tool_returning,
    was_reported,
)
from toolglot.conversation import Media, Opaque, Text, ToolCall
from toolglot.runtime.scheduler.progress import BURST, MAX_CHARACTERS, ProgressThrottle
from toolglot.runtime.scheduler.scheduler import RunLimits
from toolglot.runtime.tools.output import MAX_PARTS, NOT_FINITE, read_output
from toolglot.runtime.tools.threads import run_in_thread
from toolglot.runtime.tools.toolbox import Output, Tool, ToolContext, ToolError

ENDINGS = [SystemExit("out"), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError(), ValueError("plain")]


def harmful(error: BaseException) -> list[object]:
    """Values that raise when they are read."""

    def fail(*_: object) -> Any:
        raise error

    untyped = type("Untyped", (), {"__class__": property(fail)})()
    listed = type("Listed", (list,), {"__iter__": fail})([Text("x")])
    tupled = type("Tupled", (tuple,), {"__iter__": fail})((Text("x"),))
    unreadable = type("Unreadable", (Output,), {"content": property(fail)})
    return [
        untyped,
        listed,
        tupled,
        object.__new__(unreadable),
        [Text("fine"), untyped],
        Output("x", is_error=_Bool(error)),  # type: ignore[arg-type]
    ]


class _Bool:
    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __bool__(self) -> bool:
        raise self._error


@pytest.mark.parametrize("error", ENDINGS, ids=lambda error: type(error).__name__)
async def test_whatever_a_value_raises_while_it_is_read_costs_one_result(error: BaseException) -> None:
    for value in harmful(error):
        running = scheduler(tool_returning(value, "bad"), tool_returning("fine", "good"))
        bad, good = await running.run([call("a", "bad"), call("b", "good")])
        assert bad.is_error
        assert "The tool ran, and returned a " in bad.text
        assert good.content == "fine"


@pytest.mark.parametrize("error", ENDINGS, ids=lambda error: type(error).__name__)
def test_an_exception_that_raises_when_it_is_read_is_reported_by_its_type(error: BaseException) -> None:
    def fail(*_: object) -> Any:
        raise error

    untold = type("Untold", (Exception,), {"__str__": fail})
    wrong = type("Wrong", (ToolError,), {"message": property(fail, lambda *_: None)})
    untyped = type("Untyped", (Exception,), {"__class__": property(fail)})
    group = type("Group", (ExceptionGroup,), {"exceptions": property(fail)})
    raised = {"Untold": untold(), "Wrong": wrong("x"), "Untyped": untyped(), "Group": group("g", [ValueError()])}
    for name, problem in raised.items():
        assert outcome(tool_raising(problem)).content == name
    mixed = ExceptionGroup("g", [untold(), ValueError("two")])
    assert outcome(tool_raising(mixed)).content == "Untold; ValueError: two"


def test_groups_of_groups_are_opened_only_so_far() -> None:
    problem: Exception = ValueError("in the middle")
    for _ in range(5_000):
        problem = ExceptionGroup("around", [problem])
    assert outcome(tool_raising(problem)).text.startswith("ExceptionGroup: around")


@pytest.mark.parametrize("error", ENDINGS, ids=lambda error: type(error).__name__)
def test_resources_that_raise_anything_refuse_the_call(error: BaseException) -> None:
    def uses(_: dict[str, Any]) -> Iterator[str]:
        yield "one"
        raise error

    result = outcome(tool_returning("x", resources=uses))
    assert result.is_error
    assert "was not run" in result.text


def test_an_answer_that_hides_its_type_denies() -> None:
    async def approve(call_: ToolCall, tool: Tool, arguments: dict[str, Any]) -> Any:
        return harmful(SystemExit("out"))[0]

    result = outcome(tool_returning("x", approval=True), approve=approve)
    assert "returned a Untyped, which is not a decision" in result.text


async def test_a_value_from_a_thread_that_hides_its_type_comes_through() -> None:
    untyped = harmful(SystemExit("out"))[0]
    assert await run_in_thread(lambda: untyped) is untyped


# --- values that can be shown in another way -----------------------------------------------------------


@dataclass
class Row:
    name: object


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ({"a": "x\ud800y"}, '{"a":"x\ufffdy"}'),
        ({"k\ud800": "v\udfff"}, '{"k\ufffd":"v\ufffd"}'),
        (["\ud83d", {"n": None}], '["\ufffd",{"n":null}]'),
        (Row("\ud83d"), '{"name":"\ufffd"}'),
        (Output(result={"a": "\ud83d"}), '{"a":"\ufffd"}'),
        ([Text("t"), {"a": "\ud83d"}], (Text("t"), Text('{"a":"\ufffd"}'))),
        ([Text("\ud83d")], (Text("\ufffd"),)),
    ],
)
async def test_half_a_character_is_fixed_wherever_it_is_and_reported(value: object, content: object) -> None:
    running = scheduler(tool_returning(value))
    (result,) = await running.run([call()])
    assert (result.content, result.is_error) == (content, False)
    assert was_reported(running, ["changed"])
    assert running.entries[0].call_ids == ("c1",)


async def test_numbers_that_are_not_finite_are_reported() -> None:
    running = scheduler(tool_returning({"a": math.nan, "b": [None, -math.inf]}), tool_returning({"a": None}, "plain"))
    result, plain = await running.run([call(), call("c2", "plain")])
    assert result.content == '{"a":null,"b":[null,null]}\n' + NOT_FINITE
    assert plain.content == '{"a":null}'
    assert [entry.call_ids for entry in running.entries] == [("c1",)]
    assert was_reported(running, ["not finite became null"])


def test_a_part_that_cannot_be_shown_makes_an_error_of_the_result_and_the_others_are_shown() -> None:
    circle: list[Any] = [Text("in it")]
    circle += [circle, circle]
    for part in (object(), {"a": object()}, Text(7), Media("film"), ["\ud800", [[]] * 3_000_000]):  # type: ignore[arg-type]
        result = outcome(tool_returning(["before", part, Text("after")]))
        assert result.is_error
        assert result.text.startswith("before")
        assert "cannot be shown" in result.text
        assert result.text.endswith("after")
    assert outcome(tool_returning(circle)).is_error
    assert outcome(tool_returning([Text("x")] * (MAX_PARTS + 1))).is_error


# --- unreadable media -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("media", "message"),
    [
        (Media("image", "image/png", data="not base64\x00"), "[image image/png: it is not shown, because its data are"),
        (Media("image", "image/png", data="ä==="), "its data are not base64"),
        (Media("image", "image/png", data="A"), "its data are not base64"),
        (Media("image", "image/png", data=""), "it is empty"),
        (Media("image", "image/png"), "it is empty"),
        (Media("image", data="AAAA"), "its type is not known"),
        (Media("image", "x", data="AAAA"), "its type is not known"),
        (
            Media("image", url="file:///etc/passwd"),
            "[image 'file:///etc/passwd': it is not shown, because a provider cannot open its URL",
        ),
        (Media("image", url="no address"), "a provider cannot open its URL"),
        (Media("image", url="data:image/png;base64,%%%"), "its data are not base64"),
    ],
)
async def test_unreadable_media_become_a_text_that_says_so_and_are_reported(media: Media, message: str) -> None:
    running = scheduler(tool_returning([Text("look: "), media]))
    (result,) = await running.run([call()])
    assert not result.is_error
    assert isinstance(result.content, tuple)
    assert all(isinstance(part, Text) for part in result.content)
    assert message in result.text
    assert was_reported(running, ["a medium of the output is not shown"])


@pytest.mark.parametrize(
    ("media", "shown"),
    [
        (Media("image", "image/png", data="aGk="), Media("image", "image/png", data="aGk=")),
        (Media("image", "image/png", data="_-8"), Media("image", "image/png", data="/+8=")),
        (Media("image", "image/png", data="aG\nk=\n"), Media("image", "image/png", data="aGk=")),
        (Media("image", data="iVBORw0KGgo="), Media("image", "image/png", data="iVBORw0KGgo=")),
        (Media("image", url="data:image/png;base64,aGk="), Media("image", "image/png", data="aGk=")),
        (Media("image", url="https://example.com/a"), Media("image", url="https://example.com/a")),
        (Media("file", file_id="file-1"), Media("file", file_id="file-1")),
    ],
)
def test_a_medium_that_can_be_read_is_shown(media: Media, shown: Media) -> None:
    assert outcome(tool_returning(media)).content == (shown,)


def test_what_was_changed_in_an_opaque_part_is_reported() -> None:
    assert read_output(Opaque("mine", {"a": math.nan})).notes[0].startswith("a part of the output was changed")


# --- progress -------------------------------------------------------------------------------------------


def talking(count: int, text: str) -> Callable[[ToolContext], None]:
    def talk(context: ToolContext) -> None:
        for number in range(count):
            context.progress(f"{number} {text}")

    return talk


@pytest.mark.parametrize("in_a_thread", [False, True])
async def test_a_tool_that_floods_progress_is_reported_a_few_times_and_its_last_message_always(
    in_a_thread: bool,
) -> None:
    talk = talking(20_000, "p" * 10_000)

    async def run(arguments: dict[str, Any], context: ToolContext) -> None:
        if in_a_thread:
            await run_in_thread(talk, context)
        else:
            talk(context)

    watch = Watched()
    await scheduler(make_tool(run), watch=watch).run([call()])
    messages = [change.progress for change in watch.changes if change.progress]
    assert 1 <= len(messages) < 10 * BURST
    assert messages[-1].startswith("19999 ")
    assert all(len(text) <= MAX_CHARACTERS for text in messages)
    assert watch.changes[-1].state == "success"


async def test_a_tool_that_goes_on_is_reported_again_after_a_while_with_its_last_message() -> None:
    received: list[str] = []
    came = asyncio.Event()

    def hear(text: str) -> None:
        received.append(text)
        if text == "last":
            came.set()

    progress = ProgressThrottle(asyncio.get_running_loop(), hear)
    for number in range(BURST + 5):
        progress.report(number)
    assert received == [str(number) for number in range(BURST)]
    progress.report("last")
    await asyncio.wait_for(came.wait(), 120)
    assert len(received) == BURST + 1
    progress.report("end")
    progress.end()
    progress.end()
    progress.report("too late")
    await ticks()
    assert received[BURST:] == ["last", "end"]


async def test_what_a_thread_says_at_the_end_is_reported_before_the_end_and_half_characters_are_fixed() -> None:
    received: list[str] = []
    progress = ProgressThrottle(asyncio.get_running_loop(), received.append)

    def talk() -> None:
        progress.report("one")
        progress.report("two \ud83d")

    thread = threading.Thread(target=talk)
    thread.start()
    thread.join()
    assert received == []
    progress.end()
    await ticks()
    assert received == ["one", "two \ufffd"]


# --- tools that have not begun --------------------------------------------------------------------------


def waiting_for(what: str) -> Callable[[dict[str, Any], ToolContext], Any]:
    async def run(arguments: dict[str, Any], context: ToolContext) -> None:
        context.waits_for = what
        await asyncio.Event().wait()

    return run


def test_a_tool_that_ran_out_of_time_before_it_began_was_never_started() -> None:
    result = outcome(make_tool(waiting_for("The server was still starting"), timeout=0.01))
    assert result.text.startswith("The server was still starting after 0.01 seconds. The tool was never started")
    assert result.status == "error"


async def test_a_tool_that_is_cancelled_before_it_began_was_never_started() -> None:
    started = asyncio.Event()
    wait = waiting_for("The server was still starting")

    async def run(arguments: dict[str, Any], context: ToolContext) -> None:
        started.set()
        await wait(arguments, context)

    running = scheduler(make_tool(run))
    waiting = asyncio.create_task(running.run([call()]))
    await started.wait()
    running.cancel("Enough.")
    (result,) = await waiting
    assert result.status == "cancelled"
    assert result.text == "Enough. The tool was never started: nothing was done."


async def test_a_tool_that_ignores_its_end_may_have_run_whatever_it_says() -> None:
    stuck = Gated(ignores_cancel=True, timeout=0.01)
    running = scheduler(stuck.tool, limits=RunLimits(grace=GRACE))
    waiting = asyncio.create_task(running.run([call()]))
    await stuck.started.wait()
    stuck.contexts[0].waits_for = "It was still starting"
    (result,) = await waiting
    assert "outcome is unknown" in result.text
    stuck.gate.set()
    await ticks()
