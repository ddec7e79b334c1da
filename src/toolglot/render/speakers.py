"""Moves blocks in the wrong speaker's turn to a turn of the right one.

A call is the model's, a result is a tool's, and a prompt is only text. The first pass: all others rely on it.
"""

from __future__ import annotations

from itertools import groupby
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import (
    Block,
    Media,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolChange,
    ToolReference,
    ToolResult,
    Turn,
)
from toolglot.render.context import RenderContext
from toolglot.render.turn_facts import PROMPTS

_CANNOT_SAY: Final[dict[Role, tuple[type[Block], ...]]] = {
    "assistant": (ToolResult, ToolChange, ToolReference),
    "user": (ToolCall, Thinking),
    "tool": (ToolCall, Thinking, Text, Media, ToolChange, ToolReference),
    "system": (ToolCall, Thinking, ToolResult, Media),
    "developer": (ToolCall, Thinking, ToolResult, Media),
}


def assign_speakers(turns: tuple[Turn, ...], ctx: RenderContext) -> tuple[Turn, ...]:
    """The turns with every block in the turn of a speaker that can have it."""
    facts = ctx.facts(turns)
    if not facts.is_mixed and facts.kinds.isdisjoint((Thinking, ToolChange, ToolReference)):
        return turns
    if not any(_is_mixed(turn) for turn in turns):
        return turns
    return tuple(part for turn in turns for part in (_split_turn(turn, ctx) if _is_mixed(turn) else (turn,)))


def _is_mixed(turn: Turn) -> bool:
    return any(isinstance(block, _CANNOT_SAY[turn.role]) for block in turn.blocks)


def _split_turn(turn: Turn, ctx: RenderContext) -> list[Turn]:
    """A turn as runs of blocks of one speaker each, in order."""
    ctx.report(
        "moved",
        f"a {turn.role} turn held blocks of another speaker; they got a turn of their own",
        "canonical",
        turn_key=turn.key,
    )
    parts = []
    for number, (role, blocks) in enumerate(groupby(turn.blocks, lambda block: _speaker(block, turn))):
        key = turn.key if number == 0 else f"{turn.key}+{number}"
        extra, form = (turn.extra, turn.form) if role == turn.role else (None, None)
        parts.append(replace(turn, role=role, blocks=tuple(blocks), key=key, extra=extra, form=form))
    return parts


def _speaker(block: Block, turn: Turn) -> Role:
    """The speaker of a block of a turn; results and text of one turn stay together, as the user's."""
    if isinstance(block, ToolCall | Thinking):
        return "assistant"
    if isinstance(block, ToolChange | ToolReference):
        return "user" if turn.role in ("assistant", "tool") else turn.role
    if turn.role == "tool":
        return "user" if any(isinstance(beside, Text | Media) for beside in turn.blocks) else "tool"
    if isinstance(block, ToolResult) and turn.role != "user":
        return "tool"
    return "user" if turn.role in PROMPTS and isinstance(block, Media) else turn.role
