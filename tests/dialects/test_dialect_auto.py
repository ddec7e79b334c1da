"""Dialects found out from the text: the examples of all of them, and texts that hold no call at all."""

from __future__ import annotations

import random
from typing import Any

import pytest

from support.dialects.texts_without_calls import mentions, quoted, written
from support.dialects.vectors import streamed, vectors
from toolglot import get_parser, profiles
from toolglot.conversation import ToolSpec
from toolglot.dialects import registry
from toolglot.dialects.detection import Detection, detect
from toolglot.dialects.reply_reader import CallsInText
from toolglot.dialects.seed_formats import detect_format
from toolglot.dialects.text_stream import ParsedText, TextToolStream, parse_text, parsed_text
from toolglot.errors import InputError

OFFERED = ("ls", "pwd", "read_file", "search", "get_weather", "bash", "cat")
LS = {"name": "ls", "parameters": {"type": "object", "properties": {"p": {"type": "string"}}}}
HERMES = '<tool_call>{"name": "ls", "arguments": {"p": "/"}}</tool_call>'

OTHERWISE = {
    ("apriel", "other tags inside"): "those are GLM's",
    ("hunyuan_a13b", "other tags inside"): "those are GLM's",
    ("jamba", "other tags inside"): "those are GLM's",
    ("olmo3", "tags in the tag are another dialect"): "Anthropic's, which is looked for too",
    ("pythonic", "a list of JSON"): "xLAM's",
    ("bash_tag", "an object is another dialect's"): "DeepSeek's",
    ("bash_tag", "tags are another dialect's"): "DeepSeek's",
    ("bash_tag", "two shell tools are offered"): "it cannot be known which one is meant",
    ("bash_tag", "no shell tool is offered"): "a command needs a tool that runs it",
    ("functionary_v31", "a program"): "only where the dialect is named",
    ("functionary_v32", "the first mark stands in the prompt"): "only where the dialect is named",
    ("gemma4", "a call without its mark"): "only where the dialect is named",
    ("gemma4", "a call without its mark behind a channel"): "only where the dialect is named",
    ("gemma4", "a mark that was broken"): "only where the dialect is named",
    ("llama4_pythonic", "a list without marks behind a sentence"): "only where the dialect is named",
    ("pythonic", "a list behind a sentence"): "only where the dialect is named",
    ("pythonic", "lists in one line"): "only where the dialect is named",
}
"""Examples that another dialect reads, or that are no call unless the dialect is named."""


def calls_of(found: ParsedText) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in found.calls]


# --- calls ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", registry.names())
def test_every_example_gives_the_same_calls_when_its_dialect_is_not_named(dialect: str) -> None:
    different = []
    for name, vector, shared in vectors():
        wanted = vector["expected"].get("calls", [])
        tools = vector.get("tools", shared) or [call["name"] for call in wanted]
        if name != dialect:
            continue
        found = parse_text(vector["text"], tools=tools)
        if calls_of(found) != [(call["name"], call["arguments"]) for call in wanted]:
            different.append((name, vector["name"]))
        steps = list(range(0, len(vector["text"]), 3))
        assert parsed_text(streamed(vector["text"], steps, "auto", tools)) == found, vector["name"]
    assert [each for each in different if each not in OTHERWISE] == []


def test_what_differs_does_so() -> None:
    """The list above holds nothing that is not so any more."""
    there = {(name, vector["name"]): (vector, shared) for name, vector, shared in vectors()}
    for key in OTHERWISE:
        vector, shared = there[key]
        wanted = [(call["name"], call["arguments"]) for call in vector["expected"].get("calls", [])]
        assert calls_of(parse_text(vector["text"], tools=vector.get("tools", shared))) != wanted, key


# --- no calls ---------------------------------------------------------------------------------------

WRITTEN = [pytest.param(text, id=name) for name, text in written()]


