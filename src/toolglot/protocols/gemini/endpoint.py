"""The record of the Gemini generateContent protocol: its endpoint, and where things are in its bodies."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.base import MessageForm, Protocol

PROTOCOL: Final = Protocol(
    name="gemini",
    package=__package__,
    provider="gemini",
    turns="contents",
    messages=MessageForm(
        roles=frozenset({"user", "model", "function"}),
        part_fields=frozenset({"functionCall", "functionResponse", "inlineData", "fileData", "function_call"}),
        content_is_list=True,
        text_keeps_fields=True,
    ),
    reply_marks={"candidates": list, "promptFeedback": dict, "usageMetadata": dict},
    reply_rank=1,
)
