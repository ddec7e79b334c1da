"""Phi-4 mini and FireFunction 2: a list behind a word at the start of a line, `functools[{"name": …, "arguments": …}]`.

Phi-4 mini also writes the list between `<|tool_call|>` and `<|/tool_call|>`.
"""

from __future__ import annotations

from msgspec.structs import replace

from toolglot.dialects.dialect import Dialect, json_in
from toolglot.dialects.writers.writing_forms import json_list

_WORDS = ("\nfunctools", "\n functools")

PHI4_MINI = Dialect(
    name="phi4_mini",
    openers=(*_WORDS, "<|tool_call|>"),
    inside=r"\s*[\[{]",
    read=json_in("<|/tool_call|>", "<|end|>"),
    closers=("<|/tool_call|>",),
    models=("*phi-4-mini*", "*phi4-mini*"),
    writing=json_list("functools"),
)
FIREFUNCTION_V2 = Dialect(
    name="firefunction_v2",
    openers=_WORDS,
    inside=r"\s*[\[{]",
    read=json_in("<|eot_id|>"),
    models=("*firefunction*",),
    writing=json_list("functools"),
)


def _anywhere(dialect: Dialect) -> Dialect:
    """If the user names the dialect, the word counts in the middle of a line too."""
    openers = ("functools", *(opener for opener in dialect.openers if opener not in _WORDS))
    return replace(dialect, named=replace(dialect, openers=openers))


DIALECTS = (_anywhere(PHI4_MINI), _anywhere(FIREFUNCTION_V2))
