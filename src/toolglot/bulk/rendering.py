"""An example as its target accepts it: rendered, as a request is, for the profile of the target's rows.

A row ends with what the model wrote, a request does not. So a row is rendered with a turn of the user behind it, or
with results of its last calls, and these are taken away again.

Law: as in `render`: every real result stays with its call, and every change is reported.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.bulk.example import Example, Notes
from toolglot.bulk.options import BulkOptions
from toolglot.conversation import Conversation, Text, ToolResult, Turn
from toolglot.errors import InputError
from toolglot.policy import Policy
from toolglot.profiles import Profile
from toolglot.render import render

POLICY: Final = Policy(server_tools="drop", required="keep")
_HELD: Final = "\ue000"
"""The text of what is taken away again: a character that no font has and no text uses."""


def render_example(
    example: Example, target: Profile, source: Profile | None, options: BulkOptions, notes: Notes
) -> Example:
    """The example as the target accepts it; the same object if nothing had to change."""
    if not example.is_preference:
        conversation = _rendered(example.conversation, target, source, options, notes)
        return example if conversation is example.conversation else replace(example, conversation=conversation)
    prompt = example.conversation
    rendered = _rendered(prompt, target, source, options, Notes())
    answers = []
    for answer in (example.preferred, example.rejected):
        whole = _rendered(replace(prompt, turns=(*prompt.turns, *(answer or ()))), target, source, options, notes)
        answers.append(whole.turns[len(rendered.turns) :])
    return replace(example, conversation=rendered, preferred=answers[0], rejected=answers[1])


def _rendered(
    conversation: Conversation, target: Profile, source: Profile | None, options: BulkOptions, notes: Notes
) -> Conversation:
    turns = conversation.turns
    tail = tail_of(turns)
    if tail and tail[0].role == "tool":
        if options.dangling == "reject":
            raise InputError("the last calls have no results", path="$", hint="dangling=keep keeps them")
        tail = tail if options.dangling == "keep" else ()
    sent = replace(conversation, turns=(*turns, *tail)) if tail else conversation
    rendered = render(sent, target, policy=POLICY, source=source)
    notes.entries += rendered.entries
    out = rendered.conversation
    if rendered.is_unchanged:
        return conversation
    if options.dangling == "reject" and any(result.synthetic for turn in out.turns for result in turn.results):
        raise InputError("a call has no result", path="$", hint="dangling=keep adds one that says so")
    fitted = _without_tail(out.turns) if tail else out.turns
    if not rendered.entries and _are_same(fitted, turns) and out.tools == conversation.tools:
        return conversation
    return replace(out, turns=fitted)


def tail_of(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """The turns that make a request of turns that end with the model's: a user's, or the results of its calls."""
    last = turns[-1] if turns else None
    if last is None or last.role != "assistant":
        return ()
    if not last.calls:
        return (Turn("user", (Text(_HELD),)),)
    held = [ToolResult(call.id, _HELD, name=call.name, is_complete=True) for call in last.calls]
    return tuple(Turn("tool", (result,)) for result in held)


def _without_tail(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """The turns without those that were only there while they were rendered."""
    end = len(turns)
    while end and _is_tail(turns[end - 1]):
        end -= 1
    return turns[:end]


def _is_tail(turn: Turn) -> bool:
    if turn.role == "assistant" or not turn.blocks:
        return False
    return all(
        block.text == _HELD if isinstance(block, Text) else isinstance(block, ToolResult) and _is_held(block)
        for block in turn.blocks
    )


def _is_held(result: ToolResult) -> bool:
    return result.text == _HELD


def _are_same(rendered: tuple[Turn, ...], turns: tuple[Turn, ...]) -> bool:
    """Whether turns are the same but for their keys."""
    if len(rendered) != len(turns):
        return False
    return all(replace(new, key=old.key, issuer=old.issuer) == old for new, old in zip(rendered, turns, strict=True))
