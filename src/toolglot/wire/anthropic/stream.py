"""Streams of the Anthropic Messages protocol, both ways: server-sent events that open, fill and close blocks."""

from __future__ import annotations

from typing import Final

from toolglot.wire.anthropic.stream_reading import Decoder
from toolglot.wire.anthropic.stream_writing import Encoder
from toolglot.wire.framing import SseFramer

__all__ = ["CONTENT_TYPE", "Decoder", "Encoder", "framer"]

CONTENT_TYPE: Final = "text/event-stream"
framer: Final = SseFramer
