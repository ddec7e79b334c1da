"""Thinking: the settings, and what must come back of it in the history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from toolglot.errors import quote
from toolglot.referee.finding import Checks, Findings, RequestCase, RuleBreach, calls_of, short
from toolglot.referee.view import Message, PartView, Setting

FORMS: Final[dict[str, tuple[str, ...]]] = {
    "none": (),
    "reasoning_content": ("reasoning_content",),
    "reasoning": ("reasoning", "reasoning_content"),
    "reasoning_details": ("reasoning_details", "reasoning"),
    "think_tags": ("reasoning_details", "reasoning_content"),
    "thinking_chunks": ("thinking",),
}
"""Where hosts of Chat Completions put thinking, and the forms that they read. Other protocols have one form."""

FIELDS: Final = ("reasoning", "reasoning_content", "reasoning_details")
"""Forms that are fields of a message: if unknown fields are ignored, these are too."""


def _assistant(case: RequestCase) -> Iterator[Message]:
    return (message for message in case.view.messages if message.role == "assistant")


def _thinking(case: RequestCase) -> Iterator[PartView]:
    return (item for message in _assistant(case) for item in message.items if item.kind == "thinking")


def carrier(case: RequestCase) -> Findings:
    forms = FORMS.get(case.profile.reasoning.carrier)
    for item in _thinking(case) if forms is not None else ():
        if item.type not in (forms or ()) and not (case.ignores_fields and item.type in FIELDS):
            yield RuleBreach(item.path, f"thinking is not accepted as {quote(item.type)}", "leave it out", item.type)


def modes(case: RequestCase) -> Findings:
    setting, allowed = case.view.thinking_mode, case.profile.reasoning.modes
    if setting is not None and setting.value not in allowed and (allowed or not case.ignores("reasoning.modes")):
        message = f"the thinking mode {quote(setting.value)} is not accepted"
        hint = f"one of {', '.join(allowed)}" if allowed else "leave it out"
        yield RuleBreach(setting.path, message, hint, short(setting.value))


def switch(case: RequestCase) -> Findings:
    """In Chat Completions, each host has a field of its own."""
    setting, field, used = case.view.thinking_mode, case.profile.reasoning.switch, case.view.thinking_switch
    if setting is None or not used or case.ignores_fields:
        return
    if used != field:
        hint = "leave it out" if field == "none" else f"write {field}"
        yield RuleBreach(setting.path, f"the field {used} is not known", hint, used)


def signed(case: RequestCase) -> Findings:
    for item in _thinking(case) if case.profile.reasoning.signed else ():
        is_stored = case.view.keeps_items and item.item_id is not None
        if not item.signature and not item.is_redacted and not is_stored:
            yield RuleBreach(item.path, "the thinking has no signature", "leave it out, or send it as it came")


def foreign_marks(case: RequestCase) -> Findings:
    marks = case.profile.reasoning.foreign_marks
    for item in _thinking(case) if marks else ():
        if (item.signature or "").startswith(marks):
            yield RuleBreach(item.path, "the signature is another issuer's", "leave the thinking out")


def signature_fields(case: RequestCase) -> Findings:
    named = case.profile.reasoning.signature_fields
    for path in case.view.signature_fields if named else ():
        field = path.rpartition(".")[2]
        if field in named:
            yield RuleBreach(path, f"{field} holds a signature of another issuer", "leave it out", field)


def _open_loop(case: RequestCase) -> Message | None:
    """The turn whose calls are answered at the end of the request."""
    messages, rounds = case.view.messages, case.pairing.rounds
    if not rounds or not rounds[-1].near:
        return None
    later = messages[rounds[-1].last_message + 1 :]
    is_open = all(message.role != "assistant" for message in later)
    return messages[rounds[-1].first_message] if is_open else None


def leading(case: RequestCase) -> Findings:
    if case.thinking not in case.profile.reasoning.leading:
        return
    message = _open_loop(case)
    if message is not None and message.items and message.items[0].kind != "thinking":
        hint = "send the thinking that came with the calls, or switch thinking off"
        yield RuleBreach(message.items[0].path, "a turn with open calls must start with its thinking", hint)


def _lacks_thinking(message: Message) -> bool:
    return not any(item.kind == "thinking" for item in message.items)


def placeholder(case: RequestCase) -> Findings:
    where = case.profile.reasoning.placeholder_on
    if where == "first_call":
        yield from _unsigned_steps(case)
    if where not in ("calls", "assistant") or case.thinking == "off":
        return
    has_called = False  # turns before the first call need no thinking
    for index, message in enumerate(case.view.messages):
        calls = bool(calls_of(message))
        has_called = has_called or calls
        is_bound = message.role == "assistant" and (calls or (where == "assistant" and has_called))
        if is_bound and _lacks_thinking(message):
            hint = "send the thinking that came with it, or a placeholder"
            yield RuleBreach(message.path, "the turn lacks its thinking, which must be passed back", hint, str(index))


def _unsigned_steps(case: RequestCase) -> Findings:
    """The first call of each step since the user's last text must have a signature."""
    start = max((index for index, message in enumerate(case.view.messages) if _is_prompt(message)), default=-1)
    for message in case.view.messages[start + 1 :]:
        calls = calls_of(message)
        if calls and not calls[0].signature:
            hint = "send the signature that came with it, or the placeholder"
            yield RuleBreach(calls[0].path, "the first call of a step has no signature", hint, calls[0].name or "")


