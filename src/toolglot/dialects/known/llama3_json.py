"""Llama 3: `{"name": "ls", "parameters": {"p": "/"}}`, bare or behind `<|python_tag|>`, several with `;` between.

Its built-in tools are called as Python: `<|python_tag|>brave_search.call(query="x")`.
"""

from __future__ import annotations

from typing import Final

from toolglot.dialects.dialect import Dialect, skip_closer
from toolglot.dialects.families.json_calls import BARE, BARE_KEY, call_list, call_object
from toolglot.dialects.families.json_messages import read_as_text
from toolglot.dialects.families.python_calls import python_in
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import Writing, as_object

TAG: Final = "<|python_tag|>"
MAX_GUESS: Final = 4096
"""Characters that are read again if they are not a call."""


_ENDS: Final = ("<|eom_id|>", "<|eot_id|>")
_read_python: Final = python_in(*_ENDS, suffix=".call")


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    if opener == TAG and (yield from reader.scanner.skip_spaces()) not in ("{", "["):
        return (yield from _read_python(reader, opener))
    outcome = yield from (call_object(reader, BARE, is_open=True) if opener == "{" else call_list(reader, BARE))
    if outcome in ("call", "cut"):
        found = yield from skip_closer(reader, ";", *_ENDS)
        while opener == TAG and found == ";":  # after the mark, the next call needs no mark
            found = yield from _next(reader)
    if outcome == "none" and opener == "{" and reader.scanner.size_since_mark() <= MAX_GUESS:
        return (yield from read_as_text(reader))
    return outcome


def _next(reader: DialectReader) -> Steps[str | None]:
    """Read one more call. Returns what follows it; None, with nothing read, if there is no call."""
    reader.scanner.mark()
    if (yield from call_list(reader, BARE)) in ("none", "unfinished"):
        reader.scanner.go_back()
        return None
    return (yield from skip_closer(reader, ";", *_ENDS))


LLAMA3_JSON = Dialect(
    name="llama3_json",
    openers=("{", TAG),
    inside=rf"\s*(?:[\[{{]\s*){{0,3}}+{BARE_KEY}|[^\W\d]\w*+\.call\(",
    read=_read,
    models=("*llama-3*", "*llama3*"),
    is_weak=True,
    strong=(TAG,),
    writing=Writing((as_object(arguments="parameters"),), between="; "),
)

DIALECTS = (LLAMA3_JSON,)
