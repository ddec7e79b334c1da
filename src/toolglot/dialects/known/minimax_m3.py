"""MiniMax M3: every tag behind a prefix; a parameter's name is its tag, and tags in it are objects.

]<]minimax[>[<tool_call>]<]minimax[>[<invoke name="ls">]<]minimax[>[<p>/]<]minimax[>[</p>
]<]minimax[>[</invoke>]<]minimax[>[</tool_call>
"""

from __future__ import annotations

from toolglot.dialects.dialect import THINK, Dialect
from toolglot.dialects.families.nested_tags import nested_call
from toolglot.dialects.families.sections import Section, calls_in
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import tag_section

PREFIX = "]<]minimax[>["
_INVOKE = f"{PREFIX}<invoke "


def _read_call(reader: DialectReader, _opener: str) -> Steps[Outcome]:
    return (yield from nested_call(reader, PREFIX))


MINIMAX_M3 = Dialect(
    name="minimax_m3",
    openers=(f"{PREFIX}<tool_call>", _INVOKE),
    inside=r"\s*+(?:\]<\]minimax\[>\[<invoke |name=)",
    read=calls_in(Section((_INVOKE,), (f"{PREFIX}</tool_call>",)), _read_call),
    closers=(f"{PREFIX}</tool_call>", f"{PREFIX}</invoke>"),
    thinking=(("<mm:think>", "</mm:think>"), *THINK),
    models=("*minimax-m3*", "*minimax_m3*"),
    writing=tag_section(
        f'{PREFIX}<invoke name="NAME">',
        f"{PREFIX}<KEY>VALUE{PREFIX}</KEY>",
        f"{PREFIX}</invoke>",
        section=(f"{PREFIX}<tool_call>", f"{PREFIX}</tool_call>"),
    ),
)

DIALECTS = (MINIMAX_M3,)