def _is_prompt(message: Message) -> bool:
    return message.role == "user" and any(item.kind in ("text", "media") for item in message.items)


def grouped(case: RequestCase) -> Findings:
    """A thinking item without its follower. `may_end_turn` is the same for an assistant turn."""
    messages, rules = case.view.messages, case.profile.reasoning
    for index, message in enumerate(messages if rules.grouped else ()):
        goes_on = index + 1 < len(messages) and messages[index + 1].role == "assistant"
        is_found_as_end = message.role == "assistant" and not rules.may_end_turn
        if message.items and message.items[-1].kind == "thinking" and not goes_on and not is_found_as_end:
            item = message.items[-1]
            shown = item.item_id or item.id or ""
            # The provider's words are about the opposite: a follower without its thinking.
            yield RuleBreach(item.path, "nothing follows the thinking item", "leave it out", shown, is_aside=True)


def before_calls(case: RequestCase) -> Findings:
    """Between two calls it is accepted (it is before the second); after the last it is not."""
    for message in _assistant(case) if case.profile.reasoning.before_calls else ():
        last = max((index for index, item in enumerate(message.items) if item.kind == "call"), default=None)
        for item in message.items[last + 1 :] if last is not None else ():
            if item.kind == "thinking":
                yield RuleBreach(item.path, "thinking comes after the calls of its turn", "put it before them")


def may_end_turn(case: RequestCase) -> Findings:
    for message in _assistant(case) if not case.profile.reasoning.may_end_turn else ():
        if message.items and message.items[-1].kind == "thinking":
            yield RuleBreach(message.items[-1].path, "the turn ends with thinking", "leave it out")


def efforts(case: RequestCase) -> Findings:
    setting, allowed = case.view.effort, case.profile.reasoning.efforts
    if setting is not None and setting.value not in allowed and (allowed or not case.ignores("reasoning.efforts")):
        hint = f"one of {', '.join(allowed)}" if allowed else "leave it out"
        yield RuleBreach(setting.path, f"the effort {quote(setting.value)} is not accepted", hint, short(setting.value))
    summary, rules = case.view.summary, case.profile.reasoning
    thinks = bool(rules.modes or rules.efforts or rules.budget) or rules.default != "off"
    if summary is not None and not thinks and not case.ignores("reasoning.efforts"):
        yield RuleBreach(summary.path, "a model without thinking has no summary", "leave it out", is_aside=True)


def budget(case: RequestCase) -> Findings:
    setting = case.view.budget
    if setting is not None and not case.profile.reasoning.budget and not case.ignores("reasoning.budget"):
        yield RuleBreach(setting.path, "a thinking budget is not accepted", "leave it out")


