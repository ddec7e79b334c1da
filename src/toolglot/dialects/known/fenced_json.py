"""Calls as JSON in a code fence, of any model that got its tools in the prompt."""

from __future__ import annotations

import re
from typing import Final

from toolglot.dialects.dialect import Dialect, skip_closer
from toolglot.dialects.families.json_calls import BARE, call_list
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import Writing, as_object

_FENCES: Final = ("```", "~~~")
_WORD: Final = re.compile(r"[a-z_]+")


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    yield from reader.scanner.while_in(_WORD, 16)
    outcome = yield from call_list(reader, BARE, closers=(opener,))
    while outcome == "call" and (yield from reader.scanner.skip_spaces()) == "{":
        outcome = yield from call_list(reader, BARE, closers=(opener,))
    if outcome in ("call", "cut"):
        yield from skip_closer(reader, opener)
    return outcome


FENCED_JSON = Dialect(
    name="fenced_json",
    openers=_FENCES,
    inside=r"(?:json|tool_calls?|tool_code|tool|function_calls?|function)?\s*(?:\[\s*)?\{",
    read=_read,
    is_weak=True,
    writing=Writing((as_object("```json\n", "\n```"),)),
)

DIALECTS = (FENCED_JSON,)
