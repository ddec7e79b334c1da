"""Stable names for turns.

A turn's key is the caller's, or made from what the turn says, its native ids, and its number among equal
turns: `turn_<hash>.<n>`. It never depends on a position in a list, so it survives pruning and replay.

Law: whatever may differ between two requests without a change of meaning does not count: fields of one protocol
(`extra`), cache markers wherever they are, metadata, the issuer. A turn has the same identity before and after it was
added to a history.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import msgspec

from toolglot.conversation import (
    Block,
    Compaction,
    Media,
    Opaque,
    ServerTool,
    Text,
    Thinking,
    ToolCall,
    ToolChange,
    ToolMetadata,
    ToolReference,
    ToolResult,
    Turn,
)
from toolglot.conversation.cache_markers import is_marker, unmarked_value
from toolglot.conversation.ids import is_canonical

_MADE = re.compile(r"(turn_[A-Za-z0-9_-]{22})\.([0-9]{1,15})")
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def raw_id_of(written: str, metadata: ToolMetadata | None) -> str | None:
    """The native id of a call or result; None where it is missing or blank."""
    if metadata is not None and (metadata.raw_id is not None or is_canonical(written)):
        return metadata.raw_id
    return written if written and not written.isspace() else None


def identity(turn: Turn) -> bytes:
    """What a turn says, in a form that is equal for equal turns."""
    return msgspec.json.encode((turn.role, _blocks(turn.blocks)), order="deterministic")


def _blocks(blocks: Iterable[Block]) -> list[tuple[Any, ...]]:
    return [_block(block) for block in blocks if type(block) is not Opaque or not is_marker(block)]


def _block(block: Block) -> tuple[Any, ...]:
    if isinstance(block, Text):
        return ("text", block.text)
    if isinstance(block, ToolCall):
        raw_id = raw_id_of(block.id, block.metadata)
        named = block.name if block.namespace is None else [block.namespace, block.name]
        return ("call", raw_id, named, block.type, block.arguments, block.raw_input)
    if isinstance(block, ToolResult):
        content: Any = block.content
        if isinstance(content, tuple):
            content = _blocks(content)
        raw_id = raw_id_of(block.call_id, block.metadata)
        outcome = (
            block.is_error,
            block.is_complete,
            block.error,
            block.result,
            block.status,
            block.synthetic,
        )
        return ("result", raw_id, block.name, content, outcome, block.executed_arguments)
    if isinstance(block, Thinking):
        return ("thinking", block.text, block.signature, block.redacted)
    if isinstance(block, Media):
        return ("media", block.kind, block.media_type, block.data, block.url, block.file_id)
    if isinstance(block, ServerTool):
        return ("server", block.protocol, block.phase, block.name, block.id, unmarked_value(block.value))
    if isinstance(block, ToolReference):
        tool = block.definition
        defined = None if tool is None else (tool.description, tool.parameters, tool.type, tool.format)
        return ("tool", block.namespace, block.name, defined)
    if isinstance(block, ToolChange):
        return ("tools", [_block(tool) for tool in block.added], [_block(tool) for tool in block.removed])
    if isinstance(block, Compaction):
        return ("compaction", block.protocol, block.summary, block.data)
    return ("other", block.protocol, block.kind, unmarked_value(block.value))


class TurnKeys:
    """The keys that are taken, and the next free one for a turn."""

    __slots__ = ("_next", "_taken")

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}

    def take(self, key: str) -> None:
        """Mark a key as taken. Equal turns that come later get the next numbers."""
        self._taken.add(key)
        made = _MADE.fullmatch(key)
        if made is not None:
            self._next[made[1]] = max(self._next.get(made[1], 0), int(made[2]) + 1)

    def new(self, turn: Turn) -> str:
        digest = sha256(identity(turn)).digest()
        stem = "turn_" + b2a_base64(digest[:18], newline=False).translate(_URL_SAFE).decode()[:22]
        number = self._next.get(stem, 0)
        while f"{stem}.{number}" in self._taken:
            number += 1
        return f"{stem}.{number}"
