"""Functionary 3.1, and Llama 3.1 with tools of its user: `<function=ls>{"p": "/"}</function>`."""

from __future__ import annotations

import re
from typing import Final

from toolglot.dialects.dialect import Dialect, skip_closer
from toolglot.dialects.json_calls import arguments_of
from toolglot.dialects.reading import LONGEST_NAME, Outcome, Reader
from toolglot.dialects.scanner import Steps

_NAME: Final = re.compile(r"[^\s<>{]+")


def _read(reader: Reader, _opener: str) -> Steps[Outcome]:
    name = yield from reader.scanner.while_in(_NAME, LONGEST_NAME)
    yield from reader.scanner.one_of((">",))
    outcome = yield from arguments_of(reader, name)
    yield from skip_closer(reader, "</function>", stray="}")
    return outcome


FUNCTIONARY_V31 = Dialect(
    name="functionary_v31",
    openers=("<function=",),
    inside=r"[^\s<>{]+>\s*(?:\{|</function>|\Z)",
    read=_read,
    models=("*functionary*v3.1*",),
)

DIALECTS = (FUNCTIONARY_V31,)
