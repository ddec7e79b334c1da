"""Replies of Cohere's chat protocol, both ways."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Reply, StopReason, Turn, Usage
from toolglot.protocols.cohere.form import PROTOCOL, CohereReply, CohereUsage
from toolglot.protocols.cohere.messages import read_message, write_message
from toolglot.protocols.fields.media import without_media
from toolglot.protocols.fields.reading import (
    Fields,
    from_root,
    held_or_none,
    leftover,
    one_of,
    optional,
    optional_number,
    present,
    read_required,
    required,
    rest_of,
    with_extra,
    with_rest,
)
from toolglot.protocols.fields.stop_reason import meant_by, word_for

_BODY = frozenset({"id", "message", "finish_reason", "usage"})
_USAGE = frozenset({"tokens", "cached_tokens"})
_TOKENS: Final = ("input_tokens", "output_tokens")
_CACHED: Final = "cached_tokens"

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
    """A reply's body. The stop reason is derived from the calls in it; the form keeps the original."""
    turn = read_required(body, "message", _read_message)
    finish_reason = optional(body, "finish_reason", str)
    return Reply(
        turn,
        stop_of(finish_reason, has_calls=bool(turn.calls)),
        held_or_none(body, "usage", _read_usage),
        required(body, "id", str),
        extra=leftover(body, _BODY, PROTOCOL),
        form=CohereReply(finish_reason, type(body["message"].get("content")) is str),
    )


def _read_message(fields: Fields) -> Turn:
    return one_of(fields, "role", {"assistant": read_message})(fields)


def stop_of(finish_reason: str | None, *, has_calls: bool) -> StopReason | None:
    """Why a reply ended: by its content first, then by its finish reason."""
    return meant_by(finish_reason, _STOPS, has_calls=has_calls)


def _read_usage(usage: Fields) -> Usage:
    """What a reply cost. Cohere's counts are numbers, not always written as whole ones."""
    counts, rest = held_or_none(usage, "tokens", _read_tokens) or ({}, None)
    counts[_CACHED] = optional_number(usage, _CACHED)
    floats = {key: count for key, count in counts.items() if type(count) is float} or None
    form = CohereUsage(rest, floats) if rest is not None or floats else None
    read, made, cached = (_whole(counts.get(key)) for key in (*_TOKENS, _CACHED))
    return Usage(read, made, cached, extra=leftover(usage, _USAGE, PROTOCOL), form=form)


def _whole(count: int | float | None) -> int | None:
    return None if count is None else int(count)


def _read_tokens(fields: Fields) -> tuple[dict[str, int | float | None], Fields]:
    return {key: optional_number(fields, key) for key in _TOKENS}, rest_of(fields, frozenset(_TOKENS)) or {}


def encode(reply: Reply) -> Fields:
    """A reply as a body that a Cohere client reads: it expects parts."""
    form = reply.form if type(reply.form) is CohereReply else None
    turn = without_media(reply.turn) if form is None else reply.turn
    as_parts = form is None or not form.is_string
    body: Fields = {"id": reply.id, "message": write_message(turn, as_parts=as_parts)}
    original = None if form is None else form.finish_reason
    word = word_for(reply.stop, original, stop_of(original, has_calls=bool(reply.turn.calls)), _STOPS_BACK)
    if word is not None:
        body["finish_reason"] = word
    if reply.usage is not None:
        body["usage"] = _write_usage(reply.usage)
    return with_extra(body, reply.extra, PROTOCOL)


def _write_usage(usage: Usage) -> Fields:
    counts = present(
        {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, _CACHED: usage.cache_read_tokens}
    )
    form = usage.form if type(usage.form) is CohereUsage else CohereUsage()
    for key, written in (form.floats or {}).items():
        if key in counts and int(written) == counts[key]:
            counts[key] = written
    tokens: Fields = {key: counts[key] for key in _TOKENS if key in counts}
    fields: Fields = {_CACHED: counts[_CACHED]} if _CACHED in counts else {}
    if tokens or form.tokens_rest is not None:
        fields["tokens"] = with_rest(tokens, form.tokens_rest)
    return with_extra(fields, usage.extra, PROTOCOL)