def is_unchanged(text: str, tools: tuple[str, ...], cuts: list[int]) -> bool:
    return parsed_text(streamed(text, cuts, "auto", list(tools))) == ParsedText(text)


@pytest.mark.parametrize("tools", [OFFERED, ()], ids=["offered", "without"])
@pytest.mark.parametrize("text", WRITTEN)
def test_text_without_calls_comes_back_unchanged(text: str, tools: tuple[str, ...]) -> None:
    rng = random.Random(text)  # noqa: S311 - the same cuts each time
    cuts = [[], list(range(len(text))), list(range(0, len(text), 3)), list(range(0, len(text), 7))]
    cuts += [rng.sample(range(len(text) + 1), min(len(text), 4)) for _ in range(4)]
    assert [each for each in cuts if not is_unchanged(text, tools, each)] == []


@pytest.mark.parametrize("tools", [OFFERED, ()], ids=["offered", "without"])
@pytest.mark.parametrize("kind", [quoted, mentions])
def test_quoted_calls_and_mentioned_marks_are_text(kind: Any, tools: tuple[str, ...]) -> None:
    wrong = [
        name
        for name, text in kind()
        if not is_unchanged(text, tools, []) or not is_unchanged(text, tools, [len(text) // 2])
    ]
    assert wrong == []


def test_there_are_enough_texts_without_calls() -> None:
    texts = {text for _, text in written()}
    assert len(texts) == len(written()) >= 250
    assert len({*texts, *(text for _, text in mentions()), *(text for _, text in quoted())}) >= 500


# --- FAILURES.md, I ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_failure_I1_raw_json_of_an_offered_tool_is_a_call_and_never_reaches_the_user(size: int) -> None:
    text = '{"name": "ls", "arguments": {"p": "/"}}'
    found = parsed_text(streamed(text, list(range(0, len(text), size)), "auto", [LS]))
    assert (found.text, calls_of(found)) == ("", [("ls", {"p": "/"})])


def test_failure_I1_what_may_be_a_call_is_held_back_no_longer_than_its_name_takes() -> None:
    stream = TextToolStream(tools=["ls"])
    text = '{"name": ' + " " * 5_000
    assert parsed_text(stream.feed(text) + stream.finish()).text == text
    stream = TextToolStream(tools=["ls"])
    events = stream.feed(text) + stream.feed(" " * 5_000)
    assert sum(len(getattr(event, "text", "")) for event in events) > 4_000


@pytest.mark.parametrize(
    "text",
    [
        '{"name":"Jack"}',
        '{"name": "Jack", "arguments": {"for": "it"}}',
        'Write `<tool_call>{"name": "ls", "arguments": {}}</tool_call>` to call it.',
        "Write <tool_call> and </tool_call> around it.",
    ],
)
def test_failure_I2_json_that_is_no_call_and_documentation_are_text(text: str) -> None:
    assert parse_text(text, tools=OFFERED) == ParsedText(text)


def test_failure_I3_a_call_in_thinking_is_a_draft() -> None:
    found = parse_text(f"<think>I could write {HERMES}</think>", tools=[LS])
    assert (found.calls, found.thinking) == ((), f"I could write {HERMES}")


@pytest.mark.parametrize("end", ["</think>", "</think>\n\n", "\n</think>"])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_failure_I3_the_last_call_of_a_thought_is_rescued_if_there_is_nothing_else(end: str, size: int) -> None:
    text = f"<think>Not {HERMES} but\n{HERMES}{end}"
    stream = TextToolStream(tools=[LS], rescue_thinking=True)
    events = [event for at in range(0, len(text), size) for event in stream.feed(text[at : at + size])]
    found = parsed_text(events + stream.finish())
    assert calls_of(found) == [("ls", {"p": "/"})]
    assert found.thinking.startswith("Not <tool_call>")
    assert found == parse_text(text, tools=[LS], rescue_thinking=True)
    assert (found.text, stream.found) == ("", ["hermes"])


@pytest.mark.parametrize(
    "text",
    [
        f"<think>{HERMES}</think>Done.",
        f"<think>{HERMES} or rather not</think>",
        f"<think>{HERMES[:-20]}",
        f"<think>{HERMES}</think><think>No.</think>",
        "<think>Nothing to call.</think>",
        f"<think>{'x' * 1_100_000}{HERMES}</think>",
    ],
    ids=["text follows", "not last", "not whole", "thought again", "none", "too long"],
)
def test_failure_I3_no_other_call_of_a_thought_is_rescued(text: str) -> None:
    found = parse_text(text, tools=[LS], rescue_thinking=True)
    assert found == parse_text(text, tools=[LS])
    assert found.calls == ()


def test_failure_I3_no_draft_is_rescued_beside_a_real_call() -> None:
    other = HERMES.replace('"ls"', '"pwd"')
    assert calls_of(parse_text(f"<think>{other}</think>{HERMES}", tools=[LS, "pwd"], rescue_thinking=True)) == [
        ("ls", {"p": "/"})
    ]


@pytest.mark.parametrize(
    "text",
    [
        '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>',
        '<|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Paris"}<|call|>',
        '<|start|>assistant<|channel|>commentary to=get_weather<|message|>{"city": "Paris"}',
        '<|channel|>commentary to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Paris"}<|call|>',
    ],
)
def test_failure_I4_marks_of_harmony_are_neither_in_the_text_nor_in_names(text: str) -> None:
    found = parse_text(text, tools=["get_weather"])
    assert (found.text, calls_of(found)) == ("", [("get_weather", {"city": "Paris"})])


@pytest.mark.parametrize(
    "text", ["Look: <tool_ca", "<tool_call>", '<tool_call>{"na', "[TOOL_CALLS]", "<function=", '{"name": "l']
)
def test_failure_I5_unfinished_markup_is_text(text: str) -> None:
    assert parse_text(text, tools=[LS]) == ParsedText(text)
    assert parsed_text(streamed(text, list(range(len(text))), "auto", [LS])) == ParsedText(text)


def test_failure_I5_a_truncated_call_is_reported_as_cut_and_never_run() -> None:
    found = parse_text('<tool_call>{"name": "ls", "arguments": {"p": "/ho', tools=[LS])
    assert (found.text, found.calls, [call.name for call in found.cut]) == ("", (), ["ls"])


# --- hints ------------------------------------------------------------------------------------------


def test_the_name_of_the_model_decides_between_dialects() -> None:
    for model, dialect in [("", "hermes"), ("ibm/Granite-4.0-h", "granite4"), ("baidu/ernie-4.5-21b", "ernie45")]:
        stream = TextToolStream(tools=[LS], model=model)
        assert calls_of(parsed_text(stream.feed(HERMES) + stream.finish())) == [("ls", {"p": "/"})]
        assert stream.found == [dialect], model


@pytest.mark.parametrize("model", ["", "meta/llama-3.2-3b", "qwen2.5-7b"])
def test_where_the_model_is_known_the_weak_forms_of_others_are_looked_for_too(model: str) -> None:
    for text in ('[ls(p="/")]', HERMES):
        assert calls_of(parse_text(text, tools=[LS], model=model)) == [("ls", {"p": "/"})]


@pytest.mark.parametrize(
    ("tools", "calls"),
    [
        (["bash"], [("bash", {"command": "ls -la"})]),
        (["run_shell_command", "search"], [("run_shell_command", {"command": "ls -la"})]),
        (["bash", "shell"], []),
        (["search"], []),
        ([], []),
    ],
)
def test_R_003_18_a_bare_command_is_a_call_of_the_one_shell_that_was_offered(tools: list[str], calls: Any) -> None:
    text = "<tool>ls -la</tool>"
    found = parse_text(text, tools=tools)
    assert calls_of(found) == calls
    assert found.text == ("" if calls else text)


def test_R_003_18_the_dialect_of_the_seed_always_means_bash() -> None:
    assert calls_of(parse_text("<tool>ls -la</tool>", dialect="bash_tag")) == [("bash", {"command": "ls -la"})]


@pytest.mark.parametrize(
    "text",
    [
        '<tool name="ls" p="/"/>',
        '<tool name="ls"><p>/</p></tool>',
        "<tool><name>ls</name><arguments><p>/</p></arguments></tool>",
    ],
)
def test_R_003_16_arguments_are_in_attributes_or_nested_tags(text: str) -> None:
    assert calls_of(parse_text(text, tools=[LS])) == [("ls", {"p": "/"})]


# --- detection --------------------------------------------------------------------------------------

XAI, XML, OPENAI, ANTHROPIC = "<x.ai:tool_call>", "<tool>x</tool>", '"tool_calls":  [', '"tool_use"'


@pytest.mark.parametrize(
    ("response", "format"),
    [
        (ANTHROPIC + OPENAI + XML + XAI, "xai"),
        (ANTHROPIC + OPENAI + XML, "xml"),
        ("<tool>\nx\n</tool>", "xml"),
        (ANTHROPIC + OPENAI, "openai"),
        (ANTHROPIC + "</tool><tool>", "anthropic"),
    ],
)
def test_R_003_6_formats_are_detected_in_the_order_of_the_seed(response: str, format: str) -> None:
    assert detect_format(response) == format


@pytest.mark.parametrize("response", ["", "hello", "</tool><tool>", '"tool_calls": {}', "<tool>"])
def test_R_003_6_a_format_that_is_not_known_is_an_error(response: str) -> None:
    with pytest.raises(InputError, match="unknown tool call format"):
        detect_format(response)


@pytest.mark.parametrize(
    ("response", "format"),
    [
        ('{"content": [{"type": "tool_use", "name": "f"}, {"type": "text", "text": "<x.ai:tool_call>"}]}', "anthropic"),
        ('{"choices": [{"message": {"content": "\\"tool_use\\"", "tool_calls": [{"id": "c"}]}}]}', "openai"),
        ('{"tool_calls": [{"id": "c"}], "note": "<tool>x</tool>"}', "openai"),
        ('{"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}]}}]}', "google"),
        ('{"stop_reason": "tool_use"}', "anthropic"),
        ('```xml\n<tool>x</tool>\n```\n"tool_calls": [', "openai"),
    ],
)
def test_R_003_6_R_003_T4_json_is_looked_into_first_and_fences_do_not_count(response: str, format: str) -> None:
    assert detect_format(response) == format
    assert get_parser(format).provider_id == profiles.resolve(format)


def test_R_003_T4_a_sign_inside_a_code_fence_is_none() -> None:
    with pytest.raises(InputError, match="unknown tool call format"):
        detect_format("Write it so:\n~~~\n<tool>ls</tool>\n~~~\nand no other way.")
    with pytest.raises(InputError, match="unknown tool call format"):
        detect_format("```\n" + "<tool>ls</tool>\n" * 10_000)


def test_R_003_6_only_text_has_a_format() -> None:
    with pytest.raises(InputError, match="expected text"):
        detect_format(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "tools", "found"),
    [
        (HERMES, (), Detection("hermes", "marked")),
        (f"Look: {HERMES}", ("ls",), Detection("hermes", "marked")),
        ('[TOOL_CALLS][{"name": "ls", "arguments": {}}]', (), Detection("mistral", "marked")),
        ('<|python_tag|>{"name": "ls", "parameters": {}}', (), Detection("llama3_json", "marked")),
        ('<|python_tag|>{"name": "ls", "parameters": {}}', ("pwd",), Detection("llama3_json", "marked")),
        (
            '{"tool_calls": [{"id": "call_1", "function": {"name": "ls", "arguments": "{}"}}]}',
            (),
            Detection("openai_json", "marked"),
        ),
        ('{"name": "ls", "arguments": {}}', ("ls",), Detection("llama3_json", "likely")),
        ('{"name": "ls", "arguments": {}}', (), Detection("llama3_json", "likely")),
        ('{"name": "ls", "arguments": {}}', ("pwd",), Detection(None, "none")),
        ('Here: {"name": "ls", "arguments": {}}', (), Detection(None, "none")),
        ('{"name": "Jack"}', (), Detection(None, "none")),
        ("", (), Detection(None, "none")),
    ],
)
def test_the_dialect_of_a_text_is_detected_with_a_confidence(
    text: str, tools: tuple[str, ...], found: Detection
) -> None:
    assert detect(text, tools) == found


def test_the_model_decides_between_names_of_the_same_form() -> None:
    assert detect(HERMES, model="granite-4.0") == Detection("granite4", "marked")


def test_what_is_no_text_has_no_dialect() -> None:
    with pytest.raises(InputError, match="expected text"):
        detect(b"x")  # type: ignore[arg-type]


def test_the_detected_dialect_reads_the_text() -> None:
    for _, vector, shared in vectors():
        found = detect(vector["text"], vector.get("tools", shared))
        if found.dialect is not None:
            parsed = parse_text(vector["text"], dialect=found.dialect, tools=vector.get("tools", shared))
            assert parsed.calls or parsed.cut, vector


@pytest.mark.parametrize("text", [f"```\n{HERMES}\n```", f"```xml\n{HERMES}\n```", f"`{HERMES}`"])
def test_marks_in_code_are_quoted_even_of_a_tool_that_was_offered(text: str) -> None:
    assert parse_text(text, tools=[LS]).text == text


# --- invalid arguments ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tools", "path"),
    [
        ([7], "tools[0]"),
        (["ls", {"description": "no name"}], "tools[1]"),
        ([{"function": {"name": 7}}], "tools[0]"),
        ([{"functionDeclarations": [{"name": "ls"}, 7]}], "tools[0]"),
        ([{"name": "ls", "parameters": "p"}], "tools[0].parameters"),
        ("ls", "tools"),
        ({"name": "ls"}, "tools"),
        (ToolSpec("ls"), "tools"),
        (None, "tools"),
    ],
)
def test_what_is_no_list_of_tools_is_refused_with_its_path(tools: Any, path: str) -> None:
    for use in (lambda: TextToolStream(tools=tools), lambda: detect("x", tools), lambda: CallsInText(tools=tools)):
        with pytest.raises(InputError, match="expected a") as caught:
            use()
        assert caught.value.path == path


