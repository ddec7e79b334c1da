"""Calls written as Python: `ls(p="/", n=3)`, in a list or one on each line.

A call begins as soon as an argument has begun, and its arguments are passed on as they arrive. Only named arguments
count: a call with positional ones, or with anything that is not a literal, counts as cut, and is never run.
"""

from __future__ import annotations

import re
from typing import Final

from toolglot.dialects.dialect import Read, skip_closer
from toolglot.dialects.families.json_calls import call_object
from toolglot.dialects.reading import MAX_NAME, DialectReader, Outcome
from toolglot.dialects.scanner import Scanner, Steps, discard, marks
from toolglot.dialects.values.json_text import End, json_string
from toolglot.dialects.values.python_text import pass_literal

CALL_AHEAD: Final = r"\s*+[^\W\d][\w.\-/:]*+(?:\s*+\(|\Z)"
"""What a call begins with, as a pattern."""

_NAME: Final = re.compile(r"[\w.\-/:]+")
_WORD: Final = re.compile(r"[\w\-]+")
_NO_MORE: Final = ")"
_UNPACKED: Final = "**"
_BEFORE_LIST: Final = re.compile(r"\A\Z|(?:\A|[^=(\[{,])\s\Z|[.:!?>]\Z")
"""What may come before a list without a mark: white space, or the end of a sentence; no code."""


def python_in(*closers: str, opened: tuple[str, ...] = (), suffix: str = "") -> Read:
    """Reads calls up to one of the closers, which may be missing.

    `opened` are openers that end inside a list, which nothing closes then. A closer alone behind a call is dropped.
    `suffix` may follow a name and does not belong to it.
    """

    def read(reader: DialectReader, opener: str) -> Steps[Outcome]:
        if opener in closers:
            return "passed"
        is_bare = opener in opened
        if is_bare:
            reader.only_offered = reader.only_offered or bool(reader.tools)
            if not _BEFORE_LIST.search(reader.output.last_text()) or (yield from reader.scanner.skip_spaces()) == "{":
                return "none"
        return (yield from _Calls(reader, () if is_bare else closers, suffix).read(in_list=is_bare))

    return read


