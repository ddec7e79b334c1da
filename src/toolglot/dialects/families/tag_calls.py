"""Calls written with tags: a tag that names the tool, and one around each argument.

    <invoke name="ls"><parameter name="p">/</parameter></invoke>

Values are text until the tool's schema says otherwise. Missing closers are forgiven: the next tag ends what is open.
The end of the text does not: a call that no tag has ended was cut. A closer inside a value ends it only where something
follows that can follow a closer, so that a value may speak of tags.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from toolglot.dialects.families.sections import Section, calls_in
from toolglot.dialects.lookahead import SPACES, close_broken, cut_off, give_back, is_followed, next_of, read_up_to
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Marks, Steps, marks
from toolglot.dialects.values.argument_writer import ArgumentWriter, Trim
from toolglot.dialects.values.json_text import pass_value
from toolglot.dialects.values.schema_types import Untyped, named_types

_NAMED: Final = re.compile(r"""\b(?:name|tool|key)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'/>]++))""")
_ATTRIBUTE: Final = re.compile(r"""([\w:-]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)')""")
MAX_HEAD: Final = 1024
_NOT_STRING: Final = frozenset({"object", "array", "number", "integer", "boolean", "null"})
_PLAIN: Final = re.compile(r"[\w-]{1,64}")
_TAIL: Final = re.compile(r"""["'?/]++""")
CDATA: Final = "<![CDATA["


class TagStyle(NamedTuple):
    """The tags of a dialect."""

    call: tuple[str, ...]
    """How the tag of a call begins: `<function=`, `<invoke `. Its name follows."""
    close_call: tuple[str, ...]
    parameter: tuple[str, ...]
    close_parameter: tuple[str, ...]
    close_section: tuple[str, ...] = ()
    open_section: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    """Marks in a section without meaning."""
    gap: re.Pattern[str] = SPACES
    """What may come between the marks of a section."""
    head_end: tuple[str, ...] = (">",)
    """What ends the head of a tag; the first one is correct."""
    trim: Trim = "none"
    untyped: Untyped = "string"
    cut_closers: bool = False
    """Whether closers are listed without their `>`, since models write something else there."""
    named_closers: bool = False
    """Whether `</content>` closes a parameter called `content`."""
    cdata: bool = False
    """Whether a value may be in a CDATA section."""
    rename: Callable[[DialectReader, str], str] = lambda _reader, name: name


def tags_in(style: TagStyle) -> Callable[[DialectReader, str], Steps[Outcome]]:
    """Reads the calls of a section, whose opener and closer may be missing."""
    section = Section(style.call, style.close_section, style.skipped, json=True, gap=style.gap)
    return calls_in(section, lambda reader, _opener: tag_call(reader, style))


# --- heads ------------------------------------------------------------------------------------------


def tag_name(head: str) -> str:
    """The name in the head of a tag: that of its attribute, or all of it."""
    found = _NAMED.search(head)
    if found is not None:
        return next((group for group in found.groups() if group is not None), "").strip()
    return head.strip().removesuffix("/").strip().strip("\"'")


