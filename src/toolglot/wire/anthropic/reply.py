"""Replies of the Anthropic Messages protocol, both ways."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Reply, StopReason, Turn, Usage
from toolglot.errors import InputError
from toolglot.wire.anthropic.blocks import PROTOCOL, read_block, write_blocks
from toolglot.wire.reading import (
    Fields,
    each,
    inside,
    leftover,
    note,
    noted,
    one_of,
    optional,
    present,
    required,
    restored,
)
from toolglot.wire.stop_reason import derived

_BODY = frozenset({"id", "type", "role", "model", "content", "stop_reason", "usage"})
_USAGE = frozenset({"input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"})

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


def decode(body: Fields) -> Reply:
    """A reply's body. Why it ended is derived from the calls that are in it; what it said is kept."""
    try:
        one_of(body, "type", {"message": True})
        one_of(body, "role", {"assistant": True})
        blocks = tuple(each(required(body, "content", list), read_block, ".content"))
        said = optional(body, "stop_reason", str)
        turn = Turn("assistant", blocks)
        return Reply(
            turn,
            stop_of(said, has_calls=bool(turn.calls)),
            _read_usage(body),
            required(body, "id", str),
            required(body, "model", str),
            noted(leftover(body, _BODY, PROTOCOL), PROTOCOL, stop_reason=said),
        )
    except InputError as error:
        raise inside(error, "$") from None


def stop_of(said: str | None, *, has_calls: bool) -> StopReason | None:
    """Why a reply ended, by what is in it rather than by what it says."""
    if said is None:
        return None
    return derived(_STOPS.get(said, "stop"), has_calls=has_calls)


def _read_usage(body: Fields) -> Usage | None:
    fields = optional(body, "usage", dict)
    if fields is None:
        return None
    try:
        fresh = optional(fields, "input_tokens", int)
        read = optional(fields, "cache_read_input_tokens", int)
        written = optional(fields, "cache_creation_input_tokens", int)
        return Usage(
            None if fresh is None else fresh + (read or 0) + (written or 0),
            optional(fields, "output_tokens", int),
            read,
            written,
            extra=leftover(fields, _USAGE, PROTOCOL),
        )
    except InputError as error:
        raise inside(error, ".usage") from None


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
        body["usage"] = _write_usage(reply.usage)
    return restored(body, reply.extra, PROTOCOL)


def _write_usage(usage: Usage) -> Fields:
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    fields = {
        "input_tokens": None if usage.input_tokens is None else usage.input_tokens - cached,
        "output_tokens": usage.output_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
    }
    return restored(present(fields), usage.extra, PROTOCOL)
