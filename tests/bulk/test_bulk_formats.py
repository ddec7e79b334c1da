"""Each format reads a true row of its dataset, writes what it means, and is recognised by what its rows look like."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from support.bulk.samples import BFCL_ROUNDS, FUNCTION, SAME, SAMPLES, SCHEMA, TOOL
from toolglot import InputError, UnknownNameError, bulk, lint
from toolglot.bulk.formats import detect, get
from toolglot.bulk.formats.call_text import read_python_calls
from toolglot.bulk.meaning import turns_meaning
from toolglot.conversation import ToolCall

WRITABLE = [name for name, found in bulk.known_formats().items() if found.write is not None]
TWO_CALLS = (
    ("user", ("text", "What is here?")),
    ("assistant", ("call", "ls", '{"path":"."}'), ("call", "ls", '{"path":".."}')),
    ("tool", ("result", 0, "a.txt"), ("result", 1, "b.txt")),
    ("assistant", ("text", "There is a.txt.")),
)


def parts(row: dict[str, Any], source: str) -> list[Any]:
    example, _ = bulk.read_example(row, source)
    return list(turns_meaning(example.conversation.turns))


def without_thinking(meaning: list[Any]) -> list[Any]:
    return [tuple(part for part in turn if part[0] != "thinking") for turn in meaning]


def one(row: Any, target: str, source: str = "auto", **options: Any) -> tuple[Any, bulk.RowReport]:
    batch = bulk.convert_batch([row], source=source, target=target, options=bulk.BulkOptions(**options))
    return (batch.rows[0] if batch.outputs else None), batch.reports[0]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_row_is_recognised(name: str) -> None:
    found = bulk.detect([SAMPLES[name]])
    assert (found.name, found.confidence >= 0.5) == (name, True)


@pytest.mark.parametrize("name", SAME)
def test_a_row_is_read_as_what_it_means(name: str) -> None:
    read = [turn for turn in without_thinking(parts(SAMPLES[name], name)) if turn[0] != "system"]
    results = sorted(read[2][1:], key=lambda result: str(result[1]))
    assert [*read[:2], ("tool", *results), read[3]] == list(TWO_CALLS)
    example, _ = bulk.read_example(SAMPLES[name], name)
    if name != "session-trace":
        (tool,) = example.conversation.tools
        assert (tool.name, tool.description, tool.parameters) == ("ls", "Lists.", SCHEMA)


@pytest.mark.parametrize("target", WRITABLE)
@pytest.mark.parametrize("source", SAME)
def test_every_form_becomes_every_other_and_means_the_same(source: str, target: str) -> None:
    if get(target).takes_preferences:
        return
    row, report = one(SAMPLES[source], target, source)
    assert report.fate == "converted", report
    again = without_thinking(parts(row, target))
    expected = without_thinking(parts(SAMPLES[source], source))
    assert [sorted(map(str, turn)) for turn in again] == [sorted(map(str, turn)) for turn in expected]


@pytest.mark.parametrize(("target", "judge"), [("openai", "openai"), ("mistral", "mistral"), ("together", "together")])
@pytest.mark.parametrize("source", SAME)
def test_tuning_files_hold_what_their_host_accepts(source: str, target: str, judge: str) -> None:
    row, _ = one(SAMPLES[source], target, source)
    body = {**row, "messages": row["messages"][:-1]}
    assert lint({key: held for key, held in body.items() if key in ("messages", "tools")}, judge) == ()


def test_a_row_that_needs_no_change_keeps_its_bytes() -> None:
    row = deepcopy(SAMPLES["openai"])
    line = json.dumps(row, indent=None, separators=(", ", ": ")).encode()
    batch = bulk.convert_batch([line + b"\n"], target="openai")
    assert batch.outputs[0].as_line() == line


@pytest.mark.parametrize("name", ["openai-preference", "messages-preference"])
@pytest.mark.parametrize("target", ["openai-preference", "messages-preference"])
def test_preferences_keep_both_answers(name: str, target: str) -> None:
    row, report = one(SAMPLES[name], target, name)
    assert report.fate == "converted"
    example, _ = bulk.read_example(row, target)
    assert [turn.text for turn in example.preferred or ()] == ["There is a.txt."]
    assert [turn.text for turn in example.rejected or ()] == ["Nothing."]
    assert len(example.conversation.turns) == 4


def test_a_preference_in_a_form_without_one_is_set_aside() -> None:
    _, report = one(SAMPLES["openai-preference"], "openai")
    assert (report.fate, "preference" in report.reason) == ("set_aside", True)
    _, report = one(SAMPLES["openai"], "messages-preference")
    assert (report.fate, "no preference" in report.reason) == ("set_aside", True)


# --- what public datasets do ------------------------------------------------------------------------


def test_glaive_quotes_and_concatenated_functions_are_read() -> None:
    example, _ = bulk.read_example(SAMPLES["glaive"], "glaive")
    assert [tool.name for tool in example.conversation.tools] == ["ls", "rm"]
    assert example.conversation.turns[0].text == "You are a helpful assistant"
    (call,) = example.conversation.turns[2].calls
    assert call.arguments == {"path": "it's here"}
    assert example.conversation.turns[3].results[0].text == '{"files": ["a.txt"]}'


def test_glaive_repeated_calls_and_empty_turns_are_reported() -> None:
    call = '<functioncall> {"name": "ls", "arguments": \'{"path": "."}\'} <|endoftext|>'
    chat = f"USER: a\n\n\nASSISTANT: Yes. {call}\n\n\nASSISTANT: {call}\n\n\nFUNCTION RESPONSE: b\n\n\n"
    chat += "USER:\n\n\nASSISTANT: c"
    example, entries = bulk.read_example({**SAMPLES["glaive"], "chat": chat}, "glaive")
    reasons = " ".join(entry.reason for entry in entries)
    assert "written twice" in reasons
    assert "empty turn" in reasons
    assert [len(turn.calls) for turn in example.conversation.turns] == [0, 0, 1, 0, 0]


def test_toolace_calls_are_parsed_and_never_evaluated() -> None:
    example, entries = bulk.read_example(SAMPLES["toolace"], "toolace")
    calls = example.conversation.turns[1].calls
    assert [call.arguments for call in calls] == [{"path": "a), b"}, {"path": "..", "deep": [1, [True, None]]}]
    assert {call.name for call in calls} == {"List Files/All"}
    assert example.conversation.tools[0].parameters == SCHEMA
    assert any("not of JSON Schema" in entry.reason for entry in entries)
    results = example.conversation.turns[2].results
    assert [result.text for result in results] == ['{"files":["a.txt"]}', "b.txt"]


@pytest.mark.parametrize("text", ["[f(a=open('x'))]", "[f(1)]", "[f(a=1 b=2)]", "[f(a=(1+2))]", "[f(a=[1)]", "[f(a=1)"])
def test_code_in_a_call_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not a call in the form of Python"):
        read_python_calls(text, "$")


def test_a_row_with_code_in_a_call_is_set_aside() -> None:
    row = deepcopy(SAMPLES["toolace"])
    row["conversations"][1]["value"] = "[f(a=open('x'))]"
    _, report = one(row, "messages", "toolace")
    assert (report.fate, report.path) == ("set_aside", "$.conversations[1].value")


def test_toolace_names_become_legal_for_a_host_that_demands_it_everywhere() -> None:
    row, report = one(SAMPLES["toolace"], "openai", "toolace")
    (name,) = {tool["function"]["name"] for tool in row["tools"]}
    assert {call["function"]["name"] for call in row["messages"][1]["tool_calls"]} == {name}
    assert " " not in name
    assert any(entry.action == "renamed" for entry in report.entries)


def test_xlam_parameters_become_a_schema() -> None:
    example, _ = bulk.read_example(SAMPLES["xlam"], "xlam")
    parameters = example.conversation.tools[0].parameters
    assert parameters is not None
    assert parameters["type"] == "object"
    assert parameters["required"] == ["depth"]
    kinds = {name: held["type"] for name, held in parameters["properties"].items()}
    assert kinds == {"path": "string", "depth": "integer", "all": "boolean"}
    assert [call.arguments for call in example.conversation.turns[1].calls] == [{"path": "."}, {"path": ".."}]


def test_bfcl_takes_accepted_values_and_python_calls() -> None:
    example, _ = bulk.read_example(SAMPLES["bfcl"], "bfcl")
    assert [call.arguments for call in example.conversation.turns[1].calls] == [{"path": "."}, {"path": ".."}]
    example, _ = bulk.read_example(BFCL_ROUNDS, "bfcl")
    called = [(call.name, call.arguments) for turn in example.conversation.turns for call in turn.calls]
    assert called == [
        ("cd", {"folder": "document"}),
        ("mv", {"source": "a", "destination": "b"}),
        ("grep", {"file_name": "b", "pattern": "x"}),
    ]


def test_toolbench_actions_are_calls() -> None:
    example, _ = bulk.read_example(SAMPLES["toolbench"], "toolbench")
    turns = example.conversation.turns
    assert [call.name for turn in turns for call in turn.calls] == ["ls", "Finish"]
    assert turns[1].text == "I look."
    assert example.conversation.tools[0].name == "ls"


@pytest.mark.parametrize(
    ("written", "arguments"),
    [('{"a": 1}', {"a": 1}), ({"a": 1}, {"a": 1}), ("{}", {}), ("", {}), (None, {}), ("{'a': True}", {"a": True})],
)
def test_arguments_are_read_as_a_string_and_as_an_object(written: Any, arguments: dict[str, Any]) -> None:
    row = {
        "messages": [
            {"role": "user", "content": "x"},
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": written}}]},
        ]
    }
    example, _ = bulk.read_example(row, "messages")
    (call,) = example.conversation.turns[1].calls
    assert isinstance(call, ToolCall)
    assert call.arguments == arguments


def test_results_in_another_order_stay_with_their_calls() -> None:
    row, _ = one(SAMPLES["atif"], "swift", "atif")
    assert [message["content"] for message in row["messages"] if message["role"] == "tool_response"] == [
        "a.txt",
        "b.txt",
    ]


def test_a_row_that_llama_factory_would_skip_is_set_aside_with_the_reason() -> None:
    row = {
        "messages": [
            {"role": "user", "content": "x"},
            {"role": "user", "content": "y"},
            {"role": "assistant", "content": "z"},
            {"role": "assistant", "content": "z"},
        ]
    }
    converted, report = one(row, "sharegpt", "messages")
    assert [line["from"] for line in converted["conversations"]] == ["human", "gpt"]
    assert report.is_changed
    _, report = one({"messages": [{"role": "assistant", "content": "z"}]}, "sharegpt", "messages")
    assert (report.fate, "skip" in report.reason) == ("set_aside", True)


def test_text_in_a_dialect_has_spans_of_what_the_model_wrote() -> None:
    row, _ = one(SAMPLES["openai"], "text:hermes")
    said = [row["text"][start:end] for start, end in row["spans"]]
    assert len(said) == 2
    assert said[0].count("<tool_call>") == 2
    assert said[1] == "There is a.txt.<|im_end|>"
    assert not any("a.txt\n" in text or "b.txt" in text for text in said)


def test_turns_that_are_not_trained_on_are_not_in_spans() -> None:
    row = deepcopy(SAMPLES["openai"])
    row["messages"][1]["weight"] = 0
    converted, _ = one(row, "text:hermes")
    assert [converted["text"][start:end] for start, end in converted["spans"]] == ["There is a.txt.<|im_end|>"]


def test_flags_of_training_are_carried_between_forms() -> None:
    row = deepcopy(SAMPLES["openai"])
    row["messages"][1]["weight"] = 0
    converted, _ = one(row, "messages")
    assert [message.get("train") for message in converted["messages"] if message["role"] == "assistant"] == [
        False,
        True,
    ]
    back, _ = one(converted, "openai", "messages")
    assert [message.get("weight") for message in back["messages"] if message["role"] == "assistant"] == [0, 1]


def test_a_name_of_a_format_is_strict() -> None:
    assert get("TRL").name == "messages"
    assert get("Request:Claude").name == "request:anthropic"
    with pytest.raises(UnknownNameError, match="did you mean 'swift'"):
        get("swfit")
    with pytest.raises(UnknownNameError, match="unknown dialect"):
        get("text:hermess")
    with pytest.raises(InputError, match="cannot be written"):
        bulk.convert_batch([SAMPLES["glaive"]], target="glaive")


def test_rows_of_an_unclear_form_are_refused_with_a_hint() -> None:
    with pytest.raises(InputError, match="not clear"):
        bulk.convert_batch([{"a": 1}], target="openai")


def test_tools_with_one_parameter_of_two_types_stay_apart() -> None:
    tools = [
        {**FUNCTION, "name": f"t{n}", "parameters": {"type": "object", "properties": {"time": {"type": kind}}}}
        for n, kind in enumerate(("string", "integer"))
    ]
    row, _ = one({**SAMPLES["messages"], "tools": tools}, "openai", "messages")
    kinds = [tool["function"]["parameters"]["properties"]["time"]["type"] for tool in row["tools"]]
    assert kinds == ["string", "integer"]
    assert TOOL["function"] == FUNCTION


def test_rows_that_say_nothing_do_not_lower_how_sure_the_others_are() -> None:
    plain = {"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]}
    found = detect([SAMPLES["openai"], *[plain] * 9])
    assert (found.name, found.confidence) == ("openai", 0.97)
    assert detect([plain]).confidence == 0.5
    assert detect([SAMPLES["openai"], SAMPLES["glaive"]]).confidence < 0.6
