"""A call whose name and arguments have a tag each, in a `<tool_call>`.

    <tool_call><name>ls</name><arguments>{"p": "/"}</arguments></tool_call>
    <tool_call name="ls"><arguments>{"p": "/"}</arguments></tool_call>

The arguments are JSON, or tags with the names of the arguments.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.part_calls import INSIDE, part_call
from toolglot.dialects.families.tag_calls import read_head, tag_name
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps, marks
from toolglot.dialects.writers.writing_forms import Writing, as_text

_NAMED = "<tool_call "


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    name = ""
    if opener == _NAMED:
        head = yield from read_head(reader, marks(">"))
        if head is None:
            return "unfinished" if reader.scanner.is_over else "none"
        name = tag_name(head[0])
    return (yield from part_call(reader, ("</tool_call>",), name))


XAI_TOOL_CALL = Dialect(
    name="xai_tool_call",
    openers=("<tool_call>", _NAMED),
    inside=rf"{INSIDE}|(?:name|tool|function)\s*=",
    read=_read,
    writing=Writing((as_text("<tool_call><name>NAME</name><arguments>JSON</arguments></tool_call>"),)),
)

DIALECTS = (XAI_TOOL_CALL,)
