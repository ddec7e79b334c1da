"""Calls written as JSON: an object with a name and arguments, a list of such, or arguments behind a name.

A call begins as soon as its name is known, and its arguments are passed on as they arrive. If the arguments come first,
or an id may follow them, they wait. A dict as Python writes it counts as an object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from toolglot.dialects.lookahead import MAX_GAP, ahead, close_broken, read_up_to
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps, discard, marks
from toolglot.dialects.values.json_text import End, pass_value, read_string, repair_json, unescape
from toolglot.dialects.values.python_dicts import pass_dict
from toolglot.jsontext import compact


class CallKeys(NamedTuple):
    """The names of a call's fields."""

    name: tuple[str, ...] = ("name", "tool_name", "function_name", "tool", "function")
    arguments: tuple[str, ...] = ("arguments", "parameters", "args", "input")
    id: tuple[str, ...] = ()
    """If a dialect writes ids, a call begins when its id is known, or all of it was read."""
    inside: tuple[str, ...] = ("function",)
    """Objects that hold the fields above."""
    needs_input: bool = False
    """Whether an object without arguments is not a call: ordinary JSON has names too."""
    no_calls: tuple[str, ...] = ()
    """Names that mean that the model calls nothing."""
    foreign: tuple[str, ...] = ()
    """Fields that no call has."""


KEYS: Final = CallKeys()
BARE: Final = CallKeys(needs_input=True, foreign=("description", "input_schema", "strict"))
"""For JSON that nothing marks as a call. The description of a tool is none."""
BARE_KEY: Final = (
    r"[\"'](?:(?:name|function|parameters|arguments|tool_name)[\"']\s*:|type[\"']\s*:\s*[\"']function"
    r"|id[\"']\s*:(?!\s*\"(?:chatcmpl|toolu_|msg_)))"
)
"""What such an object begins with, as a pattern; the ids are those of whole messages."""
_FENCE: Final = "```"
MAX_EARLY: Final = 4096
"""Characters of arguments that wait for an id. Behind longer ones none is looked for."""
_GOES_ON: Final = ("{", ",", "]")
"""What a list continues with after an object without its closing brace."""
Before = Callable[[], object]
"""Called when a call is certain, before it begins."""


def _nothing() -> None:
    pass


class _Parts:
    """What was read of one call."""

    def __init__(self, reader: DialectReader, keys: CallKeys, before: Before) -> None:
        self._reader = reader
        self._keys = keys
        self._before = before
        self.name: str | None = None
        self.id = ""
        self._early: list[str] = []
        self._early_size = 0
        self.is_open = False
        self.has_input = False
        self.is_complete = False
        """Whether all of the arguments were read."""

    def input(self, piece: str) -> None:
        if self.is_open:
            self._reader.input(piece)
        else:
            self._early.append(piece)
            self._early_size += len(piece)
            if self._early_size > MAX_EARLY and not self.is_none and self._reader.accepts(self.name):
                self.open()

    @property
    def is_none(self) -> bool:
        """Whether the name says that nothing is called."""
        return self.name in self._keys.no_calls

    def begin(self) -> bool:
        """Begin the call if that is possible by now; False if its name is not one."""
        if self.is_open or self.name is None or self.is_none:
            return True
        if not self._reader.accepts(self.name):
            return False
        if (self.id or not self._keys.id) and (self.has_input or not self._keys.needs_input):
            self.open()
        return True

    def open(self) -> None:
        self._before()
        self._reader.open(self.name or "", self.id)
        self.is_open = True
        self._reader.input("".join(self._early))
        self._early.clear()

    def end(self) -> Outcome:
        """The object is over."""
        if self.is_none:
            return "passed"
        if self.name is None or (self._keys.needs_input and not self.has_input):
            return "none"
        if not self.is_open:
            self.open()
        return self._reader.close()

    def try_open(self) -> bool:
        """Begin the call after all, if its name is known and arguments have begun; whether it did."""
        if not self.is_open and not self.is_none and self.has_input and self._reader.accepts(self.name):
            self.open()
        return self.is_open

    def end_broken(self, otherwise: Outcome) -> Outcome:
        """The object was not closed. A call with all of its arguments is whole; another one was cut."""
        return self._reader.close(cut=True) if self.try_open() else otherwise


