"""ShareGPT's `conversations`, and the form of its calls in LLaMA-Factory.

    {"conversations": [{"from": "human", "value": "…"}, {"from": "gpt", "value": "…"}], "system": "…", "tools": "[…]"}

Roles: `human`, `gpt`, `function_call`, `observation`, `system`. A `function_call` holds one call, or a list of parallel
ones; one `observation` answers all of them, its parts joined by `JOINT`. LLaMA-Factory skips a row that does not
alternate, so the writer refuses it with the reason. Text beside calls has no place.
"""

from __future__ import annotations

from typing import Any, Final

from toolglot.bulk.example import Example, Notes, Row
from toolglot.bulk.formats.call_text import parse_value, read_calls_json
from toolglot.bulk.formats.chat import write_tools
from toolglot.bulk.formats.format import Format, text_column
from toolglot.bulk.formats.tool_definitions import read_tools
from toolglot.bulk.formats.turns import (
    ImageColumn,
    Part,
    TurnBuilder,
    call_json,
    parts_of,
    split_thinking,
    with_thinking,
)
from toolglot.conversation import Conversation, Text, Turn
from toolglot.errors import InputError, quote
from toolglot.jsontext import compact

JOINT: Final = "\n</tool_response>\n<tool_response>\n"
"""Between the results of parallel calls, as LLaMA-Factory joins them."""
_COLUMNS: Final = frozenset({"conversations", "system", "tools", "images"})
_USER: Final = frozenset({"human", "user", "prompter"})
_MODEL: Final = frozenset({"gpt", "assistant", "chatgpt", "bing", "bard", "model"})
_CALL: Final = frozenset({"function_call", "function-call", "tool_call"})
_RESULT: Final = frozenset(
    {"observation", "tool", "function", "function_response", "function-response", "tool_response"}
)
_ODD: Final = frozenset({"human", "observation"})


def lines_of(row: Row, path: str = "$.conversations") -> list[tuple[str, str, Row]]:
    """The speaker, the words and the whole of each line."""
    value: Any = row.get("conversations", row.get("conversation"))
    if isinstance(value, str):
        value = parse_value(value, path)
    if not isinstance(value, list) or not value:
        raise InputError(f"expected a list of turns, got {quote(value)}", path=path)
    return [_line(entry, f"{path}[{number}]") for number, entry in enumerate(value)]


def _line(entry: Any, path: str) -> tuple[str, str, Row]:
    speaker = entry.get("from", entry.get("role")) if isinstance(entry, dict) else None
    words = entry.get("value", entry.get("content")) if isinstance(entry, dict) else None
    if not isinstance(speaker, str):
        raise InputError(f"expected a turn with 'from', got {quote(entry)}", path=path)
    if isinstance(words, dict | list):
        words = compact(words)
    if words is not None and not isinstance(words, str):
        raise InputError(f"expected text, got {quote(words)}", path=f"{path}.value")
    return speaker.strip().lower(), words or "", entry


def has_lines(row: Row) -> bool:
    """Whether a row has ShareGPT's turns."""
    value = row.get("conversations")
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and isinstance(first.get("from"), str) and "value" in first


def _detect(row: Row) -> float:
    if not has_lines(row):
        return 0.0
    speakers = {str(entry.get("from")).lower() for entry in row["conversations"] if isinstance(entry, dict)}
    if speakers & (_CALL | {"observation"}):
        return 0.95
    return 0.6 if speakers <= _USER | _MODEL | {"system"} else 0.3


