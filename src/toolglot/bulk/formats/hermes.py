"""ShareGPT with calls in the text, as in the Hermes function-calling sets.

    system: "… <tools>[…]</tools> …"        human: "…"
    gpt: "<tool_call>\\n{…}\\n</tool_call>"  tool: "<tool_response>\\n{…}\\n</tool_response>"

The part of the system prompt that describes tools and tags belongs to the form, not to the user: a reader takes it out,
a writer puts one of its own behind the user's prompt. Calls are JSON, in older rows Python dictionaries.

Law: linear: a tag that is never closed ends the search.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from toolglot.bulk.example import Example, Notes, Row
from toolglot.bulk.formats.call_text import WrittenCall, parse_value, read_calls_json
from toolglot.bulk.formats.chat import write_tools
from toolglot.bulk.formats.format import Format
from toolglot.bulk.formats.sharegpt import has_lines, lines_of
from toolglot.bulk.formats.tool_definitions import objects_in, read_tools
from toolglot.bulk.formats.turns import TurnBuilder, call_text, parts_of, split_thinking, with_thinking
from toolglot.conversation import Conversation, ToolSpec
from toolglot.errors import InputError, quote
from toolglot.jsontext import compact

_COLUMNS: Final = frozenset({"conversations", "tools"})
_MARKS: Final = ("<tool_call>", "<tools>", "<tool_response>")
_SPEAKERS: Final = ("system", "gpt", "tool")
_PARAGRAPHS: Final = re.compile(r"\n[ \t]*\n")
PREAMBLE: Final = (
    "These are the functions that you may call, as JSON Schema:\n<tools>\n{tools}\n</tools>\n"
    "To call one, write a JSON object with its name and its arguments between tags, one pair of tags for each call:\n"
    '<tool_call>\n{{"name": "the name", "arguments": {{}}}}\n</tool_call>'
)
"""What a writer puts behind the system prompt. It has no blank line, so that a reader finds where it begins."""


def _detect(row: Row) -> float:
    if not has_lines(row):
        return 0.0
    for entry in row["conversations"][:8]:
        value = entry.get("value") if isinstance(entry, dict) else None
        is_speaker = isinstance(entry, dict) and entry.get("from") in _SPEAKERS
        if is_speaker and isinstance(value, str) and any(mark in value for mark in _MARKS):
            return 0.97
    return 0.0


def _read(row: Row, notes: Notes) -> Example:
    tools = read_tools(row.get("tools"), notes)
    turns = TurnBuilder(notes)
    for number, (speaker, words, _) in enumerate(lines_of(row)):
        path = f"$.conversations[{number}].value"
        if speaker == "system":
            text, found = _take_tools(words, notes, path)
            tools = tools or found
            if text:
                turns.say("system", text)
        elif speaker in ("human", "user"):
            turns.say("user", words)
        elif speaker in ("gpt", "assistant", "model"):
            thinking, text = split_thinking(words)
            said, calls = _calls(text, path)
            turns.model(said, thinking=thinking, calls=calls)
        elif speaker in ("tool", "function", "observation", "ipython"):
            turns.results([_result(text, path) for text in _between(words, "tool_response")] or [("", words)])
        else:
            raise InputError(f"unknown speaker {quote(speaker)}", path=path.removesuffix(".value"))
    return Example(conversation=Conversation(tuple(turns.turns), tools))


def _take_tools(text: str, notes: Notes, path: str) -> tuple[str, tuple[ToolSpec, ...]]:
    """The system prompt without the paragraphs about tools, and the tools in these."""
    if "<tools>" not in text:
        return text, ()
    listed = max(_between(text, "tools"), key=len, default="")
    found = [entry for value in objects_in(listed) for entry in (value if isinstance(value, list) else [value])]
    tools = read_tools([entry for entry in found if isinstance(entry, dict) and entry], notes, path)
    start, end = text.find("<tools>"), max(text.rfind(mark) for mark in ("</tools>", "</tool_call>", "<tools>"))
    before = list(_PARAGRAPHS.finditer(text, 0, start))
    after = _PARAGRAPHS.search(text, end)
    head = text[: before[-1].start()] if before else ""
    tail = text[after.end() :] if after is not None else ""
    notes.add("moved", "the tools were taken out of the system prompt", path, gravity="housekeeping")
    return "\n\n".join(part for part in (head, tail.rstrip()) if part), tools


def _between(text: str, tag: str) -> Iterator[str]:
    """What is between pairs of tags; what follows a tag that is not closed, up to the end."""
    begin, finish = f"<{tag}>", f"</{tag}>"
    at = text.find(begin)
    while at >= 0:
        start = at + len(begin)
        end = text.find(finish, start)
        yield text[start : end if end >= 0 else len(text)]
        if end < 0:
            return
        at = text.find(begin, end)


def _calls(text: str, path: str) -> tuple[str, list[WrittenCall]]:
    """The words of the model, and its calls."""
    start = text.find("<tool_call>")
    if start < 0:
        return text, []
    end = text.rfind("</tool_call>")
    rest = text[end + len("</tool_call>") :] if end >= 0 else ""
    calls = [call for written in _between(text, "tool_call") for call in read_calls_json(written, path)]
    return text[:start].removesuffix("\n") + rest.strip(), calls


def _result(text: str, path: str) -> tuple[str, str]:
    """A result's name and text. What is in `content` is the text; an object stays JSON."""
    body = text.removeprefix("\n").removesuffix("\n")
    try:
        value = parse_value(body, path)
    except InputError:
        return "", body
    if isinstance(value, dict) and isinstance(value.get("name"), str) and "content" in value and len(value) == 2:
        content = value["content"]
        return value["name"], content if isinstance(content, str) else compact(content)
    return "", body


def _write(example: Example, notes: Notes) -> Row:
    parts = parts_of(example.conversation.turns, notes)
    tools = write_tools(example.conversation.tools)
    lines: list[tuple[str, str]] = []
    if tools and not (parts and parts[0].role == "system"):
        lines.append(("system", PREAMBLE.format(tools=compact(tools))))
    for number, part in enumerate(parts):
        if part.role == "tool":
            texts = [compact({"name": name, "content": content}) for name, content in part.results]
            lines.append(("tool", "\n".join(f"<tool_response>\n{text}\n</tool_response>" for text in texts)))
        elif part.role == "system":
            preamble = PREAMBLE.format(tools=compact(tools)) if tools and number == 0 else ""
            lines.append(("system", "\n\n".join(text for text in (part.text, preamble) if text)))
        elif part.role == "assistant":
            calls = "\n".join(f"<tool_call>\n{call_text(call)}\n</tool_call>" for call in part.calls)
            words = f"{part.text}\n{calls}" if part.text and calls else part.text or calls
            lines.append(("gpt", with_thinking(part.thinking, words)))
        else:
            lines.append(("human", part.text))
        if part.train is not None:
            notes.add("dropped", "the format cannot say which turns are trained on")
    row: Row = {"conversations": [{"from": speaker, "value": words} for speaker, words in lines]}
    return {**row, "tools": compact(tools) if tools else ""}


FORMATS: Final = (
    Format(
        name="hermes",
        title="ShareGPT with calls in tags (Hermes)",
        columns=_COLUMNS,
        detect=_detect,
        read=_read,
        write=_write,
        is_text=True,
        json_columns=frozenset({"conversations"}),
    ),
)
