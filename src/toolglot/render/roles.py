"""Who speaks when: system prompts, the first and the last turn, and turns that may not follow each other.

The last pass over whole turns: it joins and bridges what the others left. A system prompt in the middle of a
conversation stays at its position, natively or as tagged text, because moving it would change what comes before (law
5). Bridges are short turns with a constant text. Only the bridge at the very end, and the join of the last two turns,
would be rendered differently in a longer history.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Role, ServerTool, Text, ToolChange, Turn
from toolglot.conversation.cache_markers import with_markers_of, without_any_markers
from toolglot.render.context import RenderContext, unless_same
from toolglot.render.pairing import may_share
from toolglot.render.turn_facts import PROMPTS, was_message

TAGGED: Final = "<system>\n{text}\n</system>"
SEAM: Final = "\n\n"
"""Separates the texts of two turns that became one."""


def fit_roles(turns: tuple[Turn, ...], ctx: RenderContext) -> tuple[Turn, ...]:
    """The turns in an order that the target accepts."""
    if not turns:
        ctx.report("added", "no turn is left to send; a bridge turn was added")
        return (bridge("user", None, "all", ctx),)
    fitted = _ensure_first_user(_fit_prompts(turns, ctx), ctx)
    fitted = _join_turns(fitted, ctx)
    fitted = _bridge_after_results(fitted, ctx)
    fitted = _ensure_last_user(fitted, ctx)
    return unless_same(tuple(fitted), turns)


def speaker(turn: Turn, ctx: RenderContext) -> Role:
    """Who speaks in the request: results are the user's if they are blocks of its turns."""
    if turn.role == "tool" and ctx.profile.results.carrier == "block":
        return "user"
    if turn.role == "user" and turn.results and ctx.profile.results.carrier != "block":
        return "tool" if len(turn.results) == len(turn.blocks) else "user"
    return turn.role


# --- system prompts ---------------------------------------------------------------------------------


def _fit_prompts(turns: tuple[Turn, ...], ctx: RenderContext) -> Sequence[Turn]:
    rules = ctx.profile.turns
    head = next((number for number, turn in enumerate(turns) if turn.role not in PROMPTS), len(turns))
    fitted_turns = _fit_leading_prompts(turns[:head], ctx)
    if ctx.facts(turns).prompts == head:  # no others
        is_same = len(fitted_turns) == head and all(map(operator.is_, fitted_turns, turns))
        return turns if is_same else [*fitted_turns, *turns[head:]]
    speakers = _next_speakers(turns, ctx) if rules.alternate else ()
    before: Role | None = None
    for number in range(head, len(turns)):
        turn = turns[number]
        if turn.role not in PROMPTS:
            fitted_turns.append(turn)
            before = speaker(turn, ctx)
            continue
        after = turns[number + 1] if number + 1 < len(turns) else None
        is_native = rules.system_inside == "anywhere" or (
            rules.system_inside == "before_assistant"
            and (after is None or after.role == "assistant")
            and (ctx.is_native or number == 0 or speaker(turns[number - 1], ctx) in ("user", "tool"))
        )
        is_between = bool(speakers) and before == speakers[number] and before in ("user", "assistant")
        if is_native and not is_between:
            fitted_turns.append(_to_system_role(turn, ctx))
        else:
            rule = ctx.rule("turns.alternate" if is_native else "turns.system_inside")
            ctx.report(
                "converted", f"a {turn.role} prompt is refused here {rule}; it became tagged text", turn_key=turn.key
            )
            before = "user"
            text = Text(TAGGED.format(text=_prompt_text(turn, ctx)))
            fitted_turns.append(_as_one_text((turn,), text, "user", "tagged text", ctx))
    return fitted_turns


def _as_one_text(prompts: Sequence[Turn], text: Text, role: Role, what: str, ctx: RenderContext) -> Turn:
    """Prompts as one turn of one text. What it cannot carry is reported; cache markers it can."""
    values: list[Block | Turn] = []
    for prompt in prompts:
        values += (*prompt.blocks, prompt)
    for value, key in [(value, prompt.key) for prompt in prompts for value in (prompt, *prompt.blocks)]:
        plain = without_any_markers(value) if ctx.cache_markers else value
        ctx.report_fields(plain.extra, plain.form, what, key)
    if ctx.cache_markers:
        text = with_markers_of(text, values)
    return replace(prompts[0], role=role, blocks=(text,), extra=None, form=None)


