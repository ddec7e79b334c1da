"""Pieces of replies that a parser reads: a reply, a message, content blocks or a single call, each as one object."""

from __future__ import annotations

from collections.abc import Iterable

from toolglot.conversation import Block
from toolglot.protocols.cohere.messages import read_message
from toolglot.protocols.fields.reading import Fields, read_required


def read_fragment(fields: Fields) -> Iterable[Block]:
    """The blocks in a piece of a reply."""
    if "message" in fields:
        return read_required(fields, "message", read_fragment)
    if "function" in fields:
        fields = {"role": "assistant", "tool_calls": [fields]}
    return read_message(fields).blocks
