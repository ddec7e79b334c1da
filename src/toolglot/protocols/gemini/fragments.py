"""Pieces of replies that a parser reads: a reply, a message, content blocks or a single call, each as one object."""

from __future__ import annotations

from collections.abc import Iterable

from toolglot.conversation import Block
from toolglot.protocols.fields.reading import Fields, each, held_or_none, required
from toolglot.protocols.gemini.blocks import in_camel, read_part, read_parts


def read_fragment(original: Fields) -> Iterable[Block]:
    """The blocks in a piece of a reply."""
    fields: Fields = in_camel(original)[0]
    if "candidates" in fields:
        first = each(required(fields, "candidates", list)[:1], read_fragment, ".candidates")
        return [block for blocks in first for block in blocks]
    if "content" in fields:
        return held_or_none(fields, "content", read_fragment) or ()
    if "parts" in fields:
        return read_parts(fields)[0]
    if not fields.keys().isdisjoint({"finishReason", "usageMetadata", "modelVersion", "responseId", "role"}):
        return ()  # a part of a stream, or a reply that ended before it began
    return (read_part({"functionCall": fields} if "name" in fields else original),)
