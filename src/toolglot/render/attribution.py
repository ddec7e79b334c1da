"""Blocks that stand in the wrong speaker's turn go to the right one.

A call is the model's, a result is not. The first pass: all others rely on it.
"""

from __future__ import annotations

from msgspec.structs import replace

from toolglot.conversation import Block, Thinking, ToolCall, ToolResult, Turn
from toolglot.render.job import Job


def attribute(turns: tuple[Turn, ...], job: Job) -> tuple[Turn, ...]:
    """The turns with every call in an assistant turn and every result outside of one."""
    survey = job.survey(turns)
    if not survey.is_mixed and Thinking not in survey.kinds:
        return turns
    if not any(_is_mixed(turn) for turn in turns):
        return turns
    return tuple(part for turn in turns for part in (_split(turn, job) if _is_mixed(turn) else (turn,)))


def _is_mixed(turn: Turn) -> bool:
    if turn.role == "assistant":
        return any(isinstance(block, ToolResult) for block in turn.blocks)
    return any(isinstance(block, ToolCall | Thinking) for block in turn.blocks)


def _split(turn: Turn, job: Job) -> list[Turn]:
    """A turn as runs of the model's blocks and of the others', in their order."""
    job.tell("moved", f"a {turn.role} turn held blocks of another speaker", "canonical", turn_key=turn.key)
    is_models = turn.role == "assistant"
    runs: list[tuple[bool, list[Block]]] = []
    for block in turn.blocks:
        side = not isinstance(block, ToolResult) if is_models else isinstance(block, ToolCall | Thinking)
        if not runs or runs[-1][0] != side:
            runs.append((side, []))
        runs[-1][1].append(block)
    other = "tool" if is_models or turn.role == "tool" else turn.role
    parts = []
    for number, (side, blocks) in enumerate(runs):
        role = "assistant" if side else other
        key = turn.key if number == 0 else f"{turn.key}+{number}"
        extra = turn.extra if role == turn.role else None
        parts.append(replace(turn, role=role, blocks=tuple(blocks), key=key, extra=extra))
    return parts
