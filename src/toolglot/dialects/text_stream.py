"""Calls that a model writes as text, found while the text arrives.

    stream = toolglot.TextToolStream(dialect="hermes", tools=tools)
    events = stream.feed("Let me look.<tool_ca") + stream.feed('ll>{"name": …') + stream.finish()

Law: the same input gives the same text, thinking and calls however it is cut; a whole text is read by the same reader,
as one piece. Only what may begin a mark is held back, and a possible call until it is certain.
Whatever is not a call is text, to the last character.

If the dialect is detected (`auto`), code is quoted text: a code span or fence is not a call, unless the fence holds
only the JSON of a call of an offered tool.

Calls in thinking are drafts. Thinking that never ends is ended by the first call in it that has a mark of its own: from
such a mark on, it is held back until it, or the text, ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, get_args

from msgspec import Struct

from toolglot.conversation import Block, Text, Thinking, ToolCall
from toolglot.conversation.events import BlockEnded, Event
from toolglot.dialects.offered_tools import Tools, tool_list, tool_schemas
from toolglot.dialects.registry import is_auto, select_dialects
from toolglot.dialects.text_reading import TextReading
from toolglot.errors import InputError, quote

Unoffered = Literal["call", "text"]
"""How a call of a tool that was not offered is read."""
MAX_THOUGHT: Final = 1 << 20
"""Characters of a thought that are read once more to find calls."""
_SLICE: Final = 4096
"""Characters that are read at once, so that text is not held back for longer than needed."""


class TextToolStream:
    """Finds calls in text that arrives in pieces.

    dialect: one of `toolglot.dialects.names()`, or `auto`, which detects it.
    tools: the offered tools: `ToolSpec`s, definitions in any protocol's form, or names. They decide which calls are
        meant and the types of their arguments.
    model: the name of the model, whose dialects `auto` tries first.
    ids: goes into the ids that are made; the same text with the same value gives the same ids.
    rescue_thinking: calls in thinking are drafts. With this option, whole calls at the end of the thinking count, if
        the model wrote no text and no other call.
    starts_thinking: the prompt ended inside the model's thinking, so that the text begins with it, and only its end is
        marked.
    unoffered: how a call of a tool that is not among `tools` is read: as a `call`, or as `text`.
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
        tools = tool_list(tools)
        schemas = tool_schemas(tools)
        if unoffered not in get_args(Unoffered):
            raise InputError(f"expected call or text, got {quote(unoffered)}", path="unoffered")
        self._rescuer: TextToolStream | None = None
        if rescue_thinking:
            self._rescuer = TextToolStream(dialect=dialect, tools=tools, model=model, ids=ids, unoffered=unoffered)
        self._reading = TextReading(
            select_dialects(dialect, model, has_tools=bool(schemas)),
            is_auto=is_auto(dialect),
            model=model,
            schemas=schemas,
            ids=ids,
            only_offered=unoffered == "text" and bool(schemas),
            starts_thinking=starts_thinking,
        )
        self._scanner, self._output = self._reading.scanner, self._reading.output
        self._run = self._reading.read()
        self._is_over = False
        next(self._run)

    @property
    def found(self) -> list[str]:
        """The dialects whose calls were found, in their order."""
        return self._reading.found

    @property
    def dropped(self) -> list[str]:
        """The marks that were dropped because they mean nothing."""
        return self._reading.dropped

    @property
    def draft(self) -> str:
        """The rest of the text, from a call that ended a thought that was never closed. If the text was cut off, the
        thought may have gone on."""
        return self._reading.draft

    @property
    def is_marked(self) -> bool:
        """Whether the first of the dialects had a mark that ordinary text does not have."""
        return self._reading.is_marked

    def feed(self, text: str) -> list[Event]:
        """The events that this text completes."""
        if type(text) is not str:
            raise InputError(f"expected text, got {quote(text)}", path="text")
        scanner, output = self._scanner, self._output
        passes = scanner.passes
        if passes is not None and passes(text):
            scanner.fed += len(text)
            scanner.sink(text)
        elif text and self._is_over:
            raise InputError("this text is finished", path="text", hint="a new TextToolStream for each text")
        elif text:
            for start in range(0, len(text), _SLICE):
                scanner.push(text[start : start + _SLICE])
                self._run.send(None)
        events, output.events = output.events, []  # what `take` does; this is called for every piece
        return events

    def finish(self) -> list[Event]:
        """End the text. A call that is still open was cut, or is text."""
        if self._is_over:
            return []
        self._is_over = True
        self._scanner.is_over = True
        self._scanner.passes = None
        for _ in self._run:
            raise AssertionError("a dialect waits for more text than there is")
        self._output.end_thinking()
        if self._rescuer is not None and not self._output.calls and not self._output.has_text:
            self._rescue(self._rescuer, self._output.last_thinking)
        self._output.finish()
        return self._output.take()

    @property
    def is_settled(self) -> bool:
        """Whether no text is held back."""
        return self._is_over or (self._scanner.passes is not None and not self._output.holds_back)

    def _rescue(self, stream: TextToolStream, thought: str) -> None:
        """Add the calls that the last thought ends with."""
        if not thought or len(thought) > MAX_THOUGHT:
            return
        events = stream.feed(thought) + stream.finish()
        others = (at for at, event in enumerate(events) if isinstance(event, BlockEnded) and not _is_whole_call(event))
        calls = events[max(others, default=-1) + 1 :]
        if calls:
            self.found.extend(stream.found[-1:])
            self._output.add_events(calls)


def _is_whole_call(event: BlockEnded) -> bool:
    return isinstance(event.block, ToolCall) and not event.cut


class ParsedText(Struct, frozen=True):
    """The parts of what a model wrote.

    text: the text without thinking and calls.
    thinking: the model's thinking.
    calls: the whole calls.
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    cut: tuple[ToolCall, ...] = ()
    """Calls that were cut off. They are never run."""


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
) -> ParsedText:
    """The text, the thinking and the calls of what a model wrote.

    text: what the model wrote.
    dialect: one of `toolglot.dialects.names()`; `auto` detects it.
    tools: the offered tools: `ToolSpec`s, or definitions in any protocol's form. They decide which calls are meant and
        the types of their arguments.
    model: the model's name, whose dialects `auto` tries first.
    ids: goes into the ids that are made; the same text with the same value gives the same ids.
    rescue_thinking: whether whole calls at the end of the thinking count, if there is no text and no other call.
    starts_thinking: whether the text begins inside thinking, because the prompt opened it.
    unoffered: how a call of a tool that is not among `tools` is read: as a `call`, or as `text`.
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
    return parsed_text(stream.feed(text) + stream.finish())


def parsed_text(events: Iterable[Event]) -> ParsedText:
    """The parts that events add up to."""
    ended = [event for event in events if isinstance(event, BlockEnded)]
    blocks: list[Block] = [event.block for event in ended]
    return ParsedText(
        "".join(block.text for block in blocks if isinstance(block, Text)),
        "".join(block.text for block in blocks if isinstance(block, Thinking)),
        tuple(event.block for event in ended if isinstance(event.block, ToolCall) and not event.cut),
        tuple(event.block for event in ended if isinstance(event.block, ToolCall) and event.cut),
    )
