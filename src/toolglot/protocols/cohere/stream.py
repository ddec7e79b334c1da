"""Streams of Cohere's chat protocol, both ways."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.cohere.stream_reader import Decoder
from toolglot.protocols.cohere.stream_writer import Encoder
from toolglot.protocols.framing.text_frames import SseFramer

__all__ = ["Decoder", "Encoder", "framer"]


framer: Final = SseFramer
