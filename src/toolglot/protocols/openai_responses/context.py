"""What a request of the OpenAI Responses protocol wants to be done to its context.

An item `compaction_trigger` at the end compacts at once, and so does the endpoint `/responses/compact`;
`context_management` compacts above a threshold. The messages of users before a compaction item still count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import Compaction, Conversation, Opaque, Turn, Usage
from toolglot.conversation.context_requests import CompactionRequest, ContextRequest
from toolglot.conversation.plausible_usage import COUNTS
from toolglot.protocols.context_form import ContextForm
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.openai_responses.form import PROTOCOL
from toolglot.protocols.openai_responses.items import write_compaction

_FIELD: Final = "context_management"
_TRIGGER: Final = "compaction_trigger"
_DEFAULT_TOKENS: Final = 200_000
"""The threshold of a request that names none; OpenAI does not say its own."""


def read(conversation: Conversation) -> ContextRequest | None:
    """What the request wants; None: nothing."""
    last = conversation.turns[-1].blocks if conversation.turns else ()
    if last and _is_trigger(last[-1]):
        return ContextRequest(CompactionRequest(stops_after=True))
    listed = (conversation.extra or {}).get(PROTOCOL, {}).get(_FIELD)
    if type(listed) is not list or not listed:
        return None
    entries = [entry for entry in listed if type(entry) is dict]
    unknown = tuple(str(entry.get("type"))[:80] for entry in entries if entry.get("type") != "compaction")
    found = next((entry for entry in entries if entry.get("type") == "compaction"), None)
    if found is None:
        return ContextRequest(unknown=unknown)
    threshold = found.get("compact_threshold")
    return ContextRequest(CompactionRequest(threshold if type(threshold) is int else _DEFAULT_TOKENS), unknown=unknown)


def _is_trigger(block: object) -> bool:
    return type(block) is Opaque and block.protocol == PROTOCOL and block.kind == _TRIGGER


def without(conversation: Conversation) -> Conversation:
    """The conversation without those wishes."""
    turns = [_without_triggers(turn) for turn in conversation.turns]
    extra = conversation.extra or {}
    own = {field: value for field, value in extra.get(PROTOCOL, {}).items() if field != _FIELD}
    others = {protocol: fields for protocol, fields in extra.items() if protocol != PROTOCOL}
    return replace(
        conversation,
        turns=tuple(turn for turn in turns if turn is not None),
        extra=({**others, PROTOCOL: own} if own else others) or None,
    )


def _without_triggers(turn: Turn) -> Turn | None:
    if not any(map(_is_trigger, turn.blocks)):
        return turn
    blocks = tuple([block for block in turn.blocks if not _is_trigger(block)])
    return replace(turn, blocks=blocks) if blocks else None


def compacted_body(request: Mapping[str, Any], block: Compaction, usage: Fields, *, id: str, created: int) -> Fields:
    """The reply of `/responses/compact`: the messages of users, and the compaction that stands for all else."""
    given = request.get("input")
    items = given if type(given) is list else [{"role": "user", "content": given}] if type(given) is str else []
    kept = [
        _output_message(item, f"msg_{id}_{index}")
        for index, item in enumerate(items)
        if type(item) is dict and item.get("type", "message") == "message" and item.get("role") == "user"
    ]
    return {
        "id": f"resp_{id}",
        "object": "response.compaction",
        "created_at": created,
        "output": [*kept, write_compaction(block)],
        "usage": usage,
    }


def _output_message(item: Fields, id: str) -> Fields:
    content = item.get("content")
    parts = [{"type": "input_text", "text": content}] if type(content) is str else content
    return {"id": id, "type": "message", "status": "completed", **item, "content": parts}


def compacted_usage(usage: Usage | None, summarised: Usage, *, goes_on: bool) -> Usage:  # noqa: ARG001
    """The counts of both, added up."""
    if usage is None:
        return summarised
    counts = {name: _sum(getattr(usage, name), getattr(summarised, name)) for name in COUNTS}
    return replace(usage, **counts)


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)


CONTEXT: Final = ContextForm(
    read=read,
    without=without,
    usage=compacted_usage,
    usage_is_total=True,
    keeps_prompts=True,
    compact_path="/responses/compact",
    compacted_body=compacted_body,
)
