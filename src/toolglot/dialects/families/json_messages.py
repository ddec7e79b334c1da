"""A whole message of a provider's API, written as JSON in text: its calls and its text.

    {"role": "assistant", "content": "Looking.", "tool_calls": [{"id": …, "function": {"name": …, "arguments": "{…}"}}]}
    [{"type": "text", "text": "Looking."}, {"type": "tool_use", "id": …, "name": …, "input": {…}}]
    {"candidates": [{"content": {"parts": [{"functionCall": {"name": …, "args": {…}}}]}}]}

One reader serves all of them, because the keys do not collide. JSON without a call is text, unchanged: an object in it
that looks like a call is part of something else, such as a list of tools.
"""

from __future__ import annotations

from typing import Final

from toolglot.dialects.families.json_calls import CallKeys, call_list
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps, discard
from toolglot.dialects.values.json_text import MAX_WORD, End, pass_object, pass_value, read_string, unescape

_CALLS: Final = ("tool_calls", "tool_call", "functionCall", "function_call")
_HOLDERS: Final = ("choices", "message", "content", "parts", "candidates", "output")
_TEXTS: Final = ("text", "content")
_KEYS: Final = CallKeys(id=("id",))
_MAX_DEPTH: Final = 12
MAX_TEXT: Final = 1 << 20
"""Characters of an answer."""
MAX_GUESS: Final = 1 << 14
"""How far into a message its first call may begin."""


class _Message:
    """What was read of a message."""

    def __init__(self, reader: DialectReader) -> None:
        self.reader = reader
        self.outcome: Outcome = "none"
        self._early: list[str] = []

    def add_text(self, text: str) -> None:
        if self.outcome == "none":
            self._early.append(text)
        else:
            self.reader.output.add_text(text)

    def before(self) -> None:
        """A call is certain: the text before it can be passed on."""
        self.reader.scanner.unmark()
        for text in self._early:
            self.reader.output.add_text(text)
        self._early.clear()

    def note(self, found: Outcome) -> End:
        """How it goes on after a call."""
        if found in ("call", "cut"):
            self.outcome = found
        if found in ("cut", "unfinished"):
            return "open"
        return "broken" if found == "none" else "whole"


def message(reader: DialectReader, opener: str) -> Steps[Outcome]:
    """Reads the message whose bracket was read."""
    found = _Message(reader)
    end = yield from (_list(found, 0) if opener.endswith("[") else _object(found, 0))
    if found.outcome != "none":
        return found.outcome
    if end == "open":
        return "unfinished"
    return (yield from read_as_text(reader)) if opener == "{" else "none"


def read_as_text(reader: DialectReader) -> Steps[Outcome]:
    """The object whose brace was read is not a call: it is text, with everything in it."""
    scanner, add_text = reader.scanner, reader.output.add_text
    scanner.go_back()
    add_text("{")
    yield from pass_object(scanner, add_text)
    return "passed"


def _list(found: _Message, depth: int) -> Steps[End]:
    scanner = found.reader.scanner
    while True:
        mark = yield from scanner.skip_spaces()
        if mark == "":
            return "open"
        if mark in ",]":
            scanner.at += 1
            if mark == "]":
                return "whole"
            continue
        end = yield from _value(found, mark, depth + 1)
        if end != "whole":
            return end


def _value(found: _Message, mark: str, depth: int) -> Steps[End]:
    """A value that may hold calls."""
    scanner = found.reader.scanner
    if mark in "[{" and depth < _MAX_DEPTH:
        scanner.at += 1
        return (yield from (_list(found, depth) if mark == "[" else _object(found, depth)))
    return (yield from pass_value(scanner, discard))


class _Block:
    """The fields of an object that may itself be a call: `{"type": "tool_use", …}`."""

    def __init__(self) -> None:
        self.type: str | None = None
        self.name = ""
        self.id = ""
        self.input: list[str] = []
        self.is_open = False


def _object(found: _Message, depth: int) -> Steps[End]:
    scanner, block = found.reader.scanner, _Block()
    while True:
        mark = yield from scanner.skip_spaces()
        if mark == "":
            return "open"
        if mark in "},":
            scanner.at += 1
            if mark == "}":
                return _end_block(found, block)
            continue
        if found.outcome == "none" and scanner.size_since_mark() > MAX_GUESS:
            return "broken"
        key = yield from read_string(scanner)
        mark = (yield from scanner.skip_spaces()) if key is not None else ""
        if key is None or mark != ":":
            return "open" if scanner.is_over else "broken"
        scanner.at += 1
        mark = yield from scanner.skip_spaces()
        end = yield from _field(found, block, key, mark, depth)
        if end != "whole":
            return end


def _field(found: _Message, block: _Block, key: str, mark: str, depth: int) -> Steps[End]:
    scanner = found.reader.scanner
    if key in _CALLS and mark in ("[", "{"):
        return found.note((yield from call_list(found.reader, _KEYS, before=found.before)))
    if key == "input" and mark == "{":
        return (yield from _input(found, block))
    if key in _HOLDERS and mark in ("[", "{"):
        return (yield from _value(found, mark, depth + 1))
    if mark == '"' and key in ("type", "name", "id"):
        setattr(block, key, (yield from read_string(scanner, MAX_WORD)) or "")
        return "whole" if not scanner.is_over or scanner.at < len(scanner.text) else "open"
    if mark == '"' and key in _TEXTS:
        pieces: list[str] = []
        end = yield from pass_value(scanner, pieces.append)
        found.add_text(unescape("".join(pieces)) or "")
        return end
    return (yield from pass_value(scanner, discard))


def _input(found: _Message, block: _Block) -> Steps[End]:
    """The arguments of a block. They are passed on while they come if it is known to be a call."""
    reader = found.reader
    if block.type != "tool_use" or not block.id or not reader.accepts(block.name):
        return (yield from pass_value(reader.scanner, block.input.append))
    found.before()
    reader.open(block.name, block.id)
    end = yield from pass_value(reader.scanner, reader.input)
    block.is_open = True
    found.outcome = reader.close(cut=end != "whole")
    return end


def _end_block(found: _Message, block: _Block) -> End:
    reader = found.reader
    if block.type == "tool_use" and not block.is_open and reader.accepts(block.name):
        found.before()
        reader.open(block.name, block.id)
        reader.input("".join(block.input))
        found.outcome = reader.close()
    return "whole"
