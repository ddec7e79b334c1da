"""The record of the Bedrock Converse protocol: its endpoint, and where things are in its bodies."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.base import MessageForm, Protocol

PROTOCOL: Final = Protocol(
    name="bedrock",
    package=__package__,
    provider="bedrock",
    turns="messages",
    messages=MessageForm(
        roles=frozenset({"user", "assistant"}),
        part_fields=frozenset({"toolUse", "toolResult", "reasoningContent", "text", "image", "document"}),
        content_is_list=True,
        text_keeps_fields=True,
    ),
    reply_marks={"output": dict, "stopReason": str},
    reply_rank=4,
)
