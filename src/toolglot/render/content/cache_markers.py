"""Removes cache markers that the target refuses.

They are in messages of the target's own protocol: agents write them for one model or host and then call another. What
they mark stays. Codecs do not write markers of another protocol.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from toolglot.conversation import Block, Conversation, ToolResult, ToolSpec, Turn
from toolglot.conversation.cache_markers import (
    is_marker,
    markers_of,
    marking_of,
    may_have_markers,
    why_no_markers,
    without_markers,
)
from toolglot.render.context import RenderContext


def report_lost_marker(value: Block | ToolSpec, ctx: RenderContext) -> None:
    """Report a cache marker on something that is dropped."""
    if markers_of(value):
        reason = "cache markers on dropped content were dropped with it"
        if not any(entry.reason == reason for entry in ctx.entries):
            ctx.report("dropped", reason, path="$", gravity="housekeeping")


def drop_refused_markers(conversation: Conversation, ctx: RenderContext) -> Conversation:
    """The conversation without cache markers, if the target is known to refuse them."""
    rules, protocol = ctx.profile.request, ctx.profile.protocol
    if rules.cache_markers or rules.unknown_fields != "refused" or marking_of(protocol) is None:
        return conversation
    if not may_have_markers(conversation.turns, conversation.tools, protocol):
        return conversation
    remover = _MarkerRemover(protocol)
    turns = tuple([remover.turn(turn) for turn in conversation.turns])
    tools = tuple([remover.without_marker(tool) for tool in conversation.tools])
    if not remover.count:
        return conversation
    reason = f"cache markers are not accepted {ctx.rule('request.cache_markers')}"
    if ctx.profile.cache.style == "automatic":
        reason += f"; {why_no_markers(ctx.profile)}"
    ctx.report(
        "dropped",
        reason if remover.count == 1 else f"{reason} ({remover.count} times)",
        path="$",
        gravity="housekeeping",
    )
    return replace(conversation, turns=turns, tools=tools)


class _MarkerRemover:
    """Takes markers out, and counts them."""

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self.count = 0

    def turn(self, turn: Turn) -> Turn:
        blocks = self._blocks(turn.blocks)
        without_marker: Turn = self.without_marker(turn if blocks is turn.blocks else replace(turn, blocks=blocks))
        return without_marker

    def _blocks(self, blocks: tuple[Any, ...]) -> tuple[Any, ...]:
        kept = [self._block(block) for block in blocks if not (is_marker(block) and block.protocol == self._protocol)]
        self.count += len(blocks) - len(kept)
        is_same = len(kept) == len(blocks) and all(new is old for new, old in zip(kept, blocks, strict=True))
        return blocks if is_same else tuple(kept)

    def _block(self, block: Any) -> Any:
        if type(block) is ToolResult and type(block.content) is tuple:
            parts = self._blocks(block.content)
            block = block if parts is block.content else replace(block, content=parts)
        return self.without_marker(block)

    def without_marker(self, value: Any) -> Any:
        """A value without its own markers."""
        plain = without_markers(value, self._protocol)
        self.count += plain is not value
        return plain
