"""Qwen3-Coder, MiMo, Nemotron 3, Step 3.5, Seed-OSS: a tag for the call and one for each argument, without types.

    <tool_call><function=ls><parameter=p>/</parameter></function></tool_call>

The outer tag may be missing. Values are on lines of their own.
"""

from __future__ import annotations

from toolglot.dialects.dialect import THINK, Dialect
from toolglot.dialects.families.tag_calls import TagStyle, tags_in
from toolglot.dialects.values.argument_writer import Trim
from toolglot.dialects.writers.writing_forms import Writing, as_tags

_INSIDE = r"\s*+(?:<function=|[{\[]|[^\s<>{}]++\s*+>?\s*+(?:\{|</?(?:function|parameter|tool_call|seed)|<?/?\Z))"


def _style(section: str, trim: Trim = "newline") -> TagStyle:
    return TagStyle(
        call=("<function=",),
        close_call=("</function>",),
        parameter=("<parameter=",),
        close_parameter=("</parameter>",),
        open_section=(f"<{section}>",),
        close_section=("</tool_call>", "</seed:tool_call>"),
        head_end=(">", "<", "\n", ": "),
        trim=trim,
    )


def _writing(section: str) -> Writing:
    begin, end = f"<{section}>\n<function=NAME>\n", f"</function>\n</{section}>"
    return Writing((as_tags(begin, "<parameter=KEY>\nVALUE\n</parameter>\n", end),))


QWEN3_CODER = Dialect(
    name="qwen3_coder",
    openers=("<tool_call>", "<function="),
    inside=_INSIDE,
    read=tags_in(_style("tool_call")),
    closers=("</tool_call>",),
    models=("*qwen3-coder*", "*qwen3.5*", "*qwen3.6*", "*mimo*", "*nemotron-3*"),
    writing=_writing("tool_call"),
)
STEP3P5 = Dialect(
    name="step3p5",
    openers=("<tool_call>", "<function="),
    inside=_INSIDE,
    read=tags_in(_style("tool_call")),
    closers=("</tool_call>",),
    models=("*step-3.5*", "*step3p5*", "*step3.5*"),
    writing=_writing("tool_call"),
)
SEED_OSS = Dialect(
    name="seed_oss",
    openers=("<seed:tool_call>", "<function="),
    inside=_INSIDE,
    read=tags_in(_style("seed:tool_call", "lines")),
    closers=("</seed:tool_call>",),
    thinking=(("<seed:think>", "</seed:think>"), *THINK),
    models=("*seed-oss*",),
    writing=_writing("seed:tool_call"),
)

DIALECTS = (QWEN3_CODER, STEP3P5, SEED_OSS)
