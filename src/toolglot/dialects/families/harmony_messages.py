"""Messages of Harmony: a head with a channel and maybe a recipient, and a body that is thinking, text or arguments."""

from __future__ import annotations

import re
from typing import Final

from toolglot.dialects.families.json_calls import arguments_of
from toolglot.dialects.reading import DialectReader, Outcome
from toolglot.dialects.scanner import Steps, discard, marks

STARTS: Final = ("<|start|>", "<|channel|>")
ENDS: Final = ("<|end|>", "<|call|>", "<|return|>")
MAX_HEAD: Final = 1024
_TO: Final = re.compile(r"\bto=\s*(?:functions\.)?([^\s<]+)")
_CHANNEL: Final = re.compile(r"<\|channel\|>\s*(\w+)")


def message(reader: DialectReader, opener: str) -> Steps[Outcome]:
    """The message that this token begins, or nothing, where it is the end of one."""
    scanner = reader.scanner
    if opener in ENDS:
        return "passed"
    pieces = [opener]
    while True:
        found = yield from scanner.until(marks("<|message|>", "<|start|>", *ENDS), pieces.append)
        if found is None or sum(map(len, pieces)) > MAX_HEAD:
            return "unfinished" if found is None else "none"
        if found == "<|message|>":
            return (yield from _body(reader, "".join(pieces)))
        if found != "<|start|>":
            return "none"
        pieces = [found]


def _body(reader: DialectReader, head: str) -> Steps[Outcome]:
    scanner, output = reader.scanner, reader.output
    to, channels = _TO.search(head), _CHANNEL.findall(head)
    ends = marks(*ENDS, *STARTS)
    outcome: Outcome = "passed"
    if to is not None and to[1] not in ("assistant", "user", "self") and reader.accepts(to[1]):
        outcome = yield from _call(reader, to[1])
        found = yield from scanner.until(ends, discard)
    else:
        scanner.unmark()
        is_to_self = to is not None and to[1] == "self"
        is_thought = is_to_self or channels[-1:] == ["analysis"]  # a message may name its channel twice
        found = yield from scanner.until(ends, output.add_thinking if is_thought else output.add_text)
        output.end_thinking()
    if found in STARTS:
        scanner.at -= len(found)  # the next message
    return outcome


def _call(reader: DialectReader, name: str) -> Steps[Outcome]:
    """The arguments: JSON, or what else the tool takes, up to the end of the message."""
    scanner = reader.scanner
    if (yield from scanner.skip_spaces()) in ("{", "<", ""):
        return (yield from arguments_of(reader, name, closers=(*ENDS, *STARTS)))
    reader.open(name)
    found = yield from scanner.until(marks(*ENDS, *STARTS), reader.input)
    scanner.at -= len(found or "")
    return reader.close(cut=found is None)
