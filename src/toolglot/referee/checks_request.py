"""The rest of a request: limits, sampling, structured output, fields that nobody knows."""

from __future__ import annotations

from toolglot.errors import quote
from toolglot.referee.checks_tools import extra_tool_fields
from toolglot.referee.checks_turns import extra_message_fields
from toolglot.referee.finding import Case, Checks, Finding, Findings, step


def max_tokens_field(case: Case) -> Findings:
    """`max_tokens` is understood beside its successor, save by models that think and show nothing of it."""
    setting, field = case.view.max_tokens, case.profile.request.max_tokens_field
    used, reasoning = case.view.max_tokens_field, case.profile.reasoning
    is_hidden = reasoning.carrier == "none" and reasoning.default != "off"
    is_old = used == "max_tokens" and not is_hidden
    if setting is not None and used and used != field and not is_old and not case.ignores_fields:
        yield Finding(setting.path, f"the field {used} is not accepted", f"write {field}", used)


def max_tokens_required(case: Case) -> Findings:
    field = case.profile.request.max_tokens_field
    if case.profile.request.max_tokens_required and case.view.max_tokens is None:
        yield Finding(step("$", field), f"the field {field} is missing", f"add {field}", field)


def min_max_tokens(case: Case) -> Findings:
    setting, least = case.view.max_tokens, case.profile.request.min_max_tokens
    if setting is not None and isinstance(setting.value, int | float) and setting.value < least:
        yield Finding(setting.path, f"at least {least} is accepted", "raise it", str(setting.value)[:80])


def sampling(case: Case) -> Findings:
    allowed = case.profile.request.sampling
    for name, setting in case.view.sampling.items() if not case.ignores_fields else ():
        if name not in allowed:
            yield Finding(setting.path, f"{name} is not accepted", "leave it out", name)


def output(case: Case) -> Findings:
    setting, allowed = case.view.output, case.profile.request.output
    if setting is not None and setting.value not in allowed and (allowed or not case.ignores_fields):
        hint = f"one of {', '.join(allowed)}" if allowed else "leave it out"
        yield Finding(setting.path, f"{quote(setting.value)} is not accepted as output", hint, str(setting.value)[:80])


def output_with_tools(case: Case) -> Findings:
    setting = case.view.output
    if setting is not None and case.has_tools and not case.profile.request.output_with_tools:
        yield Finding(setting.path, "structured output and tools do not go together", "keep one of them")


def unknown_fields(case: Case) -> Findings:
    if case.ignores_fields:
        return
    for name in case.view.extra_fields:
        yield Finding(step("$", name), f"there is no field {quote(name)}", "leave it out", name[:80])
    for path in case.view.extra_paths:
        yield Finding(path, "there is no such field", "leave it out")
    yield from extra_message_fields(case)
    yield from extra_tool_fields(case)


def user(case: Case) -> Findings:
    setting = case.view.user
    if setting is not None and not case.profile.request.user and not case.ignores_fields:
        yield Finding(setting.path, "no field names the end user here", "leave it out")


def cache_markers(case: Case) -> Findings:
    for path in case.view.cache_markers if not case.profile.request.cache_markers else ():
        if not case.ignores_fields:
            yield Finding(path, "cache markers are not accepted", "leave it out")


CHECKS: Checks = {
    "request.max_tokens_field": max_tokens_field,
    "request.max_tokens_required": max_tokens_required,
    "request.min_max_tokens": min_max_tokens,
    "request.sampling": sampling,
    "request.output": output,
    "request.output_with_tools": output_with_tools,
    "request.unknown_fields": unknown_fields,
    "request.user": user,
    "request.cache_markers": cache_markers,
}
