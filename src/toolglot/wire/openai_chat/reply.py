"""Replies of the Chat Completions protocol, both ways."""

from __future__ import annotations

from typing import Any, Final

from toolglot.conversation import Reply, StopReason, Turn, Usage
from toolglot.errors import InputError
from toolglot.wire.openai_chat.blocks import PROTOCOL
from toolglot.wire.openai_chat.messages import read_assistant, write_assistant
from toolglot.wire.reading import (
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
    present,
    required,
    rest_of,
    restored,
    with_rest,
)
from toolglot.wire.stop_reason import meant_by, word_for
from toolglot.wire.token_counts import read_detail

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


@from_root
def decode(body: Fields) -> Reply:
    """A reply's body. Why it ended is derived from the calls that are in it; what it said is kept.

    The first choice is the reply; the others are carried.
    """
    choices = _choices(body)
    ((turn, said, rest),) = each(choices[:1], _read_choice, ".choices")
    id, model = optional(body, "id", str) or "", optional(body, "model", str) or ""
    empty = {key for key, value in (("id", id), ("model", model)) if not value}
    return Reply(
        turn,
        stop_of(said, has_calls=bool(turn.calls)),
        held_or_none(body, "usage", _read_usage),
        id,
        model,
        noted(
            leftover(body, _BODY - empty, PROTOCOL),
            PROTOCOL,
            choice=rest,
            choices=choices[1:] or None,
            finish_reason=said,
        ),
    )


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
    return meant_by(said, _STOPS, has_calls=has_calls)


def _read_usage(fields: Fields) -> Usage:
    cached, prompt_rest = read_detail(fields, *_PROMPT)
    reasoning, completion_rest = read_detail(fields, *_COMPLETION)
    rests = {_PROMPT[0]: prompt_rest, _COMPLETION[0]: completion_rest}
    no_total = None if "total_tokens" in fields else True
    return Usage(
        optional(fields, "prompt_tokens", int),
        optional(fields, "completion_tokens", int),
        cached,
        reasoning_tokens=reasoning,
        extra=noted(leftover(fields, _USAGE, PROTOCOL), PROTOCOL, no_total=no_total, **rests),
    )


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
    body["choices"] = [
        with_rest(choice, reply.extra, PROTOCOL, "choice"),
        *(note(reply.extra, PROTOCOL, "choices") or ()),
    ]
    if reply.usage is not None:
        body["usage"] = _write_usage(reply.usage)
    return restored(body, reply.extra, PROTOCOL)


def _write_stop(reply: Reply) -> str | None:
    said: str | None = note(reply.extra, PROTOCOL, "finish_reason")
    return word_for(reply.stop, said, stop_of(said, has_calls=bool(reply.turn.calls)), _STOPS_BACK)


def _write_usage(usage: Usage) -> Fields:
    prompt, completion = usage.input_tokens, usage.output_tokens
    fields: Fields = {"prompt_tokens": prompt, "completion_tokens": completion}
    for (key, count), value in ((_PROMPT, usage.cache_read_tokens), (_COMPLETION, usage.reasoning_tokens)):
        if value is not None or note(usage.extra, PROTOCOL, key) is not None:
            fields[key] = with_rest({count: value} if value is not None else {}, usage.extra, PROTOCOL, key)
    fields = restored(present(fields), usage.extra, PROTOCOL)
    if prompt is not None and completion is not None and not note(usage.extra, PROTOCOL, "no_total"):
        fields.setdefault("total_tokens", prompt + completion)
    return fields
