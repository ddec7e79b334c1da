"""A dialect of a model that toolglot does not know: reader and writer in one file, as CONTRIBUTING.md says.

=>> ls {"p": "/"} <<=
"""

from __future__ import annotations

import re
from typing import Final

from toolglot.dialects.dialect import Dialect, skip_closer
from toolglot.dialects.families.json_calls import arguments_of
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import Writing, as_text

_NAME: Final = re.compile(r"[\w.:-]+")
_CLOSER: Final = "<<="


def _read(reader: DialectReader, _opener: str) -> Steps[Outcome]:
    yield from reader.scanner.skip_spaces()
    name = yield from reader.scanner.while_in(_NAME, 64)
    mark = yield from reader.scanner.skip_spaces()
    if mark != "{" or not reader.accepts(name):
        return "unfinished" if mark == "" else "none"
    outcome = yield from arguments_of(reader, name, closers=(_CLOSER,))
    yield from skip_closer(reader, _CLOSER)
    return outcome


TOY_ARROW = Dialect(
    name="own_arrow",
    openers=("=>>",),
    inside=r"\s*[\w.:-]+\s*\{",
    read=_read,
    closers=(_CLOSER,),
    models=("toy-arrow*",),
    writing=Writing((as_text(f"=>> NAME JSON {_CLOSER}"),), result=("=<< ", " >>=")),
)

DIALECTS = (TOY_ARROW,)
