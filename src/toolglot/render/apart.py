"""Words and calls in turns of their own, for targets that do not take them together.

What the model said before it called becomes a turn before, with a word of the user's between. Comes after `exchanges`,
which keeps the calls with their results, and before `roles`, which joins what may be joined.
"""

from __future__ import annotations

from msgspec.structs import replace

from toolglot.conversation import Block, ToolCall, Turn
from toolglot.render.job import Job
from toolglot.render.roles import bridge


def set_apart(turns: tuple[Turn, ...], job: Job) -> tuple[Turn, ...]:
    """The turns with calls alone, where the target wants that."""
    if job.profile.calls.with_text or not job.survey(turns).has_calls:
        return turns
    return tuple(part for turn in turns for part in (_split(turn, job) if turn.calls else (turn,)))


def _split(turn: Turn, job: Job) -> list[Turn]:
    calls: list[Block] = []
    words: list[Block] = []
    for block in turn.blocks:
        (calls if isinstance(block, ToolCall) else words).append(block)
    if not words:
        return [turn]
    reason = f"words beside calls are refused {job.rule('calls.with_text')}; they stand before, with a bridge"
    job.tell("moved", reason, turn_key=turn.key)
    said = replace(turn, blocks=tuple(words), key=f"{turn.key}+said", extra=None)
    return [said, bridge("user", turn, "between", job), replace(turn, blocks=tuple(calls), extra=None)]
