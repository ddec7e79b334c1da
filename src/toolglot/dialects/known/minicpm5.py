"""MiniCPM 5: a function with params, which are not typed and may be in CDATA.

    <function name="ls"><param name="p"><![CDATA[ / ]]></param></function>

The space in a tag may be missing, or be a tokenizer's mark for one.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.tag_calls import TagStyle, tags_in
from toolglot.dialects.writers.writing_forms import Writing, as_tags, in_cdata

_SPACES = (" ", "", "\u0120")
_STYLE = TagStyle(
    call=tuple(f"<function{space}name=" for space in _SPACES),
    close_call=("</function>",),
    parameter=tuple(f"<param{space}name=" for space in _SPACES),
    close_parameter=("</param>",),
    cdata=True,
)
_WRITTEN = ('<function name="NAME">', '<param name="KEY">VALUE</param>', "</function>")

MINICPM5 = Dialect(
    name="minicpm5",
    openers=_STYLE.call,
    inside=r"\s*+[\"'][^\"'<>]++(?:[\"']\s*+/?>?\s*+(?:</?(?:function|param)|<?/?\Z)|\Z)",
    read=tags_in(_STYLE),
    models=("*minicpm5*", "*minicpm-5*"),
    writing=Writing((as_tags(*_WRITTEN), as_tags(*_WRITTEN, value=in_cdata))),
)

DIALECTS = (MINICPM5,)
