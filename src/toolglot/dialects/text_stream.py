"""Calls that a model writes as text, found while the text comes.

    stream = toolglot.TextToolStream(dialect="hermes", tools=tools)
    events = stream.feed("Let me look.<tool_ca") + stream.feed('ll>{"name": …') + stream.finish()

Law: the same text gives the same text, thinking and calls however it is cut, since a whole text is read by the same
reader in one piece. No more is kept back than what may be the beginning of a mark, and a candidate until it is decided.
Whatever is no call is text, to the last character.

Where the dialect is to be found out (`auto`), code is quoted text: what stands in a code span or a fence is no call,
but for a fence that holds nothing else than the JSON of a call of a tool that was offered.

Calls in a thought are drafts. A thought that never ends is ended by the first call in it that has a mark of its own: so
from such a mark on, a thought is kept back until its end, or that of the text, is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, get_args

from msgspec import Struct

from toolglot.conversation import Block, Text, Thinking, ToolCall
from toolglot.conversation.events import BlockEnded, Event
from toolglot.dialects.offered_tools import Tools, listed, offered
from toolglot.dialects.registry import chosen, is_auto
from toolglot.dialects.text_reading import TextReading
from toolglot.errors import InputError, quote

Unoffered = Literal["call", "text"]
"""What a call of a tool is that was not offered."""
LONGEST_THOUGHT: Final = 1 << 20
"""Characters of a thought that are read once more for calls to be rescued."""
_SLICE: Final = 4096
"""Characters that are read at once, so that what is kept back is looked at in between."""


class TextToolStream:
    """Finds calls in text that comes in pieces.

    dialect: one of `toolglot.dialects.names()`, or `auto`, which finds out from the text.
    tools: what was offered: `ToolSpec`s, bodies of any protocol's tools, or names. They say which calls are meant and
        what the types of arguments are.
    model: the name of the model, whose dialects `auto` tries first.
    ids: goes into the ids that are made; the same text with the same word gives the same ids.
    rescue_thinking: calls in what the model thinks are drafts, and no calls. With this option those that the thinking
        ends with count after all, if they are whole and the model neither said nor called anything else.
    starts_thinking: the prompt ended inside the model's thinking, so that the text begins with it, and only its end is
        marked.
    unoffered: what a call of a tool is that is not among `tools`: a `call`, or `text`.
    """

    def __init__(
        self,
        *,
        dialect: str = "auto",
        tools: Tools = (),
        model: str = "",
        ids: str = "",
        rescue_thinking: bool = False,
        starts_thinking: bool = False,
        unoffered: Unoffered = "call",
    ) -> None:
        tools = listed(tools)
        schemas = offered(tools)
        if unoffered not in get_args(Unoffered):
            raise InputError(f"expected call or text, got {quote(unoffered)}", path="unoffered")
        self._rescuer: TextToolStream | None = None
        if rescue_thinking:
            self._rescuer = TextToolStream(dialect=dialect, tools=tools, model=model, ids=ids, unoffered=unoffered)
        self._reading = TextReading(
            chosen(dialect, model, has_tools=bool(schemas)),
            is_auto=is_auto(dialect),
            model=model,
            schemas=schemas,
            ids=ids,
            only_offered=unoffered == "text" and bool(schemas),
            starts_thinking=starts_thinking,
        )
        self._scanner, self._teller = self._reading.scanner, self._reading.teller
        self._run = self._reading.read()
        self._is_over = False
        next(self._run)

    @property
    def found(self) -> list[str]:
        """The dialects whose calls were found, in their order."""
        return self._reading.found

    @property
    def dropped(self) -> list[str]:
        """The marks that were dropped since they said nothing."""
        return self._reading.dropped

    @property
    def draft(self) -> str:
        """The rest of the text, from a call on that ended a thought, since nothing else did. Whoever knows that the
        text was cut off knows that its thought would have gone on."""
        return self._reading.draft

    @property
    def is_marked(self) -> bool:
        """Whether the first of the dialects had a mark of its own, and was not what ordinary text looks like."""
        return self._reading.is_marked

    def feed(self, text: str) -> list[Event]:
        """The events that this text completes."""
        if type(text) is not str:
            raise InputError(f"expected text, got {quote(text)}", path="text")
        scanner, teller = self._scanner, self._teller
        passes = scanner.passes
        if passes is not None and passes(text):
            scanner.sink(text)
        elif text and self._is_over:
            raise InputError("this text is finished", path="text", hint="a new TextToolStream for each text")
        elif text:
            for start in range(0, len(text), _SLICE):
                scanner.push(text[start : start + _SLICE])
                self._run.send(None)
        events, teller.events = teller.events, []  # what `take` does; this is called for every piece
        return events

    def finish(self) -> list[Event]:
        """Nothing follows. What is still open is told as cut, or was text."""
        if self._is_over:
            return []
        self._is_over = True
        self._scanner.is_over = True
        self._scanner.passes = None
        for _ in self._run:
            raise AssertionError("a dialect waits for more text than there is")
        self._teller.end_thought()
        if self._rescuer is not None and not self._teller.calls and not self._teller.has_text:
            self._rescue(self._rescuer, self._teller.last_thought)
        self._teller.finish()
        return self._teller.take()

    @property
    def is_settled(self) -> bool:
        """Nothing of the text is kept back."""
        return self._is_over or (self._scanner.passes is not None and not self._teller.keeps)

    def _rescue(self, stream: TextToolStream, thought: str) -> None:
        """Tell the calls that the last thought ends with."""
        if not thought or len(thought) > LONGEST_THOUGHT:
            return
        events = stream.feed(thought) + stream.finish()
        others = (at for at, event in enumerate(events) if isinstance(event, BlockEnded) and not _is_whole_call(event))
        calls = events[max(others, default=-1) + 1 :]
        if calls:
            self.found.extend(stream.found[-1:])
            self._teller.pass_on(calls)


def _is_whole_call(event: BlockEnded) -> bool:
    return isinstance(event.block, ToolCall) and not event.cut


class Said(Struct, frozen=True):
    """What a text says.

    thinking: what the model thought.
    calls: the calls that are whole.
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    cut: tuple[ToolCall, ...] = ()
    """Calls that ended before they were whole. They are never run."""


def parse_text(
    text: str,
    *,
    dialect: str = "auto",
    tools: Tools = (),
    model: str = "",
    ids: str = "",
    rescue_thinking: bool = False,
    starts_thinking: bool = False,
    unoffered: Unoffered = "call",
) -> Said:
    """The text, the thinking and the calls of what a model wrote.

    text: what the model wrote.
    dialect: one of `toolglot.dialects.names()`; `auto` finds it out from the text.
    tools: the tools that were offered: `ToolSpec`s, or definitions in any protocol's form. They say which calls are
        meant and what types their arguments have.
    model: the model's name, whose dialects `auto` tries first.
    ids: goes into the ids that are made; the same text with the same word gives the same ids.
    rescue_thinking: whether whole calls that the thinking ends with count, where nothing else was said or called.
    starts_thinking: whether the text begins inside of thinking, because the prompt opened it.
    unoffered: what a call of a tool is that is not among `tools`: a `call`, or `text`.
    """
    stream = TextToolStream(
        dialect=dialect,
        tools=tools,
        model=model,
        ids=ids,
        rescue_thinking=rescue_thinking,
        starts_thinking=starts_thinking,
        unoffered=unoffered,
    )
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
