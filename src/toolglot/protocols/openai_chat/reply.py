"""Replies of the Chat Completions protocol, both ways."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import Block, Reply, StopReason, ToolCall, Turn, Usage
from toolglot.errors import InputError
from toolglot.protocols.fields.reading import (
    Fields,
    from_root,
    held_or_none,
    inside,
    leftover,
    one_of,
    optional,
    present,
    required,
    rest_of,
    type_error,
    with_extra,
    with_rest,
)
from toolglot.protocols.fields.refusals import only_refuses
from toolglot.protocols.fields.stop_reason import meant_by, word_for
from toolglot.protocols.fields.token_counts import read_details, write_details
from toolglot.protocols.openai_chat.blocks import FUNCTION_CALL
from toolglot.protocols.openai_chat.form import PROTOCOL, ChatReply, ChatUsage
from toolglot.protocols.openai_chat.legacy_functions import function_call_in, read_function_call
from toolglot.protocols.openai_chat.messages import PLAIN, read_assistant, write_assistant

_BODY = frozenset({"id", "model", "choices", "usage"})
_CHOICE = frozenset({"message", "finish_reason"})
_USAGE = frozenset({"prompt_tokens", "completion_tokens", "prompt_tokens_details", "completion_tokens_details"})
_PROMPT: Final = "prompt_tokens_details"
_COMPLETION: Final = "completion_tokens_details"
_CACHED_FIELDS: Final = ("prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens")
"""Where DeepSeek, Moonshot and Mistral have the cached tokens, which are part of the prompt, if not in its details."""
_FOREIGN: Final = PLAIN._replace(media=False, refusals=True)
"""In a reply, content is a string, and a refusal stands beside it."""

_STOPS: Final[dict[str, StopReason]] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
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
    "error": "length",
}
"""There is no word for a failure; of those that there are, this one at least says that the answer is not whole."""


@from_root
def decode(body: Fields) -> Reply:
    """A reply's body. The stop reason is derived from the calls in it; the form keeps the original.

    The first choice is the reply; the others are carried.
    """
    choices = _choices(body)
    try:
        if type(choices[0]) is not dict:
            raise type_error("an object", choices[0], "")
        turn, form = _read_choice(choices[0])
    except InputError as error:
        raise inside(error, ".choices[0]") from None
    id, model = optional(body, "id", str) or "", optional(body, "model", str) or ""
    known = _BODY
    if not id or not model:
        known = _BODY - {key for key, value in (("id", id), ("model", model)) if not value}
    if len(choices) > 1:
        form = replace(form, choices=choices[1:])
    usage = held_or_none(body, "usage", _read_usage)
    extra = leftover(body, known, PROTOCOL)
    return Reply(turn, stop_of(form.finish_reason, turn), usage, id, model, extra, form)


def _choices(body: Fields) -> list[Any]:
    choices: list[Any] = required(body, "choices", list)
    if not choices:
        raise InputError("expected at least one choice, got an empty array", path=".choices")
    return choices


def _read_choice(fields: Fields) -> tuple[Turn, ChatReply]:
    reason, message = fields.get("finish_reason"), fields.get("message")
    rest, is_in_details = rest_of(fields, _CHOICE) or {}, False
    if type(reason) is not str:
        reason = optional(fields, "finish_reason", str)
        if reason is None:
            reason = _reason_in_details(fields)
            is_in_details = reason is not None
    if type(message) is not dict:
        if message is None and reason is not None and _STOPS.get(reason) == "filter":
            # Azure says only that it filtered what the model wrote
            form = ChatReply(rest, finish_reason=reason, is_in_details=is_in_details, has_no_message=True)
            return Turn("assistant"), form
        message = required(fields, "message", dict)
    try:
        if message.get("role") != "assistant":
            one_of(message, "role", _ROLES)
        turn = read_assistant(message)
    except InputError as error:
        raise inside(error, ".message") from None
    if message.get(FUNCTION_CALL) is not None and not message.get("tool_calls"):  # some hosts send a call in both forms
        turn = replace(turn, blocks=tuple(map(_read_legacy_call, turn.blocks)))
    return turn, ChatReply(rest, finish_reason=reason, is_in_details=is_in_details)


def _reason_in_details(fields: Fields) -> str | None:
    """The reason as GPT-4's first models with vision wrote it: in `finish_details`, with null for the reason itself."""
    details = fields.get("finish_details")
    reason: Any = details.get("type") if type(details) is dict else None
    return reason if type(reason) is str else None


def _read_legacy_call(block: Block) -> Block:
    """A legacy call as a call, if it has a name and arguments."""
    called = function_call_in(block)
    if called is not None and called.get("name") and isinstance(called["name"], str) and "arguments" in called:
        return read_function_call(called)
    return block


_ROLES: Final = {"assistant": True}


def meaning_of(reason: str) -> StopReason | None:
    """The meaning of a finish reason alone; None if it is unknown."""
    return _STOPS.get(reason)


