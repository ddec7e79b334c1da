"""The frames of Bedrock around Anthropic's events.

`invoke-with-response-stream` sends each event in a `chunk` of an AWS event stream, as base64. An error is an exception
of the stream.
"""

from __future__ import annotations

import base64
from typing import Final

import msgspec
from msgspec import Struct

from toolglot.protocols.framing.aws_frames import event_headers, event_message, message
from toolglot.protocols.framing.text_frames import Frame, SseFramer

_CHUNK: Final = event_headers("chunk")


class AwsEventWriter:
    """Writes server-sent events as messages of an AWS event stream."""

    CONTENT_TYPE = "application/vnd.amazon.eventstream"

    def __init__(self) -> None:
        self._framer = SseFramer()

    def begin(self) -> None:
        """A stream has no beginning of its own."""

    def add(self, events: bytes) -> bytes:
        return b"".join([_message(frame) for frame in self._framer.feed(events) if frame.data])

    def end(self) -> bytes:
        return b""


class _ErrorDetail(Struct):
    message: str = ""


class _ErrorEvent(Struct):
    error: _ErrorDetail


def _message(frame: Frame) -> bytes:
    if frame.name != "error":
        return message(_CHUNK, b'{"bytes":"%b"}' % base64.b64encode(frame.data))
    try:
        text = msgspec.json.decode(frame.data, type=_ErrorEvent).error.message
    except msgspec.DecodeError:
        text = frame.data.decode("utf-8", "replace")
    return event_message("modelStreamErrorException", {"message": text}, is_exception=True)