def _prompt_text(prompt: Turn, ctx: RenderContext) -> str:
    """The text of a prompt. A change of the tools is part of it where the prompt cannot hold one."""
    loading = ctx.loading
    if loading is None or not any(isinstance(block, ToolChange) for block in prompt.blocks):
        return prompt.text
    texts = [
        loading.change_as_text(block, prompt).text if isinstance(block, ToolChange) else block.text
        for block in prompt.blocks
        if isinstance(block, ToolChange | Text)
    ]
    return "\n\n".join(texts)


def _next_speakers(turns: Sequence[Turn], ctx: RenderContext) -> list[Role | None]:
    """For each turn: who speaks next, apart from prompts."""
    following: Role | None = None
    found: list[Role | None] = []
    for turn in reversed(turns):
        found.append(following)
        following = following if turn.role in PROMPTS else speaker(turn, ctx)
    return found[::-1]


def _fit_leading_prompts(prompts: Sequence[Turn], ctx: RenderContext) -> list[Turn]:
    """The prompts before the first turn: as they are, or as one."""
    rules = ctx.profile.turns
    kept = [_to_system_role(turn, ctx) for turn in prompts]
    if rules.system == "field" and rules.system_inside != "anywhere":
        kept = [_move_to_field(_without_changes(turn, ctx), ctx) for turn in kept]
    if len(kept) < 2 or rules.system_many or rules.system == "field":
        return kept
    ctx.report("converted", f"only one system prompt is accepted {ctx.rule('turns.system_many')}; they were joined")
    text = Text("\n\n".join(turn.text for turn in kept))
    return [_as_one_text(kept, text, "system", _JOINED, ctx)]


def _without_changes(prompt: Turn, ctx: RenderContext) -> Turn:
    """A prompt for a field of text, with text for a change of the tools. It may lead because the turns before it are
    gone, which is not known when tools are loaded."""
    loading = ctx.loading
    if loading is None or not any(isinstance(block, ToolChange) for block in prompt.blocks):
        return prompt
    blocks = [
        loading.change_as_text(block, prompt) if isinstance(block, ToolChange) else block for block in prompt.blocks
    ]
    return replace(prompt, blocks=tuple(blocks))


def _move_to_field(prompt: Turn, ctx: RenderContext) -> Turn:
    """A prompt that is written into its field, even if it was the first message."""
    if not was_message(prompt, ctx.profile.protocol):
        return prompt
    rule = ctx.rule("turns.system_inside")
    reason = f"a system prompt may not be the first message {rule}; it was moved to its own field"
    ctx.report("moved", reason, turn_key=prompt.key)
    return replace(prompt, form=prompt.form.as_prompt_field() if prompt.form is not None else None)


def _to_system_role(prompt: Turn, ctx: RenderContext) -> Turn:
    """A prompt in a role that the target has."""
    if prompt.role == "system" or ctx.profile.turns.developer_role:
        return prompt
    reason = f"there is no developer role {ctx.rule('turns.developer_role')}; sent as a system prompt"
    ctx.report("converted", reason, turn_key=prompt.key)
    return replace(prompt, role="system")


# --- order ------------------------------------------------------------------------------------------


def bridge(role: Role, near: Turn | None, mark: str, ctx: RenderContext) -> Turn:
    text = ctx.policy.bridge_user if role == "user" else ctx.policy.bridge_assistant
    return Turn(role, (Text(text),), key=f"{near.key if near is not None else ''}+{mark}")


def _ensure_first_user(turns: Sequence[Turn], ctx: RenderContext) -> Sequence[Turn]:
    """A conversation that the user begins."""
    head = next((number for number, turn in enumerate(turns) if turn.role not in PROMPTS), len(turns))
    if head < len(turns) and (ctx.profile.turns.first == "any" or speaker(turns[head], ctx) == "user"):
        return turns
    if head == len(turns) and _has_users(turns, ctx) and not _leaves_nothing(turns, ctx):
        return turns
    first = turns[head] if head < len(turns) else None
    rule = ctx.rule("turns.system" if first is None else "turns.first")
    ctx.report("added", f"the user must speak first {rule}; a bridge turn was added at the start")
    return [*turns[:head], bridge("user", first, "before", ctx), *turns[head:]]


