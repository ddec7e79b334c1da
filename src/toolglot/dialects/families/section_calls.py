"""Calls in a section of special tokens, each with a head that names it and JSON behind a separator.

    <section begin> <call begin> head <separator> {…} <call end> … <section end>

The marks of the section may be missing, and those around a call as well. Text between calls inside a section means
nothing and is dropped, as the servers of these models do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from toolglot.dialects.families.json_calls import arguments_of
from toolglot.dialects.lookahead import next_of
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps, discard, marks
from toolglot.dialects.values.json_text import pass_value

MAX_HEAD: Final = 1024
_NAME: Final = re.compile(r"[^\s{`<]+")


class CallHead(NamedTuple):
    """Whose call a head is."""

    name: str
    id: str = ""
    arguments: str | None = None
    """The arguments, where they had to be read to know the name."""


class SectionStyle(NamedTuple):
    """The marks of a dialect."""

    open_section: tuple[str, ...]
    close_section: tuple[str, ...]
    call: str
    separator: str
    close_call: str
    named: Callable[[DialectReader, str], Steps[CallHead | None]]
    """Finds the name from the head. It may read on behind the separator."""
    end: tuple[str, ...] = ()
    """What may follow the calls, and means nothing."""


def section_call(style: SectionStyle) -> Callable[[DialectReader, str], Steps[Outcome]]:
    """Reads the calls of a section, or one call."""

    def read(reader: DialectReader, opener: str) -> Steps[Outcome]:
        outcome = yield from _section(reader, style, opener in style.open_section)
        if outcome in ("call", "cut"):
            yield from next_of(reader.scanner, style.end)
        return outcome

    return read


def _section(reader: DialectReader, style: SectionStyle, in_section: bool) -> Steps[Outcome]:
    scanner = reader.scanner
    outcome: Outcome = "none"
    if in_section:
        yield from scanner.skip_spaces()
        yield from scanner.one_of((style.call,))
    while True:
        latest = yield from _call(reader, style)
        if latest in ("none", "unfinished") and outcome == "none":
            return latest
        outcome = latest if latest in ("call", "cut") else outcome
        if in_section:
            found = yield from scanner.until(marks(style.call, *style.close_section), discard)
        else:
            scanner.mark()
            yield from scanner.skip_spaces()
            found = yield from scanner.one_of((style.call, *style.close_section))
            if found is None:
                scanner.go_back()
            else:
                scanner.unmark()
        if found != style.call:
            return outcome


def _call(reader: DialectReader, style: SectionStyle) -> Steps[Outcome]:
    scanner = reader.scanner
    pieces: list[str] = []
    ends = marks(style.separator, style.call, style.close_call, *style.open_section, *style.close_section)
    found = yield from scanner.until(ends, pieces.append)
    head = "".join(pieces).strip()
    if found is None:
        return "unfinished"
    named = (yield from style.named(reader, head)) if found == style.separator and len(head) < MAX_HEAD else None
    if named is None or not reader.accepts(named.name):
        return "none"
    if named.arguments is None:
        latest = yield from _fenced_arguments(reader, named, (style.close_call, *style.close_section))
    else:
        reader.open(named.name, named.id)
        reader.input(named.arguments)
        latest = reader.close()
    yield from scanner.skip_spaces()
    yield from scanner.one_of((style.close_call,))
    return latest


def _fenced_arguments(reader: DialectReader, named: CallHead, closers: tuple[str, ...]) -> Steps[Outcome]:
    """The arguments, which may be in a code fence."""
    scanner = reader.scanner
    yield from scanner.skip_spaces()
    fence = yield from scanner.one_of(("```json", "```"))
    latest = yield from arguments_of(reader, named.name, named.id, closers if fence is None else (fence[:3], *closers))
    if fence is not None:
        yield from scanner.skip_spaces()
        yield from scanner.one_of(("```",))
    return latest


def name_in_head(reader: DialectReader, head: str) -> Steps[CallHead | None]:
    """The head is the name; or it is the kind of the call, and the name follows the separator."""
    if (yield from reader.scanner.skip_spaces()) in ("{", "[", '"', "`", ""):
        return CallHead(head)
    name = yield from reader.scanner.while_in(_NAME, MAX_HEAD)
    return CallHead(name or head)


_KIMI_ID: Final = re.compile(r"(?:functions?\.)?(?P<name>\S+?)\s*:\s*\d+")
_DIGITS: Final = re.compile(r"\d+")


def name_in_id(reader: DialectReader, head: str) -> Steps[CallHead | None]:
    """The head is an id that holds the name: `functions.ls:0`, `ls:0`; a bare number names the tool that fits."""
    found = _KIMI_ID.fullmatch(head)
    if found is not None:
        return CallHead(found["name"], "".join(head.split()))
    name = head.removeprefix("functions.")
    if name in reader.tools:
        return CallHead(name)
    if _DIGITS.fullmatch(head) is None:
        return None
    return (yield from _fitting_tool(reader, head))


def _fitting_tool(reader: DialectReader, id: str) -> Steps[CallHead | None]:
    """The one tool that was offered, or the only one that has all of the arguments that follow."""
    if len(reader.tools) == 1:
        return CallHead(next(iter(reader.tools)), id)
    pieces: list[str] = []
    yield from reader.scanner.skip_spaces()
    if (yield from pass_value(reader.scanner, pieces.append)) != "whole":
        return None
    keys = _keys("".join(pieces))
    fitting = [name for name, schema in reader.tools.items() if keys and keys <= _properties(schema)]
    return CallHead(fitting[0], id, "".join(pieces)) if len(fitting) == 1 else None


def _keys(written: str) -> frozenset[str]:
    try:
        found: object = msgspec.json.decode(written)
    except (ValueError, RecursionError):
        return frozenset()
    return frozenset(found) if isinstance(found, dict) else frozenset()


def _properties(schema: object) -> frozenset[str]:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return frozenset(found) if isinstance(found, dict) else frozenset()
