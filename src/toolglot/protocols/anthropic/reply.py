"""Replies of the Anthropic Messages protocol, both ways."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Block, Media, Reply, StopReason, Thinking, Turn, Usage
from toolglot.protocols.anthropic.blocks import read_content, write_block, write_blocks
from toolglot.protocols.anthropic.form import PROTOCOL, UNSIGNED, AnthropicReply, AnthropicUsage
from toolglot.protocols.fields.reading import (
    Fields,
    from_root,
    held_or_none,
    leftover,
    one_of,
    optional,
    required,
    with_extra,
)
from toolglot.protocols.fields.stop_reason import meant_by, word_for
from toolglot.protocols.fields.token_counts import (
    CountNames,
    read_details,
    read_split,
    split_writes,
    with_hour_writes,
    write_details,
    write_split,
)

_BODY = frozenset({"id", "type", "role", "model", "content", "stop_reason", "usage"})
_COUNTS: Final = CountNames("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_DETAILS: Final = "output_tokens_details"
_THOUGHT: Final = "thinking_tokens"
_USAGE = frozenset({*_COUNTS, _DETAILS})
_WRITTEN: Final = "cache_creation"
"""For how long it was written; as it came, it is among the unknown fields."""
_FOR_FIVE_MINUTES: Final = "ephemeral_5m_input_tokens"
_FOR_AN_HOUR: Final = "ephemeral_1h_input_tokens"

_STOPS: Final[dict[str, StopReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filter",
    "pause_turn": "pause",
    "compaction": "pause",  # the history was summed up; sent back, the model goes on from there
}
_STOPS_BACK: Final[dict[StopReason, str]] = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "filter": "refusal",
    "pause": "pause_turn",
    "error": "max_tokens",
}
"""There is no stop reason for a failure. This one at least says that the answer is not complete."""


@from_root
def decode(body: Fields) -> Reply:
    """A reply's body. Why it ended follows from the calls in it; the stop reason is kept."""
    one_of(body, "type", {"message": True})
    one_of(body, "role", {"assistant": True})
    turn = Turn("assistant", read_content(required(body, "content", list)))
    stop_reason = optional(body, "stop_reason", str)
    return Reply(
        turn,
        stop_of(stop_reason, has_calls=bool(turn.calls)),
        held_or_none(body, "usage", _read_usage),
        required(body, "id", str),
        required(body, "model", str),
        leftover(body, _BODY, PROTOCOL),
        AnthropicReply(stop_reason),
    )


def stop_of(stop_reason: str | None, *, has_calls: bool) -> StopReason | None:
    """Why a reply ended: by its content first, then by its stop reason."""
    return meant_by(stop_reason, _STOPS, has_calls=has_calls)


def _read_usage(fields: Fields) -> Usage:
    (thought,), rest = read_details(fields, _DETAILS, _THOUGHT)
    form = None if rest is None else AnthropicUsage(rest)
    usage = read_split(fields, _COUNTS, leftover(fields, _USAGE, PROTOCOL), thought, form)
    written = fields.get(_WRITTEN)
    return with_hour_writes(usage, written.get(_FOR_AN_HOUR)) if type(written) is dict else usage


# --- writing ----------------------------------------------------------------------------------------


def encode(reply: Reply) -> Fields:
    """A reply as a body that an Anthropic client reads. A foreign one gets the fields that such a client requires."""
    form = reply.form if type(reply.form) is AnthropicReply else None
    blocks = reply.turn.blocks
    body: Fields = {
        "id": reply.id,
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": write_blocks(blocks) if form is not None else _write_foreign(blocks),
    }
    original = None if form is None else form.stop_reason
    if original is None:
        word = None if reply.stop is None else _STOPS_BACK[reply.stop]
    else:
        word = word_for(reply.stop, original, stop_of(original, has_calls=bool(reply.turn.calls)), _STOPS_BACK)
    if word is not None:
        body["stop_reason"] = word
    if form is None:
        body["usage"] = {_COUNTS.input: 0, _COUNTS.output: 0, **_write_usage(reply.usage or Usage())}
    elif reply.usage is not None:
        body["usage"] = _write_usage(reply.usage)
    return with_extra(body, reply.extra, PROTOCOL)


def _write_foreign(blocks: tuple[Block, ...]) -> list[Fields]:
    """The blocks of another provider's reply. A reply of Anthropic's has no media."""
    found: list[Fields] = []
    for block in blocks:
        if type(block) is Media:
            continue
        fields = _write_thought(block) if type(block) is Thinking else write_block(block)
        if fields is not None:
            found.append(fields)
    return found


def _write_thought(block: Thinking) -> Fields | None:
    """Its text alone: a signature of another issuer would be taken for Anthropic's own (law 12)."""
    return {"type": "thinking", "thinking": block.text, "signature": UNSIGNED} if block.text else None


def _write_usage(usage: Usage) -> Fields:
    fields = write_split(usage, _COUNTS)
    rest = usage.form.details_rest if type(usage.form) is AnthropicUsage else None
    if usage.reasoning_tokens is not None or rest is not None:
        fields[_DETAILS] = write_details({_THOUGHT: usage.reasoning_tokens}, rest)
    hour, five = split_writes(usage)
    if hour is not None and _WRITTEN not in (usage.extra or {}).get(PROTOCOL, {}):
        fields[_WRITTEN] = {_FOR_FIVE_MINUTES: five, _FOR_AN_HOUR: hour}
    return with_extra(fields, usage.extra, PROTOCOL)
