"""Calls and thoughts, code, and the model's name: what is a draft or quoted, and what is a call all the same."""

from __future__ import annotations

from typing import Any

import pytest

from support import counted_work
from support.dialects.replies import read
from support.dialects.vectors import vectors
from support.dialects.written_calls import FULL, TOOLS, written
from toolglot import convert, convert_reply
from toolglot.dialects import registry
from toolglot.dialects.text_reading import MAX_DRAFT
from toolglot.dialects.text_stream import ParsedText, TextToolStream, parse_text, parsed_text

HERMES = '<tool_call>{"name": "ls", "arguments": {"path": "/"}}</tool_call>'
ARGUMENTS = {"path": "/home", "depth": 3}


# --- thoughts that never end ------------------------------------------------------------------------

WEAK = ("anthropic_json", "fenced_json", "gemini_json", "generic_content", "openai_json", "pythonic", "react", "xlam")
"""They have no mark of their own: in a thought that is not closed, they stay drafts."""
UNMARKED = (*WEAK, "cohere_command_r_plus", "firefunction_v2", "llama3_json", "phi4_mini")
OWN_THOUGHTS = [(name, pair) for name in registry.names() for pair in registry.get(name).thinking]


def marked(dialect: str) -> str:
    text = written(dialect, FULL)
    return f"<|python_tag|>{text}" if dialect == "llama3_json" else text


@pytest.mark.parametrize("named", [True, False], ids=["named", "auto"])
@pytest.mark.parametrize(("dialect", "pair"), OWN_THOUGHTS)
def test_a_mark_of_a_call_ends_a_thought_that_is_never_closed(dialect: str, pair: tuple[str, str], named: bool) -> None:
    if dialect in (*UNMARKED, "harmony"):
        return
    found = read(f"{pair[0]}Let me see. {marked(dialect)}", dialect if named else "auto")
    assert [call.name for call in found.calls] == ["bash" if dialect == "bash_tag" else "ls"]
    assert (found.text, found.thinking.strip()) == ("", "Let me see.")


@pytest.mark.parametrize(("dialect", "pair"), OWN_THOUGHTS)
def test_a_call_in_a_thought_that_is_closed_is_a_draft(dialect: str, pair: tuple[str, str]) -> None:
    if dialect in ("harmony", "inkling", "kimi_k2"):  # no thought of theirs holds these marks
        return
    draft = f"Let me see. {marked(dialect)} No."
    found = read(f"{pair[0]}{draft}{pair[1]}Done.", dialect)
    if "cohere" not in dialect:
        assert found.thinking == draft
    assert (found.text.strip(), found.calls, found.cut) == ("Done.", (), ())


@pytest.mark.parametrize("dialect", WEAK)
def test_what_has_no_mark_of_its_own_ends_no_thought(dialect: str) -> None:
    found = read(f"<think>Let me see.\n{written(dialect, FULL)}")
    assert (found.text, found.calls) == ("", ())


def test_the_first_call_of_a_thought_that_is_never_closed_ends_it_with_or_without_a_rescue() -> None:
    for rescue in (True, False):
        found = read(f"<think>First\n{HERMES}\n{HERMES}", rescue_thinking=rescue)
        assert (found.thinking, len(found.calls)) == ("First\n", 2)


def test_a_known_model_s_end_of_a_thought_ends_it_under_auto() -> None:
    section = written("kimi_k2", FULL)
    assert read(f"<think>Hm. {section}", model="moonshotai/kimi-k2-thinking").calls[0].arguments == ARGUMENTS
    live = TextToolStream(tools=TOOLS, model="kimi-k2")
    events = live.feed(f"<think>Hm. {section}")
    assert [call.arguments for call in parsed_text(events).calls] == [ARGUMENTS]
    draft = read(f"<think>Hm. {section}</think>Done.")
    assert (draft.text, draft.calls) == ("Done.", ())


@pytest.mark.parametrize("model", ["", "muse-glimmer-1"])
@pytest.mark.parametrize(
    "start", ["<|start|>assistant to=self<|message|>", " to=self<|message|>", "to=self<|message|>"]
)
def test_messages_of_muse_to_itself_are_thinking(start: str, model: str) -> None:
    found = read(f"{start}Hm.<|eom|><|start|>assistant to=user<|message|>Hello.<|eot|>", model=model)
    assert (found.thinking, found.text, found.calls) == ("Hm.", "Hello.", ())


@pytest.mark.parametrize("dialect", ["auto", "muse_glimmer"])
def test_a_call_of_muse_ends_a_message_to_itself(dialect: str) -> None:
    found = read(f" to=self<|message|>Hm. {written('muse_glimmer', FULL)}", dialect)
    assert (found.thinking, [call.arguments for call in found.calls]) == ("Hm. ", [ARGUMENTS])


@pytest.mark.parametrize(
    "quoted", [f"`{HERMES}`", f"```\n{HERMES}\n```\n", f"~~~\n{HERMES}\n~~~\n"], ids=["span", "fence", "tildes"]
)
def test_code_in_a_thought_is_quoted_too(quoted: str) -> None:
    found = read(f"<think>So: {quoted} is how.")
    assert (found.thinking, found.calls) == (f"So: {quoted} is how.", ())
    assert read(f"<think>So: {quoted} is how. {HERMES}").calls[0].name == "ls"
    assert read(f"<think>So: ```\nnever closed</think>{HERMES}").calls[0].name == "ls"


