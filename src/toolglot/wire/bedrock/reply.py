"""Replies of the Bedrock Converse protocol, both ways."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Reply, StopReason, Turn, Usage
from toolglot.errors import InputError
from toolglot.wire.bedrock.blocks import PROTOCOL, read_block, write_blocks
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

_BODY = frozenset({"output", "stopReason", "usage"})
_OUTPUT = frozenset({"message"})
_MESSAGE = frozenset({"role", "content"})
_USAGE = frozenset({"inputTokens", "outputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"})

_STOPS: Final[dict[str, StopReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "filter",
    "content_filtered": "filter",
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
}
_STOPS_BACK: Final[dict[StopReason, str]] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "filter": "content_filtered",
    "pause": "end_turn",
    "error": "malformed_model_output",
}


def decode(body: Fields) -> Reply:
    """A reply's body. Why it ended is derived from the calls that are in it; what it said is kept."""
    try:
        output = required(body, "output", dict)
        turn = _read_output(output)
        said = optional(body, "stopReason", str)
        rest = leftover(output, _OUTPUT, PROTOCOL)
        return Reply(
            turn,
            stop_of(said, has_calls=bool(turn.calls)),
            _read_usage(body),
            extra=noted(
                leftover(body, _BODY, PROTOCOL),
                PROTOCOL,
                stop_reason=said,
                output=rest[PROTOCOL] if rest else None,
            ),
        )
    except InputError as error:
        raise inside(error, "$") from None


def _read_output(output: Fields) -> Turn:
    try:
        message = required(output, "message", dict)
        try:
            one_of(message, "role", {"assistant": True})
            blocks = each(required(message, "content", list), read_block, ".content")
        except InputError as error:
            raise inside(error, ".message") from None
    except InputError as error:
        raise inside(error, ".output") from None
    return Turn("assistant", tuple(blocks), extra=leftover(message, _MESSAGE, PROTOCOL))


def stop_of(said: str | None, *, has_calls: bool) -> StopReason | None:
    """Why a reply ended, by what is in it rather than by what it says."""
    if said is None:
        return None
    return derived(_STOPS.get(said, "error" if said.startswith("malformed_") else "stop"), has_calls=has_calls)


def _read_usage(body: Fields) -> Usage | None:
    fields = optional(body, "usage", dict)
    if fields is None:
        return None
    try:
        fresh = optional(fields, "inputTokens", int)
        read = optional(fields, "cacheReadInputTokens", int)
        written = optional(fields, "cacheWriteInputTokens", int)
        return Usage(
            None if fresh is None else fresh + (read or 0) + (written or 0),
            optional(fields, "outputTokens", int),
            read,
            written,
            extra=noted(leftover(fields, _USAGE, PROTOCOL), PROTOCOL, own=True),
        )
    except InputError as error:
        raise inside(error, ".usage") from None


def encode(reply: Reply) -> Fields:
    """A reply as a body that a Bedrock client reads."""
    message: Fields = {"role": "assistant", "content": write_blocks(reply.turn.blocks)}
    output: Fields = {"message": restored(message, reply.turn.extra, PROTOCOL)}
    rest = note(reply.extra, PROTOCOL, "output") or {}
    body: Fields = {"output": restored(output, {PROTOCOL: rest}, PROTOCOL)}
    if reply.stop is not None:
        said = note(reply.extra, PROTOCOL, "stop_reason")
        meant = stop_of(said, has_calls=bool(reply.turn.calls))
        body["stopReason"] = said if meant == reply.stop else _STOPS_BACK[reply.stop]
    if reply.usage is not None:
        body["usage"] = _write_usage(reply.usage)
    return restored(body, reply.extra, PROTOCOL)


def _write_usage(usage: Usage) -> Fields:
    """The counts; for usage from elsewhere with the total that every client expects."""
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    fields = {
        "inputTokens": None if usage.input_tokens is None else usage.input_tokens - cached,
        "outputTokens": usage.output_tokens,
        "cacheReadInputTokens": usage.cache_read_tokens,
        "cacheWriteInputTokens": usage.cache_write_tokens,
    }
    if not note(usage.extra, PROTOCOL, "own"):
        fields["totalTokens"] = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    return restored(present(fields), usage.extra, PROTOCOL)
