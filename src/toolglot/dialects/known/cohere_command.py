"""Cohere's Command R7B, A and 4: every part is between special tokens, and each call has its id in the text.

    <|START_ACTION|>[{"tool_call_id": "0", "tool_name": "ls", "parameters": {"p": "/"}}]<|END_ACTION|>
    <|START_RESPONSE|>It is <co>empty</co: 0:[0]>.<|END_RESPONSE|>

Citations are removed from answers and from thinking.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.dialects.dialect import Dialect, json_in
from toolglot.dialects.families.json_calls import CallKeys
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps, marks
from toolglot.dialects.writers.writing_forms import as_object, json_list

_ANSWERS: Final = ("<|START_RESPONSE|>", "<|START_TEXT|>")
_ENDS: Final = ("<|END_RESPONSE|>", "<|END_TEXT|>", "<|END_OF_TURN_TOKEN|>")
_THOUGHT, _THOUGHT_END = "<|START_THINKING|>", "<|END_THINKING|>"
_SILENT: Final = (*_ENDS, _THOUGHT_END)
_CITATIONS: Final = ("<co>", "</co>", "<co: ", "</co: ")
_OBJECT: Final = as_object(name="tool_name", arguments="parameters", id="tool_call_id")
_ACTION: Final = json_in("<|END_ACTION|>", keys=CallKeys(id=("tool_call_id",)))


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    if opener in _SILENT:
        return "passed"
    if opener not in (*_ANSWERS, _THOUGHT):
        return (yield from _ACTION(reader, opener))
    if reader.is_mentioned:
        return "none"
    reader.scanner.unmark()
    found: str | None = _CITATIONS[0]
    while found in _CITATIONS:
        if found.endswith(" "):
            yield from reader.scanner.until(marks(">", "\n"), len)  # dropped
        if opener == _THOUGHT:
            found = yield from reader.think_until((_THOUGHT_END, *_CITATIONS))
        else:
            found = yield from reader.scanner.until(marks(*_ENDS, *_CITATIONS), reader.output.add_text)
    reader.output.end_thinking()
    return "passed"


_COMMAND3 = Dialect(
    name="cohere_command3",
    openers=("<|START_ACTION|>", _THOUGHT, *_ANSWERS, *_SILENT),
    read=_read,
    closers=("<|END_ACTION|>",),
    thinking=((_THOUGHT, _THOUGHT_END),),
    models=("*command-r7b*", "*command-a*"),
    writing=json_list("<|START_ACTION|>", "<|END_ACTION|>", _OBJECT)._replace(ids="count"),
)
DIALECTS = (_COMMAND3, replace(_COMMAND3, name="cohere_command4", models=("*command-4*", "*north-*")))