@pytest.mark.parametrize("model", ["", "qwen3-coder", "llama-3.1-8b"])
def test_a_mark_that_no_prose_has_needs_no_tools_even_where_the_form_is_weak(model: str) -> None:
    text = 'Well. <|python_tag|>{"name": "ls", "parameters": {"p": "/"}}; {"name": "pwd", "parameters": {}}<|eom_id|>'
    found = parse_text(text, model=model)
    assert (found.text, calls_of(found)) == ("Well. ", [("ls", {"p": "/"}), ("pwd", {})])
    bare = text.replace("<|python_tag|>", "\n")
    assert parse_text(bare, model=model).text == bare


def test_only_text_can_be_fed_and_nothing_follows_the_end() -> None:
    stream = TextToolStream(tools=[LS])
    with pytest.raises(InputError, match="expected text"):
        stream.feed(b"x")  # type: ignore[arg-type]
    assert parsed_text(stream.feed("a <tool") + stream.finish()) == ParsedText("a <tool")
    assert (stream.finish(), stream.feed(""), stream.is_settled) == ([], [], True)
    with pytest.raises(InputError, match="this text is finished"):
        stream.feed("more")


def test_a_stream_is_settled_while_it_keeps_nothing_back() -> None:
    stream = TextToolStream(tools=[LS])
    settled = []
    for piece in ("a", " <", "b", "<tool_call>"):
        stream.feed(piece)
        settled.append(stream.is_settled)
    assert settled == [True, False, True, False]
