"""Streams of the OpenAI Responses protocol, both ways."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.framing.text_frames import SseFramer
from toolglot.protocols.openai_responses.stream_reader import Decoder
from toolglot.protocols.openai_responses.stream_writer import Encoder

__all__ = ["CLOSING", "Decoder", "Encoder", "framer"]

framer: Final = SseFramer
CLOSING: Final = frozenset(
    {
        *("response.output_text.done", "response.refusal.done", "response.content_part.done"),
        *("response.function_call_arguments.done", "response.custom_tool_call_input.done"),
        *("response.reasoning_text.done", "response.reasoning_summary_text.done"),
        "response.reasoning_summary_part.done",
    }
)
"""Events that say the end of a part of an item, before that of the item itself."""