class _Calls:
    """Reads the calls of one section."""

    def __init__(self, reader: DialectReader, closers: tuple[str, ...], suffix: str) -> None:
        self._reader = reader
        self._closers = closers
        self._suffix = suffix
        self._in_list = False
        self._outcome: Outcome = "none"
        self._lead = "{"

    def read(self, *, in_list: bool) -> Steps[Outcome]:
        scanner = self._reader.scanner
        if not in_list and (yield from scanner.skip_spaces()) == "[":
            scanner.at += 1
            in_list = True
        self._in_list = in_list
        while True:
            latest = yield from self._item()
            if latest in ("none", "unfinished"):
                break
            self._outcome = latest
            if latest == "cut" and not (yield from self._skip_rest()):
                return self._outcome
            if not (yield from self._has_next()):
                break
        if self._outcome == "none":
            return latest
        if in_list:
            yield from skip_closer(self._reader, "]")
        if self._closers:
            yield from skip_closer(self._reader, *self._closers)
        return self._outcome

    def _item(self) -> Steps[Outcome]:
        """One call. What is none is left as it was, if there was one before."""
        scanner = self._reader.scanner
        is_first = self._outcome == "none"
        if (yield from scanner.skip_spaces()) == "{":
            latest = yield from call_object(self._reader)
        else:
            latest = yield from self._call(is_first=is_first)
        if latest in ("none", "unfinished") and not is_first:
            scanner.go_back()
        return latest

    def _has_next(self) -> Steps[bool]:
        """Read the separator of two calls: a comma, a semicolon or a line break. It is marked."""
        scanner = self._reader.scanner
        scanner.mark()
        mark = yield from scanner.skip_spaces()
        if mark in (",", ";"):
            scanner.at += 1
            return True
        if self._closers and mark not in ("]", "<", "") and "\n" in scanner.since_mark():
            return True
        scanner.go_back()
        return False

    def _skip_rest(self) -> Steps[bool]:
        """Pass what is left of a call that is broken; False if the section, or a line without one, is over."""
        scanner = self._reader.scanner
        depth = 1
        while depth:
            found = yield from scanner.until(marks("(", ")", *(self._closers or ("\n",))), discard)
            if found not in ("(", ")"):
                scanner.at -= found == "\n"
                return False
            depth += 1 if found == "(" else -1
        return True

    # --- one call -----------------------------------------------------------------------------------

    def _call(self, *, is_first: bool) -> Steps[Outcome]:
        reader, scanner = self._reader, self._reader.scanner
        name = (yield from scanner.while_in(_NAME, MAX_NAME + 1)).removesuffix(self._suffix)
        mark = yield from scanner.skip_spaces()
        if mark != "(" or not reader.accepts(name) or name[0].isdigit():
            return "unfinished" if mark == "" else "none"
        scanner.at += 1
        first = yield from _argument_name(scanner)
        if is_first and not self._closers:
            if first is None:
                return "unfinished" if scanner.is_over and scanner.at == len(scanner.text) else "none"
            if first == _NO_MORE and (yield from self._is_link()):
                return "none"
        reader.open(name)
        return (yield from self._arguments(first))

    def _is_link(self) -> Steps[bool]:
        """Whether `[ls()]` is followed by an address, as in Markdown."""
        scanner = self._reader.scanner
        if (yield from scanner.peek()) != "]" or not (yield from scanner.need(2)):
            return False
        return scanner.text[scanner.at + 1] in "(["

    def _arguments(self, name: str | None) -> Steps[Outcome]:
        reader, scanner = self._reader, self._reader.scanner
        self._lead = "{"
        while name != _NO_MORE:
            if name is None:
                return reader.close(cut=True)
            if name == _UNPACKED:
                end = yield from self._unpack()
            else:
                self._put(json_string(name) + ": ")
                end = yield from pass_literal(scanner, reader.input, self._closers)
            if end != "whole":
                return reader.close(cut=True)
            name = yield from self._next_name()
        reader.input("{}" if self._lead == "{" else "}")
        return reader.close()

    def _put(self, json: str) -> None:
        self._reader.input(self._lead + json)
        self._lead = ", "

    def _next_name(self) -> Steps[str | None]:
        """The name of the next argument; a parenthesis is missing where the list or the section ends."""
        scanner = self._reader.scanner
        mark = yield from scanner.skip_spaces()
        if mark == ",":
            scanner.at += 1
            return (yield from _argument_name(scanner))
        if mark == ")":
            scanner.at += 1
            return _NO_MORE
        if mark == "]":
            yield from scanner.need(2)
            return _NO_MORE if self._in_list and not scanner.text.startswith("])", scanner.at) else None
        yield from scanner.need(max(map(len, self._closers), default=0))
        is_over = bool(self._closers) and scanner.text.startswith(self._closers, scanner.at)
        return _NO_MORE if is_over else None

    def _unpack(self) -> Steps[End]:
        """`**{…}`: what is in the dictionary are arguments."""
        pieces: list[str] = []
        end = yield from pass_literal(self._reader.scanner, pieces.append, self._closers)
        json = "".join(pieces)
        if end == "whole" and json != "{}":
            if not json.startswith("{"):
                return "broken"
            self._put(json[1:-1])
        return end


def _argument_name(scanner: Scanner) -> Steps[str | None]:
    """The name of the argument that begins here, `**` before a dictionary, `)` where none does; None for others."""
    mark = yield from scanner.skip_spaces()
    if mark == ")":
        scanner.at += 1
        return _NO_MORE
    if mark == "*":
        return (yield from scanner.one_of((_UNPACKED,)))
    word = yield from scanner.while_in(_WORD, MAX_NAME)
    if not word or (yield from scanner.skip_spaces()) != "=":
        return None
    scanner.at += 1
    return word
