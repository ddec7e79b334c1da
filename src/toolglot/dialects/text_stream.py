"""Calls that a model writes as text, found while the text comes.

    stream = toolglot.TextToolStream(dialect="hermes", tools=tools)
    events = stream.feed("Let me look.<tool_ca") + stream.feed('ll>{"name": …') + stream.finish()

Law: the same text gives the same text, thinking and calls however it is cut, since a whole text is read by the same
reader in one piece. No more is kept back than what may be the beginning of a mark, and a candidate until it is decided.
Whatever is no call is text, to the last character.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from toolglot.conversation import Block, Text, Thinking, ToolCall, ToolSpec
from toolglot.dialects.dialect import Dialect, fits
from toolglot.dialects.reading import Outcome, Reader
from toolglot.dialects.registry import chosen
from toolglot.dialects.scanner import Marks, Steps
from toolglot.errors import InputError, quote
from toolglot.events import BlockEnded, Event

AHEAD: Final = 64
"""Characters behind an opener that decide which dialect is meant."""
LONGEST_GUESS: Final = 4096
"""How much of what may be a call is kept back until its name is known; and how much is read again if it is none."""

Tools = Iterable[ToolSpec | Mapping[str, Any] | str]


class TextToolStream:
    """Finds calls in text that comes in pieces.

    dialect: one of `toolglot.dialects.names()`, or `auto`, which finds out from the text.
    tools: what was offered: `ToolSpec`s, bodies of any protocol's tools, or names. They say which calls are meant and
        what the types of arguments are.
    model: narrows what `auto` looks for.
    ids: goes into the ids that are made; the same text with the same word gives the same ids.
    """

    def __init__(self, *, dialect: str = "auto", tools: Tools = (), model: str = "", ids: str = "") -> None:
        self._dialects = chosen(dialect, model)
        self._reader = Reader(offered(tools), id_stem=ids)
        self._scanner, self._teller = self._reader.scanner, self._reader.teller
        self._openers = _by_opener(self._dialects)
        self._thinking = {opener: closer for each in self._dialects for opener, closer in each.thinking}
        self._marks = Marks(*self._openers, *self._thinking)
        self._run = self._read()
        self._is_over = False
        next(self._run)

    def feed(self, text: str) -> list[Event]:
        """The events that this text completes."""
        if type(text) is not str:
            raise InputError(f"expected text, got {quote(text)}", path="text")
        scanner = self._scanner
        if scanner.passes is not None and scanner.passes(text):
            scanner.sink(text)
        elif text and not self._is_over:
            scanner.push(text)
            self._run.send(None)
        return self._teller.take()

    def finish(self) -> list[Event]:
        """Nothing follows. What is still open is told as cut, or was text."""
        if self._is_over:
            return []
        self._is_over = True
        self._scanner.is_over = True
        self._scanner.passes = None
        for _ in self._run:
            raise AssertionError("a dialect waits for more text than there is")
        self._reader.teller.finish()
        return self._reader.teller.take()

    # --- reading ------------------------------------------------------------------------------------

    def _read(self) -> Steps[None]:
        scanner, teller = self._reader.scanner, self._reader.teller
        while True:
            found = yield from scanner.until(self._marks, teller.say)
            if found is None:
                return
            closer = self._thinking.get(found)
            if closer is not None:
                yield from scanner.until(Marks(closer), teller.think)
                teller.end_thought()
            else:
                yield from self._candidate(found)

    def _candidate(self, opener: str) -> Steps[None]:
        """What follows an opener: a call, or text after all."""
        reader, scanner = self._reader, self._reader.scanner
        scanner.mark()
        dialect = yield from self._meant(opener)
        if dialect is None:
            self._was_text(opener)
            return
        reader.only_offered = dialect.is_weak
        outcome = yield from self._attempt(dialect, opener)
        if outcome in ("none", "unfinished"):
            self._was_text(opener)
        else:
            scanner.let_go()

    def _meant(self, opener: str) -> Steps[Dialect | None]:
        """The dialect whose calls look like what follows."""
        candidates = self._openers[opener]
        if any(each.inside for each in candidates):
            yield from self._reader.scanner.need(AHEAD)
        scanner = self._reader.scanner
        ahead = scanner.text[scanner.at : scanner.at + AHEAD]
        return next((each for each in candidates if fits(each, ahead)), None)

    def _attempt(self, dialect: Dialect, opener: str) -> Steps[Outcome]:
        """Let a dialect read, as long as what it read can be kept."""
        reader = self._reader
        steps = dialect.read(reader, opener)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                outcome: Outcome = done.value
                return outcome
            if dialect.is_weak and not reader.has_open_call and reader.scanner.size_since_mark() > LONGEST_GUESS:
                return "none"
            yield

    def _was_text(self, opener: str) -> None:
        """What was read is text; a mark inside it may still begin a call, unless it is too long to be read again."""
        scanner, teller = self._reader.scanner, self._reader.teller
        teller.say(opener)
        if scanner.size_since_mark() <= LONGEST_GUESS:
            scanner.go_back()
            return
        teller.say(scanner.since_mark())
        scanner.let_go()


def _by_opener(dialects: Iterable[Dialect]) -> dict[str, list[Dialect]]:
    found: dict[str, list[Dialect]] = {}
    for dialect in dialects:
        for opener in dialect.openers:
            found.setdefault(opener, []).append(dialect)
    return found


def offered(tools: Tools) -> dict[str, dict[str, Any] | None]:
    """The names and schemas of tools, however they are given."""
    found: dict[str, dict[str, Any] | None] = {}
    for tool in tools:
        if isinstance(tool, str):
            found[tool] = None
        elif isinstance(tool, ToolSpec):
            found[tool.name] = tool.parameters
        elif isinstance(tool, Mapping):
            nested = tool.get("function")
            inner: Mapping[str, Any] = nested if isinstance(nested, Mapping) else tool
            name = inner.get("name")
            if not isinstance(name, str):
                raise InputError(f"expected a tool with a name, got {quote(tool)}", path="tools")
            found[name] = next((inner[key] for key in _SCHEMAS if isinstance(inner.get(key), dict)), None)
        else:
            raise InputError(f"expected a tool, got {quote(tool)}", path="tools")
    return found


_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")


class Said(Struct, frozen=True):
    """What a text says."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    cut: tuple[ToolCall, ...] = ()
    """Calls that ended before they were whole. They are never run."""


def parse_text(text: str, *, dialect: str = "auto", tools: Tools = (), model: str = "", ids: str = "") -> Said:
    """The text, the thinking and the calls of what a model wrote."""
    stream = TextToolStream(dialect=dialect, tools=tools, model=model, ids=ids)
    return said(stream.feed(text) + stream.finish())


def said(events: Iterable[Event]) -> Said:
    """What events add up to."""
    ended = [event for event in events if isinstance(event, BlockEnded)]
    blocks: list[Block] = [event.block for event in ended]
    return Said(
        "".join(block.text for block in blocks if isinstance(block, Text)),
        "".join(block.text for block in blocks if isinstance(block, Thinking)),
        tuple(event.block for event in ended if isinstance(event.block, ToolCall) and not event.cut),
        tuple(event.block for event in ended if isinstance(event.block, ToolCall) and event.cut),
    )
