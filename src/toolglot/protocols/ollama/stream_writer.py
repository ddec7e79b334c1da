"""Writes the streams of Ollama's chat protocol: JSON lines. `stream_reader.py` describes them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Media, ToolCall, Turn
from toolglot.conversation.events import (
    Accumulator,
    BlockEnded,
    Event,
    Failed,
    Finished,
    Started,
    TextDelta,
    ThinkingDelta,
    Used,
)
from toolglot.protocols.base import StreamOptions
from toolglot.protocols.framing.json_line import json_line
from toolglot.protocols.ollama import errors, reply
from toolglot.protocols.ollama.form import OllamaReply
from toolglot.protocols.ollama.messages import write_message

_DEFAULT_OPTIONS: Final = StreamOptions()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Encoder:
    """Writes one stream. Calls are written whole when they end; one that was cut is not written."""

    def __init__(self, options: StreamOptions = _DEFAULT_OPTIONS) -> None:
        self._model = options.model
        self._created = _rfc_3339(options.created)
        self._sum = Accumulator()
        self._has_calls = False
        self._start(Started())

    def write(self, events: Iterable[Event]) -> bytes:
        written: list[bytes] = []
        for event in events:
            kind = type(event)
            if kind is TextDelta:
                written.append(self._text_prefix + json_line(event.text) + b'},"done":false}\n')  # type: ignore[union-attr]
            elif kind is ThinkingDelta:
                written.append(self._before_thought + json_line(event.text) + b'},"done":false}\n')  # type: ignore[union-attr]
            else:
                written.append(self._write(event))
        return b"".join(written)

    def ping(self) -> bytes:
        """A line without content."""
        return self._text_prefix + b'""},"done":false}\n'

    def _write(self, event: Event) -> bytes:
        if isinstance(event, BlockEnded):
            return b"" if event.cut else self._end(event.block)
        if isinstance(event, Started):
            self._start(event)
        elif isinstance(event, Used):
            self._sum.add((event,))
        elif isinstance(event, Finished):
            self._sum.add((event,))
            return self._finish()
        elif isinstance(event, Failed):
            return json_line(errors.encode(event.failure)[1]) + b"\n"
        return b""

    def _start(self, started: Started) -> None:
        model = started.model or self._model
        self._sum.add((replace(started, model=model),))
        head = json_line({"model": model, "created_at": self._created})[:-1]
        self._prefix = head + b',"message":'
        self._text_prefix = self._prefix + b'{"role":"assistant","content":'
        self._before_thought = self._text_prefix + b'"","thinking":'
        self._is_own = type(started.form) is OllamaReply

    def _end(self, block: Block) -> bytes:
        """Write a block without deltas: a call, or an image if the reply is Ollama's own."""
        if not isinstance(block, ToolCall) and not (isinstance(block, Media) and self._is_own):
            return b""
        self._has_calls = self._has_calls or isinstance(block, ToolCall)
        message = write_message(Turn("assistant", (block,)))
        if len(message) == 2:
            return b""  # a medium that has no field
        return self._prefix + json_line(message) + b',"done":false}\n'

    def _finish(self) -> bytes:
        """Write the last line: a whole body without content. Only its stop reason depends on the calls."""
        blocks = (ToolCall("", ""),) if self._has_calls else ()
        body = reply.encode(replace(self._sum.reply, turn=Turn("assistant", blocks)))
        body["message"] = {"role": "assistant", "content": ""}
        return json_line({"model": body["model"], "created_at": self._created, **body}) + b"\n"


def _rfc_3339(seconds: int) -> str:
    try:
        return f"{(_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()}Z"
    except OverflowError:
        return f"{_EPOCH.replace(tzinfo=None).isoformat()}Z"