def undouble_name(reader: DialectReader, name: str) -> str:
    """Write a name once that some models write twice, with a dot between."""
    half = name[: len(name) // 2]
    return half if name == f"{half}.{half}" and name not in reader.tools else name


def attributes(head: str) -> dict[str, str]:
    """The attributes of a tag."""
    return {found[1]: found[2] if found[2] is not None else found[3] for found in _ATTRIBUTE.finditer(head)}


def read_head(reader: DialectReader, ends: Marks, max_length: int = MAX_HEAD) -> Steps[tuple[str, str] | None]:
    """The rest of a tag, and what ended it; None, and nothing read, if there is no end, or it is too far away."""
    found = yield from read_up_to(reader.scanner, ends, max_length)
    if found is not None and found[1] == "<":
        reader.scanner.at -= 1  # it begins the next tag
    return found


def _declared_types(head: str) -> frozenset[str] | None:
    """The type that the tag of an argument declares."""
    declared = attributes(head)
    if "string" in declared:
        return frozenset({"string"}) if declared["string"].lower() == "true" else _NOT_STRING
    types = named_types(declared.get("type"))
    return (types | {"integer"} if "number" in types else types) or None


# --- calls ------------------------------------------------------------------------------------------


def tag_call(reader: DialectReader, style: TagStyle) -> Steps[Outcome]:
    """A call, from behind the beginning of its tag."""
    scanner = reader.scanner
    read = yield from read_head(reader, marks(*style.head_end))
    if read is None:
        return "unfinished" if scanner.is_over else "none"
    head, ended_by = read
    name = style.rename(reader, tag_name(head))
    if not reader.accepts(name):
        return "none"
    arguments = ArgumentWriter(reader, name, style.trim, style.untyped)
    if head.rstrip().endswith("/") and ended_by == ">":
        reader.open(name)
        arguments.finish()
        return reader.close()
    found = yield from next_of(scanner, (*style.parameter, *_ends(style), "{"))
    if found is None or (ended_by != style.head_end[0] and found not in style.parameter):
        return "none"
    reader.open(name)
    if found == "":
        return cut_off(reader)
    if found == "{":
        scanner.at -= 1
        return (yield from _json_body(reader, style))
    return (yield from _parameters(reader, style, arguments, found))


def _ends(style: TagStyle) -> tuple[str, ...]:
    """What ends a call that has no parameter open."""
    return (*style.close_call, *style.close_section, *style.call)


def _json_body(reader: DialectReader, style: TagStyle) -> Steps[Outcome]:
    """Arguments as one JSON object."""
    end = yield from pass_value(reader.scanner, reader.input)
    outcome = reader.close() if end == "whole" else (yield from close_broken(reader, _ends(style)))
    yield from _end_call(reader, style, (yield from next_of(reader.scanner, _ends(style))))
    return outcome


def _parameters(reader: DialectReader, style: TagStyle, arguments: ArgumentWriter, found: str | None) -> Steps[Outcome]:
    scanner = reader.scanner
    while found in style.parameter:
        read = yield from read_head(reader, marks(*style.head_end))
        if read is None:
            return cut_off(reader)
        name = tag_name(read[0])
        arguments.begin(name, _declared_types(read[0]))
        if read[1] == ">" and read[0].rstrip().endswith("/"):
            found = style.close_parameter[0]
        else:
            found = yield from _value(reader, style, arguments, name)
        if found is None:
            return cut_off(reader)
        arguments.end()
        if found not in style.parameter and found not in _ends(style):
            found = yield from next_of(scanner, (*style.parameter, *_ends(style)))
    if found == "":
        return cut_off(reader)  # another parameter may have followed
    arguments.finish()
    yield from _end_call(reader, style, found)
    return reader.close()


def _end_call(reader: DialectReader, style: TagStyle, found: str | None) -> Steps[None]:
    """Behind the end of a call. What belongs to the section, or is the next call, is left to be read."""
    scanner = reader.scanner
    if found and found not in style.close_call:
        give_back(scanner, found)
    elif found and style.cut_closers:
        yield from scanner.while_in(_TAIL, 8)
        yield from scanner.one_of((">",))


def _value(reader: DialectReader, style: TagStyle, arguments: ArgumentWriter, name: str) -> Steps[str | None]:
    """The value of a parameter, and what ended it; None if the text did."""
    scanner = reader.scanner
    closers = style.close_parameter
    if style.named_closers and _PLAIN.fullmatch(name):
        closers = (*closers, f"</{name}>")
    if style.cdata and (yield from next_of(scanner, (CDATA,))):
        return (yield from _quoted_value(reader, arguments, closers))
    ends = marks(*closers, *style.parameter, *style.close_call, *style.close_section)
    while True:
        found = yield from scanner.until(ends, arguments.add)
        if found is None or found in style.parameter:
            return found
        if (yield from is_followed(scanner, _followers(style, found))):
            return found
        arguments.add(found)


def _followers(style: TagStyle, closer: str) -> tuple[str, ...]:
    """What can follow a closer."""
    if closer in style.close_section:
        return (*style.open_section, *style.call)
    if closer in style.close_call:
        tail = (">", '"', "?") if style.cut_closers else ()
        return (*style.close_section, *style.open_section, *style.call, *style.skipped, *tail)
    return (*style.parameter, *_ends(style))


def _quoted_value(reader: DialectReader, arguments: ArgumentWriter, closers: tuple[str, ...]) -> Steps[str | None]:
    """A value in a CDATA section, in which no tag counts; several in a row are one value."""
    scanner = reader.scanner
    while True:
        found = yield from scanner.until(marks("]]>"), arguments.add)
        if found is None:
            return None
        found = yield from next_of(scanner, (*closers, CDATA))
        if found == "":
            return closers[0]
        if found is None:
            arguments.add("]]>")
        elif found != CDATA:
            return found
