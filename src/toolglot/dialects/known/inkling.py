"""Inkling: typed blocks, each closed by the same mark. The name in front of a call's block means nothing.

<|message_model|><|content_thinking|>…<|end_message|>
<|message_model|>ls<|content_invoke_tool_json|>{"name": "ls", "args": {"p": "/"}}<|end_message|>
"""

from __future__ import annotations

import re
from typing import Final

from toolglot.dialects.dialect import THINK, Dialect, json_in
from toolglot.dialects.reading import MAX_NAME, DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import Writing, as_object

_INVOKE: Final = "<|content_invoke_tool_json|>"
_END: Final = "<|end_message|>"
_SILENT: Final = ("<|content_text|>", _END, "<|content_model_end_sampling|>")
_OBJECT: Final = json_in(_END)
_NAME: Final = re.compile(r"[\w.:-]+")


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    scanner = reader.scanner
    if opener in _SILENT:
        return "passed"
    if opener != _INVOKE:
        name = yield from scanner.while_in(_NAME, MAX_NAME)
        if (yield from scanner.one_of((_INVOKE,))) is None:
            if reader.is_mentioned:
                return "none"
            scanner.unmark()
            if name:
                reader.output.add_text(name)
            return "passed"
    return (yield from _OBJECT(reader, opener))


INKLING = Dialect(
    name="inkling",
    openers=("<|message_model|>", _INVOKE, *_SILENT),
    read=_read,
    thinking=(*THINK, ("<|content_thinking|>", _END)),
    thought_ends=(_INVOKE,),
    models=("*inkling*",),
    writing=Writing((as_object(_INVOKE, _END, arguments="args"),)),
)

DIALECTS = (INKLING,)
