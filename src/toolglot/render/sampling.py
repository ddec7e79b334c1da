"""Sampling settings and the token limit, as the target accepts them.

A setting that is refused is dropped, one that is too high or too low becomes the nearest accepted value, and of two
that exclude each other one stays. Law: a setting changes only by a rule of the target, which the report names.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

from msgspec.structs import asdict, replace

from toolglot.conversation import Reasoning, Sampling
from toolglot.render.context import RenderContext

DEFAULT_MAX_TOKENS: Final = 8192
"""The limit for a target that requires one, if the client set none."""

MIN_TOP_P_WHILE_THINKING: Final = 0.95
"""A lower top_p is refused by targets on which thinking narrows sampling."""

_DEFAULTS: Final = {"temperature": 1, "top_p": 1, "presence_penalty": 0, "frequency_penalty": 0}
"""Values of settings that are accepted even if the setting is refused while the model thinks: the defaults."""

_beside_limit: Final = attrgetter(*[name for name in Sampling.__struct_fields__ if name != "max_tokens"])
_UNSET: Final = _beside_limit(Sampling())


def fit_sampling(sampling: Sampling, ctx: RenderContext) -> Sampling:
    """The sampling that the target accepts, whether it thinks or not."""
    changes: dict[str, Any] = {}
    is_plain = _beside_limit(sampling) == _UNSET
    if is_plain and sampling.max_tokens is not None and sampling.max_tokens >= ctx.profile.request.min_max_tokens:
        return sampling  # as nearly always
    for name, value in () if is_plain else asdict(sampling).items():
        if value in (None, ()) or name == "max_tokens" or name in ctx.profile.request.sampling:
            continue
        changes[name] = () if name == "stop" else None
        ctx.report("dropped", f"{name} is not accepted {ctx.rule('request.sampling')}", path=f"$.{name}")
    changes.update(_fit_max_tokens(sampling.max_tokens, ctx))
    fitted = replace(sampling, **changes) if changes else sampling
    return fitted if is_plain else _fit_stop(_fit_temperature(fitted, ctx), ctx)


def _fit_max_tokens(wanted: int | None, ctx: RenderContext) -> dict[str, Any]:
    rules = ctx.profile.request
    if wanted is None:
        if not rules.max_tokens_required:
            return {}
        reason = f"max_tokens is required {ctx.rule('request.max_tokens_required')}; set to {DEFAULT_MAX_TOKENS}"
        ctx.report("added", reason, "policy", path="$.max_tokens")
        return {"max_tokens": DEFAULT_MAX_TOKENS}
    if wanted >= rules.min_max_tokens:
        return {}
    reason = f"{wanted} is below the minimum {ctx.rule('request.min_max_tokens')}"
    ctx.report("replaced", f"{reason}; set to {rules.min_max_tokens}", path="$.max_tokens")
    return {"max_tokens": rules.min_max_tokens}


def _fit_temperature(sampling: Sampling, ctx: RenderContext) -> Sampling:
    wanted, rules = sampling.temperature, ctx.profile.request
    if wanted is None:
        return sampling
    if rules.temperature_max is not None and wanted > rules.temperature_max:
        nearest, problem = (
            rules.temperature_max,
            f"above the maximum {ctx.rule('request.temperature_max')}",
        )
    elif rules.temperature_min is not None and wanted < rules.temperature_min:
        nearest, problem = (
            rules.temperature_min,
            f"below the minimum {ctx.rule('request.temperature_min')}",
        )
    else:
        return sampling
    # A whole number is written without a fraction: 1 rather than 1.0.
    fitted = int(nearest) if nearest.is_integer() else nearest
    ctx.report("replaced", f"{wanted} is {problem}; set to {fitted}", path="$.temperature")
    return replace(sampling, temperature=fitted)


def _fit_stop(sampling: Sampling, ctx: RenderContext) -> Sampling:
    rules, stop = ctx.profile.request, sampling.stop
    if not rules.blank_stop and not all(map(str.strip, stop)):
        stop = tuple(text for text in stop if text.strip())
        problem = f"{len(sampling.stop) - len(stop)} of {len(sampling.stop)} stop sequences"
        ctx.report("dropped", f"{problem} are only white space {ctx.rule('request.blank_stop')}", path="$.stop")
    if rules.max_stop is not None and len(stop) > rules.max_stop:
        reason = f"{len(stop)} stop sequences exceed the maximum {ctx.rule('request.max_stop')}"
        ctx.report("dropped", f"{reason}; the first {rules.max_stop} were kept", path="$.stop")
        stop = stop[: rules.max_stop]
    return sampling if stop is sampling.stop else replace(sampling, stop=stop)


def narrow_sampling(sampling: Sampling, reasoning: Reasoning | None, ctx: RenderContext) -> Sampling:
    """The settings without those that exclude thinking or each other."""
    changes: dict[str, Any] = {}
    if ctx.profile.reasoning.narrows_sampling and _is_thinking(reasoning, ctx):
        for name in _refused_while_thinking(sampling):
            reason = f"{name} {getattr(sampling, name)} is not accepted while thinking"
            ctx.report("dropped", f"{reason} {ctx.rule('reasoning.narrows_sampling')}", path=f"$.{name}")
            changes[name] = None
    if ctx.profile.reasoning.refused_sampling and _thinks_by_effort(reasoning, ctx):
        for name in ctx.profile.reasoning.refused_sampling:
            value = getattr(sampling, name)
            if value not in (None, ()) and value != _DEFAULTS.get(name):
                reason = f"{name} is not accepted while thinking {ctx.rule('reasoning.refused_sampling')}"
                ctx.report("dropped", reason, path=f"$.{name}")
                changes[name] = () if name == "stop" else None
    both = (changes.get("temperature", sampling.temperature), changes.get("top_p", sampling.top_p))
    if ctx.profile.request.temperature_or_top_p and None not in both:
        reason = f"temperature and top_p exclude each other {ctx.rule('request.temperature_or_top_p')}"
        ctx.report("dropped", f"{reason}; the temperature was kept", path="$.top_p")
        changes["top_p"] = None
    return replace(sampling, **changes) if changes else sampling


def _thinks_by_effort(reasoning: Reasoning | None, ctx: RenderContext) -> bool:
    """Whether the model thinks, for targets on which an effort decides it and not only a mode."""
    if reasoning is not None and reasoning.effort is not None:
        return reasoning.effort != "none"
    return _is_thinking(reasoning, ctx)


def _is_thinking(reasoning: Reasoning | None, ctx: RenderContext) -> bool:
    mode = reasoning.mode if reasoning is not None else None
    return (mode or ctx.profile.reasoning.default) in ("on", "adaptive")


def _refused_while_thinking(sampling: Sampling) -> list[str]:
    refused = ["temperature"] if sampling.temperature not in (None, 1) else []
    if sampling.top_p is not None and not MIN_TOP_P_WHILE_THINKING <= sampling.top_p <= 1:
        refused.append("top_p")
    return refused if sampling.top_k is None else [*refused, "top_k"]
