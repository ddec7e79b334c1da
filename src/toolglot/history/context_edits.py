"""Edits that a client wants of its context, made in the request: old results and old thinking are cleared.

    conversation, applied = edit_context(conversation, edits, count)

For targets that do not make them themselves. Law: pure and linear; a call and its result stay, so that every pair
stays whole. What is cleared depends on the conversation alone: the same history always gives the same request. With
`at_least`, results are cleared in groups of at least that many tokens, so that the beginning of the conversation, and a
provider's cache of it, changes only when a group is full.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Conversation, Thinking, ToolCall, ToolResult, Turn
from toolglot.conversation.context_requests import AppliedEdit, ClearResults, ClearThinking, ContextEdit

CLEARED: Final = "[This tool result was removed to save space. Call the tool again if it is needed.]"

Count = Callable[[Conversation], int]
"""About how many tokens a conversation has."""


def edit_context(
    conversation: Conversation, edits: Sequence[ContextEdit], count: Count
) -> tuple[Conversation, tuple[AppliedEdit, ...]]:
    """The conversation after the edits, and what they did. Edits that did nothing are not listed."""
    applied: list[AppliedEdit] = []
    for edit in edits:
        if isinstance(edit, ClearThinking):
            edited = _clear_thinking(conversation, edit)
        else:
            edited = _clear_results(conversation, edit, count)
        if edited is None:
            continue
        turns, cleared = edited
        before, conversation = conversation, replace(conversation, turns=turns)
        tokens = max(count(before) - count(conversation), 0)
        applied.append(AppliedEdit(edit.kind, cleared, tokens, isinstance(edit, ClearThinking)))
    return conversation, tuple(applied)


def _clear_thinking(conversation: Conversation, edit: ClearThinking) -> tuple[tuple[Turn, ...], int] | None:
    if edit.keep is None:
        return None
    thinking = [
        index
        for index, turn in enumerate(conversation.turns)
        if any(isinstance(block, Thinking) for block in turn.blocks)
    ]
    cleared = set(thinking[: max(len(thinking) - edit.keep, 0)])
    if not cleared:
        return None
    turns = [_without_thinking(turn) if index in cleared else turn for index, turn in enumerate(conversation.turns)]
    return tuple(turn for turn in turns if turn.blocks), len(cleared)


def _without_thinking(turn: Turn) -> Turn:
    return replace(turn, blocks=tuple([block for block in turn.blocks if not isinstance(block, Thinking)]))


def _clear_results(conversation: Conversation, edit: ClearResults, count: Count) -> tuple[tuple[Turn, ...], int] | None:
    calls = [call for turn in conversation.turns for call in turn.calls]
    if edit.trigger_calls is not None and len(calls) <= edit.trigger_calls:
        return None
    old = [call for call in calls[: max(len(calls) - edit.keep, 0)] if call.name not in edit.excluded]
    if not old or (edit.trigger_tokens is not None and count(conversation) <= edit.trigger_tokens):
        return None
    results = {result.call_id: result for turn in conversation.turns for result in turn.results}
    old = [call for call in old if call.id in results and results[call.id].content != CLEARED]
    if edit.at_least:
        old = old[: _end_of_groups(old, results, edit.at_least, count)]
    if not old:
        return None
    ids = {call.id for call in old}
    return tuple([_clear_turn(turn, ids, edit) for turn in conversation.turns]), len(old)


def _end_of_groups(calls: Sequence[ToolCall], results: dict[str, ToolResult], at_least: int, count: Count) -> int:
    """How many of the calls are in groups that free at least so many tokens each."""
    end = tokens = 0
    for number, call in enumerate(calls, start=1):
        tokens += count(Conversation((Turn("tool", (results[call.id],)),)))
        if tokens >= at_least:
            end, tokens = number, 0
    return end


def _clear_turn(turn: Turn, ids: set[str], edit: ClearResults) -> Turn:
    blocks: list[Block] = []
    for block in turn.blocks:
        if isinstance(block, ToolResult) and block.call_id in ids:
            blocks.append(replace(block, content=CLEARED, result=None))
        elif isinstance(block, ToolCall) and block.id in ids and _clears_input(block, edit):
            blocks.append(replace(block, arguments={}, raw_input=None, argument_fixes=()))
        else:
            blocks.append(block)
    return replace(turn, blocks=tuple(blocks))


def _clears_input(call: ToolCall, edit: ClearResults) -> bool:
    if call.type != "function":
        return False  # free text has no empty form that every tool takes
    return edit.inputs if isinstance(edit.inputs, bool) else call.name in edit.inputs
