"""Replies of the Bedrock Converse protocol, both ways."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Reply, StopReason, Turn, Usage
from toolglot.protocols.bedrock.blocks import PROTOCOL, read_block, write_reply
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    from_root,
    held,
    held_or_none,
    leftover,
    note,
    noted,
    one_of,
    optional,
    required,
    rest_of,
    restored,
    with_rest,
)
from toolglot.protocols.fields.stop_reason import meant_by, word_for
from toolglot.protocols.fields.token_counts import CountNames, read_split, write_split

_BODY = frozenset({"output", "stopReason", "usage"})
_OUTPUT = frozenset({"message"})
_MESSAGE = frozenset({"role", "content"})
_COUNTS: Final = CountNames("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
_USAGE = frozenset(_COUNTS)

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


@from_root
def decode(body: Fields) -> Reply:
    """A reply's body. Why it ended is derived from the calls that are in it; what it said is kept."""
    turn, rest = held(body, "output", lambda output: (held(output, "message", _read_message), rest_of(output, _OUTPUT)))
    said = optional(body, "stopReason", str)
    return Reply(
        turn,
        stop_of(said, has_calls=bool(turn.calls)),
        held_or_none(body, "usage", _read_usage),
        extra=noted(leftover(body, _BODY, PROTOCOL), PROTOCOL, stop_reason=said, output=rest, own=True),
    )


def _read_message(message: Fields) -> Turn:
    one_of(message, "role", {"assistant": True})
    blocks = each(required(message, "content", list), read_block, ".content")
    return Turn("assistant", tuple(blocks), extra=leftover(message, _MESSAGE, PROTOCOL))


def stop_of(said: str | None, *, has_calls: bool) -> StopReason | None:
    """Why a reply ended, by what is in it rather than by what it says."""
    is_malformed = said is not None and said.startswith("malformed_")
    return meant_by(said, _STOPS, has_calls=has_calls, otherwise="error" if is_malformed else "stop")


def _read_usage(fields: Fields) -> Usage:
    return read_split(fields, _COUNTS, noted(leftover(fields, _USAGE, PROTOCOL), PROTOCOL, own=True))


def encode(reply: Reply) -> Fields:
    """A reply as a body that a Bedrock client reads."""
    message: Fields = {"role": "assistant", "content": write_reply(reply.turn.blocks)}
    output: Fields = {"message": restored(message, reply.turn.extra, PROTOCOL)}
    body: Fields = {"output": with_rest(output, reply.extra, PROTOCOL, "output")}
    said = note(reply.extra, PROTOCOL, "stop_reason")
    word = word_for(reply.stop, said, stop_of(said, has_calls=bool(reply.turn.calls)), _STOPS_BACK)
    if word is not None:
        body["stopReason"] = word
    is_own = note(reply.extra, PROTOCOL, "own")
    if reply.usage is not None or not is_own:
        body["usage"] = _write_usage(reply.usage or Usage())
    if not is_own:
        body["metrics"] = {"latencyMs": 0}
    return restored(body, reply.extra, PROTOCOL)


def _write_usage(usage: Usage) -> Fields:
    """The counts; for usage from elsewhere with those that every client expects."""
    fields = write_split(usage, _COUNTS)
    if not note(usage.extra, PROTOCOL, "own"):
        total = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        fields = {"inputTokens": 0, "outputTokens": 0, **fields, "totalTokens": total}
    return restored(fields, usage.extra, PROTOCOL)
