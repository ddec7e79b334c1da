"""Whether a model is to think, as hosts of the Chat Completions protocol let one say it. OpenAI itself does not.

    {"thinking": {"type": "disabled"}}                      DeepSeek, Kimi, GLM
    {"enable_thinking": false, "thinking_budget": 1000}     Qwen
    {"reasoning": {"enabled": true, "max_tokens": 1000}}    OpenRouter

What was read is kept as it came, and returns so while it says what is asked.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from toolglot.conversation import Reasoning, ReasoningMode
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.openai_chat.form import ChatReasoning

FIELDS: Final = ("thinking", "enable_thinking", "thinking_budget", "reasoning")
_KNOWN: Final = {"thinking": ("type", "budget_tokens"), "reasoning": ("enabled", "max_tokens", "effort")}
"""What is understood of those that are objects."""
_MODES: Final[dict[str, ReasoningMode]] = {"enabled": "on", "disabled": "off", "adaptive": "adaptive"}
_WORDS: Final = {mode: word for word, mode in _MODES.items()}
_FLAGS: Final[dict[bool, ReasoningMode]] = {True: "on", False: "off"}


class ThinkingRequest(NamedTuple):
    mode: ReasoningMode | None = None
    budget: int | None = None
    effort: str | None = None


def claimed(body: Fields) -> Fields:
    """The fields of a body that say whether to think, as far as they can be understood."""
    return {key: body[key] for key in FIELDS if key in body and read({key: body[key]}) != ThinkingRequest()}


def read(fields: Fields) -> ThinkingRequest:
    thinking, reasoning = fields.get("thinking"), fields.get("reasoning")
    flag = fields.get("enable_thinking")
    asked = ThinkingRequest(_FLAGS[flag] if type(flag) is bool else None, _whole(fields.get("thinking_budget")))
    if type(thinking) is dict and type(thinking.get("type")) is str:
        asked = ThinkingRequest(_MODES.get(thinking["type"]), _whole(thinking.get("budget_tokens")))
    if type(reasoning) is dict:
        enabled, effort = reasoning.get("enabled"), reasoning.get("effort")
        budget = _whole(reasoning.get("max_tokens"))
        asked = ThinkingRequest(
            _FLAGS[enabled] if type(enabled) is bool else "on" if budget else asked.mode,
            budget or asked.budget,
            effort if type(effort) is str else None,
        )
    return asked


def _whole(value: Any) -> int | None:
    return value if type(value) is int else None


def read_reasoning(body: Fields, effort: str | None) -> Reasoning | None:
    """What a body says of thinking, with the effort that stands in a field of its own."""
    fields = claimed(body)
    if not fields:
        return None if effort is None else Reasoning(effort=effort)
    asked = read(fields)
    rest = {
        name: value
        for key, known in _KNOWN.items()
        if type(fields.get(key)) is dict
        for name, value in fields[key].items()
        if name not in known
    }
    form = ChatReasoning(fields, rest or None, effort is not None)
    return Reasoning(asked.mode, effort or asked.effort, asked.budget, form=form)


def write_reasoning(body: Fields, reasoning: Reasoning, switch: str) -> None:
    """Say whether to think and how much, as it was said or as the host wants it."""
    form = reasoning.form
    if type(form) is not ChatReasoning:
        if reasoning.effort is not None:
            body["reasoning_effort"] = reasoning.effort
        body.update(_switched(reasoning, switch))
        return
    asked = read(form.switch)
    if asked[:2] == (reasoning.mode, reasoning.budget_tokens):
        body.update(form.switch)
    else:
        body.update(_switched(reasoning, switch))
    if reasoning.effort is not None and (asked.effort != reasoning.effort or form.has_effort):
        body["reasoning_effort"] = reasoning.effort


def _switched(reasoning: Reasoning, switch: str) -> Fields:
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
