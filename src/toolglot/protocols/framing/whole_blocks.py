"""Blocks that a provider sends at once, said to a sequence as if they had come in pieces."""

from __future__ import annotations

from toolglot.conversation import Block, ToolCall
from toolglot.conversation.reply_events import opening, spoken
from toolglot.protocols.framing.sequence import Sequence


def call_as_known(call: ToolCall, _written: str) -> ToolCall:
    """A call of a sequence in which all calls come whole: what is known of it is all of it."""
    return call


def say_block(sequence: Sequence, block: Block, *, cut: bool = False) -> None:
    """A whole block: its beginning, its text in one piece, its end. One that is cut is not to be used."""
    key, text = object(), spoken(block)[0]
    sequence.open(key, opening(block))
    if text:
        sequence.add(key, text)
    sequence.update(key, block)
    sequence.close(key, cut=cut)
