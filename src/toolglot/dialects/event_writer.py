"""Writes what a dialect reads as events: text, thinking and calls, one after the other.

White space around calls is not text, unless text comes before it.
"""

from __future__ import annotations

from io import StringIO
from typing import Final

from msgspec.structs import replace

from toolglot import arguments
from toolglot.conversation import Block, Text, Thinking, ToolCall
from toolglot.conversation.events import BlockEnded, BlockStarted, Event, InputDelta, TextDelta, ThinkingDelta
from toolglot.errors import InputError

MAX_BLANK: Final = 4096
"""Characters of white space that are held back until it is known whether a call follows."""

_BEGUN: Final = "{"
"""The arguments of a call that was cut before any of them came."""
SHORT_PIECE: Final = 256
"""Shorter pieces of text in a row become one event."""


class EventWriter:
    """Collects events. `take` returns those since the last `take`."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.calls: int = 0
        self.has_text: bool = False
        self.last_thinking: str = ""
        self._open: type[Block] | None = None
        self._buffer = StringIO()
        self._blank = ""
        self._call: ToolCall | None = None

    @property
    def holds_back(self) -> bool:
        """Whether white space is held back."""
        return bool(self._blank)

    @property
    def is_thinking(self) -> bool:
        """Whether the last block is thinking that has not ended."""
        return self._open is Thinking

    def last_text(self, count: int = 2) -> str:
        """The last characters of the text, if it can go on."""
        if self._open is not Text:
            return self._blank[-count:]
        end = self._buffer.tell()
        self._buffer.seek(max(end - count, 0))
        return self._buffer.read()

    def take(self) -> list[Event]:
        events = self.events
        self.events = []
        return events

    def add_text(self, text: str) -> None:
        """Add text."""
        if self._open is Text:
            self._buffer.write(text)
            last = self.events[-1] if self.events else None
            if type(last) is TextDelta and len(last.text) < SHORT_PIECE:
                self.events[-1] = TextDelta(last.text + text)
            else:
                self.events.append(TextDelta(text))
            return
        if text.isspace() and len(self._blank) + len(text) < MAX_BLANK:
            self._blank += text
            return
        self._close()
        self._open, self.has_text = Text, True
        self.events.append(BlockStarted(Text("")))
        text, self._blank = self._blank + text, ""
        self._buffer.write(text)
        self.events.append(TextDelta(text))

    def add_thinking(self, text: str) -> None:
        """Add thinking."""
        if self._open is not Thinking:
            self._close()
            self._open = Thinking
            self.events.append(BlockStarted(Thinking()))
        self._buffer.write(text)
        self.events.append(ThinkingDelta(text))

    def end_thinking(self) -> None:
        if self._open is Thinking:
            self._close()

    def open_call(self, call: ToolCall) -> None:
        """Begin a call."""
        self._close()
        self._blank = ""
        self._call = call
        self.events.append(BlockStarted(call))

    def input(self, piece: str) -> None:
        """Add to the arguments, as JSON."""
        if piece:
            self._buffer.write(piece)
            self.events.append(InputDelta(piece))

    def close_call(self, *, cut: bool = False) -> None:
        """End the call: it is complete, or was cut."""
        call, text = self._call, self._buffer.getvalue()
        if call is None:
            return
        if cut and not text.strip():  # arguments that never came are not the same as none
            self.input(_BEGUN)
            text += _BEGUN
        self._call, self._buffer = None, StringIO()
        self.calls += 1
        whole, is_object = _with_arguments(call, text)
        self.events.append(BlockEnded(whole, cut and not is_object))

    def add_events(self, calls: list[Event]) -> None:
        """Add events of whole calls that another stream made."""
        self._close()
        self._blank = ""
        self.events += calls

    def finish(self) -> None:
        """End the text. White space is text only if there is nothing else."""
        blank, self._blank = self._blank, ""
        if blank and not self.calls and self._open is None:
            self._open = Text
            self.events += (BlockStarted(Text("")), TextDelta(blank))
            self._buffer.write(blank)
        self._close()

    def _close(self) -> None:
        if self._call is not None:
            self.close_call(cut=True)
        if self._open is None:
            return
        text = self._buffer.getvalue()
        if self._open is Thinking:
            self.last_thinking = text
        self.events.append(BlockEnded(Text(text) if self._open is Text else Thinking(text)))
        self._open, self._buffer = None, StringIO()


def _with_arguments(call: ToolCall, text: str) -> tuple[ToolCall, bool]:
    """The call with its arguments, and whether they are an object."""
    if not text.strip():
        return replace(call, arguments={}), False
    try:
        found = arguments.parse(text).arguments
    except InputError:
        return replace(call, raw_input=text), False
    return replace(call, arguments=found, raw_input=None), True
