"""The arguments that a tool gets, and what the model reads if it gets none."""

from __future__ import annotations

from typing import Any

import pytest

from support.counted_work import steps_of
from support.sessions.scheduled_tools import Gated, Watched, call, make_tool, outcome, scheduler
from toolglot.conversation import ToolCall, ToolResult
from toolglot.protocols.openai_chat.blocks import read_call
from toolglot.runtime.scheduler import outcomes
from toolglot.runtime.scheduler.outcomes import nearest_names
from toolglot.runtime.tools.toolbox import Tool, ToolContext

SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer", "minimum": 3},
        "unit": {"enum": ["C", "F"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "odd key": {"type": "string", "pattern": "^a"},
        "where": {"type": "object", "properties": {"x": {"type": "number"}}},
        "limit": {"type": "integer", "description": "Optional. How many."},
    },
    "required": ["n", "limit"],
    "additionalProperties": False,
}


async def echo(arguments: dict[str, Any], context: ToolContext) -> object:
    return arguments


CHECKED = make_tool(echo, parameters=SCHEMA)
FREE_TEXT = make_tool(echo, type="custom")


def result_of(tool: Tool, *, raw: str | None = None, arguments: Any = None, type: str = "function") -> ToolResult:
    return outcome(tool, of=ToolCall("c1", "tool", arguments, type=type, raw_input=raw))


def test_what_the_required_filter_takes_out_is_not_required() -> None:
    assert result_of(CHECKED, arguments={"n": 3}).content == '{"n":3}'


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"n": "five"}, "- $.n: the value is not of type \"integer\"; got the string 'five'"),
        ({"n": 1}, "- $.n: the value is less than the minimum of 3; got the number 1"),
        ({"n": 3, "unit": "K"}, '- $.unit: the value is not one of "C" or "F"; got the string \'K\''),
        ({"n": 3, "unit": True}, '- $.unit: the value is not one of "C" or "F"; got true'),
        ({"n": 3, "unit": False}, '- $.unit: the value is not one of "C" or "F"; got false'),
        ({"n": 3, "unit": {}}, '- $.unit: the value is not one of "C" or "F"; got an object of 0'),
        ({"n": 3, "tags": ["a", 7]}, '- $.tags[1]: the value is not of type "string"; got the number 7'),
        ({"n": 3, "odd key": "b"}, "- $['odd key']: the value does not match \"^a\"; got the string 'b'"),
        ({"n": 3, "where": [1]}, '- $.where: the value is not of type "object"; got an array of 1'),
        ({"n": 3, "where": {"x": [1]}}, '- $.where.x: the value is not of type "number"; got an array of 1'),
        ({"n": None}, '- $.n: the value is not of type "integer"; got null'),
        ({}, '- $: "n" is a required property\n'),
        ({"n": 3, "m": 1}, "- $: Additional properties are not allowed ('m' was unexpected)\n"),
    ],
)
def test_the_error_for_the_model_says_where_what_was_expected_and_what_was_there(
    arguments: dict[str, Any], problem: str
) -> None:
    result = result_of(CHECKED, arguments=arguments)
    assert result.is_error
    assert result.text.startswith("The arguments do not fit the tool 'tool'. The tool was not run.")
    assert problem in result.text
    assert result.text.endswith("Correct the arguments and call the tool again.")


def test_several_problems_are_reported_but_not_any_number_of_them() -> None:
    few = result_of(CHECKED, arguments={"n": "x", "unit": "K"}).text
    assert few.count("\n- ") == 2
    many = result_of(CHECKED, arguments={"n": 3, "tags": list(range(1000))}).text
    assert many.count("\n- ") == 11
    assert "more" in many
    long = result_of(CHECKED, arguments={"n": "x" * 1_000_000}).text
    assert len(long) < 1_000


def test_a_path_too_deep_to_be_reported_whole_is_reported_without_its_value() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    value: Any = "x"
    for _ in range(30):
        schema = {"type": "object", "properties": {"inside_of_it": schema}}
        value = {"inside_of_it": value}
    text = result_of(make_tool(echo, parameters=schema), arguments=value).text
    assert 'not of type "integer"' in text
    assert "got" not in text


async def test_nothing_runs_whose_arguments_do_not_fit() -> None:
    gated, watch = Gated(parameters=SCHEMA), Watched()
    await scheduler(gated.tool, watch=watch).run([call("c1", n="x")])
    assert gated.runs == 0
    assert watch.states() == ["validating", "error"]


def test_nulls_that_strict_mode_brings_are_taken_out_recorded_and_reported() -> None:
    result = result_of(CHECKED, arguments={"n": 3, "unit": None, "tags": None})
    assert result.executed_arguments == {"n": 3}
    assert result.text.startswith('[The tool ran with other arguments than this call shows: {"n":3}]')


