"""Replies of the Gemini generateContent protocol, both ways. The first candidate is the reply."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import Reply, StopReason, Turn, Usage
from toolglot.protocols.fields.reading import Fields, each, from_root, held_or_none, optional, present, rest_of
from toolglot.protocols.fields.stop_reason import meant_by, word_for
from toolglot.protocols.gemini.blocks import (
    content_form,
    in_camel,
    read_parts,
    refill,
    unknown_fields,
    with_unknown_fields,
    write_part,
    write_parts,
)
from toolglot.protocols.gemini.form import (
    NO_ROLE,
    PLAIN_REPLY,
    PLAIN_USAGE,
    PROTOCOL,
    GeminiContent,
    GeminiReply,
    GeminiUsage,
)

_BODY = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId"})
_CANDIDATE = frozenset({"content", "finishReason"})
_CONTENT = frozenset({"role", "parts"})
_PARTS = frozenset({"parts"})
_TOOL_USE: Final = "toolUsePromptTokenCount"
_USAGE = frozenset(
    {"promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount", _TOOL_USE}
)

_STOPS: Final[dict[str, StopReason]] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "filter",
    "RECITATION": "filter",
    "LANGUAGE": "filter",
    "MODEL_ARMOR": "filter",
    "BLOCKLIST": "filter",
    "PROHIBITED_CONTENT": "filter",
    "SPII": "filter",
    "CONTINUATION": "pause",
    "OTHER": "error",
    "NO_IMAGE": "error",
    "UNEXPECTED_TOOL_CALL": "error",
    "TOO_MANY_TOOL_CALLS": "error",
}
_STOP_NUMBERS: Final = (
    *("FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER", "LANGUAGE", "BLOCKLIST"),
    *("PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL", "IMAGE_SAFETY"),
)
"""The reasons by their numbers, which Google's older libraries ask for (`$alt=json;enum-encoding=int`)."""
_STOP_FAMILIES: Final[dict[str, StopReason]] = {"IMAGE_": "filter", "MALFORMED_": "error"}
_STOPS_BACK: Final[dict[StopReason, str]] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "filter": "SAFETY",
    "pause": "CONTINUATION",
    "error": "OTHER",
}


@from_root
def decode(body: Fields) -> Reply:
    """A reply's body. Why it ended is derived from the calls that are in it; the provider's word is kept."""
    fields, snake = in_camel(body)
    candidates = optional(fields, "candidates", list) or []
    id, model = optional(fields, "responseId", str), optional(fields, "modelVersion", str)
    first = each(candidates[:1], _read_candidate, ".candidates")
    turn, stop, form = first[0] if first else (Turn("assistant"), _blocked(fields), PLAIN_REPLY)
    if snake or not candidates or len(candidates) > 1:
        form = replace(form, snake=snake, has_no_candidate=not candidates, others=candidates[1:] or None)
    known = (("candidates", candidates), ("responseId", id), ("modelVersion", model))
    extra = unknown_fields(fields, _BODY - {key for key, value in known if not value})
    usage = held_or_none(fields, "usageMetadata", _read_usage)
    return Reply(turn, stop, usage, id or "", model or "", extra, None if form == PLAIN_REPLY else form)


def _blocked(body: Fields) -> StopReason | None:
    """Why there is no candidate: the prompt was blocked, or there is none yet."""
    feedback = optional(body, "promptFeedback", dict) or {}
    return "filter" if in_camel(feedback)[0].get("blockReason") is not None else None


def _read_candidate(candidate: Fields) -> tuple[Turn, StopReason | None, GeminiReply]:
    """The turn, why it ended, and how the candidate was written."""
    fields, snake = in_camel(candidate)
    word, number = reason_of(fields)
    content = held_or_none(fields, "content", _read_content)
    turn = Turn("assistant") if content is None else content
    form = GeminiReply(
        candidate_rest=rest_of(fields, _CANDIDATE),
        candidate_snake=snake,
        finish_reason=word,
        finish_number=number,
        has_no_content=content is None,
    )
    return turn, stop_of(word, has_calls=bool(turn.calls)), form


def reason_of(fields: Fields) -> tuple[str | None, int | None]:
    """Why a candidate ended, in the provider's word, and the number that stood for it."""
    number: Any = fields.get("finishReason")
    if type(number) is int and number >= 0:
        return _STOP_NUMBERS[number] if number < len(_STOP_NUMBERS) else "OTHER", number
    return optional(fields, "finishReason", str), None


