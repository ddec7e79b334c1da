"""Public datasets whose calls are in the text of turns: ToolACE (Python-like) and ToolBench (ReAct). Read only.

    toolace    assistant: [List Files(path="."), Other()]      tool: [{"name": …, "results": …}, …]
    toolbench  assistant: Thought: …\\nAction: ls\\nAction Input: {"path": "."}      function: the result

The system prompts of both describe the form and list the tools; a reader takes the tools out of them.
"""

from __future__ import annotations

from typing import Final

from toolglot.bulk.example import Example, Notes, Row
from toolglot.bulk.formats.call_text import (
    WrittenCall,
    arguments_of,
    looks_like_python_calls,
    parse_value,
    read_python_calls,
)
from toolglot.bulk.formats.format import Format, text_column
from toolglot.bulk.formats.sharegpt import has_lines, lines_of
from toolglot.bulk.formats.tool_definitions import objects_in, read_tools
from toolglot.bulk.formats.turns import TurnBuilder
from toolglot.conversation import Conversation, ToolSpec
from toolglot.errors import InputError, quote
from toolglot.jsontext import compact

_FORM: Final = "the system prompt describes the form of the dataset; only its tools were taken"


def _listed_tools(text: str, notes: Notes, path: str) -> tuple[tuple[ToolSpec, ...], str]:
    """The longest list of tools in a prompt, and the text before it."""
    found = [value for value in objects_in(text) if isinstance(value, list) and value and isinstance(value[0], dict)]
    listed = max(found, key=len, default=None)
    if listed is None or not isinstance(listed[0].get("name"), str):
        return (), text
    notes.add("converted", _FORM, path, gravity="housekeeping")
    return read_tools(listed, notes, path), ""


# --- ToolACE ----------------------------------------------------------------------------------------


def _detect_toolace(row: Row) -> float:
    if not has_lines(row) or not isinstance(row.get("system"), str):
        return 0.0
    for entry in row["conversations"][:12]:
        if (
            isinstance(entry, dict)
            and entry.get("from") == "assistant"
            and looks_like_python_calls(str(entry.get("value")))
        ):
            return 0.97
    return 0.7 if "invoke" in row["system"] and "functions" in row["system"] else 0.0


def _read_toolace(row: Row, notes: Notes) -> Example:
    tools, system = _listed_tools(text_column(row, "system"), notes, "$.system")
    turns = TurnBuilder(notes)
    if system:
        turns.say("system", system)
    for number, (speaker, words, _) in enumerate(lines_of(row)):
        path = f"$.conversations[{number}].value"
        if speaker in ("user", "human"):
            turns.say("user", words)
        elif speaker in ("assistant", "gpt"):
            if looks_like_python_calls(words):
                turns.model("", calls=read_python_calls(words, path))
            else:
                turns.model(words)
        elif speaker in ("tool", "function"):
            turns.results(_toolace_results(words, turns.open_calls, notes, path))
        else:
            raise InputError(f"unknown speaker {quote(speaker)}", path=path.removesuffix(".value"))
    return Example(conversation=Conversation(tuple(turns.turns), tools))


def _toolace_results(words: str, open_calls: int, notes: Notes, path: str) -> list[tuple[str, str]]:
    """One result for each call, if the text is a list of as many."""
    try:
        listed = parse_value(words, path)
    except InputError:
        listed = None
    if isinstance(listed, list) and len(listed) == open_calls and all(isinstance(entry, dict) for entry in listed):
        return [
            (entry["name"], _text(entry["results"]))
            if isinstance(entry.get("name"), str) and "results" in entry
            else ("", compact(entry))
            for entry in listed
        ]
    if open_calls > 1:
        notes.add("matched", f"one result for {open_calls} calls; it was given to the last of them", path)
        return [("", "")] * (open_calls - 1) + [("", words)]
    return [("", words)]


def _text(value: object) -> str:
    return value if isinstance(value, str) else compact(value)


# --- ToolBench --------------------------------------------------------------------------------------


def _detect_toolbench(row: Row) -> float:
    if not has_lines(row):
        return 0.0
    for entry in row["conversations"][:12]:
        value = entry.get("value") if isinstance(entry, dict) else None
        if (
            isinstance(value, str)
            and entry.get("from") == "assistant"
            and "\nAction:" in value
            and "\nAction Input:" in value
        ):
            return 0.97
    return 0.0


def _read_toolbench(row: Row, notes: Notes) -> Example:
    turns = TurnBuilder(notes)
    tools = read_tools(row.get("tools"), notes)
    for number, (speaker, words, _) in enumerate(lines_of(row)):
        path = f"$.conversations[{number}].value"
        if speaker == "system":
            found, text = _listed_tools(words, notes, path)
            tools = tools or found
            if text:
                turns.say("system", text)
        elif speaker in ("user", "human"):
            turns.say("user", words.strip())
        elif speaker in ("assistant", "gpt"):
            text, calls = _react(words, path)
            turns.model(text, calls=calls)
        elif speaker in ("function", "tool", "observation"):
            turns.results([("", words)])
        else:
            raise InputError(f"unknown speaker {quote(speaker)}", path=path.removesuffix(".value"))
    id = row.get("id")
    return Example(conversation=Conversation(tuple(turns.turns), tools), id=id if isinstance(id, str) else "")


def _react(words: str, path: str) -> tuple[str, list[WrittenCall]]:
    """The thought, and the action with its input."""
    head, mark, rest = words.partition("\nAction:")
    if not mark:
        head, mark, rest = words.partition("Action:") if words.startswith("Action:") else (words, "", "")
    name, input_mark, written = rest.partition("\nAction Input:")
    thought = head.removeprefix("\n").removeprefix("Thought:").strip()
    if not mark or not input_mark:
        return thought if not mark else words, []
    text = written.strip()
    try:
        arguments = parse_value(text, path) if text else {}
    except InputError:
        arguments = text
    if not isinstance(arguments, dict | str):
        arguments = text
    return thought, [WrittenCall(name.strip(), *arguments_of(arguments, path))] if name.strip() else []


FORMATS: Final = (
    Format(
        name="toolace",
        title="ToolACE",
        columns=frozenset({"system", "conversations"}),
        detect=_detect_toolace,
        read=_read_toolace,
    ),
    Format(
        name="toolbench",
        title="ToolBench (ToolLLM)",
        columns=frozenset({"id", "conversations", "tools"}),
        detect=_detect_toolbench,
        read=_read_toolbench,
    ),
)