def call_object(
    reader: DialectReader,
    keys: CallKeys = KEYS,
    *,
    is_open: bool = False,
    before: Before = _nothing,
    closers: tuple[str, ...] = (),
) -> Steps[Outcome]:
    """The call that the object here is; its brace may have been read. What is not JSON in it extends to a closer."""
    scanner = reader.scanner
    parts = _Parts(reader, keys, before)
    if not is_open:
        scanner.at += 1
    depth = 1
    if (yield from scanner.skip_spaces()) == "'":
        return (yield from _python_object(reader, parts, keys))
    while depth:
        mark = yield from scanner.skip_spaces()
        if mark == "":
            return parts.end_broken("unfinished")
        if mark in "},":
            scanner.at += 1
            depth -= mark == "}"
            continue
        key = yield from read_string(scanner)
        mark = (yield from scanner.skip_spaces()) if key is not None else ""
        if key is None or mark != ":":
            return (yield from _end_broken(reader, parts, closers, "unfinished" if scanner.is_over else "none"))
        if key in keys.foreign and not parts.is_open:
            return "none"
        scanner.at += 1
        mark = yield from scanner.skip_spaces()
        if key in keys.inside and mark == "{":
            scanner.at += 1
            depth += 1
            continue
        end = yield from _field(reader, parts, key, mark, keys)
        if end != "whole":
            return (yield from _end_broken(reader, parts, closers, "unfinished" if end == "open" else "none"))
        parts.is_complete = parts.is_complete or (parts.has_input and key in keys.arguments)
        if not parts.begin():
            return "none"
    return parts.end()


def _end_broken(reader: DialectReader, parts: _Parts, closers: tuple[str, ...], otherwise: Outcome) -> Steps[Outcome]:
    """The object holds something that is not JSON, or the text ends."""
    if closers and not parts.is_complete and parts.try_open():
        return (yield from close_broken(reader, closers, "}"))
    outcome = parts.end_broken(otherwise)
    if closers and outcome == "cut" and (yield from reader.scanner.peek()) not in _GOES_ON:
        # what follows complete arguments means nothing
        found = yield from read_up_to(reader.scanner, marks(*closers), MAX_GAP)
        reader.scanner.at -= len(found[1]) if found is not None else 0
    return outcome


def _field(reader: DialectReader, parts: _Parts, key: str, mark: str, keys: CallKeys) -> Steps[End]:
    scanner = reader.scanner
    if mark == '"' and key in (*keys.name, *keys.id) and not (key in keys.name and parts.name is not None):
        word = yield from read_string(scanner)
        if word is None:
            return "open" if scanner.is_over else "broken"
        if key in keys.id:
            parts.id = word
        else:
            parts.name = word
        return "whole"
    if key in keys.arguments and not parts.has_input:
        parts.has_input = mark in ("{", "[", '"') and (yield from _is_input(reader, mark, keys))
        parts.begin()
        if parts.has_input and mark == '"':
            return (yield from _quoted_arguments(reader, parts))
        if parts.has_input:
            return (yield from pass_value(scanner, parts.input))
        if not keys.needs_input:
            return (yield from _no_object(reader, parts))
    return (yield from pass_value(scanner, discard))


def _no_object(reader: DialectReader, parts: _Parts) -> Steps[End]:
    """Arguments that are a number or a word: a call that cannot be run, unless it means no arguments."""
    words: list[str] = []
    end = yield from pass_value(reader.scanner, words.append)
    written = "".join(words)
    if end == "whole" and written.lower() not in ("null", "none"):
        parts.has_input = True
        parts.input(written)
    return end


def _is_input(reader: DialectReader, mark: str, keys: CallKeys) -> Steps[bool]:
    """Whether arguments begin here. A string that holds no object counts only if a mark says that this is a call."""
    if mark != '"' or not keys.needs_input:
        return True
    scanner = reader.scanner
    yield from scanner.need(2)
    return scanner.text[scanner.at + 1 : scanner.at + 2] in ("{", '"')


def _quoted_arguments(reader: DialectReader, parts: _Parts) -> Steps[End]:
    """Arguments that are JSON inside a string."""
    pieces: list[str] = []
    end = yield from pass_value(reader.scanner, pieces.append)
    if end == "whole":
        parts.input(repair_json(unescape("".join(pieces)) or ""))
    return end