def test_law_11_a_double_encoding_is_unwrapped_recorded_and_reported() -> None:
    for requested in (
        ToolCall("c1", "tool", None, raw_input='"{\\"n\\": 3}"'),
        read_call({"id": "c1", "type": "function", "function": {"name": "tool", "arguments": '"{\\"n\\": 3}"'}}),
    ):
        assert isinstance(requested, ToolCall)
        result = outcome(CHECKED, of=requested)
        assert result.executed_arguments == {"n": 3}
        assert result.text.startswith("[The tool ran with other arguments")
        assert result.text.endswith('{"n":3}')


def test_arguments_that_are_written_oddly_but_plainly_are_not_reported() -> None:
    result = outcome(make_tool(echo), of=ToolCall("c1", "tool", {}, raw_input="null"))
    assert (result.content, result.executed_arguments) == ("{}", None)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (None, "$: expected a JSON object, got nothing"),
        ("[1]", "$: expected a JSON object, got an array"),
        ("7", "$: expected a JSON object, got a number"),
        ('"words"', "$: expected a JSON object, got a string"),
        ("n is 3", "not JSON"),
    ],
)
def test_what_is_no_object_is_refused_precisely(raw: str | None, text: str) -> None:
    result = result_of(CHECKED, raw=raw)
    assert result.is_error
    assert text in result.text
    assert "was not run" in result.text


@pytest.mark.parametrize("raw", ['{"n": 3', '{"n": "', '"{\\"n\\": 3"', "{"])
def test_a_call_that_was_cut_is_never_run(raw: str) -> None:
    result = result_of(CHECKED, raw=raw)
    assert result.is_error
    assert result.text.startswith("The call was cut off before it was whole. It was not run.")


def test_arguments_that_are_too_large_are_refused() -> None:
    text = result_of(make_tool(echo), arguments={"list": [[]] * 3_000_000}).text
    assert "max_nodes" in text
    branching = {"anyOf": [{"$ref": "#"}, {"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]}
    value: dict[str, Any] = {}
    for _ in range(40):
        value = {"a": value}
    assert "was not run" in result_of(make_tool(echo, parameters=branching), arguments=value).text


def test_a_tool_whose_schema_is_broken_is_not_run_and_says_so() -> None:
    result = result_of(make_tool(echo, parameters={"type": "no such type"}), arguments={})
    assert result.is_error
    assert "The schema of the tool 'tool' is broken" in result.text


async def test_a_tool_that_takes_the_name_of_another_has_its_own_schema() -> None:
    running = scheduler(CHECKED)
    assert (await running.run([call("a", x=1)]))[0].is_error
    running.tools.replace(make_tool(echo))
    assert not (await running.run([call("b", x=1)]))[0].is_error


# --- free text ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "arguments", "type"),
    [("ls -l", None, "custom"), ("ls -l", None, "function"), (None, {"input": "ls -l"}, "function")],
)
def test_a_free_text_tool_gets_its_text_as_one_argument(raw: str | None, arguments: Any, type: str) -> None:
    result = result_of(FREE_TEXT, raw=raw, arguments=arguments, type=type)
    assert (result.content, result.executed_arguments) == ('{"input":"ls -l"}', None)


@pytest.mark.parametrize("arguments", [None, {}, {"input": 7}, {"input": "a", "more": "b"}])
def test_a_free_text_tool_without_a_text_is_not_run(arguments: Any) -> None:
    result = result_of(FREE_TEXT, arguments=arguments, type="custom")
    assert result.is_error
    assert "$.input: expected one string" in result.text


def test_free_text_for_a_tool_that_takes_an_object_is_refused() -> None:
    assert "was not run" in result_of(CHECKED, raw="some words", type="custom").text


# --- names ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("read_fil", "read_file"),
        ("ReadFile", "read_file"),
        ("functions.read_file", "read_file"),
        ("query", "server__run_query"),
    ],
)
def test_an_unknown_tool_is_reported_with_the_nearest_names(wrong: str, right: str) -> None:
    tools = [make_tool(echo, name) for name in ("read_file", "write_file", "server__run_query")]
    result = outcome(*tools, of=call("c1", wrong))
    assert result.is_error
    assert result.text.startswith(f"There is no tool named '{wrong}'; nothing was run. Did you mean ")
    assert f"'{right}'" in result.text


def test_an_unknown_tool_like_no_other_is_reported_with_the_names_that_there_are() -> None:
    one = call("c1", "zzz")
    assert outcome(of=one).text.endswith("There are no tools.")
    assert outcomes.unknown_tool(one, ["a", "b"]).text.endswith("The tools are: 'a', 'b'.")
    many = outcomes.unknown_tool(one, [f"tool{n}" for n in range(100)]).text
    assert many.endswith("'tool19', ….")
    assert nearest_names("", ["a"]) == []
    assert "''" in outcomes.unknown_tool(call("c1", ""), ["a"]).text


def test_many_unknown_names_among_many_tools_cost_little() -> None:
    names = [f"server_{n % 7}__do_something_with_{n}" for n in range(500)]

    def work(length: int) -> int:
        return steps_of(lambda: outcomes.unknown_tool(call("c1", "server__undo_somewhat" + "x" * length), names))

    assert work(100_000) <= work(100) < 200_000  # for 500 tools
