"""Chunks that differ from the one before them in one string alone: more text, or more arguments.

Most chunks of most servers do. Where everything around the string is the same to the byte, only the string has to be
read. Law: what is read so is what reading the whole chunk would give.
"""

from __future__ import annotations

from typing import Final

import msgspec

from toolglot.protocols.openai_chat.stream_chunks import Delta

TEXT: Final = -1
"""In place of a call's index: the string is text."""
_TRIES: Final = 8
"""Chunks that may be unlike the one before them until nobody looks any more: some servers pad each one at random."""

decode_text: Final = msgspec.json.Decoder(str).decode


class ChunkShape:
    """What stands around the string of a chunk."""

    __slots__ = ("after", "before", "index", "left", "right")

    def __init__(self, before: bytes, after: bytes, index: int) -> None:
        self.before: bytes = before
        self.after: bytes = after
        self.left: int = len(before)
        self.right: int = len(after)
        self.index: int = index


class Shapes:
    """Learns the shape of chunks as they are read whole."""

    __slots__ = ("_tries",)

    def __init__(self) -> None:
        self._tries = _TRIES

    def of(self, data: bytes, delta: Delta) -> ChunkShape | None:
        """The shape of a chunk that says one plain string; None if it says more, or nobody looks any more."""
        if self._tries == 0:
            return None
        self._tries -= 1
        entries = delta.tool_calls
        if delta.reasoning or delta.reasoning_content or delta.refusal or delta.reasoning_details is not None:
            return None
        if entries is None:
            return _around(data, b'"content":', delta.content, TEXT) if delta.role is None else None
        if len(entries) != 1 or delta.content is not None:
            return None
        entry = entries[0]
        if entry.function is None or entry.function.name is not None or entry.id is not None or entry.index is None:
            return None
        return _around(data, b'"arguments":', entry.function.arguments, entry.index)

    def was_same(self) -> None:
        """A chunk had the shape of the one before it."""
        self._tries = _TRIES


def _around(data: bytes, key: bytes, text: str | None, index: int) -> ChunkShape | None:
    if not text or not text.isascii() or index < TEXT:
        return None
    written = b'"' + text.encode() + b'"'
    start = data.find(key) + len(key)
    before, after = data[:start], data[start + len(written) :]
    if data[start : start + len(written)] != written or key in after or before.count(key) != 1:
        return None
    return ChunkShape(before, after, index)
