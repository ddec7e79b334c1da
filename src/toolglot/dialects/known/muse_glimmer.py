"""Muse: messages with a recipient, and calls in tags of the space `atem`, which are not typed.

    <|start|>assistant to=ls<|message|><atem:function_calls><atem:invoke name="ls"><atem:parameter name="p">/
    </atem:parameter></atem:invoke></atem:function_calls><|eom|>

A message to `self` is thinking. The name may be doubled: `ls.ls`.
"""

from __future__ import annotations

from msgspec.structs import replace

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.tag_calls import TagStyle, read_head, tags_in, undouble_name
from toolglot.dialects.lookahead import give_back, next_of
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps, marks
from toolglot.dialects.writers.writing_forms import invokes

_SECTION, _ENDS = "<atem:function_calls>", ("<|eom|>", "<|eot|>")
_FIRST = tuple(f"\n{space}to={whom}<|message|>" for space in ("", " ") for whom in ("self", "user"))
_ANY_FIRST, _MESSAGE_ENDS = ("\n to=", "\nto="), (*_ENDS, "<|end|>", "<|return|>", "<|start|>")
"""The prompt ends with the role, so a text may begin with the recipient: any, if the user named the dialect."""
_STYLE = TagStyle(
    call=("<atem:invoke ",),
    close_call=("</atem:invoke>",),
    parameter=("<atem:parameter ",),
    close_parameter=("</atem:parameter>",),
    open_section=(_SECTION, "<|start|>"),
    close_section=("</atem:function_calls>", *_ENDS),
    skipped=(_SECTION,),
    untyped="json",
    rename=undouble_name,
)


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    whom = opener.removesuffix("<|message|>").rpartition("to=")[2]
    if opener in ("<|start|>", *_ANY_FIRST):
        head = yield from read_head(reader, marks("<|message|>"), 300)
        if head is None and opener in _ANY_FIRST:
            return "none"
        whom = head[0].rpartition("to=")[2] if head is not None else ""
    if whom in ("self", "user"):
        reader.scanner.unmark()
        text_steps = reader.scanner.until(marks(*_MESSAGE_ENDS), reader.output.add_text)
        found = yield from (reader.think_until(_MESSAGE_ENDS) if whom == "self" else text_steps)
        reader.output.end_thinking()
        if found == "<|start|>":
            give_back(reader.scanner, found)
        return "passed"
    outcome = yield from tags_in(_STYLE)(reader, opener)
    if outcome == "call":
        yield from next_of(reader.scanner, _ENDS)
    return outcome


_MARKS = (*_STYLE.open_section, *_STYLE.call)
_UNSTARTED = Dialect(
    name="muse_glimmer",
    openers=(*_MARKS, *_ANY_FIRST),
    read=_read,
    closers=_ENDS,
    models=("*muse*",),
    writing=invokes(_SECTION, "</atem:function_calls>", prefix="atem:"),
)
DIALECTS = (replace(_UNSTARTED, openers=(*_MARKS, *_FIRST), named=_UNSTARTED),)
