"""The steps of ReAct: an action with its input, and an observation that the model invents."""

from __future__ import annotations

import re
from typing import Final

from toolglot.dialects.dialect import skip_closer
from toolglot.dialects.families.json_calls import CallKeys, arguments_of, call_object
from toolglot.dialects.reading import MAX_NAME, DialectReader, Outcome
from toolglot.dialects.scanner import Steps, marks
from toolglot.dialects.values.argument_writer import ArgumentWriter

_NAME: Final = re.compile(r"[^\s`*\"'(]+")
_QUOTES: Final = re.compile(r"[ \t`*\"']+")
_SPACES: Final = re.compile(r"\s+")
_INPUTS: Final = ("Action Input:", "**Action Input:**", "**Action Input**:")
_STOP: Final = "Observation:"
_NEXT: Final = tuple(
    f"\n{bold}{word}" for word in ("Observation:", "Thought:", "Action:", "Final Answer:") for bold in ("", "**")
)
_FENCE: Final = "```"
_FENCES: Final = ("```json", _FENCE)
_FENCED: Final = re.compile(r"```\w*+\n(.*?)\n?```", re.DOTALL)
_KEYS: Final = CallKeys(name=("action",), arguments=("action_input",), needs_input=True)
FENCED_ACTION: Final = r"\s*+```(?:json)?+\s*+\{\s*+\"action(?:_input)?+\""
"""An action in a code fence, as a pattern."""


def step(reader: DialectReader, _opener: str) -> Steps[Outcome]:
    """The call whose name begins here."""
    scanner = reader.scanner
    yield from scanner.while_in(_QUOTES, 2)
    if (yield from scanner.skip_spaces()) == "`" and (yield from scanner.one_of(_FENCES)):
        return (yield from _fenced_action(reader))
    yield from scanner.while_in(_QUOTES, 8)
    name = yield from scanner.while_in(_NAME, MAX_NAME)
    yield from scanner.while_in(_QUOTES, 8)
    if not reader.accepts(name):
        return "unfinished" if scanner.is_over else "none"
    if (yield from scanner.skip_spaces()) == "(":
        return (yield from _in_brackets(reader, name))
    if (yield from scanner.one_of(_INPUTS)) is None:
        return "unfinished" if scanner.is_over else "none"
    outcome = yield from _input(reader, name)
    yield from _observation(reader)
    return outcome


def _fenced_action(reader: DialectReader) -> Steps[Outcome]:
    """An object in a code fence that names the action and its input."""
    if (yield from reader.scanner.skip_spaces()) != "{":
        return "none"
    outcome = yield from call_object(reader, _KEYS, closers=(_FENCE,))
    if outcome in ("call", "cut"):
        yield from skip_closer(reader, _FENCE)
        yield from _observation(reader)
    return outcome


def _in_brackets(reader: DialectReader, name: str) -> Steps[Outcome]:
    """The input as one object in brackets: `ls({"p": "/"})`."""
    scanner = reader.scanner
    scanner.at += 1
    if (yield from scanner.skip_spaces()) != "{":
        return "none"
    outcome = yield from arguments_of(reader, name, closers=_NEXT)
    yield from skip_closer(reader, ")")
    yield from _observation(reader)
    return outcome


def _input(reader: DialectReader, name: str) -> Steps[Outcome]:
    """The input: an object, which may be in a code fence, or plain text."""
    scanner = reader.scanner
    mark = yield from scanner.skip_spaces()
    fence = (yield from scanner.one_of(_FENCES)) if mark == "`" else None
    gap = (yield from scanner.while_in(_SPACES, MAX_NAME)) if fence is not None else ""
    if (yield from scanner.peek()) not in ("{", ""):
        return (yield from _plain(reader, name, f"{fence or ''}{gap}"))
    outcome = yield from arguments_of(reader, name, closers=(_FENCE,) if fence is not None else _NEXT)
    if fence is not None:
        yield from skip_closer(reader, _FENCE)
    return outcome


def _plain(reader: DialectReader, name: str, before: str) -> Steps[Outcome]:
    """Input that is not JSON, up to the next line that begins a step."""
    scanner = reader.scanner
    reader.open(name)
    pieces: list[str] = [before]
    found = yield from scanner.until(marks(*_NEXT), pieces.append)
    text = "".join(pieces).strip()
    fenced = _FENCED.fullmatch(text)
    writer = ArgumentWriter(reader, name)
    writer.begin(_only_argument(reader, name))
    writer.add(fenced[1] if fenced is not None else text)
    writer.end()
    writer.finish()
    if found is not None:
        scanner.at -= len(found)
    return reader.close()


def _only_argument(reader: DialectReader, name: str) -> str:
    schema = reader.schema(name) or {}
    for listed in (schema.get("required"), schema.get("properties")):
        if isinstance(listed, list | dict) and len(listed) == 1:
            return str(next(iter(listed)))
    return "input"


def _observation(reader: DialectReader) -> Steps[None]:
    scanner, add_text = reader.scanner, reader.output.add_text
    scanner.mark()
    yield from scanner.skip_spaces()
    if (yield from scanner.one_of((_STOP,))) is None:
        scanner.go_back()
        return
    scanner.mark()
    if (yield from scanner.skip_spaces()) == "":
        return
    scanner.go_back()
    add_text(_STOP)
    yield from scanner.until(marks(), add_text)
