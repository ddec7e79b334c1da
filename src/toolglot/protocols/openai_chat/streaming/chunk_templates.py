"""Chunks that differ from the one before them in one string only: more text, or more arguments.

Most chunks of most servers do. If everything around the string is the same, byte for byte, only the string is parsed.
Law: the result is the same as that of parsing the whole chunk.
"""

from __future__ import annotations

from typing import Final

import msgspec

from toolglot.protocols.openai_chat.streaming.chunks import Delta

TEXT: Final = -1
"""In place of a call's index: the string is text."""
_TRIES: Final = 8
"""Chunks without a match, after which no more templates are made: some servers pad each chunk with random bytes."""

decode_text: Final = msgspec.json.Decoder(str).decode


class ChunkTemplate:
    """The bytes around the string of a chunk."""

    __slots__ = ("after", "before", "index", "left", "right")

    def __init__(self, before: bytes, after: bytes, index: int) -> None:
        self.before: bytes = before
        self.after: bytes = after
        self.left: int = len(before)
        self.right: int = len(after)
        self.index: int = index


class TemplateMaker:
    """Makes templates of chunks that were parsed whole."""

    __slots__ = ("_tries",)

    def __init__(self) -> None:
        self._tries = _TRIES

    def make(self, data: bytes, delta: Delta) -> ChunkTemplate | None:
        """The template of a chunk that holds one plain string; None for others, or after too many without a match."""
        if self._tries == 0:
            return None
        self._tries -= 1
        entries = delta.tool_calls
        if delta.reasoning or delta.reasoning_content or delta.refusal or delta.reasoning_details is not None:
            return None
        if entries is None:
            return _split(data, b'"content":', delta.content, TEXT) if delta.role is None else None
        if len(entries) != 1 or delta.content is not None:
            return None
        entry = entries[0]
        if entry.function is None or entry.function.name is not None or entry.id is not None or entry.index is None:
            return None
        return _split(data, b'"arguments":', entry.function.arguments, entry.index)

    def note_match(self) -> None:
        """Note that a chunk matched its template."""
        self._tries = _TRIES


def _split(data: bytes, key: bytes, text: str | None, index: int) -> ChunkTemplate | None:
    if not text or not text.isascii() or index < TEXT:
        return None
    written = b'"' + text.encode() + b'"'
    start = data.find(key) + len(key)
    before, after = data[:start], data[start + len(written) :]
    if data[start : start + len(written)] != written or key in after or before.count(key) != 1:
        return None
    return ChunkTemplate(before, after, index)
