"""The rest of a request: limits, sampling, structured output, unknown fields."""

from __future__ import annotations

from fnmatch import fnmatchcase

from toolglot.errors import quote
from toolglot.referee.checks.tools import extra_tool_fields
from toolglot.referee.checks.turns import extra_message_fields
from toolglot.referee.finding import Checks, Findings, RequestCase, RuleBreach, short, step


def served_elsewhere(case: RequestCase) -> Findings:
    target = case.profile.request.target
    if target:
        yield RuleBreach("$.model", "this model is not served on this endpoint", f"use the target {target}")


def max_tokens_field(case: RequestCase) -> Findings:
    """`max_tokens` is accepted like its successor, except by models with hidden thinking."""
    setting, field = case.view.max_tokens, case.profile.request.max_tokens_field
    used, reasoning = case.view.max_tokens_field, case.profile.reasoning
    is_hidden = reasoning.carrier == "none" and reasoning.default != "off"
    is_old = used == "max_tokens" and not is_hidden
    if setting is not None and used and used != field and not is_old and not case.ignores_fields:
        yield RuleBreach(setting.path, f"the field {used} is not accepted", f"write {field}", used)


def max_tokens_required(case: RequestCase) -> Findings:
    field = case.profile.request.max_tokens_field
    if case.profile.request.max_tokens_required and case.view.max_tokens is None:
        yield RuleBreach(step("$", field), f"the field {field} is missing", f"add {field}", field)


def min_max_tokens(case: RequestCase) -> Findings:
    setting, least = case.view.max_tokens, case.profile.request.min_max_tokens
    if setting is not None and isinstance(setting.value, int | float) and setting.value < least:
        yield RuleBreach(setting.path, f"at least {least} is accepted", "raise it", short(setting.value))


def sampling(case: RequestCase) -> Findings:
    allowed = case.profile.request.sampling
    for name, setting in case.view.sampling.items() if not case.ignores("request.sampling") else ():
        if name not in allowed:
            yield RuleBreach(setting.path, f"{name} is not accepted", "leave it out", name)


def _number(case: RequestCase, name: str) -> float | None:
    """A sampling setting that the target accepts, if it is a number."""
    setting = case.view.sampling.get(name)
    if setting is None or name not in case.profile.request.sampling or isinstance(setting.value, bool):
        return None
    return setting.value if isinstance(setting.value, int | float) else None


def temperature_max(case: RequestCase) -> Findings:
    value, limit = _number(case, "temperature"), case.profile.request.temperature_max
    if value is not None and limit is not None and value > limit:
        path = case.view.sampling["temperature"].path
        yield RuleBreach(path, f"at most {limit:g} is accepted", "lower it", short(value))


def temperature_min(case: RequestCase) -> Findings:
    value, least = _number(case, "temperature"), case.profile.request.temperature_min
    if value is not None and least is not None and value < least:
        path = case.view.sampling["temperature"].path
        yield RuleBreach(path, f"at least {least:g} is accepted", "raise it", short(value))


def temperature_or_top_p(case: RequestCase) -> Findings:
    numbers = [_number(case, name) for name in ("temperature", "top_p")]
    if case.profile.request.temperature_or_top_p and None not in numbers:
        path = case.view.sampling["top_p"].path
        yield RuleBreach(path, "temperature and top_p are both set", "keep one of them")


def _stops(case: RequestCase) -> list[tuple[str, str]]:
    """Stop sequences with their paths; a single one may be a string."""
    setting = case.view.sampling.get("stop")
    if setting is None or "stop" not in case.profile.request.sampling:
        return []
    if isinstance(setting.value, str):
        return [(setting.path, setting.value)]
    listed = setting.value if isinstance(setting.value, list | tuple) else ()
    return [(f"{setting.path}[{index}]", text) for index, text in enumerate(listed) if isinstance(text, str)]


def max_stop(case: RequestCase) -> Findings:
    stops, limit = _stops(case), case.profile.request.max_stop
    if limit is not None and len(stops) > limit:
        path = case.view.sampling["stop"].path
        yield RuleBreach(path, f"at most {limit} stop sequences are accepted", "leave some out", str(len(stops)))


def blank_stop(case: RequestCase) -> Findings:
    for path, text in _stops(case) if not case.profile.request.blank_stop else ():
        if not text.strip():
            yield RuleBreach(path, "the stop sequence is only white space", "leave it out")


