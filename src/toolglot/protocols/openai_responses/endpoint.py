"""The record of the OpenAI Responses protocol: its endpoint, and where things are in its bodies."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.base import MessageForm, Protocol

PROTOCOL: Final = Protocol(
    name="openai_responses",
    package=__package__,
    provider="openai_responses",
    turns="input",
    messages=MessageForm(
        roles=frozenset({"user", "assistant", "system", "developer"}),
        part_types=frozenset({"input_text", "output_text", "input_image", "input_file", "refusal"}),
        part_rank=2,
        text_keeps_fields=True,
    ),
    stored_history=("previous_response_id", "conversation"),
    reply_marks={"output": list},
    reply_rank=3,
)