def test_a_thought_is_kept_back_from_a_draft_on_but_not_for_ever() -> None:
    opener = '<tool_call>{"name"'
    draft = opener + "x" * (MAX_DRAFT + 5_000)
    for size in (5_000, 10**9):
        stream = TextToolStream(tools=TOOLS)
        text = f"<think>{draft}</think>Done."
        events = [event for at in range(0, len(text), size) for event in stream.feed(text[at : at + size])]
        assert parsed_text(events + stream.finish()) == ParsedText("Done.", draft)


@pytest.mark.parametrize("body", ["<tool_call>", HERMES, "<tool_call>{", "`", "```\n", "~~~\n"])
def test_marks_in_a_thought_without_end_take_work_in_proportion_to_their_length(body: str) -> None:
    def reading(length: int) -> Any:
        text = "<think>" + body * (length // len(body))

        def run() -> None:
            stream = TextToolStream(tools=TOOLS)
            for at in range(0, len(text), 50):
                stream.feed(text[at : at + 50])
            stream.finish()

        return run

    assert counted_work.is_linear(reading, 4_000, times=8, slack=3)


# --- the model's name -------------------------------------------------------------------------------

MODELS = sorted({pattern.replace("*", "") for name in registry.names() for pattern in registry.get(name).models})
FIRST = [each for name in registry.names() for each in [e for e in vectors() if e[0] == name][:4]]


def names_of(found: ParsedText) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in found.calls]


@pytest.mark.parametrize("model", MODELS)
def test_no_call_is_lost_since_the_model_is_named(model: str) -> None:
    lost = []
    for dialect, vector, shared in FIRST:
        tools = vector.get("tools", shared) or [call["name"] for call in vector["expected"].get("calls", [])]
        without = names_of(parse_text(vector["text"], tools=tools))
        if names_of(parse_text(vector["text"], tools=tools, model=model)) != without:
            lost.append((dialect, vector["name"]))
    assert lost == []


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("meta-llama/llama-4-scout", '[ls(path="/")]'),
        ("qwen2.5-72b-instruct", '{"name": "ls", "arguments": {"path": "/"}}'),
        ("qwen2.5-72b-instruct", '```json\n{"name": "ls", "arguments": {"path": "/"}}\n```'),
        ("some-model", '[ls(path="/")]'),
    ],
)
def test_a_reply_is_searched_for_weak_forms_whatever_its_model_is(model: str, text: str) -> None:
    request: dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    request["tools"] = [{"name": "ls", "input_schema": TOOLS[0]["parameters"]}]
    out = convert(request, source="anthropic", target="vllm", model=model)
    body = {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
    back = convert_reply(body, source="vllm", target="anthropic", request=out)
    assert [(block["type"], block.get("input")) for block in back.body["content"]] == [("tool_use", {"path": "/"})]


# --- code -------------------------------------------------------------------------------------------

FENCES = [
    (f"```\nx ``` {HERMES}\n```\n", "ticks in a line end no fence"),
    (f"```\n``` {HERMES}\n```\n", "nor do they before anything else"),
    (f"````\n```\n{HERMES}\n````\n", "nor do fewer of them"),
    (f"```\n{HERMES}\n  ````  \n", "more of them do, and white space may stand around"),
    (f"So: ```xml\n{HERMES}\n```\n", "a fence may begin in a line"),
    (f"~~~\n{HERMES}\n```\n{HERMES}\n~~~\n", "tildes end only with tildes"),
    (f"```\n{HERMES}\n~~~\n{HERMES}\n```\n", "and ticks with ticks"),
    (f"  ~~~xml\n{HERMES}\n~~~\n", "tildes may be indented"),
    (f"Look: ```{HERMES}``` ", "in one line, it is a code span"),
]


@pytest.mark.parametrize(("text", "why"), FENCES, ids=[why for _, why in FENCES])
def test_a_fence_ends_on_a_line_of_its_own(text: str, why: str) -> None:
    found = read(text)
    assert (found.text, found.calls) == (text, ())
    found = read(f"{text}Now: {HERMES}")
    assert (found.text, len(found.calls)) == (f"{text}Now: ", 1), why


@pytest.mark.parametrize("text", ["a ~~~ b ", "~~gone~~ ", "x~~~\n", "1 ~ 2 "])
def test_tildes_in_a_line_are_no_fence(text: str) -> None:
    found = read(text + HERMES)
    assert (found.text, len(found.calls)) == (text, 1)


@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_a_fence_with_nothing_but_a_call_is_one(fence: str) -> None:
    body = '{"name": "ls", "arguments": {"path": "/"}}'
    for dialect in ("auto", "fenced_json"):
        found = read(f"{fence}json\n{body}\n{fence}", dialect)
        assert (found.text, names_of(found)) == ("", [("ls", {"path": "/"})])


# --- names ------------------------------------------------------------------------------------------

STRANGE = ("<function-name>", "$NAME", "3", "{name}", "a,b", "…x")


@pytest.mark.parametrize("name", STRANGE)
def test_under_auto_a_name_looks_like_one_unless_it_was_offered(name: str) -> None:
    text = HERMES.replace("ls", name)
    assert parse_text(text).text == text
    assert parse_text(text, tools=["ls"]).text == text
    assert [call.name for call in parse_text(text, tools=[name]).calls] == [name]
    assert [call.name for call in parse_text(text, dialect="hermes").calls] == [name]


@pytest.mark.parametrize(
    "name", ["ls", "mcp__files-read", "functions.ls", "ns:ls", "suche_ähnliches", "files/read", "_x"]
)
def test_names_that_tools_have_look_like_ones(name: str) -> None:
    assert [call.name for call in parse_text(HERMES.replace("ls", name)).calls] == [name]
