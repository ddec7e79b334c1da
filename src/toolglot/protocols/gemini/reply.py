"""Replies of the Gemini generateContent protocol, both ways. The first candidate is the reply."""

from __future__ import annotations

from typing import Any, Final

from toolglot.conversation import Reply, StopReason, Turn, Usage
from toolglot.protocols.fields.reading import Fields, each, from_root, held_or_none, note, optional, present
from toolglot.protocols.fields.stop_reason import meant_by, word_for
from toolglot.protocols.gemini.blocks import (
    PROTOCOL,
    filled,
    given_back,
    in_camel,
    kept,
    kept_rest,
    read_parts,
    write_part,
    write_parts,
)

_BODY = frozenset({"candidates", "usageMetadata", "modelVersion", "responseId"})
_CANDIDATE = frozenset({"content", "finishReason"})
_CONTENT = frozenset({"role", "parts"})
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
    """A reply's body. Why it ended is derived from the calls that are in it; what it said is kept."""
    fields, snake = in_camel(body)
    candidates = optional(fields, "candidates", list) or []
    id, model = optional(fields, "responseId", str), optional(fields, "modelVersion", str)
    first = each(candidates[:1], _read_candidate, ".candidates")
    turn, stop, candidate = first[0] if first else (Turn("assistant"), _blocked(fields), None)
    said = (("candidates", candidates), ("responseId", id), ("modelVersion", model))
    extra = kept(
        fields,
        _BODY - {key for key, value in said if not value},
        snake=snake,
        candidate=candidate,
        no_candidate=None if candidates else True,
        others=candidates[1:] or None,
    )
    return Reply(turn, stop, held_or_none(fields, "usageMetadata", _read_usage), id or "", model or "", extra)


def _blocked(body: Fields) -> StopReason | None:
    """Why there is no candidate: the prompt was blocked, or there is none yet."""
    feedback = optional(body, "promptFeedback", dict) or {}
    return "filter" if in_camel(feedback)[0].get("blockReason") is not None else None


def _read_candidate(given: Fields) -> tuple[Turn, StopReason | None, Fields | None]:
    """The turn, why it ended, and what else the candidate says."""
    fields, snake = in_camel(given)
    said, number = reason_of(fields)
    content = held_or_none(fields, "content", _read_content)
    turn = Turn("assistant") if content is None else content
    no_content = True if content is None else None
    rest = kept_rest(fields, _CANDIDATE, snake=snake, finish_reason=said, finish_number=number, no_content=no_content)
    return turn, stop_of(said, has_calls=bool(turn.calls)), rest


def reason_of(fields: Fields) -> tuple[str | None, int | None]:
    """Why a candidate ended, in the provider's word, and the number that stood for it."""
    number: Any = fields.get("finishReason")
    if type(number) is int and number >= 0:
        return _STOP_NUMBERS[number] if number < len(_STOP_NUMBERS) else "OTHER", number
    return optional(fields, "finishReason", str), None


def _read_content(content: Fields) -> Turn:
    blocks, form = read_parts(content)
    is_model = content.get("role") == "model"
    known = _CONTENT if is_model else _CONTENT - {"role"}
    return Turn("assistant", blocks, extra=kept(content, known, no_role=None if is_model else True, parts=form))


def stop_of(said: str | None, *, has_calls: bool) -> StopReason | None:
    """Why a reply ended, by what is in it rather than by what it says."""
    if said is None:
        return None
    family: StopReason = next((stop for start, stop in _STOP_FAMILIES.items() if said.startswith(start)), "stop")
    return meant_by(said, _STOPS, has_calls=has_calls, otherwise=family)


def _read_usage(given: Fields) -> Usage:
    fields, snake = in_camel(given)
    answer, thoughts = optional(fields, "candidatesTokenCount", int), optional(fields, "thoughtsTokenCount", int)
    prompt, tools = optional(fields, "promptTokenCount", int), optional(fields, _TOOL_USE, int)
    return Usage(
        prompt if tools is None else (prompt or 0) + tools,
        None if answer is None and thoughts is None else (answer or 0) + (thoughts or 0),
        optional(fields, "cachedContentTokenCount", int),
        reasoning_tokens=thoughts,
        extra=kept(
            fields,
            _USAGE,
            snake=snake,
            no_answer=True if answer is None else None,
            no_prompt=True if prompt is None else None,
            tool_use=tools,
            no_total=None if "totalTokenCount" in fields else True,
        ),
    )


# --- writing ----------------------------------------------------------------------------------------


def encode(reply: Reply) -> Fields:
    """A reply as a body that a Gemini client reads."""
    body: Fields = {}
    if reply.turn.blocks or not note(reply.extra, PROTOCOL, "no_candidate"):
        body["candidates"] = [_write_candidate(reply), *(note(reply.extra, PROTOCOL, "others") or ())]
    if reply.usage is not None:
        body["usageMetadata"] = _write_usage(reply.usage)
    if reply.model:
        body["modelVersion"] = reply.model
    if reply.id:
        body["responseId"] = reply.id
    return given_back(body, reply.extra)


def _write_candidate(reply: Reply) -> Fields:
    rest = note(reply.extra, PROTOCOL, "candidate") or {}
    fields: Fields = {}
    if reply.turn.blocks or "~no_content" not in rest:
        extra = reply.turn.extra
        content: Fields = {} if note(extra, PROTOCOL, "no_role") else {"role": "model"}
        parts = [write_part(block, for_client=True) for block in reply.turn.blocks]
        fields["content"] = write_parts(content, [part for part in parts if part is not None], extra)
    said = rest.get("~finish_reason")
    word = word_for(reply.stop, said, stop_of(said, has_calls=bool(reply.turn.calls)), _STOPS_BACK)
    if word is not None:
        number = rest.get("~finish_number")
        fields["finishReason"] = number if number is not None and word == said else word
    malformed = reply.malformed
    if malformed is not None and reply.stop == "error":
        fields["finishReason"], fields["finishMessage"] = malformed.reason, malformed.message
    return filled(fields, rest)


def _write_usage(usage: Usage) -> Fields:
    tools: int | None = note(usage.extra, PROTOCOL, "tool_use")
    counts = {
        "promptTokenCount": _prompt_of(usage, tools),
        _TOOL_USE: tools,
        "candidatesTokenCount": None if usage.output_tokens is None else _answer_of(usage, usage.output_tokens),
        "thoughtsTokenCount": usage.reasoning_tokens,
        "cachedContentTokenCount": usage.cache_read_tokens,
    }
    fields = present(counts)
    is_own = usage.extra is not None and PROTOCOL in usage.extra
    if not is_own and usage.input_tokens is not None and usage.output_tokens is not None:
        fields["totalTokenCount"] = usage.input_tokens + usage.output_tokens
    return given_back(fields, usage.extra)


def _prompt_of(usage: Usage, tools: int | None) -> int | None:
    """The tokens of the prompt without what the tools of the provider added; None where the reply did not say them."""
    if usage.input_tokens is None or tools is None:
        return usage.input_tokens
    prompt = usage.input_tokens - tools
    return prompt if prompt or not note(usage.extra, PROTOCOL, "no_prompt") else None


def _answer_of(usage: Usage, output: int) -> int | None:
    """The tokens of the answer without its thoughts; None where the reply did not say them."""
    answer = output - (usage.reasoning_tokens or 0)
    return answer if answer or not note(usage.extra, PROTOCOL, "no_answer") else None
