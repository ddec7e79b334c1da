"""What a dialect found, told as events: text, thinking and calls, one after the other.

White space that only stands around calls is not text. What was said before a call keeps its own.
"""

from __future__ import annotations

from io import StringIO
from typing import Final

from msgspec.structs import replace

from toolglot import arguments
from toolglot.conversation import Block, Text, Thinking, ToolCall
from toolglot.conversation.events import BlockEnded, BlockStarted, Event, InputDelta, TextDelta, ThinkingDelta
from toolglot.errors import InputError

LONGEST_BLANK: Final = 4096
"""How much white space is kept back until it is known whether it stands between calls."""

_BEGUN: Final = "{"
"""The arguments of a call that was cut before any of them came."""
SHORT_PIECE: Final = 256
"""Text that comes in shorter pieces at once is told in one."""


class EventWriter:
    """Makes events of what is found. `take` hands over those that are there."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.calls: int = 0
        self.has_text: bool = False
        self.last_thought: str = ""
        self._open: type[Block] | None = None
        self._said = StringIO()
        self._blank = ""
        self._call: ToolCall | None = None

    @property
    def keeps(self) -> bool:
        """Whether white space is kept back."""
        return bool(self._blank)

    @property
    def is_thinking(self) -> bool:
        """Whether what was told last is a thought that is not over."""
        return self._open is Thinking

    def last_said(self, count: int = 2) -> str:
        """The last characters of the text, if it can go on."""
        if self._open is not Text:
            return self._blank[-count:]
        end = self._said.tell()
        self._said.seek(max(end - count, 0))
        return self._said.read()

    def take(self) -> list[Event]:
        events = self.events
        self.events = []
        return events

    def say(self, text: str) -> None:
        """More text."""
        if self._open is Text:
            self._said.write(text)
            last = self.events[-1] if self.events else None
            if type(last) is TextDelta and len(last.text) < SHORT_PIECE:
                self.events[-1] = TextDelta(last.text + text)
            else:
                self.events.append(TextDelta(text))
            return
        if text.isspace() and len(self._blank) + len(text) < LONGEST_BLANK:
            self._blank += text
            return
        self._close()
        self._open, self.has_text = Text, True
        self.events.append(BlockStarted(Text("")))
        text, self._blank = self._blank + text, ""
        self._said.write(text)
        self.events.append(TextDelta(text))

    def think(self, text: str) -> None:
        """More of what was thought."""
        if self._open is not Thinking:
            self._close()
            self._open = Thinking
            self.events.append(BlockStarted(Thinking()))
        self._said.write(text)
        self.events.append(ThinkingDelta(text))

    def end_thought(self) -> None:
        if self._open is Thinking:
            self._close()

    def open_call(self, call: ToolCall) -> None:
        """A call of this name began."""
        self._close()
        self._blank = ""
        self._call = call
        self.events.append(BlockStarted(call))

    def input(self, piece: str) -> None:
        """More of the arguments, as JSON."""
        if piece:
            self._said.write(piece)
            self.events.append(InputDelta(piece))

    def close_call(self, *, cut: bool = False) -> None:
        """The call is whole, or was cut."""
        call, text = self._call, self._said.getvalue()
        if call is None:
            return
        if cut and not text.strip():  # arguments that never came are not the same as none
            self.input(_BEGUN)
            text += _BEGUN
        self._call, self._said = None, StringIO()
        self.calls += 1
        whole, is_object = _whole(call, text)
        self.events.append(BlockEnded(whole, cut and not is_object))

    def pass_on(self, calls: list[Event]) -> None:
        """Events of whole calls that somebody else has told."""
        self._close()
        self._blank = ""
        self.events += calls

    def finish(self) -> None:
        """Nothing follows. White space is text only where there is nothing else."""
        blank, self._blank = self._blank, ""
        if blank and not self.calls and self._open is None:
            self._open = Text
            self.events += (BlockStarted(Text("")), TextDelta(blank))
            self._said.write(blank)
        self._close()

    def _close(self) -> None:
        if self._call is not None:
            self.close_call(cut=True)
        if self._open is None:
            return
        text = self._said.getvalue()
        if self._open is Thinking:
            self.last_thought = text
        self.events.append(BlockEnded(Text(text) if self._open is Text else Thinking(text)))
        self._open, self._said = None, StringIO()


def _whole(call: ToolCall, text: str) -> tuple[ToolCall, bool]:
    """The call with its arguments, and whether they are an object."""
    if not text.strip():
        return replace(call, arguments={}), False
    try:
        found = arguments.parse(text).arguments
    except InputError:
        return replace(call, raw_input=text), False
    return replace(call, arguments=found, raw_input=None), True
