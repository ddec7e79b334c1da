"""Public datasets with one call or a short dialogue in a row: xLAM (APIGen), BFCL and Glaive v2. Read only.

xlam    {"query": "…", "tools": "[…]", "answers": "[{\\"name\\", \\"arguments\\"}]"}          both are strings
bfcl    {"id", "question": [[{"role", "content"}]], "function": […], "ground_truth": […]}
glaive  {"system": "SYSTEM: … {…} {…}", "chat": "USER: … ASSISTANT: <functioncall> {…} FUNCTION RESPONSE: …"}
"""

from __future__ import annotations

import re
from typing import Any, Final

from toolglot.bulk.example import Example, Notes, Row
from toolglot.bulk.formats.call_text import WrittenCall, calls_of, parse_value, read_python_calls
from toolglot.bulk.formats.chat import read_messages
from toolglot.bulk.formats.format import Format, text_column
from toolglot.bulk.formats.tool_definitions import objects_in, read_tools
from toolglot.bulk.formats.turns import TurnBuilder
from toolglot.conversation import Conversation
from toolglot.errors import InputError, quote

# --- xLAM -------------------------------------------------------------------------------------------


def _detect_xlam(row: Row) -> float:
    return 0.98 if {"query", "tools", "answers"} <= row.keys() else 0.0


def _read_xlam(row: Row, notes: Notes) -> Example:
    query = row.get("query")
    if not isinstance(query, str):
        raise InputError(f"expected text, got {quote(query)}", path="$.query")
    answers = row.get("answers")
    if isinstance(answers, str):
        answers = parse_value(answers, "$.answers")
    turns = TurnBuilder(notes)
    turns.say("user", query)
    turns.model("", calls=calls_of(answers, "$.answers") if answers else ())
    id = row.get("id")
    return Example(
        conversation=Conversation(tuple(turns.turns), read_tools(row.get("tools"), notes)),
        id=str(id) if isinstance(id, str | int) else "",
    )


# --- BFCL -------------------------------------------------------------------------------------------


def _detect_bfcl(row: Row) -> float:
    if "question" in row and "function" in row:
        return 0.98
    return 0.9 if "question" in row and "involved_classes" in row else 0.0


def _read_bfcl(row: Row, notes: Notes) -> Example:
    question = row.get("question")
    if not isinstance(question, list) or not question:
        raise InputError(f"expected a list of turns, got {quote(question)}", path="$.question")
    rounds = question if isinstance(question[0], list) else [question]
    truth = row.get("ground_truth", row.get("possible_answer"))
    answers: list[list[WrittenCall]] = []
    if isinstance(truth, list) and truth:
        is_by_round = all(isinstance(entry, list) for entry in truth)
        answers = [_truth(entry, f"$.ground_truth[{n}]") for n, entry in enumerate(truth if is_by_round else [truth])]
        if any(isinstance(entry, dict) for entry in truth):
            reason = "the first of the accepted values of each argument was taken"
            notes.add("converted", reason, "$.ground_truth", gravity="housekeeping")
    turns = TurnBuilder(notes)
    for number, asked in enumerate(rounds):
        if asked:
            turns.turns += read_messages(asked, notes, f"$.question[{number}]")
        if number < len(answers) and answers[number]:
            turns.model("", calls=answers[number])
    if len(answers) > len(rounds):
        raise InputError("more answers than questions", path="$.ground_truth")
    id = row.get("id")
    tools = read_tools(row.get("function"), notes, "$.function")
    return Example(conversation=Conversation(tuple(turns.turns), tools), id=id if isinstance(id, str) else "")


