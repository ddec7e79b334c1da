"""Approvals: when they are requested, and that only a decision that allows it lets a call run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from support.sessions.scheduled_tools import (
    Gated,
    Recorded,
    Watched,
    call,
    calls,
    make_tool,
    outcome,
    scheduler,
    ticks,
    tool_returning,
    was_reported,
)
from toolglot.conversation import ToolCall
from toolglot.conversation.completion import status_of
from toolglot.runtime.scheduler.approvals import Allow, AllowAlways, Approve, Decision, Deny, Edit
from toolglot.runtime.tools.toolbox import Tool, ToolContext

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def echo(arguments: dict[str, Any], context: ToolContext) -> object:
    return {"got": arguments}


def answering(*decisions: object, questions: list[str] | None = None) -> Approve:
    """Answers with one after another; the last one for ever."""
    left = list(decisions)

    async def approve(call: ToolCall, tool: Tool, arguments: dict[str, Any]) -> Decision:
        if questions is not None:
            questions.append(call.id)
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer  # type: ignore[return-value]

    return approve


def test_a_call_that_is_allowed_runs() -> None:
    watch = Watched()
    result = outcome(tool_returning("ran", approval=True), approve=answering(Allow()), watch=watch)
    assert result.content == "ran"
    assert watch.states() == ["validating", "awaiting_approval", "scheduled", "executing", "success"]


def test_a_tool_that_needs_no_approval_raises_no_question() -> None:
    questions: list[str] = []
    assert outcome(tool_returning("ran"), approve=answering(Deny(), questions=questions)).content == "ran"
    assert questions == []


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Deny("too dangerous"), "Reason: too dangerous"),
        (Deny(), "the tool was not run."),
        (Deny(7), "the tool was not run."),  # type: ignore[arg-type]
        (True, "returned a bool"),
        (None, "returned a NoneType"),
        (ValueError("secret"), "failed (ValueError)"),
        (SystemExit(), "failed (SystemExit)"),
    ],
)
def test_whatever_is_no_leave_denies(answer: object, text: str) -> None:
    watch = Watched()
    result = outcome(tool_returning("ran", approval=True), approve=answering(answer), watch=watch)
    assert result.is_error
    assert result.text.startswith("This call was not allowed, and the tool was not run.")
    assert result.text.endswith(text) or text in result.text
    assert watch.states() == ["validating", "awaiting_approval", "error"]
    assert "secret" not in result.text


def test_without_an_approver_a_tool_that_needs_an_approval_is_not_run() -> None:
    result = outcome(tool_returning("ran", approval=True))
    assert result.is_error
    assert "no approval callback" in result.text


def test_a_question_that_is_cancelled_starts_nothing() -> None:
    result = outcome(tool_returning("ran", approval=True), approve=answering(asyncio.CancelledError()))
    assert status_of(result) == "cancelled"
    assert result.text.startswith("The approval callback was cancelled.")
    assert "never started" in result.text


async def test_allow_always_is_for_this_tool_in_this_session_and_not_for_another_of_its_name() -> None:
    questions: list[str] = []
    gated = Gated("gated", approval=True)
    gated.gate.set()
    approve = answering(AllowAlways(), Deny("no"), questions=questions)
    running = scheduler(gated.tool, tool_returning("x", "other", approval=True), approve=approve)
    results = await running.run([call("a", "gated"), call("b", "gated"), call("c", "other")])
    assert [result.is_error for result in results] == [False, False, True]
    await running.run([call("d", "gated")])
    assert questions == ["a", "c"]
    running.tools.replace(tool_returning("another", "gated", approval=True))
    (result,) = await running.run([call("e", "gated")])
    assert questions == ["a", "c", "e"]
    assert result.is_error


async def test_questions_come_one_at_a_time_in_call_order_while_others_run() -> None:
    free, guarded = Gated("free"), Gated("guarded", approval=True)
    guarded.gate.set()
    gates = {id: asyncio.Event() for id in ("b", "d")}
    questions: list[str] = []

    async def approve(call: ToolCall, tool: Tool, arguments: dict[str, Any]) -> Decision:
        questions.append(call.id)
        await gates[call.id].wait()
        return Allow()

    watch = Watched()
    running = scheduler(free.tool, guarded.tool, approve=approve, watch=watch)
    asks = [call("a", "free"), call("b", "guarded"), call("c", "free"), call("d", "guarded"), call("e", "nobody")]
    batch = asyncio.create_task(running.run(asks))
    await ticks()
    assert free.order == ["a", "c"]
    assert questions == ["b"]
    assert watch.states("d") == ["validating"]
    gates["d"].set()
    await ticks()
    assert questions == ["b"]
    gates["b"].set()
    await ticks()
    assert questions == ["b", "d"]
    assert guarded.order == ["b", "d"]
    free.gate.set()
    assert [result.call_id for result in await batch] == ["a", "b", "c", "d", "e"]


async def test_a_call_that_awaits_approval_keeps_its_position_in_the_queue_of_its_resource() -> None:
    gate = asyncio.Event()

    async def approve(call: ToolCall, tool: Tool, arguments: dict[str, Any]) -> Decision:
        await gate.wait()
        return Edit({"path": "b"})

    order: list[str] = []

    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        order.append(context.call_id)
        return arguments["path"]

    guarded = make_tool(run, "guarded", approval=True, resources=lambda arguments: [arguments["path"]])
    free = make_tool(run, "free", resources=lambda arguments: [arguments["path"]])
    running = scheduler(guarded, free, approve=approve)
    asks = [call("1", "guarded", path="a"), call("2", "free", path="a"), call("3", "free", path="b")]
    batch = asyncio.create_task(running.run(asks))
    await ticks()
    assert order == ["3"]
    gate.set()
    await batch
    assert sorted(order) == ["1", "2", "3"]


# --- edited arguments -----------------------------------------------------------------------------------


async def test_law_11_edited_arguments_are_run_recorded_and_reported() -> None:
    journal, watch = Recorded(), Watched()
    running = scheduler(
        make_tool(echo, parameters=SCHEMA, approval=True),
        approve=answering(Edit({"n": 2})),
        journal=journal,
        watch=watch,
    )
    questions = call("c1", n=1)
    (result,) = await running.run([questions])
    assert result.executed_arguments == {"n": 2}
    assert result.text.startswith('[The tool ran with other arguments than this call shows: {"n":2}]')
    assert result.text.endswith('{"got":{"n":2}}')
    assert journal.arguments == {"c1": {"n": 2}}
    assert questions.arguments == {"n": 1}
    assert watch.states() == [*("validating", "awaiting_approval", "validating", "scheduled", "executing", "success")]
    assert was_reported(running, ["got other arguments"])


def test_an_edit_that_changes_nothing_is_not_reported() -> None:
    tool = make_tool(echo, parameters=SCHEMA, approval=True)
    result = outcome(tool, of=call("c1", n=1), approve=answering(Edit({"n": 1})))
    assert result.executed_arguments is None
    assert result.content == '{"got":{"n":1}}'


def test_an_edit_back_to_what_was_unwrapped_is_still_not_what_the_model_wrote() -> None:
    questions = ToolCall("c1", "tool", {"n": 1}, raw_input='"{\\"n\\": 1}"')
    result = outcome(make_tool(echo, approval=True), of=questions, approve=answering(Edit({"n": 1})))
    assert result.executed_arguments == {"n": 1}


def test_one_and_true_are_not_the_same_arguments() -> None:
    result = outcome(make_tool(echo, approval=True), of=call("c1", n=1), approve=answering(Edit({"n": True})))
    assert result.executed_arguments == {"n": True}


@pytest.mark.parametrize(
    ("edited", "text"),
    [
        ({"n": "two"}, "$.n: the value is not of type \"integer\"; got the string 'two'"),
        ({}, '"n" is a required property'),
        ("n=2", "expected a JSON object"),
        ({"n": [[]] * 3_000_000}, "max_nodes"),
    ],
)
def test_edited_arguments_are_validated_again(edited: Any, text: str) -> None:
    watch = Watched()
    tool = make_tool(echo, parameters=SCHEMA, approval=True)
    result = outcome(tool, of=call("c1", n=1), approve=answering(Edit(edited)), watch=watch)
    assert result.is_error
    assert text in result.text
    assert "that the user edited" in result.text
    assert watch.states() == ["validating", "awaiting_approval", "validating", "error"]


def test_edited_arguments_whose_resources_cannot_be_found_out_are_refused() -> None:
    tool = make_tool(echo, approval=True, resources=lambda arguments: [arguments["path"]])
    result = outcome(tool, of=call("c1", path="a"), approve=answering(Edit({})))
    assert "could not be determined (KeyError: 'path')" in result.text


def test_the_text_of_a_free_text_tool_can_be_edited() -> None:
    tool = make_tool(echo, type="custom", approval=True)
    questions = ToolCall("c1", "tool", None, type="custom", raw_input="rm -r /")
    result = outcome(tool, of=questions, approve=answering(Edit({"input": "ls /"})))
    assert result.executed_arguments == {"input": "ls /"}
    same = outcome(tool, of=questions, approve=answering(Edit({"input": "rm -r /"})))
    assert same.executed_arguments is None
    other = outcome(tool, of=questions, approve=answering(Edit({"text": "ls /"})))
    assert "$.input: expected one string" in other.text


def test_the_approver_cannot_change_what_runs() -> None:
    async def approve(call: ToolCall, tool: Tool, arguments: dict[str, Any]) -> Decision:
        arguments["n"] = 9
        return Allow()

    assert outcome(make_tool(echo, approval=True), of=call("c1", n=1), approve=approve).content == '{"got":{"n":1}}'


async def test_edited_arguments_that_were_never_run_are_not_called_executed() -> None:
    async def approve(call: ToolCall, tool: Tool, arguments: dict[str, Any]) -> Decision:
        running.cancel()
        return Edit({"n": 2})

    running = scheduler(make_tool(echo, approval=True), approve=approve)
    results = await running.run(calls(2))
    assert [result.executed_arguments for result in results] == [None, None]
    assert all("never started" in result.text for result in results)
