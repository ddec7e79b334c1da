"""Streams of the Anthropic Messages protocol, both ways: server-sent events that open, fill and close blocks."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.anthropic.stream_reader import Decoder
from toolglot.protocols.anthropic.stream_writer import Encoder
from toolglot.protocols.framing.text_frames import SseFramer

__all__ = ["Decoder", "Encoder", "framer"]

framer: Final = SseFramer
