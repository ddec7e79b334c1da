"""The result that a tool's return value becomes, and how much of it the model gets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sessions.scheduled_tools import (
    Recorded,
    Watched,
    call,
    calls,
    make_tool,
    outcome,
    scheduler,
    tool_returning,
    was_reported,
)
from toolglot.conversation import Media, Opaque, Text, ToolResult
from toolglot.conversation.completion import completion_key
from toolglot.runtime.scheduler import outcomes
from toolglot.runtime.scheduler.output_budget import MEDIA_CHARACTERS, divide, fit_result, fit_results, size
from toolglot.runtime.scheduler.scheduler import RunLimits
from toolglot.runtime.tools.toolbox import Output, ToolContext

IMAGE = Media("image", "image/png", data="aGk=")
OPAQUE = Opaque("mcp", {"type": "resource_link"}, kind="resource_link")


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (None, ""),
        ("text", "text"),
        ("half \ud83d", "half \ufffd"),
        (b"bytes", "bytes"),
        (bytearray(b"bytes"), "bytes"),
        (b"\xff\xfe", "[2 bytes that are not text]"),
        (Text("t"), (Text("t"),)),
        (IMAGE, (IMAGE,)),
        ([Text("t"), IMAGE, "s", 7, OPAQUE], (Text("t"), IMAGE, Text("s"), Text("7"), OPAQUE)),
        ((Text("t"), [IMAGE, "s"]), (Text("t"), IMAGE, Text("s"))),
        (
            (Text("t"), [[IMAGE]]),
            (Text("t"), Text('[[{"block":"media","kind":"image","media_type":"image/png","data":"aGk="}]]')),
        ),
        ((Text("t"), None, b"b"), (Text("t"), Text(""), Text("b"))),
        ([], "[]"),
        ([1, "a", None], '[1,"a",null]'),
        ({"a": 1.5}, '{"a":1.5}'),
        (7, "7"),
        (True, "true"),
        (Output("fine"), "fine"),
        (Output((IMAGE,)), (IMAGE,)),
        (Output(result={"a": 1}), '{"a":1}'),
        (Output(), ""),
    ],
)
def test_whatever_a_tool_returns_becomes_content(value: object, content: object) -> None:
    result = outcome(tool_returning(value))
    assert (result.content, result.is_error) == (content, False)


@pytest.mark.parametrize("value", [object(), {"a": object()}, 2**70 * 1j, Output(result=object())])
def test_what_cannot_be_shown_says_that_the_tool_ran(value: object) -> None:
    result = outcome(tool_returning(value))
    assert result.is_error
    assert result.text.startswith("The tool ran, and returned a ")


@pytest.mark.parametrize("part", [Text(7), Media("film"), Media("image", data=b"raw")])  # type: ignore[arg-type]
def test_parts_that_no_history_would_take_are_reported(part: Text | Media) -> None:
    result = outcome(tool_returning([Text("fine"), part]))
    assert result.is_error
    assert "what it returned cannot be shown" in result.text


def test_an_opaque_part_with_anything_in_it_does_not_break_the_batch() -> None:
    result = outcome(tool_returning(Opaque("mine", object())))
    assert isinstance(result.content, tuple)
    assert isinstance(result.content[0], Opaque)
    assert isinstance(result.content[0].value, str)


def test_a_circular_value_is_not_shown() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert outcome(tool_returning(circle)).text.startswith("The tool ran, and returned a list")


def test_the_value_behind_the_content_is_kept_as_plain_json() -> None:
    result = outcome(tool_returning(Output("two", result={"n": (1, 2)})))
    assert (result.content, result.result) == ("two", {"n": [1, 2]})
    large = outcome(tool_returning(Output("large", result=[[]] * 3_000_000)))
    assert (large.content, large.result) == ("large", None)


def test_an_output_may_say_that_it_is_an_error() -> None:
    watch = Watched()
    result = outcome(tool_returning(Output("not found", is_error=True)), watch=watch)
    assert (result.is_error, result.content) == (True, "not found")
    assert watch.states()[-1] == "error"


# --- the budget -----------------------------------------------------------------------------------------


@pytest.mark.law
@given(st.lists(st.integers(0, 500), max_size=12), st.integers(0, 2_000))
def test_a_budget_is_shared_fairly(sizes: list[int], budget: int) -> None:
    allowed = divide(sizes, budget)
    assert sum(allowed) <= max(budget, 0) or allowed == sizes
    assert all(0 <= got <= wanted for got, wanted in zip(allowed, sizes, strict=True))
    if sum(sizes) > budget:
        # No result is cut while another has more, but for the one character that cannot be shared.
        cut = [got for got, wanted in zip(allowed, sizes, strict=True) if got < wanted]
        assert min(cut) + 1 >= max(allowed)
        assert budget - sum(allowed) < max(len(cut), 1)
    else:
        assert allowed == sizes


@pytest.mark.law
@given(st.lists(st.text(max_size=300) | st.just("media"), max_size=8), st.integers(0, 900))
def test_results_within_their_budget_are_untouched_and_others_report_what_is_gone(
    texts: list[str], budget: int
) -> None:
    results = [
        ToolResult(str(n), (Text(text), IMAGE) if text == "media" else text, status="complete")
        for n, text in enumerate(texts)
    ]
    new = fit_results(results, budget)
    assert [result.call_id for result in new] == [result.call_id for result in results]
    for after, before in zip(new, results, strict=True):
        if after is not before:
            assert "left out" in after.text
            assert completion_key(after) == completion_key(before)
    if sum(map(size, results)) <= budget:
        assert new == results
    else:
        assert sum(map(size, new)) <= budget + 90 * len(results)


async def test_long_results_are_cut_in_the_middle_and_short_ones_leave_them_their_part() -> None:
    tools = [tool_returning("s" * 100, "short"), tool_returning("a" + "x" * 5_000 + "z", "long")]
    running = scheduler(*tools, limits=RunLimits(max_output=2_100))
    results = await running.run([call("1", "long"), call("2", "short"), call("3", "long")])
    assert results[1].content == "s" * 100
    for result in (results[0], results[2]):
        assert len(result.text) == 1_000
        assert result.text.startswith("ax")
        assert result.text.endswith("xz")
        assert "characters left out" in result.text
        assert result.shortened_from is not None
    assert was_reported(running, ["cut to 2100 characters"])
    assert running.entries[0].call_ids == ("1", "3")
    assert running.known_result("1") == results[0]


async def test_the_record_of_a_result_is_the_same_completion_as_the_one_that_is_published() -> None:
    journal = Recorded()
    running = scheduler(tool_returning("x" * 5_000), limits=RunLimits(max_output=2_000), journal=journal)
    results = await running.run(calls(2))
    for result in results:
        assert len(result.text) <= 1_000
        recorded = journal.results[result.call_id]
        assert len(recorded.text) <= 2_000
        assert completion_key(recorded) == completion_key(result)


async def test_a_call_that_is_there_twice_has_the_same_result_twice_whatever_is_cut() -> None:
    running = scheduler(tool_returning("x" * 5_000), limits=RunLimits(max_output=1_001))
    results = await running.run([call("a"), call("b"), call("a")])
    assert results[0] == results[2]
    again = await running.run([call("a"), call("c")])
    assert again[0] == results[0]


def test_media_count_and_are_left_out_with_a_note_where_they_do_not_fit() -> None:
    result = ToolResult("c1", (Text("look:"), IMAGE, OPAQUE, Media("document"), Text("x" * 9_000)), status="complete")
    assert size(result) == 5 + 2 * MEDIA_CHARACTERS + len('{"type":"resource_link"}') + 9_000
    assert fit_result(result, size(result)) is result
    roomy = fit_result(result, 20_000)
    assert isinstance(roomy.content, tuple)
    assert roomy.content[:4] == result.content[:4]  # type: ignore[index]
    tight = fit_result(result, 300)
    assert isinstance(tight.content, tuple)
    assert [type(part) for part in tight.content] == [Text, Text, Opaque, Text, Text]
    assert "image image/png left out" in tight.text
    assert "document left out" in tight.text
    none = fit_result(ToolResult("c1", (OPAQUE, Opaque("x", [1])), status="complete"), 2)
    assert none.text.count("left out") == 2


def test_a_result_without_content_counts_nothing() -> None:
    empty = ToolResult("c1", status="complete")
    assert size(empty) == 0
    assert fit_results([empty], 1) == [empty]


def test_a_text_that_a_note_would_make_longer_stays() -> None:
    result = ToolResult("c1", "short", status="complete")
    assert fit_result(result, 3) is result


def test_the_real_arguments_of_a_tool_are_reported_also_beside_media_and_never_at_any_length() -> None:
    one = ToolResult("c1", (IMAGE,), status="complete")
    noted = outcomes.with_executed_arguments(one, {"path": "x" * 100_000})
    assert isinstance(noted.content, tuple)
    assert noted.content[1] == IMAGE
    assert len(noted.text) < 2_200
    assert noted.executed_arguments == {"path": "x" * 100_000}


def test_media_that_a_cancelled_tool_gives_are_kept() -> None:
    one = call()
    assert outcomes.cancellation(one, "Stopped.", (IMAGE,)).content == (
        Text("Stopped. The tool was stopped while it ran; what it had done until then stays done. Its output:\n"),
        IMAGE,
    )


def test_a_tool_may_use_its_arguments_as_it_likes() -> None:
    async def run(arguments: dict[str, Any], context: ToolContext) -> object:
        arguments.clear()
        return "ok"

    original = call("c1", a=[1])
    assert outcome(make_tool(run), of=original).content == "ok"
    assert original.arguments == {"a": [1]}
