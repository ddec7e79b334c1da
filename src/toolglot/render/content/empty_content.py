"""Empty text, results and turns, if the target refuses them.

An empty text is dropped, unless it carries a signature, which goes back to its issuer. A user turn that had nothing
else gets a placeholder (dropping it would join two replies); an assistant or system turn is dropped. Runs after
everything that removes blocks from turns.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Media, Role, Text, Thinking, ToolReference, ToolResult, Turn
from toolglot.conversation.completion import CANCELLED
from toolglot.conversation.report import Gravity
from toolglot.render.context import RenderContext, unless_same

EMPTY_MESSAGE: Final = "[empty message]"
EMPTY_RESULT: Final = "[no output]"


def fill_empty_content(turns: tuple[Turn, ...], ctx: RenderContext) -> tuple[Turn, ...]:
    """The turns without anything empty that the target refuses."""
    facts = ctx.facts(turns)
    if not facts.has_blanks and Thinking not in facts.kinds:
        return turns
    filled = [kept for turn in turns[:-1] if (kept := _fill_turn(turn, ctx)) is not None]
    for turn in turns[-1:]:
        follows_user = bool(filled) and filled[-1].role in ("user", "tool")
        kept = turn if follows_user and _is_empty_prefill(turn, ctx) else _fill_turn(turn, ctx)
        filled += [] if kept is None else [kept]
    return unless_same(tuple(filled), turns)


def _is_empty_prefill(turn: Turn, ctx: RenderContext) -> bool:
    """Whether the last turn is an empty start of an answer, as the target's own client wrote it."""
    if not ctx.is_native or turn.role != "assistant" or not ctx.profile.turns.empty_prefill:
        return False
    is_empty = not turn.blocks or (len(turn.blocks) == 1 and isinstance(turn.blocks[0], Text) and not turn.text)
    return is_empty and ctx.profile.turns.prefill == "yes" and (not turn.blocks or ctx.profile.turns.empty_text)


def _fill_turn(turn: Turn, ctx: RenderContext) -> Turn | None:
    if _has_wanted_empty_text(turn, ctx) or _is_empty_prompt(turn, ctx):
        return turn
    blocks: list[Block] = []
    for block in turn.blocks:
        if isinstance(block, ToolResult):
            blocks.append(_fill_result(block, ctx))
        elif not isinstance(block, Text) or _is_signed(block, ctx) or not _is_refused(block.text, ctx):
            blocks.append(block)
    if not _has_content(blocks, ctx) and not _may_be_empty(turn.role, blocks, ctx):
        return _placeholder_turn(turn, ctx)
    kept = unless_same(tuple(blocks), turn.blocks)
    if kept is turn.blocks:
        return turn
    if len(blocks) < len(turn.blocks):
        ctx.report(
            "dropped",
            f"empty text is refused {ctx.rule('turns.empty_text')}",
            turn_key=turn.key,
            gravity="housekeeping",
        )
    return replace(turn, blocks=kept)


def _may_be_empty(role: Role, blocks: list[Block], ctx: RenderContext) -> bool:
    """Whether the target accepts a turn of these empty blocks. If the blocks of a reply are items of the list, no
    blocks means no turn."""
    if role == "tool" or (role == "assistant" and not blocks and ctx.profile.results.carrier == "item"):
        return False
    return ctx.profile.turns.empty_turn


def _has_wanted_empty_text(turn: Turn, ctx: RenderContext) -> bool:
    """Whether an empty text is beside calls, as the target requires."""
    if ctx.profile.calls.empty_content != "empty" or not turn.calls:
        return False
    texts = [block for block in turn.blocks if isinstance(block, Text)]
    return len(texts) == 1 and not texts[0].text and texts[0].extra is None and texts[0].form is None


