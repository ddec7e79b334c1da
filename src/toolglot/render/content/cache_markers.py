"""Marks that say how far a prompt is to be cached, where the target refuses them.

They come in messages of the target's own protocol: agents write them for one model or host and then ask another. What
they mark stays. Those of another protocol no codec writes.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import Block, Conversation, Extra, Media, Opaque, Text, ToolResult, ToolSpec, Turn
from toolglot.render.context import RenderContext

_FIELDS: Final = {
    "anthropic": frozenset({"cache_control"}),
    "openai_chat": frozenset({"cache_control"}),
    "bedrock": frozenset({"cachePoint"}),
}
"""The fields of values that are markers, by protocol."""
_BLOCKS: Final = {"bedrock": "cachePoint"}
"""The kind of a block that is nothing else."""


def is_marker(block: Block) -> bool:
    """Whether a block is nothing but a cache marker."""
    return type(block) is Opaque and _BLOCKS.get(block.protocol) == block.kind


def report_lost_marker(value: Block | ToolSpec, ctx: RenderContext) -> None:
    """Report a cache marker on something that is dropped."""
    is_field = any(
        not _FIELDS.get(protocol, frozenset()).isdisjoint(fields) for protocol, fields in (value.extra or {}).items()
    )
    if is_field or (value.form is not None and value.form.has_cache_markers):
        reason = "cache markers on what is left out went with it"
        if not any(entry.reason == reason for entry in ctx.entries):
            ctx.report("dropped", reason, path="$", gravity="housekeeping")


def drop_refused_markers(conversation: Conversation, ctx: RenderContext) -> Conversation:
    """The conversation without cache markers, if the target is known to refuse them."""
    rules, protocol = ctx.profile.request, ctx.profile.protocol
    if rules.cache_markers or rules.unknown_fields != "refused" or protocol not in _FIELDS:
        return conversation
    if not _may_be_marked(conversation, protocol):
        return conversation
    taking = _Taking(protocol)
    turns = tuple([taking.turn(turn) for turn in conversation.turns])
    tools = tuple([taking.without_marker(tool) for tool in conversation.tools])
    if not taking.count:
        return conversation
    reason = f"cache markers are not accepted {ctx.rule('request.cache_markers')}"
    ctx.report(
        "dropped", reason if taking.count == 1 else f"{reason} ({taking.count} times)", path="$", gravity="housekeeping"
    )
    return replace(conversation, turns=turns, tools=tools)


def _may_be_marked(conversation: Conversation, protocol: str) -> bool:
    """Whether there is something that more than a glance is needed for; most requests have nothing."""
    fields = _FIELDS[protocol]
    values: list[Turn | ToolSpec] = [*conversation.turns, *conversation.tools]
    for value in values:
        if value.extra is not None and not fields.isdisjoint(value.extra.get(protocol, ())):
            return True
        if value.form is not None and value.form.protocol == protocol and value.form.has_cache_markers:
            return True
    for turn in conversation.turns:
        for block in turn.blocks:
            if (block.extra is not None and protocol in block.extra) or type(block) is Opaque:
                return True
            if type(block) is ToolResult and type(block.content) is tuple and _has_own(block.content, protocol):
                return True
    return False


def _has_own(parts: tuple[Text | Media | Opaque, ...], protocol: str) -> bool:
    return any((part.extra is not None and protocol in part.extra) or type(part) is Opaque for part in parts)


class _Taking:
    """Takes markers out, and counts them."""

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self._fields = _FIELDS[protocol]
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
        """A value without fields that are markers."""
        form, own = value.form, value.extra.get(self._protocol) if value.extra is not None else None
        is_in_form = form is not None and form.protocol == self._protocol and form.has_cache_markers
        is_field = own is not None and not self._fields.isdisjoint(own)
        if not is_in_form and not is_field:
            return value
        self.count += 1
        if is_in_form:
            value = replace(value, form=form.without_cache_markers())
        if own is None or not is_field:
            return value
        kept = {field: said for field, said in own.items() if field not in self._fields}
        extra: Extra = {**value.extra, self._protocol: kept}
        return replace(value, extra=extra if kept or len(extra) > 1 else None)
