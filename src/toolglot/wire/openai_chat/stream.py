"""Streams of the Chat Completions protocol, both ways: see `stream_reading.py` and `stream_writing.py`."""

from __future__ import annotations

from typing import Final

from toolglot.wire.framing import SseFramer
from toolglot.wire.openai_chat.stream_reading import Decoder
from toolglot.wire.openai_chat.stream_writing import DONE, Encoder

__all__ = ["CONTENT_TYPE", "COUNTS_BLOCKS", "LAST", "Decoder", "Encoder", "framer"]

CONTENT_TYPE: Final = "text/event-stream"
framer: Final = SseFramer
LAST: Final = DONE
COUNTS_BLOCKS: Final = False
"""The event at the end of every stream."""
