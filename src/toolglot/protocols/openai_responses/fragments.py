"""Pieces of replies that a parser reads: a reply, a message, content blocks or a single call, each as one object."""

from __future__ import annotations

from collections.abc import Iterable

from toolglot.conversation import Block
from toolglot.protocols.fields.reading import Fields, each, required, unknown_fragment
from toolglot.protocols.openai_responses.items import read_model_item


def read_fragment(fields: Fields) -> Iterable[Block]:
    """The blocks in a piece of a reply."""
    if "output" in fields and "call_id" not in fields:
        items = each(required(fields, "output", list), read_model_item, ".output")
        return [block for blocks in items for block in blocks]
    if fields.keys().isdisjoint({"type", "role"}):
        raise unknown_fragment("a response with output, or an item of one")
    return read_model_item(fields)
