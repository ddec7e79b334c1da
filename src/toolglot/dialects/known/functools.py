"""Phi-4 mini and FireFunction 2: a list behind a word at the start of a line, `functools[{"name": …, "arguments": …}]`.

Phi-4 mini also writes the list between `<|tool_call|>` and `<|/tool_call|>`.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect, json_in

_WORDS = ("\nfunctools", "\n functools")

PHI4_MINI = Dialect(
    name="phi4_mini",
    openers=(*_WORDS, "<|tool_call|>"),
    inside=r"\s*[\[{]",
    read=json_in("<|/tool_call|>", "<|end|>"),
    models=("*phi-4-mini*", "*phi4-mini*"),
)
FIREFUNCTION_V2 = Dialect(
    name="firefunction_v2",
    openers=_WORDS,
    inside=r"\s*[\[{]",
    read=json_in("<|eot_id|>"),
    models=("*firefunction*",),
)

DIALECTS = (PHI4_MINI, FIREFUNCTION_V2)
