"""Compactions for targets that cannot read them: their summary as the user's words, without what they stand for.

A compaction stays as it is for a target that makes such ones itself. For others its summary becomes a turn of the user,
and the turns before it are left out, except for prompts, and for the user's messages if its protocol keeps those. One
that only its provider can read is dropped and reported as a loss; then the turns before it stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Compaction, Text, ToolResult, Turn
from toolglot.conversation.compactions import is_own, summary_text
from toolglot.render.context import RenderContext
from toolglot.render.turn_facts import PROMPTS

_UNREADABLE: Final = "a compaction that only its provider can read was dropped: what it summarised is unknown here"
_LOST: Final = "a compaction was dropped, because its summary is not known here any more"
_FAILED: Final = "a compaction without a summary was dropped; it stands for nothing"


def write_summaries(turns: tuple[Turn, ...], ctx: RenderContext) -> tuple[Turn, ...]:
    """The turns with the compactions that the target can read, and the summaries of the others as text."""
    if Compaction not in ctx.facts(turns).kinds:
        return turns
    written: list[Turn] = []
    for turn in turns:
        if not any(isinstance(block, Compaction) and not _is_readable(block, ctx) for block in turn.blocks):
            written.append(turn)
            continue
        blocks: list[Block] = []
        for block in turn.blocks:
            if not isinstance(block, Compaction) or _is_readable(block, ctx):
                blocks.append(block)
            elif not _has_summary(block):
                _report_loss(block, turn, ctx)
            else:
                written = _replace_earlier(written, block, turn, ctx)
                blocks = []
        if blocks or not turn.blocks:
            written.append(replace(turn, blocks=tuple(blocks)))
    return tuple(written)


def turns_in_effect(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """The turns without those that a summary stands for, as a model reads them."""
    found = [
        (index, block)
        for index, turn in enumerate(turns)
        for block in turn.blocks
        if isinstance(block, Compaction) and _has_summary(block)
    ]
    if not found:
        return turns
    index, block = found[-1]
    own = turns[index].blocks
    rest = replace(turns[index], blocks=own[own.index(block) :])
    return (*_left_turns(turns[:index], keeps_prompts=block.keeps_prompts), rest, *turns[index + 1 :])


def _has_summary(block: Compaction) -> bool:
    """Whether a compaction says anything here. A blank one must not stand for a conversation."""
    return block.summary is not None and bool(block.summary.strip())


def _is_readable(block: Compaction, ctx: RenderContext) -> bool:
    """Whether the target makes such compactions itself."""
    is_native = block.protocol == ctx.profile.protocol and "compaction" in ctx.profile.request.context_management
    return is_native and not is_own(block)


def _replace_earlier(earlier: list[Turn], block: Compaction, turn: Turn, ctx: RenderContext) -> list[Turn]:
    """The turns that a summary leaves of those before it, and the turn with the summary."""
    kept = [*_left_turns(earlier, keeps_prompts=block.keeps_prompts)]
    reason = f"a compaction became text with its summary {ctx.rule('request.context_management')}"
    left_out = len(earlier) - len(kept)
    if left_out:
        reason += f"; {left_out} turns before it, which it stands for, were left out"
    ctx.report("converted", reason, turn_key=turn.key)
    text = Text(summary_text(block.summary or ""))
    return [*kept, Turn("user", (text,), key=f"{turn.key}+summary", issuer=turn.issuer)]


def _left_turns(turns: Iterable[Turn], *, keeps_prompts: bool) -> Iterable[Turn]:
    for turn in turns:
        if turn.role in PROMPTS:
            yield turn
        elif keeps_prompts and turn.role == "user":
            blocks = tuple([block for block in turn.blocks if not isinstance(block, ToolResult)])
            if blocks:
                yield turn if len(blocks) == len(turn.blocks) else replace(turn, blocks=blocks)


def _report_loss(block: Compaction, turn: Turn, ctx: RenderContext) -> None:
    if block.data is None:
        ctx.report("dropped", _FAILED, turn_key=turn.key, gravity="housekeeping")
    else:
        ctx.report("dropped", _LOST if is_own(block) else _UNREADABLE, turn_key=turn.key, gravity="loss")