def _python_object(reader: DialectReader, parts: _Parts, keys: CallKeys) -> Steps[Outcome]:
    """A call as Python prints a dict. It is read as a whole."""
    found = yield from pass_dict(reader.scanner)
    if found is None:
        return "unfinished" if reader.scanner.is_over else "none"
    for key in keys.inside:
        if isinstance(found.get(key), dict):
            found = found[key]
    parts.name = next((found[key] for key in keys.name if isinstance(found.get(key), str)), None)
    parts.id = next((found[key] for key in keys.id if isinstance(found.get(key), str)), "")
    raw_arguments = next((found[key] for key in keys.arguments if isinstance(found.get(key), dict | str)), None)
    if raw_arguments is not None:
        parts.has_input = True
        parts.input(raw_arguments if isinstance(raw_arguments, str) else compact(raw_arguments))
    return parts.end() if parts.is_none or reader.accepts(parts.name) else "none"


def call_list(
    reader: DialectReader,
    keys: CallKeys = KEYS,
    *,
    is_open: bool = False,
    before: Before = _nothing,
    closers: tuple[str, ...] = (),
) -> Steps[Outcome]:
    """The calls of the list here, whose bracket may have been read; one object alone counts as a list of one."""
    scanner = reader.scanner
    outcome: Outcome = "none"
    if not is_open:
        mark = yield from scanner.skip_spaces()
        if mark == "{":
            return (yield from call_object(reader, keys, before=before, closers=closers))
        if mark != "[":
            return "unfinished" if mark == "" else "none"
        scanner.at += 1
    while True:
        mark = yield from scanner.skip_spaces()
        if mark == "{":
            found = yield from call_object(reader, keys, before=before, closers=closers)
            if found in ("none", "unfinished"):
                return found if outcome == "none" else outcome
            outcome = found
            if found == "cut" and (yield from scanner.peek()) not in _GOES_ON:
                return outcome
        elif mark == ",":
            scanner.at += 1
        elif outcome != "none" and (mark in '"[-' or mark.isalnum()):  # no call, and no mark either
            if (yield from pass_value(scanner, discard)) != "whole":
                return outcome
        else:
            if mark == "]":
                scanner.at += 1
            return "unfinished" if mark == "" and outcome == "none" else outcome


def named_calls(reader: DialectReader, closers: tuple[str, ...]) -> Steps[Outcome]:
    """Calls whose names are keys, and whose arguments are the values: `[{"ls": {"p": "/"}}]`."""
    scanner = reader.scanner
    outcome: Outcome = "none"
    while True:
        mark = yield from scanner.skip_spaces()
        if mark in ("[", "{", ",", "}"):
            scanner.at += 1
            continue
        if mark == "]":
            scanner.at += 1
            return outcome
        name = yield from read_string(scanner)
        mark = (yield from scanner.skip_spaces()) if name is not None else ""
        if name is None or mark != ":" or not reader.accepts(name):
            return "unfinished" if scanner.is_over and outcome == "none" else outcome
        scanner.at += 1
        outcome = yield from arguments_of(reader, name, closers=closers)
        if outcome == "cut":
            return outcome


def arguments_of(reader: DialectReader, name: str, id: str = "", closers: tuple[str, ...] = ()) -> Steps[Outcome]:
    """A call whose name was read already, and whose arguments begin here as JSON. What is not JSON in them extends to
    a closer."""
    scanner = reader.scanner
    mark = yield from scanner.skip_spaces()
    if mark == '"':
        pieces: list[str] = []
        end = yield from pass_value(scanner, pieces.append)
        reader.open(name, id)
        reader.input(repair_json(unescape("".join(pieces)) or ""))
        return reader.close(cut=end != "whole")
    reader.open(name, id)
    if mark in ("{", "["):
        end = yield from pass_value(scanner, reader.input)
        return reader.close() if end == "whole" else (yield from close_broken(reader, closers))
    if mark.isalnum() or mark in ("-", "'"):  # neither an object nor a mark: a call that cannot be run
        yield from pass_value(scanner, reader.input)
        return reader.close(cut=scanner.is_over and scanner.at == len(scanner.text))
    found, _ = yield from ahead(scanner, (*closers, _FENCE))  # a closer, where there are no arguments
    return reader.close(cut=found == "")
