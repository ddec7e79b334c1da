"""Bodies of provider APIs that a model, a proxy or a server put into the text as JSON.

{"tool_calls": [{"id": "call_1", "function": {"name": "ls", "arguments": "{}"}}]}     openai_json
{"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}}                      anthropic_json
{"functionCall": {"name": "ls", "args": {}}}                                          gemini_json
{"tool_call": {"name": "ls", "arguments": {}}}                                        generic_content
"""

from __future__ import annotations

import re
from typing import Any

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.json_messages import message, read_as_text
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.writers.writing_forms import Arguments, Writing, as_body
from toolglot.jsontext import compact

AHEAD = 64

_ROLE = r'"role"\s*:\s*"(?:assistant|model)"'
_OPENAI = (
    rf'\s*(?:"(?:tool_calls|function_call|choices)"\s*:\s*[\[{{]|{_ROLE}|"id"\s*:\s*"chatcmpl|"message"\s*:\s*\{{)'
)
_ANY = r'\s*"[^"\\\n]{1,48}"\s*:\s*[\[{"\dtfn-]'


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    """The last to look at an object: one that no other dialect knows is ordinary JSON."""
    scanner = reader.scanner
    yield from scanner.need(AHEAD)
    if re.match(_OPENAI, scanner.text[scanner.at : scanner.at + AHEAD]):
        return (yield from message(reader, opener))
    return (yield from read_as_text(reader))


def _openai_call(name: str, arguments: Arguments, id: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": compact(arguments)}}


DIALECTS = (
    Dialect(
        name="openai_json",
        openers=("{",),
        inside=rf"{_OPENAI}|{_ANY}",
        read=_read,
        writing=Writing((as_body(_openai_call),), begin='{"tool_calls": [', between=", ", end="]}", ids="own"),
    ),
    Dialect(
        name="anthropic_json",
        openers=("{", "\n["),
        inside=rf'\s*(?:\{{\s*)?(?:"type"\s*:\s*"(?:tool_use|text|message|thinking)"|{_ROLE}|"content"\s*:\s*\['
        r'|"id"\s*:\s*"(?:toolu_|msg_))',
        read=message,
        writing=Writing(
            (as_body(lambda name, arguments, id: {"type": "tool_use", "id": id, "name": name, "input": arguments}),),
            ids="own",
        ),
    ),
    Dialect(
        name="gemini_json",
        openers=("{", "\n["),
        inside=rf'\s*(?:\{{\s*)?(?:"(?:functionCall|function_call|candidates|parts)"\s*:\s*[\[{{]|{_ROLE}|"text"\s*:'
        r'|"content"\s*:\s*\{)',
        read=message,
        writing=Writing((as_body(lambda name, arguments, _id: {"functionCall": {"name": name, "args": arguments}}),)),
    ),
)
