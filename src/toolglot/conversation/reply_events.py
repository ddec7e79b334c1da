"""The stream events of a complete reply.

For clients that want a stream of a reply that came as a whole, and for the simulator.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from toolglot.conversation.events import (
    BlockEnded,
    BlockStarted,
    Event,
    Finished,
    InputDelta,
    MediaDelta,
    Started,
    TextDelta,
    ThinkingDelta,
    Used,
)
from toolglot.conversation.values import Block, Media, Reply, Text, Thinking, ToolCall
from toolglot.jsontext import compact

PIECE: Final = 24
"""The number of characters in a delta."""


def of_reply(reply: Reply, *, piece: int = PIECE) -> Iterator[Event]:
    """The events of a reply, with deltas of `piece` characters."""
    yield Started(reply.id, reply.model, reply.extra, reply.form)
    for block in reply.turn.blocks:
        yield from of_block(block, piece=piece)
    if reply.usage is not None:
        yield Used(reply.usage)
    yield Finished(
        reply.stop or ("tool_calls" if reply.turn.calls else "stop"),
        turn_extra=reply.turn.extra,
        turn_form=reply.turn.form,
        malformed=reply.malformed,
    )


def of_block(block: Block, *, cut: bool = False, piece: int = PIECE) -> Iterator[Event]:
    """The events of one block."""
    yield BlockStarted(opening_block(block))
    text, delta = delta_text(block)
    for start in range(0, len(text), piece):
        yield delta(text[start : start + piece])
    yield BlockEnded(block, cut)


def opening_block(block: Block) -> Block:
    """What is known of a block when it starts."""
    if isinstance(block, Text):
        return Text("", extra=block.extra, form=block.form, is_refusal=block.is_refusal)
    if isinstance(block, Thinking):
        return Thinking(id=block.id, extra=block.extra, form=block.form)
    if isinstance(block, ToolCall):
        return replace(block, arguments=None, raw_input=None)
    if isinstance(block, Media) and block.data:
        return replace(block, data="")
    return block


def delta_text(block: Block) -> tuple[str, type[TextDelta] | type[ThinkingDelta] | type[InputDelta] | type[MediaDelta]]:
    """The text that the deltas of a block add up to, and the type of the deltas."""
    if isinstance(block, Text):
        return block.text, TextDelta
    if isinstance(block, Thinking):
        return block.text, ThinkingDelta
    if isinstance(block, ToolCall):
        return input_text(block), InputDelta
    return (block.data or "") if isinstance(block, Media) else "", MediaDelta


def input_text(call: ToolCall) -> str:
    """The arguments of a call as text, as in its deltas."""
    return call.raw_input if call.raw_input is not None else compact(call.arguments or {})
