"""A step of ReAct: the name of a tool, its input, and what comes of an observation that the model invents."""

from __future__ import annotations

import re
from typing import Final

from toolglot.dialects.argument_writer import ArgumentWriter
from toolglot.dialects.json_calls import arguments_of
from toolglot.dialects.reading import LONGEST_NAME, Outcome, Reader
from toolglot.dialects.scanner import Steps, marks

_NAME: Final = re.compile(r"[^\s`*\"']+")
_QUOTES: Final = re.compile(r"[ \t`*\"']+")
_INPUT: Final = "Action Input:"
_STOP: Final = "Observation:"
_NEXT: Final = ("\nObservation:", "\nThought:", "\nAction:", "\nFinal Answer:")


def step(reader: Reader, _opener: str) -> Steps[Outcome]:
    """The call whose name stands here."""
    scanner = reader.scanner
    yield from scanner.while_in(_QUOTES, 8)
    name = yield from scanner.while_in(_NAME, LONGEST_NAME)
    yield from scanner.while_in(_QUOTES, 8)
    yield from scanner.skip_spaces()
    if not reader.accepts(name) or (yield from scanner.one_of((_INPUT,))) is None:
        return "unfinished" if scanner.is_over else "none"
    mark = yield from scanner.skip_spaces()
    outcome = yield from (arguments_of(reader, name) if mark in ("{", "") else _plain(reader, name))
    yield from _observation(reader)
    return outcome


def _plain(reader: Reader, name: str) -> Steps[Outcome]:
    """Input that is not JSON, up to the next line that begins a step."""
    scanner = reader.scanner
    reader.open(name)
    pieces: list[str] = []
    found = yield from scanner.until(marks(*_NEXT), pieces.append)
    writer = ArgumentWriter(reader, name)
    writer.begin(_only_argument(reader, name))
    writer.add("".join(pieces).strip())
    writer.end()
    writer.finish()
    if found is not None:
        scanner.at -= len(found)
    return reader.close()


def _only_argument(reader: Reader, name: str) -> str:
    schema = reader.schema(name) or {}
    for listed in (schema.get("required"), schema.get("properties")):
        if isinstance(listed, list | dict) and len(listed) == 1:
            return str(next(iter(listed)))
    return "input"


def _observation(reader: Reader) -> Steps[None]:
    scanner, say = reader.scanner, reader.teller.say
    scanner.mark()
    yield from scanner.skip_spaces()
    if (yield from scanner.one_of((_STOP,))) is None:
        scanner.go_back()
        return
    scanner.mark()
    if (yield from scanner.skip_spaces()) == "":
        return
    scanner.go_back()
    say(_STOP)
    yield from scanner.until(marks(), say)
