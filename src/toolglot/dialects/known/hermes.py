"""Qwen 2.5 and 3, Hermes, Reka: `<tool_call>{"name": …, "arguments": …}</tool_call>`."""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect, json_in

HERMES = Dialect(
    name="hermes",
    openers=("<tool_call>",),
    inside=r"\s*[\[{]",
    read=json_in("</tool_call>"),
    models=("*hermes*", "qwen2.5*", "qwen3-*", "*reka*"),
)
