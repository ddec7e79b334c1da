"""Streams of the toy protocol: JSON lines, each with more text, a whole call, or the end."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from toolglot.conversation import ToolCall, Usage
from toolglot.conversation.events import BlockEnded, Event, Failed, Finished, TextDelta, Used
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.protocols.base import StreamWish
from toolglot.protocols.framing.json_line import json_line
from toolglot.protocols.framing.json_objects import ObjectReader
from toolglot.protocols.framing.sequence import SAYING, Sequence
from toolglot.protocols.framing.text_frames import Frame, LineFramer
from toolglot.protocols.framing.whole_blocks import call_as_known, say_block

from . import errors
from .lines import read_call, write_call
from .reply import STOPS, ending, usage_of

framer: Final = LineFramer


class Decoder:
    def __init__(self, *, tools: Collection[str] = (), limits: Limits = DEFAULT_LIMITS) -> None:
        del tools
        self.sequence: Sequence = Sequence(build_call=call_as_known, limits=limits)
        self._objects = ObjectReader(self.sequence, limits)

    def read(self, frame: Frame) -> list[Event]:
        body = self._objects.read(frame.data) if frame.data else None
        if body is not None and not self.sequence.is_over:
            self._read(body)
        return self.sequence.take()

    def _read(self, body: dict[str, Any]) -> None:
        self.sequence.start()
        if "text" in body:
            self.sequence.say(SAYING, body["text"])
        if "call" in body:
            say_block(self.sequence, read_call(body["call"]))
        if "end" in body:
            usage = usage_of(body)
            if usage is not None:
                self.sequence.used(usage)
            self.sequence.finish(STOPS[body["end"]])

    def finish(self) -> list[Event]:
        self.sequence.finish_unsaid(is_ended=False)
        return self.sequence.take()


class Encoder:
    def __init__(self, wish: StreamWish | None = None) -> None:
        del wish
        self._usage: Usage | None = None

    def write(self, events: Iterable[Event]) -> bytes:
        return b"".join(json_line(line) + b"\n" for line in map(self._line, events) if line is not None)

    def _line(self, event: Event) -> dict[str, Any] | None:
        match event:
            case TextDelta():
                return {"text": event.text}
            case BlockEnded(block=ToolCall() as call, cut=False):
                return {"call": write_call(call)}
            case Used():
                self._usage = event.usage
            case Finished():
                return ending(event.stop, self._usage)
            case Failed():
                return errors.encode(event.failure)[1]
        return None

    def ping(self) -> bytes:
        return b'{"text":""}\n'
