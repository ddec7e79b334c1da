"""Liquid LFM2: `<|tool_call_start|>[ls(p="/"), pwd()]<|tool_call_end|>`, or a list of JSON objects."""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.python_calls import python_in
from toolglot.dialects.writers.writing_forms import python_list

LFM2 = Dialect(
    name="lfm2",
    openers=("<|tool_call_start|>", "<|tool_call_end|>"),
    read=python_in("<|tool_call_end|>"),
    closers=("<|tool_call_end|>",),
    models=("*lfm2*",),
    writing=python_list("<|tool_call_start|>", "<|tool_call_end|>"),
)

DIALECTS = (LFM2,)
