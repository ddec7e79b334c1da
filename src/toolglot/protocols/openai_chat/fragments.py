"""Pieces of replies that a parser reads: a reply, a message, content blocks or a single call, each as one object."""

from __future__ import annotations

from collections.abc import Iterable

from toolglot.conversation import Block
from toolglot.protocols.fields.reading import Fields, each, held_or_none, read_required, required, unknown_fragment
from toolglot.protocols.openai_chat.blocks import read_call
from toolglot.protocols.openai_chat.messages import read_assistant


def read_fragment(fields: Fields) -> Iterable[Block]:
    """The blocks in a piece of a reply."""
    if "choices" in fields:
        first = each(required(fields, "choices", list)[:1], read_fragment, ".choices")
        return [block for blocks in first for block in blocks]
    if "message" in fields:
        return read_required(fields, "message", _read_message)
    if not fields.keys().isdisjoint({"role", "content", "tool_calls", "function_call"}):
        return _read_message(fields)
    if fields.keys().isdisjoint({"type", "function", "custom"}):
        raise unknown_fragment("a reply with choices, a message, or a tool call")
    return (read_call(fields),)


def _read_message(fields: Fields) -> Iterable[Block]:
    if fields.get("role", "assistant") != "assistant":
        return ()
    turn = read_assistant(fields)
    call = held_or_none(fields, "function_call", lambda inner: read_fragment({"type": "function", "function": inner}))
    return (*turn.blocks, *(call or ()))  # the one call that a message had before there were lists of them
