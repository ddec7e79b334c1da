"""InternLM 2 and 2.5: `<|action_start|><|plugin|>{"name": "ls", "parameters": {"p": "/"}}<|action_end|>`."""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect, json_in
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import Writing, as_object

_OBJECT = json_in("<|action_end|>")


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    yield from reader.scanner.skip_spaces()
    yield from reader.scanner.one_of(("<|plugin|>",))
    return (yield from _OBJECT(reader, opener))


INTERNLM2 = Dialect(
    name="internlm2",
    openers=("<|action_start|>",),
    inside=r"\s*<\|plugin\|>\s*[\[{]",
    read=_read,
    closers=("<|action_end|>",),
    models=("*internlm2*",),
    writing=Writing((as_object("<|action_start|><|plugin|>\n", "<|action_end|>", arguments="parameters"),)),
)

DIALECTS = (INTERNLM2,)
