"""Replies of the Anthropic Messages protocol, both ways."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Reply, StopReason, Turn, Usage
from toolglot.wire.anthropic.blocks import PROTOCOL, read_block, write_blocks
from toolglot.wire.reading import (
    Fields,
    each,
    from_root,
    held_or_none,
    leftover,
    note,
    noted,
    one_of,
    optional,
    required,
    restored,
)
from toolglot.wire.stop_reason import meant_by
from toolglot.wire.token_counts import CountNames, read_split, write_split

_BODY = frozenset({"id", "type", "role", "model", "content", "stop_reason", "usage"})
_COUNTS: Final = CountNames("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_USAGE = frozenset(_COUNTS)

_STOPS: Final[dict[str, StopReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filter",
    "pause_turn": "pause",
}
_STOPS_BACK: Final[dict[StopReason, str]] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "filter": "refusal",
    "pause": "pause_turn",
    "error": "end_turn",
}


@from_root
def decode(body: Fields) -> Reply:
    """A reply's body. Why it ended is derived from the calls that are in it; what it said is kept."""
    one_of(body, "type", {"message": True})
    one_of(body, "role", {"assistant": True})
    turn = Turn("assistant", tuple(each(required(body, "content", list), read_block, ".content")))
    said = optional(body, "stop_reason", str)
    return Reply(
        turn,
        stop_of(said, has_calls=bool(turn.calls)),
        held_or_none(body, "usage", _read_usage),
        required(body, "id", str),
        required(body, "model", str),
        noted(leftover(body, _BODY, PROTOCOL), PROTOCOL, stop_reason=said),
    )


def stop_of(said: str | None, *, has_calls: bool) -> StopReason | None:
    """Why a reply ended, by what is in it rather than by what it says."""
    return meant_by(said, _STOPS, has_calls=has_calls)


def _read_usage(fields: Fields) -> Usage:
    return read_split(fields, _COUNTS, leftover(fields, _USAGE, PROTOCOL))


def encode(reply: Reply) -> Fields:
    """A reply as a body that an Anthropic client reads."""
    body: Fields = {
        "id": reply.id,
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": write_blocks(reply.turn.blocks),
    }
    said = note(reply.extra, PROTOCOL, "stop_reason")
    if said is None and reply.stop is not None:
        said = _STOPS_BACK[reply.stop]
    if said is not None:
        body["stop_reason"] = said
    if reply.usage is not None:
        body["usage"] = restored(write_split(reply.usage, _COUNTS), reply.usage.extra, PROTOCOL)
    return restored(body, reply.extra, PROTOCOL)
