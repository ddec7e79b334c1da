"""MiniMax M2 and Dots: a section of invokes, each with parameters that are not typed.

    <minimax:tool_call><invoke name="ls"><parameter name="p">/</parameter></invoke></minimax:tool_call>
    <dots_function_call><invoke name="ls">…</invoke></dots_function_call>

Values are kept as they are, white space included.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.tag_calls import TagStyle, tags_in
from toolglot.dialects.writers.writing_forms import invokes


def _style(section: str) -> TagStyle:
    return TagStyle(
        call=("<invoke ",),
        close_call=("</invoke>",),
        parameter=("<parameter ",),
        close_parameter=("</parameter>",),
        open_section=(f"<{section}>",),
        close_section=(f"</{section}>",),
    )


MINIMAX_M2 = Dialect(
    name="minimax_m2",
    openers=("<minimax:tool_call>",),
    inside=r"\s*+(?:<invoke |[{\[])",
    read=tags_in(_style("minimax:tool_call")),
    models=("*minimax-m2*", "*minimax_m2*"),
    writing=invokes("<minimax:tool_call>\n", "\n</minimax:tool_call>"),
)
DOTS = Dialect(
    name="dots",
    openers=("<dots_function_call>",),
    inside=r"\s*+(?:<invoke |[{\[])",
    read=tags_in(_style("dots_function_call")),
    models=("*dots*",),
    writing=invokes("<dots_function_call>", "</dots_function_call>"),
)

DIALECTS = (MINIMAX_M2, DOTS)
