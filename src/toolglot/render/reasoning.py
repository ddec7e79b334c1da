"""Thinking that the target will take: signed where it must be, in its place, or a stand-in where one is demanded.

What is another issuer's is gone already (`foreign`). Comes after `exchanges`, because the demands concern turns that
call, and before `empties`, because a turn may be left with nothing.
"""

from __future__ import annotations

from msgspec.structs import replace

from toolglot.conversation import Block, Options, Reasoning, Thinking, ToolCall, Turn
from toolglot.render.job import Job, unless_same


def is_thinking(options: Options, job: Job) -> bool:
    """Whether the model thinks before it answers this request."""
    return (_mode(options) or job.profile.reasoning.default) != "off"


def _mode(options: Options) -> str | None:
    return options.reasoning.mode if options.reasoning is not None else None


def fit_thinking(turns: tuple[Turn, ...], options: Options, job: Job) -> tuple[tuple[Turn, ...], Options]:
    """The turns with the thinking that the target accepts and demands, and whether it may think at all."""
    fitted = turns
    if Thinking in job.survey(turns).kinds:
        fitted = tuple(_fit_turn(turn, job) if turn.role == "assistant" else turn for turn in turns)
    options = _switched_off(fitted, options, job)
    if job.profile.reasoning.placeholder is not None and is_thinking(options, job):
        fitted = tuple(_with_stand_in(turn, job) for turn in fitted)
    return unless_same(fitted, turns), options


def _fit_turn(turn: Turn, job: Job) -> Turn:
    if not any(isinstance(block, Thinking) for block in turn.blocks):
        return turn
    rules = job.profile.reasoning
    blocks = [block for block in turn.blocks if not isinstance(block, Thinking) or _is_accepted(block, turn, job)]
    if not rules.may_end_turn:
        blocks = _without_last_thinking(blocks, turn, job)
    return turn if len(blocks) == len(turn.blocks) else replace(turn, blocks=tuple(blocks))


def _is_accepted(block: Thinking, turn: Turn, job: Job) -> bool:
    rules = job.profile.reasoning
    if rules.carrier == "none":
        reason = f"the target takes no thinking in a history {job.rule('reasoning.carrier')}"
    elif rules.signed and not block.signature and (block.redacted is None or block.text):
        reason = f"thinking without its signature is refused {job.rule('reasoning.signed')}"
    else:
        return True
    job.tell("dropped", reason, turn_key=turn.key)
    return False


def _without_last_thinking(blocks: list[Block], turn: Turn, job: Job) -> list[Block]:
    end = len(blocks)
    while end and isinstance(blocks[end - 1], Thinking):
        end -= 1
    if end < len(blocks):
        job.tell("dropped", f"a turn may not end on thinking {job.rule('reasoning.may_end_turn')}", turn_key=turn.key)
    return blocks[:end]


def _switched_off(turns: tuple[Turn, ...], options: Options, job: Job) -> Options:
    """Thinking off for this request, where an open tool loop lost the thinking that it must start with (D1)."""
    rules = job.profile.reasoning
    mode = _mode(options) or rules.default
    if mode not in rules.leading or ("off" not in rules.modes and rules.default != "off"):
        return options
    last = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    if last is None or not last.calls or isinstance(last.blocks[0], Thinking):
        return options
    reason = f"the open tool loop does not start with its thinking {job.rule('reasoning.leading')}; it is off this once"
    job.tell("replaced", reason, turn_key=last.key)
    return replace(options, reasoning=Reasoning("off") if "off" in rules.modes else None)


def _with_stand_in(turn: Turn, job: Job) -> Turn:
    """A turn with what must stand for lost thinking (D5, D7, D8)."""
    rules = job.profile.reasoning
    if rules.placeholder is None or turn.role != "assistant":
        return turn
    if rules.placeholder_on == "first_call":
        return _with_signed_call(turn, rules.placeholder, job)
    needs = rules.placeholder_on == "assistant" or (rules.placeholder_on == "calls" and turn.calls)
    if not needs or any(isinstance(block, Thinking) and block.text for block in turn.blocks):
        return turn
    job.tell("added", f"a stand-in for lost thinking {job.rule('reasoning.placeholder')}", turn_key=turn.key)
    return replace(turn, blocks=(Thinking(rules.placeholder), *turn.blocks))


def _with_signed_call(turn: Turn, placeholder: str, job: Job) -> Turn:
    for position, block in enumerate(turn.blocks):
        if isinstance(block, ToolCall):
            if block.signature is not None:
                return turn
            job.tell("added", f"a stand-in for a lost signature {job.rule('reasoning.placeholder')}", turn_key=turn.key)
            signed = replace(block, signature=placeholder)
            return replace(turn, blocks=(*turn.blocks[:position], signed, *turn.blocks[position + 1 :]))
    return turn
