"""Llama 3: `{"name": "ls", "parameters": {"p": "/"}}`, bare or behind `<|python_tag|>`, several with `;` between."""

from __future__ import annotations

from typing import Final

from toolglot.dialects.dialect import Dialect, skip_closer
from toolglot.dialects.json_calls import BARE, BARE_KEY, call_list, call_object
from toolglot.dialects.json_messages import ordinary
from toolglot.dialects.reading import Outcome, Reader
from toolglot.dialects.scanner import Steps

TAG: Final = "<|python_tag|>"
LONGEST_GUESS: Final = 4096
"""How much of what is no call is read again."""


def _read(reader: Reader, opener: str) -> Steps[Outcome]:
    reader.only_offered = reader.only_offered and opener != TAG
    outcome = yield from (call_object(reader, BARE, is_open=True) if opener == "{" else call_list(reader, BARE))
    if outcome in ("call", "cut"):
        yield from skip_closer(reader, ";", "<|eom_id|>", "<|eot_id|>")
    if outcome == "none" and opener == "{" and reader.scanner.size_since_mark() <= LONGEST_GUESS:
        return (yield from ordinary(reader))
    return outcome


LLAMA3_JSON = Dialect(
    name="llama3_json",
    openers=("{", TAG),
    inside=rf"\s*(?:[\[{{]\s*)*+{BARE_KEY}",
    read=_read,
    models=("*llama-3*", "*llama3*"),
    is_weak=True,
)

DIALECTS = (LLAMA3_JSON,)
