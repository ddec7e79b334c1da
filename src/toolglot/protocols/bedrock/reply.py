"""Replies of the Bedrock Converse protocol, both ways."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Reply, StopReason, Turn, Usage
from toolglot.protocols.bedrock.blocks import read_block, write_reply
from toolglot.protocols.bedrock.form import NATIVE_USAGE, PROTOCOL, BedrockReply, BedrockUsage
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    from_root,
    held_or_none,
    leftover,
    one_of,
    optional,
    read_required,
    required,
    rest_of,
    with_extra,
    with_rest,
)
from toolglot.protocols.fields.stop_reason import meant_by, word_for
from toolglot.protocols.fields.token_counts import CountNames, read_split, split_writes, with_hour_writes, write_split

_BODY = frozenset({"output", "stopReason", "usage"})
_OUTPUT = frozenset({"message"})
_MESSAGE = frozenset({"role", "content"})
_COUNTS: Final = CountNames("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")
_USAGE = frozenset(_COUNTS)
_WRITTEN: Final = "cacheDetails"
"""For how long it was written; as it came, it is among the unknown fields."""
_MAX_TIMES: Final = 10

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
    """A reply's body. Why it ended follows from the calls in it; the stop reason is kept."""
    turn, rest = read_required(
        body, "output", lambda output: (read_required(output, "message", _read_message), rest_of(output, _OUTPUT))
    )
    stop_reason = optional(body, "stopReason", str)
    return Reply(
        turn,
        stop_of(stop_reason, has_calls=bool(turn.calls)),
        held_or_none(body, "usage", _read_usage),
        extra=leftover(body, _BODY, PROTOCOL),
        form=BedrockReply(stop_reason, rest),
    )


def _read_message(message: Fields) -> Turn:
    one_of(message, "role", {"assistant": True})
    blocks = each(required(message, "content", list), read_block, ".content")
    return Turn("assistant", tuple(blocks), extra=leftover(message, _MESSAGE, PROTOCOL))


def stop_of(stop_reason: str | None, *, has_calls: bool) -> StopReason | None:
    """Why a reply ended: by its content first, then by its stop reason."""
    is_malformed = stop_reason is not None and stop_reason.startswith("malformed_")
    return meant_by(stop_reason, _STOPS, has_calls=has_calls, default="error" if is_malformed else "stop")


def _read_usage(fields: Fields) -> Usage:
    usage = read_split(fields, _COUNTS, leftover(fields, _USAGE, PROTOCOL), form=NATIVE_USAGE)
    details = fields.get(_WRITTEN)
    for detail in details[:_MAX_TIMES] if type(details) is list else ():
        if type(detail) is dict and detail.get("ttl") == "1h":
            usage = with_hour_writes(usage, detail.get("inputTokens"))
    return usage


def encode(reply: Reply) -> Fields:
    """A reply as a body that a Bedrock client reads."""
    form = reply.form if type(reply.form) is BedrockReply else None
    message: Fields = {"role": "assistant", "content": write_reply(reply.turn.blocks)}
    output: Fields = {"message": with_extra(message, reply.turn.extra, PROTOCOL)}
    body: Fields = {"output": output if form is None else with_rest(output, form.output_rest)}
    original = None if form is None else form.stop_reason
    word = word_for(reply.stop, original, stop_of(original, has_calls=bool(reply.turn.calls)), _STOPS_BACK)
    if word is not None:
        body["stopReason"] = word
    if reply.usage is not None or form is None:
        body["usage"] = _write_usage(reply.usage or Usage())
    if form is None:
        body["metrics"] = {"latencyMs": 0}
    return with_extra(body, reply.extra, PROTOCOL)


def _write_usage(usage: Usage) -> Fields:
    """The counts; foreign usage gets those that every client expects."""
    fields = write_split(usage, _COUNTS)
    if type(usage.form) is not BedrockUsage:
        total = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        fields = {"inputTokens": 0, "outputTokens": 0, **fields, "totalTokens": total}
        hour, five = split_writes(usage)
        if hour is not None:
            times = (("1h", hour), ("5m", five))
            fields[_WRITTEN] = [{"inputTokens": count, "ttl": time} for time, count in times if count]
    return with_extra(fields, usage.extra, PROTOCOL)
