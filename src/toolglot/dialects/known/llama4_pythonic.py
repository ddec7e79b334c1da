"""Llama 4: `<|python_start|>[ls(p="/"), pwd()]<|python_end|>`. Without its marks, the list is `pythonic`."""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.python_calls import python_in

LLAMA4_PYTHONIC = Dialect(
    name="llama4_pythonic",
    openers=("<|python_start|>", "<|python_end|>"),
    read=python_in("<|python_end|>"),
    models=("*llama-4*", "*llama4*"),
)

DIALECTS = (LLAMA4_PYTHONIC,)