def _read_content(content: Fields) -> Turn:
    blocks, parts = read_parts(content)
    is_model = content.get("role") == "model"
    form = None if is_model else NO_ROLE
    if parts is not None:
        form = GeminiContent(parts, has_no_role=not is_model)
    return Turn("assistant", blocks, extra=unknown_fields(content, _CONTENT if is_model else _PARTS), form=form)


def stop_of(word: str | None, *, has_calls: bool) -> StopReason | None:
    """Why a reply ended: by its content first, then by the provider's word."""
    if word is None:
        return None
    family: StopReason = next((stop for start, stop in _STOP_FAMILIES.items() if word.startswith(start)), "stop")
    return meant_by(word, _STOPS, has_calls=has_calls, default=family)


def _read_usage(counts: Fields) -> Usage:
    fields, snake = in_camel(counts)
    answer, thoughts = optional(fields, "candidatesTokenCount", int), optional(fields, "thoughtsTokenCount", int)
    prompt, tools = optional(fields, "promptTokenCount", int), optional(fields, _TOOL_USE, int)
    form = GeminiUsage(snake, answer is None, prompt is None, "totalTokenCount" not in fields, tools)
    return Usage(
        prompt if tools is None else (prompt or 0) + tools,
        None if answer is None and thoughts is None else (answer or 0) + (thoughts or 0),
        optional(fields, "cachedContentTokenCount", int),
        reasoning_tokens=thoughts,
        extra=unknown_fields(fields, _USAGE),
        form=None if form == PLAIN_USAGE else form,
    )


# --- writing ----------------------------------------------------------------------------------------


def encode(reply: Reply) -> Fields:
    """A reply as a body that a Gemini client reads."""
    form = reply.form if type(reply.form) is GeminiReply else PLAIN_REPLY
    body: Fields = {}
    if reply.turn.blocks or not form.has_no_candidate:
        body["candidates"] = [_write_candidate(reply, form), *(form.others or ())]
    if reply.usage is not None:
        body["usageMetadata"] = _write_usage(reply.usage)
    if reply.model:
        body["modelVersion"] = reply.model
    if reply.id:
        body["responseId"] = reply.id
    return with_unknown_fields(body, reply.extra, form)


def _write_candidate(reply: Reply, form: GeminiReply) -> Fields:
    fields: Fields = {}
    if reply.turn.blocks or not form.has_no_content:
        content: Fields = {} if content_form(reply.turn).has_no_role else {"role": "model"}
        parts = [write_part(block, for_client=True) for block in reply.turn.blocks]
        fields["content"] = write_parts(content, [part for part in parts if part is not None], reply.turn)
    original = form.finish_reason
    word = word_for(reply.stop, original, stop_of(original, has_calls=bool(reply.turn.calls)), _STOPS_BACK)
    if word is not None:
        number = form.finish_number
        fields["finishReason"] = number if number is not None and word == original else word
    malformed = reply.malformed
    if malformed is not None and reply.stop == "error":
        fields["finishReason"], fields["finishMessage"] = malformed.reason, malformed.message
    return refill(fields, form.candidate_rest, form.candidate_snake)


def _write_usage(usage: Usage) -> Fields:
    form = usage.form if type(usage.form) is GeminiUsage else PLAIN_USAGE
    tools = form.tool_use
    counts = {
        "promptTokenCount": _prompt_of(usage, form),
        _TOOL_USE: tools,
        "candidatesTokenCount": None if usage.output_tokens is None else _answer_of(usage, usage.output_tokens, form),
        "thoughtsTokenCount": usage.reasoning_tokens,
        "cachedContentTokenCount": usage.cache_read_tokens,
    }
    fields = present(counts)
    is_own = type(usage.form) is GeminiUsage or (usage.extra is not None and PROTOCOL in usage.extra)
    if not is_own and usage.input_tokens is not None and usage.output_tokens is not None:
        fields["totalTokenCount"] = usage.input_tokens + usage.output_tokens
    return with_unknown_fields(fields, usage.extra, form)


def _prompt_of(usage: Usage, form: GeminiUsage) -> int | None:
    """The tokens of the prompt without what the tools of the provider added; None if the reply did not have them."""
    if usage.input_tokens is None or form.tool_use is None:
        return usage.input_tokens
    prompt = usage.input_tokens - form.tool_use
    return prompt if prompt or not form.has_no_prompt else None


def _answer_of(usage: Usage, output: int, form: GeminiUsage) -> int | None:
    """The tokens of the answer without its thoughts; None if the reply did not have them."""
    answer = output - (usage.reasoning_tokens or 0)
    return answer if answer or not form.has_no_answer else None
