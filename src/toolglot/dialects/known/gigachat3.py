"""GigaChat 3, a message to the role `function call`, and 3.1, a token of its own:

<|message_sep|>⏎⏎function call<|role_sep|>⏎{"name": "ls", "arguments": {"p": "/"}}
<|function_call|>{"name": "ls", "arguments": {"p": "/"}}
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect, json_in
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import Writing, as_object

_ROLE = "function call<|role_sep|>"
_OBJECT = json_in("</s>", "<|message_sep|>")


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    yield from reader.scanner.skip_spaces()
    yield from reader.scanner.one_of((_ROLE,))
    return (yield from _OBJECT(reader, opener))


GIGACHAT3 = Dialect(
    name="gigachat3",
    openers=("<|message_sep|>", "<|function_call|>", "\n" + _ROLE),
    inside=r"\s*(?:function call<\|role_sep\|>\s*)?\{",
    read=_read,
    models=("*gigachat3*", "*gigachat-3*"),
    writing=Writing((as_object(f"<|message_sep|>\n\n{_ROLE}\n"),)),
)

DIALECTS = (GIGACHAT3,)
