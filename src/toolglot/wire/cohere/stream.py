"""Streams of Cohere's chat protocol, both ways."""

from __future__ import annotations

from typing import Final

from toolglot.wire.cohere.stream_reading import Decoder
from toolglot.wire.cohere.stream_writing import Encoder
from toolglot.wire.framing import SseFramer

__all__ = ["CONTENT_TYPE", "Decoder", "Encoder", "framer"]

CONTENT_TYPE: Final = "text/event-stream"

framer: Final = SseFramer
