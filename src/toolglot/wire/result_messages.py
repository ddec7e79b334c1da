"""Turns of protocols in which every tool result is a message of its own (Cohere, Ollama)."""

from __future__ import annotations

from collections.abc import Callable

from toolglot.conversation import ToolResult, Turn
from toolglot.wire.reading import Fields


def write_turn(
    turn: Turn,
    says: tuple[type, ...],
    write_result: Callable[[ToolResult], Fields],
    write_message: Callable[[Turn], Fields],
) -> list[Fields]:
    """A turn as messages: one for each result, and one for the rest if that has blocks which say something."""
    messages = [write_result(block) for block in turn.blocks if isinstance(block, ToolResult)]
    if any(isinstance(block, says) for block in turn.blocks) or not (messages or turn.role == "tool"):
        messages.append(write_message(turn))
    return messages