def _is_empty_prompt(turn: Turn, ctx: RenderContext) -> bool:
    """Whether a system prompt of a native request may be empty: it is in a field of its own, or it is a message that
    only sets something, such as Anthropic's change of effort."""
    if turn.role != "system" or not ctx.is_native:
        return False
    if not turn.blocks and turn.extra is not None and turn.extra.get(ctx.profile.protocol):
        return True
    form = turn.form
    if form is None or form.protocol != ctx.profile.protocol or form.prompt_position != "field":
        return False
    return not turn.blocks or (form.is_string and not turn.text)


def _has_content(blocks: list[Block], ctx: RenderContext) -> bool:
    # If texts are blocks, an empty one that is accepted is content; otherwise it is an empty message.
    takes_empty = ctx.profile.turns.empty_text and ctx.profile.results.carrier == "block"
    takes_thought = ctx.is_native and ctx.profile.reasoning.may_end_turn
    return any(
        (
            not isinstance(block, Thinking)
            or (takes_thought and (bool(block.text) or block.extra is not None or block.form is not None))
        )
        and (not isinstance(block, Text) or bool(block.text) or takes_empty or _is_signed(block, ctx))
        for block in blocks
    )


def _is_signed(text: Text, ctx: RenderContext) -> bool:
    """Whether a text carries a signature that its issuer wants back; no other signatures are left here."""
    return text.signature is not None and ctx.profile.reasoning.carrier == "thought_parts"


def _is_refused(text: str, ctx: RenderContext) -> bool:
    rules = ctx.profile.turns
    return not rules.empty_text if not text else not rules.blank_text and text.isspace()


def _placeholder_turn(turn: Turn, ctx: RenderContext) -> Turn | None:
    rule = ctx.rule("turns.empty_turn")
    if turn.role == "user":
        ctx.report("replaced", f"a turn without content is refused {rule}; a placeholder was added", turn_key=turn.key)
        return replace(turn, blocks=(Text(EMPTY_MESSAGE),))
    gravity: Gravity = "loss" if any(isinstance(block, Thinking) for block in turn.blocks) else "housekeeping"
    ctx.report("dropped", f"a turn without content is refused {rule}", turn_key=turn.key, gravity=gravity)
    return None


def _fill_result(result: ToolResult, ctx: RenderContext) -> ToolResult:
    rules = ctx.profile.results
    is_error = result.is_error or result.status == "cancelled"  # a cancelled result is written as an error
    accepted = rules.empty_error if is_error else rules.empty
    if _result_has_content(result, ctx):
        return _drop_blank_parts(result, ctx)
    if accepted:
        # A result block may omit its content, a message may not (C8).
        is_absent = result.content is None and rules.carrier != "block"
        keeps_list = ctx.is_native and rules.carrier == "message" and not result.content
        is_list = isinstance(result.content, tuple) and not keeps_list
        return replace(result, content=result.error or "") if is_absent or is_list else result
    rule = ctx.rule("results.empty_error" if is_error else "results.empty")
    ctx.report(
        "replaced", f"a result without content is refused {rule}; a placeholder was added", call_ids=(result.call_id,)
    )
    word = CANCELLED if result.status == "cancelled" else EMPTY_RESULT
    return replace(result, content=result.error or word)


def _drop_blank_parts(result: ToolResult, ctx: RenderContext) -> ToolResult:
    if not isinstance(result.content, tuple):
        return result
    parts = tuple([part for part in result.content if not isinstance(part, Text) or not _is_refused(part.text, ctx)])
    parts = unless_same(parts, result.content)
    return result if parts is result.content else replace(result, content=parts)


def _result_has_content(result: ToolResult, ctx: RenderContext) -> bool:
    if isinstance(result.content, tuple):
        return any(not isinstance(part, Text) or not _is_refused(part.text, ctx) for part in result.content) and any(
            isinstance(part, Media | ToolReference) or (isinstance(part, Text) and part.text) for part in result.content
        )
    if not result.content:
        # A structured value counts if it is what is written: instead of text, or as an object.
        return result.result is not None and (result.content is None or ctx.profile.results.body == "object")
    return not _is_refused(result.content, ctx)
