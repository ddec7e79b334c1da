"""Sections of calls: everything between a section's opener and its closer. The dialect reads each call.

    <tool_calls> call, call … </tool_calls>

Opener and closer may be missing. What is not a call ends the section and stays text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from toolglot.dialects.families.json_calls import call_list
from toolglot.dialects.lookahead import SPACES, drop_rest, next_of
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps

ReadCall = Callable[[DialectReader, str], Steps[Outcome]]
"""(reader, tag) → reads a call behind the beginning of its tag."""


class Section(NamedTuple):
    """The marks of a section."""

    call: tuple[str, ...]
    """What a call begins with."""
    close: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    """Marks without meaning."""
    json: bool = False
    """Whether calls may also be written as JSON."""
    gap: re.Pattern[str] = SPACES
    """What may come between its marks."""


def calls_in(section: Section, read_call: ReadCall) -> Callable[[DialectReader, str], Steps[Outcome]]:
    """Reads the calls of a section, or from a call that has no section around it."""
    wanted = (*section.call, *section.close, *section.skipped, *(("{", "[") if section.json else ()))

    def read(reader: DialectReader, opener: str) -> Steps[Outcome]:
        scanner = reader.scanner
        outcome: Outcome = "none"
        if opener in section.call:
            outcome = yield from read_call(reader, opener)
            if outcome in ("none", "unfinished"):
                return outcome
        while True:
            found = yield from next_of(scanner, wanted, section.gap)
            if found in section.skipped:
                continue
            if found == "" and outcome != "none":
                drop_rest(scanner)  # the text ends, maybe inside a mark
            if not found or found in section.close:
                return "unfinished" if outcome == "none" and found == "" else outcome
            latest = yield from _one(reader, found, read_call, is_first=outcome == "none")
            if latest in ("none", "unfinished"):
                return latest if outcome == "none" else outcome
            outcome = latest

    return read


def _one(reader: DialectReader, found: str, read_call: ReadCall, *, is_first: bool) -> Steps[Outcome]:
    """One call. After the first the section has begun, so anything that is not a call is put back here."""
    scanner = reader.scanner
    if not is_first:
        scanner.at -= len(found)
        scanner.mark()
        scanner.at += len(found)
    if found in "{[":
        scanner.at -= 1
        latest = yield from call_list(reader)
    else:
        latest = yield from read_call(reader, found)
    if latest in ("none", "unfinished") and not is_first:
        scanner.go_back()
    return latest
