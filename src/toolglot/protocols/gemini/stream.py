"""Streams of the Gemini generateContent protocol, both ways."""

from __future__ import annotations

from functools import partial
from typing import Final

from toolglot.protocols.gemini.framing import GeminiFramer
from toolglot.protocols.gemini.json_array import JsonArray
from toolglot.protocols.gemini.stream_reader import Decoder
from toolglot.protocols.gemini.stream_writer import Encoder

__all__ = ["Array", "Decoder", "Encoder", "framer", "own_framer"]


framer: Final = GeminiFramer
own_framer: Final = partial(GeminiFramer, keeps_array=True)
"""For a stream that stays in its form: frames of an array are pieces of an array."""
Array: Final = JsonArray
"""What makes an array of the events that the encoder writes."""
