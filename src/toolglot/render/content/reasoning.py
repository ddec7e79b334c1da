"""Thinking that the target accepts: signed if required, at an accepted position, or a placeholder if one is required.

Thinking of another issuer was removed already (`foreign`). What is not accepted is dropped before `empty_content`,
because a turn may be left with nothing. What is required is added last, because it concerns the turns that are sent.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Media, Options, Reasoning, Text, Thinking, ToolCall, Turn
from toolglot.conversation.cache_markers import without_markers
from toolglot.render.content.cache_markers import report_lost_marker
from toolglot.render.context import RenderContext, unless_same

_ITEM_IDS: Final = "rs"
"""How the ids of thinking items begin, if items have ids."""


def is_thinking(options: Options, ctx: RenderContext, *, only_on: bool = False) -> bool:
    """Whether the model thinks before it answers this request. `only_on` excludes adaptive thinking, which yields to a
    forced tool (anthropic-forced-choice-silences)."""
    mode = _mode(options) or ctx.profile.reasoning.default
    return mode == "on" if only_on else mode != "off"


def _mode(options: Options) -> str | None:
    return options.reasoning.mode if options.reasoning is not None else None


def drop_refused_thinking(turns: tuple[Turn, ...], ctx: RenderContext) -> tuple[Turn, ...]:
    """The turns with the thinking that the target accepts."""
    if Thinking not in ctx.facts(turns).kinds:
        return turns
    return unless_same(tuple([_fit_turn(turn, ctx) if turn.role == "assistant" else turn for turn in turns]), turns)


def drop_trailing_thinking(turns: tuple[Turn, ...], ctx: RenderContext) -> tuple[Turn, ...]:
    """The turns without thinking at their ends or after their calls, if the target refuses that."""
    rules = ctx.profile.reasoning
    if (rules.may_end_turn and not rules.before_calls) or Thinking not in ctx.facts(turns).kinds:
        return turns
    return unless_same(tuple([_drop_late_thinking(turn, ctx) for turn in turns]), turns)


def add_required_thinking(
    turns: tuple[Turn, ...], options: Options, ctx: RenderContext
) -> tuple[tuple[Turn, ...], Options]:
    """The turns with the thinking that the target requires, and the options, in which thinking may be off."""
    options = _switch_off_thinking(turns, options, ctx)
    turns = _drop_from_prefill(turns, options, ctx)
    if ctx.profile.reasoning.placeholder is None or not is_thinking(options, ctx):
        return turns, options
    start = _first_required(turns, ctx) if ctx.is_native else 0
    filled = [_add_placeholder(turn, ctx) if index >= start else turn for index, turn in enumerate(turns)]
    return unless_same(tuple(filled), turns), options


def _first_required(turns: tuple[Turn, ...], ctx: RenderContext) -> int:
    """The position of the first turn that may lack required thinking: the first with calls (D5), or, if calls are
    signed, the first after the user's last text."""
    if ctx.profile.reasoning.placeholder_on == "first_call":
        return max((index + 1 for index, turn in enumerate(turns) if _is_prompt(turn)), default=0)
    return next((index for index, turn in enumerate(turns) if turn.calls), len(turns))


def _is_prompt(turn: Turn) -> bool:
    return turn.role == "user" and any(isinstance(block, Text | Media) for block in turn.blocks)


def _drop_from_prefill(turns: tuple[Turn, ...], options: Options, ctx: RenderContext) -> tuple[Turn, ...]:
    """The turns without thinking in the start of an answer, if a model that does not think refuses it (D4)."""
    last = turns[-1]
    if last.role != "assistant" or not ctx.profile.reasoning.leading or is_thinking(options, ctx):
        return turns
    kept = tuple(block for block in last.blocks if not isinstance(block, Thinking))
    if len(kept) == len(last.blocks):
        return turns
    ctx.report("dropped", "while thinking is off, the start of the answer may not hold thinking", turn_key=last.key)
    return (*turns[:-1], replace(last, blocks=kept))


def _fit_turn(turn: Turn, ctx: RenderContext) -> Turn:
    if not any(isinstance(block, Thinking) for block in turn.blocks):
        return turn
    known = tuple(
        [_drop_foreign_id(block, turn, ctx) if isinstance(block, Thinking) else block for block in turn.blocks]
    )
    blocks = tuple(block for block in known if not isinstance(block, Thinking) or _is_accepted(block, turn, ctx))
    if len(blocks) < len(turn.blocks):
        blocks = forget_item_ids(blocks, ctx)
    unmarked = tuple(
        [_drop_cache_marker(block, turn, ctx) if isinstance(block, Thinking) else block for block in blocks]
    )
    blocks = unless_same(unmarked, turn.blocks)
    return turn if blocks is turn.blocks else replace(turn, blocks=blocks)


def _drop_foreign_id(block: Thinking, turn: Turn, ctx: RenderContext) -> Thinking:
    """Thinking without an id that thinking items cannot have."""
    if not ctx.profile.ids.item_id_prefix or block.id is None or block.id.startswith(_ITEM_IDS):
        return block
    reason = f"the item id {block.id[:80]!r} is not one of a thinking item {ctx.rule('ids.item_id_prefix')}; dropped"
    ctx.report("dropped", reason, turn_key=turn.key, gravity="housekeeping")
    return replace(block, id=None)


