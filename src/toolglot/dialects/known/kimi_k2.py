"""Kimi K2: a section of calls whose ids hold the names and count over the whole conversation.

    <|tool_calls_section_begin|>
    <|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>{"p": "/"}<|tool_call_end|>
    <|tool_calls_section_end|>

A bare number instead of the id means the only tool that fits.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.section_calls import SectionStyle, name_in_id, section_call
from toolglot.dialects.writers.writing_forms import Writing, as_text

_STYLE = SectionStyle(
    open_section=("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"),
    close_section=("<|tool_calls_section_end|>", "<|tool_call_section_end|>"),
    call="<|tool_call_begin|>",
    separator="<|tool_call_argument_begin|>",
    close_call="<|tool_call_end|>",
    named=name_in_id,
)

KIMI_K2 = Dialect(
    name="kimi_k2",
    openers=(*_STYLE.open_section, _STYLE.call),
    read=section_call(_STYLE),
    closers=(*_STYLE.close_section, _STYLE.close_call),
    thinking=(("<think>", "</think>"), ("◁think▷", "◁/think▷")),
    thought_ends=_STYLE.open_section,
    models=("*kimi-k2*",),
    writing=Writing(
        (as_text(f"{_STYLE.call}ID{_STYLE.separator}JSON{_STYLE.close_call}"),),
        begin=_STYLE.open_section[0],
        between="",
        end=_STYLE.close_section[0],
        ids="kimi",
    ),
)

DIALECTS = (KIMI_K2,)
