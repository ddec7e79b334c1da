"""Chat messages that hold another protocol's blocks in their content (B6).

Proxies and agents that speak both protocols write a call as a `tool_use` part and as one of `tool_calls`, or a result
as a part of a user's message. Such parts are read as what they are; a call that stands there twice is one.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Block, Conversation, Opaque, ToolCall, Turn
from toolglot.errors import InputError
from toolglot.wire.anthropic.blocks import read_content
from toolglot.wire.openai_chat.blocks import PROTOCOL
from toolglot.wire.reading import note

_KINDS: Final = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})


def merged(conversation: Conversation, *, text_only: bool) -> tuple[Conversation, list[str]]:
    """The conversation with such parts as blocks, and what was done. `text_only`: arguments must be text."""
    told: list[str] = []
    turns = tuple([_merged_turn(turn, told) for turn in conversation.turns])
    if text_only:
        turns = tuple([_with_text(turn, told) for turn in turns])
    return (replace(conversation, turns=turns), told) if told else (conversation, told)


def _merged_turn(turn: Turn, told: list[str]) -> Turn:
    if not any(type(block) is Opaque and block.kind in _KINDS for block in turn.blocks):
        return turn
    known = {block.id for block in turn.blocks if type(block) is ToolCall}
    blocks: list[Block] = []
    for block in turn.blocks:
        found = _read(block) if type(block) is Opaque and block.kind in _KINDS else None
        if found is None:
            blocks.append(block)
        elif isinstance(found, ToolCall) and found.id in known:
            told.append(f"the call {found.id[:80]!r} stood in the content too; it is one call")
        else:
            told.append(f"a {type(found).__name__} in the content of a Chat message was read as one")
            blocks.append(found)
    return replace(turn, blocks=tuple(blocks))


def _with_text(turn: Turn, told: list[str]) -> Turn:
    """A turn whose calls do not write their arguments as an object."""
    if turn.role != "assistant" or not any(_is_object(block) for block in turn.blocks):
        return turn
    told.append("arguments that are an object were written as text")
    blocks = [replace(block, extra=None) if _is_object(block) else block for block in turn.blocks]
    return replace(turn, blocks=tuple(blocks))


def _is_object(block: Block) -> bool:
    return type(block) is ToolCall and block.extra is not None and note(block.extra, PROTOCOL, "arguments") == "object"


def _read(block: Opaque) -> Block | None:
    try:
        return read_content([block.value])[0]
    except InputError:
        return None
