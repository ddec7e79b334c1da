"""Replies of the Chat Completions protocol, both ways."""

from __future__ import annotations

from typing import Any, Final

from toolglot.conversation import Reply, StopReason, Turn, Usage
from toolglot.errors import InputError
from toolglot.wire.openai_chat.blocks import PROTOCOL, held, rest_of, with_rest
from toolglot.wire.openai_chat.messages import read_assistant, write_assistant
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

_BODY = frozenset({"id", "model", "choices", "usage"})
_CHOICE = frozenset({"message", "finish_reason"})
_USAGE = frozenset({"prompt_tokens", "completion_tokens", "prompt_tokens_details", "completion_tokens_details"})
_PROMPT: Final = ("prompt_tokens_details", "cached_tokens")
_COMPLETION: Final = ("completion_tokens_details", "reasoning_tokens")

_STOPS: Final[dict[str, StopReason]] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "filter",
    "sensitive": "filter",
    "error": "error",
    "network_error": "error",
    "insufficient_system_resource": "error",
}
_STOPS_BACK: Final[dict[StopReason, str]] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "filter": "content_filter",
    "pause": "stop",
    "error": "stop",
}


def decode(body: Fields) -> Reply:
    """A reply's body. Why it ended is derived from the calls that are in it; what it said is kept.

    The first choice is the reply; the others are carried.
    """
    try:
        choices = _choices(body)
        ((turn, said, rest),) = each(choices[:1], _read_choice, ".choices")
        id, model = optional(body, "id", str) or "", optional(body, "model", str) or ""
        empty = {key for key, value in (("id", id), ("model", model)) if not value}
        extra = leftover(body, _BODY - empty, PROTOCOL)
        notes: Fields = {"choice": rest, "choices": choices[1:] or None, "finish_reason": said}
        return Reply(
            turn,
            stop_of(said, has_calls=bool(turn.calls)),
            _read_usage(body),
            id,
            model,
            noted(extra, PROTOCOL, **notes),
        )
    except InputError as error:
        raise inside(error, "$") from None


def _choices(body: Fields) -> list[Any]:
    choices: list[Any] = required(body, "choices", list)
    if not choices:
        raise InputError("expected at least one choice, got an empty array", path=".choices")
    return choices


def _read_choice(fields: Fields) -> tuple[Turn, str | None, Fields]:
    return (
        held(fields, "message", _read_message),
        optional(fields, "finish_reason", str),
        rest_of(fields, _CHOICE) or {},
    )


def _read_message(fields: Fields) -> Turn:
    return one_of(fields, "role", {"assistant": read_assistant})(fields)


def stop_of(said: str | None, *, has_calls: bool) -> StopReason | None:
    """Why a reply ended, by what is in it rather than by what it says."""
    if said is None:
        return None
    return derived(_STOPS.get(said, "stop"), has_calls=has_calls)


def _read_usage(body: Fields) -> Usage | None:
    return held(body, "usage", _read_counts) if body.get("usage") is not None else None


def _read_counts(fields: Fields) -> Usage:
    cached, prompt_rest = _read_details(fields, *_PROMPT)
    reasoning, completion_rest = _read_details(fields, *_COMPLETION)
    rests = {_PROMPT[0]: prompt_rest, _COMPLETION[0]: completion_rest}
    no_total = None if "total_tokens" in fields else True
    return Usage(
        optional(fields, "prompt_tokens", int),
        optional(fields, "completion_tokens", int),
        cached,
        reasoning_tokens=reasoning,
        extra=noted(leftover(fields, _USAGE, PROTOCOL), PROTOCOL, no_total=no_total, **rests),
    )


def _read_details(fields: Fields, key: str, count: str) -> tuple[int | None, Fields | None]:
    """One count of the details of another, and what is left over of them; nothing if there are none."""
    if fields.get(key) is None:
        return None, None
    return held(fields, key, lambda inner: (optional(inner, count, int), rest_of(inner, frozenset({count})) or {}))


# --- writing ----------------------------------------------------------------------------------------


def encode(reply: Reply) -> Fields:
    """A reply as a body that a Chat Completions client reads."""
    rest = note(reply.extra, PROTOCOL, "choice")
    choice: Fields = {"message": write_assistant(reply.turn)}
    reason = _write_stop(reply)
    if reason is not None:
        choice["finish_reason"] = reason
    body: Fields = {"id": reply.id} if reply.id else {}
    if reply.model:
        body["model"] = reply.model
    if rest is None:
        choice = {"index": 0, "finish_reason": None, "logprobs": None, **choice}
        body = {"id": "", "object": "chat.completion", "created": 0, "model": "", **body}
    body["choices"] = [with_rest(choice, reply.extra, "choice"), *(note(reply.extra, PROTOCOL, "choices") or ())]
    if reply.usage is not None:
        body["usage"] = _write_usage(reply.usage)
    return restored(body, reply.extra, PROTOCOL)


def _write_stop(reply: Reply) -> str | None:
    """What the model's host said, as long as it means what the reply says now."""
    said: str | None = note(reply.extra, PROTOCOL, "finish_reason")
    if said is not None and stop_of(said, has_calls=bool(reply.turn.calls)) == reply.stop:
        return said
    return _STOPS_BACK[reply.stop] if reply.stop is not None else None


def _write_usage(usage: Usage) -> Fields:
    prompt, completion = usage.input_tokens, usage.output_tokens
    fields: Fields = {"prompt_tokens": prompt, "completion_tokens": completion}
    for (key, count), value in ((_PROMPT, usage.cache_read_tokens), (_COMPLETION, usage.reasoning_tokens)):
        if value is not None or note(usage.extra, PROTOCOL, key) is not None:
            fields[key] = with_rest({count: value} if value is not None else {}, usage.extra, key)
    fields = restored(present(fields), usage.extra, PROTOCOL)
    if prompt is not None and completion is not None and not note(usage.extra, PROTOCOL, "no_total"):
        fields.setdefault("total_tokens", prompt + completion)
    return fields
