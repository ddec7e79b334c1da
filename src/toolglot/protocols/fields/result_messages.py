"""Turns of protocols in which every tool result is a message of its own (Cohere, Ollama)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from toolglot.conversation import Role, ToolResult, Turn
from toolglot.protocols.fields.reading import Fields


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


def one_text(texts: Iterable[str], role: Role) -> str:
    """The texts of a turn where a message has one. Those that people and programs wrote stand on lines of their own.

    An answer is put together as it came: models and their providers cut it anywhere, in the middle of a sentence too.
    """
    nonempty = [text for text in texts if text]
    if role == "assistant" or len(nonempty) < 2:
        return "".join(nonempty)
    lines = [nonempty[0]]
    for before, text in pairwise(nonempty):
        is_apart = before[-1].isspace() or text[0].isspace()
        lines.append(text if is_apart else f"\n{text}")
    return "".join(lines)
