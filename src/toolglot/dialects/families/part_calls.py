"""Calls whose name and arguments have a tag each.

    <name>ls</name><arguments>{"p": "/"}</arguments>
    <tool_name>ls</tool_name><parameters><p>/</p></parameters>

The arguments are JSON, or tags whose names are theirs. Where they come before the name, they wait for it.
"""

from __future__ import annotations

import re
from typing import Final

from toolglot.dialects.families.tag_calls import attributes, read_head, tag_name
from toolglot.dialects.lookahead import close_broken, cut_off, drop_rest, is_followed, next_of
from toolglot.dialects.reading import MAX_NAME, DialectReader, Outcome
from toolglot.dialects.scanner import Steps, marks
from toolglot.dialects.values.argument_writer import ArgumentWriter
from toolglot.dialects.values.json_text import pass_value

_NAMES: Final = ("<name>", "<tool_name>", "<function_name>", "<function>", "<tool>")
_ARGUMENTS: Final = ("<arguments>", "<parameters>", "<args>", "<input>", "<params>")
_PLAIN: Final = re.compile(r"[\w.\-]++")
_HEAD_END: Final = marks(">")
MAX_EARLY: Final = 4096
"""Characters of arguments that may come before the name."""
INSIDE: Final = (
    r"\s*+(?:[\w.\-]++(?:\n\s*+)?+)?<(?:name|tool_name|function_name|function|tool|arguments|parameters|args)>"
)
"""What follows the opener of such a call."""


def part_call(reader: DialectReader, closers: tuple[str, ...], name: str = "") -> Steps[Outcome]:
    """A call, from behind its opener, which may have held the name."""
    scanner = reader.scanner
    early: str | None = None
    if not name:
        yield from scanner.skip_spaces()
        name = yield from scanner.while_in(_PLAIN, MAX_NAME + 1)
    while True:
        found = yield from next_of(scanner, (*_NAMES, *_ARGUMENTS, *closers))
        if not found:
            return "unfinished" if found == "" else "none"
        if found in closers:
            return _early_call(reader, name, early)
        if found in _ARGUMENTS and name:
            return (yield from _late_call(reader, name, found, closers)) if reader.accepts(name) else "none"
        is_name = found in _NAMES
        read = yield from read_head(reader, marks(_closer(found)), MAX_NAME if is_name else MAX_EARLY)
        if read is None:
            return "unfinished" if scanner.is_over else "none"
        if is_name:
            name = read[0].strip()
        else:
            early = read[0]


def _closer(tag: str) -> str:
    return f"</{tag[1:]}"


def _early_call(reader: DialectReader, name: str, early: str | None) -> Outcome:
    """A call that is over, whose arguments came before its name, or that has none."""
    if not reader.accepts(name):
        return "none"
    reader.open(name)
    reader.input((early or "").strip() or "{}")
    return reader.close()


def _late_call(reader: DialectReader, name: str, tag: str, closers: tuple[str, ...]) -> Steps[Outcome]:
    """A call whose name is known, from its arguments on."""
    reader.open(name)
    if (yield from reader.scanner.skip_spaces()) == "{":
        end = yield from pass_value(reader.scanner, reader.input)
        ends = (_closer(tag), *closers)
        outcome = reader.close() if end == "whole" else (yield from close_broken(reader, ends))
        for closed in (ends[:1], closers):
            if (yield from next_of(reader.scanner, closed)) == "":
                drop_rest(reader.scanner)
        return outcome
    arguments = ArgumentWriter(reader, name) if (yield from reader.scanner.skip_spaces()) == "<" else None
    is_whole = yield from _arguments(reader, arguments, tag)
    if not is_whole or (yield from next_of(reader.scanner, closers)) == "":
        return cut_off(reader)
    if arguments is not None:
        arguments.finish()
    return reader.close()


def _arguments(reader: DialectReader, arguments: ArgumentWriter | None, tag: str) -> Steps[bool]:
    """Arguments that are tags, or no object; False if the text ends inside."""
    scanner = reader.scanner
    if arguments is None:
        return (yield from scanner.until(marks(_closer(tag)), reader.input)) is not None
    while True:
        found = yield from next_of(scanner, ("<",))
        read = (yield from read_head(reader, _HEAD_END)) if found else None
        if read is None:
            return False
        if read[0].startswith("/"):
            return True
        if not (yield from _argument(reader, arguments, read[0])):
            return False


def _argument(reader: DialectReader, arguments: ArgumentWriter, head: str) -> Steps[bool]:
    """One argument, from behind its tag; False if the text ends inside."""
    element = head.split(maxsplit=1)[0] if head.strip() else ""
    arguments.begin(tag_name(head) if "name" in attributes(head) else element)
    while True:
        found = yield from reader.scanner.until(marks(f"</{element}>"), arguments.add)
        if found is None:
            return False
        if (yield from is_followed(reader.scanner, ("<",))):
            arguments.end()
            return True
        arguments.add(found)
