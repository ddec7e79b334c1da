"""Cohere's Command R7B, A and 4: everything stands between tokens, and each call has its id in the text.

    <|START_ACTION|>[{"tool_call_id": "0", "tool_name": "ls", "parameters": {"p": "/"}}]<|END_ACTION|>
    <|START_RESPONSE|>It is <co>empty</co: 0:[0]>.<|END_RESPONSE|>

Citations are taken out of an answer.
"""

from __future__ import annotations

from typing import Final

from toolglot.dialects.dialect import Dialect, json_in
from toolglot.dialects.json_calls import CallKeys
from toolglot.dialects.reading import Outcome, Reader
from toolglot.dialects.scanner import Steps, marks

_ANSWERS: Final = ("<|START_RESPONSE|>", "<|START_TEXT|>")
_ENDS: Final = ("<|END_RESPONSE|>", "<|END_TEXT|>", "<|END_OF_TURN_TOKEN|>")
_SILENT: Final = (*_ENDS, "<|END_THINKING|>")
_CITATIONS: Final = ("<co>", "</co>", "<co: ", "</co: ")
_ACTION: Final = json_in("<|END_ACTION|>", keys=CallKeys(id=("tool_call_id",)))


def _read(reader: Reader, opener: str) -> Steps[Outcome]:
    if opener in _SILENT:
        return "passed"
    if opener not in _ANSWERS:
        return (yield from _ACTION(reader, opener))
    if reader.is_mentioned:
        return "none"
    scanner = reader.scanner
    scanner.let_go()
    found: str | None = _CITATIONS[0]
    while found in _CITATIONS:
        if found.endswith(" "):
            yield from scanner.until(marks(">", "\n"), _dropped)
        found = yield from scanner.until(marks(*_ENDS, *_CITATIONS), reader.teller.say)
    return "passed"


def _dropped(piece: str) -> None:
    pass


def _command(name: str, *models: str) -> Dialect:
    return Dialect(
        name=name,
        openers=("<|START_ACTION|>", *_ANSWERS, *_SILENT),
        read=_read,
        thinking=(("<|START_THINKING|>", "<|END_THINKING|>"),),
        models=models,
    )


DIALECTS = (
    _command("cohere_command3", "*command-r7b*", "*command-a*"),
    _command("cohere_command4", "*command-4*", "*north-*"),
)
