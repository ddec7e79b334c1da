"""The format of servers that force JSON on a model without one of its own: a call, several, or an answer.

{"tool_call": {"name": "ls", "arguments": {"p": "/"}}}
{"tool_calls": [{"name": "ls", "arguments": {"p": "/"}}, …]}
{"response": "It is empty."}
"""

from __future__ import annotations

import re
from typing import Final

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.json_messages import MAX_TEXT, message
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps
from toolglot.dialects.values.json_text import read_string
from toolglot.dialects.writers.writing_forms import Writing, as_body

_AHEAD: Final = 64
_ANSWER: Final = re.compile(r'\s*"response"\s*:\s*"')

_OPENAI: Final = r'\s*\[\s*\{\s*"(?:type|function|index)"|\s*\[\s*\{\s*"id"\s*:\s*"call_'
"""How the list of calls in an OpenAI body begins."""


def _read(reader: DialectReader, opener: str) -> Steps[Outcome]:
    """An answer is unwrapped too, but only if the user named the dialect: ordinary JSON may have such a key."""
    scanner = reader.scanner
    yield from scanner.need(_AHEAD)
    answer = _ANSWER.match(scanner.text, scanner.at, scanner.at + _AHEAD)
    if answer is None or not reader.is_chosen:
        return (yield from message(reader, opener))
    scanner.at = answer.end() - 1
    response = yield from read_string(scanner, MAX_TEXT)
    if response is None or (yield from scanner.skip_spaces()) != "}":
        return "unfinished" if scanner.is_over else "none"
    scanner.at += 1
    scanner.unmark()
    reader.output.add_text(response)
    return "passed"


GENERIC_CONTENT = Dialect(
    name="generic_content",
    openers=("{",),
    inside=rf'\s*"(?:(?:tool_call|response)"\s*:|tool_calls"\s*:(?!{_OPENAI}))',
    read=_read,
    writing=Writing((as_body(lambda name, arguments, _id: {"tool_call": {"name": name, "arguments": arguments}}),)),
)

DIALECTS = (GENERIC_CONTENT,)
