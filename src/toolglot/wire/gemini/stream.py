"""Streams of the Gemini generateContent protocol, both ways."""

from __future__ import annotations

from typing import Final

from toolglot.wire.gemini.framing import GeminiFramer
from toolglot.wire.gemini.stream_reading import Decoder
from toolglot.wire.gemini.stream_writing import Encoder

__all__ = ["CONTENT_TYPE", "Decoder", "Encoder", "framer"]

CONTENT_TYPE: Final = "text/event-stream"

framer: Final = GeminiFramer