def _truth(entries: Any, path: str) -> list[WrittenCall]:
    """The calls of one round: text in the form of Python, or the accepted values of each argument."""
    calls: list[WrittenCall] = []
    for entry in entries if isinstance(entries, list) else [entries]:
        if isinstance(entry, str):
            calls += read_python_calls(entry, path)
            continue
        if not isinstance(entry, dict) or len(entry) != 1:
            raise InputError(f"expected one call, got {quote(entry)}", path=path)
        ((name, accepted),) = entry.items()
        if not isinstance(accepted, dict):
            raise InputError(f"expected arguments, got {quote(accepted)}", path=path)
        calls.append(
            WrittenCall(
                name,
                {
                    key: values[0] if isinstance(values, list) else values
                    for key, values in accepted.items()
                    if not _may_be_absent(values)
                },
            )
        )
    return calls


def _may_be_absent(values: Any) -> bool:
    return isinstance(values, list) and (not values or values[0] == "")


# --- Glaive v2 --------------------------------------------------------------------------------------

_SPEAKER: Final = re.compile(r"(?:\A|\n)[ \t]*(USER|ASSISTANT|FUNCTION RESPONSE):[ \t]?")
_CALL: Final = "<functioncall>"
_END: Final = "<|endoftext|>"
_TOOLS_FOLLOW: Final = re.compile(r"[ \t]*(?:with access to the following functions\.?[^{]{0,60})?\Z", re.IGNORECASE)


def _detect_glaive(row: Row) -> float:
    chat, system = row.get("chat"), row.get("system")
    if not isinstance(chat, str) or not isinstance(system, str):
        return 0.0
    return 0.98 if _SPEAKER.search(chat[:2000]) is not None else 0.3


def _read_glaive(row: Row, notes: Notes) -> Example:
    system = text_column(row, "system").removeprefix("SYSTEM:").strip()
    start = system.find("{")
    tools = (
        read_tools([tool for tool in objects_in(system[start:]) if isinstance(tool, dict)], notes, "$.system")
        if start >= 0
        else ()
    )
    if tools:
        system = _TOOLS_FOLLOW.sub("", system[:start].rstrip(" -\n")).rstrip()
    chat = row.get("chat")
    if not isinstance(chat, str):
        raise InputError(f"expected text, got {quote(chat)}", path="$.chat")
    turns = TurnBuilder(notes)
    if system:
        turns.say("system", system)
    found = list(_SPEAKER.finditer(chat))
    if not found:
        raise InputError("no line begins with USER: or ASSISTANT:", path="$.chat")
    repeated: WrittenCall | None = None
    for position, mark in enumerate(found):
        end = found[position + 1].start() if position + 1 < len(found) else len(chat)
        words = chat[mark.end() : end].replace(_END, "").strip()
        if mark[1] == "USER":
            if words:
                turns.say("user", words)
            else:
                notes.add("dropped", "an empty turn of the user was left out", "$.chat", gravity="housekeeping")
        elif mark[1] == "ASSISTANT":
            text, call = _glaive_call(words)
            if call is not None and call == repeated and turns.open_calls:
                notes.add("dropped", "a call that was written twice is called once", "$.chat", gravity="change")
                continue
            repeated = call
            if text or call is not None:
                turns.model(text, calls=() if call is None else (call,))
        else:
            turns.results([("", words)])
            repeated = None
    return Example(conversation=Conversation(tuple(turns.turns), tools))


def _glaive_call(words: str) -> tuple[str, WrittenCall | None]:
    text, mark, written = words.partition(_CALL)
    if not mark:
        return words, None
    (call,) = calls_of(parse_value(written.strip(), "$.chat"), "$.chat")[:1]
    return text.strip(), call


FORMATS: Final = (
    Format(
        name="xlam",
        title="xLAM function calling (APIGen)",
        columns=frozenset({"id", "query", "tools", "answers"}),
        detect=_detect_xlam,
        read=_read_xlam,
    ),
    Format(
        name="bfcl",
        title="Berkeley function calling leaderboard",
        columns=frozenset({"id", "question", "function", "ground_truth", "possible_answer"}),
        detect=_detect_bfcl,
        read=_read_bfcl,
    ),
    Format(
        name="glaive",
        title="Glaive function calling v2",
        columns=frozenset({"system", "chat"}),
        detect=_detect_glaive,
        read=_read_glaive,
    ),
)
