"""A list of calls in a tag: `<tool_calls>[{"name": "ls", "arguments": {"p": "/"}}]</tool_calls>`.

Jamba, Hunyuan A13B and Apriel differ in what surrounds it; Nemotron Nano 2 and LongCat have tags of their own.
"""

from __future__ import annotations

from msgspec.structs import replace

from toolglot.dialects.dialect import THINK, Dialect, json_in
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import Writing, as_object, json_list

_READ = json_in("</tool_calls>")
_INSIDE = r"\s*[\[{]"
_WRITING = json_list("<tool_calls>", "</tool_calls>")


def _read_apriel(reader: DialectReader, opener: str) -> Steps[Outcome]:
    if opener.startswith("["):
        return "passed"
    return (yield from _READ(reader, opener))


JAMBA = Dialect(
    name="jamba", openers=("<tool_calls>",), inside=_INSIDE, read=_READ, models=("*jamba*",), writing=_WRITING
)
_ANSWER = "[BEGIN FINAL RESPONSE]"
APRIEL = Dialect(
    name="apriel",
    openers=("<tool_calls>", _ANSWER, "[END FINAL RESPONSE]"),
    inside=r"(?!\s*<(?!tool_calls>))",
    read=_read_apriel,
    thinking=(*THINK, ("<thinking>", "</thinking>")),
    models=("*apriel*",),
    writing=_WRITING,
    is_variant=True,
)

DIALECTS = (
    JAMBA,
    replace(JAMBA, name="hunyuan_a13b", models=("*hunyuan*a13b*",)),
    replace(APRIEL, named=replace(APRIEL, thinking=(*APRIEL.thinking, ("Here are my reasoning steps:", _ANSWER)))),
    Dialect(
        name="nemotron_toolcall",
        openers=("<TOOLCALL>",),
        inside=_INSIDE,
        read=json_in("</TOOLCALL>"),
        models=("*nemotron-nano*v2*", "*nemotron-nano-9b*", "*nemotron-nano-12b*"),
        writing=json_list("<TOOLCALL>", "</TOOLCALL>"),
    ),
    Dialect(
        name="longcat",
        openers=("<longcat_tool_call>",),
        inside=_INSIDE,
        read=json_in("</longcat_tool_call>"),
        thinking=(*THINK, ("<longcat_think>", "</longcat_think>")),
        models=("*longcat*",),
        writing=Writing((as_object("<longcat_tool_call>\n", "\n</longcat_tool_call>"),)),
    ),
)