def output(case: RequestCase) -> Findings:
    setting, allowed = case.view.output, case.profile.request.output
    if setting is not None and setting.value not in allowed and (allowed or not case.ignores("request.output")):
        hint = f"one of {', '.join(allowed)}" if allowed else "leave it out"
        yield RuleBreach(setting.path, f"{quote(setting.value)} is not accepted as output", hint, short(setting.value))


def output_with_tools(case: RequestCase) -> Findings:
    setting = case.view.output
    if setting is not None and case.has_tools and not case.profile.request.output_with_tools:
        yield RuleBreach(setting.path, "structured output and tools cannot be combined", "keep one of them")


def unknown_fields(case: RequestCase) -> Findings:
    if case.ignores_fields:
        return
    for name in case.view.extra_fields:
        yield RuleBreach(step("$", name), f"unknown field {quote(name)}", "leave it out", name[:80])
    for path in case.view.extra_paths:
        yield RuleBreach(path, "unknown field", "leave it out")
    yield from extra_message_fields(case)
    yield from extra_tool_fields(case)


def known_fields(case: RequestCase) -> Findings:
    """Fields that another host of the protocol has, and this one has not."""
    known = case.profile.request.fields
    if known is None or case.ignores_fields:
        return
    view = case.view
    others = {*known, *view.extra_fields, view.max_tokens_field, view.seed_field}  # other rules are about some
    for name in view.named_fields:
        if name not in others:
            yield RuleBreach(step("$", name), f"there is no field {quote(name)} here", "leave it out", name[:80])


def message_fields(case: RequestCase) -> Findings:
    """The same for the fields of messages."""
    known = case.profile.request.message_fields
    if known is None or case.ignores_fields:
        return
    for message in case.view.messages:
        for name in message.fields:
            if name not in known and name not in message.extra_fields:
                path = step(message.path, name)
                yield RuleBreach(path, f"a message has no field {quote(name)} here", "leave it out", name[:80])


def seed_field(case: RequestCase) -> Findings:
    used, field = case.view.seed_field, case.profile.request.seed_field
    if used and used != field and not case.ignores("request.seed_field"):
        yield RuleBreach(step("$", used), f"the field {used} is not accepted", f"write {field}", used)


def refused_fields(case: RequestCase) -> Findings:
    for name in case.profile.request.refused_fields:
        if name in case.view.fields:
            yield RuleBreach(step("$", name), f"{name} is not accepted", "leave it out", name)


def user(case: RequestCase) -> Findings:
    setting = case.view.user
    if setting is not None and not case.profile.request.user and not case.ignores("request.user"):
        yield RuleBreach(setting.path, "a field for the end user is not accepted", "leave it out")


def foreign_models(case: RequestCase) -> Findings:
    """A name that plainly belongs to another provider. Any other name may be a new model."""
    model = case.profile.model
    if any(fnmatchcase(model.lower(), pattern) for pattern in case.profile.request.foreign_models):
        hint = f"name a model of {case.profile.name}"
        yield RuleBreach("$.model", f"{quote(model)} is a model of another provider", hint, model[:80])


def hosted_version(case: RequestCase) -> Findings:
    """At a cloud that hosts the protocol, the body has the version, and not the model."""
    wanted, found = case.profile.request.hosted_version, case.view.version
    if not wanted:
        return
    if found is None or found.value != wanted:
        path = found.path if found is not None else "$.anthropic_version"
        yield RuleBreach(path, f"expected {quote(wanted)}", f"write {quote(wanted)}")
    if "model" in case.view.fields:
        yield RuleBreach("$.model", "the model is in the path", "leave it out", "model")


CHECKS: Checks = {
    "request.target": served_elsewhere,
    "request.hosted_version": hosted_version,
    "request.max_tokens_field": max_tokens_field,
    "request.max_tokens_required": max_tokens_required,
    "request.min_max_tokens": min_max_tokens,
    "request.sampling": sampling,
    "request.temperature_max": temperature_max,
    "request.temperature_min": temperature_min,
    "request.temperature_or_top_p": temperature_or_top_p,
    "request.max_stop": max_stop,
    "request.blank_stop": blank_stop,
    "request.output": output,
    "request.output_with_tools": output_with_tools,
    "request.unknown_fields": unknown_fields,
    "request.fields": known_fields,
    "request.message_fields": message_fields,
    "request.seed_field": seed_field,
    "request.refused_fields": refused_fields,
    "request.user": user,
    "request.foreign_models": foreign_models,
}
