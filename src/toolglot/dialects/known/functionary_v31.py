"""Functionary 3.1, and Llama 3.1 with tools of its user: `<function=ls>{"p": "/"}</function>`.

The end of the tag may be missing, or follow the arguments, which may be in parentheses: Groq's `failed_generation`
looks like this. A program behind `<|python_tag|>` is a call of `python`.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from toolglot.dialects.dialect import Dialect, skip_closer
from toolglot.dialects.families.json_calls import arguments_of
from toolglot.dialects.reading import MAX_NAME, DialectReader, Outcome
from toolglot.dialects.scanner import Steps, marks
from toolglot.dialects.values.json_text import json_string
from toolglot.dialects.writers.writing_forms import Writing, as_text

_NAME: Final = re.compile(r"[^\s<>{}(),\[\]]+")
_INSIDE: Final = re.compile(r"[^\s<>{}(),\[\]]++(?:\)?>\s*+(?:\{|</function>|\Z)|\s*+[(,]?+\s*+\[?+\{)")
AHEAD: Final = 64
_PYTHON: Final = "<|python_tag|>"


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    scanner = reader.scanner
    if opener == _PYTHON:
        return (yield from _program(reader)) if reader.accepts("python") else "none"
    yield from scanner.need(AHEAD)
    if not _INSIDE.match(scanner.text, scanner.at, scanner.at + AHEAD):
        return "unfinished" if scanner.is_over else "none"
    name = yield from scanner.while_in(_NAME, MAX_NAME)
    yield from scanner.one_of((")>",) if opener.endswith("(") else (">",))
    yield from scanner.skip_spaces()
    yield from scanner.one_of((">", "(", ",", "["))
    if not reader.accepts(name):
        return "none"
    outcome = yield from arguments_of(reader, name, closers=("</function>",))
    yield from skip_closer(reader, "</function>", stray="})]>")
    return outcome


def _program(reader: DialectReader) -> Steps[Outcome]:
    reader.open("python")
    reader.input('{"code": "')
    yield from reader.scanner.until(
        marks("<|eom_id|>", "<|eot_id|>"), lambda piece: reader.input(json_string(piece)[1:-1])
    )
    reader.input('"}')
    return reader.close()


_V31 = Dialect(
    name="functionary_v31",
    openers=("<function=", "<function(", "<function/"),
    inside=_INSIDE.pattern,
    read=_read,
    models=("*functionary*v3.1*",),
    writing=Writing((as_text("<function=NAME>JSON</function>"),)),
)
DIALECTS = (replace(_V31, named=replace(_V31, openers=(*_V31.openers, _PYTHON), inside="")),)
