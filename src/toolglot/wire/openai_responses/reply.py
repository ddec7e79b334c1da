"""Replies of the OpenAI Responses protocol, both ways."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Opaque, Reply, StopReason, Turn, Usage
from toolglot.wire.openai_responses.items import ItemWriter, read_model_item
from toolglot.wire.openai_responses.parts import OUTPUT, PROTOCOL, is_part
from toolglot.wire.reading import (
    Fields,
    each,
    from_root,
    held_or_none,
    leftover,
    note,
    noted,
    optional,
    present,
    required,
    restored,
    with_rest,
)
from toolglot.wire.token_counts import read_detail

_BODY = frozenset({"id", "model", "output", "status", "usage"})
_USAGE = frozenset({"input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details"})

_STOPS: Final[dict[str, StopReason]] = {
    "completed": "stop",
    "incomplete": "length",
    "failed": "error",
    "cancelled": "error",
    "queued": "pause",
    "in_progress": "pause",
}
_CUT: Final[dict[str, StopReason]] = {"max_output_tokens": "length", "content_filter": "filter"}
_STOPS_BACK: Final[dict[StopReason, str]] = {
    "stop": "completed",
    "tool_calls": "completed",
    "length": "incomplete",
    "filter": "incomplete",
    "pause": "in_progress",
    "error": "failed",
}
_CUT_BACK: Final = {reason: written for written, reason in _CUT.items()}


@from_root
def decode(body: Fields) -> Reply:
    """A response object. Why it ended is derived from the calls that are in it; what it said is kept."""
    items = each(required(body, "output", list), read_model_item, ".output")
    turn = Turn("assistant", tuple(block for blocks in items for block in blocks))
    said = optional(body, "status", str)
    cut_by = held_or_none(body, "incomplete_details", lambda details: optional(details, "reason", str))
    return Reply(
        turn,
        stop_of(said, cut_by, turn),
        held_or_none(body, "usage", _read_usage),
        required(body, "id", str),
        required(body, "model", str),
        noted(leftover(body, _BODY, PROTOCOL), PROTOCOL, read=True, status=said),
    )


def stop_of(said: str | None, cut_by: str | None, turn: Turn) -> StopReason | None:
    """Why a reply ended, by what is in it rather than by what it says. No status tells of calls."""
    if said is None:
        return None
    reason = _STOPS.get(said, "stop")
    if reason == "length":
        return _CUT.get(cut_by or "", reason)
    if reason != "stop":
        return reason
    if turn.calls:
        return "tool_calls"
    refused = any(isinstance(block, Opaque) and block.kind == "refusal" and is_part(block) for block in turn.blocks)
    return "filter" if refused else "stop"


def _read_usage(fields: Fields) -> Usage:
    cached, input_rest = read_detail(fields, "input_tokens_details", "cached_tokens")
    thought, output_rest = read_detail(fields, "output_tokens_details", "reasoning_tokens")
    extra = leftover(fields, _USAGE, PROTOCOL)
    return Usage(
        optional(fields, "input_tokens", int),
        optional(fields, "output_tokens", int),
        cache_read_tokens=cached,
        reasoning_tokens=thought,
        extra=noted(extra, PROTOCOL, read=True, input_details=input_rest, output_details=output_rest),
    )


# --- writing ----------------------------------------------------------------------------------------


def encode(reply: Reply) -> Fields:
    """A reply as a response object that a client of this protocol reads."""
    writer = ItemWriter((reply.turn,))
    writer.write(reply.turn)
    body: Fields = {"id": reply.id, "model": reply.model, "output": writer.items}
    if note(reply.extra, PROTOCOL, "read"):
        status = note(reply.extra, PROTOCOL, "status")
    else:
        status = _STOPS_BACK[reply.stop] if reply.stop is not None else None
        cut_by = _CUT_BACK.get(reply.stop) if reply.stop is not None else None
        body["object"] = "response"
        body["incomplete_details"] = None if cut_by is None else {"reason": cut_by}
        body["output"] = _completed(reply, writer.items, "incomplete" if cut_by is not None else "completed")
    if status is not None:
        body["status"] = status
    if reply.usage is not None:
        body["usage"] = _write_usage(reply.usage)
    return restored(body, reply.extra, PROTOCOL)


def _completed(reply: Reply, items: list[Fields], status: str) -> list[Fields]:
    """The items with what clients expect of a message in a reply, where it was made elsewhere."""
    stem = f"msg_{reply.id.removeprefix('resp_')}"
    return [
        {"id": f"{stem}_{index}", "status": status, **item, "content": [_annotated(part) for part in item["content"]]}
        if item.get("type") == "message" and item.get("role") == "assistant" and type(item.get("content")) is list
        else item
        for index, item in enumerate(items)
    ]


def _annotated(part: Fields) -> Fields:
    return {"annotations": [], **part} if part["type"] == OUTPUT else part


def _write_usage(usage: Usage) -> Fields:
    fields: Fields = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    parts = (
        ("input_tokens_details", "input_details", "cached_tokens", usage.cache_read_tokens),
        ("output_tokens_details", "output_details", "reasoning_tokens", usage.reasoning_tokens),
    )
    if not note(usage.extra, PROTOCOL, "read"):
        # The protocol always has these counts: what the provider did not say is 0.
        counts: Fields = {key: count or 0 for key, count in fields.items()}
        counts["total_tokens"] = sum(counts.values())
        counts.update({key: {name: count or 0} for key, _, name, count in parts})
        return counts
    for key, rest_note, name, count in parts:
        if count is not None or note(usage.extra, PROTOCOL, rest_note) is not None:
            fields[key] = with_rest({} if count is None else {name: count}, usage.extra, PROTOCOL, rest_note)
    return restored(present(fields), usage.extra, PROTOCOL)
