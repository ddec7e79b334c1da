"""Puts text and calls into separate turns, for targets that refuse them together; and text before the calls of its
turn, for targets that refuse it after them.

The model's text before its calls becomes a turn of its own, with a bridge turn between. Runs after `pairing`, which
keeps calls with their results, and before `roles`, which joins turns.
"""

from __future__ import annotations

from msgspec.structs import replace

from toolglot.conversation import Block, Text, Thinking, ToolCall, Turn
from toolglot.render.context import RenderContext, unless_same
from toolglot.render.roles import bridge


def separate_text_and_calls(turns: tuple[Turn, ...], ctx: RenderContext) -> tuple[Turn, ...]:
    """The turns with calls alone, if the target wants that."""
    rules = ctx.profile.calls
    if (rules.with_text and rules.text_after) or not ctx.facts(turns).has_tool_blocks:
        return turns
    if rules.with_text:
        return unless_same(tuple([_move_text_first(turn, ctx) for turn in turns]), turns)
    return tuple(part for turn in turns for part in (_split_turn(turn, ctx) if turn.calls else (turn,)))


def _split_turn(turn: Turn, ctx: RenderContext) -> list[Turn]:
    calls: list[Block] = []
    words: list[Block] = []
    for block in turn.blocks:
        if isinstance(block, ToolCall):
            calls.append(block)
        elif not isinstance(block, Text) or block.text:
            words.append(block)
    if not words:
        return [turn]  # an empty text stands for no content
    if not ctx.profile.reasoning.may_end_turn and all(isinstance(block, Thinking) for block in words):
        rule = ctx.rule("reasoning.may_end_turn")
        ctx.report("dropped", f"thinking is refused alone and beside calls {rule}", turn_key=turn.key)
        return [replace(turn, blocks=tuple(calls), extra=None, form=None)]
    rule = ctx.rule("calls.with_text")
    reason = f"text beside calls is refused {rule}; it was moved to a turn before them, with a bridge turn between"
    ctx.report("moved", reason, turn_key=turn.key)
    text_turn = replace(turn, blocks=tuple(words), key=f"{turn.key}+said", extra=None, form=None)
    return [text_turn, bridge("user", turn, "between", ctx), replace(turn, blocks=tuple(calls), extra=None, form=None)]


def _move_text_first(turn: Turn, ctx: RenderContext) -> Turn:
    """A turn whose texts come before its first call. Thinking and the provider's own blocks stay where they are."""
    blocks = turn.blocks
    first = next((index for index, block in enumerate(blocks) if isinstance(block, ToolCall)), len(blocks))
    late = [block for block in blocks[first:] if isinstance(block, Text)]
    if not late:
        return turn
    ctx.report(
        "moved", f"text may not follow a call {ctx.rule('calls.text_after')}; moved before it", turn_key=turn.key
    )
    rest = [block for block in blocks[first:] if not isinstance(block, Text)]
    return replace(turn, blocks=(*blocks[:first], *late, *rest))
