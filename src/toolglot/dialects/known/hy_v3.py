"""Hunyuan 3: as GLM, with a mark behind the name and a section around the calls.

<tool_calls><tool_call>ls<tool_sep><arg_key>p</arg_key><arg_value>/</arg_value></tool_call></tool_calls>
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.pair_calls import INSIDE, pairs_in
from toolglot.dialects.writers.writing_forms import tag_section

HY_V3 = Dialect(
    name="hy_v3",
    openers=("<tool_calls>", "<tool_call>"),
    inside=rf"\s*+<tool_call>|{INSIDE}",
    read=pairs_in("</tool_calls>"),
    models=("*hy3*", "*hunyuan-3*", "*hy-v3*"),
    writing=tag_section(
        "<tool_call>NAME<tool_sep>",
        "<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>",
        "</tool_call>",
        section=("<tool_calls>", "</tool_calls>"),
    ),
)

DIALECTS = (HY_V3,)
