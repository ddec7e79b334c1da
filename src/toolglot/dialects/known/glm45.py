"""GLM 4.5 and 4.7, Ling 3, Poolside: a name and pairs of a key and a value, which are not typed.

    <tool_call>ls
    <arg_key>p</arg_key>
    <arg_value>/</arg_value>
    </tool_call>

Version 4.7 writes no line breaks. Without a schema a value is JSON if it can be read so.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.pair_calls import INSIDE, pairs_in
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import Writing, tag_section

_ON_LINES = tag_section(
    "<tool_call>NAME\n",
    "<arg_key>KEY</arg_key>\n<arg_value>VALUE</arg_value>\n",
    "</tool_call>",
    between="\n",
)
_ON_ONE_LINE = tag_section("<tool_call>NAME", "<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>", "</tool_call>")


def _pairs(name: str, *models: str, writing: Writing = _ON_LINES) -> Dialect:
    return Dialect(name=name, openers=("<tool_call>",), inside=INSIDE, read=pairs_in(), models=models, writing=writing)


_LING = _pairs("ling3", "*ling-3*", "*ling3*")
_AHEAD = 64
_LING_END = "<|role_end|>"


def _read_ling(reader: DialectReader, opener: str) -> Steps[Outcome]:
    """Ling 3 may write the token that ends its turn as text."""
    if opener == _LING_END:
        return "passed"
    scanner = reader.scanner
    yield from scanner.need(_AHEAD)
    is_call = re.match(INSIDE, scanner.text[scanner.at : scanner.at + _AHEAD]) is not None
    return (yield from _LING.read(reader, opener)) if is_call else "none"


DIALECTS = (
    _pairs("glm45", "*glm-4.5*", "*glm-4.6*", "*glm4.5*"),
    _pairs("glm47", "*glm-4.7*", "*glm-5*", "*glm4.7*", writing=_ON_ONE_LINE),
    replace(_LING, named=replace(_LING, openers=(*_LING.openers, _LING_END), inside="", read=_read_ling)),
    _pairs("poolside_v1", "*poolside*", "*laguna*"),
)