def reason_for(stop: StopReason, reason: str | None, turn: Turn) -> str:
    """The finish reason of a stream: the provider's own, if it means the same."""
    is_meant = reason is not None and reason != "function_call" and _STOPS.get(reason) == stop
    return reason if reason is not None and is_meant else _word_for(stop, turn)


def _word_for(stop: StopReason, turn: Turn) -> str:
    """The finish reason of the protocol. A reply that is only a refusal ended normally: it has the field `refusal`."""
    return "stop" if stop == "filter" and only_refuses(turn.blocks) else _STOPS_BACK[stop]


def stop_of(reason: str | None, turn: Turn) -> StopReason | None:
    """The stop reason, by the content of the reply rather than by its finish reason. A mere refusal was filtered."""
    if reason is None:
        return None
    has_calls = ToolCall in map(type, turn.blocks)
    if has_calls and reason == "tool_calls":
        return "tool_calls"  # the common case
    meant = meant_by(reason, _STOPS, has_calls=has_calls)
    return "filter" if meant == "stop" and only_refuses(turn.blocks) else meant


def _read_usage(fields: Fields) -> Usage:
    cached = written = reasoning = None
    prompt_rest = completion_rest = form = None
    if _PROMPT in fields:
        (cached, written), prompt_rest = read_details(fields, _PROMPT, "cached_tokens", "cache_write_tokens")
    if _COMPLETION in fields:
        (reasoning,), completion_rest = read_details(fields, _COMPLETION, "reasoning_tokens")
    cached_field = ""
    if cached is None:
        cached_field = next((name for name in _CACHED_FIELDS if type(fields.get(name)) is int), "")
        cached = fields.get(cached_field)
    if prompt_rest is not None or completion_rest is not None or cached_field or "total_tokens" not in fields:
        form = ChatUsage("total_tokens" not in fields, prompt_rest, completion_rest, cached_field)
    extra = leftover(fields, _USAGE | {cached_field} if cached_field else _USAGE, PROTOCOL)
    prompt, completion = fields.get("prompt_tokens"), fields.get("completion_tokens")
    if type(prompt) is not int or type(completion) is not int:
        prompt, completion = optional(fields, "prompt_tokens", int), optional(fields, "completion_tokens", int)
    return Usage(prompt, completion, cached, written, reasoning, extra, form)


# --- writing ----------------------------------------------------------------------------------------


def encode(reply: Reply) -> Fields:
    """A reply as a body that a Chat Completions client reads. One from elsewhere gets what such a client demands."""
    is_native = type(reply.form) is ChatReply
    form = reply.form if type(reply.form) is ChatReply else _PLAIN_REPLY
    choice: Fields = {}
    if reply.turn.blocks or not form.has_no_message:
        choice["message"] = write_assistant(reply.turn, PLAIN if is_native else _FOREIGN)
    reason = _write_stop(reply, form)
    if reason is not None and not (form.is_in_details and reason == form.finish_reason):
        choice["finish_reason"] = reason
    body: Fields = {"id": reply.id} if reply.id else {}
    if reply.model:
        body["model"] = reply.model
    if not is_native:
        choice = {"index": 0, "finish_reason": None, "logprobs": None, **choice}
        body = {"id": "", "object": "chat.completion", "created": 0, "model": "", **body}
    body["choices"] = [with_rest(choice, form.choice_rest), *form.choices]
    if not is_native:
        usage = reply.usage or Usage()
        counts = {"prompt_tokens": usage.input_tokens or 0, "completion_tokens": usage.output_tokens or 0}
        body["usage"] = {**counts, "total_tokens": sum(counts.values()), **_write_usage(usage)}
    elif reply.usage is not None:
        body["usage"] = _write_usage(reply.usage)
    return with_extra(body, reply.extra, PROTOCOL)


_PLAIN_REPLY: Final = ChatReply()


def _write_stop(reply: Reply, form: ChatReply) -> str | None:
    reason = form.finish_reason
    if reason is None and reply.stop is not None:
        return _word_for(reply.stop, reply.turn)
    return word_for(reply.stop, reason, stop_of(reason, reply.turn), _STOPS_BACK)


_PLAIN_USAGE: Final = ChatUsage()


def _write_usage(usage: Usage) -> Fields:
    form = usage.form if type(usage.form) is ChatUsage else _PLAIN_USAGE
    prompt, completion = usage.input_tokens, usage.output_tokens
    read = None if form.cached_field else usage.cache_read_tokens
    cached = {"cached_tokens": read, "cache_write_tokens": usage.cache_write_tokens}
    fields = present(
        {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            _PROMPT: write_details(cached, form.prompt_details_rest),
            _COMPLETION: write_details({"reasoning_tokens": usage.reasoning_tokens}, form.completion_details_rest),
        }
    )
    if form.cached_field and usage.cache_read_tokens is not None:
        fields[form.cached_field] = usage.cache_read_tokens
    fields = with_extra(fields, usage.extra, PROTOCOL)
    if prompt is not None and completion is not None and not form.has_no_total:
        fields.setdefault("total_tokens", prompt + completion)
    return fields
