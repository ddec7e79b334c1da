"""Streams of the Chat Completions protocol, both ways: see `stream_reader.py` and `stream_writer.py`."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.framing.text_frames import SseFramer
from toolglot.protocols.openai_chat.stream_reader import Decoder
from toolglot.protocols.openai_chat.stream_writer import DONE, Encoder

__all__ = ["COUNTS_BLOCKS", "LAST", "Decoder", "Encoder", "framer"]

framer: Final = SseFramer
LAST: Final = DONE
COUNTS_BLOCKS: Final = False
"""The event at the end of every stream."""