def budget_required(case: RequestCase) -> Findings:
    mode = case.view.thinking_mode
    if case.profile.reasoning.budget_required and mode is not None and mode.value == "on" and case.view.budget is None:
        yield RuleBreach(mode.path, "thinking is on without a budget", "add a budget")


def min_budget(case: RequestCase) -> Findings:
    """Only while thinking is on: otherwise 0 or less means off, or no limit."""
    setting, mode, rules = case.view.budget, case.view.thinking_mode, case.profile.reasoning
    if setting is None or not rules.budget or (mode is not None and mode.value in ("off", "adaptive")):
        return
    if isinstance(setting.value, int) and setting.value < rules.min_budget:
        yield RuleBreach(setting.path, f"at least {rules.min_budget} is accepted", "raise it", short(setting.value))


def budget_below_limit(case: RequestCase) -> Findings:
    setting, limit, rules = case.view.budget, case.view.max_tokens, case.profile.reasoning
    if not rules.budget_below_limit or not rules.budget or setting is None or limit is None:
        return
    if isinstance(setting.value, int) and isinstance(limit.value, int) and setting.value >= limit.value > 0:
        message = f"a budget of {setting.value} is not below the limit of {limit.value}"
        yield RuleBreach(setting.path, message, "lower it, or raise the limit", short(setting.value))


def narrows_sampling(case: RequestCase) -> Findings:
    if not case.profile.reasoning.narrows_sampling or case.thinking not in ("on", "adaptive"):
        return
    for name, setting in case.view.sampling.items():
        if name in _BESIDE_THINKING and name in case.profile.request.sampling and not _BESIDE_THINKING[name](setting):
            message = f"{name} {quote(setting.value)} is not accepted while thinking"
            yield RuleBreach(setting.path, message, "leave it out", name, is_aside=name != "temperature")


_BESIDE_THINKING: Final[Mapping[str, Callable[[Setting], bool]]] = {
    "temperature": lambda setting: setting.value == 1,
    "top_p": lambda setting: isinstance(setting.value, int | float) and 0.95 <= setting.value <= 1,
    "top_k": lambda _: False,
}
"""What each setting may be while thinking restricts it."""


def refused_sampling(case: RequestCase) -> Findings:
    effort = case.view.effort
    thinks = case.thinking in ("on", "adaptive")
    if effort is not None and isinstance(effort.value, str):
        thinks = effort.value != "none"
    for name in case.profile.reasoning.refused_sampling if thinks else ():
        setting = case.view.sampling.get(name)
        if setting is None or name not in case.profile.request.sampling or setting.value == _DEFAULTS.get(name):
            continue
        if setting.value not in (None, [], ()):
            yield RuleBreach(setting.path, f"{name} is not accepted while thinking", "leave it out", name)


_DEFAULTS: Final = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
"""Values that are always accepted: those that apply without the setting."""


def one_setting(case: RequestCase) -> Findings:
    effort, mode = case.view.effort, case.view.thinking_mode
    if case.profile.reasoning.one_setting and effort is not None and mode is not None:
        yield RuleBreach(effort.path, "effort and thinking mode are both set", "keep one of them")


CHECKS: Checks = {
    "reasoning.carrier": carrier,
    "reasoning.modes": modes,
    "reasoning.switch": switch,
    "reasoning.signed": signed,
    "reasoning.foreign_marks": foreign_marks,
    "reasoning.signature_fields": signature_fields,
    "reasoning.leading": leading,
    "reasoning.placeholder_on": placeholder,
    "reasoning.grouped": grouped,
    "reasoning.before_calls": before_calls,
    "reasoning.may_end_turn": may_end_turn,
    "reasoning.efforts": efforts,
    "reasoning.budget": budget,
    "reasoning.budget_required": budget_required,
    "reasoning.min_budget": min_budget,
    "reasoning.budget_below_limit": budget_below_limit,
    "reasoning.narrows_sampling": narrows_sampling,
    "reasoning.refused_sampling": refused_sampling,
    "reasoning.one_setting": one_setting,
}