def _leaves_nothing(prompts: Sequence[Turn], ctx: RenderContext) -> bool:
    """Whether prompts alone leave no message. A native client may have something else in the request."""
    rules = ctx.profile.turns
    if rules.system != "field" or not ctx.is_native:
        return rules.system == "field"
    is_empty = not any(was_message(turn, ctx.profile.protocol) for turn in prompts)
    return is_empty and rules.required and not ctx.is_continued


def _has_users(turns: Sequence[Turn], ctx: RenderContext) -> bool:
    """Whether the user speaks as often as the target wants. Stops as soon as that is known."""
    wanted = ctx.profile.turns.min_user
    users = (turn for turn in turns if speaker(turn, ctx) == "user")
    return len(list(islice(users, wanted))) == wanted


def _join_turns(turns: Sequence[Turn], ctx: RenderContext) -> Sequence[Turn]:
    """Joins consecutive turns of one speaker."""
    alternate, before_calls = ctx.profile.turns.alternate, ctx.profile.calls.after == "user_or_result"
    if not alternate and not before_calls:
        return turns
    runs: list[_Run] = []
    for turn in turns:
        last = runs[-1] if runs and (alternate or turn.calls) else None
        if last is not None and last.accepts(turn, ctx):
            _join_run(runs, turn, ctx)
            rule = ctx.rule("turns.alternate" if alternate else "calls.after")
            reason = f"consecutive turns of one speaker are refused {rule}; they were joined"
            ctx.report("converted", reason, turn_key=turn.key)
            continue
        if last is not None and last.first.role == turn.role == "assistant" and not last.has_calls:
            reason = f"text beside calls is refused {ctx.rule('calls.with_text')}; a bridge turn separates them"
            ctx.report("added", reason, turn_key=turn.key)
            runs.append(_Run(bridge("user", last.first, "between", ctx), ctx))
        runs.append(_Run(turn, ctx))
    return [run.turn() for run in runs]


def _join_run(runs: list[_Run], turn: Turn, ctx: RenderContext) -> None:
    """Add a turn to the run before it, if that may hold it. Calls that may not follow text start a new run."""
    start = len(runs) - 1
    while start and not ctx.profile.turns.alternate and runs[start - 1].accepts(turn, ctx):
        start -= 1
    for other in runs[start + 1 :]:
        runs[start].add(other.turn(), ctx)
    del runs[start + 1 :]
    runs[start].add(turn, ctx)


_JOINED: Final = "a joined message"


class _Run:
    """Turns of one speaker that become one. No block is looked at again for the next turn (law 9)."""

    def __init__(self, first: Turn, ctx: RenderContext) -> None:
        self.first = first
        self.has_calls = bool(first.calls)
        self._who = speaker(first, ctx)
        self._results = len(first.results)
        self._blocks = list(first.blocks)
        self._words = _last_text(first.blocks)
        """The index of the last block that is not empty."""
        self._is_joined = False

    def accepts(self, turn: Turn, ctx: RenderContext) -> bool:
        who = speaker(turn, ctx)
        if who != self._who or who in PROMPTS or who == "tool":
            return False
        if who == "assistant":
            return not self.has_calls and (ctx.profile.calls.with_text or not turn.calls)
        if not turn.results:
            return not self._results or may_share(turn.blocks, ctx)
        return self._results == len(self._blocks) and not ctx.profile.results.alone

    def add(self, turn: Turn, ctx: RenderContext) -> None:
        """Add a turn. If a message is one text, a separator keeps the texts of two turns apart.

        Media and thinking between them do not matter: they have fields of their own.
        """
        if not self._is_joined:
            ctx.report_fields(self.first.extra, self.first.form, _JOINED, self.first.key)
        ctx.report_fields(turn.extra, turn.form, _JOINED, turn.key)
        words = _last_text(turn.blocks)
        if words is not None:
            if self._words is not None and ctx.profile.results.carrier == "message":
                self._blocks[self._words] = _with_separator(self._blocks[self._words])
            self._words = len(self._blocks) + words
        self._blocks += turn.blocks
        self._results += len(turn.results)
        self.has_calls = self.has_calls or bool(turn.calls)
        self._is_joined = True

    def turn(self) -> Turn:
        if not self._is_joined:
            return self.first
        return replace(self.first, role=self._who, blocks=tuple(self._blocks), extra=None, form=None)


