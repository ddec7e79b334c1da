"""The fields of Chat Completions hosts that turn thinking on and off. OpenAI itself has none.

    {"thinking": {"type": "disabled"}}                      DeepSeek, Kimi, GLM
    {"enable_thinking": false, "thinking_budget": 1000}     Qwen
    {"reasoning": {"enabled": true, "max_tokens": 1000}}    OpenRouter

The original fields are kept, and written again while they match the canonical options.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from toolglot.conversation import Reasoning, ReasoningMode
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.openai_chat.form import ChatReasoning

FIELDS: Final = ("thinking", "enable_thinking", "thinking_budget", "reasoning")
_KNOWN: Final = {"thinking": ("type", "budget_tokens"), "reasoning": ("enabled", "max_tokens", "effort")}
"""The known fields of those that are objects."""
_MODES: Final[dict[str, ReasoningMode]] = {"enabled": "on", "disabled": "off", "adaptive": "adaptive"}
_WORDS: Final = {mode: word for word, mode in _MODES.items()}
_FLAGS: Final[dict[bool, ReasoningMode]] = {True: "on", False: "off"}


class ThinkingRequest(NamedTuple):
    mode: ReasoningMode | None = None
    budget: int | None = None
    effort: str | None = None


def reasoning_fields(body: Fields) -> Fields:
    """The fields of a body that control thinking, if they can be read."""
    return {key: body[key] for key in FIELDS if key in body and read({key: body[key]}) != ThinkingRequest()}


def read(fields: Fields) -> ThinkingRequest:
    thinking, reasoning = fields.get("thinking"), fields.get("reasoning")
    flag = fields.get("enable_thinking")
    thinking_request = ThinkingRequest(
        _FLAGS[flag] if type(flag) is bool else None, _int_or_none(fields.get("thinking_budget"))
    )
    if type(thinking) is dict and type(thinking.get("type")) is str:
        thinking_request = ThinkingRequest(_MODES.get(thinking["type"]), _int_or_none(thinking.get("budget_tokens")))
    if type(reasoning) is dict:
        enabled, effort = reasoning.get("enabled"), reasoning.get("effort")
        budget = _int_or_none(reasoning.get("max_tokens"))
        thinking_request = ThinkingRequest(
            _FLAGS[enabled] if type(enabled) is bool else "on" if budget else thinking_request.mode,
            budget or thinking_request.budget,
            effort if type(effort) is str else None,
        )
    return thinking_request


def _int_or_none(value: Any) -> int | None:
    return value if type(value) is int else None


def read_reasoning(body: Fields, effort: str | None) -> Reasoning | None:
    """The reasoning options of a body. The effort is in a field of its own."""
    fields = reasoning_fields(body)
    if not fields:
        return None if effort is None else Reasoning(effort=effort)
    thinking_request = read(fields)
    rest = {
        name: value
        for key, known in _KNOWN.items()
        if type(fields.get(key)) is dict
        for name, value in fields[key].items()
        if name not in known
    }
    form = ChatReasoning(fields, rest or None, effort is not None)
    return Reasoning(thinking_request.mode, effort or thinking_request.effort, thinking_request.budget, form=form)


def write_reasoning(body: Fields, reasoning: Reasoning, switch: str) -> None:
    """Write the reasoning options, in their original form or in that of the host."""
    form = reasoning.form
    if type(form) is not ChatReasoning:
        if reasoning.effort is not None:
            body["reasoning_effort"] = reasoning.effort
        body.update(_switch_fields(reasoning, switch))
        return
    thinking_request = read(form.switch)
    if thinking_request[:2] == (reasoning.mode, reasoning.budget_tokens):
        body.update(form.switch)
    else:
        body.update(_switch_fields(reasoning, switch))
    if reasoning.effort is not None and (thinking_request.effort != reasoning.effort or form.has_effort):
        body["reasoning_effort"] = reasoning.effort


def _switch_fields(reasoning: Reasoning, switch: str) -> Fields:
    if reasoning.mode is None and reasoning.budget_tokens is None:
        return {}
    fields: Fields = {}
    if switch == "thinking":
        fields["thinking"] = {"type": _WORDS.get(reasoning.mode or "on", "enabled")}
        if reasoning.budget_tokens is not None:
            fields["thinking"]["budget_tokens"] = reasoning.budget_tokens
    elif switch == "enable_thinking":
        fields["enable_thinking"] = reasoning.mode != "off"
        if reasoning.budget_tokens is not None:
            fields["thinking_budget"] = reasoning.budget_tokens
    elif switch == "reasoning":
        fields["reasoning"] = {"enabled": reasoning.mode != "off"}
        if reasoning.budget_tokens is not None:
            fields["reasoning"]["max_tokens"] = reasoning.budget_tokens
    return fields
