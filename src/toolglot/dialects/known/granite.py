"""Granite 3: a list behind a token, `<|tool_call|>[{"name": "ls", "arguments": {"p": "/"}}]`; 3.1 has `<tool_call>`.

Granite 20B function calling: one object behind each `<function_call>`, which nothing closes.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect, json_in

GRANITE = Dialect(
    name="granite",
    openers=("<|tool_call|>", "<tool_call>"),
    inside=r"\s*[\[{]",
    read=json_in("</tool_call>", "<|/tool_call|>", "<|end_of_text|>"),
    models=("*granite-3*",),
    is_variant=True,
)
GRANITE20B_FC = Dialect(
    name="granite20b_fc",
    openers=("<function_call>",),
    inside=r"\s*[\[{]",
    read=json_in("</function_call>", "<|endoftext|>"),
    models=("*granite-20b-functioncalling*",),
)

DIALECTS = (GRANITE, GRANITE20B_FC)
