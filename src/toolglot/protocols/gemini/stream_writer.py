"""Writes a Gemini stream: server-sent events, each a partial reply.

A delta of text is a chunk. Calls and media are written whole when they end; a call that was cut is not written. What a
text has besides its words (a signature, fields of its own) follows in a part with an empty text, as Gemini does it. The
last chunk has the finish reason and the usage; every chunk names the model.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Text, Thinking, ToolCall, Turn
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
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.json_line import json_line
from toolglot.protocols.gemini import errors, reply
from toolglot.protocols.gemini.blocks import write_part
from toolglot.protocols.gemini.streaming.framing import JsonArrayWriter

array_writer: Final = JsonArrayWriter
_DEFAULT_OPTIONS: Final = StreamOptions()

_PREFIX: Final = b'data: {"candidates":[{"content":{"parts":['
_TEXT_PREFIX: Final = _PREFIX + b'{"text":'
_SUFFIX: Final = b'],"role":"model"},"index":0}]'
_PLAIN: Final = frozenset({"text", "thought"})


class Encoder:
    """The bytes of one stream."""

    def __init__(self, options: StreamOptions = _DEFAULT_OPTIONS) -> None:
        self._model = options.model
        self._sum = Accumulator()
        self._has_calls = False
        self._start(Started())

    def write(self, events: Iterable[Event]) -> bytes:
        written: list[bytes] = []
        for event in events:
            kind = type(event)
            if kind is TextDelta:
                written.append(_TEXT_PREFIX + json_line(event.text) + self._text_suffix)  # type: ignore[union-attr]
            elif kind is ThinkingDelta:
                written.append(_TEXT_PREFIX + json_line(event.text) + self._thought_suffix)  # type: ignore[union-attr]
            else:
                written.append(self._write(event))
        return b"".join(written)

    def ping(self) -> bytes:
        """An empty line. Google's SDK takes a comment for JSON and breaks off."""
        return b"\n\n"

    def _write(self, event: Event) -> bytes:
        if isinstance(event, BlockEnded):
            return self._end(event.block, cut=event.cut)
        if isinstance(event, Started):
            self._start(event)
        elif isinstance(event, Used):
            self._sum.add((event,))
        elif isinstance(event, Finished):
            self._sum.add((event,))
            return self._finish()
        elif isinstance(event, Failed):
            return _event(errors.encode(event.failure)[1])
        return b""

    def _start(self, started: Started) -> None:
        model = started.model or self._model
        self._sum.add((replace(started, model=model),))
        names: Fields = {}
        if model:
            names["modelVersion"] = model
        if started.id:
            names["responseId"] = started.id
        tail = b"," + json_line(names)[1:] if names else b"}"
        self._suffix = _SUFFIX + tail + b"\n\n"
        self._text_suffix = b"}" + self._suffix
        self._thought_suffix = b',"thought":true}' + self._suffix

    def _end(self, block: Block, *, cut: bool) -> bytes:
        if isinstance(block, Text | Thinking):
            part = write_part(replace(block, text=""), for_client=True)
            return self._part(part) if part is not None and not _PLAIN.issuperset(part) else b""
        if cut:
            return b""
        self._has_calls = self._has_calls or isinstance(block, ToolCall)
        part = write_part(block, for_client=True)
        return self._part(part) if part is not None else b""

    def _part(self, part: Fields) -> bytes:
        return _PREFIX + json_line(part) + self._suffix

    def _finish(self) -> bytes:
        """The last chunk: a whole body that has no parts. A call in it is only for the choice of the word."""
        blocks = (ToolCall("", ""),) if self._has_calls else ()
        body = reply.encode(replace(self._sum.reply, turn=Turn("assistant", blocks)))
        for candidate in (body.get("candidates") or ())[:1]:
            if "content" in candidate:
                candidate["content"] = {"parts": [], "role": "model"}
            candidate.setdefault("index", 0)
        return _event(body)


def _event(body: Fields) -> bytes:
    return b"data: " + json_line(body) + b"\n\n"
