"""Granite 3: a list behind a token, `<|tool_call|>[{"name": "ls", "arguments": {"p": "/"}}]`; 3.1 has `<tool_call>`.

Granite 20B function calling: one object behind each `<function_call>`, which nothing closes.
"""

from __future__ import annotations

from msgspec.structs import replace

from toolglot.dialects.dialect import Dialect, json_in
from toolglot.dialects.families.json_calls import BARE, call_list
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import Writing, as_object, json_list

_read_marked = json_in("</tool_call>", "<|/tool_call|>", "<|end_of_text|>")


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    if opener != "\n[":
        return (yield from _read_marked(reader, opener))
    reader.only_offered = bool(reader.tools)
    return (yield from call_list(reader, BARE, is_open=True))


GRANITE = Dialect(
    name="granite",
    openers=("<|tool_call|>", "<tool_call>"),
    inside=r"\s*[\[{]",
    read=_read,
    closers=("<|/tool_call|>", "<|end_of_text|>", "</tool_call>"),
    models=("*granite-3*",),
    writing=json_list("<|tool_call|>"),
    is_variant=True,
)
GRANITE20B_FC = Dialect(
    name="granite20b_fc",
    openers=("<function_call>",),
    inside=r"\s*[\[{]",
    read=json_in("</function_call>", "<|endoftext|>"),
    models=("*granite-20b-functioncalling*",),
    writing=Writing((as_object("<function_call> "),)),
)

_UNMARKED = replace(GRANITE, openers=(*GRANITE.openers, "\n["))
"""Servers drop the token, which is a special one. If the user names the dialect, the list alone counts."""

DIALECTS = (replace(GRANITE, named=_UNMARKED), GRANITE20B_FC)
