"""Canonical blocks as the page shows them: text that is cut, ids on both sides, no media data.

Law: everything is a string, a number or a list of such: nothing that came from a client or a model is more than text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from toolglot.conversation import (
    Compaction,
    Conversation,
    Media,
    Opaque,
    ServerTool,
    Text,
    Thinking,
    ToolCall,
    ToolChange,
    ToolReference,
    ToolResult,
    Turn,
)

MAX_TEXT: Final = 20_000
MAX_BLOCKS: Final = 2_000
"""Blocks of a turn that are shown."""
PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Types of media that a page may show."""

Block = dict[str, Any]


class SentCall(Struct, frozen=True):
    """How a call is known on the other sides."""

    canonical: str
    sent_id: str | None
    sent_name: str | None


class CallNames:
    """The ids and names of calls: by the client's id."""

    def __init__(self) -> None:
        self._calls: dict[str, SentCall] = {}

    def add(self, client_id: str, call: SentCall) -> None:
        self._calls.setdefault(client_id, call)

    def of(self, client_id: str) -> SentCall:
        return self._calls.get(client_id) or SentCall(client_id, None, None)

    @property
    def sent_ids(self) -> dict[str, str]:
        """By the client's ids."""
        return {id: call.sent_id for id, call in self._calls.items() if call.sent_id}


class BlockWriter:
    """Writes the blocks of a conversation. Media are numbered through all of it."""

    def __init__(self, names: CallNames, *, max_media: int = 0) -> None:
        """`max_media`: characters of base64 up to which pictures are written too."""
        self._names = names
        self._max_media = max_media
        self.media: list[Media] = []

    def turn(self, turn: Turn) -> list[Block]:
        """The blocks of a turn."""
        blocks = [self._block(block) for block in turn.blocks[:MAX_BLOCKS]]
        if len(turn.blocks) > MAX_BLOCKS:
            blocks.append({"kind": "opaque", **cut_text(f"{len(turn.blocks) - MAX_BLOCKS} more blocks"), "marks": []})
        return blocks

    def _block(self, block: Any) -> Block:
        return {**self._fields(block), "marks": []}

    def _fields(self, block: Any) -> Block:
        if isinstance(block, Text):
            return {"kind": "text", **cut_text(block.text), **({"is_refusal": True} if block.is_refusal else {})}
        if isinstance(block, Thinking):
            text = block.text or ("(redacted)" if block.redacted else "")
            return {"kind": "thinking", **cut_text(text), "is_signed": bool(block.signature or block.redacted)}
        if isinstance(block, ToolCall):
            return self._call(block)
        if isinstance(block, ToolResult):
            return self._result(block)
        if isinstance(block, Media):
            return self._media(block)
        if isinstance(block, ServerTool):
            about = {"name": block.name or None, "client_id": block.id or None}
            return {"kind": "server_tool", **cut_text(_json(block.value)), **about}
        if isinstance(block, Compaction):
            return {"kind": "compaction", **cut_text(block.summary or "(encrypted)")}
        if isinstance(block, ToolReference):
            return {"kind": "tool_reference", **cut_text(""), "name": block.name}
        if isinstance(block, ToolChange):
            lines = [*(f"+ {tool.name}" for tool in block.added), *(f"- {tool.name}" for tool in block.removed)]
            return {"kind": "tool_change", **cut_text("\n".join(lines))}
        if isinstance(block, Opaque):
            return {"kind": "opaque", **cut_text(block.text or _json(block.value)), "name": block.kind or None}
        return {"kind": "opaque", **cut_text(_json(block))}

    def _call(self, call: ToolCall) -> Block:
        sent = self._names.of(call.id)
        text = call.raw_input if call.arguments is None else _json(call.arguments)
        return {
            "kind": "call",
            **cut_text(text or ""),
            "id": sent.canonical or None,
            "client_id": call.id or None,
            "sent_id": sent.sent_id,
            "name": call.name,
            "sent_name": sent.sent_name,
            "arguments": call.arguments if text is not None and len(text) <= MAX_TEXT else None,
        }

    def _result(self, result: ToolResult) -> Block:
        sent = self._names.of(result.call_id)
        parts = result.content if isinstance(result.content, tuple) else ()
        text = result.content if isinstance(result.content, str) else _joined(parts)
        return {
            "kind": "result",
            **cut_text(text or result.error or ""),
            "id": sent.canonical or None,
            "client_id": result.call_id or None,
            "sent_id": sent.sent_id,
            "name": result.name or None,
            "is_error": result.is_error,
            "parts": [self._block(part) for part in parts if not isinstance(part, Text)][:100],
        }

    def _media(self, media: Media) -> Block:
        self.media.append(media)
        size = len(media.data) * 3 // 4 if media.data else None
        about: Block = {"media": len(self.media) - 1, "media_type": media.media_type or None, "size": size}
        if media.data and len(media.data) <= self._max_media and media.media_type in PICTURES:
            about["data"] = media.data
        return {"kind": "media", **cut_text(media.name or media.url or media.file_id or media.kind), **about}


def _joined(parts: Iterable[Any]) -> str:
    return "\n".join([part.text for part in parts if isinstance(part, Text)])


def cut_text(text: str) -> Block:
    """A text, cut, and how much is missing."""
    return {"text": text} if len(text) <= MAX_TEXT else {"text": text[:MAX_TEXT], "cut": len(text) - MAX_TEXT}


def _json(value: Any) -> str:
    """A value as JSON, for people."""
    try:
        text = json.dumps(value, ensure_ascii=False, indent=None, default=str)
    except (ValueError, TypeError, RecursionError):
        return "(nests too deeply to be shown)"
    return text


def tools_of(conversation: Conversation, sent_names: Mapping[str, str]) -> list[dict[str, Any]]:
    """The tools of a request."""
    return [
        {
            "name": tool.name,
            "description": (tool.description or "")[:MAX_TEXT],
            "type": tool.type,
            "namespace": tool.namespace,
            "sent_as": sent_names.get(tool.name),
        }
        for tool in conversation.tools[:MAX_BLOCKS]
    ]


def media_of(conversation: Conversation) -> list[Media]:
    """All media of a conversation, in the order of `BlockWriter`."""
    writer = BlockWriter(CallNames())
    for turn in conversation.turns:
        writer.turn(turn)
    return writer.media
