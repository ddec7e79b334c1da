"""xLAM: a list, `[{"name": "ls", "arguments": {"p": "/"}}]`, bare, in a code fence or behind another model's mark."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.dialects.dialect import Dialect, skip_closer
from toolglot.dialects.families.json_calls import BARE, BARE_KEY, call_list
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import json_list

_MARK: Final = "[TOOL_CALLS]"


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    if opener == "```":
        yield from reader.scanner.one_of(("json",))
    is_mark = opener == "[" and (yield from reader.scanner.one_of((_MARK[1:],))) is not None
    outcome = yield from call_list(reader, BARE, is_open=opener in ("\n[", "[") and not is_mark)
    if outcome in ("call", "cut"):
        yield from skip_closer(reader, "```", "</tool_call>")
    return outcome


XLAM = Dialect(
    name="xlam",
    openers=("\n[", "```", _MARK, "<tool_call>"),
    inside=rf"(?:json)?\s*\[?\s*\{{\s*{BARE_KEY}",
    read=_read,
    models=("*xlam*",),
    is_weak=True,
    writing=json_list(""),
)

_ANYWHERE = replace(XLAM, openers=("[", "```", "<tool_call>"), inside=rf"(?:TOOL_CALLS\])?{XLAM.inside}")

DIALECTS = (replace(XLAM, named=_ANYWHERE),)
