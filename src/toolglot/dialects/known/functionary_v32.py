"""Functionary 3.2: a recipient, and on the next line what it gets.

    >>>all
    Looking.>>>ls
    {"p": "/"}

A message to `all` is text, and one to `python` is code. The first mark is part of the prompt.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.json_calls import arguments_of
from toolglot.dialects.reading import MAX_NAME, DialectReader, Outcome
from toolglot.dialects.scanner import Steps, marks
from toolglot.dialects.values.json_text import json_string
from toolglot.dialects.writers.writing_forms import Writing, as_text

_NAME: Final = re.compile(r"[\w.:-]+")
_CODE: Final = ("python", "ipython")


def _read(reader: DialectReader, _opener: str) -> Steps[Outcome]:
    scanner = reader.scanner
    name = yield from scanner.while_in(_NAME, MAX_NAME)
    if name == "all":
        yield from scanner.one_of(("\r\n", "\n"))
        return "passed"
    mark = yield from scanner.skip_spaces()
    if mark == "{" and reader.accepts(name):
        return (yield from arguments_of(reader, name))
    if name not in _CODE or mark == "" or not reader.accepts(name):
        return "unfinished" if mark == "" else "none"
    reader.open(name)
    reader.input('{"code": "')
    found = yield from scanner.until(marks(">>>"), lambda piece: reader.input(json_string(piece)[1:-1]))
    reader.input('"}')
    scanner.at -= len(found or "")  # the next recipient
    return reader.close()


FUNCTIONARY_V32 = Dialect(
    name="functionary_v32",
    openers=(">>>",),
    inside=r"[A-Za-z_][\w.:-]*\r?\n",
    read=_read,
    models=("*functionary*v3.2*",),
    writing=Writing((as_text(">>>NAME\nJSON"),)),
)

DIALECTS = (replace(FUNCTIONARY_V32, named=replace(FUNCTIONARY_V32, prompted=(">>>",))),)
