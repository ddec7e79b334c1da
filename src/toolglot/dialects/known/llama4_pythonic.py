"""Llama 4: `<|python_start|>[ls(p="/"), pwd()]<|python_end|>`. Without its marks, the list is `pythonic`."""

from __future__ import annotations

from msgspec.structs import replace

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.python_calls import python_in
from toolglot.dialects.known.pythonic import ANYWHERE
from toolglot.dialects.writers.writing_forms import python_list

LLAMA4_PYTHONIC = Dialect(
    name="llama4_pythonic",
    openers=("<|python_start|>", "<|python_end|>"),
    read=python_in("<|python_end|>"),
    closers=("<|python_end|>",),
    models=("*llama-4*", "*llama4*"),
    writing=python_list("<|python_start|>", "<|python_end|>"),
    named=replace(ANYWHERE, name="llama4_pythonic", inside="", is_weak=False),
)

DIALECTS = (LLAMA4_PYTHONIC,)
