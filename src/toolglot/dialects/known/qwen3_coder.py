"""Qwen3-Coder, MiMo, Nemotron 3, Step 3.5: a tag for the call and one for each argument, whose values are not typed.

    <tool_call><function=ls><parameter=p>/</parameter></function></tool_call>

The outer tag may be missing.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect, tags_in
from toolglot.dialects.tag_calls import TagStyle

QWEN3_CODER = Dialect(
    name="qwen3_coder",
    openers=("<tool_call>", "<function="),
    inside=r"\s*<function=|\s*[\w.-]+\s*>",
    read=tags_in(
        TagStyle(
            call=("<function=",),
            close_call=("</function>",),
            parameter=("<parameter=",),
            close_parameter=("</parameter>",),
            close_section=("</tool_call>",),
        )
    ),
    models=("*qwen3-coder*", "*qwen3.5*", "*mimo*", "*nemotron-3*", "*step-3.5*"),
)
