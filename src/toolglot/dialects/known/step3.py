"""Step 3: a section of calls, each with marks of its own around tags of the space `steptml`, which are not typed.

    <|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>ls
    <steptml:invoke name="ls"><steptml:parameter name="p">/</steptml:parameter></steptml:invoke>
    <|tool_call_end|><|tool_calls_end|>

The bars are U+FF5C. The words before an invoke may be missing, and so may the section.
"""

from __future__ import annotations

import re

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.tag_calls import TagStyle, tags_in
from toolglot.dialects.writers.writing_forms import tag_section

_BEGIN, _SEPARATOR, _END = "<\uff5ctool_call_begin\uff5c>", "<\uff5ctool_sep\uff5c>", "<\uff5ctool_call_end\uff5c>"
_STYLE = TagStyle(
    call=("<steptml:invoke ",),
    close_call=("</steptml:invoke>",),
    parameter=("<steptml:parameter ",),
    close_parameter=("</steptml:parameter>",),
    open_section=("<\uff5ctool_calls_begin\uff5c>",),
    close_section=("<\uff5ctool_calls_end\uff5c>",),
    skipped=(_END, _SEPARATOR, _BEGIN),
    gap=re.compile(r"[^<]*+"),
)
_WORDS = rf"(?:(?:function)?\s*+{_SEPARATOR})?+[\w.\-]*+\s*+(?:<steptml:|<?\Z)"

STEP3 = Dialect(
    name="step3",
    openers=(*_STYLE.open_section, _BEGIN, *_STYLE.call),
    inside=rf"\s*+(?:{_BEGIN})?+\s*+{_WORDS}|name=",
    read=tags_in(_STYLE),
    closers=(*_STYLE.close_section, _END),
    models=("*step3*", "*step-3"),
    writing=tag_section(
        f'{_BEGIN}<steptml:invoke name="NAME">',
        '<steptml:parameter name="KEY">VALUE</steptml:parameter>',
        f"</steptml:invoke>{_END}",
        section=(_STYLE.open_section[0], _STYLE.close_section[0]),
    ),
)

DIALECTS = (STEP3,)