def _drop_cache_marker(block: Thinking, turn: Turn, ctx: RenderContext) -> Thinking:
    """Thinking without a cache marker, which other blocks may carry and thinking may not (D11)."""
    plain = without_markers(block, ctx.profile.protocol)
    if plain is not block:
        ctx.report("dropped", "a cache marker on thinking is refused", turn_key=turn.key, gravity="housekeeping")
    return plain


def forget_item_ids(blocks: tuple[Block, ...], ctx: RenderContext) -> tuple[Block, ...]:
    """The blocks of a turn that lost thinking, without their ids: the provider refuses an item that it knows by its id
    without the thinking before it (D9)."""
    if not ctx.profile.reasoning.grouped:
        return blocks
    return tuple([_forget_item_id(block, ctx) if isinstance(block, Text | ToolCall) else block for block in blocks])


def _forget_item_id(block: Text | ToolCall, ctx: RenderContext) -> Text | ToolCall:
    """A block without the fields of the target's protocol, which include its id."""
    kept = {protocol: fields for protocol, fields in (block.extra or {}).items() if protocol != ctx.profile.protocol}
    form = block.form if block.form is not None and block.form.protocol != ctx.profile.protocol else None
    return replace(block, extra=kept or None, form=form)


def _is_accepted(block: Thinking, turn: Turn, ctx: RenderContext) -> bool:
    rules = ctx.profile.reasoning
    if rules.carrier == "none":
        reason = f"thinking in the history is not accepted {ctx.rule('reasoning.carrier')}"
    elif rules.foreign_marks and (block.signature or "").startswith(rules.foreign_marks):
        reason = f"the signature of the thinking comes from another issuer {ctx.rule('reasoning.foreign_marks')}"
    elif rules.signed and not _is_signed(block, ctx):
        reason = f"thinking without its signature is refused {ctx.rule('reasoning.signed')}"
    else:
        return True
    ctx.report("dropped", reason, turn_key=turn.key)
    report_lost_marker(block, ctx)
    return False


def _is_signed(block: Thinking, ctx: RenderContext) -> bool:
    """Whether thinking has what its issuer checks: an encrypted form, or a signature of its text."""
    if ctx.profile.reasoning.carrier == "reasoning_items":
        return block.redacted is not None or (block.id is not None and ctx.keeps_items)
    return bool(block.signature) or (block.redacted is not None and not block.text)


def _drop_late_thinking(turn: Turn, ctx: RenderContext) -> Turn:
    rules = ctx.profile.reasoning
    calls = [index for index, block in enumerate(turn.blocks) if isinstance(block, ToolCall)]
    last = calls[-1] if calls and rules.before_calls else len(turn.blocks)
    end = len(turn.blocks)
    while end and isinstance(turn.blocks[end - 1], Thinking) and not rules.may_end_turn:
        end -= 1
    kept = [block for index, block in enumerate(turn.blocks[:end]) if index < last or not isinstance(block, Thinking)]
    if len(kept) == len(turn.blocks):
        return turn
    rule = ctx.rule("reasoning.may_end_turn" if end < len(turn.blocks) else "reasoning.before_calls")
    ctx.report("dropped", f"thinking at the end of a turn or after calls is refused {rule}", turn_key=turn.key)
    return replace(turn, blocks=tuple(kept))


def _switch_off_thinking(turns: tuple[Turn, ...], options: Options, ctx: RenderContext) -> Options:
    """Switch thinking off for this request if an open tool loop lost the thinking that it must start with (D1)."""
    rules = ctx.profile.reasoning
    mode = _mode(options) or rules.default
    if mode not in rules.leading or ("off" not in rules.modes and rules.default != "off"):
        return options
    last = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    if last is None or not last.calls or isinstance(last.blocks[0], Thinking):
        return options
    rule = ctx.rule("reasoning.leading")
    reason = f"the open tool loop does not start with its thinking {rule}; thinking is off for this request"
    ctx.report("replaced", reason, turn_key=last.key, path="$.reasoning")
    return replace(options, reasoning=Reasoning("off") if "off" in rules.modes else None)


def _add_placeholder(turn: Turn, ctx: RenderContext) -> Turn:
    """A turn with the placeholder for lost thinking (D5, D7, D8)."""
    rules = ctx.profile.reasoning
    if rules.placeholder is None or turn.role != "assistant":
        return turn
    if rules.placeholder_on == "first_call":
        return _sign_first_call(turn, rules.placeholder, ctx)
    needs = rules.placeholder_on == "assistant" or (rules.placeholder_on == "calls" and turn.calls)
    if not needs or any(isinstance(block, Thinking) and block.text for block in turn.blocks):
        return turn
    ctx.report("added", f"a placeholder for lost thinking {ctx.rule('reasoning.placeholder')}", turn_key=turn.key)
    return replace(turn, blocks=(Thinking(rules.placeholder), *turn.blocks))


def _sign_first_call(turn: Turn, placeholder: str, ctx: RenderContext) -> Turn:
    for position, block in enumerate(turn.blocks):
        if isinstance(block, ToolCall):
            if block.signature is not None:
                return turn
            ctx.report(
                "added", f"a placeholder for a lost signature {ctx.rule('reasoning.placeholder')}", turn_key=turn.key
            )
            signed = replace(block, signature=placeholder)
            return replace(turn, blocks=(*turn.blocks[:position], signed, *turn.blocks[position + 1 :]))
    return turn