def _last_text(blocks: Sequence[Block]) -> int | None:
    for index in range(len(blocks) - 1, -1, -1):
        block = blocks[index]
        if isinstance(block, Text) and block.text:
            return index
    return None


def _with_separator(block: Block) -> Block:
    return replace(block, text=f"{block.text}{SEAM}") if isinstance(block, Text) else block


def _bridge_after_results(turns: Sequence[Turn], ctx: RenderContext) -> Sequence[Turn]:
    """Adds an assistant turn between results and a user turn that may not follow them (C1, C4)."""
    rules = ctx.profile.results
    if rules.user_after and (rules.carrier != "block" or not ctx.profile.turns.alternate):
        return turns  # a turn of the user may follow one of results, each in a message of its own
    bridged: list[Turn] = []
    for turn in turns:
        before = bridged[-1] if bridged else None
        follows = before is not None and turn.role == "user" and bool(before.results) and not turn.results
        if before is not None and follows and not (rules.user_after and may_share(turn.blocks, ctx)):
            rule = ctx.rule("results.alone" if rules.user_after else "results.user_after")
            ctx.report(
                "added", f"a user turn may not follow results directly {rule}; a bridge turn was added between them"
            )
            bridged.append(bridge("assistant", before, "bridge", ctx))
        bridged.append(turn)
    return bridged


def _ensure_last_user(turns: Sequence[Turn], ctx: RenderContext) -> Sequence[Turn]:
    """A conversation that ends with a turn that the model can answer."""
    rules = ctx.profile.turns
    last = turns[-1]
    end = len(turns)
    if rules.system_inside == "before_assistant":  # prompts follow the user, and nobody but the model follows them
        end = 1 + max((number for number, turn in enumerate(turns) if turn.role not in PROMPTS), default=end - 1)
    spoken = turns[end - 1]
    needs_user = not _has_users(turns, ctx)
    ends_badly = (
        rules.last == "user_or_result" and spoken.role in ("assistant", *PROMPTS) and not _may_continue(spoken, ctx)
    )
    if spoken.role in PROMPTS and rules.system_inside in ("anywhere", "before_assistant"):
        ends_badly = False
    if not ends_badly and not needs_user:
        trimmed = last if rules.trailing_space else _trim_end(last, ctx)
        return turns if trimmed is last else [*turns[:-1], trimmed]
    reason = f"the user must speak last {ctx.rule('turns.last')}; a bridge turn was added at the end"
    ctx.report("added", reason, turn_key=last.key)
    return [*turns[:end], bridge("user", last, "after", ctx), *turns[end:]]


def _may_continue(turn: Turn, ctx: RenderContext) -> bool:
    """Whether the model continues its own turn, which therefore may be the last."""
    if turn.role != "assistant" or turn.calls:
        return False
    return ctx.profile.turns.prefill == "yes" or (
        ctx.is_native and (_is_marked_prefill(turn, ctx) or _is_paused(turn, ctx))
    )


def _is_marked_prefill(turn: Turn, ctx: RenderContext) -> bool:
    """Whether the client marked a turn as the start of the answer, and the target knows such a mark."""
    if ctx.profile.turns.prefill != "flag":
        return False
    own = (turn.extra or {}).get(ctx.profile.protocol, {})
    return any(own.get(flag) is True for flag in ctx.profile.turns.prefill_flags)


def _is_paused(turn: Turn, ctx: RenderContext) -> bool:
    """Whether a turn may be one that its model paused while its provider ran a tool (`pause_turn`)."""
    return ctx.profile.turns.pauses and any(
        isinstance(block, ServerTool) and block.protocol == ctx.profile.protocol for block in turn.blocks
    )


def _trim_end(turn: Turn, ctx: RenderContext) -> Turn:
    """The start of an answer without white space at its end (C9)."""
    if turn.role != "assistant" or not turn.blocks or not isinstance(turn.blocks[-1], Text):
        return turn
    text = turn.blocks[-1]
    trimmed = text.text.rstrip()
    if trimmed == text.text:
        return turn
    ctx.report(
        "replaced",
        f"white space at the end of the answer's start is refused {ctx.rule('turns.trailing_space')}",
        turn_key=turn.key,
    )
    kept = turn.blocks[:-1] + ((replace(text, text=trimmed),) if trimmed else ())
    return replace(turn, blocks=kept)
