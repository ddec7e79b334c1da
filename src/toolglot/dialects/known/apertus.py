"""Apertus: the name of the tool is the key, `<|tools_prefix|>[{"ls": {"p": "/"}}]<|tools_suffix|>`."""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect, skip_closer
from toolglot.dialects.families.json_calls import named_calls
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import as_body, json_list

_CLOSER = "<|tools_suffix|>"


def _read(reader: DialectReader, _opener: str) -> Steps[Outcome]:
    outcome = yield from named_calls(reader, (_CLOSER,))
    if outcome in ("call", "cut"):
        yield from skip_closer(reader, _CLOSER, stray="}]")
    return outcome


APERTUS = Dialect(
    name="apertus",
    openers=("<|tools_prefix|>",),
    inside=r"\s*[\[{]",
    read=_read,
    closers=(_CLOSER,),
    thinking=(("<|inner_prefix|>", "<|inner_suffix|>"),),
    models=("*apertus*",),
    writing=json_list("<|tools_prefix|>", _CLOSER, as_body(lambda name, arguments, _id: {name: arguments})),
)

DIALECTS = (APERTUS,)
