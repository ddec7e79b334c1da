"""Reads streams of the toy protocol: JSON lines, each with more text, a whole call, or the end."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from toolglot.conversation.events import Event
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.protocols.fields.reading import one_of, read_required, required
from toolglot.protocols.framing.event_builder import TEXT_KEY, EventBuilder, keep_call
from toolglot.protocols.framing.json_objects import ObjectReader
from toolglot.protocols.framing.text_frames import Frame, LineFramer

from .lines import read_call
from .reply import STOPS, usage_of

framer: Final = LineFramer


class Decoder:
    def __init__(self, *, tools: Collection[str] = (), limits: Limits = DEFAULT_LIMITS) -> None:
        del tools
        self.builder: EventBuilder = EventBuilder(build_call=keep_call, limits=limits)
        self._objects = ObjectReader(self.builder, limits)

    def read(self, frame: Frame) -> list[Event]:
        body = self._objects.read(frame.data) if frame.data else None
        if body is not None and not self.builder.is_over:
            self._read(body)
        return self.builder.take()

    def _read(self, body: dict[str, Any]) -> None:
        self.builder.start()
        if "text" in body:
            self.builder.add_implicit(TEXT_KEY, required(body, "text", str))
        if "call" in body:
            self.builder.add_whole_block(read_required(body, "call", read_call))
        if "end" in body:
            usage = usage_of(body)
            if usage is not None:
                self.builder.add_usage(usage)
            self.builder.finish(one_of(body, "end", STOPS))

    def finish(self) -> list[Event]:
        self.builder.finish_without_reason(is_ended=False)
        return self.builder.take()
