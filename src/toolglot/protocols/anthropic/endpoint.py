"""The record of the Anthropic Messages protocol: its endpoint, and where things are in its bodies."""

from __future__ import annotations

from typing import Final

from toolglot.protocols.base import MessageForm, Protocol

PROTOCOL: Final = Protocol(
    name="anthropic",
    package=__package__,
    provider="anthropic",
    turns="messages",
    messages=MessageForm(
        roles=frozenset({"user", "assistant", "system"}),
        part_types=frozenset({"text", "image", "document", "thinking", "redacted_thinking", "tool_use", "tool_result"}),
        part_rank=1,
    ),
    stored_history=("thread",),
    reply_marks={"stop_reason": str, "content": list, "completion": str},
    reply_rank=5,
)
