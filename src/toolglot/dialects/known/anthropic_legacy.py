"""Anthropic's tags of before the tools API, which models still leak, and those of 2023.

    <function_calls><invoke name="ls"><parameter name="p">/</parameter></invoke></function_calls>
    <function_calls><invoke><tool_name>ls</tool_name><parameters><p>/</p></parameters></invoke></function_calls>

The section may be missing, or be no more than the word `call` on a line of its own.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.part_calls import part_call
from toolglot.dialects.families.sections import Section, calls_in
from toolglot.dialects.families.tag_calls import TagStyle, tag_call
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import invokes

_NAMED, _BARE, _CALLED = "<invoke ", "<invoke>", "\ncall\n<invoke "
_SECTION, _CLOSE = "<function_calls>", "</function_calls>"
_STYLE = TagStyle(
    call=(_NAMED,),
    close_call=("</invoke>",),
    parameter=("<parameter ",),
    close_parameter=("</parameter>",),
    open_section=(_SECTION,),
    close_section=(_CLOSE,),
)


def _read_call(reader: DialectReader, opener: str) -> Steps[Outcome]:
    if opener == _BARE:
        return (yield from part_call(reader, ("</invoke>",)))
    return (yield from tag_call(reader, _STYLE))


ANTHROPIC_LEGACY = Dialect(
    name="anthropic_legacy",
    openers=(_SECTION, _NAMED, _BARE, _CALLED),
    inside=r"\s*+(?:<invoke[ >]|<(?:tool_)?name>|name\s*=|\[?\s*\{)",
    read=calls_in(Section((_NAMED, _BARE, _CALLED), (_CLOSE,), json=True), _read_call),
    models=("claude-*", "*claude*"),
    writing=invokes("<function_calls>\n", "\n</function_calls>"),
)

DIALECTS = (ANTHROPIC_LEGACY,)
