"""DeepSeek in an older form: a tag `tool` with JSON in it, or with the arguments as attributes or nested tags.

<tool>{"name": "ls", "arguments": {"p": "/"}}</tool>
<tool name="ls" p="/"/>
<tool name="ls"><p>/</p></tool>
<tool><name>ls</name><arguments><p>/</p></arguments></tool>
<tool name="bash">ls -la</tool>
"""

from __future__ import annotations

from typing import Final

from toolglot.dialects.dialect import Dialect, json_in, skip_closer
from toolglot.dialects.families.json_calls import arguments_of
from toolglot.dialects.families.tool_elements import NAMES, ElementCall, attributes, element_text, read_tag
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import Writing, as_object

_OBJECT: Final = json_in("</tool>")


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    scanner = reader.scanner
    found_attributes: dict[str, str] = {}
    is_closed = False
    if opener == "<tool ":
        head = yield from read_tag(reader)
        if head is None:
            return "unfinished" if scanner.is_over else "none"
        found_attributes, is_closed = attributes(head), head.rstrip().endswith("/")
    mark = (yield from scanner.skip_spaces()) if not is_closed else ""
    name = next((found_attributes.pop(key) for key in NAMES if key in found_attributes), "")
    if not name and mark in ("{", "["):
        return (yield from _OBJECT(reader, opener))
    if not name and mark == "<":
        found = yield from scanner.one_of(tuple(f"<{each}>" for each in NAMES))
        name = ((yield from element_text(reader, found[1:-1], 256)) or "").strip() if found else ""
    if not reader.accepts(name):
        return "unfinished" if scanner.is_over else "none"
    if mark == "{" and not found_attributes:
        outcome = yield from arguments_of(reader, name, closers=("</tool>",))
        yield from skip_closer(reader, "</tool>", stray="}")
        return outcome
    return (yield from ElementCall(reader, name, found_attributes).read(is_closed))


TOOL_XML = Dialect(
    name="tool_xml",
    openers=("<tool>", "<tool "),
    inside=r"\s*[\[{]|\s*<(?:name|tool_name|function)>|[\w:-]+\s*=\s*[\"']",
    read=_read,
    writing=Writing((as_object("<tool>", "</tool>"),)),
)

DIALECTS = (TOOL_XML,)
