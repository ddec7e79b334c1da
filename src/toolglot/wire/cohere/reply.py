"""Replies of Cohere's chat protocol, both ways."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Reply, StopReason, Turn, Usage
from toolglot.wire.cohere.messages import PROTOCOL, read_message, write_message
from toolglot.wire.reading import (
    Fields,
    from_root,
    held,
    held_or_none,
    leftover,
    note,
    noted,
    one_of,
    optional,
    optional_number,
    required,
    rest_of,
    restored,
    with_rest,
)
from toolglot.wire.stop_reason import meant_by, word_for

_BODY = frozenset({"id", "message", "finish_reason", "usage"})
_USAGE = frozenset({"tokens"})
_TOKENS: Final = ("input_tokens", "output_tokens")

_STOPS: Final[dict[str, StopReason]] = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "TOOL_CALL": "tool_calls",
    "MAX_TOKENS": "length",
    "ERROR": "error",
    "TIMEOUT": "error",
}
_STOPS_BACK: Final[dict[StopReason, str]] = {
    "stop": "COMPLETE",
    "tool_calls": "TOOL_CALL",
    "length": "MAX_TOKENS",
    "filter": "ERROR",
    "pause": "COMPLETE",
    "error": "ERROR",
}


@from_root
def decode(body: Fields) -> Reply:
    """A reply's body. Why it ended is derived from the calls that are in it; what it said is kept."""
    turn = held(body, "message", _read_message)
    form = "text" if type(body["message"].get("content")) is str else None
    said = optional(body, "finish_reason", str)
    return Reply(
        turn,
        stop_of(said, has_calls=bool(turn.calls)),
        held_or_none(body, "usage", _read_usage),
        required(body, "id", str),
        extra=noted(leftover(body, _BODY, PROTOCOL), PROTOCOL, finish_reason=said, content=form),
    )


def _read_message(fields: Fields) -> Turn:
    return one_of(fields, "role", {"assistant": read_message})(fields)


def stop_of(said: str | None, *, has_calls: bool) -> StopReason | None:
    """Why a reply ended, by what is in it rather than by what it says."""
    return meant_by(said, _STOPS, has_calls=has_calls)


def _read_usage(usage: Fields) -> Usage:
    """What a reply cost. Cohere's counts are numbers, not always written as whole ones."""
    counts, rest = held_or_none(usage, "tokens", _read_tokens) or ({}, None)
    extra = noted(
        leftover(usage, _USAGE, PROTOCOL),
        PROTOCOL,
        tokens=rest,
        floats={key: count for key, count in counts.items() if type(count) is float} or None,
    )
    read, written = (None if (count := counts.get(key)) is None else int(count) for key in _TOKENS)
    return Usage(read, written, extra=extra)


def _read_tokens(fields: Fields) -> tuple[dict[str, int | float | None], Fields]:
    return {key: optional_number(fields, key) for key in _TOKENS}, rest_of(fields, frozenset(_TOKENS)) or {}


def encode(reply: Reply) -> Fields:
    """A reply as a body that a Cohere client reads: it expects parts."""
    as_parts = note(reply.extra, PROTOCOL, "content") != "text"
    body: Fields = {"id": reply.id, "message": write_message(reply.turn, as_parts=as_parts)}
    said = note(reply.extra, PROTOCOL, "finish_reason")
    word = word_for(reply.stop, said, stop_of(said, has_calls=bool(reply.turn.calls)), _STOPS_BACK)
    if word is not None:
        body["finish_reason"] = word
    if reply.usage is not None:
        body["usage"] = _write_usage(reply.usage)
    return restored(body, reply.extra, PROTOCOL)


def _write_usage(usage: Usage) -> Fields:
    floats = note(usage.extra, PROTOCOL, "floats") or {}
    tokens: Fields = {}
    for key, count in zip(_TOKENS, (usage.input_tokens, usage.output_tokens), strict=True):
        if count is not None:
            written = floats.get(key, count)
            tokens[key] = written if int(written) == count else count
    fields: Fields = {}
    if tokens or note(usage.extra, PROTOCOL, "tokens") is not None:
        fields["tokens"] = with_rest(tokens, usage.extra, PROTOCOL, "tokens")
    return restored(fields, usage.extra, PROTOCOL)
