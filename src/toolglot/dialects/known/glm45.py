"""GLM 4.5 and 4.7, Ling 3, Poolside: a name and pairs of a key and a value, which are not typed.

    <tool_call>ls
    <arg_key>p</arg_key>
    <arg_value>/</arg_value>
    </tool_call>

Version 4.7 writes no line breaks. Without a schema a value is JSON if it can be read so.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.pair_calls import INSIDE, pairs_in


def _pairs(name: str, *models: str) -> Dialect:
    return Dialect(name=name, openers=("<tool_call>",), inside=INSIDE, read=pairs_in(), models=models)


DIALECTS = (
    _pairs("glm45", "*glm-4.5*", "*glm-4.6*", "*glm4.5*"),
    _pairs("glm47", "*glm-4.7*", "*glm-5*", "*glm4.7*"),
    _pairs("ling3", "*ling-3*", "*ling3*"),
    _pairs("poolside_v1", "*poolside*", "*laguna*"),
)
