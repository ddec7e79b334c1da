"""Kimi K3: tags made of marks, with the types of arguments in them.

    <|open|>tools<|sep|><|open|>call tool="ls" index="1"<|sep|><|open|>argument key="p" type="string"<|sep|>/
    <|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>

The marks around the response and the message are dropped.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.tag_calls import TagStyle, tags_in
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import tag_section

_SECTION = "<|open|>tools<|sep|>"
_STYLE = TagStyle(
    call=("<|open|>call ",),
    close_call=("<|close|>call<|sep|>",),
    parameter=("<|open|>argument ",),
    close_parameter=("<|close|>argument<|sep|>",),
    open_section=(_SECTION,),
    close_section=("<|close|>tools<|sep|>",),
    head_end=("<|sep|>",),
)
_EMPTY = ("<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>")
_read_tags = tags_in(_STYLE)


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    if opener in _EMPTY:
        return "passed"
    return (yield from _read_tags(reader, opener))


KIMI_K3 = Dialect(
    name="kimi_k3",
    openers=(_SECTION, *_STYLE.call, *_EMPTY),
    read=_read,
    closers=(*_STYLE.close_section, *_STYLE.close_call, *_STYLE.close_parameter),
    thinking=(("<|open|>think<|sep|>", "<|close|>think<|sep|>"),),
    models=("*kimi-k3*", "*kimi_k3*"),
    writing=tag_section(
        '<|open|>call tool="NAME" index="ID"<|sep|>',
        '<|open|>argument key="KEY" type="TYPE"<|sep|>VALUE<|close|>argument<|sep|>',
        "<|close|>call<|sep|>",
        section=(_SECTION, "<|close|>tools<|sep|>"),
    )._replace(ids="position"),
)

DIALECTS = (KIMI_K3,)
