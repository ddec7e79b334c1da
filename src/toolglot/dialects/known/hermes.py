"""Qwen 2.5 and 3, Hermes, Reka, Granite 4: an object in a tag.

    <tool_call>{"name": "ls", "arguments": {"p": "/"}}</tool_call>

Ernie 4.5 writes the same behind `</think>`, which it never opened.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect, json_in
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import Writing, as_object

_READ = json_in("</tool_call>")
_INSIDE = r"\s*[\[{]"
_WRITING = Writing((as_object("<tool_call>\n", "\n</tool_call>"),))

HERMES = Dialect(
    name="hermes",
    openers=("<tool_call>",),
    inside=_INSIDE,
    read=_READ,
    closers=("</tool_call>",),
    models=("*hermes*", "*qwen2.5*", "*qwen3-*", "*qwq*", "*reka*"),
    writing=_WRITING,
)
GRANITE4 = Dialect(
    name="granite4",
    openers=("<tool_call>",),
    inside=_INSIDE,
    read=_READ,
    closers=("</tool_call>",),
    models=("*granite-4*",),
    writing=_WRITING,
    is_variant=True,
)


def _read_ernie(reader: DialectReader, opener: str) -> Steps[Outcome]:
    if opener == "</think>":
        yield from reader.scanner.skip_spaces()
        return "passed"
    return (yield from _READ(reader, opener))


ERNIE45 = Dialect(
    name="ernie45",
    openers=("<tool_call>", "</think>"),
    inside=r"\s*(?:<tool_call>\s*)?[\[{]",
    read=_read_ernie,
    closers=("</tool_call>",),
    models=("*ernie-4.5*", "*ernie4.5*"),
    writing=_WRITING,
    is_variant=True,
)

DIALECTS = (HERMES, GRANITE4, ERNIE45)
