"""Calls and results written as text: what is written is read back, in every dialect, or refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from toolglot.conversation import Conversation, Media, Text, Thinking, ToolCall, ToolResult, ToolSpec, Turn
from toolglot.dialects import registry
from toolglot.dialects.dialect import Dialect, json_in
from toolglot.dialects.registry import register_writing
from toolglot.dialects.text_stream import TextToolStream, parse_text, parsed_text
from toolglot.dialects.writers.prompt import describe_tools, to_prompt
from toolglot.dialects.writers.writing import write_calls, write_result, writing_of
from toolglot.dialects.writers.writing_forms import Writing, as_object
from toolglot.errors import InputError
from toolglot.history.history import History

PROPERTIES = {
    "p": {"type": "string"},
    "n": {"type": "integer"},
    "x": {"type": "number"},
    "yes": {"type": "boolean"},
    "many": {"type": "array"},
    "more": {"type": "object"},
}
LS = ToolSpec("ls", "Lists files.", {"type": "object", "properties": PROPERTIES})
PWD = ToolSpec("pwd", None, {"type": "object", "properties": {}})
BASH = ToolSpec("bash", None, {"type": "object", "properties": {"command": {"type": "string"}}})
TOOLS = (LS, PWD)
NAMES = registry.names()
ONLY_COMMANDS = ("bash_tag",)
"""What writes shell commands and nothing else."""

words = st.text("ab <>/{}[]()\"'\\,:=`|\né👩", max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.sampled_from([0.5, -1e20, 1.0]) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=2),
    max_leaves=5,
)
arguments = st.fixed_dictionaries(
    {},
    optional={
        "p": words,
        "n": st.integers(-(10**6), 10**6),
        "x": st.sampled_from([0.5, -2.25, 3, 1e20]),
        "yes": st.booleans(),
        "many": st.lists(values, max_size=3),
        "more": st.dictionaries(words, values, max_size=2),
    },
)


def calls_of(dialect: str) -> list[ToolCall]:
    """Two calls that any dialect can write."""
    if dialect in ONLY_COMMANDS:
        return [ToolCall("a", "bash", {"command": "ls -la"}), ToolCall("b", "bash", {"command": "pwd"})]
    return [ToolCall("a", "ls", {"p": "/", "n": 3}), ToolCall("b", "pwd", {})]


def tools_of(dialect: str) -> tuple[ToolSpec, ...]:
    return (BASH,) if dialect in ONLY_COMMANDS else TOOLS


def read_back(text: str, dialect: str) -> list[tuple[str, bytes]]:
    found = parse_text(text, dialect=dialect, tools=tools_of(dialect))
    assert not found.cut
    assert not found.text.strip()
    return comparable(found.calls)


def comparable(calls: tuple[ToolCall, ...] | list[ToolCall]) -> list[tuple[str, bytes]]:
    """Names and arguments, so that 1, 1.0 and true differ."""
    return [(call.name, msgspec.json.encode(call.arguments)) for call in calls]


# --- calls ------------------------------------------------------------------------------------------


def test_every_dialect_that_toolglot_knows_is_written_too() -> None:
    assert [name for name in NAMES if registry.get(name).writing is None] == []


@pytest.mark.parametrize("dialect", NAMES)
def test_calls_are_read_back_as_they_were(dialect: str) -> None:
    calls = calls_of(dialect)
    assert read_back(write_calls(calls, dialect, tools=tools_of(dialect)), dialect) == comparable(calls)


@pytest.mark.parametrize("dialect", [name for name in NAMES if name not in ONLY_COMMANDS])
def test_ordinary_values_can_be_written(dialect: str) -> None:
    arguments = {
        "p": "a \"b\" \\n\n'c' <d> é👩",
        "n": 0,
        "x": 0.5,
        "yes": True,
        "many": [1, "a", None],
        "more": {"k": [{}]},
    }
    calls = [ToolCall("a", "ls", arguments)]
    assert read_back(write_calls(calls, dialect, tools=TOOLS), dialect) == comparable(calls)


@pytest.mark.law
@given(
    st.sampled_from([name for name in NAMES if name not in ONLY_COMMANDS]),
    st.lists(st.tuples(st.sampled_from(["ls", "pwd"]), arguments), min_size=1, max_size=3),
    st.integers(1, 9),
)
def test_what_is_written_is_read_back_however_it_is_cut_or_refused(
    dialect: str, drawn: list[tuple[str, dict[str, Any]]], size: int
) -> None:
    calls = [ToolCall(f"call_{index}", name, values) for index, (name, values) in enumerate(drawn)]
    try:
        text = write_calls(calls, dialect, tools=TOOLS)
    except InputError:
        event(f"{dialect} refuses")
        return
    stream = TextToolStream(dialect=dialect, tools=TOOLS)
    events = [found for start in range(0, len(text), size) for found in stream.feed(text[start : start + size])]
    found = parsed_text(events + stream.finish())
    assert (comparable(found.calls), found.cut, found.text.strip()) == (comparable(calls), (), "")


@pytest.mark.parametrize(
    "dialect", ["hermes", "mistral", "kimi_k2", "deepseek_v31", "pythonic", "lfm2", "olmo3", "gemma4"]
)
def test_a_value_can_contain_the_closer_of_its_dialect(dialect: str) -> None:
    writing = writing_of(dialect)
    calls = [ToolCall("a", "ls", {"p": f"x{writing.end}</tool_call><|tool_call_end|><tool_call|>)]}}"})]
    assert read_back(write_calls(calls, dialect, tools=TOOLS), dialect) == comparable(calls)


@pytest.mark.parametrize(
    ("dialect", "value"),
    [("gemma4", 'a<|"|>b'), ("functiongemma", "<escape>"), ("minimax_m2", "</parameter></invoke>")],
)
def test_a_value_that_a_dialect_cannot_hold_is_refused_with_its_path(dialect: str, value: str) -> None:
    calls = [ToolCall("a", "pwd", {}), ToolCall("b", "ls", {"n": 1, "p": value})]
    with pytest.raises(InputError, match="no way to write") as caught:
        write_calls(calls, dialect, tools=TOOLS)
    assert caught.value.path == "calls[1].arguments.p"
    assert caught.value.hint


def test_a_name_that_a_dialect_cannot_hold_is_refused() -> None:
    with pytest.raises(InputError, match="no way to write") as caught:
        write_calls([ToolCall("a", "no name", {"p": "x"})], "pythonic")
    assert caught.value.path.startswith("calls[0]")


def test_an_untyped_value_without_a_schema_is_refused_where_it_would_become_a_string() -> None:
    with pytest.raises(InputError) as caught:
        write_calls([ToolCall("a", "ls", {"p": "x", "n": 1})], "minimax_m2", tools=["ls"])
    assert caught.value.path == "calls[0].arguments.n"


def test_names_that_python_does_not_have_are_written_as_a_dictionary() -> None:
    calls = [ToolCall("a", "ls", {"odd key": 1, "p": "x"})]
    text = write_calls(calls, "lfm2")
    assert text == '<|tool_call_start|>[ls(**{"odd key": 1, "p": "x"})]<|tool_call_end|>'


def test_no_calls_are_no_text() -> None:
    assert write_calls([], "hermes") == ""


def test_a_call_without_an_object_keeps_what_was_written() -> None:
    calls = [
        ToolCall("a", "ls", None, raw_input='{"p": '),
        ToolCall("b", "patch", None, type="custom", raw_input="*** Begin"),
        ToolCall("c", "pwd", None),
    ]
    found = parse_text(write_calls(calls, "hermes"), dialect="hermes").calls
    assert [call.arguments for call in found] == [{"_raw": '{"p": '}, {"input": "*** Begin"}, {}]


@pytest.mark.parametrize(
    ("dialect", "ids"),
    [("kimi_k2", ["functions.ls:5", "functions.pwd:6"]), ("cohere_command3", ["5", "6"]), ("openai_json", ["a", "b"])],
)
def test_ids_in_the_text_are_read_back(dialect: str, ids: list[str]) -> None:
    text = write_calls(calls_of(dialect), dialect, tools=TOOLS, first=5)
    assert [call.id for call in parse_text(text, dialect=dialect, tools=TOOLS).calls] == ids


def test_ids_of_mistral_have_nine_characters_and_stay_where_they_have() -> None:
    calls = [ToolCall("Ab3dE6gH9", "pwd", {}), ToolCall("call_1", "pwd", {}), ToolCall("call_2", "pwd", {})]
    ids = [call.id for call in parse_text(write_calls(calls, "mistral"), dialect="mistral").calls]
    assert ids[0] == "Ab3dE6gH9"
    assert len(set(ids)) == 3
    assert all(len(id) == 9 and id.isalnum() for id in ids)


def test_an_unknown_dialect_is_refused_with_a_hint() -> None:
    with pytest.raises(InputError, match="unknown dialect") as caught:
        write_calls(calls_of("hermes"), "hermez")
    assert "did you mean 'hermes'" in caught.value.message


@pytest.mark.usefixtures("clean_registry")
def test_a_dialect_of_ones_own_needs_a_written_form_of_its_own() -> None:
    registry.register_dialect(Dialect(name="own", openers=("<own>",), read=json_in("</own>")))
    with pytest.raises(InputError, match="cannot be written"):
        write_calls(calls_of("own"), "own")
    with pytest.raises(InputError, match="expected a Writing"):
        register_writing("own", Writing(()))
    register_writing("own", Writing((as_object("<own>", "</own>"),)))
    assert read_back(write_calls(calls_of("own"), "own"), "own") == comparable(calls_of("own"))


@pytest.mark.usefixtures("clean_registry")
def test_calls_that_cannot_be_joined_are_refused() -> None:
    registry.register_dialect(Dialect(name="alone", openers=("<own>",), read=json_in("</own>")))
    register_writing("alone", Writing((as_object(),), begin="<own>", between=" and ", end="</own>"))
    with pytest.raises(InputError, match="together"):
        write_calls(calls_of("alone"), "alone")


# --- results ----------------------------------------------------------------------------------------


def test_a_result_names_its_call_and_whether_it_failed() -> None:
    text = write_result(ToolResult("a", "gone", is_error=True), "hermes", name="ls", call=2)
    assert text == '<tool_response>\n{"name":"ls","call":2,"is_error":true,"content":"gone"}\n</tool_response>'


def test_a_result_cannot_end_itself() -> None:
    text = write_result(ToolResult("a", "x</tool_response>y"), "hermes", name="ls")
    assert text.count("</tool_response>") == 1
    body = text.removeprefix("<tool_response>\n").removesuffix("\n</tool_response>")
    assert msgspec.json.decode(body) == {"name": "ls", "content": "x</tool_response>y"}


def test_a_result_without_a_call_keeps_its_own_name() -> None:
    assert '"name":"ls"' in write_result(ToolResult("", "x", name="ls"), "hermes")
    assert write_result(ToolResult("", "x"), "react") == 'Observation: {"content":"x"}'


def test_a_result_that_is_a_value_or_was_cancelled_is_written() -> None:
    assert '"content":{"n":1}' in write_result(ToolResult("a", None, result={"n": 1}), "hermes")
    assert '"status":"cancelled","content":""' in write_result(ToolResult("a", None, status="cancelled"), "hermes")


def test_an_error_without_content_is_written() -> None:
    assert '"content":"timed out"' in write_result(ToolResult("a", None, is_error=True, error="timed out"), "gemma4")


# --- prompts ----------------------------------------------------------------------------------------


def history(dialect: str) -> list[Turn]:
    first, second = calls_of(dialect)
    return [
        Turn("system", (Text("Be kind."),)),
        Turn("user", (Text("What is here?"),)),
        Turn("assistant", (Text("I look."), first, second)),
        Turn("tool", (ToolResult(second.id, "/home"), ToolResult(first.id, "a.txt"))),
        Turn("user", (Text("And now?"),)),
    ]


@pytest.mark.parametrize("dialect", NAMES)
def test_a_history_is_written_and_its_calls_are_read_back(dialect: str) -> None:
    prompt = to_prompt(tools_of(dialect), history(dialect), dialect)
    assert [turn.role for turn in prompt.turns] == ["user", "assistant", "user", "user"]
    assert not any(turn.calls or turn.results for turn in prompt.turns)
    found = parse_text(prompt.turns[1].text, dialect=dialect, tools=tools_of(dialect))
    assert comparable(found.calls) == comparable(calls_of(dialect))
    assert found.text.strip() == "I look."
    assert prompt.turns[3].text == "And now?"


@pytest.mark.parametrize("dialect", NAMES)
def test_every_result_names_its_call(dialect: str) -> None:
    prompt = to_prompt(tools_of(dialect), history(dialect), dialect)
    begin, end = writing_of(dialect).result
    results = [
        msgspec.json.decode(part.split(end)[0] if end else part.rstrip())
        for part in prompt.turns[2].text.split(begin)[1:]
    ]
    first, second = calls_of(dialect)
    assert [each["name"] for each in results] == [second.name, first.name]
    assert [each["content"] for each in results] == ["/home", "a.txt"]
    if "call" in results[0]:
        assert [each["call"] for each in results] == [2, 1]
    else:
        assert all(each["id"] in prompt.turns[1].text for each in results)
        assert results[0]["id"] != results[1]["id"]


@pytest.mark.parametrize("dialect", NAMES)
def test_the_example_in_the_instructions_is_a_call_of_the_dialect(dialect: str) -> None:
    system = to_prompt(tools_of(dialect), [], dialect).system
    name, arguments = writing_of(dialect).sample
    example = system.split("exactly this form:\n\n")[1].split("\n\nSeveral calls")[0]
    schema = {"properties": {"argument": {"type": "string"}, "other_argument": {"type": "integer"}}}
    found = parse_text(example, dialect=dialect, tools=[{"name": name, "parameters": schema}])
    assert [(call.name, call.arguments) for call in found.calls] == [(name, arguments)]


def test_the_system_text_holds_the_instructions_and_the_tools() -> None:
    tools: list[ToolSpec | dict[str, Any] | str] = [
        LS,
        {"type": "function", "function": {"name": "pwd", "description": "Says where."}},
        "now",
    ]
    prompt = to_prompt(tools, Conversation(tuple(history("hermes"))), "hermes")
    assert prompt.system.startswith("Be kind.\n\n")
    lines = [msgspec.json.decode(line) for line in prompt.system.splitlines()[-3:]]
    assert [line["name"] for line in lines] == ["ls", "pwd", "now"]
    assert lines[0] == {"name": "ls", "description": "Lists files.", "parameters": LS.parameters}
    assert lines[1]["description"] == "Says where."
    assert prompt.conversation.turns[0] == Turn("system", (Text(prompt.system),))
    assert prompt.conversation.turns[1:] == prompt.turns


def test_a_tool_that_takes_free_text_is_described_with_one_argument() -> None:
    line = describe_tools([ToolSpec("patch", type="custom")], "hermes").splitlines()[-1]
    assert list(msgspec.json.decode(line)["parameters"]["properties"]) == ["input"]


def test_instructions_that_are_more_than_text_stay_a_turn() -> None:
    turn = Turn("system", (Text("See"), Media("image", url="https://example.org/a.png")))
    prompt = to_prompt(TOOLS, [turn], "hermes")
    assert prompt.turns == (turn,)
    assert prompt.system.startswith("You can use")


def test_without_tools_only_the_history_is_written() -> None:
    prompt = to_prompt([], [Turn("user", (Text("hi"),))], "hermes")
    assert prompt.system == describe_tools([], "hermes") == ""
    assert prompt.conversation == Conversation((Turn("user", (Text("hi"),)),))


def test_what_is_neither_call_nor_result_stays_as_it_is() -> None:
    picture = Media("image", "image/png", data="aGk=")
    turns = [
        Turn("user", (Text("look"), picture)),
        Turn("assistant", (Thinking("hm", signature="s"), ToolCall("a", "pwd", {}))),
        Turn("tool", (ToolResult("a", (Text("seen"), picture)),)),
        Turn("developer", (Text("Be brief."),)),
    ]
    prompt = to_prompt(TOOLS, turns, "hermes")
    assert prompt.turns[0] is turns[0]
    assert prompt.turns[1].blocks[0] == Thinking("hm", signature="s")
    assert prompt.turns[2].blocks[1] == picture
    assert prompt.turns[3] is turns[3]


def test_calls_between_texts_keep_their_position_and_their_number() -> None:
    turn = Turn("assistant", (ToolCall("a", "pwd", {}), Text("and"), ToolCall("b", "pwd", {})))
    results = Turn("tool", (ToolResult("a", "1"), ToolResult("b", "2"), ToolResult("?", "3", name="old")))
    prompt = to_prompt(TOOLS, [turn, results], "pythonic")
    assert prompt.turns[0].text == "[pwd()]and\n[pwd()]"
    assert [f'"call":{number}' in prompt.turns[1].text for number in (1, 2, 3)] == [True, True, False]
    assert '{"name":"old","content":"3"}' in prompt.turns[1].text


def test_numbers_of_kimi_count_over_the_whole_history() -> None:
    turns = [
        Turn("assistant", (ToolCall("a", "pwd", {}),)),
        Turn("tool", (ToolResult("a", "x"),)),
        Turn("assistant", (ToolCall("b", "pwd", {}),)),
        Turn("tool", (ToolResult("b", "y"),)),
    ]
    prompt = to_prompt(TOOLS, turns, "kimi_k2")
    assert "functions.pwd:0" in prompt.turns[1].text
    assert "functions.pwd:1" in prompt.turns[2].text
    assert '"id":"functions.pwd:1"' in prompt.turns[3].text


@pytest.mark.law
@given(st.lists(st.tuples(words, arguments), max_size=4), st.sampled_from(["hermes", "lfm2", "kimi_k2", "mistral"]))
def test_the_turns_of_a_history_are_the_first_of_every_longer_one(
    drawn: list[tuple[str, dict[str, Any]]], dialect: str
) -> None:
    turns: list[Turn] = []
    for index, (text, values) in enumerate(drawn):
        turns.append(Turn("user", (Text(text),)))
        turns.append(Turn("assistant", (ToolCall(f"call_{index}", "ls", values),)))
        turns.append(Turn("tool", (ToolResult(f"call_{index}", text),)))
    whole = to_prompt(TOOLS, turns, dialect).turns
    for end in range(len(turns)):
        assert to_prompt(TOOLS, turns[:end], dialect).turns == whole[:end]


def test_a_history_is_written_like_its_conversation() -> None:
    history = History()
    history.append(Turn("user", (Text("hi"),)))
    assert to_prompt(TOOLS, history, "hermes") == to_prompt(TOOLS, history.conversation, "hermes")


@pytest.mark.parametrize("history", [None, "hi", {"turns": []}, 7])
def test_what_is_no_conversation_is_refused(history: Any) -> None:
    with pytest.raises(InputError, match="expected a conversation") as caught:
        to_prompt(TOOLS, history, "hermes")
    assert caught.value.path == "history"


@pytest.mark.parametrize(
    ("calls", "path"),
    [(ToolCall("a", "ls", {}), "calls"), ("ls", "calls"), (None, "calls"), ([{"name": "ls"}], "calls[0]")],
)
def test_invalid_calls_are_refused_with_their_path(calls: Any, path: str) -> None:
    with pytest.raises(InputError, match="expected a") as caught:
        write_calls(calls, "hermes")
    assert caught.value.path == path


def test_a_value_that_needs_a_schema_has_a_hint() -> None:
    call = ToolCall("a", "ls", {"n": 3})
    with pytest.raises(InputError, match="give the tool 'ls' with its schema as tools=") as caught:
        write_calls([call], "qwen3_coder")
    assert caught.value.path == "calls[0].arguments.n"
    assert "3" in write_calls([call], "qwen3_coder", tools=TOOLS)
    for tools in ((), TOOLS):
        with pytest.raises(InputError) as caught:
            write_calls([ToolCall("a", "ls", {"p": '<|"|>'})], "gemma4", tools=tools)
        assert caught.value.hint == "choose another dialect"


def test_auto_is_no_dialect_to_write_in() -> None:
    with pytest.raises(InputError, match="to write, name one"):
        to_prompt(TOOLS, (), "auto")


def test_what_is_no_history_is_refused() -> None:
    with pytest.raises(InputError, match="expected a turn") as caught:
        to_prompt([], [Turn("user"), "hi"], "hermes")  # type: ignore[list-item]
    assert caught.value.path == "history[1]"


def test_a_call_of_the_history_that_cannot_be_written_is_refused_with_its_turn() -> None:
    turns = [Turn("user"), Turn("assistant", (ToolCall("a", "ls", {"p": '<|"|>'}),))]
    with pytest.raises(InputError) as caught:
        to_prompt(TOOLS, turns, "gemma4")
    assert caught.value.path == "turns[1].calls[0].arguments.p"
