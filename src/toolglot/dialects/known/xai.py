"""Grok: tags that leak into the text, often with broken closers, and the tag that xAI documents.

    <xai:function_call name="ls"><parameter name="p">/</parameter></xai:function_call>
    <x.ai:tool_call>{"name": "ls", "arguments": {"p": "/"}}</x.ai:tool_call>

A closer may lack its end or have too much of it; `</content>` closes a parameter called content; a space may follow the
`<`. The second form may also hold a name and arguments in tags of their own.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect, skip_closer
from toolglot.dialects.families.json_calls import call_list
from toolglot.dialects.families.part_calls import part_call
from toolglot.dialects.families.tag_calls import TagStyle, tags_in
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import tag_section

_TAGS = ("xai:function_call", "x.ai:function_call", "xai:tool_call", "x.ai:tool_call")
_CLOSERS = tuple(f"{start}{tag}" for tag in _TAGS for start in ("</", "</ ", "< /", "< / "))
_STYLE = TagStyle(
    call=tuple(f"{start}{tag} " for tag in _TAGS for start in ("<", "< ")),
    close_call=_CLOSERS,
    parameter=("<parameter ", "< parameter ", "<xai:parameter ", "<x.ai:parameter "),
    close_parameter=("</parameter>", "</ parameter>", "</xai:parameter>", "</x.ai:parameter>"),
    cut_closers=True,
    named_closers=True,
)
_WHOLE = tuple(f"{start}{tag}>" for tag in _TAGS for start in ("<", "< "))
_read_tags = tags_in(_STYLE)


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    if opener in _STYLE.call:
        return (yield from _read_tags(reader, opener))
    closers = tuple(f"{closer}>" for closer in _CLOSERS)
    if (yield from reader.scanner.skip_spaces()) not in ("{", "["):
        return (yield from part_call(reader, closers))
    outcome = yield from call_list(reader, closers=closers)
    if outcome in ("call", "cut"):
        yield from skip_closer(reader, *closers)
    return outcome


XAI = Dialect(
    name="xai",
    openers=(*_STYLE.call, *_WHOLE),
    read=_read,
    models=("*grok*", "x-ai/*"),
    writing=tag_section(
        '<xai:function_call name="NAME">',
        '<parameter name="KEY">VALUE</parameter>',
        "</xai:function_call>",
        between="\n",
    ),
)

DIALECTS = (XAI,)
