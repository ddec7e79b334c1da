"""Writes a stream that opens, fills and closes numbered blocks. Anthropic's and Bedrock's writers are built on it.

Law: a client that puts the stream together gets the body that `reply.encode` writes for the same reply, so every block
and every field comes from there. Blocks count up from 0, one is open at a time, and nothing follows the end.

What a block is may be known only when it ends: thinking that is redacted, arguments that are not an object. Such a
block is written then, and at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Final

from toolglot.conversation import Block, Extra, Failure, Form, StopReason, Text, Thinking, ToolCall, Usage
from toolglot.conversation.events import BlockEnded, BlockStarted, Event, Failed, Finished, Started
from toolglot.protocols.base import StreamOptions

ANY_CALL: Final = ToolCall("", "", {})
"""Stands for the calls of a reply, where only its stop reason depends on them."""


class BlockStreamEncoder(ABC):
    """Writes one stream. A protocol adds `write` and the spelling of each event."""

    _PROTOCOL: ClassVar[str]
    _LEFT_OPEN: ClassVar[type]
    """The blocks that a cut leaves open, unless the message continues: clients run a call that is closed."""

    def __init__(self, options: StreamOptions = StreamOptions()) -> None:  # noqa: B008
        self._options = options
        self._out: list[bytes] = []
        self._started: Started | None = None
        self._is_over = False
        self._usage: Usage | None = None
        self._calls = 0
        self._has_whole_calls = False
        self._has_cut_calls = False
        self._index = 0
        self._block: Block | None = None
        """The open block of the events."""
        self._is_open = False
        """Whether it is open for the client too."""
        self._prefix: bytes | None = None
        self._suffix = b""
        """What comes before and after the text of a delta; `_prefix` is None while deltas are not written."""
        self._waits = False
        """Whether the first delta of the block decides how it is written."""
        self._is_cut = False
        """Whether the block was cut and left open."""

    # --- the message --------------------------------------------------------------------------------

    def _write_event(self, event: Event) -> None:
        """Write an event of a message that has started."""
        if self._is_cut and not isinstance(event, Failed):
            self._close_block()
        if isinstance(event, BlockStarted):
            self._start_block(event.block)
        elif isinstance(event, BlockEnded):
            self._end_block(event.block, is_cut=event.cut)
        elif isinstance(event, Finished):
            self._close_block()
            self._is_over = True
            self._finish(event)
        elif isinstance(event, Failed):
            self._is_over = True
            self._fail(event.failure)

    def _final(self, event: Finished) -> tuple[StopReason, Extra, Form | None]:
        """The stop reason, the unknown fields and the form of the whole reply."""
        started = self._started or Started()
        own, late = ((extra or {}).get(self._PROTOCOL, {}) for extra in (started.extra, event.extra))
        stop: StopReason = "length" if self._has_cut_calls and event.stop in ("stop", "tool_calls") else event.stop
        return stop, {self._PROTOCOL: {**own, **late}}, started.form if event.form is None else event.form

    # --- blocks -------------------------------------------------------------------------------------

    def _start_block(self, block: Block) -> None:
        self._block, self._prefix, self._waits, self._is_open = block, None, False, False
        if isinstance(block, Text):
            self._start_text(block)
        elif isinstance(block, Thinking):
            self._waits = True
        elif isinstance(block, ToolCall):
            self._calls += 1
            self._block = block = self._with_id(block)
            self._waits = block.type != "custom"

    def _first_delta(self, text: str) -> str:
        """Decide by the first delta how the block is written. Returns the part of it that is a delta."""
        if isinstance(self._block, Thinking):
            if text:
                self._start_thinking(self._block, text)
            return text
        text = text.lstrip()
        if text.startswith("{"):
            # Not before the first argument: a call that was cut there must not look like one without arguments.
            self._start_call()
            self._start_input()
        elif text:
            self._waits = False  # not an object, so it can only be written as a whole
        return text

    def _end_block(self, block: Block, *, is_cut: bool) -> None:
        if isinstance(block, ToolCall):
            self._has_cut_calls = self._has_cut_calls or is_cut
            self._has_whole_calls = self._has_whole_calls or not is_cut
            if self._prefix is None and not is_cut:
                self._start_call()
                self._write_input(block)
        elif isinstance(block, Text):
            self._end_text(block)
        elif isinstance(block, Thinking):
            self._end_thinking(block)
        else:
            self._write_block(block)
        self._is_cut = is_cut and isinstance(block, self._LEFT_OPEN)
        if not self._is_cut:
            self._close_block()

    def _close_block(self) -> None:
        """Close the block that the client has open."""
        self._block, self._prefix, self._waits, self._is_cut = None, None, False, False
        if self._is_open:
            self._is_open = False
            self._write_block_stop()
            self._index += 1

    # --- what a protocol adds -----------------------------------------------------------------------

    @abstractmethod
    def _finish(self, event: Finished) -> None: ...

    @abstractmethod
    def _fail(self, failure: Failure) -> None: ...

    @abstractmethod
    def _with_id(self, call: ToolCall) -> ToolCall:
        """The call with an id, without which no result could be sent."""

    @abstractmethod
    def _start_text(self, block: Text) -> None: ...

    @abstractmethod
    def _start_thinking(self, block: Thinking, text: str) -> None:
        """Start thinking that begins with this text."""

    @abstractmethod
    def _start_call(self) -> None:
        """Write the start of the open call."""

    @abstractmethod
    def _start_input(self) -> None:
        """Set what comes around the deltas of the open call."""

    @abstractmethod
    def _write_input(self, call: ToolCall) -> None:
        """Write all arguments of a call in one delta."""

    @abstractmethod
    def _end_text(self, block: Text) -> None: ...

    @abstractmethod
    def _end_thinking(self, block: Thinking) -> None: ...

    @abstractmethod
    def _write_block(self, block: Block) -> None:
        """Write a whole block, if the protocol has a form for it."""

    @abstractmethod
    def _write_block_stop(self) -> None: ...
