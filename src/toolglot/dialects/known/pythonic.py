"""Llama 3.2, ToolACE and others: a list of Python calls at the start of a line, without a mark.

    [ls(p="/"), pwd()]

Any text may hold such a list, so only offered tools count. Llama 4's marks around it are dropped. If the user names the
dialect, the list may also follow the words of a sentence on its line.
"""

from __future__ import annotations

from msgspec.structs import replace

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.python_calls import CALL_AHEAD, python_in
from toolglot.dialects.writers.writing_forms import python_list

PYTHONIC = Dialect(
    name="pythonic",
    openers=("\n[", "<|python_start|>"),
    inside=r"\s*+\[?+" + CALL_AHEAD,
    read=python_in("<|python_end|>", opened=("\n[",)),
    closers=("<|python_end|>",),
    models=("*llama-3.2*", "*toolace*"),
    is_weak=True,
    writing=python_list(),
)
ANYWHERE = replace(
    PYTHONIC,
    openers=("[", "<|python_start|>"),
    read=python_in("<|python_end|>", opened=("[",)),
)

DIALECTS = (replace(PYTHONIC, named=ANYWHERE),)
