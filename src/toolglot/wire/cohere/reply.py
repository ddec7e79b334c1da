"""Replies of Cohere's chat protocol, both ways."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Reply, StopReason, Usage
from toolglot.errors import InputError
from toolglot.wire.cohere.messages import PROTOCOL, kept, read_message, write_message
from toolglot.wire.reading import (
    Fields,
    inside,
    leftover,
    note,
    noted,
    one_of,
    optional,
    optional_number,
    required,
    restored,
)
from toolglot.wire.stop_reason import derived

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


def decode(body: Fields) -> Reply:
    """A reply's body. Why it ended is derived from the calls that are in it; what it said is kept."""
    try:
        message = required(body, "message", dict)
        try:
            one_of(message, "role", {"assistant": True})
            turn = read_message(message)
            form = "text" if type(message.get("content")) is str else None
        except InputError as error:
            raise inside(error, ".message") from None
        said = optional(body, "finish_reason", str)
        return Reply(
            turn,
            stop_of(said, has_calls=bool(turn.calls)),
            _read_usage(body),
            required(body, "id", str),
            extra=noted(leftover(body, _BODY, PROTOCOL), PROTOCOL, finish_reason=said, content=form),
        )
    except InputError as error:
        raise inside(error, "$") from None


def stop_of(said: str | None, *, has_calls: bool) -> StopReason | None:
    """Why a reply ended, by what is in it rather than by what it says."""
    if said is None:
        return None
    return derived(_STOPS.get(said, "stop"), has_calls=has_calls)


def _read_usage(body: Fields) -> Usage | None:
    """What a reply cost. Cohere's counts are numbers, not always written as whole ones."""
    usage = optional(body, "usage", dict)
    if usage is None:
        return None
    try:
        tokens = optional(usage, "tokens", dict)
        try:
            counts = {key: optional_number(tokens or {}, key) for key in _TOKENS}
        except InputError as error:
            raise inside(error, ".tokens") from None
    except InputError as error:
        raise inside(error, ".usage") from None
    extra = noted(
        leftover(usage, _USAGE, PROTOCOL),
        PROTOCOL,
        tokens=None if tokens is None else kept(leftover(tokens, frozenset(_TOKENS), PROTOCOL)) or {},
        floats={key: count for key, count in counts.items() if type(count) is float} or None,
    )
    read, written = (None if count is None else int(count) for count in counts.values())
    return Usage(read, written, extra=extra)


def encode(reply: Reply) -> Fields:
    """A reply as a body that a Cohere client reads: it expects parts."""
    as_parts = note(reply.extra, PROTOCOL, "content") != "text"
    body: Fields = {"id": reply.id, "message": write_message(reply.turn, as_parts=as_parts)}
    if reply.stop is not None:
        said = note(reply.extra, PROTOCOL, "finish_reason")
        meant = stop_of(said, has_calls=bool(reply.turn.calls))
        body["finish_reason"] = said if meant == reply.stop else _STOPS_BACK[reply.stop]
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
    rest = note(usage.extra, PROTOCOL, "tokens")
    if not tokens and rest is None:
        return restored({}, usage.extra, PROTOCOL)
    return restored({"tokens": restored(tokens, {PROTOCOL: rest or {}}, PROTOCOL)}, usage.extra, PROTOCOL)
