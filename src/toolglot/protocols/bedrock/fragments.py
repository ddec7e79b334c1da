"""Pieces of replies that a parser reads: a reply, a message, content blocks or a single call, each as one object."""

from __future__ import annotations

from collections.abc import Iterable

from toolglot.conversation import Block
from toolglot.protocols.bedrock.blocks import read_block
from toolglot.protocols.fields.reading import Fields, each, read_required, required


def read_fragment(fields: Fields) -> Iterable[Block]:
    """The blocks in a piece of a reply."""
    for key in ("output", "message"):
        if key in fields:
            return read_required(fields, key, read_fragment)
    if "content" in fields:
        return each(required(fields, "content", list), read_block, ".content")
    return (read_block({"toolUse": fields} if "toolUseId" in fields else fields),)
