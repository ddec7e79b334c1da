"""Writes streams of the toy protocol: JSON lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toolglot.conversation import ToolCall, Usage
from toolglot.conversation.events import BlockEnded, Event, Failed, Finished, TextDelta, Used
from toolglot.protocols.base import StreamOptions
from toolglot.protocols.framing.json_line import json_line

from . import errors
from .lines import write_call
from .reply import ending


class Encoder:
    def __init__(self, options: StreamOptions | None = None) -> None:
        del options
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
