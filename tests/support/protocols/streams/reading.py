"""Streams of any protocol, read to their end: what the stream tests of all protocols share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from support.conversations.event_grammar import check
from toolglot.conversation import Reply
from toolglot.conversation.events import Accumulator, Event
from toolglot.protocols.base import StreamDecoder
from toolglot.protocols.framing.text_frames import Framer


def pieces_of(data: bytes, size: int) -> list[bytes]:
    """The bytes in pieces of this size; 0 is one piece."""
    return [data[start : start + size] for start in range(0, len(data), size)] if size else [data]


def read_pieces(framer: Framer, decoder: StreamDecoder, pieces: Iterable[bytes]) -> list[Event]:
    events: list[Event] = []
    for piece in pieces:
        for frame in framer.feed(piece):
            events += decoder.read(frame)
    for frame in framer.finish():
        events += decoder.read(frame)
    return events + decoder.finish()


def accumulate(events: Iterable[Event]) -> Accumulator:
    """What the events add up to. They must follow the grammar of events, to its end."""
    listed = list(events)
    check(listed)
    total = Accumulator()
    total.add(listed)
    return total


class ReadStream:
    """A stream that was read to its end."""

    def __init__(self, framer: Framer, decoder: StreamDecoder, pieces: Iterable[bytes]) -> None:
        self.decoder = decoder
        self.events = read_pieces(framer, decoder, pieces)
        assert decoder.finish() == []
        self.accumulator = accumulate(self.events)

    @property
    def problems(self) -> list[str]:
        return self.decoder.builder.problems

    @property
    def reply(self) -> Reply:
        return self.accumulator.reply

    @property
    def blocks(self) -> tuple[Any, ...]:
        return self.reply.turn.blocks
