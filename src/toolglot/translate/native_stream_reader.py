"""A reader for a provider and a client of the same protocol: it shows the frames, and whether anything was changed.

As long as nothing was, `StreamTranslator` forwards the provider's bytes.
"""

from __future__ import annotations

from typing import Any

from toolglot import dialects
from toolglot.conversation import Failure, Text, Thinking
from toolglot.conversation.events import (
    BlockEnded,
    BlockStarted,
    Event,
    Finished,
    TextDelta,
    ThinkingDelta,
    Used,
)
from toolglot.protocols.base import codec
from toolglot.protocols.framing.event_builder import (
    BYTE_ORDER_MARK,
    NO_LAST_LINE,
    OUTSIDE_EVENTS,
)
from toolglot.protocols.framing.text_frames import Frame, Framer
from toolglot.translate.stream_reader import StreamReader, check_bytes


class NativeStreamReader(StreamReader):
    """A reader whose frames and changes the translator can see."""

    was_changed = False
    """Whether the client got anything other than what the provider sent."""

    def __init__(self, **checked: Any) -> None:
        super().__init__(**checked)
        # In protocols that count blocks, thinking that is read from text would leave a gap.
        counts_blocks = codec(self.source.protocol).stream.counts_blocks
        reads_calls = self._reader is not None and isinstance(self._reader, dialects.CallsInText)
        self._keeps_thoughts = reads_calls and not counts_blocks
        self._from_provider: list[Event] = []
        self._to_client: list[Event] = []
        """What the provider sent and what the client got, since the last time that nothing waited."""

    def is_stream(self, data: bytes) -> bool:
        """Whether the first bytes are those of a stream, not of a whole reply."""
        if self._whole is None:
            return True
        begun = check_bytes(data).lstrip()
        if begun[:1] == b"{":
            return False
        if begun:
            self._whole = None
        return True

    def frames(self, data: bytes | None) -> list[Frame]:
        """The frames of these bytes; the last ones, for None."""
        if data is not None:
            return self._framer.feed(check_bytes(data))
        frames = self._framer.finish()
        if any(frame.data for frame in frames):
            self.note(NO_LAST_LINE)
        if getattr(self._framer, "had_byte_order_mark", False):
            self.note(BYTE_ORDER_MARK)
        return frames

    def finish(self) -> list[Event]:
        events = super().finish()
        if self._has_deviations:
            self.was_changed = True  # an end that the provider did not send
        return events

    @property
    def _has_deviations(self) -> bool:
        """Whether an event deviates from the protocol in a way that this client does not expect."""
        problems = self._decoder.builder.problems
        return bool(problems) and any(
            reason not in OUTSIDE_EVENTS and reason not in self._expected_deviations for reason in problems
        )

    def use_framer(self, framer: Framer) -> None:
        """Use this framer instead."""
        self._framer = framer

    @property
    def is_array(self) -> bool:
        """Whether the frames are pieces of an array."""
        return bool(getattr(self._framer, "is_array", False))

    @property
    def is_end_announced(self) -> bool:
        """Whether the provider has sent the stop reason."""
        return self._decoder.builder.is_end_announced

    def note(self, reason: str) -> None:
        """Note what is wrong with the stream beside its events, once."""
        self._decoder.builder.report(reason)

    def remark(self, reason: str) -> None:
        """Note what the client does not get, once."""
        self._decoder.builder.remark(reason)

    def read(self, frame: Frame) -> list[Event]:
        events = self._read(frame)
        passed = self._pass(events) if events else events
        if self._has_deviations or (self.failure is not None and not _is_own_reason(self.failure)):
            self.was_changed = True  # an error counts too: its text may hold a secret
        return passed

    def _finish_with_usage(self, passed: list[Event], finished: Finished) -> list[Event]:
        filled = super()._finish_with_usage(passed, finished)
        self.was_changed = self.was_changed or filled is not passed
        return filled

    def _pass(self, events: list[Event]) -> list[Event]:
        passed = super()._pass(events)
        if passed is not events or self._from_provider:
            self._from_provider += events
            self._to_client += passed
            if self.is_settled or self.is_over:
                self.was_changed = self.was_changed or not self._are_same(self._from_provider, self._to_client)
                self._from_provider, self._to_client = [], []
        return passed

    def _are_same(self, provided: list[Event], passed: list[Event]) -> bool:
        if _are_equivalent(provided, passed):
            return True
        has_calls = bool(getattr(self._reader, "found", ()))
        return self._keeps_thoughts and not has_calls and _other_than_text(provided) == _other_than_text(passed)

    @property
    def is_settled(self) -> bool:
        is_read = self._reader is None or self._reader.is_settled
        return is_read and self._decoder.builder.is_settled and self._projection.is_settled


def _is_own_reason(failure: Failure) -> bool:
    """Whether the provider itself says that its model wrote unusable output. Its own clients know these errors."""
    return failure.kind == "bad_output" and bool(failure.extra)


def _are_equivalent(first: list[Event], second: list[Event]) -> bool:
    """Whether events are the same, wherever their text is cut and whenever usage is sent."""
    return first == second or _join_deltas(first) == _join_deltas(second)


def _other_than_text(events: list[Event]) -> list[Event]:
    """The events that are neither text nor thinking."""
    return [event for event in events if not isinstance(event, Used) and not _is_text_event(event)]


def _is_text_event(event: Event) -> bool:
    if isinstance(event, TextDelta | ThinkingDelta):
        return True
    return isinstance(event, BlockStarted | BlockEnded) and isinstance(event.block, Text | Thinking)


def _join_deltas(events: list[Event]) -> list[Event]:
    merged: list[Event] = []
    for event in events:
        last = merged[-1] if merged else None
        if isinstance(event, Used):
            continue
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            merged[-1] = TextDelta(last.text + event.text)
        else:
            merged.append(event)
    return merged
