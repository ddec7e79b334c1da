"""Calls written as a name and pairs of tags, one around each key and one around its value.

    <tool_call>ls<arg_key>p</arg_key><arg_value>/</arg_value></tool_call>

A key without a value is no argument. Where the tag before a value is missing, the value begins behind its key.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from toolglot.dialects.families.sections import Section, calls_in
from toolglot.dialects.families.tag_calls import read_head
from toolglot.dialects.lookahead import WRITTEN_SPACES, cut_off, give_back, is_followed, next_of, skip_gap
from toolglot.dialects.reading import MAX_NAME, DialectReader, Outcome
from toolglot.dialects.scanner import Steps, marks
from toolglot.dialects.values.argument_writer import ArgumentWriter

_NAME: Final = re.compile(r'[^\s<>{}\[\]\\"]++')
_CALL: Final = ("<tool_call>",)
_CLOSE, _NAME_END = "</tool_call>", "<tool_sep>"
_KEY, _KEY_END, _VALUE, _VALUE_END = "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"
_LINES: Final = r"(?:[^\S\n]*+(?:\n|\\n)(?:\s|\\n)*+)?+"
INSIDE: Final = (
    rf'(?:\s|\\n)*+[^\s<>{{}}\[\]\\"]++(?:{_LINES}(?:<(?:arg_key|tool_sep|/tool_call)|<?\s*+\Z)'
    r"|[^\S\n]++<arg_key>[\w.\-]++(?:<|\Z))"
)
"""What follows `<tool_call>`: a name, and then a tag, at once or on the next line, or nothing more to be seen. Where
there are only spaces between, as in a sentence about these tags, a key must follow too."""


def pairs_in(*closed: str) -> Callable[[DialectReader, str], Steps[Outcome]]:
    """Reads calls, one after the other, up to the end of their section, if they have one that ends so."""
    section = Section(_CALL, closed, gap=WRITTEN_SPACES)
    return calls_in(section, lambda reader, _opener: pair_call(reader, closed))


def pair_call(reader: DialectReader, closed: tuple[str, ...]) -> Steps[Outcome]:
    """A call, from behind its opener."""
    scanner = reader.scanner
    yield from skip_gap(scanner, WRITTEN_SPACES)
    name = yield from scanner.while_in(_NAME, MAX_NAME + 1)
    if not reader.accepts(name):
        return "unfinished" if scanner.is_over and not name else "none"
    wanted = (_KEY, _CLOSE, *closed)
    found = yield from next_of(scanner, (*wanted, _NAME_END), WRITTEN_SPACES)
    if not found:
        return "unfinished" if found == "" else "none"
    reader.open(name)
    if found == _NAME_END:
        found = yield from next_of(scanner, wanted, WRITTEN_SPACES)
        if not found:
            return reader.close(cut=True)
    arguments = ArgumentWriter(reader, name, untyped="json")
    while found == _KEY:
        found = yield from _pair(reader, closed, arguments)
        if not found:
            return cut_off(reader)
    arguments.finish()
    if found in closed:
        give_back(scanner, found)  # the reader of the section reads its end
    return reader.close()


def _pair(reader: DialectReader, closed: tuple[str, ...], arguments: ArgumentWriter) -> Steps[str | None]:
    """A key and its value; what follows them, nothing if the text ended."""
    scanner = reader.scanner
    read = yield from read_head(reader, marks(_KEY_END, _VALUE, _CLOSE))
    if read is None:
        return None
    key = read[0].strip()
    found: str | None = read[1]
    if found == _KEY_END:
        found = yield from next_of(scanner, (_VALUE, _KEY, _CLOSE, *closed), WRITTEN_SPACES)
        if found is None:
            yield from skip_gap(scanner, WRITTEN_SPACES)
            found = _VALUE
    if found == "":
        return None
    if found != _VALUE:
        return found
    arguments.begin(key)
    end = yield from _value(reader, closed, arguments)
    if end is None:
        return None
    arguments.end()
    if end != _VALUE_END:
        return end
    return (yield from next_of(scanner, (_KEY, _CLOSE, *closed), WRITTEN_SPACES))


def _value(reader: DialectReader, closed: tuple[str, ...], arguments: ArgumentWriter) -> Steps[str | None]:
    """A value, and what ended it. A closer that nothing follows which could is part of it."""
    scanner = reader.scanner
    after_call = (*_CALL, *closed)
    while True:
        found = yield from scanner.until(marks(_VALUE_END, _KEY, _CLOSE), arguments.add)
        if found is None or found == _KEY:
            return found
        followers = (_KEY, _CLOSE, *closed) if found == _VALUE_END else after_call
        if (yield from is_followed(scanner, followers, WRITTEN_SPACES)):
            return found
        arguments.add(found)