def _read(row: Row, notes: Notes) -> Example:
    tools = read_tools(row.get("tools"), notes)
    turns = TurnBuilder(notes)
    images = ImageColumn(row.get("images"), "$.images") if row.get("images") else None
    system = text_column(row, "system")
    if system:
        turns.say("system", system)
    before = ""
    for number, (speaker, words, _) in enumerate(lines_of(row)):
        path = f"$.conversations[{number}].value"
        if speaker in _USER:
            turns.say("user", words, images)
        elif speaker == "system":
            turns.say("system", words)
        elif speaker in _MODEL:
            thinking, text = split_thinking(words)
            turns.model(text, thinking=thinking)
        elif speaker in _CALL:
            thinking, text = split_thinking(words)
            turns.model("", thinking=thinking, calls=read_calls_json(text, path), is_continued=before in _MODEL | _CALL)
        elif speaker in _RESULT:
            turns.results(_results(words, turns.open_calls, notes, path))
        else:
            raise InputError(f"unknown speaker {quote(speaker)}", path=path.removesuffix(".value"))
        before = speaker
    made = turns.turns if images is None else images.with_rest(turns.turns, notes)
    return Example(conversation=Conversation(tuple(made), tools))


def _results(words: str, open_calls: int, notes: Notes, path: str) -> list[tuple[str, str]]:
    """The results in one observation: as many as there are open calls, where it can be told."""
    pieces = words.split(JOINT)
    if len(pieces) > 1 and len(pieces) == open_calls:
        return [("", piece) for piece in pieces]
    if open_calls <= 1:
        return [("", words)]
    notes.add("matched", f"one result for {open_calls} calls; it was given to the last of them", path)
    return [("", "")] * (open_calls - 1) + [("", words)]


def _write(example: Example, notes: Notes) -> Row:
    images: list[str] = []
    parts = parts_of(example.conversation.turns, notes, images)
    system = ""
    if parts and parts[0].role == "system":
        system, parts = parts[0].text, parts[1:]
    lines = _joined(_lines(parts, notes), notes)
    for number, (speaker, _) in enumerate(lines):
        if (speaker in _ODD) != (number % 2 == 0):
            raise InputError(
                f"the row does not alternate: {speaker!r} is turn {number + 1}",
                path=f"$.conversations[{number}]",
                hint="LLaMA-Factory would skip it without a word; choose another format",
            )
    row: Row = {"conversations": [{"from": speaker, "value": words} for speaker, words in lines], "system": system}
    row["tools"] = (
        compact([tool["function"] for tool in write_tools(example.conversation.tools)])
        if example.conversation.tools
        else ""
    )
    if images:
        row["images"] = images
    return row


def _lines(parts: list[Part], notes: Notes) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    for part in parts:
        if part.role == "tool":
            lines.append(("observation", JOINT.join(content for _, content in part.results)))
        elif part.calls:
            if part.text:
                notes.add("dropped", "the format has no place for text beside calls")
            calls = [call_json(call) for call in part.calls]
            lines.append(
                ("function_call", with_thinking(part.thinking, compact(calls[0] if len(calls) == 1 else calls)))
            )
        elif part.role == "assistant":
            lines.append(("gpt", with_thinking(part.thinking, part.text)))
        else:
            lines.append(("human", part.text))
        if part.train is not None:
            notes.add("dropped", "the format cannot say which turns are trained on")
    return lines


def _joined(lines: list[tuple[str, str]], notes: Notes) -> list[tuple[str, str]]:
    """Lines of one speaker in a row as one: they must alternate."""
    out: list[tuple[str, str]] = []
    for speaker, words in lines:
        if out and out[-1][0] == speaker and speaker in ("human", "gpt"):
            out[-1] = (speaker, f"{out[-1][1]}\n\n{words}")
            notes.add("converted", f"turns of {speaker!r} in a row were joined")
        else:
            out.append((speaker, words))
    return out


def has_system(turns: tuple[Turn, ...]) -> bool:
    """Whether turns begin with a system prompt of text."""
    return bool(turns) and turns[0].role == "system" and all(isinstance(block, Text) for block in turns[0].blocks)


FORMATS: Final = (
    Format(
        name="sharegpt",
        title="ShareGPT, with calls as LLaMA-Factory writes them",
        columns=_COLUMNS,
        detect=_detect,
        read=_read,
        write=_write,
        is_text=True,
        json_columns=frozenset({"conversations", "images"}),
    ),
)
